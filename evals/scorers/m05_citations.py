"""M5: share of claims whose evidence exists, reads the same from a fresh reading of the world, and makes its rule true."""

from __future__ import annotations

from collections.abc import Sequence

from evals.rows import Row
from evals.schema import Label
from evals.scorers.base import Measure, Pair, meets, per_case
from evals.stats import cluster_bootstrap, wilson

TARGET = "= 1.0"


def score(label: Label, row: Row) -> float | None:
    """Share of valid claims of one answer; ``None`` when it made none that were checked."""
    return row.valid / row.claims if row.claims else None


def measure(pairs: Sequence[Pair]) -> list[Measure]:
    """Over claims (n = claims); the bootstrap is over cases."""
    claims, valid = sum(row.claims for _, row in pairs), sum(row.valid for _, row in pairs)
    table = per_case(pairs, score)
    low, high = wilson(valid, claims)
    value = valid / claims if claims else 0.0
    boot = cluster_bootstrap([v for v, _ in table.values()], [o for _, o in table.values()]) if table else None
    note = f"claims of {len(table)} cases"
    right = {case: v for case, (v, _) in table.items()}
    return [
        Measure(
            id="M5", name="citation validity", value=value, n=claims, low=low, high=high, boot=boot, target=TARGET,
            met=meets(value, TARGET, claims), note=note, right=right,
        )
    ]  # fmt: skip
