"""Probes that we can run ourselves on what is at hand. Nothing here touches the patient."""

from __future__ import annotations

from agent.deployment import evidence_ids, figures, measured_of, request_of
from agent.state import Executable
from tools.contract import Reading, Source
from tools.view import Ledger

YIELDS = [
    "roofline.tpot.measured_over_hard", "roofline.tpot.measured_over_expected", "roofline.tpot.measured_over_typical",
    "roofline.ttft.excess_ms", "roofline.mbu", "roofline.at_limit", "roofline.share.kv", "roofline.limiter",
    "roofline.kv.capacity_tokens", "roofline.kv.max_concurrency", "roofline.kv.demand_over_capacity", "roofline.fits",
]  # fmt: skip


def executables(ledger: Ledger) -> list[Executable]:
    """The roofline, once model and device are known. On CPUs the table has no floors, so it is not offered."""
    values, _ = figures(ledger)
    if "model" not in values or "gpu" not in values or ledger.value("engine.on_cpu"):
        return []
    return [Executable(id="roofline", yields=YIELDS, cost=0.05, run=roofline)]


def roofline(ledger: Ledger) -> list[Reading]:
    """Floors of this deployment, and what was measured against them; of a deployment it cannot size, the figure it lacks."""
    from tools.roofline.checks import Measured, compare
    from tools.roofline.facts import comparison_readings, estimate_readings, model_readings
    from tools.roofline.floors import estimate
    from tools.roofline.request import Request

    request, origin = request_of(ledger)
    if not isinstance(request, Request):
        # Unknown to the table is a gap to name (its config.json fills it), not a failure of the probe.
        source = Source(kind="computed", ref="tools.roofline", inputs=evidence_ids(ledger, origin.values()))
        return [Reading(fact="roofline.missing_input", value=[request.field], source=source, method=request.line())]
    result = estimate(request)
    inputs = evidence_ids(ledger, origin.values())
    out = estimate_readings(result, inputs, printed_kv_tokens=ledger.num("log.kv_cache.tokens"))
    if ledger.value("model.name") is None:
        source = Source(kind="computed", ref="tools.roofline", inputs=evidence_ids(ledger, [origin["model"]]))
        out += model_readings(request.model, source)
    seen, facts = measured_of(ledger)
    if seen != Measured():
        out += comparison_readings(seen, compare(result, seen), result, inputs + evidence_ids(ledger, facts))
    return out
