"""Fixtures of rules: run them, and write those that a rule's own conditions call for.

A generated set holds, for every leaf of ``when`` and ``applies``, facts in which that leaf alone decides, just on the
right and just on the wrong side of its threshold; one set with a fact missing; and one outside the rule's versions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from agent.screen import screen, tree
from agent.witness import Tree, deciding, leaf_at, paths, truth_of, witness
from knowledge import fixture_files
from knowledge.loader import yaml_files
from knowledge.logic import Leaf, Node
from knowledge.schema import Fixture, Knowledge, Rule
from knowledge.versions import holds
from tools.contract import Reading, Source
from tools.view import Ledger

State = Literal["fired", "clear", "missing_input", "not_applicable"]
GENERATED = ("fires", "clear by ", "missing ", "not applicable")
_OTHER_ENGINE = "another-engine"


class Failure(Struct, frozen=True):
    """A fixture that does not come out as it says."""

    rule: str
    fixture: str
    expect: str
    got: str

    def line(self) -> str:
        """One line for people."""
        return f"{self.rule}: {self.fixture!r}: expected {self.expect}, got {self.got}"


def read(roots: Iterable[Path]) -> dict[str, list[Fixture]]:
    """Rule id → fixtures; a later root replaces a rule's. Raises :class:`knowledge.loader.KnowledgeError`."""
    out: dict[str, list[Fixture]] = {}
    for root in roots:
        for path in yaml_files(root, "fixtures"):
            out[path.stem] = fixture_files.read(path)
    return out


def ledger_of(known: Knowledge, facts: Mapping[str, Any]) -> Ledger:
    """The facts of a fixture as evidence."""
    ledger = Ledger(known)
    source = Source(kind="file", ref="fixture")
    ledger.extend(Reading(fact=name, value=value, source=source) for name, value in facts.items())
    return ledger


def state_of(known: Knowledge, rule: Rule, ledger: Ledger) -> str:
    """What the screen says of one rule over a ledger."""
    alone = msgspec.structs.replace(known, rules={rule.id: rule})
    return screen(alone, ledger)[0].state


def run(known: Knowledge, fixtures: Mapping[str, list[Fixture]]) -> list[Failure]:
    """Fixtures that come out differently from what they say."""
    bad: list[Failure] = []
    for rule_id, items in sorted(fixtures.items()):
        rule = known.rules.get(rule_id)
        for item in items if rule else []:
            assert rule is not None
            got = state_of(known, rule, ledger_of(known, item.facts))
            if got != item.expect:
                bad.append(Failure(rule_id, item.name, item.expect, got))
    return bad


def generate(known: Knowledge, rule: Rule) -> list[Fixture]:
    """The fixtures a rule calls for. Facts that contradict each other leave out only the fixture they spoil."""
    guard = tree(rule.applies) if rule.applies is not None else None
    when = tree(rule.when)
    whole: Tree = Node("all", 0, (guard, when)) if guard is not None else when
    table: dict[str, tuple[State, dict[str, Any]]] = {}
    fires = witness(whole, True, known.facts)
    if fires is not None:
        table["fires"] = ("fired", fires)
    offset: tuple[int, ...] = (1,) if guard is not None else ()
    for path in paths(when):
        _pair(known, whole, (*offset, *path), table, "clear", "clear by ")
    if guard is not None:
        for path in paths(guard):
            _pair(known, whole, (0, *path), table, "not_applicable", "not applicable by ")
    _missing(known, whole, offset, when, table)
    foreign = _foreign(rule)
    if fires is not None and foreign is not None:
        table["not applicable to another engine or version"] = ("not_applicable", {**fires, **foreign})
    return _checked(known, rule, table)


def _pair(
    known: Knowledge, whole: Tree, path: tuple[int, ...], table: dict[str, tuple[State, dict[str, Any]]],
    no: State, word: str,
) -> None:  # fmt: skip
    """Facts on both sides of one leaf that decides alone."""
    leaf = leaf_at(whole, path)
    for truth in (True, False):
        values = deciding(whole, path, truth, known.facts)
        if values is None:
            continue
        fired = truth_of(whole, values) is True
        name = _free(f"fires by {leaf.text}" if fired else f"{word}{leaf.text}", table)
        table[name] = ("fired" if fired else no, values)


def _free(name: str, table: Mapping[str, Any]) -> str:
    """The name, numbered when a leaf of the same words stands in several places."""
    number = 2
    free = name
    while free in table:
        free, number = f"{name} ({number})", number + 1
    return free


def _missing(
    known: Knowledge, whole: Tree, offset: tuple[int, ...], when: Leaf | Node,
    table: dict[str, tuple[State, dict[str, Any]]],
) -> None:  # fmt: skip
    for path in paths(when):
        values = deciding(whole, (*offset, *path), None, known.facts)
        if values is not None:
            table[f"missing {leaf_at(when, path).fact}"] = ("missing_input", values)
            return


def _foreign(rule: Rule) -> dict[str, Any] | None:
    """An engine or version outside the rule's ranges; ``None`` for rules that hold everywhere."""
    if not rule.versions:
        return None
    for engine, spec in rule.versions.items():
        for version in ("0.1.0", "99.0"):
            if holds(spec, version) is False:
                return {"engine.name": engine, "engine.version": version}
    return {"engine.name": _OTHER_ENGINE}


def _checked(known: Knowledge, rule: Rule, table: Mapping[str, tuple[State, dict[str, Any]]]) -> list[Fixture]:
    """Only fixtures that come out as meant, each set of facts once."""
    out: list[Fixture] = []
    seen: set[str] = set()
    for name, (state, facts) in table.items():
        key = json.dumps(facts, sort_keys=True)
        if key in seen or state_of(known, rule, ledger_of(known, facts)) != state:
            continue
        seen.add(key)
        out.append(Fixture(name=name, expect=state, facts=dict(sorted(facts.items()))))
    return out


def refill(known: Knowledge, rule: Rule, old: list[Fixture]) -> list[Fixture]:
    """The generated set anew, with the hand-written fixtures kept in front."""
    kept = [item for item in old if not item.name.startswith(GENERATED)]
    names = {item.name for item in kept}
    return [*kept, *(item for item in generate(known, rule) if item.name not in names)]
