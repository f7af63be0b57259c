"""Series over real time: counters to deltas with reset handling, gauges pooled over engines, histogram windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from msgspec import Struct, field

from tools.metrics.exposition import Labels, Page
from tools.metrics.names import canonical, engine_of, lookup

_IDENTITY = (
    "engine",
    "model_name",
    "instance",
    "pod",
    "replica",
    "ReplicaId",
    "job",
    "namespace",
    "dp_rank",
    "tp_rank",
)


# Labels that tell deployments' processes apart by where they run; the others number ranks within one.
PLACES = ("instance", "pod", "replica", "ReplicaId", "namespace")


class Ref(Struct, frozen=True):
    """Where a point stands: file (or query) and line."""

    ref: str
    line: int


class Track(Struct):
    """One exposed series over time: ``times`` in seconds, ``values``, ``refs`` of the same length."""

    labels: dict[str, str]
    name: str
    times: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    refs: list[Ref] = field(default_factory=list)

    def delta(self) -> tuple[float, int]:
        """Increase over the window and the number of counter resets. A drop means a restart: the new value counts."""
        total, resets = 0.0, 0
        for before, after in zip(self.values, self.values[1:], strict=False):
            if after < before:
                resets += 1
                total += after
            else:
                total += after - before
        return total, resets

    def who(self) -> str:
        """The engine or replica this belongs to, empty when there is only the default."""
        return "/".join(
            self.labels[key] for key in _IDENTITY if key in self.labels and key not in ("model_name", "job")
        )


class Window(Struct, frozen=True):
    """A histogram over the window: count, sum (unit of the series), ``buckets`` of (upper bound, observations ≤ it)."""

    count: float
    total: float
    buckets: tuple[tuple[float, float], ...]
    refs: tuple[Ref, Ref]
    resets: int = 0

    def mean(self) -> float | None:
        """sum / count; ``None`` when nothing was observed."""
        return self.total / self.count if self.count > 0 else None

    def quantile(self, q: float) -> tuple[float, str, tuple[str, ...]] | None:
        """``(value, method, caveats)`` by linear interpolation in the bucket; ``None`` when nothing was observed."""
        total = self.buckets[-1][1] if self.buckets else 0.0
        if total <= 0:
            return None
        rank, low, below = q * total, 0.0, 0.0
        for bound, upto in self.buckets:
            if upto >= rank and upto > below:
                if math.isinf(bound):
                    return (
                        low,
                        f"p{q * 100:g} lies beyond the last bucket",
                        (f"at least {low:g}: beyond the last bucket",),
                    )
                value = low + (bound - low) * (rank - below) / (upto - below)
                note = (f"anywhere in 0–{bound:g}: first bucket, interpolated",) if low == 0.0 else ()
                return value, f"p{q * 100:g} by linear interpolation in bucket {low:g}–{bound:g}", note
            low, below = (bound if not math.isinf(bound) else low), upto
        return None


class SeriesSet(Struct):
    """All wanted series of some scrapes. ``timed`` false means the order is known and the clock is not."""

    tracks: dict[str, dict[tuple[str, Labels], Track]] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    timed: bool = True
    engines: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    refs: list[str] = field(default_factory=list)

    def add_page(self, page: Page, ref: str, time: float) -> None:
        """Append one scrape taken at ``time`` (seconds)."""
        self.times.append(time)
        self.refs.append(ref)
        for (name, labels), sample in page.samples.items():
            self.add_point(name, labels, time, sample.value, Ref(ref, sample.line))

    def add_point(self, name: str, labels: Labels, time: float, value: float, ref: Ref) -> None:
        """Append one point of one exposed series; names nobody asked for are dropped."""
        found = lookup(name)
        if found is None or math.isnan(value):
            return
        engine = engine_of(name)
        if engine:
            self.engines.add(engine)
        table = self.tracks.setdefault(found[0] + found[1], {})
        track = table.get((name, labels))
        if track is None:
            track = Track(dict(labels), name)
            table[(name, labels)] = track
            if "model_name" in track.labels:
                self.models.add(track.labels["model_name"])
        track.times.append(time)
        track.values.append(value)
        track.refs.append(ref)

    def has(self, key: str) -> bool:
        """Whether any series of this canonical id is there."""
        return any(self.tracks.get(key + suffix) for suffix in ("", "_count"))

    def all(self, key: str) -> list[Track]:
        """Tracks of one canonical id. Where a rename overlaps (old and new name both exposed) the first name wins."""
        table = self.tracks.get(key, {})
        if not table:
            return []
        base = key.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")
        names = canonical()[base].names if base in canonical() else []
        present = {name for name, _ in table}
        for wanted in names:
            mine = [n for n in present if n.startswith(wanted) or n.replace("_", ":", 1).startswith(wanted)]
            if mine:
                exact = [t for (n, _), t in table.items() if n in mine]
                if exact:
                    return exact
        return list(table.values())

    def pooled(self, key: str, **match: str) -> list[tuple[float, float]]:
        """``(time, value)`` pooled over engines at each scrape by the series' ``combine``."""
        how = canonical()[key].combine
        points: dict[float, list[float]] = {}
        for track in self.all(key):
            if all(track.labels.get(k) == v for k, v in match.items()):
                for time, value in zip(track.times, track.values, strict=True):
                    points.setdefault(time, []).append(value)
        joins: dict[str, Callable[[list[float]], float]] = {"sum": sum, "max": max, "min": min, "mean": mean}
        join = joins[how]
        return [(time, float(join(values))) for time, values in sorted(points.items())]

    def delta(self, key: str, **match: str) -> tuple[float, int, tuple[Ref, Ref]] | None:
        """Summed increase over engines, resets, first and last reference; ``None`` without two points."""
        total, resets, refs = 0.0, 0, None
        for track in self.all(key):
            born = self._born_late(track)
            if (len(track.values) < 2 and not born) or any(track.labels.get(k) != v for k, v in match.items()):
                continue
            grown, again = track.delta()
            grown += track.values[0] if born else 0.0
            total, resets = total + grown, max(resets, again)
            refs = refs or (track.refs[0], track.refs[-1])
        return (total, resets, refs) if refs else None

    def _born_late(self, track: Track) -> bool:
        """A labelled counter that appears after the first good scrape started from zero in between."""
        return bool(self.refs) and len(self.times) > 1 and track.times[0] > self.times[0]

    def steps(self, key: str) -> list[tuple[float, float]]:
        """``(time, increase since the scrape before)`` summed over engines, for rates inside the window."""
        points: dict[float, float] = {}
        for track in self.all(key):
            for i in range(1, len(track.values)):
                grown = track.values[i] - track.values[i - 1]
                points[track.times[i]] = points.get(track.times[i], 0.0) + (grown if grown >= 0 else track.values[i])
        return sorted(points.items())

    def values_of(self, key: str, label: str) -> list[str]:
        """Distinct values of a label over the tracks of a series."""
        return sorted({t.labels[label] for t in self.all(key) if label in t.labels})

    def window(self, key: str, since_start: bool = False) -> Window | None:
        """The histogram's increase over the window, pooled over engines.

        ``since_start``: the raw totals of a single scrape (averages since the process started).
        """
        counts, sums = self.all(key + "_count"), self.all(key + "_sum")
        if not counts or not sums:
            return None
        grow = _last if since_start else _grown
        if not since_start and all(len(t.values) < 2 for t in counts):
            return None
        buckets: dict[float, float] = {}
        for track in self.all(key + "_bucket"):
            try:
                bound = float(track.labels.get("le", "nan"))
            except ValueError:
                continue
            if not math.isnan(bound):
                buckets[bound] = buckets.get(bound, 0.0) + grow(track)
        resets = max((t.delta()[1] for t in counts), default=0)
        return Window(
            sum(grow(t) for t in counts),
            sum(grow(t) for t in sums),
            tuple(sorted(buckets.items())),
            (counts[0].refs[0], counts[0].refs[-1]),
            resets,
        )


def pool_tokens(labels: dict[str, str]) -> float:
    """KV pool that the labels of ``cache_config_info`` tell, in tokens; 0 when they do not."""
    try:
        blocks = float(labels.get("num_gpu_blocks") or 0) * float(labels.get("block_size") or 0)
        return float(labels.get("kv_cache_size_tokens") or 0) or blocks
    except ValueError:
        return 0.0


def _grown(track: Track) -> float:
    return track.delta()[0] if len(track.values) > 1 else 0.0


def _last(track: Track) -> float:
    return track.values[-1]


def mean(values: list[float]) -> float:
    """Arithmetic mean of a list that is not empty."""
    return sum(values) / len(values)


def median(values: Iterable[float]) -> float:
    """Middle value of a non-empty sequence."""
    ordered = sorted(values)
    size = len(ordered)
    mid = size // 2
    return ordered[mid] if size % 2 else (ordered[mid - 1] + ordered[mid]) / 2
