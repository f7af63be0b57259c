"""Reader of benchmark results. Several files, or several runs in one file, stay several runs with their conditions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tools.bench import structured
from tools.bench.checks import Finding, between, complete, of_run
from tools.bench.fields import UNITS
from tools.bench.flat import flat_run, looks_flat, rows_in
from tools.bench.grid import tables
from tools.bench.run import Row, Run, rows_of
from tools.bench.tables import runs_of
from tools.bench.text import TextRuns
from tools.contract import Context, Problem, Reading, ReadResult, Source
from tools.part import Part

MAX_JSON = 256 << 20
MAX_LINES = 200_000
MAX_RUNS = 400
MAX_PROSE = 256 << 10
_DULL = frozenset({"heading", "burstiness", "rtfx", "tokenizer_id", "random_range_ratio", "model"})


def read(parts: list[Part], context: Context) -> ReadResult:
    """Readings ``bench.*`` labelled with their run; traps become facts, caveats and problems."""
    result = ReadResult(readings=[], problems=[], nested=[])
    every: list[Run] = []
    for part in parts:
        every.extend(_one(part, result))
    for run in every[:MAX_RUNS]:
        result.readings.extend(_readings(run))
        result.problems.extend(_problems(run))
    if len(every) > MAX_RUNS:
        what = f"{len(every)} runs, only the first {MAX_RUNS} are read"
        result.problems.append(Problem(ref=parts[0].name, what=what, do="give fewer files"))
    if every:
        result.readings.extend(_together(every))
    if len(every) > 1:
        from tools.bench import compare

        result.readings.extend(compare.readings(every))
    return result


def rows(parts: list[Part]) -> list[Row]:
    """All runs of the parts as comparable numbers: metric, value, unit, conditions, source."""
    scratch = ReadResult(readings=[], problems=[], nested=[])
    return [row for part in parts for run in _one(part, scratch)[:MAX_RUNS] for row in rows_of(run)]


def _one(part: Part, result: ReadResult) -> list[Run]:
    """Runs of one part, completed by definition; what cannot be used becomes a problem."""
    if part.is_binary():
        what = "binary data, not a benchmark result"
        result.problems.append(Problem(ref=part.name, what=what, do="give text, CSV or JSON", severity="error"))
        return []
    head = part.head(4096).lstrip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n")
    found: list[Run] = []
    if head[:1] in (b"{", b"["):
        found = list(_json(part, result))
    if not found and head[:1] != b"[":
        found = list(_text(part))
    cut = part.is_cut()
    if cut:
        result.problems.append(Problem(ref=part.name, what=cut, do="copy the file again"))
    for run in found:
        complete(run)
    found = [run for run in found if run.metrics or run.missing]
    if found and all(run.tool == "table" for run in found) and part.size() <= MAX_PROSE:
        result.nested.append(_prose(part))  # the report reader compares rows and columns of tables
    if not found and not any(problem.ref == part.name for problem in result.problems):
        _refuse(part, head[:1] in (b"{", b"["), result)
    return found


def _refuse(part: Part, is_json: bool, result: ReadResult) -> None:
    """Name what cannot be used; short text goes on to the reader of prose."""
    what = "no benchmark figures of a known form"
    if not is_json and 0 < part.size() <= MAX_PROSE and not part.hint.endswith("+prose"):
        what += "; read as prose instead"
        name = f"{part.name}#text"
        body = part.head(MAX_PROSE)
        nested = Part(
            name=name, data=body, kind="report", parent=part.name, line0=part.line0, hint=f"{part.hint}+prose"
        )
        result.nested.append(nested)
    do = (
        "give the tool's JSON or printed result (vLLM, SGLang, GuideLLM, AIPerf, inference-perf), or a table with heads"
    )
    result.problems.append(Problem(ref=part.name, what=what, do=do, severity="note" if not is_json else "warning"))


def _prose(part: Part) -> Part:
    body = part.head(MAX_PROSE)
    hint = f"{part.hint}+prose"
    return Part(name=f"{part.name}#text", data=body, kind="report", parent=part.name, line0=part.line0, hint=hint)


def _load(text: str) -> Any:
    """Parsed JSON with ``Infinity`` and ``NaN`` allowed; ``None`` when it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _json(part: Part, result: ReadResult) -> Iterator[Run]:
    if part.size() > MAX_JSON:
        what = f"JSON of {part.size() >> 20} MiB is not read whole"
        result.problems.append(Problem(ref=part.name, what=what, do="save it without per-request details"))
        return
    text = part.text(MAX_JSON)
    data = _load(text)
    if data is not None:
        yield from _object(data, part, result)
        return
    yield from _jsonl(part, result)


def _jsonl(part: Part, result: ReadResult) -> Iterator[Run]:
    records: structured.Records | None = None
    bad = good = 0
    for line, text in part.lines():
        if not text.strip():
            continue
        item = _load(text)
        if not isinstance(item, dict):
            bad += 1
            continue
        good += 1
        if "metadata" in item and "metrics" in item:
            records = records or structured.Records(part.name)
            records.add(item, line)
        elif looks_flat(item):
            name = part.name if line == 1 else f"{part.name}#L{line}"
            run = flat_run(item, name, part.name, line)
            _server_info(item, part, line, result)
            yield run
    if records is not None:
        yield records.finish()
    if bad:
        what = f"{bad} of {bad + good} lines are not JSON and were left out" if good else "damaged JSON"
        result.problems.append(Problem(ref=part.name, what=what, do="copy the file again"))


