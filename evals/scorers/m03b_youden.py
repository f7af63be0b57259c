"""M3b: Youden's J = sensitivity (an incident is called one) + specificity (no false alarm) − 1."""

from __future__ import annotations

from collections.abc import Sequence

from evals.rows import Row
from evals.schema import Label
from evals.scorers import m03_false_alarm
from evals.scorers.base import Measure, Pair, per_case
from evals.stats import wilson


def detected(label: Label, row: Row) -> float | None:
    """1 when an incident is called an incident, whatever cause is named."""
    if label.outcome != "incident":
        return None
    return float(row.said is not None and row.said.outcome == "incident")


def measure(pairs: Sequence[Pair]) -> list[Measure]:
    """J with the interval of Newcombe's hybrid method (square-and-add of two Wilson intervals)."""
    hits = [v for v, _ in per_case(pairs, detected).values()]
    calm = [1 - v for v, _ in per_case(pairs, m03_false_alarm.score).values()]
    if not hits or not calm:
        return [Measure(id="M3b", name="Youden J", value=0.0, n=0, unit="J", note="needs incidents and benign worlds")]
    tpr, tnr = sum(hits) / len(hits), sum(calm) / len(calm)
    (l1, u1), (l2, u2) = wilson(sum(hits), len(hits)), wilson(sum(calm), len(calm))
    value = tpr + tnr - 1
    low = value - ((tpr - l1) ** 2 + (tnr - l2) ** 2) ** 0.5
    high = value + ((u1 - tpr) ** 2 + (u2 - tnr) ** 2) ** 0.5
    note = f"sensitivity {tpr:.3f} (n {len(hits)}), specificity {tnr:.3f} (n {len(calm)})"
    return [
        Measure(
            id="M3b", name="Youden J", value=value, n=len(hits) + len(calm), low=low, high=high, unit="J", note=note
        )
    ]
