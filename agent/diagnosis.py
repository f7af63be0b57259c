"""The answer: one typed object that every renderer takes. JSON Schema: ``docs/diagnosis.schema.json``."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from tools.view import Evidence

Outcome = Literal["incident", "healthy", "theoretical_limit", "undecidable"]
Band = Literal["very likely", "likely", "possible", "unlikely"]
RuleState = Literal["fired", "clear", "missing_input", "not_applicable", "error"]
SCHEMA_VERSION = "1"


class Cause(Struct, kw_only=True, omit_defaults=True):
    """One ranked cause. ``confidence`` 0–1 from code; ``evidence`` ids; ``says`` sentences with their evidence ids."""

    family: str
    layer: str
    title: str
    confidence: float
    band: Band
    evidence: list[str]
    rules: list[str]
    mechanism: str = ""
    verdict: Literal["supported", "lead", "refuted"] = "supported"
    role: Literal["root", "contributing", "symptom"] = "root"
    says: list[str] = []
    against: list[str] = []
    refuters_passed: list[str] = []
    caps: list[str] = []
    cites: list[str] = []


class Link(Struct, kw_only=True, omit_defaults=True):
    """One step of the chain, root first: a family or, at the end, the symptom a user feels."""

    state: str
    layer: str
    title: str
    evidence: list[str] = []


class LayerRow(Struct, kw_only=True, omit_defaults=True):
    """One row of the seven-layer table."""

    layer: str
    status: Literal["implicated", "ruled_out", "not_examined"]
    hypothesis: str = ""
    evidence: list[str] = []
    because: str = ""
    tool: str = ""
    verify: str = ""


class RuledOut(Struct, kw_only=True, omit_defaults=True):
    """A cause that was considered and set aside, and why."""

    family: str
    title: str
    because: str
    evidence: list[str] = []


class ActionAdvice(Struct, kw_only=True, omit_defaults=True):
    """Something a person may do. Nothing is ever executed by us."""

    do: str
    gain: str
    cost: str
    risk: str
    how: str
    family: str
    command: str = ""
    rollback: str = ""
    expect: str = ""
    predicted: str = ""
    direction: str = ""
    flag: str = ""
    cites: list[str] = []


class ProbeAdvice(Struct, kw_only=True, omit_defaults=True):
    """The next reading, control run or question: exact command, what each result would mean."""

    id: str
    ask: str
    command: str
    kind: str
    cost: str = "none"
    families: list[str] = []
    if_true: str = ""
    if_false: str = ""
    yields: list[str] = []
    change: str = ""
    keep: str = ""
    read: str = ""
    value: float = 0.0


class RuleResult(Struct, kw_only=True, omit_defaults=True):
    """Five-way result of one rule, with the evidence that decided it or the facts that were missing."""

    id: str
    family: str
    state: RuleState
    layer: str = ""
    evidence: list[str] = []
    missing: list[str] = []
    held: list[str] = []
    error: str = ""


class InputProblem(Struct, kw_only=True, omit_defaults=True):
    """Input that could not be used."""

    ref: str
    what: str
    do: str = ""
    severity: str = "warning"


class PastCase(Struct, kw_only=True, omit_defaults=True):
    """A recorded incident that looks like this one, as its one line."""

    id: str
    line: str
    similarity: float


class Provenance(Struct, kw_only=True, omit_defaults=True):
    """What produced the answer. Wall-clock readings live here and nowhere else, so answers compare bit for bit."""

    inferdx: str
    knowledge: str
    schema: str = SCHEMA_VERSION
    engine: str = ""
    engine_version: str = ""
    model: str = ""
    inputs: dict[str, str] = {}
    steps: list[str] = []
    model_calls: int = 0
    model_tokens: int = 0
    seconds: dict[str, float] = {}


class Diagnosis(Struct, kw_only=True, omit_defaults=False):
    """The whole answer. ``basis``: what the verdict rests on, readings or a person's words alone; empty without one."""

    outcome: Outcome
    headline: str
    causes: list[Cause]
    chain: list[Link]
    layers: list[LayerRow]
    actions: list[ActionAdvice]
    probes: list[ProbeAdvice]
    evidence: list[Evidence]
    rules: list[RuleResult]
    provenance: Provenance
    confidence: float = 0.0
    basis: Literal["", "readings", "words"] = ""
    summary: list[str] = []
    ruled_out: list[RuledOut] = []
    will_not_help: list[str] = []
    problems: list[InputProblem] = []
    missing: list[str] = []
    past: list[PastCase] = []
    narrative: list[str] = []
    lang: str = "en"

    def decide_first(self) -> bool:
        """A cause that words alone speak for: the probe that decides goes before any change."""
        return self.outcome == "incident" and self.basis == "words" and bool(self.probes)

    def exit_code(self) -> int:
        """0 healthy or theoretical limit, 1 incident, 2 undecidable."""
        return {"healthy": 0, "theoretical_limit": 0, "incident": 1, "undecidable": 2}[self.outcome]

    def to_json(self, *, stable: bool = False) -> bytes:
        """JSON; ``stable`` leaves the timings out so that two runs compare equal."""
        import msgspec

        data: Any = msgspec.to_builtins(self)
        if stable:
            data["provenance"].pop("seconds", None)
        return msgspec.json.format(msgspec.json.encode(data), indent=1)

    def _repr_markdown_(self) -> str:
        from agent.render.markdown import render

        return render(self)


def schema() -> dict[str, Any]:
    """The published JSON Schema of :class:`Diagnosis`."""
    import msgspec

    return msgspec.json.schema(Diagnosis)
