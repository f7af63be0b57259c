"""The shipped public points: no hard floor above a measurement, errors of the typical estimate in bounds."""

from __future__ import annotations

from evals.bench.roofline import load, score


def test_public_points() -> None:
    rows = load()
    assert len(rows) >= 200
    assert len({row["id"] for row in rows}) == len(rows)
    for one in score(rows):
        assert one.hard == ()
        assert len(one.expected) <= 0.005 * one.count
        assert one.median <= 0.17
        assert one.mean <= 0.21
