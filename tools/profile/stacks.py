"""Collapsed stacks, ``perf script``, ``perf report``, flame-graph SVG: text that carries weighted stacks."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from tools.contract import Problem
from tools.part import Part
from tools.profile.cpu import Samples
from tools.profile.model import Profile

_COLLAPSED = re.compile(r"^(\S.*?)[ \t]+(\d+(?:\.\d+)?)$")
_PROCESS = re.compile(r'^process (\d+):"?(.*?)"?$', re.I)
_THREAD = re.compile(r"^thread[ (]", re.I)
_SCRIPT = re.compile(r"^(\S.{0,60}?)\s+(\d+)(?:/(\d+))?\s+(?:\[\d+\]\s+)?(\d+\.\d+):\s+(?:\d+\s+)?(\S+?):")
_FRAME = re.compile(r"^\s+([0-9a-fA-F]+) (.*?)(?: \((.*)\))?$")
_REPORT_EVENT = re.compile(r"^#\s*Samples:\s*([\d.]+[KMG]?)\s+of event[s]? '([^']+)'")
_REPORT_HEAD = re.compile(r"^#\s*(?:Children|Overhead)\b")
_TITLE = re.compile(r"<title>([^<]{1,2000}?) \(([\d,.]+) samples?, [\d.]+%\)</title>\s*<rect\b([^>]*)>")
_CPU_EVENT = re.compile(r"cycles|cpu-clock|task-clock|instructions", re.I)


def read_collapsed(part: Part) -> Profile:
    """``a;b;c 12`` lines (py-spy ``-f raw``, FlameGraph). Lines of another form are counted, not fatal."""
    profile = Profile(ref=part.name, kind="stacks")
    samples = Samples()
    bad = good = 0
    for number, line in part.lines():
        text = line.strip()
        if not text or text.startswith(("#", "//")):
            continue
        found = _COLLAPSED.match(text)
        if not found:
            bad += 1
            continue
        good += 1
        profile.lines.setdefault("cpu", number)
        frames = [frame.strip() for frame in found[1].split(";")]
        title = ""
        while frames and (_PROCESS.match(frames[0]) or _THREAD.match(frames[0])):
            process = _PROCESS.match(frames[0])
            if process:
                title = process[2] or process[1]
            frames.pop(0)
        samples.add(title, frames[::-1], float(found[2]))
    samples.into(profile)
    if bad:
        what = f"{bad} of {bad + good} lines are no stacks and are left out"
        profile.problems.append(Problem(ref=part.name, what=what, severity="note" if good else "error"))
    return profile


def read_perf_script(part: Part) -> Profile:
    """``perf script``: a header line a sample, then frames from the leaf up."""
    profile = Profile(ref=part.name, kind="stacks")
    samples = Samples()
    title, stack, events = "", [], set()
    for number, line in part.lines():
        found = _FRAME.match(line) if line[:1] in " \t" else None
        if found:
            name = found[2] or "[unknown]"
            stack.append(f"{re.sub(r'[+]0x[0-9a-f]+$', '', name)} ({found[3] or '?'})")
            continue
        header = _SCRIPT.match(line)
        if header or not line.strip():
            _flush(samples, title, stack)
            stack = []
        if header:
            profile.lines.setdefault("cpu", number)
            title = header[1]
            events.add(header[5])
    _flush(samples, title, stack)
    samples.into(profile)
    _event_problem(profile, events)
    return profile


def _flush(samples: Samples, title: str, stack: list[str]) -> None:
    if stack:
        samples.add(title, stack, 1.0, idle=title.startswith("swapper"))


def _event_problem(profile: Profile, events: set[str]) -> None:
    if events and not any(_CPU_EVENT.search(event) for event in events):
        what = f"the samples are of {', '.join(sorted(events)[:3])}: they count those events and not CPU time"
        profile.problems.append(
            Problem(ref=profile.ref, what=what, do="record with perf record -e cycles or cpu-clock")
        )


def read_perf_report(part: Part) -> Profile:
    """``perf report --stdio``: one table an event; percentages are of that event. Only CPU events are used."""
    profile = Profile(ref=part.name, kind="perf-report")
    samples = Samples()
    event = count = ""
    columns: list[str] = []
    others: set[str] = set()
    used = ""
    for number, line in part.lines():
        found = _REPORT_EVENT.match(line)
        if found:
            count, event, columns = found[1], found[2], []
            continue
        if _REPORT_HEAD.match(line):
            columns = [c.strip().lower() for c in re.split(r"\s{2,}", line.lstrip("# ").strip())]
            continue
        if line.startswith("#") or not line.strip() or not columns:
            continue
        if event and not _CPU_EVENT.search(event):
            others.add(event)
            continue
        used = used or event or "?"
        if event and event != used:
            continue
        row = _report_row(line, columns)
        if row is not None:
            profile.lines.setdefault("cpu", number)
            title, frame, percent = row
            samples.add(title, [frame], percent, idle=title.startswith("swapper"))
    samples.into(profile, whole=100.0)
    if others and not used:
        _event_problem(profile, others)
    elif count:
        for process in profile.cpu:
            process.threads.append(f"{count} samples of {used}")
    return profile


def _report_row(line: str, columns: list[str]) -> tuple[str, str, float] | None:
    cells = re.split(r"\s{2,}", line.strip())
    percents = [c for c in cells if re.fullmatch(r"\d+(?:\.\d+)?%", c)]
    if not percents or len(cells) < 2:
        return None
    value = float(percents[-1 if columns[0] == "children" and len(percents) > 1 else 0].rstrip("%"))
    rest = cells[len(percents) :]
    names = [c for c in columns if c not in ("children", "self", "overhead", "samples")]
    got = dict(zip(names, rest, strict=False))
    symbol = re.sub(r"^\[[.kguHv]\]\s*", "", got.get("symbol", rest[-1] if rest else ""))
    return got.get("command", ""), f"{symbol} ({got.get('shared object', '?')})", value


def read_svg(part: Part) -> Profile:
    """A flame graph drawn by py-spy or inferno: widths are samples, nesting is the x axis."""
    profile = Profile(ref=part.name, kind="stacks")
    samples = Samples()
    text = part.text(32 << 20)
    boxes = sorted(_boxes(text), key=lambda b: (b[0], -b[1], b[2]))
    stack: list[tuple[float, float, str, list[float]]] = []

    def pop() -> None:
        _, width, _, inner = stack[-1]
        own = width - inner[0]
        names = [name for _, _, name, _ in stack[::-1] if name != "all"]
        stack.pop()
        if stack:
            stack[-1][3][0] += width
        if own > 0 and names:
            root = _PROCESS.match(names[-1])
            samples.add(root[2] if root else "", names[:-1] if root else names, own)

    for x, width, _, name in boxes:
        while stack and stack[-1][0] + stack[-1][1] <= x:
            pop()
        stack.append((x, width, name, [0.0]))
    while stack:
        pop()
    samples.into(profile)
    profile.lines["cpu"] = 1
    if not profile.cpu:
        profile.problems.append(Problem(ref=part.name, what="an SVG without flame-graph frames", severity="error"))
    return profile


def _boxes(text: str) -> Iterator[tuple[float, float, float, str]]:
    for found in _TITLE.finditer(text):
        got = dict(re.findall(r'([\w:]+)="([^"]*)"', found[3]))
        try:
            x, width, y = float(got["fg:x"]), float(got["fg:w"]), float(got.get("y", "0").rstrip("%"))
        except (KeyError, ValueError):
            continue
        yield x, width, y, html.unescape(found[1])
