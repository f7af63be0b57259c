"""Conditions of the knowledge base: known facts, fitting operators, sane units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from knowledge.lint_base import Book, close
from knowledge.logic import ConditionError, Leaf, Ref, facts_of, leaves, parse
from knowledge.schema import Action, FactDef, Family, LookAlike, Rule

ORDER = (">", ">=", "<", "<=")
# A bare count means "more than none"; a bare measure means nothing.
MEASURES = frozenset({"fraction", "ratio", "s", "ms", "tokens/s", "%", "GiB", "GB/s"})
Place = tuple[str, Any]


def _twins(items: list[LookAlike]) -> Iterator[Place]:
    for twin in items:
        yield f"separator from {twin.family}", twin.cond


def _when(actions: list[Action]) -> Iterator[Place]:
    for number, action in enumerate(actions):
        if action.when is not None:
            yield f"action {number + 1}", action.when


def rule_conditions(rule: Rule) -> Iterator[Place]:
    """Every condition of a rule with a name of its place."""
    if rule.applies is not None:
        yield "applies", rule.applies
    yield "when", rule.when
    for number, sign in enumerate(rule.supports):
        yield f"support {number + 1}", sign.cond
    for number, sign in enumerate(rule.against):
        yield f"against {number + 1}", sign.cond
    for number, refuter in enumerate(rule.refuted_by):
        yield f"refuter {number + 1}", refuter.cond
    yield from _twins(rule.look_alikes)
    yield from _when(rule.actions)


def family_conditions(card: Family) -> Iterator[Place]:
    """Every condition of a family card with a name of its place."""
    for number, refuter in enumerate(card.refuted_by):
        yield f"refuter {number + 1}", refuter.cond
    yield from _twins(card.look_alikes)
    yield from _when(card.actions)


def facts_of_rule(rule: Rule) -> set[str]:
    """Every fact that any condition of a rule mentions."""
    return {name for _, cond in rule_conditions(rule) for name in facts_of(cond)}


def check(book: Book) -> None:
    """Findings for all conditions of rules and cards."""
    for key, rule in book.rules.items():
        for place, cond in rule_conditions(rule):
            _one(book, "rules", key, place, cond)
    for key, card in book.families.items():
        for place, cond in family_conditions(card):
            _one(book, "families", key, place, cond)


def _one(book: Book, kind: str, key: str, place: str, cond: Any) -> None:
    try:
        tree = parse(cond)
    except (ConditionError, ValueError, TypeError) as error:
        book.add(kind, key, f"{place}: {error}", "write it as knowledge/logic.py says")
        return
    found = list(leaves(tree))
    if not found:
        book.add(kind, key, f"{place}: the condition is empty", "give at least one fact, or drop the entry")
    for leaf in found:
        names = [leaf.fact, *([leaf.rhs.fact] if isinstance(leaf.rhs, Ref) else [])]
        missing = [name for name in names if name not in book.facts]
        for name in missing:
            book.add(kind, key, f"{place}: unknown fact {name}", close(name, book.facts))
        if not missing:
            _fits(book, kind, key, place, leaf)


def _fits(book: Book, kind: str, key: str, place: str, leaf: Leaf) -> None:
    """Operator against the fact's type, and thresholds outside what the unit can hold."""
    if leaf.kind != "cmp":
        return
    fact = book.facts[leaf.fact]
    what = _misfit(fact, leaf)
    if what:
        book.add(kind, key, f"{place}: {leaf.text!r}: {what}", "compare it as its type in knowledge/facts allows")
    elif isinstance(leaf.rhs, Ref):
        other = book.facts[leaf.rhs.fact]
        if other.type != "number":
            book.add(kind, key, f"{place}: {leaf.text!r}: {other.name} is no number", "refer to a number")
        elif leaf.rhs.factor == 1.0 and other.unit != fact.unit and "ratio" not in (other.unit, fact.unit):
            what = f"{fact.unit or 'no unit'} is compared with {other.unit or 'no unit'}"
            book.add(kind, key, f"{place}: {leaf.text!r}: {what}", "compare equal units, or give the factor")
    elif fact.unit == "fraction" and isinstance(leaf.rhs, float) and not 0 <= abs(leaf.rhs) <= 1:
        book.add(kind, key, f"{place}: {leaf.text!r}: a fraction lies between 0 and 1", "divide percent by 100")


def _misfit(fact: FactDef, leaf: Leaf) -> str:
    rhs = leaf.rhs
    if leaf.op in ORDER:
        if fact.type != "number":
            return f"{fact.type} has no order"
        return "" if isinstance(rhs, (float, Ref)) else f"{rhs!r} is no number"
    if leaf.op == "~":
        return f"a pattern is searched in a {fact.type}" if fact.type in ("number", "bool") else ""
    if fact.type == "number" and isinstance(rhs, bool):
        return "a measure is read as true or false" if fact.unit in MEASURES else ""
    if fact.type == "number" and isinstance(rhs, str):
        return f"a number is compared with the word {rhs!r}"
    if fact.type == "bool" and not isinstance(rhs, bool):
        return f"true or false is compared with {rhs!r}"
    return ""
