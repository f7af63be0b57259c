"""All fixtures of all rules, the mutation check and the speed of the screen."""

from __future__ import annotations

import statistics

from agent.fixtures import read, run
from agent.mutants import check
from evals.bench.screen import MOST_MS, measure
from knowledge import load
from knowledge.lint_fixtures import NEEDED
from knowledge.loader import ROOT


def test_every_rule_has_a_firing_a_clear_and_a_missing_input_fixture() -> None:
    fixtures = read([ROOT])
    gaps = {
        key: [state for state in NEEDED if state not in {item.expect for item in fixtures.get(key, [])}]
        for key in load().rules
    }
    assert {key: states for key, states in gaps.items() if states} == {}


def test_all_fixtures_come_out_as_they_say() -> None:
    assert [failure.line() for failure in run(load(), read([ROOT]))] == []


def test_a_changed_condition_breaks_a_fixture() -> None:
    report = check(load(), read([ROOT]))
    assert report.mutants > 300
    assert report.share() <= 0.02, [survivor.line() for survivor in report.survivors]


def test_screening_two_thousand_readings_takes_under_fifty_milliseconds() -> None:
    assert statistics.median(measure(load(), repeats=7)) < MOST_MS
