"""Caps are promises: no weight, sign or number of rules may lift a confidence over them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from agent.belief import Hypothesis, band, calibration, stated
from knowledge import load
from knowledge.schema import Rule
from tests.agent.small_knowledge import FLAGS, STRENGTHS, believe, knowledge, refuter, rule, sign, twin

CAL = calibration()


def test_the_promised_caps_are_the_shipped_ones() -> None:
    assert (CAL.cap_no_refuter, CAL.cap_no_decisive, CAL.cap_one_snapshot_rate) == (0.85, 0.65, 0.5)
    assert CAL.incident_at <= 0.5


def pile(*, strength: str, refuters: list[str] | None = None, count: int = 6) -> list[Rule]:
    """So much support that only a cap can hold it back."""
    return [
        rule(
            id=f"R-{i}", strength=strength, supports=[sign("flag.n1", "strong")],
            refuted_by=[refuter(f) for f in refuters or []],
        )
        for i in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("strength", "passed", "most"),
    [
        ("decisive", False, CAL.cap_no_refuter),
        ("decisive", True, 1.0),
        ("strong", False, CAL.cap_no_decisive),
        ("strong", True, 1.0),
        ("moderate", True, CAL.cap_no_decisive),
    ],
)
def test_cap_by_strength_and_refuter(strength: str, passed: bool, most: float) -> None:
    known = knowledge(*pile(strength=strength, refuters=["flag.n9"]))
    facts = {"flag.n0": True, "flag.n1": True, **({"flag.n9": False} if passed else {})}
    found = believe(known, facts)["cause"]
    assert found.confidence <= most
    assert found.stated <= most
    if most < 1.0:
        assert found.confidence == pytest.approx(most), "the pile is meant to reach the cap"
        assert found.caps
    else:
        assert found.confidence > CAL.cap_no_refuter
        assert not found.caps


def test_a_rate_from_one_snapshot_is_at_most_even() -> None:
    rules = pile(strength="decisive", refuters=["flag.n9"])
    rules.append(rule(id="R-rate", when="rate.since_start > 1", strength="decisive"))
    facts = {"flag.n0": True, "flag.n1": True, "flag.n9": False}
    assert believe(knowledge(*rules), facts)["cause"].confidence > CAL.cap_one_snapshot_rate
    found = believe(knowledge(*rules), {**facts, "rate.since_start": 5.0})["cause"]
    assert found.confidence <= CAL.cap_one_snapshot_rate
    assert any("snapshot" in cap for cap in found.caps)


def test_partly_known_rules_stay_below_an_incident() -> None:
    rules = [
        rule(id=f"R-{i}", strength="decisive", when=["flag.n0", "flag.n1", "flag.n2", f"flag.n{i % 3 + 3}"])
        for i in range(12)
    ]
    facts = {"flag.n0": True, "flag.n1": True, "flag.n2": True}
    found = believe(knowledge(*rules), facts)["cause"]
    assert found.only_partial
    assert 0 < found.confidence < CAL.incident_at
    whole = believe(knowledge(*rules), {**facts, "flag.n3": True})["cause"]
    assert whole.confidence > found.confidence


@pytest.mark.parametrize("share", [CAL.resemblance_from, CAL.resemblance_at - 0.01])
def test_a_weak_likeness_alone_is_a_lead(share: float) -> None:
    found = believe(knowledge(), {}, alike=share)["cause"]
    assert found.confidence < CAL.incident_at
    assert found.only_partial


def test_a_faint_likeness_is_no_hypothesis_at_all() -> None:
    assert believe(knowledge(), {}, alike=CAL.resemblance_from / 2) == {}


def test_a_full_likeness_alone_never_passes_the_cap_for_no_decisive_evidence() -> None:
    found = believe(knowledge(), {}, alike=1.0)["cause"]
    assert found.confidence <= CAL.cap_no_decisive


def test_likeness_beside_an_answer_by_rules_stays_a_lead() -> None:
    other = rule(id="R-o", family="other", strength="decisive")
    found = believe(knowledge(other), {"flag.n0": True}, alike=1.0)
    assert found["other"].confidence >= CAL.incident_at
    assert found["cause"].only_partial
    assert found["cause"].confidence < CAL.incident_at


def test_likeness_adds_to_a_rule_that_fired() -> None:
    known = knowledge(rule(strength="moderate"))
    assert (
        believe(known, {"flag.n0": True}, alike=0.9)["cause"].logit > believe(known, {"flag.n0": True})["cause"].logit
    )


def test_a_refuter_that_holds_refutes() -> None:
    known = knowledge(*pile(strength="decisive", refuters=["flag.n9"]))
    found = believe(known, {"flag.n0": True, "flag.n1": True, "flag.n9": True})["cause"]
    assert found.refuted
    assert found.confidence < CAL.incident_at


def test_an_unknown_refuter_is_neither_passed_nor_against() -> None:
    found = believe(knowledge(rule(refuted_by=[refuter("flag.n9")])), {"flag.n0": True})["cause"]
    assert (found.passed, found.against, len(found.untested)) == ([], [], 1)


def test_a_benign_explanation_takes_weight() -> None:
    fault = rule(strength="decisive")
    benign = rule(id="H-1", family="", outcome="healthy", when="flag.n5", strength="decisive", explains_away=["cause"])
    known = knowledge(fault, benign)
    alone = believe(known, {"flag.n0": True, "flag.n5": False})["cause"]
    both = believe(known, {"flag.n0": True, "flag.n5": True})["cause"]
    assert both.logit == pytest.approx(alone.logit - CAL.separator)


names = st.sampled_from(FLAGS)
rules_of = st.lists(
    st.builds(
        lambda number, when, strength, plus, minus, twins, refuters: rule(
            id=f"R-{number}", when=when, strength=strength, supports=[sign(*p) for p in plus],
            against=[sign(*m) for m in minus], look_alikes=[twin(t) for t in twins],
            refuted_by=[refuter(r) for r in refuters],
        ),
        number=st.integers(0, 99),
        when=st.lists(names, min_size=1, max_size=3),
        strength=st.sampled_from(STRENGTHS),
        plus=st.lists(st.tuples(names, st.sampled_from(STRENGTHS)), max_size=3),
        minus=st.lists(st.tuples(names, st.sampled_from(STRENGTHS)), max_size=2),
        twins=st.lists(names, max_size=2),
        refuters=st.lists(names, max_size=2),
    ),
    min_size=1, max_size=4, unique_by=lambda r: r.id,
)  # fmt: skip
worlds = st.dictionaries(names, st.booleans(), min_size=1)


def promises(found: Hypothesis) -> None:
    """What holds of every hypothesis."""
    strong = any(r.strength == "strong" and x.state == "fired" for r, x in zip(found.rules, found.results, strict=True))
    assert 0.0 <= found.confidence <= 1.0
    assert 0.0 <= found.stated <= 1.0
    for value in (found.confidence, found.stated):
        if not found.passed:
            assert value <= CAL.cap_no_refuter
        if not found.decisive and not (strong and found.passed):
            assert value <= CAL.cap_no_decisive
        if found.only_partial:
            assert value < CAL.incident_at


@settings(max_examples=80, deadline=None)
@given(rules_of, worlds, st.sampled_from([0.0, 0.3, 0.7, 1.0]))
def test_caps_hold_for_any_rules_and_facts(rules: list[Rule], facts: dict[str, bool], alike: float) -> None:
    for found in believe(knowledge(*rules), facts, alike=alike).values():
        promises(found)


@settings(max_examples=80, deadline=None)
@given(rules_of, worlds, st.data())
def test_a_further_refuter_that_holds_never_raises_a_confidence(
    rules: list[Rule], facts: dict[str, bool], data: Any
) -> None:
    facts = {**facts, "flag.n11": True}
    before = believe(knowledge(*rules), facts)
    at = data.draw(st.integers(0, len(rules) - 1))
    more = list(rules)
    more[at] = structs.replace(rules[at], refuted_by=[*rules[at].refuted_by, refuter("flag.n11")])
    on_card = {"cause": {"refuted_by": [refuter("flag.n11")]}}
    for known in (knowledge(*more), knowledge(*rules, **on_card)):
        after = believe(known, facts)
        assert set(after) == set(before)
        for key, found in after.items():
            assert found.confidence <= before[key].confidence
            assert found.logit <= before[key].logit


@settings(max_examples=40, deadline=None)
@given(rules_of, worlds)
def test_the_order_of_rules_does_not_matter(rules: list[Rule], facts: dict[str, bool]) -> None:
    one, two = believe(knowledge(*rules), facts), believe(knowledge(*reversed(rules)), facts)
    assert {k: h.confidence for k, h in one.items()} == {k: h.confidence for k, h in two.items()}


SHIPPED = load()
_VALUES: dict[str, Any] = {
    "number": st.sampled_from([0.0, 0.01, 0.5, 1.0, 30.0, 5000.0]),
    "bool": st.booleans(),
    "text": st.sampled_from(["vllm", "sglang", "auto", "fp8"]),
    "list": st.just(["a"]),
}


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_caps_hold_for_the_shipped_rules_on_random_facts(data: Any) -> None:
    picked = data.draw(st.lists(st.sampled_from(sorted(SHIPPED.facts)), min_size=20, max_size=120, unique=True))
    facts = {name: data.draw(_VALUES[SHIPPED.facts[name].type]) for name in picked if name != "words.resemble"}
    for found in believe(SHIPPED, facts, alike=0.0).values():
        promises(found)


def test_the_stated_curve_is_linear_between_its_knots() -> None:
    curve = [(0.4, 0.2), (0.8, 0.9)]
    assert [stated(x, curve) for x in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)] == pytest.approx([0, 0.1, 0.2, 0.55, 0.9, 0.9])
    assert stated(0.37, []) == 0.37


def test_bands_rise_with_confidence() -> None:
    words = [band(c / 100) for c in range(101)]
    assert list(dict.fromkeys(words)) == ["unlikely", "possible", "likely", "very likely"]
