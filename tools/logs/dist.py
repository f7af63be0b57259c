"""Statistics of a series in constant memory: a distribution over rounded values, and an order-keeping summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

MAX_KEYS = 4096
MAX_NEW = 1024


def round_to(value: float, digits: int) -> float:
    """``value`` to a number of significant digits."""
    return float(f"{value:.{digits}g}")


class Dist:
    """Counts per value. Exact until 4096 different values, then values are kept to three significant digits.

    New values wait in a short list and are counted together: statistics lines come by the hundred thousand.
    """

    __slots__ = ("_counts", "_digits", "_max", "_min", "_n", "_new", "_total", "last")

    def __init__(self) -> None:
        self._counts: dict[float, int] = {}
        self._new: list[float] = []
        self._digits = 0
        self._n = 0
        self._total = 0.0
        self._min = float("inf")
        self._max = float("-inf")
        self.last = 0.0

    def add(self, value: float) -> None:
        """One finite value."""
        self.last = value
        self._new.append(value)
        if len(self._new) >= MAX_NEW:
            self._settle()

    def _settle(self) -> None:
        new = self._new
        if not new:
            return
        self._n += len(new)
        self._min, self._max = min(self._min, *new), max(self._max, *new)
        counts, digits = self._counts, self._digits
        for value, count in Counter(new).items():
            self._total += value * count
            key = round_to(value, digits) if digits else value
            counts[key] = counts.get(key, 0) + count
        new.clear()
        if len(counts) > MAX_KEYS:
            self._coarsen()

    def _coarsen(self) -> None:
        self._digits = 3 if not self._digits else 2
        merged: dict[float, int] = {}
        for value, count in self._counts.items():
            key = round_to(value, self._digits)
            merged[key] = merged.get(key, 0) + count
        self._counts = merged

    @property
    def n(self) -> int:
        """How many values came."""
        return self._n + len(self._new)

    @property
    def total(self) -> float:
        """Their sum."""
        self._settle()
        return self._total

    @property
    def min(self) -> float:
        """The least value; infinity before any came."""
        self._settle()
        return self._min

    @property
    def max(self) -> float:
        """The greatest value; minus infinity before any came."""
        self._settle()
        return self._max

    @property
    def mean(self) -> float:
        """Arithmetic mean; 0 of an empty distribution is a caller's error, so it raises ``ZeroDivisionError``."""
        return self.total / self.n

    def quantile(self, share: float) -> float:
        """Nearest-rank quantile of a non-empty distribution."""
        self._settle()
        rank = max(1, round(share * self._n + 0.4999))
        seen = 0
        for value in sorted(self._counts):
            seen += self._counts[value]
            if seen >= rank:
                return min(max(value, self.min), self.max)
        return self.max

    def count(self, holds: Callable[[float], bool]) -> int:
        """How many values satisfy a predicate."""
        self._settle()
        return sum(count for value, count in self._counts.items() if holds(value))


class Ordered:
    """Means of consecutive stretches of a series: at most 512 stretches, merged in pairs when full."""

    __slots__ = ("_open", "_size", "_stretches")

    def __init__(self, size: int = 512) -> None:
        self._stretches: list[tuple[float, int]] = []
        self._size = size
        self._open = 1

    def add(self, value: float) -> None:
        """The next value in time."""
        stretches = self._stretches
        if stretches and stretches[-1][1] < self._open:
            total, count = stretches[-1]
            stretches[-1] = (total + value, count + 1)
            return
        if len(stretches) >= self._size:
            self._stretches = stretches = [
                (stretches[i][0] + stretches[i + 1][0], stretches[i][1] + stretches[i + 1][1])
                for i in range(0, len(stretches) - 1, 2)
            ]
            self._open *= 2
        stretches.append((value, 1))

    @property
    def n(self) -> int:
        """How many values came."""
        return sum(count for _, count in self._stretches)

    def thirds(self, least: int = 6) -> tuple[float, float] | None:
        """Mean of the first third and of the last third; ``None`` under ``least`` values."""
        total = self.n
        if total < least:
            return None
        return self._mean(0, total // 3), self._mean(total - total // 3, total)

    def halves(self) -> tuple[float, float] | None:
        """Mean of the first half and of the second; ``None`` under four values."""
        total = self.n
        return (self._mean(0, total // 2), self._mean(total // 2, total)) if total >= 4 else None

    def _mean(self, start: int, end: int) -> float:
        at, summed, weight = 0, 0.0, 0.0
        for value, count in self._stretches:
            overlap = min(end, at + count) - max(start, at)
            if overlap > 0:
                summed += value / count * overlap
                weight += overlap
            at += count
        return summed / weight if weight else 0.0
