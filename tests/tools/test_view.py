"""The ledger: ids that stay, duplicates that merge, ranks of readers, and each rule of combination by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from knowledge.schema import Combine, FactDef, Knowledge, Text
from tools.contract import Reading, Source
from tools.view import RANK, Evidence, Ledger, combine

RULES: tuple[Combine, ...] = ("max", "min", "sum", "mean", "any", "all", "first", "last")


def vocabulary() -> Knowledge:
    """One fact for each rule of combination, named after it."""
    facts = {f"f.{how}": FactDef(name=f"f.{how}", unit="tok", means=Text(en=how), combine=how) for how in RULES}
    return Knowledge(version="v", facts=facts, rules={}, families={}, causes={}, signatures={}, pages={})


def reading(fact: str, value: Any, line: int = 1, via: str = "", **more: Any) -> Reading:
    return Reading(fact=fact, value=value, source=Source(kind="file", ref="a.txt", line=line), via=via, **more)


def filled(fact: str, *values: Any) -> Ledger:
    ledger = Ledger(vocabulary())
    ledger.extend(reading(fact, value, line) for line, value in enumerate(values, 1))
    return ledger


@pytest.mark.parametrize(
    ("how", "values", "value", "ids"),
    [
        ("max", (2, 7.5, 3), 7.5, ("E2",)),
        ("min", (2, 7.5, 3), 2, ("E1",)),
        ("sum", (2, 7.5, 3), 12.5, ("E1", "E2", "E3")),
        ("mean", (2, 7, 3), 4.0, ("E1", "E2", "E3")),
        ("first", ("a", "b", "c"), "a", ("E1",)),
        ("last", ("a", "b", "c"), "c", ("E3",)),
        ("any", (False, True, True), True, ("E2", "E3")),
        ("any", (False, False), False, ("E1", "E2")),
        ("all", (True, True), True, ("E1", "E2")),
        ("all", (True, False), False, ("E1", "E2")),
        ("max", (False, True), True, ("E2",)),
        ("sum", (3, "text"), "text", ("E2",)),
        ("max", (3, True), True, ("E2",)),
        ("any", (True,) * 6, True, ("E1", "E2", "E3", "E4")),
    ],
)
def test_each_rule_of_combination(how: str, values: tuple[Any, ...], value: Any, ids: tuple[str, ...]) -> None:
    ledger = filled(f"f.{how}", *values)
    assert ledger.value(f"f.{how}") == value
    assert type(ledger.value(f"f.{how}")) is type(value)
    assert ledger.ids(f"f.{how}") == ids


def test_nothing_read_is_none_and_never_zero() -> None:
    ledger = Ledger(vocabulary())
    assert all(
        (ledger.value(f"f.{how}"), ledger.num(f"f.{how}"), ledger.ids(f"f.{how}")) == (None, None, ()) for how in RULES
    )
    assert combine([], "sum") == (None, ())
    assert len(ledger) == 0
    assert ledger.facts() == set()


def test_a_number_is_neither_a_truth_value_nor_a_text() -> None:
    assert filled("f.max", True).num("f.max") is None
    assert filled("f.max", "7").num("f.max") is None
    assert filled("f.max", 7).num("f.max") == 7.0


def test_the_better_ranked_reader_is_read_alone() -> None:
    order = sorted(RANK, key=lambda via: RANK[via])
    for worse, better in zip(order[::-1], order[-2::-1], strict=False):
        if RANK[worse] == RANK[better]:
            continue
        ledger = Ledger(vocabulary())
        ledger.extend([reading("f.max", 100, 1, worse), reading("f.max", 7, 2, better), reading("f.max", 9, 3, better)])
        assert (ledger.value("f.max"), ledger.ids("f.max")) == (9, ("E3",)), (worse, better)


def test_readers_of_one_rank_are_combined_and_an_unknown_one_comes_last() -> None:
    ledger = Ledger(vocabulary())
    ledger.extend([reading("f.sum", 1, 1, "log"), reading("f.sum", 2, 2, "gpu"), reading("f.sum", 4, 3, "somebody")])
    assert ledger.value("f.sum") == 3
    ledger = Ledger(vocabulary())
    ledger.extend([reading("f.max", 5, 1, "report"), reading("f.max", 9, 2, "somebody")])
    assert ledger.value("f.max") == 5


def test_what_any_reader_may_assert_is_not_ranked_away() -> None:
    ledger = Ledger(vocabulary())
    ledger.extend([reading("f.any", False, 1, "metrics"), reading("f.any", True, 2, "report")])
    assert (ledger.value("f.any"), ledger.ids("f.any")) == (True, ("E2",))
    ledger = Ledger(vocabulary())
    ledger.extend([reading("f.all", True, 1, "metrics"), reading("f.all", False, 2, "report")])
    assert ledger.value("f.all") is True


def test_an_identical_reading_gets_the_id_it_has() -> None:
    ledger = Ledger(vocabulary())
    same = reading("f.sum", 3, 7, "log", labels={"b": "1", "a": "2"})
    turned = structs.replace(same, labels={"a": "2", "b": "1"})
    assert ledger.extend([same, same, turned]) == ["E1", "E1", "E1"]
    assert (len(ledger), ledger.value("f.sum")) == (1, 3)


@pytest.mark.parametrize(
    "other",
    [
        {"value": 4},
        {"value": 3.0},
        {"method": "other"},
        {"labels": {"rank": "1"}},
        {"window": (0.0, 1.0)},
        {"source": Source(kind="file", ref="a.txt", line=8)},
        {"source": Source(kind="file", ref="b.txt", line=7)},
        {"source": Source(kind="words", ref="a.txt", line=7)},
        {"source": Source(kind="file", ref="a.txt", line=7, span="x")},
    ],
)
def test_a_reading_that_differs_gets_its_own_id(other: dict[str, Any]) -> None:
    ledger = Ledger(vocabulary())
    first = reading("f.sum", 3, 7)
    assert ledger.extend([first, structs.replace(first, **other)]) == ["E1", "E2"]


def test_what_is_no_evidence_keeps_its_id_and_gives_no_value() -> None:
    ledger = Ledger(vocabulary())
    ledger.extend(
        [reading("f.max", 5, 1, status="no_data"), reading("f.max", 2, 2), reading("f.min", 1, 3, status="error")]
    )
    assert ledger.value("f.max") == 2
    assert ledger.value("f.min") is None
    assert ledger.facts() == {"f.max"}
    assert [item.id for item in ledger] == ["E1", "E2", "E3"]
    broken = ledger.get("E3")
    assert broken is not None
    assert broken.status == "error"


def test_get_takes_only_ids_of_the_ledger() -> None:
    ledger = filled("f.sum", 1, 2)
    assert [getattr(ledger.get(i), "value", None) for i in ("E1", "E2")] == [1, 2]
    assert [ledger.get(i) for i in ("E0", "E3", "E-1", "1", "", "E", "e1", "E1 ", "E²", "E١", "E" + "9" * 5000)] == [
        None
    ] * 11


def test_a_value_read_before_is_not_kept_past_an_addition() -> None:
    ledger = filled("f.max", 1)
    assert ledger.value("f.max") == 1
    ledger.add(reading("f.max", 8, 9))
    assert (ledger.value("f.max"), ledger.ids("f.max")) == (8, ("E2",))


def test_the_unit_is_the_vocabulary_s_unless_stated_and_unknown_names_are_noted() -> None:
    ledger = Ledger(vocabulary())
    ledger.extend([reading("f.max", 1, 1), reading("f.max", 2, 2, unit="ms"), reading("f.new", 3, 3)])
    assert [item.unit for item in ledger] == ["tok", "ms", ""]
    assert ledger.unknown_facts == {"f.new"}
    assert filled("f.new", 1, 4, 2).value("f.new") == 4


NUMBERS = st.lists(st.integers(-1000, 1000), min_size=1, max_size=8)


@given(NUMBERS)
@settings(max_examples=60, deadline=None)
def test_the_rules_agree_with_arithmetic_and_cite_what_they_used(values: list[int]) -> None:
    items = [
        Evidence(id=f"E{n}", fact="f", value=v, source=Source(kind="file", ref="a", line=n))
        for n, v in enumerate(values, 1)
    ]
    by_id = {item.id: item.value for item in items}
    assert combine(items, "sum")[0] == sum(values)
    assert combine(items, "mean")[0] == pytest.approx(sum(values) / len(values))
    for how, expected in (("max", max(values)), ("min", min(values)), ("first", values[0]), ("last", values[-1])):
        value, ids = combine(items, how)  # type: ignore[arg-type]
        assert value == expected
        assert [by_id[i] for i in ids] == [expected]


@given(st.lists(st.tuples(st.sampled_from(("f.sum", "f.max")), st.integers(0, 3), st.integers(1, 3)), max_size=20))
@settings(max_examples=60, deadline=None)
def test_ids_count_up_without_gaps_and_adding_again_changes_nothing(rows: list[tuple[str, int, int]]) -> None:
    readings = [reading(*row) for row in rows]
    ledger = Ledger(vocabulary())
    ids = ledger.extend(readings)
    assert [item.id for item in ledger] == [f"E{n}" for n in range(1, len(set(rows)) + 1)]
    before = [ledger.value(fact) for fact in ("f.sum", "f.max")]
    assert ledger.extend(readings) == ids
    assert [ledger.value(fact) for fact in ("f.sum", "f.max")] == before
    assert len(ledger) == len(set(rows))
