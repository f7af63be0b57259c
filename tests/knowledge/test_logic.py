"""Three-valued conditions: unknown is never true and never false."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.logic import ConditionError, evaluate, facts_of, parse, text_of


class Table(dict[str, Any]):
    def value(self, fact: str) -> Any:
        return self.get(fact)

    def ids(self, fact: str) -> tuple[str, ...]:
        return (f"E:{fact}",) if fact in self else ()


def truth(cond: Any, **facts: Any) -> bool | None:
    return evaluate(parse(cond), Table({k.replace("__", "."): v for k, v in facts.items()})).truth


@pytest.mark.parametrize(
    ("cond", "facts", "want"),
    [
        ("a.b > 3", {"a__b": 4}, True),
        ("a.b > 3", {"a__b": 3}, False),
        ("a.b > 3", {}, None),
        ("a.b", {"a__b": True}, True),
        ("a.b", {"a__b": []}, False),
        ("a.b", {"a__b": ["x"]}, True),
        ("a.b == fp8", {"a__b": "FP8"}, True),
        ("a.b in [x, y]", {"a__b": ["q", "y"]}, True),
        ("a.b ~ 'out of mem'", {"a__b": "CUDA Out Of Memory"}, True),
        ("a.b >= 0.95*$c.d", {"a__b": 95, "c__d": 100}, True),
        ("a.b >= 0.95*$c.d", {"a__b": 95}, None),
        ("known(a.b)", {}, False),
        ("unknown(a.b)", {}, True),
        ({"not": "a.b"}, {}, None),
        ({"any": ["a.b", "c.d"]}, {"c__d": True}, True),
        ({"any": ["a.b", "c.d"]}, {"c__d": False}, None),
        ({"all": ["a.b", "c.d"]}, {"c__d": False}, False),
        ({"all": ["a.b", "c.d"]}, {"c__d": True}, None),
        ({"atleast": {"n": 2, "of": ["a.b", "c.d", "e.f"]}}, {"a__b": True, "c__d": True}, True),
        ({"atleast": {"n": 2, "of": ["a.b", "c.d", "e.f"]}}, {"a__b": False, "c__d": False}, False),
    ],
)
def test_three_values(cond: Any, facts: dict[str, Any], want: bool | None) -> None:
    assert truth(cond, **facts) is want


def test_missing_facts_are_named() -> None:
    verdict = evaluate(parse({"all": ["a.b > 1", "c.d > 1"]}), Table({"a.b": 2}))
    assert (verdict.truth, verdict.missing, verdict.held) == (None, ("c.d",), ("a.b > 1",))


def test_evidence_is_what_decided() -> None:
    verdict = evaluate(parse({"all": ["a.b > 1", "c.d > 1"]}), Table({"a.b": 2, "c.d": 0}))
    assert verdict.truth is False and verdict.used == ("E:c.d",)


@pytest.mark.parametrize("bad", ["__import__('os')", "a.b >", "", {"xor": []}, 5, "a b c", {"all": [], "any": []}])
def test_anything_else_is_refused(bad: Any) -> None:
    with pytest.raises(ConditionError):
        parse(bad)


def test_ordering_text_against_numbers_is_an_error_not_a_verdict() -> None:
    with pytest.raises(ConditionError):
        truth("a.b > 3", a__b="many")


names = st.sampled_from(["a.b", "c.d", "e.f"])
leaf = st.builds(
    lambda n, o, v: f"{n} {o} {v}", names, st.sampled_from([">", "<", ">=", "<=", "=="]), st.integers(-3, 3)
)
trees = st.recursive(
    leaf,
    lambda inner: st.one_of(
        st.builds(lambda x: {"all": x}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda x: {"any": x}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda x: {"not": x}, inner),
    ),
    max_leaves=8,
)


@given(trees, st.dictionaries(names, st.integers(-3, 3)), st.dictionaries(names, st.integers(-3, 3)))
def test_more_facts_never_turn_a_verdict_round(cond: Any, some: dict[str, int], more: dict[str, int]) -> None:
    """Kleene monotonicity: a decided condition stays decided whatever else becomes known."""
    before = evaluate(parse(cond), Table(some)).truth
    after = evaluate(parse(cond), Table({**more, **some})).truth
    assert before is None or before is after


@given(trees)
def test_text_names_all_facts(cond: Any) -> None:
    assert all(name in text_of(cond) for name in facts_of(cond))
