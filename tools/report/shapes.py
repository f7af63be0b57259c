"""Shapes of pairs and sweeps: what a bare number cannot say (constant extra, cliff, first run only, decay …)."""

from __future__ import annotations

import re
from collections import defaultdict

from msgspec import Struct

from tools.report import lexicon
from tools.report.observe import Observation
from tools.report.pairs import Pair
from tools.report.sweeps import Sweep

LATENCY = ("ttft", "tpot", "itl", "e2e", "step_time", "prefill_time", "queue_time", "duration")
SPEED = ("generation_tps", "total_tps", "user_tps", "requests_per_s", "prompt_tps")
# Features (knowledge/lexicon/features.yaml) that are work on the host for every token.
PER_TOKEN_WORK = ("structured output", "penalties", "logprobs", "logits processors")
# Latencies that more GPUs are meant to shorten.
WHOLE = ("ttft", "tpot", "itl", "e2e", "step_time", "prefill_time")
ENGINE_SIDE = ("itl", "tpot", "prefill_time", "queue_time", "step_time")


class Shape(Struct):
    """One shape that holds, with the figures behind it."""

    fact: str
    line: int
    span: str
    method: str


def of_sweeps(found: list[Sweep]) -> list[Shape]:
    """Shapes a sweep shows on its own."""
    out: list[Shape] = []
    for sweep in found:
        out.extend(_load(sweep))
        if sweep.dimension == "run":
            out.extend(_runs(sweep))
        elif sweep.dimension == "uptime":
            out.extend(_uptime(sweep))
        elif sweep.dimension == "gpus" and sweep.metric in SPEED:
            out.extend(
                _gpus(sweep.first, sweep.last, sweep.line, sweep.span, f"{sweep.xs[0]:g} → {sweep.xs[-1]:g} GPUs")
            )
    return out


def _load(sweep: Sweep) -> list[Shape]:
    shapes = lexicon.shapes()
    out: list[Shape] = []
    text = f"{sweep.metric}: {sweep.first:g} at {sweep.xs[0]:g}, {sweep.last:g} at {sweep.xs[-1]:g} ({sweep.dimension})"
    kind = {"concurrency": "concurrency", "context": "context", "prompt_tokens": "context"}.get(sweep.dimension)
    if kind is None or sweep.ratio is None:
        return out
    if sweep.metric in LATENCY and sweep.ratio >= shapes.grows:
        out.append(Shape(f"shape.grows_with_{kind}", sweep.line, sweep.span, text))
    if kind == "context" and sweep.metric in SPEED and sweep.ratio <= 1 / shapes.grows:
        out.append(Shape("shape.grows_with_context", sweep.line, sweep.span, text))
    cliff = sweep.cliff()
    if cliff is not None and sweep.metric in (*LATENCY, *SPEED):
        out.append(
            Shape(
                f"shape.cliff_at_{kind}",
                sweep.line,
                sweep.span,
                f"{text}; the step from {cliff[0]:g} to {cliff[1]:g} carries it",
            )
        )
    wide = sweep.xs[0] > 0 and sweep.xs[-1] / sweep.xs[0] >= shapes.flat_span
    if (
        kind == "concurrency"
        and wide
        and sweep.metric in ("generation_tps", "total_tps", "requests_per_s")
        and shapes.fallen <= sweep.ratio <= shapes.flat
    ):
        out.append(Shape("shape.throughput_flat_with_concurrency", sweep.line, sweep.span, text))
    return out


