"""Folders, files, standard input → parts; parts → readings. Bad input costs one line, never the rest."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from msgspec import structs

from tools.contract import Context, Problem, Reading, ReadResult, Source
from tools.intake.attachments import missing
from tools.intake.registry import classify, reader
from tools.part import Part

_SKIP = {".git", "__pycache__", "node_modules", ".DS_Store"}
MAX_FILES = 400
MAX_DEPTH_NESTED = 3


def parts_of(paths: list[Path]) -> tuple[list[Part], list[Problem]]:
    """Files of the given files and folders, named relative to what was given. Missing paths become problems."""
    parts: list[Part] = []
    problems: list[Problem] = []
    for path in paths:
        if path.is_dir():
            found = sorted(p for p in path.rglob("*") if p.is_file() and not _SKIP & set(p.relative_to(path).parts))
            if not found:
                problems.append(Problem(ref=str(path), what="folder without files", do="give files", severity="error"))
            if len(found) > MAX_FILES:
                what = f"{len(found)} files, only the first {MAX_FILES} are read"
                problems.append(Problem(ref=str(path), what=what, do="give a smaller folder"))
            parts.extend(Part(name=p.relative_to(path).as_posix(), path=p) for p in found[:MAX_FILES])
        elif path.is_file():
            parts.append(Part(name=path.name, path=path))
        elif path.exists():
            problems.append(
                Problem(ref=str(path), what="not a regular file", do="give a file or folder", severity="error")
            )
        else:
            problems.append(
                Problem(ref=str(path), what="no such file or folder", do="check the path", severity="error")
            )
    return _distinct(parts), problems


def _distinct(parts: list[Part]) -> list[Part]:
    """Give files of the same name from different folders different names, also where ``x#2`` is a file's own name."""
    taken = {part.name for part in parts}
    seen: dict[str, int] = {}
    for part in parts:
        name = part.name
        count = seen.get(name, 0) + 1
        if count > 1:
            while f"{name}#{count}" in taken:
                count += 1
            part.name = f"{name}#{count}"
            taken.add(part.name)
        seen[name] = count
    return parts


def read_all(parts: list[Part], context: Context) -> tuple[list[Reading], list[Problem], dict[str, str]]:
    """Every part through its reader; nested parts (fenced blocks) are routed in turn.

    Returns readings, problems, and which kind each part was taken for.
    """
    readings: list[Reading] = []
    problems: list[Problem] = []
    kinds: dict[str, str] = {}
    given, both = list(parts), list[Part]()
    todo, depth = parts, 0
    while todo and depth <= MAX_DEPTH_NESTED:
        groups: dict[str, list[Part]] = {}
        for part in todo:
            kind = part.kind or _kind(part, problems)
            if not kind:
                continue
            part.kind = kind
            kinds[part.name] = kind
            groups.setdefault(kind, []).append(part)
        todo = []
        worded = [p for p in groups.get("config", []) if _tells(p)]
        if worded:
            groups.setdefault("report", []).extend(worded)
            both.extend(worded)
        mixed = [p for p in groups.get("metrics", []) if _GPU_SERIES in p.head(262144)]
        if mixed:
            groups.setdefault("gpu", []).extend(mixed)
        for kind in sorted(groups, key=lambda k: (k in _LATE, k)):
            known = _with_known(context, readings) if kind in _LATE else context
            result = _run(kind, groups[kind], known)
            problems.extend(_cut(kind, groups[kind]))
            readings.extend(structs.replace(r, via=kind) for r in result.readings)
            problems.extend(result.problems)
            todo.extend(result.nested)
        depth += 1
    if any(kind == "report" for kind in kinds.values()):
        from tools.report.resemble import readings as likeness

        told = [p for p in given if p.kind in _TOLD or p in both]
        readings.extend(structs.replace(r, via="report") for r in likeness(told))
        pointed, gone = missing([p for p in given if p.kind == "report" or p in both], given)
        readings.extend(structs.replace(r, via="report") for r in pointed)
        problems.extend(gone)
    return readings, problems, kinds


