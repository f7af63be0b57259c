"""Collects readings of one metrics window, with the window in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tools.contract import Reading, Source
from tools.metrics.series import Ref, SeriesSet


class Maker:
    """Collects readings of one window. ``span_s`` is ``None`` when the clock of the scrapes is not known."""

    def __init__(self, series: SeriesSet, kind: str = "file") -> None:
        self.series = series
        self.kind = kind
        self.out: list[Reading] = []
        self.n = len(series.times)
        self.start, self.end = (series.times[0], series.times[-1]) if series.times else (0.0, 0.0)
        self.span_s = self.end - self.start if series.timed and self.n > 1 else None
        self.caveats: tuple[str, ...] = ()

    def put(
        self,
        fact: str,
        value: Any,
        method: str,
        ref: Ref | None = None,
        *,
        caveats: tuple[str, ...] = (),
        **labels: str,
    ) -> None:
        """Record one value; ``None`` values are simply not known and leave no trace."""
        if value is None:
            return
        if isinstance(value, float):
            value = round(value, 6)
        source = Source(kind=self.kind, ref=ref.ref if ref else "", line=ref.line if ref else 0)  # type: ignore[arg-type]
        window = (self.start, self.end) if self.n > 1 and self.series.timed else None
        self.out.append(
            Reading(
                fact=fact, value=value, source=source, method=method, window=window,
                labels=labels, caveats=self.caveats + caveats,
            )
        )  # fmt: skip

    def over(self) -> str:
        """The window in words."""
        if self.span_s is not None:
            return f"over {self.span_s:.0f} s between {self.n} scrapes"
        return f"between {self.n} scrapes of unknown time" if self.n > 1 else "one scrape"


def first_ref(series: SeriesSet) -> Ref | None:
    return Ref(series.refs[0], 0) if series.refs else None


def ref_of(series: SeriesSet, key: str, last: bool = True) -> Ref | None:
    tracks = series.all(key)
    if not tracks:
        return None
    return tracks[0].refs[-1 if last else 0]


def mean_of(values: list[float]) -> float:
    return sum(values) / len(values)


def pairs(
    steps: list[tuple[float, float]], times: list[float]
) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    previous = times[0] if times else 0.0
    for time, value in steps:
        yield (previous, 0.0), (time, value)
        previous = time
