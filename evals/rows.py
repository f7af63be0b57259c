"""One line of a run: what an arm said about one case, reduced to what the scorers need. No text of a world in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from agent.advice import contradictions
from agent.diagnosis import Diagnosis


class CauseSaid(Struct, kw_only=True):
    """A ranked cause of an answer."""

    family: str
    layer: str
    confidence: float
    verdict: str
    role: str


class ActionSaid(Struct, kw_only=True):
    """A piece of advice."""

    do: str
    how: str
    command: str = ""
    rollback: str = ""
    flag: str = ""
    direction: str = ""


class Said(Struct, kw_only=True):
    """An answer, reduced. ``probes``: ask, command, change and read of each next probe, as one text."""

    outcome: str
    confidence: float = 0.0
    basis: str = ""
    causes: list[CauseSaid] = field(default_factory=list)
    chain: list[tuple[str, str]] = field(default_factory=list)
    probes: list[str] = field(default_factory=list)
    actions: list[ActionSaid] = field(default_factory=list)
    cited_files: list[str] = field(default_factory=list)
    fired: list[str] = field(default_factory=list)
    contradictions: int = 0

    def top(self) -> CauseSaid | None:
        """The supported cause on top of an answer that names an incident."""
        if self.outcome != "incident":
            return None
        return next((c for c in self.causes if c.verdict == "supported"), None)

    def roots(self) -> list[str]:
        """Families offered as causes: supported, and not as a mere symptom of another one."""
        if self.outcome != "incident":
            return []
        return [c.family for c in self.causes if c.verdict == "supported" and c.role != "symptom"]


class Row(Struct, kw_only=True, omit_defaults=True):
    """One case × arm × repeat. ``claims``/``valid``: citations checked and found true. ``without``: the answer with the
    decisive files taken away. Times in seconds."""

    case: str
    arm: str
    repeat: int = 0
    said: Said | None = None
    digest: str = ""
    error: str = ""
    claims: int = 0
    valid: int = 0
    bad: list[str] = field(default_factory=list)
    without: Said | None = None
    seconds: float = 0.0
    cpu_s: float = 0.0
    first_s: float = 0.0
    probes_run: int = 0
    model_calls: int = 0
    model_tokens: int = 0
    usd: float = 0.0


def reduce(diagnosis: Diagnosis) -> Said:
    """The part of a diagnosis that is scored."""
    ids = {item.id: item for item in diagnosis.evidence}
    cited: dict[str, None] = {}
    todo = [i for cause in diagnosis.causes[:1] for i in cause.evidence] + [
        i for x in diagnosis.chain for i in x.evidence
    ]
    if diagnosis.outcome != "incident":
        todo += [i for rule in diagnosis.rules if rule.state == "fired" for i in rule.evidence]
    seen: set[str] = set()
    while todo:
        item = ids.get(todo.pop(0))
        if item is None or item.id in seen:
            continue
        seen.add(item.id)
        todo.extend(i for i in item.source.inputs if i in ids)
        if item.source.ref:
            cited[item.source.ref.partition("#")[0]] = None
    return Said(
        outcome=diagnosis.outcome,
        confidence=diagnosis.confidence,
        basis=diagnosis.basis,
        causes=[
            CauseSaid(family=c.family, layer=c.layer, confidence=c.confidence, verdict=c.verdict, role=c.role)
            for c in diagnosis.causes
        ],
        chain=[(link.layer, link.state) for link in diagnosis.chain],
        probes=[" | ".join(x for x in (p.ask, p.command, p.change, p.read) if x) for p in diagnosis.probes],
        actions=[
            ActionSaid(do=a.do, how=a.how, command=a.command, rollback=a.rollback, flag=a.flag, direction=a.direction)
            for a in diagnosis.actions
        ],
        cited_files=sorted(cited),
        fired=[r.id for r in diagnosis.rules if r.state == "fired"],
        contradictions=len(contradictions(diagnosis.actions)),
    )


def digest(diagnosis: Diagnosis) -> str:
    """Hash of the whole answer without its timings; equal digests mean bit-identical answers."""
    return hashlib.sha256(diagnosis.to_json(stable=True)).hexdigest()[:16]


def read_rows(path: Path) -> list[Row]:
    """Rows of a JSONL file. A torn last line (a crash in mid-write) is dropped; a broken line elsewhere raises."""
    return list(_rows(path))


def _rows(path: Path) -> Iterator[Row]:
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            yield msgspec.json.decode(line, type=Row)
        except msgspec.DecodeError:
            if any(rest.strip() for rest in lines[number + 1 :]):
                raise ValueError(f"{path.name}: line {number + 1} is broken") from None
            return


def encode(row: Row) -> bytes:
    """One JSONL line."""
    data: Any = msgspec.json.encode(row)
    return bytes(data) + b"\n"
