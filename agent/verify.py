"""Citations that recompute: spans that stand where they claim to, predicates that hold, values that read the same again."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from agent.diagnosis import Diagnosis
from agent.screen import tree
from knowledge.logic import evaluate
from knowledge.schema import Knowledge
from tools.contract import Reading
from tools.view import Evidence, Ledger


def bad_evidence(ledger: Ledger) -> list[str]:
    """Ids of evidence that contradicts itself: no source, words without a span, inputs that do not exist."""
    bad: list[str] = []
    for item in ledger:
        source = item.source
        if (
            (source.kind == "words" and not source.span)
            or (source.kind in ("file", "words") and not source.ref)
            or (source.kind == "computed" and any(i[:1] == "E" and ledger.get(i) is None for i in source.inputs))
            or (isinstance(item.value, float) and not math.isfinite(item.value))
        ):
            bad.append(item.id)
    return bad


def same(left: Any, right: Any) -> bool:
    """Equal up to rounding for numbers."""
    if isinstance(left, bool) or isinstance(right, bool):
        return bool(left == right)
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return math.isclose(left, right, rel_tol=1e-6, abs_tol=1e-9)
    return bool(left == right)


def recompute(diagnosis: Diagnosis, again: Iterable[Reading]) -> dict[str, bool]:
    """Each evidence id → whether a fresh reading of the same sources yields the same fact, value and place."""
    index: dict[tuple[str, str, int], list[Any]] = {}
    for reading in again:
        key = (reading.fact, reading.source.ref, reading.source.line)
        index.setdefault(key, []).append(reading.value)
    out: dict[str, bool] = {}
    for item in diagnosis.evidence:
        if item.source.kind == "computed":
            continue
        values = index.get((item.fact, item.source.ref, item.source.line), [])
        out[item.id] = any(same(item.value, value) for value in values)
    for item in diagnosis.evidence:
        if item.source.kind == "computed":
            out[item.id] = all(out.get(i, True) for i in item.source.inputs)
    return out


def citations(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    """Every (claim, evidence id) of the answer: causes, chain, layers, ruled out."""
    found: list[tuple[str, str]] = []
    for cause in diagnosis.causes:
        found.extend((cause.family, i) for i in cause.evidence)
    for link in diagnosis.chain:
        found.extend((link.state, i) for i in link.evidence)
    for row in diagnosis.layers:
        found.extend((row.layer, i) for i in row.evidence)
    for out in diagnosis.ruled_out:
        found.extend((out.family, i) for i in out.evidence)
    return found


def check(known: Knowledge, diagnosis: Diagnosis, again: Iterable[Reading]) -> tuple[int, int, list[str]]:
    """``(valid, all, failures)`` over citations and fired rules: the id exists, recomputes, and the predicate is true."""
    ids: dict[str, Evidence] = {item.id: item for item in diagnosis.evidence}
    fresh = recompute(diagnosis, again)
    failures: list[str] = []
    total = 0
    for claim, evidence_id in citations(diagnosis):
        total += 1
        item = ids.get(evidence_id)
        if item is None:
            failures.append(f"{claim}: {evidence_id} does not exist")
        elif item.status != "ok":
            failures.append(f"{claim}: {evidence_id} has status {item.status}")
        elif not fresh.get(evidence_id, False):
            failures.append(f"{claim}: {evidence_id} ({item.fact}={item.value!r}) does not recompute")
    ledger = Ledger(known)
    for item in diagnosis.evidence:
        ledger.add(Reading(**{k: getattr(item, k) for k in Reading.__struct_fields__}))
    for result in diagnosis.rules:
        if result.state == "fired":
            total += 1
            if evaluate(tree(known.rules[result.id].when), ledger).truth is not True:
                failures.append(f"rule {result.id}: its condition does not hold on the cited evidence")
    return total - len(failures), total, failures
