"""Puts runs next to each other: the pairs, sweeps and shapes of the report reader, over measured runs.

Only what the runs state themselves tells them apart: concurrency, lengths, a numbered run, and the words of a file name
or label. Runs of tables are left to the report reader, which sees their heads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import structs

from tools.bench.run import Run, number
from tools.contract import Reading, Source
from tools.report import emit, pairs, shapes, sweeps
from tools.report.conditions import Condition
from tools.report.headers import marks_of
from tools.report.observe import Observation

_METRICS: tuple[tuple[str, str, str, float], ...] = (
    ("output_tokens_per_s", "generation_tps", "tokens/s", 1.0),
    ("total_tokens_per_s", "total_tps", "tokens/s", 1.0),
    ("input_tokens_per_s", "prompt_tps", "tokens/s", 1.0),
    ("decode_tokens_per_s", "user_tps", "tokens/s", 1.0),
    ("requests_per_s", "requests_per_s", "requests/s", 1.0),
    ("acceptance_length", "acceptance_length", "tokens", 1.0),
    ("acceptance_rate", "acceptance_rate", "fraction", 1.0),
    ("output_tokens", "output_tokens", "tokens", 1.0),
)
_STATS = ("mean", "p50", "p99")
_NUMBERED = re.compile(r"(?i)(?<![a-z])(?:run|rep|pass|round|trial|repeat)[ _=#-]?(\d{1,4})(?!\d)")
_EXTENSION = re.compile(r"\.(?:jsonl?|txt|csv|log|md)\b")
NOTE = "two results compared by what they state themselves; other differences between them are not known"
MAX = 200


def readings(runs: list[Run]) -> Iterator[Reading]:
    """Pairs, sweeps and shapes over the runs; nothing with fewer than two runs."""
    chosen = [run for run in runs if run.tool != "table" and "stream" not in run.conditions][:MAX]
    if len(chosen) < 2:
        return
    found = [item for order, run in enumerate(chosen) for item in _observations(run, order)]
    where = {item.order: run.source for item in found for run in [chosen[item.order]]}
    names = " ".join(_words(run) for run in chosen)
    differ = pairs.of_observations(found, names)
    curves = sweeps.of_observations(found)
    for pair in differ:
        for reading in emit.pair("", pair):
            yield _sourced(reading, where, pair.line)
    for curve in curves:
        for reading in emit.sweep("", curve):
            yield _sourced(reading, where, curve.line)
    seen: set[tuple[str, str]] = set()
    for shape in (*shapes.of_sweeps(curves), *shapes.of_pairs(differ)):
        if (shape.fact, shape.method) not in seen:
            seen.add((shape.fact, shape.method))
            yield _sourced(emit.shape("", shape), where, shape.line)


def _sourced(reading: Reading, where: dict[int, Source], order: int) -> Reading:
    """The report reader's reading with our file as its source; ``order`` travelled in the line."""
    source = where.get(order - 1)
    at = Source(kind="file", ref=source.ref, line=source.line, span=source.span) if source else Source(kind="computed")
    return structs.replace(reading, source=at, caveats=(NOTE,))


def _words(run: Run) -> str:
    label = run.conditions.get("variant", "")
    stem = _EXTENSION.sub("", run.source.ref.rpartition("/")[2])
    return f"{label} {stem}".replace("_", " ").replace("-", " ").strip()


def _conditions(run: Run) -> dict[str, Condition]:
    words = _words(run)
    out = {mark.kind: mark for mark in marks_of(words)}
    numbered = _NUMBERED.search(words)
    if numbered:
        out = {"run": Condition("run", 0, 0, numbered[0], float(numbered[1]))}
    elif (index := number(run.conditions.get("run_number"))) is not None:
        out = {"run": Condition("run", 0, 0, f"run {index + 1:g}", index + 1)}
    elif not out and words:
        out["variant"] = Condition("variant", 0, 0, words[:80])
    for kind, value in (
        ("concurrency", run.metrics.get("concurrency")),
        ("context", number(run.conditions.get("input_len"))),
        ("output_tokens", number(run.conditions.get("output_len"))),
    ):
        if value is not None:
            out[kind] = Condition(kind, 0, 0, f"{value:g}", value)
            if kind == "concurrency" and out.get("variant") is not None and _only_load(words, value):
                del out["variant"]
    return out


def _only_load(words: str, value: float) -> bool:
    """Whether a file name says no more than the load: ``concurrency 8``, ``c8``, ``bench c8``."""
    bare = re.sub(rf"(?i)\b(?:c|conc|concurrency|bs|n)? ?{value:g}\b", " ", words)
    return not re.sub(
        r"(?i)\b(?:bench|benchmark|result|results|client|serve|vllm|sglang|c|conc|concurrency)\b|\d+", " ", bare
    ).strip()


def _observations(run: Run, order: int) -> Iterator[Observation]:
    conditions = _conditions(run)
    rate = "inf" if run.rate_is_inf else f"{run.metrics.get('request_rate', 0):g}"
    group = f"rate {rate}; {run.conditions.get('dataset', '')}; {run.tool}"

    def one(metric: str, value: float, unit: str, stat: str = "") -> Observation:
        return Observation(
            metric=metric,
            value=value,
            unit=unit,
            line=order + 1,
            span="",
            stat=stat,
            conditions=conditions,
            group=group,
            order=order,
        )

    for key, metric, unit, factor in _METRICS:
        if key in run.metrics and key not in run.approximate:
            yield one(metric, run.metrics[key] * factor, unit)
    for family in ("ttft", "tpot", "itl", "e2e"):
        for stat in _STATS:
            value = run.metrics.get(f"{family}.{stat}_ms")
            if value is not None:
                yield one(family, value / 1000.0, "s", stat)
    if "duration_s" in run.metrics and run.metrics.get("completed"):
        same_work = f"{group}; {run.metrics['completed']:g} requests"
        yield structs.replace(one("duration", run.metrics["duration_s"], "s"), group=same_work)
