"""M1b: layer accuracy, family in the first three (leads included), mean reciprocal rank, macro mean over layers."""

from __future__ import annotations

from collections.abc import Sequence

from evals.rows import Row
from evals.schema import Label
from evals.scorers import m01_family
from evals.scorers.base import Measure, Pair, per_case, rate
from knowledge.schema import LAYERS


def layer(label: Label, row: Row) -> float | None:
    """1 when the leading cause lies in the label's layer, or its family is accepted."""
    if label.outcome != "incident":
        return None
    top = row.said.top() if row.said else None
    return float(top is not None and (top.layer == label.layer or top.family in label.accepted()))


def rank(label: Label, row: Row) -> float | None:
    """1 ÷ rank of the first accepted family among causes and leads; 0 when absent or another outcome was given."""
    if label.outcome != "incident":
        return None
    if row.said is None or row.said.outcome in ("healthy", "theoretical_limit"):
        return 0.0
    for place, cause in enumerate(row.said.causes, 1):
        if cause.family in label.accepted():
            return 1 / place
    return 0.0


def among_three(label: Label, row: Row) -> float | None:
    """1 when an accepted family is among the first three."""
    found = rank(label, row)
    return None if found is None else float(found >= 1 / 3 - 1e-9)


def outcome(label: Label, row: Row) -> float | None:
    """1 when the outcome (of four) is the label's."""
    return float(row.said is not None and row.said.outcome == label.outcome)


def measure(pairs: Sequence[Pair]) -> list[Measure]:
    """Layer accuracy, AC@3, MRR, macro mean of M1 over the layers that have cases, four-way outcome accuracy."""
    by_layer = []
    for name in LAYERS:
        table = per_case([p for p in pairs if p.label.layer == name], m01_family.score)
        if table:
            by_layer.append(sum(v for v, _ in table.values()) / len(table))
    macro = sum(by_layer) / len(by_layer) if by_layer else 0.0
    return [
        rate("M1b", "layer accuracy", pairs, layer, target="≥ 0.88"),
        rate("M1b.ac3", "family among first three", pairs, among_three),
        rate("M1b.mrr", "mean reciprocal rank", pairs, rank),
        Measure(id="M1b.macro", name="family top-1, mean over layers", value=macro, n=len(by_layer), note="n = layers"),
        rate("M1b.outcome", "outcome (of four)", pairs, outcome),
    ]
