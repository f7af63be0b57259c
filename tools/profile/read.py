"""Profiles of any tool → readings. ``summarize`` and ``diff`` are the same for Python callers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.contract import Context, Problem, Reading, ReadResult, Source
from tools.part import Part
from tools.profile.diff import Diff, api_changes, compare
from tools.profile.facts import readings
from tools.profile.model import Profile, Progress

_BEFORE = re.compile(r"(?:^|[^a-z])(?:before|old|base(?:line)?|good|fast|prev(?:ious)?|a|v?1|eager)(?:[^a-z]|$)", re.I)
_AFTER = re.compile(r"(?:^|[^a-z])(?:after|new|candidate|bad|slow|next|current|b|v?2|graph)(?:[^a-z]|$)", re.I)


def read(parts: list[Part], context: Context) -> ReadResult:
    """Every part; then what only several profiles together can say: skew between ranks, before against after."""
    result = ReadResult()
    profiles: list[Profile] = []
    for part in parts:
        profiles += profiles_of(part)
    from tools.profile.nsys_stats import merge

    stats = merge([p for p in profiles if p.kind == "nsys-stats"])
    profiles = [p for p in profiles if p.kind != "nsys-stats"] + stats
    for profile in profiles:
        result.problems += profile.problems
        result.readings += readings(profile)
    result.readings += _ranks(profiles)
    result.readings += _pair(profiles)
    return result


def profiles_of(part: Part, progress: Progress | None = None) -> list[Profile]:
    """All profiles of one part; several when a file holds the same report twice. Never raises on content."""
    try:
        return _by_form(part, progress)
    except (MemoryError, RecursionError) as error:
        problem = Problem(
            ref=part.name, what=f"too large or too deep to read ({type(error).__name__})", severity="error"
        )
        return [Profile(ref=part.name, kind="unreadable", problems=[problem])]


def _by_form(part: Part, progress: Progress | None) -> list[Profile]:
    raw = part.head(65536)
    head = raw.decode(part.encoding().removesuffix("-le").removesuffix("-be"), "replace").lstrip("\ufeff \t\r\n")
    if head.startswith("SQLite format 3"):
        from tools.profile.nsys_sqlite import read_sqlite

        return [read_sqlite(part, progress)]
    if head.startswith(("{", "[")):
        return _json(part, head, progress)
    refusal = _refusal(part, raw)
    if refusal:
        return [Profile(ref=part.name, kind="unreadable", problems=[refusal])]
    return _text(part, head)


def _json(part: Part, head: str, progress: Progress | None) -> list[Profile]:
    if "speedscope" in head or ('"shared"' in head and '"frames"' in head):
        from tools.profile.pyspy import read_speedscope

        return [read_speedscope(part)]
    if re.search(r'"Time \(%\)"|"Total Time \(\w+\)"|"Total \(\w+\)"|"Start \(\w+\)"', head):
        from tools.profile.nsys_stats import read_stats

        return read_stats(part)
    if re.search(r'^\{"(?:Type|data|globalTid|CudaEvent|NvtxEvent)"', head):
        what = "an nsys export in JSON lines, which holds raw events"
        return [_none(part, what, "export with nsys export --type sqlite, or nsys stats --format csv")]
    from tools.profile.trace import read_trace

    return [read_trace(part, progress)]


def _text(part: Part, head: str) -> list[Profile]:
    from tools.profile import ncu, pyspy, stacks, tuning
    from tools.profile.key_averages import read_key_averages
    from tools.profile.nsys_stats import read_stats
    from tools.profile.sniff import _DUMP, _KEYS, _NCU, _PERF_REPORT, _PERF_SCRIPT, _STACK, _TOP, _TOP_ROWS, _TUNING

    forms: list[tuple[re.Pattern[str], Callable[[Part], Profile]]] = [
        (re.compile(r"<svg"), stacks.read_svg),
        (_NCU, ncu.read_ncu),
        (_TUNING, tuning.read_tuning),
        (_KEYS, read_key_averages),
        (_TOP, pyspy.read_top),
        (_TOP_ROWS, pyspy.read_top),
        (_PERF_REPORT, stacks.read_perf_report),
        (_DUMP, pyspy.read_dump),
        (re.compile(r"\(most recent call first\):"), pyspy.read_dump),
        (_PERF_SCRIPT, stacks.read_perf_script),
    ]
    for pattern, reader in forms:
        if pattern.search(head):
            return [reader(part)]
    found = read_stats(part)
    if found:
        return found
    if _STACK.search(head):
        return [stacks.read_collapsed(part)]
    what = "no table, trace or stacks that can be read"
    return [_none(part, what, "give nsys stats output, an nsys .sqlite, a torch trace, py-spy or perf text")]


def _none(part: Part, what: str, do: str) -> Profile:
    return Profile(
        ref=part.name, kind="unreadable", problems=[Problem(ref=part.name, what=what, do=do, severity="error")]
    )


def _refusal(part: Part, raw: bytes) -> Problem | None:
    if not raw:
        return Problem(ref=part.name, what="empty, or not readable", do="export it again", severity="error")
    low = part.name.lower()
    if low.endswith((".nsys-rep", ".qdrep", ".qdstrm")):
        do = "nsys export --type sqlite FILE, or nsys stats --format csv FILE"
        return Problem(ref=part.name, what="nsys's own report format, which only nsys reads", do=do, severity="error")
    if low.endswith(".ncu-rep"):
        return Problem(
            ref=part.name, what="ncu's own format", do="ncu --import FILE --csv --page details", severity="error"
        )
    if raw.startswith((b"PERFILE2", b"PERFFILE")):
        return Problem(
            ref=part.name,
            what="perf.data, which only perf reads",
            do="perf report --stdio, or perf script",
            severity="error",
        )
    if part.is_binary():
        return Problem(
            ref=part.name, what="a binary file of no known profile format", do="export it as text", severity="error"
        )
    return None


def summarize(path: str | Path, progress: Progress | None = None) -> Profile:
    """The first profile of a file. ``progress(what, fraction)`` is called once a second after the first second.

    The file is opened read-only. Raises ``FileNotFoundError`` when there is none; bad content is in ``problems``.
    """
    where = Path(path)
    if not where.is_file():
        raise FileNotFoundError(f"no such file: {where}")
    return profiles_of(Part(name=where.name, path=where), progress)[0]


def diff(before: str | Path | Profile, after: str | Path | Profile) -> Diff:
    """Top changes from one profile to another, per step where both name their steps."""
    one, two = (p if isinstance(p, Profile) else summarize(p) for p in (before, after))
    return compare(one, two)


def _ranks(profiles: list[Profile]) -> list[Reading]:
    """Compute time per rank, over traces that each hold one rank."""
    rows = [(p.rank, sum(s.compute_sum for s in p.spans), p.ref) for p in profiles if p.rank and p.spans]
    if len({rank for rank, _, _ in rows}) < 2:
        return []
    mean = sum(value for _, value, _ in rows) / len(rows)
    slow = max(rows, key=lambda r: r[1])
    if mean <= 0:
        return []
    source = Source(kind="file", ref=slow[2])
    method = f"most over mean compute time (kernels that do not communicate) of {len(rows)} ranks; most: rank {slow[0]}"
    count = Reading(fact="profile.rank_count", value=len(rows), source=source, method="traces with a rank of their own")
    return [Reading(fact="profile.rank_skew", value=round(slow[1] / mean, 4), source=source, method=method), count]


def _pair(profiles: list[Profile]) -> list[Reading]:
    """Two GPU profiles whose names say which came first."""
    gpu = [p for p in profiles if p.kernels]
    if len(gpu) != 2 or (gpu[0].rank and gpu[1].rank and gpu[0].rank != gpu[1].rank):
        return []
    first = [p for p in gpu if _BEFORE.search(p.ref)]
    second = [p for p in gpu if _AFTER.search(p.ref)]
    if "#" in gpu[1].ref and gpu[1].ref.split("#")[0] == gpu[0].ref:
        first, second = [gpu[0]], [gpu[1]]
    if len(first) != 1 or len(second) != 1 or first[0] is second[0]:
        return []
    found = compare(first[0], second[0])
    source = Source(kind="file", ref=second[0].ref.split("#")[0])
    text = f"{second[0].ref} against {first[0].ref}, per {found.unit}"
    values: list[tuple[str, Any]] = [
        ("kernel_time_ratio", round(found.time_ratio, 4) if found.time_ratio is not None else None),
        ("top_changes", [c.line() for c in found.kernels[:6] if c.gain]),
        ("api_changes", api_changes(first[0], second[0])),
    ]
    return [
        Reading(fact=f"profile.diff.{name}", value=value, source=source, method=text, caveats=tuple(found.caveats))
        for name, value in values
        if value is not None and value != []
    ]
