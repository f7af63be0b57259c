"""Observations, pairs, sweeps and shapes as readings of the vocabulary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tools.contract import Reading, Source
from tools.report import lexicon
from tools.report.observe import Observation
from tools.report.pairs import Pair
from tools.report.shapes import Shape
from tools.report.sweeps import Sweep

# Metric of the lexicon → the word in ``pair.<word>.ratio`` and ``sweep.<word>.ratio``.
_WORD = {
    "generation_tps": "throughput",
    "total_tps": "throughput",
    "requests_per_s": "throughput",
    "throughput": "throughput",
    "goodput": "throughput",
    "user_tps": "throughput",
    "speed": "throughput",
    "prompt_tps": "prompt_throughput",
    "acceptance_rate": "acceptance",
    "acceptance_length": "acceptance",
    "startup_time": "startup",
    "gpu_memory": "memory",
    "host_memory": "host_memory",
    "prefix_hit_rate": "hit_rate",
    "busbw": "bandwidth",
    "clock_sm": "clock",
}
PLAIN = (
    "ttft",
    "tpot",
    "itl",
    "e2e",
    "kv_capacity",
    "output_tokens",
    "power",
    "duration",
    "gpu_util",
    "cpu_util",
    "step_time",
    "prefill_time",
    "queue_time",
    "kernel_time",
    "transfer_time",
    "accuracy",
)
DOUBTFUL = ("reference", "variant", "tool", "unnamed", "before_after")


def word_of(metric: str) -> str:
    """``throughput``, ``ttft`` …; empty for metrics whose ratio is no fact of its own."""
    return _WORD.get(metric) or (metric if metric in PLAIN else "")


def words(ref: str, line: int, span: str) -> Source:
    """Source of what a person wrote."""
    return Source(kind="words", ref=ref, line=line, span=span)


def observation(ref: str, item: Observation) -> Iterator[Reading]:
    """The statement itself, and the live fact of the same quantity where it is exactly that."""
    metric = lexicon.metrics()[item.metric]
    caveats = ["stated by a person, not measured here"]
    if item.approx:
        caveats.append("approximate")
    if item.cmp:
        caveats.append(f"given as a bound ({item.cmp})")
    if item.low is not None and item.high is not None and item.low != item.high:
        caveats.append(f"given as a range {item.low:g}–{item.high:g}")
    labels = _labels(item)
    source = words(ref, item.line, item.span)
    common: dict[str, Any] = {"labels": labels, "source": source, "caveats": tuple(caveats)}
    method = f"read from the text as {metric.name['en']}" + (f", {item.stat}" if item.stat else "")
    if item.norm:
        yield Reading(fact="said.reference", value=item.value, unit=item.unit, method=method, **common)
        return
    if item.extra:
        yield Reading(
            fact="said.extra_s",
            value=item.value,
            unit="s",
            method=f"{method}; an amount that is added",
            **common,
        )
        return
    yield Reading(fact=metric.said, value=item.value, unit=item.unit, method=method, **common)
    live = _live(item, metric)
    if live:
        yield Reading(fact=live, value=item.value, unit=item.unit, method=f"{method}; stated in words", **common)


def _live(item: Observation, metric: lexicon.Metric) -> str:
    side = item.conditions.get("side")
    feature = item.conditions.get("feature")
    if (side and side.name == "before") or (feature and feature.on is False) or "baseline" in item.conditions:
        return ""
    if item.unit not in ("s", "fraction", "tokens/s", "requests/s", "count", "", "x") or item.per:
        return ""
    if item.unit in ("", "x") and item.metric not in ("running", "waiting", "preemptions", "acceptance_length"):
        return ""
    if item.metric in ("prefix_hit_rate", "acceptance_rate", "kv_usage", "gpu_util") and not 0 <= item.value <= 1:
        return ""
    if item.stat:
        return metric.facts.get(item.stat, "" if "mean" in metric.facts else metric.facts.get("any", ""))
    return metric.facts.get("any", "")


def _labels(item: Observation) -> dict[str, str]:
    out = {"metric": item.metric}
    if item.stat:
        out["stat"] = item.stat
    for kind, mark in item.conditions.items():
        out[kind.replace(":", "_")] = mark.label()[:60]
    return out


def pair(ref: str, item: Pair) -> Iterator[Reading]:
    """Ratio of a pair, after/before."""
    word = word_of(item.metric)
    if not word or item.ratio <= 0:
        return
    labels = {"difference": item.difference, "metric": item.metric}
    if item.what:
        labels["what"] = item.what[:80]
    if item.stat:
        labels["stat"] = item.stat
    labels.update({kind: mark.label()[:40] for kind, mark in item.at.items()})
    if item.before is not None and item.after is not None:
        method = f"{item.before:g} → {item.after:g} {item.unit}".rstrip()
    else:
        method = f"the change is stated, factor {item.ratio:.3g}"
    caveats = ["stated by a person, not measured here"]
    if item.metric == "speed":
        caveats.append("only slower or faster was said, no metric was named")
    if item.difference in DOUBTFUL:
        caveats.append(f"what differs between the two sides is not clear ({item.difference})")
    source = words(ref, item.line, item.span)
    common: dict[str, Any] = {"source": source, "labels": labels, "unit": "ratio", "caveats": tuple(caveats)}
    yield Reading(fact=f"pair.{word}.ratio", value=round(item.ratio, 4), method=method, **common)
    if item.metric == "duration":
        inverse = f"inverse of the time for the same work, {method}"
        yield Reading(fact="pair.throughput.ratio", value=round(1 / item.ratio, 4), method=inverse, **common)
    if item.metric == "user_tps":
        inverse = f"inverse of the tokens per second of one request, {method}"
        yield Reading(fact="pair.tpot.ratio", value=round(1 / item.ratio, 4), method=inverse, **common)


def sweep(ref: str, item: Sweep) -> Iterator[Reading]:
    """Last over first value along the axis, and where the value peaks or breaks."""
    word = word_of(item.metric)
    if not word or item.ratio is None:
        return
    labels = {"dimension": item.dimension, "metric": item.metric}
    if item.stat:
        labels["stat"] = item.stat
    if item.label:
        labels["at"] = item.label[:80]
    points = ", ".join(f"{x:g}: {y:g}" for x, y in list(zip(item.xs, item.ys, strict=True))[:12])
    common: dict[str, Any] = {
        "source": words(ref, item.line, item.span),
        "labels": labels,
        "method": f"{item.metric} by {item.dimension} ({points})",
        "caveats": ("stated by a person, not measured here",),
    }
    if item.metric == "user_tps":
        if item.ratio > 0:
            yield Reading(fact="sweep.tpot.ratio", value=round(1 / item.ratio, 4), unit="ratio", **common)
        return
    yield Reading(fact=f"sweep.{word}.ratio", value=round(item.ratio, 4), unit="ratio", **common)
    if word == "throughput" and item.dimension == "concurrency":
        yield Reading(fact="sweep.throughput.peak_at", value=item.peak_at, unit="requests", **common)


def shape(ref: str, item: Shape) -> Reading:
    """A shape that holds."""
    return Reading(fact=item.fact, value=True, source=words(ref, item.line, item.span), method=item.method)
