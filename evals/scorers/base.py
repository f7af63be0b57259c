"""What scorers share: a label beside a row, a mean per case, a rate with its two intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from evals.rows import Row
from evals.schema import Label
from evals.stats import cluster_bootstrap, wilson


class Pair(NamedTuple):
    """One answer beside the truth."""

    label: Label
    row: Row


PerCase = Callable[[Label, Row], float | None]


class Measure(Struct, kw_only=True):
    """One number of a report. ``low``/``high``: Wilson interval for rates; ``boot``: clustered by origin.

    ``target`` is the aim in words and ``met`` whether the value reaches it (``None`` for a number that is only shown).
    ``right``: case → score, for the numbers that are a mean over cases.
    """

    id: str
    name: str
    value: float
    n: int
    low: float | None = None
    high: float | None = None
    boot: tuple[float, float] | None = None
    target: str = ""
    met: bool | None = None
    unit: str = "rate"
    note: str = ""
    right: dict[str, float] = field(default_factory=dict)


def per_case(pairs: Sequence[Pair], score: PerCase) -> dict[str, tuple[float, str]]:
    """Case → (mean score over its repeats, origin). Cases for which the scorer has no say are left out."""
    found: dict[str, list[float]] = {}
    origin: dict[str, str] = {}
    for label, row in pairs:
        value = score(label, row)
        if value is not None:
            found.setdefault(label.id, []).append(value)
            origin[label.id] = label.origin
    return {case: (sum(values) / len(values), origin[case]) for case, values in found.items()}


def rate(
    id: str, name: str, pairs: Sequence[Pair], score: PerCase, *, target: str = "", note: str = "", boot: bool = True
) -> Measure:
    """Mean over cases with Wilson and clustered bootstrap intervals. Repeats are not new cases."""
    table = per_case(pairs, score)
    values = [value for value, _ in table.values()]
    total, n = sum(values), len(values)
    low, high = wilson(total, n)
    value = total / n if n else 0.0
    interval = cluster_bootstrap(values, [o for _, o in table.values()]) if boot and n else None
    return Measure(
        id=id, name=name, value=value, n=n, low=low, high=high, boot=interval, target=target, met=meets(value, target, n),
        note=note, right={case: v for case, (v, _) in table.items()},
    )  # fmt: skip


def meets(value: float, target: str, n: int) -> bool | None:
    """Whether ``value`` reaches a target such as ``≥ 0.80``; ``None`` without a target or without cases."""
    if not target or not n:
        return None
    sign, _, number = target.partition(" ")
    edge = float(number)
    return {"≥": value >= edge - 1e-9, "≤": value <= edge + 1e-9, "=": abs(value - edge) < 1e-9}[sign]


def files_group(name: str) -> str:
    """Scrapes of one series count as one file: ``metrics-003.prom.gz`` → ``metrics-#.prom``."""
    import re

    return re.sub(r"\d+", "#", name.removesuffix(".gz"))
