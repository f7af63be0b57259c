"""Next probes: enumerated from knowledge, ordered by expected change of belief per cost."""

from __future__ import annotations

from agent.belief import Hypothesis, calibration
from agent.diagnosis import ProbeAdvice, RuleResult
from knowledge.schema import Knowledge, Probe, both
from tools.view import Ledger

_COST = {"none": 1.0, "low": 1.5, "medium": 3.0, "high": 6.0}
_NEEDED = (
    "queue.waiting.p50",
    "queue.running.max",
    "kv.usage.max",
    "ttft.mean_s",
    "itl.mean_s",
    "requests.finished.count",
)
MAX_PROBES = 6


def _cost(text: str) -> float:
    low = text.lower()
    for word, value in _COST.items():
        if word in low:
            return value
    return 2.0


def enumerate_probes(
    known: Knowledge, ledger: Ledger, found: list[Hypothesis], results: list[RuleResult], lang: str
) -> list[ProbeAdvice]:
    """Probes of the leading hypotheses, then readings that would settle most undecided rules. Best first."""
    table: dict[str, ProbeAdvice] = {}
    leads = [h for h in found if h.outcome == "incident" and not h.refuted][:5]
    for h in leads:
        card = known.families.get(h.family)
        probes = [p for rule in h.rules for p in rule.probes] + (card.probes if card else [])
        doubt = max(h.confidence * (1 - h.confidence), 0.02)
        wanted = {r.probe for r in h.untested if r.probe}
        for rank, probe in enumerate(probes):
            if probe.yields and all(ledger.value(f) is not None for f in probe.yields):
                continue
            gain = doubt * (1.6 if probe.id in wanted else 1.0) * (1.4 if probe.kind == "control_run" else 1.0)
            _add(table, probe, h.family, gain / (_cost(probe.cost) * (1 + 0.15 * rank)), lang)
    for fact, weight in _wanted_facts(known, found, results).items():
        definition = known.facts.get(fact)
        if definition is None or definition.get is None or ledger.value(fact) is not None:
            continue
        probe = Probe(
            id=f"read:{fact}", ask=definition.means, command=definition.get.how, cost=definition.get.cost, yields=[fact]
        )
        same = next((p for p in table.values() if p.command == probe.command), None)
        if same is not None:
            same.value = round(same.value + weight / 4, 4)
            if fact not in same.yields:
                same.yields.append(fact)
            continue
        _add(table, probe, "", weight / _cost(probe.cost), lang)
    return sorted(table.values(), key=lambda p: (-p.value, p.id))[:MAX_PROBES]


def _add(table: dict[str, ProbeAdvice], probe: Probe, family: str, value: float, lang: str) -> None:
    found = table.get(probe.id)
    if found is None:
        table[probe.id] = ProbeAdvice(
            id=probe.id, ask=both(probe.ask, lang), command=probe.command, kind=probe.kind, cost=probe.cost,
            families=[family] if family else [], if_true=both(probe.if_true, lang), if_false=both(probe.if_false, lang),
            yields=list(probe.yields), change=probe.change, keep=probe.keep, read=probe.read, value=round(value, 4),
        )  # fmt: skip
        return
    found.value = round(found.value + value, 4)
    if family and family not in found.families:
        found.families.append(family)


def _wanted_facts(known: Knowledge, found: list[Hypothesis], results: list[RuleResult]) -> dict[str, float]:
    """Missing facts weighted by the rules they would settle: those of live hypotheses, then vital signs."""
    cal = calibration()
    live = {h.family: h.confidence for h in found if h.outcome == "incident" and not h.refuted}
    weights: dict[str, float] = {}
    for result in results:
        if result.state != "missing_input" or not result.missing:
            continue
        belief = live.get(result.family, 0.0)
        if belief < cal.lead_at and not result.held:
            continue
        share = cal.strengths[known.rules[result.id].strength] / 40 / len(result.missing)
        for fact in result.missing:
            weights[fact] = weights.get(fact, 0.0) + share * max(belief, 0.1)
    if not weights:
        for fact in _NEEDED:
            weights[fact] = 0.02
    return weights


def missing_facts(results: list[RuleResult], limit: int = 20) -> list[str]:
    """The facts whose absence left most rules undecided."""
    counts: dict[str, int] = {}
    for result in results:
        if result.state == "missing_input":
            for fact in result.missing:
                counts[fact] = counts.get(fact, 0) + 1
    return [fact for fact, _ in sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))][:limit]
