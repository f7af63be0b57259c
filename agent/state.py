"""State of one investigation: plain JSON only, so that checkpoints survive code changes; live things stay in the env."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, TypedDict

import msgspec
from msgspec import Struct, field

from knowledge.schema import Knowledge
from tools.contract import Context, Reading
from tools.view import Evidence, Ledger

MAX_PROBES = 12
MAX_SECONDS = 90.0


class State(TypedDict, total=False):
    """Everything a checkpoint holds. ``evidence`` is append-only, keyed by id."""

    evidence: list[dict[str, Any]]
    problems: list[dict[str, Any]]
    kinds: dict[str, str]
    results: list[dict[str, Any]]
    leads: list[dict[str, Any]]
    probes_run: list[str]
    dropped: list[str]
    steps: list[str]
    started: float
    next: str
    question: dict[str, Any]
    answer: dict[str, Any]
    pasted: list[dict[str, str]]
    inbox_done: int


class Executable(Struct, kw_only=True):
    """A probe that we can run ourselves on what is at hand. ``cost`` in seconds; ``gain`` of the facts it yields."""

    id: str
    yields: list[str]
    cost: float
    run: Callable[[Ledger], list[Reading]]


class Assistant(Protocol):
    """A model behind checks (see :mod:`agent.assistant`). It may be absent, slow, wrong or hostile."""

    def propose(self, name: str, text: str, have: set[str]) -> list[Reading]:
        """Further facts of a person's words, each with a span that says so."""
        ...

    def order(self, ids: list[str], leads: list[dict[str, Any]]) -> list[str]:
        """A permutation of ``ids``."""
        ...

    def narrate(self, diagnosis: Any) -> list[str]:
        """Checked sentences."""
        ...

    def usage(self) -> dict[str, Any]:
        """What it cost."""
        ...


class Orderer(Protocol):
    """Something that may re-order enumerated probes (a model). It cannot add to them."""

    def order(self, ids: list[str], leads: list[dict[str, Any]]) -> list[str]:
        """A permutation of ``ids``; anything else is ignored."""
        ...


class Env(Struct, kw_only=True):
    """What the steps need and a checkpoint must not hold: knowledge, inputs, clock, executable probes, a model."""

    known: Knowledge
    context: Context = field(default_factory=Context)
    gather: Callable[[], tuple[list[Reading], list[dict[str, Any]], dict[str, str]]] | None = None
    words: Callable[[], dict[str, str]] | None = None
    executables: Callable[[Ledger], list[Executable]] | None = None
    baseline: Ledger | None = None
    orderer: Orderer | None = None
    assistant: Assistant | None = None
    clock: Callable[[], float] = time.monotonic
    lang: str = "en"
    interactive: bool = False
    max_probes: int = MAX_PROBES
    max_seconds: float = MAX_SECONDS
    cache: dict[str, Any] = field(default_factory=dict)

    def ledger(self, state: State) -> Ledger:
        """The ledger of a state, rebuilt only when evidence was added."""
        rows = state.get("evidence", [])
        held: Ledger | None = self.cache.get("ledger")
        if held is not None and len(held) == len(rows) and self.cache.get("rows") is rows:
            return held
        ledger = Ledger(self.known)
        for row in rows:
            item = msgspec.convert(row, Evidence)
            ledger.add(Reading(**{k: getattr(item, k) for k in Reading.__struct_fields__}))
        self.cache["ledger"], self.cache["rows"] = ledger, rows
        return ledger

    def keep(self, ledger: Ledger) -> list[dict[str, Any]]:
        """The ledger as plain rows for the state."""
        rows: list[dict[str, Any]] = [msgspec.to_builtins(item) for item in ledger]
        self.cache["ledger"], self.cache["rows"] = ledger, rows
        return rows
