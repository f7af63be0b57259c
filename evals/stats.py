"""Intervals and tests: Wilson, bootstrap clustered by origin, exact McNemar, calibration error, risk–coverage."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

Z95 = 1.959963984540054
SEED = 20260101


def wilson(hits: float, n: int, z: float = Z95) -> tuple[float, float]:
    """95 % Wilson interval of a rate; ``(0, 1)`` for no observations. ``hits`` may be fractional (mean of scores)."""
    if n <= 0:
        return 0.0, 1.0
    p = hits / n
    centre = p + z * z / (2 * n)
    spread = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = (centre - spread) / (1 + z * z / n), (centre + spread) / (1 + z * z / n)
    return (0.0 if hits <= 0 else max(0.0, low)), (1.0 if hits >= n else min(1.0, high))


def cluster_bootstrap(values: Sequence[float], clusters: Sequence[str], draws: int = 1000) -> tuple[float, float]:
    """95 % percentile interval of the mean, whole clusters (origins) drawn with replacement. Fixed seed."""
    if not values:
        return 0.0, 1.0
    import numpy as np

    names = {name: i for i, name in enumerate(dict.fromkeys(clusters))}
    sums, sizes = np.zeros(len(names)), np.zeros(len(names))
    for value, cluster in zip(values, clusters, strict=True):
        sums[names[cluster]] += value
        sizes[names[cluster]] += 1
    rng = np.random.default_rng(SEED)
    picks = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=draws)
    means = (picks @ sums) / np.maximum(picks @ sizes, 1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def paired_bootstrap(
    one: Sequence[float], two: Sequence[float], clusters: Sequence[str], draws: int = 1000
) -> tuple[float, float, float]:
    """``(mean difference two − one, low, high)`` over the same cases, clustered."""
    diffs = [b - a for a, b in zip(one, two, strict=True)]
    low, high = cluster_bootstrap(diffs, clusters, draws)
    return (sum(diffs) / len(diffs) if diffs else 0.0), low, high


def mcnemar(one: Sequence[bool], two: Sequence[bool]) -> tuple[int, int, float]:
    """``(only one right, only two right, exact two-sided p)``."""
    a = sum(x and not y for x, y in zip(one, two, strict=True))
    b = sum(y and not x for x, y in zip(one, two, strict=True))
    n, k = a + b, min(a, b)
    if n == 0:
        return a, b, 1.0
    tail: float = sum(math.comb(n, i) for i in range(k + 1)) / 2**n
    return a, b, min(1.0, 2 * tail)


class Bin(Struct):
    """A bin of the reliability diagram."""

    n: int
    confidence: float
    accuracy: float
    low: float
    high: float


def equal_count_bins(confidence: Sequence[float], right: Sequence[bool], bins: int = 5) -> list[Bin]:
    """Bins of equal count, from least to most sure. Answers of equal confidence share their mean outcome, so that it does
    not matter in which order a tie is cut by the edge of a bin."""
    tied: dict[float, list[float]] = {}
    for sure, hit in zip(confidence, right, strict=True):
        tied.setdefault(sure, []).append(float(hit))
    came = {sure: sum(hits) / len(hits) for sure, hits in tied.items()}
    order = sorted(range(len(confidence)), key=lambda i: (confidence[i], i))
    out: list[Bin] = []
    for b in range(min(bins, len(order))):
        part = order[b * len(order) // bins : (b + 1) * len(order) // bins]
        if part:
            hits = sum(came[confidence[i]] for i in part)
            low, high = wilson(hits, len(part))
            mean = sum(confidence[i] for i in part) / len(part)
            out.append(Bin(n=len(part), confidence=mean, accuracy=hits / len(part), low=low, high=high))
    return out


def ece(confidence: Sequence[float], right: Sequence[bool], bins: int = 5) -> float:
    """Expected calibration error over equal-count bins. Biased upwards for few answers: read it with its n."""
    table = equal_count_bins(confidence, right, bins)
    n = sum(b.n for b in table)
    return sum(b.n * abs(b.confidence - b.accuracy) for b in table) / n if n else 0.0


def brier(confidence: Sequence[float], right: Sequence[bool]) -> float:
    """Mean squared difference of confidence and outcome; 0 for none."""
    if not confidence:
        return 0.0
    return sum((c - float(r)) ** 2 for c, r in zip(confidence, right, strict=True)) / len(confidence)


def risk_coverage(confidence: Sequence[float], right: Sequence[bool]) -> tuple[list[tuple[float, float]], float]:
    """``([(coverage, risk)…], area)``: errors among the answers that are at least so sure, most sure first."""
    order = sorted(range(len(confidence)), key=lambda i: (-confidence[i], right[i]))
    points: list[tuple[float, float]] = []
    wrong = 0
    for rank, i in enumerate(order, 1):
        wrong += not right[i]
        points.append((rank / len(order), wrong / rank))
    area = sum(risk for _, risk in points) / len(points) if points else 0.0
    return points, area


def percentile(values: Sequence[float], q: float) -> float:
    """Linear-interpolated percentile, ``q`` in 0–100; 0 for none."""
    if not values:
        return 0.0
    ordered = sorted(values)
    place = (len(ordered) - 1) * q / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def entropy(answers: Sequence[str]) -> float:
    """Shannon entropy in bits of repeated answers to one case; 0 when they agree."""
    counts = [answers.count(a) for a in dict.fromkeys(answers)]
    return -sum(c / len(answers) * math.log2(c / len(answers)) for c in counts) if len(counts) > 1 else 0.0
