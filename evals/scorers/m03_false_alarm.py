"""M3: a fault named, or a change of the server advised, on a world that is healthy or at its limit."""

from __future__ import annotations

from collections.abc import Sequence

from evals.rows import Row
from evals.schema import Label
from evals.scorers.base import Measure, Pair, rate

CHANGES = ("online", "restart", "hardware")


def score(label: Label, row: Row) -> float | None:
    """1 for a false alarm. A crash of the arm is one too: it did not say healthy. An abstention is none."""
    if not label.benign():
        return None
    if row.said is None or row.said.outcome == "incident":
        return 1.0
    return float(any(action.how in CHANGES for action in row.said.actions))


def named(label: Label, row: Row) -> float | None:
    """1 when a fault is named, advice aside."""
    if not label.benign():
        return None
    return float(row.said is None or row.said.outcome == "incident")


def measure(pairs: Sequence[Pair]) -> list[Measure]:
    """False alarms over all benign worlds, the part that names a fault, and over healed twins alone."""
    twins = [p for p in pairs if p.label.relation == "healed_twin"]
    return [
        rate("M3", "false alarms on healthy and limit worlds", pairs, score, target="≤ 0.02"),
        rate("M3.named", "… of which a fault is named", pairs, named),
        rate("M3.twins", "false alarms on healed twins", twins, score, target="≤ 0.00"),
    ]
