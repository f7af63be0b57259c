"""The one shape that every reader takes and gives.

A reader is a module with ``read(parts, context) -> ReadResult``. It never raises on bad content: what cannot be read
becomes a :class:`Problem` and what could be read is kept.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from tools.part import Part

Status = Literal["ok", "no_data", "error"]


class Source(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Where a value was read, precisely enough to read it again.

    ``kind``: ``file`` (``ref`` = path inside the world, ``line`` 1-based), ``url``, ``query`` (PromQL in ``query``),
    ``words`` (a person's words; ``span`` verbatim), ``computed`` (``inputs`` = facts or evidence ids it came from).
    """

    kind: Literal["file", "url", "query", "words", "computed"]
    ref: str = ""
    line: int = 0
    span: str = ""
    query: str = ""
    inputs: tuple[str, ...] = ()


class Reading(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One value of one fact of the vocabulary, with everything needed to trust or doubt it.

    ``window``: start and end in Unix seconds (or seconds since the first reading). ``labels``: engine, replica,
    model, rank, variant, concurrency … ``method``: how it was computed, in words with numbers.
    ``status`` other than ``ok`` is never evidence for a cause. ``via``: the reader, set by the router; measured values
    go before stated ones where both give the same fact.
    """

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


class Problem(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One clear line about input that could not be used: what, where, what to do."""

    ref: str
    what: str
    do: str = ""
    severity: Literal["note", "warning", "error"] = "warning"

    def line(self) -> str:
        """``ref: what; do``."""
        tail = f"; {self.do}" if self.do else ""
        return f"{self.ref}: {self.what}{tail}"


class ReadResult(Struct, omit_defaults=True, kw_only=True):
    """What one reader made of its parts. ``nested`` are parts found inside (fenced blocks, tar members)."""

    readings: list[Reading] = []
    problems: list[Problem] = []
    nested: list[Part] = []


class Context(Struct, omit_defaults=True, kw_only=True):
    """What the caller knows before reading: SLOs (fact → limit), wanted labels, site settings, clock."""

    slo: dict[str, float] = {}
    match: dict[str, str] = {}
    options: dict[str, str] = {}
