"""The solver: values that make conditions true, false or unknown, and mutants that fixtures notice."""

from __future__ import annotations

from typing import Any

import pytest

from agent.fixtures import generate, ledger_of, run, state_of
from agent.mutants import check, mutants
from agent.witness import deciding, example, paths, truth_of, witness
from knowledge import fixture_files
from knowledge.logic import parse
from knowledge.schema import CauseDef, FactDef, Fixture, Knowledge, Rule, Text

FACTS = {
    "a.share": FactDef(name="a.share", unit="fraction", means=Text(en="a", zh="a")),
    "b.count": FactDef(name="b.count", unit="requests", means=Text(en="b", zh="b")),
    "c.count": FactDef(name="c.count", unit="requests", means=Text(en="c", zh="c")),
    "d.flag": FactDef(name="d.flag", unit="", type="bool", means=Text(en="d", zh="d")),
    "e.text": FactDef(name="e.text", unit="", type="text", means=Text(en="e", zh="e")),
    "f.list": FactDef(name="f.list", unit="", type="list", means=Text(en="f", zh="f")),
    "g.guard": FactDef(name="g.guard", unit="", type="bool", means=Text(en="g", zh="g")),
    "h.guard": FactDef(name="h.guard", unit="GPUs", means=Text(en="h", zh="h")),
    "engine.name": FactDef(name="engine.name", unit="", type="text", means=Text(en="n", zh="n")),
    "engine.version": FactDef(name="engine.version", unit="", type="text", means=Text(en="v", zh="v")),
}
TREES: list[Any] = [
    "a.share >= 0.9",
    "d.flag",
    "d.flag == false",
    "e.text ~ 'foo|ba[rz]+'",
    "e.text == nixl",
    "f.list in [x, y]",
    "known(b.count)",
    {"all": ["a.share >= 0.08", "a.share <= 0.75", "b.count > 4"]},
    {"all": ["b.count > 4", "c.count >= 0.5*$b.count"]},
    {"any": ["d.flag", {"all": ["b.count == 3", "e.text != x"]}]},
    {"not": {"all": ["known(b.count)", "b.count >= 3", "a.share >= 0.03"]}},
    {"atleast": {"n": 2, "of": ["d.flag", "b.count > 4", "a.share < 0.1"]}},
    {"all": ["d.flag", {"any": ["unknown(b.count)", "b.count <= 2"]}, {"not": "e.text == x"}]},
]


def _known(rule: Rule) -> Knowledge:
    causes = {"overload": CauseDef(id="overload", layer="scheduling", means="x")}
    return Knowledge(
        version="t", facts=FACTS, rules={rule.id: rule}, families={}, causes=causes, signatures={}, pages={}
    )


def _rule(when: Any, **more: Any) -> Rule:
    text = Text(en="t", zh="t")
    return Rule(id="SCH-t", family="overload", title=text, mechanism=text, when=when, **more)


@pytest.mark.parametrize("cond", TREES, ids=str)
def test_a_condition_is_made_true_and_false(cond: Any) -> None:
    tree = parse(cond)
    for want in (True, False):
        values = witness(tree, want, FACTS)
        assert values is not None
        assert truth_of(tree, values) is want


@pytest.mark.parametrize("cond", TREES, ids=str)
def test_every_leaf_can_be_made_to_decide_alone(cond: Any) -> None:
    tree = parse(cond)
    for path in paths(tree):
        truths = set()
        for truth in (True, False):
            values = deciding(tree, path, truth, FACTS)
            assert values is not None
            truths.add(truth_of(tree, values))
        assert len(truths) == 2


def test_contradictory_leaves_have_no_witness() -> None:
    assert witness(parse({"all": ["a.share >= 0.9", "a.share < 0.5"]}), True, FACTS) is None
    assert witness(parse({"all": ["known(b.count)", "unknown(b.count)"]}), True, FACTS) is None


def test_values_stand_next_to_the_threshold() -> None:
    assert witness(parse("b.count > 4"), True, FACTS) == {"b.count": 5}
    assert witness(parse("b.count > 4"), False, FACTS) == {"b.count": 4}
    assert witness(parse("a.share >= 0.9"), False, FACTS) == {"a.share": 0.89}


@pytest.mark.parametrize("pattern", ["assert|valueerror", r"awq(_marlin)?", r"^gpt[q-z]", r"h\d+ sxm", "a.*b"])
def test_a_word_is_found_for_a_pattern(pattern: str) -> None:
    import re

    found = example(re.compile(pattern, re.IGNORECASE))
    assert found is not None
    assert re.search(pattern, found, re.IGNORECASE)


@pytest.mark.parametrize("cond", TREES, ids=str)
def test_generated_fixtures_hold_and_let_no_mutant_live(cond: Any) -> None:
    rule = _rule(cond, applies={"any": ["g.guard", "h.guard >= 2"]}, versions={"vllm": ">=0.9,<0.12"})
    known = _known(rule)
    fixtures = {rule.id: generate(known, rule)}
    assert {"fired", "clear", "not_applicable"} <= {item.expect for item in fixtures[rule.id]}
    assert run(known, fixtures) == []
    report = check(known, fixtures)
    assert report.mutants >= 2
    assert report.survivors == []


def test_a_missing_fixture_lets_a_mutant_live() -> None:
    rule = _rule({"all": ["b.count > 4", "a.share >= 0.9"]})
    known = _known(rule)
    few = {rule.id: [Fixture(name="fires", expect="fired", facts={"b.count": 9, "a.share": 1.0})]}
    lines = [survivor.line() for survivor in check(known, few).survivors]
    assert "SCH-t: when: delete a.share >= 0.9" in lines
    assert check(known, few).share() > 0.02


def test_every_leaf_is_flipped_and_deleted() -> None:
    changes = [label for label, _ in mutants({"all": ["a.share > 0.1", {"not": {"any": ["d.flag", "b.count > 1"]}}]})]
    for leaf in ("a.share > 0.1", "d.flag", "b.count > 1"):
        assert f"flip {leaf}" in changes
        assert f"delete {leaf}" in changes


def test_a_failing_fixture_says_what_came_out() -> None:
    rule = _rule("b.count > 4")
    known = _known(rule)
    bad = {rule.id: [Fixture(name="x", expect="fired", facts={"b.count": 1})]}
    assert [failure.line() for failure in run(known, bad)] == ["SCH-t: 'x': expected fired, got clear"]


def test_versions_and_missing_facts_have_their_states() -> None:
    rule = _rule("b.count > 4", versions={"vllm": ">=0.20"})
    known = _known(rule)
    assert state_of(known, rule, ledger_of(known, {"b.count": 9})) == "fired"
    assert state_of(known, rule, ledger_of(known, {})) == "missing_input"
    old = {"b.count": 9, "engine.name": "vllm", "engine.version": "0.9.1"}
    assert state_of(known, rule, ledger_of(known, old)) == "not_applicable"


def test_fixture_files_read_back(tmp_path: Any) -> None:
    from agent.fixtures import read

    items = [
        Fixture(name='a "quoted": name', expect="clear", facts={"e.text": "x: y", "d.flag": True, "f.list": ["p"]})
    ]
    (tmp_path / "fixtures").mkdir()
    path = tmp_path / "fixtures" / "SCH-t.yaml"
    path.write_text(fixture_files.text(items), encoding="utf-8")
    assert read([tmp_path]) == {"SCH-t": items}
    path.write_text("- {name: by hand, expect: clear, facts: {b.count: 1}}", encoding="utf-8")
    assert read([tmp_path])["SCH-t"][0].facts == {"b.count": 1}
