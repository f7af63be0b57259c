"""One pass over one log file. Each kind of line is understood once; later lines of the kind take a short way.

The kind of a line is the line without its digits. For a kind that means nothing the short way is one dictionary look-up.
"""

from __future__ import annotations

import re

from tools.logs import stats
from tools.logs.clusters import Cluster, Clusters
from tools.logs.extras import Extras
from tools.logs.life import Life, tells
from tools.logs.prefix import Line, clock_of, parse
from tools.logs.series import EngineSeries
from tools.logs.signatures import Matcher, Tallies, fold
from tools.logs.traces import START, Traces

MAX_KINDS = 30000
MAX_KEY = 600
MAX_ENGINES = 256
_DIGITS = b"0123456789"

_HTTP = re.compile(r'"(?:GET|POST|PUT|DELETE|HEAD|OPTIONS|PATCH) (\S{1,2000}) HTTP/[\d.]{1,3}" (\d{3})\b')
_FLAG = re.compile(r" (UT|UO|UF|UC|UH|URX|UR|LR|NR|RL|DC|SI|DPE|UPE)(?:,[A-Z,]{1,30})?(?= |$)")
_ID = re.compile(rb"[0-9a-f][0-9a-f-]{15,}|(?:req|batch|resp)[-_][\w-]{8,}")
_COMPLETION = re.compile(rb"cmpl-[\w-]*")
MAX_ID_LINE = 240
_PROBE = re.compile(
    r"^/(?:health|healthz|ping|metrics|ready|readyz|livez|live|liveness|readiness|v1/models/?|is_sleeping)\b"
)
_MD = re.compile(rb"\d\d-\d\d \d\d:\d\d:\d\d")
_ISO = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?: ?(?:Z|[+-]\d\d:?\d\d))?")
_ALARM = re.compile(
    r"(?i)\bwarn(?:ing)?s?\b|\berror|\bexception|\bfail(?:ed|ure|s)?\b|\btime(?:d[ -]?out|out)\b|\bfall(?:s|ing)? back\b"
    r"|\bfallback\b|\bout of memory\b|\bOOM\b|\bkilled\b|\bretract|\baborted?\b|\bdeprecat|\bunsupported\b|\bnot supported\b"
    r"|\bsub-?optimal\b|\bunhealthy\b|\brefused\b|\bevicted\b"
)
_CONFIG = re.compile(r"LLM engine \(v[^)]{1,60}\) with config:|non-default args:|server_args=ServerArgs\(")

# A pasted prompt that starts a program, or a remark where one would stand.
_COMMAND = re.compile(
    r"\$ (?:[A-Z_]\w{0,40}=\S{1,200} ){0,8}(?:#|(?:\S{0,200}/)?(?:python[\d.]{0,5}|vllm|sglang|torchrun)\b|docker run\b|\S{1,200}\.(?:sh|py)\b)"
)
COMMAND = "command"

SKIP, HTTP, CLUSTER, FULL = range(4)


class Kind:
    """What is known about one kind of line."""

    __slots__ = ("alarm", "candidates", "clock", "cluster", "handler", "life", "probe", "rare", "way")

    def __init__(self, way: int, clock: str = "") -> None:
        self.way, self.clock = way, clock
        self.cluster: Cluster | None = None
        self.alarm = self.handler = ""
        self.candidates: tuple[int, ...] = ()
        self.probe = self.life = self.rare = False


_PLAIN = {clock: Kind(SKIP, clock) for clock in ("", "md", "iso", "kernel")}


def _handler(text: str) -> str:
    if "throughput: " in text and "Running: " in text:
        return "stats"
    if "#running-req: " in text or (
        " batch" in text and "#" in text and ("Decode batch" in text or "Prefill batch" in text)
    ):
        return "batch"
    if "SpecDecoding metrics" in text or "Speculative metrics" in text:
        return "spec"
    if "Iteration(" in text and "elapsed time" in text:
        return "iteration"
    if "KV Transfer metrics:" in text:
        return "transfer"
    if "balancedness=" in text:
        return "balance"
    if "inference_time=" in text and "queue_time=" in text:
        return "tgi"
    if text.startswith("|") and stats.graph_row(text):
        return "graph"
    if _CONFIG.search(text):
        return "config"
    if _COMMAND.match(text):
        return COMMAND
    return ""


