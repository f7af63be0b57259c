"""What a change would buy, from the roofline of the deployment that the readings describe. Never a promise: ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.deployment import figures, request_of
from agent.diagnosis import ActionAdvice, Diagnosis
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
    for delta in [d for d in change.deltas if d.direction() != "same"][:_SHOWN]:
        name = delta.name.replace("_", " ")
        out.append(
            f"{name}: {delta.before:.4g} → {delta.after:.4g} {delta.unit} "
            f"({delta.change:+.0%}, {min(delta.low, delta.high):+.0%} to {max(delta.low, delta.high):+.0%})"
        )
    out.extend(change.effects[:3])
    out.extend(f"{r.field}: {r.why}" for r in change.refused)
    out.extend(f"{name}: no effect that the roofline knows" for name in change.ignored)
    return out


# Flag and direction of an action → the figure of the deployment it moves and by how much. What is not here (layouts,
# kernels, client changes) has no honest number from a roofline.
_STEPS: dict[tuple[str, str], tuple[str, float]] = {
    ("max_num_seqs", "raise"): ("max_num_seqs", 2.0),
    ("max_num_seqs", "lower"): ("max_num_seqs", 0.5),
    ("max_num_batched_tokens", "raise"): ("max_batched_tokens", 2.0),
    ("max_num_batched_tokens", "lower"): ("max_batched_tokens", 0.5),
    ("tensor_parallel_size", "raise"): ("tp", 2.0),
    ("tensor_parallel_size", "lower"): ("tp", 0.5),
}


def attach(ledger: Ledger, actions: list[ActionAdvice]) -> None:
    """Fill ``predicted`` of the actions whose effect the roofline of this deployment can compute; others stay empty."""
    wanted = [a for a in actions if (a.flag, a.direction) in _STEPS or a.flag == "kv_cache_dtype"]
    if not wanted or ledger.value("engine.on_cpu"):
        return
    values, _ = figures(ledger)
    if "model" not in values or "gpu" not in values:
        return
    from tools.roofline.request import Request
    from tools.roofline.whatif import whatif

    request, _ = request_of(ledger)
    if not isinstance(request, Request):
        return
    for action in wanted:
        name, factor = _STEPS.get((action.flag, action.direction), ("kv", 0.0))
        if factor and not isinstance(values.get(name), int | float):
            continue
        setting = {name: str(round(values[name] * factor)) if factor else "fp8"}
        change = whatif(request, setting)
        said = [] if change.refused else lines(change)
        if said:
            action.predicted = f"{name}={setting[name]}: " + "; ".join(said[:3])


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