# One exporter page may carry the engine's and the GPU's series: both readers look at it.
_GPU_SERIES = b"\nDCGM_FI_"
_FELT = re.compile(
    r"\b(?:TTFT|TPOT|ITL|latency|slow(?:er)?|tok(?:ens)?/s|p9[059]|throughput|waiting|queued|hangs?|crash(?:es|ed)?|OOM)\b|排队|变慢|卡住|崩溃",
    re.I,
)
# Somebody writes in sentences, whatever the complaint is called.
_SENTENCE = re.compile(r"(?:^|[.!?] )[A-Z][a-z']*(?:,? [a-z][a-z']*){4,12}[^.!?\n]{0,80}[.!?](?:\s|$)")
_SETTING = re.compile(r"^\s*(?:#|-{1,2}\w|\w+=|[\w.]+:\s*\S+$)|^\s*(?:vllm|python3?|docker|sglang)\s.*--\S+\s*\\?$")
_LATE = ("config",)
# Not the launch command: its flags resemble the card of whatever they belong to.
_TOLD = ("report", "log", "bench", "gpu", "host", "profile")


def _tells(part: Part) -> bool:
    """Whether a launch command came with words about what is felt: then both readers look at the text."""
    if part.size() > 65536 or part.name.endswith((".json", ".yaml", ".yml", ".toml", ".env")):
        return False
    lines = [line for _, line in part.lines(limit=400) if not _SETTING.search(line)]
    return any(_FELT.search(line) or _SENTENCE.search(line) for line in lines)


def _with_known(context: Context, readings: list[Reading]) -> Context:
    """The configuration reader needs what the others learnt: version, device and GPU decide defaults and verdicts."""
    from tools.config.world import options_from

    first: dict[str, Any] = {}
    for reading in readings:
        if reading.status == "ok":
            first.setdefault(reading.fact, reading.value)
    options = {**options_from(first.get), **context.options}
    return structs.replace(context, options=options)


def _kind(part: Part, problems: list[Problem]) -> str:
    try:
        kind = classify(part)
    except OSError as error:
        problems.append(
            Problem(
                ref=part.name, what=f"cannot be opened ({error.strerror})", do="check permissions", severity="error"
            )
        )
        return ""
    if kind == "empty":
        what = part.cut or "empty file"
        problems.append(Problem(ref=part.name, what=what, do="record or copy it again", severity="error"))
        return ""
    if kind == "binary":
        what = "binary data of no known kind"
        problems.append(
            Problem(ref=part.name, what=what, do="export it as text, CSV, JSON or .sqlite", severity="error")
        )
        return ""
    if kind == "report" and part.head(512).lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")):
        what = "an HTML page (a proxy's error page?), read as plain words"
        do = "for metrics scrape the engine's own /metrics; of a web page give its text"
        problems.append(Problem(ref=part.name, what=what, do=do))
    return kind


def _cut(kind: str, parts: list[Part]) -> list[Problem]:
    """Inputs whose end could not be read. Metrics and log readers name their own."""
    do = "kept what came before; copy it again"
    return [Problem(ref=p.name, what=p.cut, do=do) for p in parts if p.cut and kind not in ("metrics", "log")]


def _run(kind: str, parts: list[Part], context: Context) -> ReadResult:
    """One reader over its parts. A reader that breaks is our bug: it is named, and the others go on."""
    try:
        return reader(kind)(parts, context)
    except Exception as error:
        names = ", ".join(p.name for p in parts[:4])
        what = f"the {kind} reader failed ({type(error).__name__}: {str(error)[:120]})"
        reading = Reading(
            fact="tool.failed", value=kind, source=Source(kind="file", ref=parts[0].name), method=what, status="error"
        )
        return ReadResult(
            readings=[reading], problems=[Problem(ref=names, what=what, do="please report this", severity="error")]
        )
