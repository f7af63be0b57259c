"""Fits what :mod:`agent.belief` says about how sure it is: on one half of the origins, reported on the other.

Fitted: monotone curves from raw confidence to the share that came true (isotonic regression over committed answers of
the fit half), one for verdicts that a reading shows, one for those that rest on a person's words alone. Weights,
thresholds and caps stay: verdicts do not move, only what is said of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from agent.belief import stated
from evals.run import Finished
from evals.scorers import m08_calibration as m08
from evals.scorers.base import Pair
from evals.stats import brier, ece, risk_coverage
from knowledge.loader import ROOT

SALT = "calibration-half-1"
MIN_BLOCK = 8
LEAST = 20
# What a verdict rests on, and the line of the file that holds its curve.
BASES = ("readings", "words")
LINES = {"readings": "curve:", "words": "curve_words:"}


class Fit(Struct, kw_only=True):
    """Fitted curves by basis (``readings``, ``words``) and how they do on both halves. Knots: ``(raw, said)``, both rising."""

    knots: dict[str, list[tuple[float, float]]]
    fit_n: int
    test_n: int
    before: dict[str, float]
    after: dict[str, float]
    fit_after: dict[str, float]


def half(origin: str) -> int:
    """0: fit, 1: report. By a hash of the origin, so that twins never straddle the halves."""
    return hashlib.sha256(f"{SALT}:{origin}".encode()).digest()[0] % 2


def isotonic(points: Sequence[tuple[float, float]]) -> list[tuple[float, float, int]]:
    """Pool adjacent violators: ``(mean raw, mean outcome, n)`` of each block, rising in both; ties are one point."""
    tied: dict[float, list[float]] = {}
    for raw, outcome in points:
        tied.setdefault(raw, []).append(outcome)
    blocks: list[list[float]] = []
    for raw in sorted(tied):
        n = len(tied[raw])
        blocks.append([raw * n, sum(tied[raw]), float(n)])
        while len(blocks) > 1 and (
            blocks[-2][1] / blocks[-2][2] >= blocks[-1][1] / blocks[-1][2] or blocks[-2][2] < MIN_BLOCK
        ):
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    if len(blocks) > 1 and blocks[-1][2] < MIN_BLOCK:
        last = blocks.pop()
        blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    return [(raw / n, outcome / n, int(n)) for raw, outcome, n in blocks]


def knots_of(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Knots of the curve: block means shrunk a little to the middle (one success and one failure added), ends closed."""
    blocks = isotonic(points)
    knots = [(round(raw, 4), round((value * n + 1) / (n + 2), 4)) for raw, value, n in blocks]
    rising: list[tuple[float, float]] = []
    for raw, value in knots:
        if rising and (raw <= rising[-1][0] or value < rising[-1][1]):
            continue
        rising.append((raw, value))
    return rising


def _numbers(sure: Sequence[float], right: Sequence[bool]) -> dict[str, float]:
    return {
        "ece": round(ece(sure, right), 4),
        "brier": round(brier(sure, right), 4),
        "aurc": round(risk_coverage(sure, right)[1], 4),
    }


def fit(pairs: Sequence[Pair], raw: dict[str, float]) -> Fit:
    """Fit on half 0, report on half 1. ``raw``: case → confidence before any curve or cap of words.

    Raises ``ValueError`` when a half has fewer than 20 committed answers of either basis.
    """
    sides: list[list[Pair]] = [[], []]
    for pair in pairs:
        said = pair.row.said
        if pair.row.repeat == 0 and said is not None and said.outcome != "undecidable" and not pair.label.blind:
            sides[half(pair.label.origin)].append(pair)
    knots: dict[str, list[tuple[float, float]]] = {}
    for basis in BASES:
        counts = [sum(_basis(p) == basis for p in side) for side in sides]
        if sum(counts) > 0 and min(counts) < LEAST:
            raise ValueError(f"too few committed answers that rest on {basis}: {counts[0]} and {counts[1]}")
        mine = [p for p in sides[0] if _basis(p) == basis]
        if mine:
            knots[basis] = knots_of([(raw[p.label.id], float(m08.right(*p))) for p in mine])
    if not knots:
        raise ValueError("no committed answers to calibrate on")
    hits = [[m08.right(*p) for p in side] for side in sides]
    said_now = [[stated(raw[p.label.id], knots[_basis(p)]) for p in side] for side in sides]
    return Fit(
        knots=knots, fit_n=len(sides[0]), test_n=len(sides[1]),
        before=_numbers([raw[p.label.id] for p in sides[1]], hits[1]), after=_numbers(said_now[1], hits[1]),
        fit_after=_numbers(said_now[0], hits[0]),
    )  # fmt: skip


def _basis(pair: Pair) -> str:
    return pair.row.said.basis or BASES[0] if pair.row.said is not None else BASES[0]


def raw_confidences(finished: Finished, arm: str) -> dict[str, float]:
    """Confidence of each answer as stated in a run that was made without a curve."""
    return {
        p.label.id: p.row.said.confidence for p in finished.pairs(arm) if p.row.said is not None and p.row.repeat == 0
    }


def write(result: Fit, finished: Finished, date: str, path: Path = ROOT / "calibration.yaml") -> Path:
    """Put the curves, and what they came from, into ``knowledge/calibration.yaml``; all other lines stay as they are."""
    origin = (
        f"isotonic over {result.fit_n} committed answers of half 0 of set {finished.meta.set_hash}, {date}; "
        f"half 1 (n {result.test_n}): ECE {result.before['ece']} → {result.after['ece']}"
    )
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    kept = [x for x in lines if not x.startswith((*LINES.values(), "curves_fitted_on:"))]
    for basis, knots in result.knots.items():
        kept.append(f"{LINES[basis]} [{', '.join(f'[{x:g}, {y:g}]' for x, y in knots)}]")
    kept.append(f'curves_fitted_on: "{origin}"')
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return path
