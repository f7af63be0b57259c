"""The map from every row of the rule inventory (R001–R286, N01–N23) to what became of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import lru_cache

import msgspec
from msgspec import field

from knowledge.loader import ROOT, KnowledgeError, read_yaml
from knowledge.schema import Knowledge, Strict

ROWS = (*(f"R{number:03d}" for number in range(1, 287)), *(f"N{number:02d}" for number in range(1, 24)))


class Row(Strict, kw_only=True):
    """What became of one row.

    ``to``: targets ``rule:ID``, ``signature:ID``, ``fact:NAME``, ``page:ID``, ``metric:NAME``, ``flag:NAME`` or
    ``family:ID``, the last optionally with ``/explain``, ``/action/FLAG``, ``/probe/ID`` or ``/will_not_help``.
    ``not_shipped``: why the statement is not shipped as the essay has it; ``to`` may then name what is said instead.
    ``reconstructed``: the essay's table or code block is lost and the row was rebuilt from the text around it.
    ``corrected``: ids of the claim checks that changed the statement.
    """

    to: list[str] = field(default_factory=list)
    not_shipped: str = ""
    reconstructed: bool = False
    corrected: list[str] = field(default_factory=list)
    note: str = ""


@lru_cache(maxsize=1)
def coverage() -> dict[str, Row]:
    """``knowledge/coverage.yaml``. Raises :class:`KnowledgeError` when a row cannot be read."""
    try:
        return msgspec.convert(read_yaml(ROOT / "coverage.yaml"), dict[str, Row])
    except msgspec.ValidationError as error:
        raise KnowledgeError(f"coverage.yaml: {error}") from None


def problems(
    known: Knowledge, metrics: Collection[str], flag_known: Callable[[str], bool], rows: dict[str, Row] | None = None
) -> Iterator[tuple[str, str]]:
    """``(row, what)`` for rows that are unmapped, unknown, or whose target does not exist."""
    table = coverage() if rows is None else rows
    for row_id in ROWS:
        if row_id not in table:
            yield row_id, "unmapped"
    for row_id, row in table.items():
        if row_id not in ROWS:
            yield row_id, "no such row"
        if not row.to and not row.not_shipped:
            yield row_id, "no target and no reason"
        for target in row.to:
            what = _missing(known, metrics, flag_known, target)
            if what:
                yield row_id, what


def _missing(known: Knowledge, metrics: Collection[str], flag_known: Callable[[str], bool], target: str) -> str:
    kind, _, name = target.partition(":")
    tables: dict[str, Collection[str]] = {
        "rule": known.rules, "signature": known.signatures, "fact": known.facts, "page": known.pages, "metric": metrics,
    }  # fmt: skip
    if kind in tables:
        return "" if name in tables[kind] else f"{kind} {name} does not exist"
    if kind == "flag":
        return "" if flag_known(name) else f"flag {name} does not exist"
    if kind == "family":
        return _in_family(known, name)
    return f"cannot read target {target!r}"


def _in_family(known: Knowledge, name: str) -> str:
    family, _, rest = name.partition("/")
    card = known.families.get(family)
    if card is None:
        return f"family {family} does not exist"
    part, _, item = rest.partition("/")
    if part in ("", "explain"):
        return ""
    if part == "will_not_help":
        return "" if card.will_not_help else f"family {family} says nothing of what will not help"
    if part == "action":
        have = {action.flag for action in card.actions}
        return "" if (card.actions and not item) or item in have else f"family {family} has no action on {item}"
    if part == "probe":
        ids = {probe.id for probe in card.probes}
        return "" if (ids and not item) or item in ids else f"family {family} has no probe {item}"
    return f"family {family} has no part {part}"
