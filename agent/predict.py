"""What a change would buy, from the roofline of the deployment that the readings describe. Never a promise: ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.deployment import request_of
from agent.diagnosis import Diagnosis
from knowledge.schema import Knowledge
from tools.contract import Reading
from tools.view import Ledger

if TYPE_CHECKING:
    from tools.roofline.whatif import Change

_SHOWN = 5


def ledger_of(known: Knowledge, diagnosis: Diagnosis) -> Ledger:
    """The readings of a finished diagnosis as a ledger again."""
    ledger = Ledger(known)
    for item in diagnosis.evidence:
        fields = {name: getattr(item, name) for name in Reading.__struct_fields__ if hasattr(item, name)}
        ledger.add(Reading(**fields))
    return ledger


def lines(change: Change) -> list[str]:
    """A predicted change as short lines: value before → after with its range, effects, and what was left out."""
    out = []
    for delta in change.deltas[:_SHOWN]:
        if delta.direction() == "same":
            continue
        name = delta.name.replace("_", " ")
        out.append(
            f"{name}: {delta.before:.4g} → {delta.after:.4g} {delta.unit} "
            f"({delta.change:+.0%}, {min(delta.low, delta.high):+.0%} to {max(delta.low, delta.high):+.0%})"
        )
    out.extend(change.effects[:3])
    out.extend(f"{r.field}: {r.why}" for r in change.refused)
    out.extend(f"{name}: no effect that the roofline knows" for name in change.ignored)
    return out


def predict(known: Knowledge, diagnosis: Diagnosis | None, changes: dict[str, str], lang: str = "en") -> list[str]:
    """Lines for ``/whatif``: predicted effects of ``changes``, or the one reading that is missing for it."""
    from tools.roofline.request import Request
    from tools.roofline.whatif import whatif

    missing = {"en": "not computed: {}", "zh": "无法计算：{}"}.get(lang, "not computed: {}")
    if diagnosis is None:
        return [missing.format("nothing was read yet; give a launch command and nvidia-smi output")]
    request, _ = request_of(ledger_of(known, diagnosis))
    if not isinstance(request, Request):
        return [missing.format(request.line())]
    return lines(whatif(request, changes)) or [missing.format("the change moves nothing that the roofline knows")]
