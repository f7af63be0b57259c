"""A value computed from other facts, with the evidence behind it."""

from __future__ import annotations

from typing import Any

from tools.contract import Reading, Source
from tools.view import Evidence, Ledger


def computed(
    fact: str, value: Any, method: str, ledger: Ledger, *inputs: str | Evidence, caveats: tuple[str, ...] = ()
) -> Reading:
    """A reading whose sources are other facts: evidence ids of the inputs stand in ``source.inputs``.

    An input is a fact's name, or the evidence itself where it is not what the ledger combines the fact to.
    """
    behind = ((x.id,) if isinstance(x, Evidence) else ledger.ids(x) for x in inputs)
    ids = tuple(dict.fromkeys(i for row in behind for i in row))
    if isinstance(value, float):
        value = round(value, 6)
    return Reading(fact=fact, value=value, source=Source(kind="computed", inputs=ids), method=method, caveats=caveats)


def first(ledger: Ledger, *facts: str) -> tuple[str, float] | None:
    """The first of these facts that has a number, with its value."""
    for fact in facts:
        value = ledger.num(fact)
        if value is not None:
            return fact, value
    return None
