"""M1: the family on top equals the label's, over all incident cases. No answer, an error and an abstention count 0."""

from __future__ import annotations

from collections.abc import Sequence

from evals.rows import Row
from evals.schema import Label
from evals.scorers.base import Measure, Pair, rate


def score(label: Label, row: Row) -> float | None:
    """1 when a supported cause of an accepted family leads an incident answer."""
    if label.outcome != "incident":
        return None
    top = row.said.top() if row.said else None
    return float(top is not None and top.family in label.accepted())


def measure(pairs: Sequence[Pair]) -> list[Measure]:
    """Family top-1."""
    return [rate("M1", "family top-1", pairs, score, target="≥ 0.80")]
