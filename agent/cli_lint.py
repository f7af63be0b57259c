"""The parts of ``inferdx lint-knowledge`` that run fixtures, mutate conditions or write files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from agent import fixtures as fx
from knowledge import fixture_files
from knowledge.lint_base import Book, close, quick_book, read_book
from knowledge.lint_rules import PREFIX
from knowledge.loader import ROOT
from knowledge.schema import Rule

TEMPLATE = """id: {id}
family: {family}
title: {{en: "", zh: ""}}
mechanism:
  en: ""
  zh: ""
when:
  all:
    - kv.usage.max >= 0.9
strength: moderate
supports: []
against: []
refuted_by: []
cites: []
"""


def _say(text: str) -> int:
    print(f"inferdx: {text}", file=sys.stderr)
    return 3


def _target(args: argparse.Namespace, roots: list[Path]) -> Path:
    """Where new files go: ``--into``, else the last site folder, else the knowledge of this checkout."""
    return Path(args.into) if args.into else roots[-1] if roots else ROOT


def fixtures(roots: list[Path], only: list[str]) -> int:
    """Run all fixtures, or those of the rules named; one line per failure."""
    book = quick_book(roots)
    chosen = {key: items for key, items in book.fixtures.items() if not only or key in only}
    failures = fx.run(book.knowledge(), chosen)
    for failure in failures:
        print(failure.line())
    count = sum(len(items) for items in chosen.values())
    print(f"{count} fixtures of {len(chosen)} rules, {len(failures)} fail", file=sys.stderr)
    return 1 if failures or not count else 0


def mutate(roots: list[Path]) -> int:
    """Report changed conditions that no fixture notices; status 1 above 2 %."""
    from agent.mutants import check

    book = quick_book(roots)
    report = check(book.knowledge(), book.fixtures)
    for survivor in report.survivors:
        print(survivor.line())
    print(
        f"{report.rules} rules, {report.mutants} mutants, {len(report.survivors)} survive ({report.share():.2%})",
        file=sys.stderr,
    )
    return 0 if report.mutants and report.share() <= 0.02 else 1


def fill(args: argparse.Namespace, roots: list[Path]) -> int:
    """Write fixtures for rules that lack some, or anew for the rules named. Hand-written ones are kept."""
    book = quick_book(roots)
    unknown = [name for name in args.fill_fixtures if name not in book.rules]
    if unknown:
        return _say(f"no rule {unknown[0]}; {close(unknown[0], book.rules)}")
    chosen = args.fill_fixtures or [key for key in sorted(book.rules) if lacks(book, key)]
    for key in chosen:
        strange = unknown_facts(book, key)
        if strange:
            print(f"{key}: unknown fact {strange[0]}; {close(strange[0], book.facts)}", file=sys.stderr)
            continue
        path = write_fixtures(book, book.rules[key], _target(args, roots))
        print(f"wrote {path}")
    return 0


def unknown_facts(book: Book, key: str) -> list[str]:
    """Names in a rule's conditions that the vocabulary does not hold: no fixture can be written for them."""
    from knowledge.logic import facts_of

    rule = book.rules[key]
    names = {name for cond in (rule.applies, rule.when) if cond is not None for name in facts_of(cond)}
    return sorted(names - set(book.facts))


def lacks(book: Book, key: str) -> bool:
    """Whether a rule misses a needed state, or has a fixture that fails."""
    from knowledge.lint_fixtures import NEEDED

    have = book.fixtures.get(key, [])
    states = {item.expect for item in have}
    if not all(state in states for state in NEEDED):
        return True
    return bool(fx.run(book.knowledge(), {key: have}))


def write_fixtures(book: Book, rule: Rule, root: Path) -> Path:
    """Fixtures of one rule into ``root/fixtures``; returns the file."""
    path = root / "fixtures" / f"{rule.id}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        fixture_files.text(fx.refill(book.knowledge(), rule, book.fixtures.get(rule.id, []))), encoding="utf-8"
    )
    return path


def new_rule(args: argparse.Namespace, roots: list[Path]) -> int:
    """Write a rule file to fill in, and the fixtures its conditions call for."""
    book = quick_book(roots)
    cause = book.causes.get(args.family)
    if cause is None:
        return _say(f"--family {args.family or '…'}: {close(args.family, book.causes)}")
    if args.new_rule in book.rules:
        return _say(f"rule {args.new_rule} exists (inferdx explain {args.new_rule})")
    prefix = PREFIX[cause.layer]
    if not args.new_rule.startswith(prefix):
        return _say(f"a rule of the {cause.layer} layer is called {prefix}…")
    root = _target(args, roots)
    path = root / "rules" / cause.layer / f"{args.new_rule}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TEMPLATE.format(id=args.new_rule, family=args.family), encoding="utf-8")
    again = read_book([root], over=book)
    written = write_fixtures(again, again.rules[args.new_rule], root)
    print(f"wrote {path}\nwrote {written}")
    print(f"Fill in the rule, then: inferdx lint-knowledge --fill-fixtures {args.new_rule} && inferdx docs")
    return 0
