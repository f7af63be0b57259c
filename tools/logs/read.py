"""Reader of logs: server (vLLM, SGLang, TGI), host (kernel, kubelet) and proxy lines in any mix, of any size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from msgspec import structs

from knowledge.loader import load
from knowledge.schema import Knowledge
from tools.contract import Context, Problem, Reading, ReadResult, Source
from tools.logs import ranks
from tools.logs.blocks import Blocks, is_text
from tools.logs.clusters import Clusters
from tools.logs.scan import Scan
from tools.logs.series_facts import SeriesFacts
from tools.logs.signatures import Matcher
from tools.part import Part

_OOM = re.compile(r"out ?of ?memory|OutOfMemory|OOM\b|HIP out of memory", re.IGNORECASE)
SPAN = 300
MAX_PROSE_LINES = 400
_MATCHERS: dict[str, Matcher] = {}  # the one in use, by knowledge version: building it costs more than a short log


@lru_cache(maxsize=1)
def _shipped() -> Knowledge:
    """The shipped knowledge, looked for once in a process: every file of a folder asks for it."""
    return load()


def read(parts: list[Part], context: Context) -> ReadResult:
    """Read each part as one log. Rotated pieces of one log stay separate parts, each with its own readings."""
    result = ReadResult(readings=[], problems=[], nested=[])
    known = _shipped()
    matcher = _MATCHERS.get(known.version)
    if matcher is None:
        _MATCHERS.clear()
        matcher = _MATCHERS[known.version] = Matcher(known)
    for part in parts:
        read_one(part, matcher, result)
    for name in matcher.problems:
        result.problems.append(Problem(ref="knowledge", what=f"signature cannot be used: {name}", do="correct it"))
    return result


def read_one(part: Part, matcher: Matcher, result: ReadResult) -> None:
    """Append one part's readings and problems to ``result``."""
    if not is_text(part):
        what = "binary data, not a log"
        result.problems.append(Problem(ref=part.name, what=what, do="give the log as text or .gz", severity="error"))
        return
    blocks = Blocks(part)
    scan = Scan(matcher)
    for number, lines in blocks:
        scan.feed(number, lines)
    result.readings.extend(readings_of(scan, part.name))
    result.problems.extend(_config(scan, part.name, result.readings))
    result.problems.extend(_problems(scan, blocks, part.name))
    if 0 < scan.lines <= MAX_PROSE_LINES and _is_unknown(scan) and not part.hint.endswith("+prose"):
        body = part.head(256 << 10)
        nested = Part(name=f"{part.name}#text", data=body, kind="report", parent=part.name, hint=f"{part.hint}+prose")
        result.nested.append(nested)


def _is_unknown(scan: Scan) -> bool:
    """Whether nothing at all in the file was of a known kind."""
    known = scan.known_lines or scan.codes or scan.traces.count or scan.warnings.total or scan.errors.total
    return not known and not scan.life.starts


def _problems(scan: Scan, blocks: Blocks, ref: str) -> Iterator[Problem]:
    if blocks.problem:
        yield Problem(ref=ref, what=f"{blocks.problem}; {scan.lines} lines were read", do="copy the file again")
    if blocks.cut_lines:
        yield Problem(ref=ref, what=f"{blocks.cut_lines} lines longer than 64 KiB were cut", severity="note")
    if not scan.lines:
        yield Problem(ref=ref, what="no lines", do="record the log again", severity="error")
    elif _is_unknown(scan):
        what = f"none of {scan.lines} lines is known and none is a warning, an error or an access line"
        what += "; read as prose instead" if scan.lines <= MAX_PROSE_LINES else ""
        yield Problem(ref=ref, what=what, do="give the server's log from its start, if there is one", severity="note")
    for name, clusters in (("warning", scan.warnings), ("error", scan.errors)):
        if clusters.overflow:
            what = f"{clusters.overflow} {name} lines beyond {len(clusters)} kinds were counted without their text"
            yield Problem(ref=ref, what=what, severity="note")


