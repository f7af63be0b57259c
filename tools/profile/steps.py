"""Engine steps from named ranges: how long, how many requests, which phase."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from tools.profile import classify
from tools.profile.model import Steps


def _family(name: str) -> int:
    """Lower is better: ranges that state requests, then plain step ranges, then the profiler's own."""
    if classify.annotation(name) is not None:
        return 0
    return 2 if name.startswith("ProfilerStep") else 1


def steps_of(ranges: Iterable[tuple[str, float, float]]) -> Steps:
    """Steps from (name, start, duration; ns). Only the most telling family of ranges counts, as families nest."""
    families: dict[int, list[tuple[str, float, float]]] = {}
    for name, start, length in ranges:
        if classify.is_step(name):
            families.setdefault(_family(name), []).append((name, start, length))
    steps = Steps()
    chosen = families.get(min(families, default=0), [])
    starts = sorted(start for _, start, _ in chosen)
    steps.periods = [after - before for before, after in pairwise(starts)]
    for name, _, length in chosen:
        steps.durations.append(length)
        told = classify.annotation(name)
        if told is None:
            continue
        if told.ctx > 0:
            steps.prefill += 1
            steps.prefill_time += length
            if told.ctx_tokens:
                steps.prefill_tokens.append(told.ctx_tokens)
        elif told.gen > 0:
            steps.decode_only += 1
            steps.decode_time += length
        if told.gen > 0:
            steps.batch.append(told.gen)
    return steps
