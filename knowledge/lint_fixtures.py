"""Every rule has its small facts files: firing, clear, with something missing."""

from __future__ import annotations

from typing import Any

from knowledge.lint_base import Book, close
from knowledge.schema import Fixture

NEEDED = ("fired", "clear", "missing_input")


def check(book: Book) -> None:
    """Findings for rules without fixtures, fixtures without rules, and facts in them that no one yields."""
    for key, rule in book.rules.items():
        if rule.lifecycle == "deprecated":
            continue
        states = {fixture.expect for fixture in book.fixtures.get(key, [])}
        gaps = [state for state in NEEDED if state not in states]
        if gaps:
            book.add("rules", key, f"no fixture for {', '.join(gaps)}", f"fill fixtures/{key}.yaml: --fill-fixtures")
    for key, fixtures in book.fixtures.items():
        if key not in book.rules:
            book.add("fixtures", key, "fixtures of no rule", close(key, book.rules))
        names: set[str] = set()
        for fixture in fixtures:
            if fixture.name in names:
                book.add("fixtures", key, f"two fixtures are called {fixture.name!r}", "rename one")
            names.add(fixture.name)
            _facts(book, key, fixture)


def _facts(book: Book, key: str, fixture: Fixture) -> None:
    for name, value in fixture.facts.items():
        fact = book.facts.get(name)
        if fact is None:
            book.add("fixtures", key, f"{fixture.name!r}: unknown fact {name}", close(name, book.facts))
        elif not _typed(fact.type, value):
            book.add("fixtures", key, f"{fixture.name!r}: {name} is a {fact.type}, not {value!r}", "give that type")


def _typed(kind: str, value: Any) -> bool:
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, list if kind == "list" else str)
