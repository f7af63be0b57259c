"""The evidence ledger and the read-only view that rules see: one value per fact, with the ids behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, structs

from knowledge.schema import Combine, Knowledge
from tools.contract import Reading, Source, Status


class Evidence(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A :class:`~tools.contract.Reading` that has entered the ledger under an id (``E1`` …)."""

    id: str
    fact: str
    value: Any
    unit: str = ""
    source: Source
    method: str = ""
    labels: dict[str, str] = {}
    window: tuple[float, float] | None = None
    caveats: tuple[str, ...] = ()
    status: Status = "ok"
    via: str = ""


# Which reader's value a condition reads when several give the same fact: measured on the server, then its log, then
# tools beside it, then a client's result, then a person's words. Values of one rank are combined, never across ranks.
RANK = {
    "metrics": 0,
    "prometheus": 0,
    "log": 1,
    "host": 1,
    "gpu": 1,
    "profile": 1,
    "config": 2,
    "hf_config": 2,
    "bench": 3,
    "report": 4,
}


class Ledger:
    """Append-only list of evidence, and the view conditions read (:class:`knowledge.logic.Facts`)."""

    def __init__(self, known: Knowledge) -> None:
        self._known = known
        self._items: list[Evidence] = []
        self._by_fact: dict[str, list[Evidence]] = {}
        self._seen: dict[tuple[Any, ...], str] = {}
        self._values: dict[str, tuple[Any, tuple[str, ...]]] = {}
        self.unknown_facts: set[str] = set()

    def add(self, reading: Reading) -> str:
        """Append and return the id; an identical reading returns the id it already has."""
        if reading.fact not in self._known.facts:
            self.unknown_facts.add(reading.fact)
        src = reading.source
        key = (
            reading.fact,
            repr(reading.value),
            src.kind,
            src.ref,
            src.line,
            src.span,
            reading.method,
            tuple(sorted(reading.labels.items())),
            reading.window,
        )
        if key in self._seen:
            return self._seen[key]
        definition = self._known.facts.get(reading.fact)
        unit = reading.unit or (definition.unit if definition else "")
        item = Evidence(id=f"E{len(self._items) + 1}", **{**structs.asdict(reading), "unit": unit})
        self._items.append(item)
        self._by_fact.setdefault(item.fact, []).append(item)
        self._values.pop(item.fact, None)
        self._seen[key] = item.id
        return item.id

    def extend(self, readings: Iterable[Reading]) -> list[str]:
        """:meth:`add` for each."""
        return [self.add(reading) for reading in readings]

    def __iter__(self) -> Iterator[Evidence]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def get(self, evidence_id: str) -> Evidence | None:
        """Evidence by id."""
        digits = evidence_id[1:]
        # A model may write any text here: superscripts are digits to str.isdigit, and int() refuses very long numbers.
        if evidence_id[:1] != "E" or not digits.isascii() or not digits.isdigit() or len(digits) > 12:
            return None
        return self._items[int(digits) - 1] if 0 < int(digits) <= len(self._items) else None

    def of(self, fact: str) -> list[Evidence]:
        """All usable evidence of a fact, in the order it came."""
        return [item for item in self._by_fact.get(fact, []) if item.status == "ok"]

    def facts(self) -> set[str]:
        """Names of all facts with usable evidence."""
        return {fact for fact, items in self._by_fact.items() if any(i.status == "ok" for i in items)}

    def value(self, fact: str) -> Any:
        """The combined value of a fact (see ``combine`` in the vocabulary), ``None`` when not known."""
        return self._combined(fact)[0]

    def ids(self, fact: str) -> tuple[str, ...]:
        """Ids of the evidence behind :meth:`value`."""
        return self._combined(fact)[1]

    def num(self, fact: str) -> float | None:
        """The combined value as a number, ``None`` when absent or not numeric."""
        value = self.value(fact)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def _combined(self, fact: str) -> tuple[Any, tuple[str, ...]]:
        if fact not in self._values:
            definition = self._known.facts.get(fact)
            how: Combine = definition.combine if definition else "max"
            self._values[fact] = combine(_best_rank(self.of(fact), how), how)
        return self._values[fact]


def _best_rank(items: list[Evidence], how: Combine) -> list[Evidence]:
    """The evidence of the best-ranked reader only; yes/no facts that any reader may assert keep them all."""
    if len(items) < 2 or (how == "any" and all(isinstance(i.value, bool) for i in items)):
        return items
    best = min(RANK.get(i.via, 5) for i in items)
    return [i for i in items if RANK.get(i.via, 5) == best]


def combine(items: list[Evidence], how: Combine) -> tuple[Any, tuple[str, ...]]:
    """One value from several labelled ones; non-numeric values fall back to the last, booleans to ``any``."""
    if not items:
        return None, ()
    if len(items) == 1:
        return items[0].value, (items[0].id,)
    if how in ("first", "last"):
        pick = items[0] if how == "first" else items[-1]
        return pick.value, (pick.id,)
    if all(isinstance(i.value, bool) for i in items):
        hits = [i for i in items if i.value]
        if how == "all":
            return len(hits) == len(items), tuple(i.id for i in items)
        return (True, tuple(i.id for i in hits[:4])) if hits else (False, tuple(i.id for i in items[:4]))
    numeric = [i for i in items if isinstance(i.value, (int, float)) and not isinstance(i.value, bool)]
    if len(numeric) != len(items):
        return items[-1].value, (items[-1].id,)
    if how in ("sum", "mean"):
        total = sum(i.value for i in numeric)
        return (total / len(numeric) if how == "mean" else total), tuple(i.id for i in numeric)
    pick = min(numeric, key=lambda i: i.value) if how == "min" else max(numeric, key=lambda i: i.value)
    return pick.value, (pick.id,)
