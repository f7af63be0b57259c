"""``py-spy dump``, ``py-spy top`` and speedscope files: who holds the interpreter lock, and what each process does."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tools.contract import Problem
from tools.part import Part
from tools.profile.cpu import Samples
from tools.profile.model import Profile

MAX_JSON = 256 << 20
_PROCESS = re.compile(r"^\s*Process (\d+): (.*)$")
_THREAD = re.compile(r'^\s*Thread (0x[0-9A-Fa-f]+|\d+)?\s*\(([a-z+ ]+)\)(?::\s*"?(.*?)"?)?\s*$')
_FRAME = re.compile(r"^\s{2,}(\S.*? \(.+\))\s*$")
_FAULT = re.compile(r'^\s+File "([^"]+)", line (\d+) in (.+)$')
_FAULT_THREAD = re.compile(r"^(Current thread|Thread) (0x[0-9a-f]+)(?: \[?(.*?)\]?)? \(most recent call first\):")
_TOP_HEAD = re.compile(r"GIL:\s*([\d.]+)%,\s*Active:\s*([\d.]+)%,\s*Threads:\s*(\d+)")
_TOP_ROW = re.compile(r"^\s*([\d.]+)%\s+([\d.]+)%\s+([\d.]+)s\s+([\d.]+)s\s+(\S.*)$")
_TOP_TITLE = re.compile(r"Collecting samples from '(.*?)'(?: \(python v?([\d.]+)\))?", re.I)


def read_dump(part: Part) -> Profile:
    """One snapshot of all threads. A share of threads is no share of time; the states are what counts."""
    profile = Profile(ref=part.name, kind="pyspy-dump")
    samples = Samples()
    title, name, state = "", "", ""
    frames: list[str] = []

    def close() -> None:
        nonlocal frames
        if state and frames:
            share = samples.add(title, frames, 1.0, idle="idle" in state)
            process = samples.process(title)
            what = f"{name or 'thread'} ({state}): {frames[0]}" + (f" [{share}]" if share and share != "wait" else "")
            process.threads.append(what)
            if "gil" in state:
                process.gil_holder = f"{process.role or title or 'process'}/{name or 'thread'}: {frames[0]}"
        frames = []

    for number, line in part.lines():
        process = _PROCESS.match(line)
        thread = None if process else _THREAD.match(line)
        fault = None if process or thread else _FAULT_THREAD.match(line)
        if process or thread or fault:
            close()
            state = ""
        if process:
            title = process[2].strip()
        elif thread:
            state, name = thread[2].strip(), (thread[3] or "").strip()
            profile.lines.setdefault("cpu", number)
        elif fault:
            state, name = "unknown", fault[3] or fault[2]
            profile.lines.setdefault("cpu", number)
        elif state:
            frame, file = _FRAME.match(line), _FAULT.match(line)
            if file:
                frames.append(f"{file[3].strip()} ({file[1]}:{file[2]})")
            elif frame and len(frames) < 500:
                frames.append(frame[1])
    close()
    samples.into(profile)
    if not profile.cpu:
        profile.problems.append(
            Problem(ref=part.name, what="no thread stacks in it", do="py-spy dump --pid PID", severity="error")
        )
    return profile


def read_top(part: Part) -> Profile:
    """The screen of ``py-spy top``: own time per function, and the share of time the lock was held."""
    profile = Profile(ref=part.name, kind="pyspy-top")
    samples = Samples()
    title = ""
    gil: float | None = None
    for number, line in part.lines(20_000):
        named = _TOP_TITLE.search(line)
        title = named[1] if named else title
        head = _TOP_HEAD.search(line)
        if head:
            gil = float(head[1])
        row = _TOP_ROW.match(line)
        if row:
            profile.lines.setdefault("cpu", number)
            frame = re.sub(r"^(\S+?)\s+\(", r"\1 (", row[5].strip())
            samples.add(title, [frame], float(row[3]) or float(row[1]) / 100.0)
    if gil is not None:
        samples.process(title).gil_pct = gil
    samples.into(profile)
    return profile


def read_speedscope(part: Part) -> Profile:
    """Speedscope JSON, sampled or evented. Frames that are opened and never closed end with the profile."""
    profile = Profile(ref=part.name, kind="speedscope")
    profile.lines["cpu"] = 1
    data = _load(part, profile)
    if data is None:
        return profile
    frames = [_frame(f) for f in _list(_dict(data.get("shared")).get("frames"))]
    samples = Samples()
    for item in _list(data.get("profiles")):
        body = _dict(item)
        title = str(body.get("name") or "")
        kind = body.get("type")
        if kind == "sampled":
            _sampled(body, frames, title, samples)
        elif kind == "evented":
            left = _evented(body, frames, title, samples)
            if left:
                what = f"profile {title or '?'}: {left} frames are opened and never closed; they end with the profile"
                profile.problems.append(Problem(ref=part.name, what=what, severity="note"))
        else:
            profile.problems.append(Problem(ref=part.name, what=f"a profile of unknown type {str(kind)[:40]!r}"))
    samples.into(profile)
    if not profile.cpu and not profile.problems:
        profile.problems.append(Problem(ref=part.name, what="a speedscope file without samples", severity="error"))
    return profile


def _load(part: Part, profile: Profile) -> dict[str, Any] | None:
    raw = part.head(MAX_JSON + 1)
    if len(raw) > MAX_JSON:
        what = f"larger than {MAX_JSON >> 20} MiB"
        profile.problems.append(Problem(ref=part.name, what=what, do="record for a shorter time", severity="error"))
        return None
    try:
        data = msgspec.json.decode(raw.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        what = f"not whole JSON ({str(error)[:80]})"
        profile.problems.append(Problem(ref=part.name, what=what, do="copy the file again", severity="error"))
        return None
    return data if isinstance(data, dict) else {}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _frame(raw: Any) -> str:
    frame = _dict(raw)
    name = str(frame.get("name") or "?")
    file = frame.get("file")
    return f"{name} ({file})" if isinstance(file, str) and file else name


def _sampled(body: dict[str, Any], frames: list[str], title: str, samples: Samples) -> None:
    weights = _list(body.get("weights"))
    for index, stack in enumerate(_list(body.get("samples"))):
        names = [frames[i] for i in _list(stack) if type(i) is int and 0 <= i < len(frames)]
        weight = weights[index] if index < len(weights) else 1.0
        if isinstance(weight, (int, float)):
            samples.add(title, names[::-1], float(weight))


def _evented(body: dict[str, Any], frames: list[str], title: str, samples: Samples) -> int:
    stack: list[int] = []
    last: float | None = None
    for raw in [*_list(body.get("events")), {"at": body.get("endValue"), "type": "end"}]:
        event = _dict(raw)
        at, index = event.get("at"), event.get("frame")
        if not isinstance(at, (int, float)):
            continue
        if last is not None and at > last and stack:
            samples.add(title, [frames[i] for i in reversed(stack)], float(at - last))
        last = float(at)
        if event.get("type") == "O" and type(index) is int and 0 <= index < len(frames):
            stack.append(index)
        elif event.get("type") == "C" and index in stack:
            del stack[len(stack) - 1 - stack[::-1].index(index)]
    return len(stack)
