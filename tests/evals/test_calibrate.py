"""The fitted curve is monotone, honest on the other half, and cannot lift a cap."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from agent.belief import stated
from evals import calibrate
from evals.rows import CauseSaid, Row, Said
from evals.run import Finished, Meta
from evals.scorers.base import Pair
from tests.evals.conftest import make_label


def _pairs(
    n: int, true_rate: float, said: float, basis: str = "readings", first: int = 0
) -> tuple[list[Pair], dict[str, float]]:
    rng = random.Random(1)
    pairs, raw = [], {}
    for i in range(first, first + n):
        case = f"case-{i:04d}"
        family = "sequence_limit" if rng.random() < true_rate else "overload"
        cause = CauseSaid(family=family, layer="scheduling", confidence=said, verdict="supported", role="root")
        answer = Said(outcome="incident", confidence=said, basis=basis, causes=[cause])
        pairs.append(Pair(make_label(case), Row(case=case, arm="rules-only", said=answer)))
        raw[case] = said
    return pairs, raw


def test_overconfident_answers_are_told_lower_on_the_other_half() -> None:
    pairs, raw = _pairs(200, 0.6, 0.95)
    found = calibrate.fit(pairs, raw)
    assert found.before["ece"] > 0.25
    assert found.after["ece"] < 0.15
    assert found.fit_n + found.test_n == 200


def test_ties_are_one_point_and_blocks_rise() -> None:
    points = [(0.6, 1.0)] * 5 + [(0.6, 0.0)] * 5 + [(0.8, 0.0)] * 10 + [(0.9, 1.0)] * 10
    blocks = calibrate.isotonic(points)
    assert blocks == [(pytest.approx(0.7), pytest.approx(0.25), 20), (pytest.approx(0.9), 1.0, 10)]


def test_curve_is_monotone_and_identity_without_knots() -> None:
    knots = [(0.5, 0.4), (0.7, 0.6), (0.9, 0.85)]
    values = [stated(x / 50, knots) for x in range(51)]
    assert values == sorted(values)
    assert stated(0.0, knots) == 0.0
    assert stated(1.0, knots) == 0.85
    assert stated(0.6, knots) == pytest.approx(0.5)
    assert stated(0.37, []) == 0.37


def test_too_few_answers_are_refused() -> None:
    pairs, raw = _pairs(20, 1.0, 0.9)
    with pytest.raises(ValueError, match="too few"):
        calibrate.fit(pairs, raw)


def test_halves_split_by_origin() -> None:
    sides = {calibrate.half(f"case-{i}") for i in range(40)}
    assert sides == {0, 1}
    assert calibrate.half("lab-s08") == calibrate.half("lab-s08")


def test_words_have_a_curve_of_their_own() -> None:
    shown, raw = _pairs(100, 0.9, 0.9)
    told, more = _pairs(100, 0.4, 0.9, "words", 100)
    found = calibrate.fit([*shown, *told], {**raw, **more})
    assert found.knots["readings"][0][1] > 0.75
    assert found.knots["words"][0][1] < 0.55
    assert found.after["ece"] < found.before["ece"]
    few, some = _pairs(10, 0.4, 0.9, "words", 100)
    with pytest.raises(ValueError, match="rest on words"):
        calibrate.fit([*shown, *few], {**raw, **some})


def test_blind_cases_are_left_out() -> None:
    pairs, raw = _pairs(100, 0.9, 0.9)
    unread, more = _pairs(100, 0.0, 0.9, "readings", 100)
    for pair in unread:
        pair.label.blind = "plan"
    assert calibrate.fit([*pairs, *unread], {**raw, **more}) == calibrate.fit(pairs, raw)


def test_write_changes_its_own_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "calibration.yaml"
    path.write_text('prior: -2.5\ncurve: [[0.1, 0.1]]\nbands: {a: 1}\ncurves_fitted_on: "x"\nfitted_on: "y"\n')
    pairs, raw = _pairs(100, 0.7, 0.8)
    told, more = _pairs(100, 0.4, 0.9, "words", 100)
    meta = Meta(
        run="r", arms=["rules-only"], repeats={"rules-only": 1}, cases=[], set_hash="abc", knowledge="k", inferdx="0"
    )
    finished = Finished(meta=meta, rows=[], cases={}, folder=tmp_path)
    calibrate.write(calibrate.fit([*pairs, *told], {**raw, **more}), finished, "2026-01-01", path)
    lines = path.read_text().splitlines()
    assert lines[:3] == ["prior: -2.5", "bands: {a: 1}", 'fitted_on: "y"']
    assert lines[3].startswith("curve: [[")
    assert lines[4].startswith("curve_words: [[")
    assert "abc" in lines[5] and "2026-01-01" in lines[5]
    assert len(lines) == 6
