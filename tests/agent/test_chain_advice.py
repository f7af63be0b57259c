"""Roots before what they drive, and advice that never pulls one flag both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.advice import advise, contradictions
from agent.belief import Hypothesis
from agent.chain import drivers, effects, felt, order
from agent.diagnosis import ActionAdvice
from agent.fixtures import ledger_of
from agent.investigate import investigate, make_env
from agent.sources import Sources
from evals.schema import CASES, LABELS
from knowledge import load
from knowledge.loader import read_yaml
from knowledge.schema import Action, Knowledge
from tests.agent.small_knowledge import NOTE, knowledge, rule

SHIPPED = load()


def held(family: str, confidence: float, **fields: Any) -> Hypothesis:
    base: dict[str, Any] = {"key": family, "outcome": "incident", "layer": "memory"}
    return Hypothesis(**{**base, "family": family, "confidence": confidence, **fields})


def action(flag: str, direction: str, words: str, **fields: Any) -> Action:
    text = type(NOTE)(en=words, zh=words)
    return Action(do=text, gain="g", cost="c", flag=flag, direction=direction, **fields)  # type: ignore[arg-type]


def test_the_root_goes_before_its_symptom_however_sure_the_symptom_is() -> None:
    known = knowledge(other={"driven_by": ["cause"]})
    ordered, roles = order(known, [held("other", 0.95), held("cause", 0.7)])
    assert [h.family for h in ordered] == ["cause", "other"]
    assert roles == {"cause": "root", "other": "symptom"}


def test_a_rule_may_name_the_driver_too() -> None:
    known = knowledge()
    victim = held("other", 0.9, rules=[rule(family="other", driven_by=["cause"], leads_to=["ttft"])])
    assert drivers(known, victim) == {"cause"}
    assert effects(known, victim) == ["ttft"]
    assert order(known, [victim, held("cause", 0.7)])[1]["other"] == "symptom"


def test_a_driver_much_less_sure_than_its_victim_takes_no_blame_from_it() -> None:
    victim = held("other", 0.9, rules=[rule(family="other", driven_by=["cause"])])
    ordered, roles = order(knowledge(), [victim, held("cause", 0.6, shown=True)])
    assert [h.family for h in ordered] == ["other", "cause"]
    assert roles == {"other": "root", "cause": "contributing"}


def test_two_that_drive_each_other_are_both_roots() -> None:
    known = knowledge(cause={"driven_by": ["other"]}, other={"driven_by": ["cause"]})
    _, roles = order(known, [held("cause", 0.8), held("other", 0.7)])
    assert set(roles.values()) == {"root"}


def test_a_ring_of_three_still_has_a_root() -> None:
    ring = {"cause": "third", "other": "cause", "third": "other"}
    known = knowledge(**{family: {"driven_by": [driver]} for family, driver in ring.items()})
    ordered, roles = order(known, [held("cause", 0.9), held("other", 0.8), held("third", 0.7)])
    assert roles["cause"] == "root"
    assert ordered[0].family == "cause"
    assert sorted(h.family for h in ordered) == ["cause", "other", "third"]


def test_a_much_weaker_second_root_only_contributes() -> None:
    _, roles = order(knowledge(), [held("cause", 0.9), held("other", 0.7), held("third", 0.6)])
    assert roles == {"cause": "root", "other": "root", "third": "contributing"}


@pytest.mark.parametrize("changes", [{"confidence": 0.3}, {"refuted": True}, {"outcome": "healthy"}])
def test_what_is_not_supported_has_no_place_in_the_chain(changes: dict[str, Any]) -> None:
    known = knowledge(other={"driven_by": ["cause"]})
    weak = held("cause", **{"confidence": 0.9, **changes})
    assert order(known, [weak, held("other", 0.9)])[1] == {"other": "root"}


def both_ways() -> Knowledge:
    return knowledge(
        cause={"actions": [action("--max-num-seqs", "raise", "more sequences")], "will_not_help": ["prayer"]},
        other={"actions": [action("--max-num-seqs", "lower", "fewer sequences"), action("--other", "on", "switch on")]},
    )


def test_the_higher_ranked_cause_keeps_the_flag() -> None:
    known = both_ways()
    for first, second, kept in (("cause", "other", "more sequences"), ("other", "cause", "fewer sequences")):
        ordered = [held(first, 0.9), held(second, 0.8)]
        out, futile = advise(known, ledger_of(known, {}), ordered, dict.fromkeys((first, second), "root"), "en")
        assert [a.do for a in out if a.flag == "--max-num-seqs"] == [kept]
        assert "switch on" in [a.do for a in out]
        assert futile == ["prayer"]


def test_no_advice_for_a_symptom_beside_its_root() -> None:
    known = both_ways()
    ordered = [held("cause", 0.9), held("other", 0.8)]
    out, _ = advise(known, ledger_of(known, {}), ordered, {"cause": "root", "other": "symptom"}, "en")
    assert [a.family for a in out] == ["cause"]


def test_advice_fits_the_running_version_and_its_own_condition() -> None:
    actions = [
        action("--new", "on", "new", versions={"vllm": ">=0.20"}),
        action("--old", "on", "old", versions={"vllm": "<0.20"}),
        action("--foreign", "on", "foreign", versions={"sglang": ">=0.1"}),
        action("--when", "on", "when", when="flag.n1"),
    ]
    known = knowledge(cause={"actions": actions})
    facts = {"engine.name": "vllm", "engine.version": "0.25.0", "flag.n1": False}
    out, _ = advise(known, ledger_of(known, facts), [held("cause", 0.9)], {"cause": "root"}, "en")
    assert [a.do for a in out] == ["new"]
    assert out[0].rollback, "every change says how it is undone"


def test_contradictions_sees_a_pair_that_pulls_both_ways() -> None:
    def said(flag: str, direction: str) -> ActionAdvice:
        fields = {"gain": "", "cost": "", "risk": "", "how": "restart", "family": "cause"}
        return ActionAdvice(do=direction, flag=flag, direction=direction, **fields)

    assert contradictions([said("--a", "raise"), said("--b", "lower"), said("--a", "lower")]) == [("raise", "lower")]
    assert contradictions([said("--a", "on"), said("--a", "off")]) == [("on", "off")]
    assert contradictions([said("--a", "raise"), said("--a", "raise"), said("", "on"), said("", "off")]) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(sorted(SHIPPED.families)), min_size=2, max_size=8, unique=True), st.data())
def test_no_set_of_shipped_causes_yields_contradicting_advice(families: list[str], data: Any) -> None:
    """Any causes together in any order, each with all its rules: more than any one case can bring."""
    ordered = [
        held(f, 0.9, rules=[r for r in SHIPPED.rules.values() if r.family == f and r.outcome == "incident"])
        for f in families
    ]
    roles = {f: data.draw(st.sampled_from(["root", "contributing"])) for f in families}
    engine = data.draw(st.sampled_from([{}, {"engine.name": "vllm", "engine.version": "0.11.0"}]))
    out, _ = advise(SHIPPED, ledger_of(SHIPPED, engine), ordered, roles, "en")
    assert contradictions(out) == []


def dev_worlds() -> list[Path]:
    """Worlds of the development set, one in six: the evals check all of them on every run."""
    labels = sorted(p for p in LABELS.glob("*.yaml") if not p.name.startswith("case-03"))
    return [CASES / p.stem / "world" for p in labels if read_yaml(p)["split"] == "dev"][::6]


def test_no_contradicting_advice_and_no_orphan_in_the_chain_of_any_dev_case() -> None:
    worlds = dev_worlds()
    assert len(worlds) > 20
    incidents = 0
    for world in worlds:
        found, _ = investigate(make_env(Sources(paths=[world]), known=SHIPPED))
        assert contradictions(found.actions) == [], world
        roles = [c.role for c in found.causes if c.verdict == "supported"]
        if found.outcome == "incident":
            incidents += 1
            assert roles[0] == "root", world
            assert found.chain[0].state == found.causes[0].family, world
            assert "root" not in roles[roles.index("symptom") :] if "symptom" in roles else True, world
    assert incidents > 8


@pytest.mark.parametrize(
    ("usual", "told", "said"),
    [
        ("tpot", [], "tpot"),
        ("tpot", ["ttft"], "ttft"),
        ("tpot", ["ttft", "tpot"], "tpot"),
        ("tpot", ["hang"], "tpot"),
        ("ttft", ["hang"], "hang"),
        ("tpot", ["errors", "hang"], "errors"),
        ("errors", ["crash", "startup"], "startup"),
        ("", ["errors", "crash", "startup"], "startup"),
    ],
)
def test_what_is_felt_is_what_is_told_before_what_is_usual(usual: str, told: list[str], said: str) -> None:
    assert felt(usual, told) == said


def test_words_name_one_root_and_readings_may_name_several() -> None:
    told = [held("cause", 0.59), held("other", 0.55)]
    ordered, _ = order(knowledge(), told)
    assert [h.family for h in ordered] == ["cause"]
    shown = [held("cause", 0.59), held("other", 0.55, shown=True)]
    ordered, roles = order(knowledge(), shown)
    assert [h.family for h in ordered] == ["cause", "other"]
    assert roles == {"cause": "root", "other": "root"}


def test_a_told_victim_stays_in_the_chain_of_its_root() -> None:
    known = knowledge(other={"driven_by": ["cause"]})
    ordered, roles = order(known, [held("cause", 0.59), held("other", 0.55)])
    assert roles == {"cause": "root", "other": "symptom"}
    assert [h.family for h in ordered] == ["cause", "other"]
