"""Checks of the knowledge base that need the tools: flags against the flag history, rules against the solver.

They add to :mod:`knowledge.lint`, which imports nothing of ours and so cannot look at either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from agent.fixtures import run
from agent.screen import tree
from agent.witness import witness
from knowledge.lint import lint_book
from knowledge.lint_base import Book, Finding, close, read_book
from knowledge.loader import ROOT
from knowledge.logic import ConditionError, Node
from knowledge.schema import Action

_ENV = re.compile(r"^[A-Z][A-Z0-9_]+$")
# Options of container runtimes that an engine once had as well.
_SHARED_NAMES = frozenset({"device"})


def lint_all(extra: list[Path] | None = None, *, fixtures: bool = True) -> list[Finding]:
    """Everything: the plain linter, flags, conditions that cannot hold, coverage, fixtures that fail. Sorted."""
    book = read_book([ROOT, *(extra or [])])
    found = set(lint_book(book))
    book.findings.clear()
    _flags(book)
    _offered(book)
    _conditions(book)
    found.update(book.findings)
    found.update(_coverage(book))
    if fixtures:
        found.update(_fixtures(book))
    return sorted(found)


def _actions(book: Book) -> Iterator[tuple[str, str, int, Action]]:
    for kind, table in (("rules", book.rules), ("families", book.families)):
        for key, record in table.items():
            for number, action in enumerate(record.actions, 1):
                yield kind, key, number, action


def _flags(book: Book) -> None:
    """A flag that no version of any engine has, or none inside the action's own range."""
    from tools.config.data import load
    from tools.config.flags import describe_flag

    data = load()
    names = {name for engine in data.engines.values() for name in (*engine.flags, *engine.history)}
    nested = {name for engine in data.engines.values() for flag in engine.flags.values() for name in flag.nested}
    env = {*data.env, *(name for engine in data.engines.values() for name in engine.env_history)}
    for kind, key, number, action in _actions(book):
        if not action.flag:
            continue
        place = f"action {number}"
        if _ENV.match(action.flag):
            if action.flag not in env:
                book.add(kind, key, f"{place}: unknown variable {action.flag}", close(action.flag, env))
            continue
        if describe_flag(action.flag) is None and action.flag not in nested:
            book.add(kind, key, f"{place}: no engine has --{action.flag}", close(action.flag.replace("_", "-"), names))
            continue
        for engine in action.versions:
            if action.flag not in nested and not _in_range(engine, action):
                book.add(
                    kind, key, f"{place}: {engine} has no --{action.flag} in {action.versions[engine] or 'any version'}",
                    "correct versions, or take the flag of that engine",
                )  # fmt: skip


def _offered(book: Book) -> None:
    """Flags in advice to set something that some release inside the action's own range lacks.

    Only vLLM from 0.8 on is held to it: older engines are told apart by their generation.
    """
    from knowledge.versions import holds
    from tools.config.data import engine_data
    from tools.config.flags import flag_exists, flags_mentioned

    vllm = engine_data("vllm")
    nested = {name for flag in vllm.flags.values() for name in flag.nested}
    exact = [release if release.count(".") > 1 else f"{release}.0" for release in vllm.releases]
    releases = [release for release in exact if holds(">=0.8", release)]
    for kind, key, number, action in _actions(book):
        if action.direction in ("remove", "off", "lower") or (action.versions and "vllm" not in action.versions):
            continue
        named = {m.flag for m in flags_mentioned(action.command) if m.engine == "vllm" and m.span.startswith("--")}
        if action.flag and not _ENV.match(action.flag):
            named.add(action.flag)
        inside = [release for release in releases if holds(action.versions.get("vllm", ""), release)]
        for name in sorted(named - nested - _SHARED_NAMES):
            gaps = [release for release in inside if flag_exists(name, "vllm", release) is False]
            if gaps and flag_exists(name, "vllm", inside[-1]) is not None:
                book.add(
                    kind, key, f"action {number}: offers --{name.replace('_', '-')} to vLLM {gaps[0]}, which lacks it",
                    "give versions: {vllm: '>=…'}",
                )  # fmt: skip


def _in_range(engine: str, action: Action) -> bool:
    from knowledge.versions import holds
    from tools.config.data import engine_data
    from tools.config.flags import flag_exists

    releases = engine_data(engine).releases
    inside = [release for release in releases if holds(action.versions[engine], release)]
    if not releases or not inside:
        return flag_exists(action.flag, engine) is not False
    return any(flag_exists(action.flag, engine, release) is not False for release in inside)


def _conditions(book: Book) -> None:
    """Rules that no facts make fire: contradictory leaves."""
    for key, rule in book.rules.items():
        try:
            whole = Node("all", 0, tuple(tree(cond) for cond in (rule.applies, rule.when) if cond is not None))
        except (ConditionError, ValueError, TypeError):
            continue
        if witness(whole, True, book.facts) is None:
            book.add("rules", key, "no facts were found that make it fire", "see whether its conditions contradict")


def _fixtures(book: Book) -> Iterator[Finding]:
    for failure in run(book.knowledge(), book.fixtures):
        file = book.file_of("fixtures", failure.rule)
        what = f"fixture {failure.fixture!r} expects {failure.expect}, the rule says {failure.got}"
        yield Finding(file, failure.rule, what, f"mend the rule, or --fill-fixtures {failure.rule}")


def _coverage(book: Book) -> Iterator[Finding]:
    from knowledge.catalogue import metric_names
    from knowledge.coverage import problems
    from tools.config.flags import describe_flag

    known = book.knowledge()
    for row, what in problems(known, metric_names(), lambda name: describe_flag(name) is not None):
        yield Finding("knowledge/coverage.yaml", row, what, "point it to something that exists")
