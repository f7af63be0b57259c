"""M12: take the decisive files away and it must abstain; repair the one causal reading and it must clear."""

from __future__ import annotations

from collections.abc import Sequence

from evals.rows import Row
from evals.schema import Label
from evals.scorers import m01_family
from evals.scorers.base import Measure, Pair, rate

TARGET = "≥ 0.90"


def removed(label: Label, row: Row) -> float | None:
    """1 when a right answer turns into an abstention without its decisive files. Wrong answers have no say."""
    if row.without is None or m01_family.score(label, row) != 1.0:
        return None
    return float(row.without.outcome == "undecidable")


def measure(pairs: Sequence[Pair]) -> list[Measure]:
    """Both directions and their union. A twin counts when its original was right."""
    solved = {p.label.id for p in pairs if m01_family.score(*p) == 1.0}

    def cleared(label: Label, row: Row) -> float | None:
        if label.relation != "healed_twin" or label.derived_from not in solved:
            return None
        return float(row.said is not None and row.said.outcome != "incident")

    def calm(label: Label, row: Row) -> float | None:
        if cleared(label, row) is None:
            return None
        return float(row.said is not None and row.said.outcome in ("healthy", "theoretical_limit"))

    def kept(label: Label, row: Row) -> float | None:
        """A withheld variant of a solved case, made by hand, is a removal too."""
        if label.relation != "withheld" or label.derived_from not in solved:
            return None
        return float(row.said is not None and row.said.outcome == "undecidable")

    def either(label: Label, row: Row) -> float | None:
        for one in (removed, cleared, kept):
            value = one(label, row)
            if value is not None:
                return value
        return None

    return [
        rate("M12", "counterfactual: abstains or clears", pairs, either, target=TARGET),
        rate("M12.removed", "decisive files removed → abstains", pairs, removed),
        rate("M12.withheld", "withheld variant → abstains", pairs, kept),
        rate("M12.healed", "healed twin → no fault named", pairs, cleared),
        rate("M12.calm", "healed twin → called healthy", pairs, calm),
    ]