class Scan:
    """State of one file. Feed blocks in order, then read the parts: ``series``, ``tallies``, ``warnings`` …"""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._kinds: dict[bytes, Kind] = {}
        self.series: dict[str, EngineSeries] = {}
        self._earlier: dict[str, EngineSeries] = {}
        self.extras = Extras()
        self.tallies = Tallies(matcher)
        self.traces = Traces()
        self.warnings, self.errors = Clusters(), Clusters()
        self.life = Life()
        self.codes: dict[bytes, list[int]] = {}
        self.probe_codes: dict[bytes, list[int]] = {}
        self.flags: dict[str, list[int]] = {}
        self.config: dict[tuple[str, str], tuple[int, str, str]] = {}
        self.lines = self.known_lines = 0
        self.first_time: float | None = None
        self.last_time: float | None = None
        self.clock = ""
        self.serving = False
        self.last_text = ""
        self.last_line = 0
        self._stamp = b""
        self._stamped: float | None = None

    # ── the short way ────────────────────────────────────────────────────────────────────────────────────────
    def feed(self, number: int, block: list[bytes]) -> None:
        """One block of lines, ``number`` being the first one's."""
        kinds = self._kinds
        full = self._full
        opened = self.traces.opened
        codes = self.codes
        latest, clock = b"", ""
        at = number
        for raw in block:
            key = raw.translate(None, _DIGITS)
            kind = kinds.get(key)
            if kind is None:
                # lines that differ only in an identifier are one kind
                ident = raw.find(b"cmpl-")
                if ident >= 0 and (found := _COMPLETION.match(raw, ident)):
                    key = (raw[:ident] + raw[found.end() :]).translate(None, _DIGITS)
                    kind = kinds.get(key)
                elif len(raw) <= MAX_ID_LINE:
                    key = _ID.sub(b"", raw).translate(None, _DIGITS)
                    kind = kinds.get(key)
            if kind is None:
                self._new(raw, key, at)
            elif kind.way == HTTP:
                # the common access line, done here because a call would cost as much as the work
                mark = raw.find(b'" ', raw.find(b" HTTP/")) + 2
                seen = codes.get(raw[mark : mark + 3])
                if seen is None or kind.rare or not self.serving:
                    self._http(raw, at, kind)
                else:
                    seen[0] += 1
            elif opened or kind.way == FULL:
                full(raw, at, kind)
            else:
                if kind.clock:
                    latest, clock = raw, kind.clock
                if kind.cluster is not None:
                    (self.errors if kind.alarm == "error" else self.warnings).again(kind.cluster, at)
            at += 1
        self.lines += len(block)
        self.traces.expire(at)
        if latest:
            self._tick(self._time(latest, clock), clock)
        self._remember(at, block)

    def _remember(self, after: int, block: list[bytes]) -> None:
        for back, raw in enumerate(reversed(block[-200:]), 1):
            if raw.strip():
                self.last_text = raw[:400].decode("utf-8", "replace").strip()
                self.last_line = after - back
                return

    def _time(self, raw: bytes, clock: str) -> float | None:
        found = _MD.search(raw, 0, 300) if clock == "md" else _ISO.search(raw, 0, 300) if clock == "iso" else None
        if found is None:
            return None
        if found[0] != self._stamp:
            self._stamp = found[0]
            self._stamped = clock_of(found[0].decode("ascii", "replace"), clock)
        return self._stamped

    def _tick(self, time: float | None, clock: str) -> None:
        if time is None or clock == "kernel":
            return
        if self.first_time is None:
            self.first_time, self.clock = time, clock
        if clock == self.clock and (self.last_time is None or time > self.last_time):
            self.last_time = time

    def _http(self, raw: bytes, line: int, kind: Kind) -> None:
        at = raw.find(b'" ', raw.find(b" HTTP/"))
        code = raw[at + 2 : at + 5]
        if at < 0 or not code.isdigit():
            return
        table = self.probe_codes if kind.probe else self.codes
        seen = table.get(code)
        if seen is None:
            if len(table) >= 64:
                return
            seen = table[code] = [0, line]
        seen[0] += 1
        if kind.alarm:
            self.flags.setdefault(kind.alarm, [0, line])[0] += 1
        if not kind.probe:
            self.life.phase = "serving"
            self.serving = True

    # ── a kind of line that was not seen before ──────────────────────────────────────────────────────────────
    def _new(self, raw: bytes, key: bytes, at: int) -> None:
        text = raw.rstrip(b"\r").decode("utf-8", "replace")
        line = parse(text)
        if line.place.startswith("text_generation_"):
            self.life.saw_engine("tgi", at)
        kind = self._classify(line)
        if kind.way == HTTP:
            self._http(raw, at, kind)
        else:
            self._full(raw, at, kind, line)
        if len(key) <= MAX_KEY and len(self._kinds) < MAX_KINDS:
            self._kinds[key] = kind

    def _classify(self, line: Line) -> Kind:
        text = line.text
        candidates = self._matcher.candidates(fold(text)) if text else ()
        handler = _handler(text) if text else ""
        http = _HTTP.search(text) if '"' in text else None
        if http and not candidates:
            kind = Kind(HTTP, line.clock)
            kind.probe = kind.rare = bool(_PROBE.match(http[1]))
            flag = _FLAG.match(text, http.end())
            kind.alarm = flag[1] if flag else ""
            kind.rare = kind.rare or bool(flag)
            return kind
        life = tells(text, self.life.phase)
        alarm = self._alarm(line)
        raised = (
            START in text
            or text.lstrip().startswith('File "')
            or (text[:1].isalpha() and ("Error" in text or "Exception" in text))
        )
        if handler or candidates or life or raised:
            kind = Kind(FULL, line.clock)
        elif alarm:
            kind = Kind(CLUSTER, line.clock)
        else:
            return _PLAIN.get(line.clock, _PLAIN[""])
        kind.handler, kind.candidates, kind.life, kind.alarm = handler, candidates, life, alarm
        return kind

    @staticmethod
    def _alarm(line: Line) -> str:
        if line.level in ("error", "critical"):
            return "error"
        if line.level == "warning":
            return "warning"
        if line.level or not line.text or line.text[:1] in " \t|":
            return ""
        found = _ALARM.search(line.text)
        if not found:
            return ""
        word = found[0].lower()
        return "error" if word.startswith(("error", "exception", "killed", "out of memory", "oom")) else "warning"

    # ── the long way ─────────────────────────────────────────────────────────────────────────────────────────
    def _full(self, raw: bytes, at: int, kind: Kind, line: Line | None = None) -> None:
        if line is None:
            line = parse(raw.rstrip(b"\r").decode("utf-8", "replace"))
        text, time, life = line.text, line.time, self.life
        self._tick(time, line.clock)
        process = f"{line.process} {line.rank}".strip()
        if kind.life:
            life.feed(text, at, line.pid, line.process, time)
            self.serving = False
        if kind.handler:
            self._handle(kind.handler, line, at)
        hit_any = False
        for hit in self._matcher.hits(text, kind.candidates, level=line.level):
            self.tallies.add(hit, text, at, process=process, phase=life.phase, time=time)
            hit_any = True
        if kind.candidates and '"' in text and _HTTP.search(text):
            self._http(raw, at, kind)
        key = f"{line.process} {line.pid}"
        in_trace = self.traces.feed(text, at, key, time, level=line.level, phase=life.phase)
        if hit_any or kind.handler not in ("", COMMAND):
            self.known_lines += 1
        elif kind.alarm and not in_trace and not kind.life and text.strip():
            clusters = self.errors if kind.alarm == "error" else self.warnings
            cluster = clusters.add(text, line.level or f"{kind.alarm}?", at, process, life.phase)
            if kind.way == CLUSTER:
                kind.cluster = cluster

    def main_series(self) -> dict[str, EngineSeries]:
        """The statistics of one program: of several that were started one after another, the one that printed most."""
        return max((self.series, self._earlier), key=lambda run: sum(one.n for one in run.values()))

    def _engine(self, name: str, family: str) -> EngineSeries | None:
        found = self.series.get(name)
        if found is None and len(self.series) < MAX_ENGINES:
            found = self.series[name] = EngineSeries(family, name)
        return found

    def _handle(self, handler: str, line: Line, at: int) -> None:
        text = line.text
        if handler == COMMAND:
            self._earlier, self.series = self.main_series(), {}
        elif handler == "stats":
            sample = stats.stats_line(text)
            series = self._engine(sample.engine, sample.family) if sample else None
            if sample and series:
                series.add(sample, at, line.time, line.clock)
                self.life.saw_engine("vllm", at)
                self.life.phase = "serving"
        elif handler == "batch":
            batch = stats.batch_line(text)
            series = self._engine(line.rank or "0", "sglang") if batch else None
            if batch and series:
                series.add_batch(batch, at, line.time, line.clock)
                self.life.saw_engine("sglang", at)
                if batch.decode and self.life.phase != "startup":
                    self.life.phase = "serving"
        elif handler == "spec":
            spec = stats.spec_line(text)
            if spec:
                self.extras.add_spec(spec, at)
        elif handler == "iteration":
            step = stats.iteration_line(text)
            if step:
                self.extras.add_iteration(step, at)
        elif handler == "transfer":
            self.extras.add_transfer(stats.transfer_line(text), at)
        elif handler == "graph":
            row = stats.graph_row(text)
            if row:
                self.extras.add_graph_row(*row, at)
        elif handler == "balance":
            value = stats.number(text.partition("balancedness=")[2].split(",")[0].split(" ")[0])
            if value is not None:
                self.extras.add_balance(value, at)
        elif handler == "tgi":
            self.extras.add_tgi(stats.tgi_line(text), at)
            self.life.saw_engine("tgi", at)
        elif handler == "config":
            self._config(line, at)

    def _config(self, line: Line, at: int) -> None:
        text = line.text
        for mark in ("non-default args:", "server_args=ServerArgs(", ") with config:"):
            if mark in text:
                process = line.process.rstrip("0123456789") or ""
                if len(self.config) < 16:
                    self.config.setdefault((mark, process), (at, text, line.process))
                return
