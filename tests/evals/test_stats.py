"""Intervals and tests against values worked out elsewhere."""

from __future__ import annotations

import pytest

from evals import stats


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(18, 20, 0.699, 0.972), (54, 60, 0.799, 0.953), (0, 30, 0.0, 0.1135), (5, 5, 0.5655, 1.0)],
)
def test_wilson(hits: int, n: int, low: float, high: float) -> None:
    assert stats.wilson(hits, n) == pytest.approx((low, high), abs=0.001)


def test_wilson_of_nothing_says_nothing() -> None:
    assert stats.wilson(0, 0) == (0.0, 1.0)


def test_mcnemar_is_exact_and_two_sided() -> None:
    one = [True] * 8 + [False] * 1 + [True] * 5
    two = [False] * 8 + [True] * 1 + [True] * 5
    assert stats.mcnemar(one, two) == (8, 1, pytest.approx(2 * (1 + 9) / 512))
    assert stats.mcnemar([True], [True]) == (0, 0, 1.0)


def test_cluster_bootstrap_widens_when_copies_share_an_origin() -> None:
    values = [1.0, 0.0] * 20
    apart = stats.cluster_bootstrap(values, [str(i) for i in range(40)])
    together = stats.cluster_bootstrap(values, ["a" if v else "b" for v in values])
    assert together[1] - together[0] > apart[1] - apart[0]
    assert apart == stats.cluster_bootstrap(values, [str(i) for i in range(40)])


def test_ece_brier_and_risk_coverage() -> None:
    sure = [0.9] * 10 + [0.1] * 10
    assert stats.ece(sure, [True] * 9 + [False] + [False] * 9 + [True], bins=2) == pytest.approx(0.0)
    assert stats.ece([1.0] * 10, [False] * 10) == pytest.approx(1.0)
    assert stats.brier([0.8, 0.2], [True, False]) == pytest.approx(0.04)
    points, area = stats.risk_coverage([0.9, 0.8, 0.1], [True, True, False])
    assert points == [(pytest.approx(1 / 3), 0.0), (pytest.approx(2 / 3), 0.0), (1.0, pytest.approx(1 / 3))]
    assert area == pytest.approx(1 / 9)


def test_bins_hold_equal_counts() -> None:
    bins = stats.equal_count_bins([i / 23 for i in range(23)], [True] * 23)
    assert [b.n for b in bins] == [4, 5, 4, 5, 5]


def test_entropy_and_percentile() -> None:
    assert stats.entropy(["a", "a"]) == 0.0
    assert stats.entropy(["a", "b"]) == pytest.approx(1.0)
    assert stats.percentile([1.0, 2.0, 3.0, 4.0], 50) == 2.5
    assert stats.percentile([], 50) == 0.0


def test_ece_does_not_depend_on_the_order_of_ties() -> None:
    sure = [0.6] * 20
    right = [True] * 12 + [False] * 8
    assert stats.ece(sure, right) == pytest.approx(0.0)
    assert stats.ece(sure, right[::-1]) == pytest.approx(0.0)
