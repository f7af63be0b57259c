"""One scorer a file. Each has ``measure(pairs) -> [Measure, …]``; no model judges anything here."""

from __future__ import annotations

from collections.abc import Sequence

from evals.scorers import (
    m01_family,
    m01b_ranking,
    m02_precision,
    m03_false_alarm,
    m03b_youden,
    m04_abstention,
    m05_citations,
    m05b_relevance,
    m06_path,
    m07_decoy,
    m08_calibration,
    m09_stability,
    m10_cost,
    m11_safety,
    m12_counterfactual,
)
from evals.scorers.base import Measure, Pair

__all__ = ["SCORERS", "Measure", "Pair", "measures"]

SCORERS = (
    m01_family, m01b_ranking, m02_precision, m03_false_alarm, m03b_youden, m04_abstention, m05_citations,
    m05b_relevance, m06_path, m07_decoy, m08_calibration, m09_stability, m10_cost, m11_safety, m12_counterfactual,
)  # fmt: skip


def measures(pairs: Sequence[Pair]) -> list[Measure]:
    """All numbers of one set of answers, in the order of the scorers."""
    return [measure for scorer in SCORERS for measure in scorer.measure(pairs)]
