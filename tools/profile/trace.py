"""Chrome traces of ``torch.profiler`` (``.json``, ``.json.gz``), and plain trace-event files.

One pass; numbers go into compact arrays, texts into a table of distinct names. Ranges on the device side
(``gpu_user_annotation``) are no kernels: counting them would count their kernels twice.
"""

from __future__ import annotations

from array import array
from typing import Any

import msgspec
from msgspec import Struct, field

from tools.contract import Problem
from tools.part import Part
from tools.profile import classify
from tools.profile.clock import Ticker
from tools.profile.copies import copy_kind
from tools.profile.json_stream import ArrayStream, chunks
from tools.profile.model import Call, Copy, Kernel, Profile, Progress, Range
from tools.profile.steps import steps_of
from tools.profile.trace_time import finish_ops, finish_spans

GPU_CATS = {"kernel": 0, "gpu_memcpy": 1, "gpu_memset": 2}
API_CATS = {"cuda_runtime", "cuda_driver", "hip_runtime", "runtime", "driver", "privateuse1_runtime", "xpu_runtime"}
RANGE_CATS = {"user_annotation", "gpu_user_annotation"}
_ENQUEUE = ("launch", "graph_launch", "memcpy_async", "memcpy")
Scalar = int | float | str | None


class Args(Struct, gc=False):
    """The arguments that matter; everything else is skipped while decoding."""

    device: Scalar = None
    stream: Scalar = None
    correlation: Scalar = None
    bytes: Scalar = None
    node: Scalar = field(default=None, name="graph node id")


