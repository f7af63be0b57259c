"""M8: does a stated confidence come true? Brier, ECE over five equal-count bins, risk–coverage area."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evals.rows import Row
from evals.schema import Label
from evals.scorers.base import Measure, Pair, meets
from evals.stats import brier, ece, risk_coverage

TARGET = "≤ 0.08"


class Bet(NamedTuple):
    """A committed answer: how sure, right or not, and its cluster."""

    confidence: float
    right: bool
    origin: str


def right(label: Label, row: Row) -> bool:
    """Outcome as the label's and, for an incident, an accepted family on top."""
    if row.said is None or row.said.outcome != label.outcome:
        return False
    top = row.said.top()
    return label.outcome != "incident" or (top is not None and top.family in label.accepted())


def bets(pairs: Sequence[Pair]) -> list[Bet]:
    """Committed answers of the first repeat. An abstention states no confidence and is no bet."""
    return [
        Bet(row.said.confidence, right(label, row), label.origin)
        for label, row in pairs
        if row.said is not None and row.said.outcome != "undecidable" and row.repeat == 0
    ]


def _boot(found: list[Bet], draws: int = 400) -> tuple[float, float]:
    import numpy as np

    from evals.stats import SEED

    groups: dict[str, list[Bet]] = {}
    for bet in found:
        groups.setdefault(bet.origin, []).append(bet)
    names = list(groups)
    rng = np.random.default_rng(SEED)
    values = []
    for _ in range(draws):
        drawn = [bet for i in rng.integers(0, len(names), len(names)) for bet in groups[names[i]]]
        values.append(ece([b.confidence for b in drawn], [b.right for b in drawn]))
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def measure(pairs: Sequence[Pair]) -> list[Measure]:
    """ECE, Brier and the area under risk–coverage over committed answers."""
    found = bets(pairs)
    sure, hit = [b.confidence for b in found], [b.right for b in found]
    value, n = ece(sure, hit), len(found)
    _, area = risk_coverage(sure, hit)
    boot = _boot(found) if n >= 5 else None
    note = "committed answers; biased upwards for small n"
    return [
        Measure(
            id="M8", name="ECE (5 equal-count bins)", value=value, n=n, boot=boot, target=TARGET,
            met=meets(value, TARGET, n), unit="error", note=note,
        ),
        Measure(id="M8.brier", name="Brier score", value=brier(sure, hit), n=n, unit="error"),
        Measure(id="M8.aurc", name="area under risk–coverage", value=area, n=n, unit="error"),
    ]  # fmt: skip
