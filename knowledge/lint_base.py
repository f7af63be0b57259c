"""What the linter's parts share: findings, and all records with the file each came from."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from knowledge import fixture_files
from knowledge.loader import ROOT, KnowledgeError, load, read_yaml, yaml_files
from knowledge.schema import CauseDef, FactDef, Family, Fixture, Knowledge, Page, Rule, Signature

KINDS: dict[str, Any] = {
    "facts": FactDef,
    "rules": Rule,
    "families": Family,
    "signatures": Signature,
    "pages": Page,
}


class Finding(Struct, frozen=True, order=True):
    """One thing to mend: where it stands, what is wrong, what to do."""

    file: str
    id: str
    what: str
    do: str

    def line(self) -> str:
        """``file: id: what; do``."""
        return f"{self.file}: {self.id}: {self.what}; {self.do}"


class Book(Struct, kw_only=True):
    """All records of the given roots. ``where`` maps (kind, id) to the file, relative to its root."""

    roots: list[Path]
    facts: dict[str, FactDef] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=dict)
    families: dict[str, Family] = field(default_factory=dict)
    signatures: dict[str, Signature] = field(default_factory=dict)
    pages: dict[str, Page] = field(default_factory=dict)
    causes: dict[str, CauseDef] = field(default_factory=dict)
    fixtures: dict[str, list[Fixture]] = field(default_factory=dict)
    where: dict[tuple[str, str], str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def file_of(self, kind: str, key: str) -> str:
        """The file of a record, the kind's folder when the record is made up."""
        return self.where.get((kind, key), kind)

    def add(self, kind: str, key: str, what: str, do: str) -> None:
        """Note a finding about a record."""
        self.findings.append(Finding(self.file_of(kind, key), key, what, do))

    def knowledge(self) -> Knowledge:
        """The records as :class:`Knowledge`, with layers filled in as the loader does."""
        for rule in self.rules.values():
            cause = self.causes.get(rule.family)
            rule.layer = rule.layer or (cause.layer if cause else "")
        for family in self.families.values():
            cause = self.causes.get(family.id)
            family.layer = cause.layer if cause else ""
        return Knowledge(
            version="lint", facts=self.facts, rules=self.rules, families=self.families, causes=self.causes,
            signatures=self.signatures, pages=self.pages,
        )  # fmt: skip


def close(name: str, pool: Iterable[str]) -> str:
    """``did you mean …`` for a misspelt name, or advice to add it."""
    near = difflib.get_close_matches(name, list(pool), n=1, cutoff=0.7)
    return f"did you mean {near[0]}?" if near else "use a name of the vocabulary or add it there"


def read_book(roots: list[Path], over: Book | None = None) -> Book:
    """Everything readable below the roots; what is not readable becomes a finding. A later root overrides by id.

    ``over``: a book to lay the roots over instead of reading its files again; it is not changed.
    """
    book = Book(roots=[*(over.roots if over else []), *roots])
    if over is not None:
        for name in (*KINDS, "causes", "fixtures", "where"):
            setattr(book, name, dict(getattr(over, name)))
    for root in roots:
        _causes(book, root)
        for kind, struct in KINDS.items():
            table: dict[str, Any] = getattr(book, kind)
            seen: dict[str, str] = {}
            for name, record in _records(book, root, kind, struct):
                key = record.name if kind == "facts" else record.id
                if key in seen:
                    book.findings.append(
                        Finding(name, key, f"the id stands in {seen[key]} too", "keep one record or rename it")
                    )
                    continue
                seen[key] = name
                table[key] = record
                book.where[kind, key] = name
        _fixtures(book, root)
    return book


def quick_book(roots: list[Path]) -> Book:
    """The shipped records from the loader's cache, and the given roots read over them.

    For commands that need names and conditions only; a shipped file that cannot be read makes it :func:`read_book`.
    """
    try:
        known = load()
    except KnowledgeError:
        return read_book([ROOT, *roots])
    shipped = Book(roots=[ROOT])
    for kind in (*KINDS, "causes"):
        setattr(shipped, kind, dict(getattr(known, kind)))
    _fixtures(shipped, ROOT)
    return read_book(roots, over=shipped)


def _name(root: Path, path: Path) -> str:
    return f"{root.name}/{path.relative_to(root).as_posix()}"


def _plain(book: Book, root: Path, path: Path) -> Any:
    try:
        return read_yaml(path)
    except (KnowledgeError, OSError, UnicodeDecodeError) as error:
        text = str(error).splitlines()[0]
        book.findings.append(Finding(_name(root, path), path.stem, text, "mend the YAML"))
        return None


def _causes(book: Book, root: Path) -> None:
    path = root / "causes.yaml"
    if not path.exists():
        return
    data = _plain(book, root, path)
    rows = data.get("families", []) if isinstance(data, dict) else []
    for row in rows:
        try:
            cause = msgspec.convert(row, CauseDef)
        except msgspec.ValidationError as error:
            book.findings.append(Finding(_name(root, path), str(row)[:40], str(error), "give id, layer and means"))
            continue
        if cause.id in book.causes:
            book.findings.append(Finding(_name(root, path), cause.id, "the cause stands twice", "keep one row"))
        book.causes[cause.id] = cause
        book.where["causes", cause.id] = _name(root, path)


def _records(book: Book, root: Path, kind: str, struct: Any) -> Iterator[tuple[str, Any]]:
    for path in yaml_files(root, kind):
        data = _plain(book, root, path)
        rows = [] if data is None else data if isinstance(data, list) else [data]
        for number, row in enumerate(rows):
            try:
                yield _name(root, path), msgspec.convert(row, struct)
            except msgspec.ValidationError as error:
                label = row.get("id", row.get("name", number)) if isinstance(row, dict) else number
                book.findings.append(
                    Finding(_name(root, path), str(label), str(error), f"see {struct.__name__} in knowledge/schema.py")
                )


def _fixtures(book: Book, root: Path) -> None:
    for path in yaml_files(root, "fixtures"):
        name = _name(root, path)
        try:
            book.fixtures[path.stem] = fixture_files.read(path)
        except (KnowledgeError, OSError, UnicodeDecodeError) as error:
            book.findings.append(Finding(name, path.stem, str(error), "give a list of name, expect, facts"))
            continue
        book.where["fixtures", path.stem] = name