class Event(Struct, gc=False):
    """One trace event. Times in microseconds as the format has them."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: Scalar = None
    tid: Scalar = None
    ts: Scalar = None
    dur: Scalar = None
    tdur: Scalar = None
    args: Args | None = None


_TYPED = msgspec.json.Decoder(list[Event])
_LOOSE = msgspec.json.Decoder()


def decode(text: bytes) -> list[Event]:
    """Events of one block; a block with odd types in it is taken field by field."""
    try:
        return _TYPED.decode(text)
    except msgspec.ValidationError:
        return [event for event in map(_event, _LOOSE.decode(text)) if event is not None]


def _event(raw: Any) -> Event | None:
    if not isinstance(raw, dict):
        return None
    args = raw.get("args")
    values = {key: raw.get(key) for key in ("pid", "tid", "ts", "dur", "tdur")}
    return Event(
        ph=str(raw.get("ph") or ""),
        cat=str(raw.get("cat") or ""),
        name=str(raw.get("name") or ""),
        args=_args(args) if isinstance(args, dict) else None,
        **{key: value if isinstance(value, (int, float, str)) else None for key, value in values.items()},
    )


def _args(raw: dict[str, Any]) -> Args:
    keys = ("device", "stream", "correlation", "bytes")
    got = {key: raw[key] for key in keys if isinstance(raw.get(key), (int, float, str))}
    node = raw.get("graph node id")
    return Args(node=node if isinstance(node, (int, float, str)) else None, **got)


def number(value: Scalar) -> float | None:
    """A number, also from text; ``None`` for anything else and for what is not finite."""
    if type(value) is float or type(value) is int:
        found = float(value)
    elif isinstance(value, str):
        try:
            found = float(value)
        except ValueError:
            return None
    else:
        return None
    return found if -1e300 < found < 1e300 else None


class Gpu:
    """Device work of one device: microseconds since the base, name number, kind, correlation id."""

    def __init__(self) -> None:
        self.start = array("d")
        self.length = array("d")
        self.name = array("i")
        self.kind = array("b")
        self.corr = array("q")


class Collect:
    """What one trace holds, gathered event by event."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.gpus: dict[str, Gpu] = {}
        self.base: float | None = None
        self.in_graph = 0
        self.kernels = 0
        self.copy_bytes: dict[str, list[float]] = {}
        self.calls: dict[str, list[float]] = {}
        self.launch_corr = array("q")
        self.launch_start = array("d")
        self.ranges: dict[str, list[float]] = {}
        self.steps: dict[tuple[str, str], list[tuple[str, float, float]]] = {}
        self.op_start, self.op_length = array("d"), array("d")
        self.op_name, self.op_thread = array("i"), array("i")
        self.threads: dict[tuple[Scalar, Scalar], int] = {}
        self.overhead = 0.0
        self.open: dict[tuple[Scalar, Scalar], list[tuple[str, float]]] = {}
        self.events = 0
        self.unused: dict[str, int] = {}
        self.odd = 0
        self.processes: dict[Scalar, str] = {}

    def name_id(self, name: str) -> int:
        """Number of a distinct name."""
        return self.names.setdefault(name, len(self.names))

    def add(self, event: Event) -> None:
        """Take one event."""
        self.events += 1
        phase = event.ph
        if phase == "X":
            start = number(event.ts)
            length = number(event.dur if event.dur is not None else event.tdur)
            if start is None or length is None or length < 0:
                self.odd += 1
                return
            if self.base is None:
                self.base = start
            self._complete(event, start - self.base, length)
        elif phase in ("B", "E"):
            self._nested(event)

    def _complete(self, event: Event, start: float, length: float) -> None:
        cat = event.cat
        if cat == "cpu_op" or cat == "":
            self._op(event, start, length)
        elif cat.lower() in GPU_CATS:
            self._device(event, start, length, GPU_CATS[cat.lower()])
        elif cat in API_CATS:
            self._api(event, start, length)
        elif cat in RANGE_CATS:
            self._range(event, start, length)
        elif cat == "overhead":
            self.overhead += length
        elif cat.lower() == "memcpy" or cat.lower() == "memset":
            self._device(event, start, length, 1 if cat.lower() == "memcpy" else 2)
        elif cat == "Operator" or cat == "operator":
            self._op(event, start, length)
        else:
            self.unused[cat[:40]] = self.unused.get(cat[:40], 0) + 1

    def _op(self, event: Event, start: float, length: float) -> None:
        key = (event.pid, event.tid)
        thread = self.threads.setdefault(key, len(self.threads))
        self.op_start.append(start)
        self.op_length.append(length)
        self.op_name.append(self.name_id(event.name))
        self.op_thread.append(thread)

    def _device(self, event: Event, start: float, length: float, kind: int) -> None:
        args = event.args
        device = args.device if args is not None and args.device is not None else event.pid
        gpu = self.gpus.setdefault(str(device), Gpu())
        gpu.start.append(start)
        gpu.length.append(length)
        gpu.name.append(self.name_id(event.name))
        gpu.kind.append(kind)
        corr = args.correlation if args is not None else None
        gpu.corr.append(corr if type(corr) is int and -(1 << 62) < corr < 1 << 62 else -1)
        if kind == 0:
            self.kernels += 1
            node = args.node if args is not None else None
            if node is not None and node != 0 and node != "0":
                self.in_graph += 1
            return
        direction = "set" if kind == 2 else copy_kind(event.name)
        row = self.copy_bytes.setdefault(direction, [0.0, 0.0, 0.0, 0.0, 0.0])
        row[0] += 1
        row[1] += length
        size = number(args.bytes) if args is not None else None
        if size is not None:
            row[2] += size
            row[3] += 1
        row[4] += "pageable" in event.name.lower()

    def _api(self, event: Event, start: float, length: float) -> None:
        name = classify.api_name(event.name)
        row = self.calls.setdefault(name, [0.0, 0.0])
        row[0] += 1
        row[1] += length
        corr = event.args.correlation if event.args is not None else None
        if type(corr) is int and -(1 << 62) < corr < 1 << 62 and classify.api_kind(name) in _ENQUEUE:
            self.launch_corr.append(corr)
            self.launch_start.append(start)

    def _range(self, event: Event, start: float, length: float) -> None:
        on_gpu = event.cat == "gpu_user_annotation"
        if not on_gpu:
            row = self.ranges.setdefault(event.name, [0.0, 0.0])
            row[0] += 1
            row[1] += length
        if classify.is_step(event.name):
            key = ("gpu" if on_gpu else "cpu", f"{event.pid}/{event.tid}")
            self.steps.setdefault(key, []).append((event.name, start, length))

    def _nested(self, event: Event) -> None:
        at = number(event.ts)
        if at is None:
            self.odd += 1
            return
        stack = self.open.setdefault((event.pid, event.tid), [])
        if event.ph == "B":
            stack.append((event.name, at))
            return
        for depth in range(len(stack) - 1, max(-1, len(stack) - 32), -1):
            if stack[depth][0] == event.name or not event.name:
                name, began = stack.pop(depth)
                row = self.ranges.setdefault(name, [0.0, 0.0])
                row[0] += 1
                row[1] += max(0.0, at - began)
                return
        self.odd += 1

    def into(self, profile: Profile) -> None:
        """Write everything into the profile; microseconds become nanoseconds here."""
        names = list(self.names)
        sums: dict[int, list[float]] = {}
        for gpu in self.gpus.values():
            for name, kind, length in zip(gpu.name, gpu.kind, gpu.length, strict=True):
                if kind == 0:
                    row = sums.setdefault(name, [0.0, 0.0, 0.0])
                    row[0] += 1
                    row[1] += length
                    row[2] = max(row[2], length)
        profile.kernels = sorted(
            (
                Kernel(names[key], classify.kernel_class(names[key]), int(n), total * 1e3, longest=top * 1e3)
                for key, (n, total, top) in sums.items()
            ),
            key=lambda k: -k.total,
        )
        profile.kernel_total = sum(k.total for k in profile.kernels)
        if profile.kernels:
            profile.listed = 1.0
            profile.graph_share = self._graph_share()
        profile.calls = sorted(
            (Call(n, classify.api_kind(n), int(c), t * 1e3) for n, (c, t) in self.calls.items()), key=lambda c: -c.total
        )
        profile.copies = sorted(
            (
                Copy(k, int(n), t * 1e3, size if with_size else None, int(pageable))
                for k, (n, t, size, with_size, pageable) in self.copy_bytes.items()
            ),
            key=lambda c: -c.total,
        )
        rows = (Range(name, int(n), t * 1e3) for name, (n, t) in self.ranges.items())
        profile.ranges = sorted(rows, key=lambda r: -r.total)
        profile.overhead = self.overhead * 1e3
        profile.steps = steps_of(self._step_rows())
        finish_spans(self, profile, names)
        if not profile.kernels:
            finish_ops(self, profile, names)

    def _graph_share(self) -> float | None:
        """From the node ids; without any, from launches that no launch call accounts for."""
        if self.in_graph:
            return self.in_graph / self.kernels
        kinds = {name: classify.api_kind(name) for name in self.calls}
        launches = sum(c for name, (c, _) in self.calls.items() if kinds[name] == "launch")
        graphs = sum(c for name, (c, _) in self.calls.items() if kinds[name] == "graph_launch")
        if not launches and not graphs:
            return None
        return max(0.0, 1.0 - launches / self.kernels) if graphs else 0.0

    def _step_rows(self) -> list[tuple[str, float, float]]:
        """The device's own ranges when there are any (the busiest stream), else the longest list of a host thread."""
        for side in ("gpu", "cpu"):
            lists = [rows for (where, _), rows in self.steps.items() if where == side]
            if lists:
                best = max(lists, key=len)
                return [(name, start * 1e3, length * 1e3) for name, start, length in best]
        return []


