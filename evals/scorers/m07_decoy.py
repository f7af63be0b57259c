"""M7: a listed decoy (true, but not the cause) reported as a cause."""

from __future__ import annotations

from collections.abc import Sequence

from evals.rows import Row
from evals.schema import Label
from evals.scorers.base import Measure, Pair, rate


def score(label: Label, row: Row) -> float | None:
    """1 when a decoy stands among the offered causes; cases without decoys have no say."""
    traps = set(label.decoys) - label.accepted() - set(label.cause_families)
    if not traps:
        return None
    return float(row.said is not None and bool(traps & set(row.said.roots())))


def measure(pairs: Sequence[Pair]) -> list[Measure]:
    """Decoy rate."""
    return [rate("M7", "decoy reported as cause", pairs, score, target="≤ 0.10")]
