"""The linter of the knowledge base: one line per finding, over the shipped data and over a site's own.

It reads the files itself and goes on after a bad one, so that one typo does not hide the next.
"""

from __future__ import annotations

from pathlib import Path

from knowledge import lint_catalogue, lint_conditions, lint_fixtures, lint_records, lint_rules, lint_texts
from knowledge.lint_base import Book, Finding, read_book
from knowledge.loader import ROOT

__all__ = ["Book", "Finding", "lint", "lint_book"]


def lint(extra: list[Path] | None = None) -> list[Finding]:
    """Findings over the shipped knowledge and further roots, sorted by file and id. Empty means sound."""
    return lint_book(read_book([ROOT, *(extra or [])]))


def lint_book(book: Book) -> list[Finding]:
    """Findings over records that were read already."""
    for part in (lint_records, lint_conditions, lint_rules, lint_texts, lint_fixtures, lint_catalogue):
        part.check(book)
    return sorted(set(book.findings))