def _clusters(clusters: Clusters, fact: str, ref: str) -> Iterator[Reading]:
    most = clusters.most()
    if not most:
        return
    value = [f"{c.count}x {c.text} (line {c.first_line}{', ' + c.phase if c.phase else ''})" for c in most]
    first = min(most, key=lambda c: c.first_line)
    how = f"{clusters.total} lines of {len(clusters)} kinds that no signature knows, grouped by template"
    how += f"; the {len(most)} most frequent" if len(clusters) > len(most) else ""
    guessed = any(c.level.endswith("?") for c in most)
    yield Reading(
        fact=fact,
        value=value,
        source=Source(kind="file", ref=ref, line=first.first_line, span=first.text[:SPAN]),
        method=how,
        caveats=("some lines have no printed level and were taken by their words",) if guessed else (),
    )


def readings_of(scan: Scan, ref: str) -> Iterator[Reading]:
    """All readings of a finished scan."""
    life, origin = scan.life, scan.first_time

    def make(fact: str, value: Any, line: int, how: str, *caveats: str, span: str = "") -> Reading:
        source = Source(kind="file", ref=ref, line=line, span=span)
        return Reading(fact=fact, value=value, source=source, method=how, caveats=caveats)

    yield make("log.lines", scan.lines, 1, "lines read")
    if origin is not None and scan.last_time is not None and scan.last_time > origin:
        clock = "Unix time" if scan.clock == "iso" else "a clock without year or zone"
        yield make("log.duration_s", round(scan.last_time - origin, 3), 1, f"first to last time stamp, {clock}")
    if scan.last_text:
        yield make("log.last_line", scan.last_text[:SPAN], scan.last_line, "last line that is not blank")
    last_running: float | None = None
    engines = scan.main_series()
    for series in engines.values():
        yield from SeriesFacts(series, ref, origin).readings(life.version)
        last_running = max(last_running or 0.0, series.last.get("running", 0.0))
        if series.family.startswith("vllm-"):
            word = "Pending and Swapped" if series.family == "vllm-v0" else "Waiting"
            how = f"the statistics lines print {word}"
            yield make("engine.generation", series.family[-2:].upper(), series.first_line, how)
    notice = scan.tallies.last_line("log.shm_broadcast_stall")
    if notice and any(series.last_line > notice for series in engines.values()):
        # Of several engines the one that stays silent with work counts.
        busy = [series for series in engines.values() if series.last.get("running", 0.0) > 0] or list(engines.values())
        after = min(series.last_tokens_line for series in busy)
        how = f"the last such notice stands in line {notice}, generated tokens are last counted in line {after}"
        yield make("log.tokens_after_stall_notice", after > notice, max(after, notice), how)
    yield from ranks.readings(engines.values(), ref)
    yield from scan.extras.readings(ref)
    yield from scan.tallies.readings(ref, life.engine, life.version, origin)
    if not life.engine:
        told = {name.partition(".")[0] for name in scan.tallies.signatures()} & {"vllm", "sglang"}
        if len(told) == 1:
            how = "only this engine prints the known lines of this log"
            yield make("engine.name", next(iter(told)), 0, how, "told by the wording alone")
    bound = scan.tallies.lower_bound(life.engine or "vllm")
    if bound:
        how = "newest release that a line of this log needs at least"
        yield make("log.engine_version_at_least", bound[0], bound[1], how)
    yield from life.readings(
        ref,
        lines=scan.lines,
        last_running=last_running,
        trace_line=scan.traces.last.line if scan.traces.last else 0,
    )
    yield from _http(scan, make)
    yield from _exceptions(scan, make)
    yield from _spread(scan, make)
    yield from _clusters(scan.warnings, "log.warnings", ref)
    yield from _clusters(scan.errors, "log.errors", ref)


def _counts(table: dict[bytes, list[int]]) -> dict[str, tuple[int, int]]:
    return {code.decode("ascii"): (seen[0], seen[1]) for code, seen in sorted(table.items())}


