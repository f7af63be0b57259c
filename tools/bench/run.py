"""One benchmark run as every parser of this package gives it, and the comparable rows made of it."""

from __future__ import annotations

import math
import re
from typing import Any

from msgspec import Struct

from tools.bench.fields import UNITS, Field
from tools.contract import Source

_NUMBER = re.compile(
    r"[~≈<>≤≥]?\s*([-+]?(?:\d{1,3}(?:[,'\u2019\u202f ]\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)(?:([kKM])(?![A-Za-z]))?"
)
_THOUSANDS = {"k": 1e3, "K": 1e3, "M": 1e6}
CONDITIONS = frozenset({"concurrency", "request_rate", "input_tokens", "output_tokens", "requested"})


class Run(Struct):
    """``metrics``: canonical key → value in the unit of :data:`tools.bench.fields.UNITS`. ``conditions``: what was set
    (concurrency, rate, lengths, backend, variant …) as text. ``lines``: line of each metric where it is known.
    ``missing``: fields that held no number (``N/A``, ``inf``, ``nan``), with what stood there.
    """

    name: str
    tool: str
    source: Source
    metrics: dict[str, float] = {}
    conditions: dict[str, str] = {}
    lines: dict[str, int] = {}
    missing: dict[str, str] = {}
    caveats: list[str] = []
    errors: dict[str, int] = {}
    lists: dict[str, list[float]] = {}
    rate_is_inf: bool = False
    retries: int | None = None
    approximate: set[str] = set()

    def put(self, found: Field, value: float, line: int = 0, *, over: bool = True) -> None:
        """Store a value under its canonical key and unit; counts, rates and latencies below zero are refused."""
        scaled = value * found.scale
        if found.key not in UNITS:
            self.conditions.setdefault(found.key, f"{value:g}")
            return
        if scaled < 0 or (not over and found.key in self.metrics):
            return
        self.metrics[found.key] = round(scaled, 9)
        if line:
            self.lines[found.key] = line


class Row(Struct, frozen=True, kw_only=True):
    """One number of one run, ready to be compared: ``metric`` is a fact name, ``conditions`` what was set."""

    metric: str
    value: float
    unit: str
    run: str
    conditions: dict[str, str]
    source: Source


def new_run(name: str, tool: str, ref: str, line: int = 0, span: str = "") -> Run:
    """A run with fresh containers."""
    return Run(
        name=name,
        tool=tool,
        source=Source(kind="file", ref=ref, line=line, span=span[:300]),
        metrics={},
        conditions={},
        lines={},
        missing={},
        caveats=[],
        errors={},
        lists={},
        approximate=set(),
    )


def number(value: Any) -> float | None:
    """A finite number from JSON or text (thousands separators, ``~``, a trailing unit or ``%``); ``None`` otherwise."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        try:
            number_ = float(value)
        except OverflowError:
            return None
        return number_ if math.isfinite(number_) else None
    if not isinstance(value, str):
        return None
    found = _NUMBER.match(value.strip()[:60])
    if not found:
        return None
    try:
        result = float(re.sub(r"[,'\u2019\u202f ]", "", found[1])) * _THOUSANDS.get(found[2] or "", 1.0)
    except ValueError:
        return None
    return result if math.isfinite(result) else None


def is_inf(value: Any) -> bool:
    """Whether a value says infinity."""
    if isinstance(value, float):
        return math.isinf(value)
    return isinstance(value, str) and value.strip().lower() in ("inf", "infinity", "+inf", "∞", "none (inf)")


def quantile(values: list[float], share: float) -> float:
    """Linear interpolation between the closest ranks of a sorted, non-empty list (as numpy's default)."""
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def spread(run: Run, family: str, values: list[float], factor: float) -> None:
    """Mean, median, p90, p95, p99, min and max of a list of samples, where the run does not state them itself."""
    clean = sorted(v * factor for v in values if math.isfinite(v) and v >= 0)
    if not clean:
        return
    stats = {"mean": sum(clean) / len(clean), "min": clean[0], "max": clean[-1]}
    stats |= {f"p{round(share * 100)}": quantile(clean, share) for share in (0.5, 0.9, 0.95, 0.99)}
    for stat, value in stats.items():
        key = f"{family}.{stat}_ms"
        if key in UNITS and key not in run.metrics:
            run.metrics[key] = round(value, 6)


def rows_of(run: Run) -> list[Row]:
    """All numbers of a run with its conditions; what was set is a condition, not a row."""
    conditions = dict(run.conditions)
    for key in ("concurrency", "request_rate"):
        if key in run.metrics:
            conditions.setdefault(key, f"{run.metrics[key]:g}")
    if run.rate_is_inf:
        conditions["request_rate"] = "inf"
    return [
        Row(
            metric=f"bench.{key}",
            value=value,
            unit=UNITS[key],
            run=run.name,
            conditions=conditions,
            source=Source(kind="file", ref=run.source.ref, line=run.lines.get(key, run.source.line)),
        )
        for key, value in run.metrics.items()
        if key not in ("concurrency", "request_rate", "requested")
    ]