def _object(data: Any, part: Part, result: ReadResult) -> Iterator[Run]:
    if isinstance(data, list):
        items = [item for item in data if isinstance(item, dict)]
        for index, item in enumerate(items[:MAX_RUNS]):
            if looks_flat(item):
                yield flat_run(item, f"{part.name}#{index + 1}", part.name)
        return
    if not isinstance(data, dict):
        return
    if isinstance(data.get("benchmarks"), list):
        yield from structured.guidellm(data, part.name)
    elif "load_summary" in data or ("successes" in data and "failures" in data):
        yield structured.inference_perf(data, part.name)
    elif structured.looks_record(data):
        yield from structured.record(data, part.name)
    elif structured.looks_aiperf(data):
        yield structured.aiperf(data, part.name)
    elif looks_flat(data):
        yield flat_run(data, part.name, part.name)
        _server_info(data, part, 0, result)
    elif "metadata" in data and "metrics" in data:
        records = structured.Records(part.name)
        records.add(data, 1)
        yield records.finish()
    else:
        yield from rows_in(data, part.name)


def _server_info(data: dict[str, Any], part: Part, line: int, result: ReadResult) -> None:
    """SGLang's client stores the server's arguments beside its result: the configuration reader's business."""
    info = data.get("server_info")
    if isinstance(info, dict) and info:
        body = json.dumps(info).encode()
        name = f"{part.name}#server_info" + (f"-L{line}" if line else "")
        result.nested.append(Part(name=name, data=body, kind="config", parent=part.name, line0=0, hint="server_info"))


def _text(part: Part) -> Iterator[Run]:
    lines = [(number, text) for number, text in part.lines(MAX_LINES) if text.strip() or True]
    state = TextRuns(part.name)
    for number, text in lines:
        state.feed(number, text)
    printed = state.runs()
    others: list[Run] = []
    for table in tables(lines):
        if not any(number in state.used for number, _ in table.rows):
            for run in runs_of(table, part.name):
                above = [p for p in printed if p.source.line < table.line] if run.tool == "percentiles" else []
                if above:
                    above[-1].metrics |= run.metrics | above[-1].metrics  # the percentiles of that summary
                    above[-1].lines |= run.lines | above[-1].lines
                else:
                    others.append(run)
    yield from printed
    yield from others


def _readings(run: Run) -> Iterator[Reading]:
    labels = {"run": run.name}
    told = sorted((k, v) for k, v in run.conditions.items() if v and k not in _DULL and not k.startswith("total_"))
    labels |= dict(sorted(told, key=lambda item: item[0] not in ("variant", "context", "backend"))[:8])
    for key in ("concurrency", "request_rate"):
        if key in run.metrics:
            labels[key] = f"{run.metrics[key]:g}"
    if run.rate_is_inf:
        labels["request_rate"] = "inf"
    notes = tuple(dict.fromkeys(run.caveats))[:6]
    span = run.source.span

    def make(fact: str, value: Any, how: str, line: int, *caveats: str) -> Reading:
        source = Source(kind="file", ref=run.source.ref, line=line or run.source.line, span=span)
        return Reading(fact=f"bench.{fact}", value=value, source=source, method=how, labels=labels, caveats=caveats)

    for key, value in run.metrics.items():
        unit = UNITS[key]
        near = ("the figure is given as approximate or as a range",) if key in run.approximate else ()
        few = ("fewer than 100 requests stand behind this p99",) if ".p99" in key and _few(run) else ()
        shown = int(value) if float(value).is_integer() and abs(value) < 1e15 else round(value, 6)
        yield make(key, shown, f"{run.tool}, {unit}", run.lines.get(key, 0), *near, *few, *notes)
    for finding in of_run(run):
        yield make(finding.fact, finding.value, finding.how, 0, *finding.caveats)
    yield make("tool", run.tool, "by the form of the result", 0)
    if run.conditions.get("model"):
        yield make("model", run.conditions["model"], "as the result names it", 0)
    if run.conditions.get("backend"):
        yield make("backend", run.conditions["backend"], "as the result names it", 0)
    if run.errors:
        most = sorted(run.errors.items(), key=lambda item: -item[1])[:20]
        yield make("errors", [f"{count}x {text}" for text, count in most], "error texts of the client", 0)


def _few(run: Run) -> bool:
    return 0 < run.metrics.get("completed", 100) < 100


def _problems(run: Run) -> Iterator[Problem]:
    for finding in of_run(run):
        if finding.fact == "all_failed":
            yield Problem(ref=run.name, what=finding.how, do="read the client's error texts or the server log")
        elif finding.fact == "inconsistent" and isinstance(finding.value, list):
            yield Problem(ref=run.name, what="; ".join(finding.value), do="check units and which requests are counted")


def _together(runs: list[Run]) -> Iterator[Reading]:
    source = Source(kind="computed", ref=runs[0].source.ref)
    yield Reading(fact="bench.runs", value=len(runs), source=source, method="runs read")
    finding: Finding
    for finding in between(runs):
        yield Reading(fact=f"bench.{finding.fact}", value=finding.value, source=source, method=finding.how)
