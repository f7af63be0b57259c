"""M2: precision of the offered cause set at full recall; 0 when any true cause is missed. Breadth is punished."""

from __future__ import annotations

from collections.abc import Sequence

from evals.rows import Row
from evals.schema import Label
from evals.scorers.base import Measure, Pair, rate


def score(label: Label, row: Row) -> float | None:
    """Share of the offered causes that are true, when all true ones are among them. Victims (role symptom) are not
    offered as causes. An accepted alternative may stand for the main family."""
    if label.outcome != "incident":
        return None
    roots = set(row.said.roots()) if row.said else set()
    main = bool(roots & (label.accepted() - set(label.cause_families[1:])))
    if not main or not set(label.cause_families[1:]) <= roots:
        return 0.0
    return len(roots & (label.accepted() | set(label.cause_families))) / len(roots)


def measure(pairs: Sequence[Pair]) -> list[Measure]:
    """Precision at full recall."""
    return [rate("M2", "precision at full recall", pairs, score, target="≥ 0.75")]