def _http(scan: Scan, make: Any) -> Iterator[Reading]:
    every, probes = _counts(scan.codes), _counts(scan.probe_codes)
    for family in "245":
        codes = {code: seen for code, seen in every.items() if code[0] == family}
        if codes or (every and family != "2"):
            words = ", ".join(f"{code}: {count}" for code, (count, _) in codes.items()) or "none"
            line = min((first for _, first in codes.values()), default=0)
            notes = ("a stream that fails after its first byte is still logged as 200",) if family == "2" else ()
            how = f"access lines without probe and metrics paths; {words}"
            yield make(f"http.{family}xx.count", sum(count for count, _ in codes.values()), line, how, *notes)
    if "499" in every:
        how = "access lines with status 499, which proxies write when the client hung up"
        yield make("log.proxy.client_closed", every["499"][0], every["499"][1], how)
    if scan.flags:
        words = ", ".join(f"{flag}: {seen[0]}" for flag, seen in sorted(scan.flags.items()))
        line = min(seen[1] for seen in scan.flags.values())
        yield make("log.proxy.envoy_flags", sorted(scan.flags), line, f"response flags in access lines; {words}")
    failed = [seen for code, seen in probes.items() if code[0] in "45"]
    if failed:
        words = ", ".join(f"{code}: {count}" for code, (count, _) in probes.items())
        line = min(first for _, first in failed)
        yield make(
            "log.health_check_failures", sum(c for c, _ in failed), line, f"access lines of probe paths; {words}"
        )


def _exceptions(scan: Scan, make: Any) -> Iterator[Reading]:
    traces, root = scan.traces, scan.traces.root
    if root is None:
        return
    note = ("only exceptions that usually follow another one are in this log",) if root.follow_up else ()
    how = f"first of {traces.count} exceptions" + (
        ", those that only follow others set aside" if traces.count > 1 else ""
    )
    yield make("log.first_exception", root.text, root.line, how, *note, span=root.text[:SPAN])
    yield make("log.exceptions", traces.count, root.line, "; ".join(f"{k}: {n}" for k, n in traces.kinds.items())[:600])
    yield make("log.followup_exceptions", traces.follow_ups, root.line, f"{traces.count} exceptions, minus the first")
    if root.process.strip():
        yield make("log.first_exception_process", root.process.split(" ")[0], root.line, "process tag of that line")
    if root.frames:
        yield make("log.first_exception_frame", root.frames[-1], root.line, " < ".join(reversed(root.frames[-6:])))
    phase = "startup" if root.startup else root.phase
    if _OOM.search(root.text) and phase:
        how = (
            "a start-up function is in the traceback" if root.startup else "by the ready and statistics lines before it"
        )
        yield make("log.oom_at", phase, root.line, how, span=root.text[:SPAN])
    elif phase:
        yield make("log.first_exception_at", phase, root.line, "by the traceback's functions or the lines before it")


def _spread(scan: Scan, make: Any) -> Iterator[Reading]:
    """Figures of the ranks next to each other: the smallest KV memory decides for all, the lowest number is behind."""
    for fact, spread, unit in (
        ("log.kv_cache.available_gib", "log.kv_cache.available_spread_gib", "GiB"),
        ("log.nccl_timeout_seq", "log.nccl_timeout_seq_spread", "collectives"),
    ):
        for key, values, line in scan.tallies.numbers_of(fact):
            if len(values) >= 2:
                low, high = min(values, key=lambda p: values[p]), max(values, key=lambda p: values[p])
                how = (
                    f"{key}: {values[high]:g} in {high} minus {values[low]:g} {unit} in {low}, {len(values)} processes"
                )
                yield make(spread, round(values[high] - values[low], 4), line, how)


def _config(scan: Scan, ref: str, readings: list[Reading]) -> Iterator[Problem]:
    """Hand the lines that print the configuration to the configuration reader; its lines are put at ours."""
    if not scan.config:
        return
    from tools.config.logline import parse_config_line
    from tools.config.readings import launch_readings

    # what the engine itself reports comes before what was asked for and the defaults concluded from it
    for (mark, _), (line, text, _process) in sorted(scan.config.items(), key=lambda item: "non-default" in item[0][0]):
        launch = parse_config_line(text)
        if launch is None:
            yield Problem(ref=f"{ref}:{line}", what=f"the line `{mark} …` could not be read", severity="note")
            continue
        if not launch.version and scan.life.version:
            launch.version, launch.version_how = scan.life.version, "start-up banner"
        for reading in launch_readings(launch, ref):
            readings.append(structs.replace(reading, source=structs.replace(reading.source, line=line)))
