"""M4: on an undecidable world, say so and name a probe that would decide; on a decidable one, do not abstain."""

from __future__ import annotations

from collections.abc import Sequence

from evals.concepts import probe_matches
from evals.rows import Row
from evals.schema import Label
from evals.scorers.base import Measure, Pair, rate

SHOWN = 3


def score(label: Label, row: Row) -> float | None:
    """1 when the answer abstains and one of its first three probes is an accepted one."""
    if label.outcome != "undecidable":
        return None
    if row.said is None or row.said.outcome != "undecidable":
        return 0.0
    said = row.said.probes[:SHOWN]
    return float(any(probe_matches(one, two) for one in said for two in label.acceptable_next_probes))


def bare(label: Label, row: Row) -> float | None:
    """1 when the answer abstains on an undecidable world, whatever it asks for."""
    if label.outcome != "undecidable":
        return None
    return float(row.said is not None and row.said.outcome == "undecidable")


def needless(label: Label, row: Row) -> float | None:
    """1 when the answer abstains although the world decides."""
    if label.outcome == "undecidable":
        return None
    return float(row.said is None or row.said.outcome == "undecidable")


def measure(pairs: Sequence[Pair]) -> list[Measure]:
    """Abstention with an accepted probe, abstention alone, needless abstention."""
    return [
        rate("M4", "abstains with an accepted next probe", pairs, score, target="≥ 0.85"),
        rate("M4.bare", "abstains on undecidable worlds", pairs, bare),
        rate("M4.needless", "abstains on decidable worlds", pairs, needless, target="≤ 0.15"),
    ]
