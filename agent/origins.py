"""Where evidence comes from: a person's words, settings, measurements; and what it can therefore carry."""

from __future__ import annotations

from collections.abc import Iterable

from agent.diagnosis import RuleResult
from tools.view import Evidence, Ledger

# Readers of what was configured, and facts that follow from it alone.
_SETTINGS = ("config", "hf_config")
_SET = ("config.", "model.", "roofline.", "engine.")
LIKENESS = "words.resemble"


def _items(ledger: Ledger, ids: Iterable[str]) -> list[Evidence]:
    return [item for item in map(ledger.get, ids) if item is not None]


def told(ledger: Ledger, ids: Iterable[str]) -> bool:
    """A person's words carry it: what else it rests on is settings, and a setting shows no symptom. Words are read less
    surely than what an instrument shows."""
    kinds = _kinds(ledger, ids)
    return "words" in kinds and kinds <= {"words", "setting"}


def settings_only(ledger: Ledger, ids: Iterable[str]) -> bool:
    """Nothing but what was configured."""
    return _kinds(ledger, ids) == {"setting"}


def _kinds(ledger: Ledger, ids: Iterable[str]) -> set[str]:
    return {kind for i in ids for kind in origins(ledger, i)}


def origins(ledger: Ledger, evidence: str) -> set[str]:
    """Where an evidence comes from in the end: ``words``, ``setting`` or ``measured``; of what is computed, its inputs'."""
    item = ledger.get(evidence)
    if item is None:
        return {"measured"}
    if item.source.kind == "computed" and item.source.inputs:
        return {kind for i in item.source.inputs for kind in origins(ledger, i)}
    if item.source.kind == "words":
        return {"words"}
    return {"setting"} if item.via in _SETTINGS or item.fact.startswith(_SET) else {"measured"}


def figures(ledger: Ledger, evidence: Iterable[str]) -> bool:
    """Numbers that the person gave were compared, by a rule or by the reader: more than the tone of the words."""
    return any(
        item.fact != LIKENESS and (type(item.value) in (int, float) or item.labels.get("by") == "figures")
        for item in _items(ledger, evidence)
    )


def logged(ledger: Ledger, evidence: Iterable[str]) -> bool:
    """A log line is among the evidence. Where pages were given and none could be read, the vital signs are one request
    away, so client figures and host readings stay a lead; a line that decides (a crash, a refused start) does not."""
    return any(item.fact.startswith("log.") for item in _items(ledger, evidence))


def one_snapshot(ledger: Ledger, evidence: Iterable[str]) -> bool:
    """A total since the start of a counter is among the evidence: no rate of the time of the complaint."""
    return any(item.fact.endswith(".since_start") for item in _items(ledger, evidence))


def common(ledger: Ledger, result: RuleResult) -> bool:
    """All it rests on is settings that both of the launch commands given share, while what differs between their runs
    is the complaint: what is the same on both sides does not make the difference."""
    if not ledger.value("pair.difference"):
        return False
    items = _items(ledger, result.evidence)
    return bool(items) and all(item.via == "config" and _shared(ledger, item.fact) for item in items)


def _shared(ledger: Ledger, fact: str) -> bool:
    by_variant = {item.labels["variant"]: item.value for item in ledger.of(fact) if item.labels.get("variant")}
    return len(by_variant) > 1 and len({repr(value) for value in by_variant.values()}) == 1
