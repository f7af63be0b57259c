"""Mutants of a rule's conditions, and which of them no fixture notices.

A mutant flips one leaf, or deletes it from its list. A fixture notices it when the rule comes out differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from agent.fixtures import ledger_of, state_of
from knowledge.schema import Fixture, Knowledge, Rule


class Survivor(Struct, frozen=True):
    """A mutant that no fixture of its rule notices."""

    rule: str
    place: str
    change: str

    def line(self) -> str:
        """One line for people."""
        return f"{self.rule}: {self.place}: {self.change}"


class Report(Struct, kw_only=True):
    """Counts over all rules with fixtures."""

    rules: int
    mutants: int
    survivors: list[Survivor]

    def share(self) -> float:
        """Survivors ÷ mutants; 0 when there are none."""
        return len(self.survivors) / self.mutants if self.mutants else 0.0


def mutants(cond: Any) -> Iterator[tuple[str, Any]]:
    """``(what was done, changed condition)`` for every leaf: flipped, and deleted."""
    if isinstance(cond, str):
        yield f"flip {cond}", {"not": cond}
        yield f"delete {cond}", {"all": []}
        return
    yield from _inner(cond)


def _inner(cond: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(cond, str):
        yield f"flip {cond}", {"not": cond}
        return
    if isinstance(cond, (list, tuple)):
        for label, parts in _in_list(list(cond)):
            yield label, parts
        return
    ((key, body),) = cond.items()
    if key == "not":
        for label, inner in _inner(body):
            yield label, {"not": inner}
    elif key == "atleast":
        for label, parts in _in_list(list(body["of"])):
            yield label, {"atleast": {"n": min(body["n"], len(parts)), "of": parts}}
    else:
        for label, parts in _in_list(list(body)):
            yield label, {key: parts}


def _in_list(parts: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    for number, part in enumerate(parts):
        before, after = parts[:number], parts[number + 1 :]
        for label, inner in _inner(part):
            yield label, [*before, inner, *after]
        leaf = _only_leaf(part)
        if leaf:
            yield f"delete {leaf}", [*before, *after]


def _only_leaf(part: Any) -> str:
    """The leaf when a part is one leaf, also behind ``not``."""
    while isinstance(part, dict) and set(part) == {"not"}:
        part = part["not"]
    return part if isinstance(part, str) else ""


def check(known: Knowledge, fixtures: Mapping[str, list[Fixture]]) -> Report:
    """All mutants of all rules that have fixtures."""
    survivors: list[Survivor] = []
    count = rules = 0
    for rule_id, items in sorted(fixtures.items()):
        rule = known.rules.get(rule_id)
        if rule is None or not items:
            continue
        rules += 1
        ledgers = [(ledger_of(known, item.facts), item.expect) for item in items]
        for place, label, mutant in _of_rule(rule):
            count += 1
            if all(state_of(known, mutant, ledger) == expect for ledger, expect in ledgers):
                survivors.append(Survivor(rule_id, place, label))
    return Report(rules=rules, mutants=count, survivors=survivors)


def _of_rule(rule: Rule) -> Iterator[tuple[str, str, Rule]]:
    for label, cond in mutants(rule.when):
        yield "when", label, msgspec.structs.replace(rule, when=cond)
    if rule.applies is not None:
        for label, cond in mutants(rule.applies):
            yield "applies", label, msgspec.structs.replace(rule, applies=cond)