def _runs(sweep: Sweep) -> list[Shape]:
    shapes = lexicon.shapes()
    later = sorted(sweep.ys[1:])
    middle = later[len(later) // 2]
    if not middle or not sweep.first or sweep.better not in ("low", "high"):
        return []
    worse = sweep.first / middle if sweep.better == "low" else middle / sweep.first
    if worse < shapes.first_run:
        return []
    text = f"{sweep.metric}: {sweep.first:g} first, median {middle:g} later ({worse:.1f} times worse)"
    return [Shape("shape.first_run_slow", sweep.line, sweep.span, text)]


def _uptime(sweep: Sweep) -> list[Shape]:
    if sweep.ratio is None or sweep.xs[-1] <= sweep.xs[0]:
        return []
    text = f"{sweep.metric}: {sweep.first:g} → {sweep.last:g} over {sweep.xs[-1] - sweep.xs[0]:g} s"
    shapes = lexicon.shapes()
    if sweep.metric in ("host_memory", "gpu_memory") and sweep.ratio >= shapes.decay and sweep.monotone:
        return [Shape("shape.memory_grows_with_uptime", sweep.line, sweep.span, text)]
    worse = {"low": sweep.ratio, "high": 1 / sweep.ratio if sweep.ratio else None}.get(sweep.better)
    if worse is not None and worse >= shapes.decay and sweep.metric in (*LATENCY, *SPEED, "prefix_hit_rate"):
        return [Shape("shape.decays_with_uptime", sweep.line, sweep.span, text)]
    return []


def _superlinear(pair: Pair) -> bool:
    counts = re.fullmatch(r"(\d+) → (\d+)", pair.what) if pair.difference == "gpu_count" else None
    if counts is None or not pair.before or not pair.after or not int(counts[1]):
        return False
    return pair.after / pair.before > lexicon.shapes().superlinear * int(counts[2]) / int(counts[1])


def _gpus(before: float, after: float, line: int, span: str, what: str) -> list[Shape]:
    shapes = lexicon.shapes()
    ratio = after / before if before else 0.0
    text = f"{before:g} → {after:g} for {what}"
    if 0 < ratio <= shapes.slower:
        return [Shape("shape.more_gpus_slower", line, span, text), Shape("shape.more_gpus_no_gain", line, span, text)]
    if shapes.slower < ratio <= shapes.no_gain:
        return [Shape("shape.more_gpus_no_gain", line, span, text)]
    return []


def of_pairs(found: list[Pair]) -> list[Shape]:
    """Shapes that need two sides: constant extra, lengths that differ, tools that disagree, no gain from more GPUs."""
    shapes = lexicon.shapes()
    out: list[Shape] = []
    # A gain beyond the number of GPUs at any load: the smaller side is ill, and nothing is said of splitting.
    gains = any(pair.metric in SPEED and _superlinear(pair) for pair in found)
    for pair in found:
        worse = pair.worse()
        text = f"{pair.metric} ratio {pair.ratio:.3g} ({pair.what or pair.difference})"
        if pair.difference == "gpu_count" and worse and pair.metric in (*SPEED, *WHOLE) and not gains:
            out.extend(_gpus(worse, 1.0, pair.line, pair.span, pair.what or text))
        if worse is None or worse < shapes.worse:
            continue
        if pair.difference == "version_upgrade":
            out.append(Shape("shape.after_upgrade", pair.line, pair.span, text))
        elif pair.difference == "feature_on_off":
            out.append(Shape("shape.only_with_feature", pair.line, pair.span, text))
            if worse >= shapes.trigger and any(name in pair.what for name in PER_TOKEN_WORK):
                out.append(Shape("concept.structured_is_trigger", pair.line, pair.span, text))
        elif pair.difference == "time" and worse >= shapes.decay:
            out.append(Shape("shape.decays_with_uptime", pair.line, pair.span, text))
    out.extend(_run_pairs(found))
    out.extend(_route(found))
    out.extend(_constant(found))
    out.extend(_lengths(found))
    out.extend(_tools(found))
    out.extend(_client(found))
    return out


def _run_pairs(found: list[Pair]) -> list[Shape]:
    limit = lexicon.shapes().first_run
    out = []
    for pair in found:
        worse = pair.worse()
        if pair.difference == "run_order" and worse is not None and 0 < worse <= 1 / limit:
            out.append(
                Shape("shape.first_run_slow", pair.line, pair.span, f"{pair.metric} later/first {pair.ratio:.3g}")
            )
    return out


def _route(found: list[Pair]) -> list[Shape]:
    limit = lexicon.shapes().worse
    return [
        Shape("shape.only_via_gateway", pair.line, pair.span, f"{pair.metric} proxied/direct {pair.ratio:.3g}")
        for pair in found
        if pair.difference == "route" and (pair.worse() or 0) >= limit
    ]


def _constant(found: list[Pair]) -> list[Shape]:
    """The first token comes later by the same amount at every load, or only it does."""
    shapes = lexicon.shapes()
    out = []
    by_difference: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in found:
        if pair.before is not None and pair.after is not None and pair.metric in LATENCY:
            by_difference[(pair.difference, pair.metric)].append(pair)
    for (difference, metric), items in by_difference.items():
        if metric != "ttft" or difference in ("reference", "unnamed"):
            continue
        typical = [pair for pair in items if pair.stat in ("p50", "mean", "")] or items
        extra = [pair.after - pair.before for pair in typical if pair.after is not None and pair.before is not None]
        loads = {mark.number for pair in typical for mark in pair.at.values()}
        if len(extra) >= 2 and len(loads) >= 2 and min(extra) >= shapes.constant_min_s:
            mean = sum(extra) / len(extra)
            if (max(extra) - min(extra)) / mean <= 2 * shapes.constant_spread:
                text = f"extra TTFT {min(extra) * 1000:.0f}–{max(extra) * 1000:.0f} ms at {len(loads)} loads"
                out.append(Shape("shape.constant_extra_ttft", typical[0].line, typical[0].span, text))
                continue
        ends = list(
            by_difference.get((difference, "e2e"), [])
            + by_difference.get((difference, "tpot"), [])
            + by_difference.get((difference, "itl"), [])
        )
        if extra and min(extra) >= shapes.constant_min_s and any(abs(pair.ratio - 1) <= shapes.same for pair in ends):
            out.append(
                Shape(
                    "shape.constant_extra_ttft",
                    typical[0].line,
                    typical[0].span,
                    "TTFT grew while the rest of the request did not",
                )
            )
    return out


def _lengths(found: list[Pair]) -> list[Shape]:
    """Latency fell although each token got slower: the outputs cannot have been of equal length."""
    shapes = lexicon.shapes()
    out = []
    by_side: dict[tuple[str, str], dict[str, Pair]] = defaultdict(dict)
    for pair in found:
        by_side[(pair.difference, pair.what)].setdefault(pair.metric, pair)
    for items in by_side.values():
        end, token = items.get("e2e"), items.get("tpot") or items.get("itl")
        if end and token and end.ratio <= shapes.lengths and token.ratio >= shapes.worse:
            out.append(
                Shape(
                    "shape.latency_better_but_lengths_differ",
                    end.line,
                    end.span,
                    f"latency ×{end.ratio:.2f}, time per token ×{token.ratio:.2f}",
                )
            )
    return out


def _tools(found: list[Pair]) -> list[Shape]:
    limit = lexicon.shapes().tools
    return [
        Shape(
            "shape.two_tools_disagree",
            pair.line,
            pair.span,
            f"{pair.metric} differs by a factor of {max(pair.ratio, 1 / pair.ratio):.1f}",
        )
        for pair in found
        if pair.difference == "tool" and pair.ratio > 0 and max(pair.ratio, 1 / pair.ratio) >= limit
    ]


def _client(found: list[Pair]) -> list[Shape]:
    """The client waits longer while the engine's own times stand still."""
    shapes = lexicon.shapes()
    worse = [pair for pair in found if pair.metric in ("ttft", "e2e") and pair.ratio >= 1.3]
    same = [pair for pair in found if pair.metric in ENGINE_SIDE and abs(pair.ratio - 1) <= shapes.same]
    if worse and all(pair.metric == "ttft" for pair in worse):
        # The time per token says nothing of the first one: with it unchanged the request may wait in the engine.
        same = [pair for pair in same if pair.metric not in ("itl", "tpot")]
    if worse and same:
        pair = worse[0]
        return [
            Shape(
                "shape.engine_metrics_unchanged_client_worse",
                pair.line,
                pair.span,
                f"{pair.metric} ×{pair.ratio:.2f}, {same[0].metric} unchanged",
            )
        ]
    return []


def between_parts(found: list[Observation]) -> list[Shape]:
    """Two files with the same axis and metric, one of them from another tool, that disagree."""
    limit = lexicon.shapes().tools
    by_point: dict[tuple[str, str, float], list[Observation]] = defaultdict(list)
    for item in found:
        for kind in ("concurrency", "context"):
            number = item.number(kind)
            if number is not None and not item.norm:
                by_point[(item.metric, kind, number)].append(item)
    out = []
    for (metric, kind, number), items in by_point.items():
        tools = [item for item in items if "tool" in item.conditions]
        plain = [item for item in items if "tool" not in item.conditions]
        if tools and plain and tools[0].value > 0 and plain[0].value > 0:
            factor = max(tools[0].value / plain[0].value, plain[0].value / tools[0].value)
            if factor >= limit and tools[0].unit == plain[0].unit:
                out.append(
                    Shape(
                        "shape.two_tools_disagree",
                        tools[0].line,
                        tools[0].span,
                        f"{metric} at {kind} {number:g}: {plain[0].value:g} against {tools[0].value:g}",
                    )
                )
    return out
