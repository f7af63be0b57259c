"""The metric catalogue and the site file: names that exist, versions that can be read."""

from __future__ import annotations

import re

from knowledge.catalogue import Metric, catalogue
from knowledge.lint_base import Book, Finding, close
from knowledge.loader import KnowledgeError
from knowledge.site import apply, read_site
from knowledge.versions import parse_version

_FILE = "knowledge/metrics/catalogue.yaml"
_QUOTED = re.compile(r"`([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+)`")


def check(book: Book) -> None:
    """Findings for the catalogue, for facts that pages name, and for site files."""
    _pages(book)
    try:
        table = catalogue()
    except KnowledgeError as error:
        book.findings.append(Finding(_FILE, "catalogue", str(error), "mend the record"))
        table = {}
    for metric in table.values():
        _metric(book, table, metric)
    for root in book.roots[1:]:
        try:
            apply(book.knowledge(), read_site([root]))
        except KnowledgeError as error:
            book.findings.append(Finding(f"{root.name}/site.yaml", "site", str(error), "see knowledge/site.py"))


def _metric(book: Book, table: dict[str, Metric], metric: Metric) -> None:
    def add(what: str, do: str) -> None:
        book.findings.append(Finding(_FILE, metric.name, what, do))

    for fact in metric.facts:
        if fact not in book.facts:
            add(f"gives unknown fact {fact}", close(fact, book.facts))
    for name in (metric.now, *metric.was):
        if name and name not in table:
            add(f"names unknown family {name}", close(name, table))
    for name in metric.was:
        if name in table and table[name].now != metric.name:
            add(f"was {name}, which does not point back", "set now: there")
    for version in (metric.since, metric.gone):
        if version and parse_version(version) is None:
            add(f"cannot read the release {version!r}", "write it like 0.12.0")
    if not metric.means.zh:
        add("no Chinese", "write means as {en: …, zh: …}")


def _pages(book: Book) -> None:
    """Names in backticks that begin like facts must be facts."""
    areas = {name.split(".")[0] for name in book.facts}
    for page in book.pages.values():
        for name in sorted({*_QUOTED.findall(page.body.en), *_QUOTED.findall(page.body.zh)}):
            if name.split(".")[0] in areas and name not in book.facts:
                book.add("pages", page.id, f"names unknown fact {name}", close(name, book.facts))
