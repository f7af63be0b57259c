"""Facts, signatures and pages: usable as they stand."""

from __future__ import annotations

import re
from functools import cache

from knowledge.lint_base import Book, close
from knowledge.lint_rules import ENGINES
from knowledge.schema import FactDef, Signature
from knowledge.versions import holds

_NAME = re.compile(r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$")
_NUMERIC = frozenset({"max", "min", "sum", "mean"})
# A group that repeats and ends in a repetition: (a+)+, (\w*)* … the shapes that backtrack exponentially.
_RUNAWAY = re.compile(r"\((?:\?:|\?P<\w+>)?(?:\\?[\w.]|\[[^\]]*\])[+*]\)[+*]")


@cache
def _compiled(pattern: str) -> re.Pattern[str] | str:
    """The pattern, or why it does not compile. Kept: the module's own cache is smaller than the signatures are many."""
    try:
        return re.compile(pattern)
    except re.error as error:
        return str(error)


def check(book: Book) -> None:
    """Findings for facts, signatures and pages."""
    for fact in book.facts.values():
        _fact(book, fact)
    for signature in book.signatures.values():
        _signature(book, signature)
    for page in book.pages.values():
        if not page.cites:
            book.add("pages", page.id, "no citation", "cite the essay section, engine source or docs with version")
        if not page.keywords:
            book.add("pages", page.id, "no keyword", "give the words a person would search it by")


def _fact(book: Book, fact: FactDef) -> None:
    if not _NAME.match(fact.name):
        book.add("facts", fact.name, "not a dotted lower-case name", "rename it")
    if not fact.source:
        book.add("facts", fact.name, "no source", "name the tool that yields it")
    if fact.type == "bool" and fact.combine in ("sum", "mean", "min"):
        book.add("facts", fact.name, f"true or false cannot be combined by {fact.combine}", "use any, all or last")
    if fact.type in ("text", "list") and fact.combine in _NUMERIC - {"max"}:
        book.add("facts", fact.name, f"{fact.type} cannot be combined by {fact.combine}", "use first or last")
    if fact.get is not None and not fact.get.how.strip():
        book.add("facts", fact.name, "get has no command", "give the exact command, its cost and risk")


def _signature(book: Book, item: Signature) -> None:
    if item.fact not in book.facts:
        book.add("signatures", item.id, f"yields unknown fact {item.fact}", close(item.fact, book.facts))
    pattern = _compiled(item.pattern)
    if isinstance(pattern, str):
        book.add("signatures", item.id, f"the pattern does not compile: {pattern}", "mend the regular expression")
        return
    if item.group and item.group not in pattern.groupindex:
        book.add("signatures", item.id, f"no group named {item.group} in the pattern", "name the group (?P<…>)")
    if _RUNAWAY.search(item.pattern):
        book.add(
            "signatures", item.id, "a repeated group that ends in a repetition", "rewrite it to run in linear time"
        )
    if pattern.match("") is not None and not item.pattern.startswith("^"):
        book.add("signatures", item.id, "the pattern matches the empty text", "make some part of it mandatory")
    # Words in which people tell a thing prove nothing; lines that an engine prints have a source.
    if "log" in item.where and not item.cites and not item.proves:
        book.add("signatures", item.id, "neither a citation nor what it proves", "say where the line comes from")
    for word in item.need:
        if word != word.lower():
            book.add("signatures", item.id, f"needle {word!r} is not lower-case", "needles are compared in lower case")
    for engine, spec in item.versions.items():
        if engine not in ENGINES:
            book.add("signatures", item.id, f"unknown engine {engine}", close(engine, ENGINES))
        try:
            holds(spec, "1.0")
        except ValueError as error:
            book.add("signatures", item.id, str(error), "write it like '>=0.8,<0.11'")
    if book.facts.get(item.fact) and book.facts[item.fact].type == "number" and isinstance(item.value, str):
        book.add("signatures", item.id, "a word for a fact that is a number", "give group or a number as value")