def read_trace(part: Part, progress: Progress | None = None) -> Profile:
    """Summarise one trace. Never raises on content; a trace that is cut gives what it holds."""
    profile = Profile(ref=part.name, kind="torch-trace")
    notes: list[str] = []
    ticker = Ticker(part.name, progress, float(part.size()))
    stream = ArrayStream(chunks(part, notes.append), "traceEvents", decode)
    found = Collect()
    for block in stream.blocks():
        for event in block:
            found.add(event)
        ticker.done = min(ticker.total, ticker.done + 4e6)
        ticker.tick()
    _meta(profile, stream.meta)
    found.into(profile)
    _problems(profile, stream, found, notes)
    return profile


def _meta(profile: Profile, meta: dict[str, Any]) -> None:
    info = meta.get("distributedInfo")
    if isinstance(info, dict):
        if isinstance(info.get("rank"), int):
            profile.rank = str(info["rank"])
        if isinstance(info.get("world_size"), int):
            profile.world_size = info["world_size"]
    devices = meta.get("deviceProperties")
    if isinstance(devices, list) and devices and isinstance(devices[0], dict):
        profile.device_name = str(devices[0].get("name") or "")


def _problems(profile: Profile, stream: ArrayStream, found: Collect, notes: list[str]) -> None:
    def say(what: str, do: str = "", severity: Any = "warning") -> None:
        profile.problems.append(Problem(ref=profile.ref, what=what, do=do, severity=severity))

    for note in notes:
        say(f"{note}; {found.events} events before that are used", "copy the file again")
    if stream.problem and not found.events:
        say(f"not a trace: {stream.problem}", "give the .json or .json.gz that torch.profiler wrote", "error")
        return
    if stream.cut:
        profile.truncated = True
        say(
            f"the trace ends in the middle; {found.events} whole events are used",
            "export again after the profiler stopped",
        )
    if stream.bad or found.odd:
        say(
            f"{stream.bad + found.odd} of {found.events + stream.bad} events cannot be read and are left out",
            "",
            "note",
        )
    if found.events and not found.gpus and not found.op_name and not found.ranges:
        kinds = ", ".join(sorted(found.unused, key=lambda k: -found.unused[k])[:3])
        what = f"the trace holds only events of kind {kinds}" if kinds else "the trace holds no complete events"
        say(what, "take the trace of the worker process, not of the front end", "warning")
    elif not found.gpus:
        say("no GPU events in the trace: only the host side is known", "record with ProfilerActivity.CUDA", "note")
