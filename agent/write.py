"""The answer from evidence and rule results: outcome, ranked causes, chain, seven layers, actions, probes."""

from __future__ import annotations

import msgspec

from agent import advice, chain, plan
from agent.belief import Hypothesis, band, calibration
from agent.belief import leads as leads_of
from agent.diagnosis import Cause, Diagnosis, InputProblem, LayerRow, Outcome, Provenance, RuledOut, RuleResult
from agent.phrases import say
from agent.state import Env, State
from agent.version import VERSION
from knowledge.schema import LAYERS, Family, Knowledge, both
from tools.view import Ledger

LAYER_TOOLS: dict[str, tuple[str, str]] = {
    "hardware": ("GPU state", "nvidia-smi -q > nvidia-smi-q.txt; nvidia-smi topo -m > topo.txt"),
    "kernel": ("profiler, start-up log", "nsys stats --report cuda_gpu_kern_sum,cuda_api_sum --format csv report.nsys-rep > nsys.csv"),
    "memory": ("metrics", "curl -s http://HOST:PORT/metrics > metrics-000.prom  # twice, 30 s apart"),
    "scheduling": ("metrics, host CPU", "curl -s http://HOST:PORT/metrics > metrics-000.prom; pidstat -u -w 5 6 > host.txt"),
    "parallelism": ("NCCL log, topology", "NCCL_DEBUG=INFO in the environment at the next start; nvidia-smi topo -m"),
    "speculative": ("metrics, log", "grep 'SpecDecoding metrics' server.log"),
    "application": ("client result, gateway log", "vllm bench serve --backend openai --base-url http://HOST:PORT --save-result …"),
}  # fmt: skip


RULED_OUT_FROM = 1 / 3
# So much surer must be said of a fault than of a benign explanation for words to contradict each other.
APART = 0.1


def decide(found: list[Hypothesis], ordered: list[Hypothesis]) -> tuple[Outcome, Hypothesis | None]:
    """The outcome and the hypothesis that carries it. A benign explanation must be at least as sure as the best fault.

    Where words alone speak for both, and more for the fault, they contradict each other: nothing is decided.
    """
    cal = calibration()
    benign = [
        h
        for h in found
        if h.outcome in ("healthy", "theoretical_limit") and not h.refuted and h.confidence >= cal.benign_at
    ]
    best = ordered[0] if ordered else None
    if benign and (best is None or benign[0].confidence >= best.confidence):
        if best is not None and not (benign[0].shown or best.shown) and best.stated > benign[0].stated + APART:
            return "undecidable", None
        return benign[0].outcome, benign[0]  # type: ignore[return-value]
    if best is not None:
        return "incident", best
    return "undecidable", None


def compose(env: Env, state: State, found: list[Hypothesis], results: list[RuleResult]) -> Diagnosis:
    """Assemble the diagnosis. Pure: the same state gives the same bytes (timings stay in provenance)."""
    known, ledger, lang = env.known, env.ledger(state), env.lang
    ordered, roles = chain.order(known, found)
    outcome, carrier = decide(found, ordered)
    causes = _causes(known, found, ordered, roles, outcome, lang)
    if outcome != "incident":
        ordered = [carrier] if carrier is not None and carrier.family else []
        roles = {h.family: "root" for h in ordered}
    actions, futile = advice.advise(known, ledger, ordered, roles, lang) if outcome != "undecidable" else ([], [])
    if outcome == "healthy":
        actions = []
    probes = plan.enumerate_probes(known, ledger, found, results, lang)
    if outcome == "healthy":
        probes = (
            probes[:1] if any(h.outcome == "incident" and h.confidence >= calibration().lead_at for h in found) else []
        )
    links = chain.chain(known, ordered, roles, ledger, lang) if outcome in ("incident", "theoretical_limit") else []
    confidence = carrier.stated if carrier else 0.0
    return Diagnosis(
        outcome=outcome,
        headline=_headline(known, outcome, carrier, causes, ledger, lang),
        causes=causes,
        chain=links,
        layers=_layers(known, found, ordered, results, outcome, lang),
        actions=actions,
        probes=probes,
        evidence=list(ledger),
        rules=results,
        provenance=_provenance(env, state, ledger),
        confidence=confidence,
        basis=("readings" if carrier.shown else "words") if carrier else "",
        summary=carrier.says[:4] if carrier else [],
        ruled_out=_ruled_out(known, found, results, ordered, lang),
        will_not_help=futile,
        problems=msgspec.convert(state.get("problems", []), list[InputProblem]),
        missing=plan.missing_facts(results),
        lang=lang,
    )


def _causes(
    known: Knowledge,
    found: list[Hypothesis],
    ordered: list[Hypothesis],
    roles: dict[str, str],
    outcome: Outcome,
    lang: str,
) -> list[Cause]:
    supported = list(ordered) if outcome == "incident" else []
    leads = [h for h in leads_of(found) if h not in supported]
    if outcome in ("healthy", "theoretical_limit"):
        leads = []
    out: list[Cause] = []
    for h in (supported + leads)[:6]:
        card = known.families.get(h.family)
        cites = [c for rule in h.rules for c in rule.cites] + (card.cites if card else [])
        out.append(
            Cause(
                family=h.family, layer=h.layer, title=both(card.title, lang) if card else h.family,
                confidence=h.stated, band=band(h.stated), evidence=h.evidence,
                rules=[r.id for r, x in zip(h.rules, h.results, strict=True) if x.state == "fired"],
                mechanism=_mechanism(h, card, lang), verdict="supported" if h in supported else "lead",
                role=roles.get(h.family, "root") if h in supported else "root",  # type: ignore[arg-type]
                says=h.says[:6], against=h.against[:6], refuters_passed=h.passed[:6], caps=h.caps,
                cites=list(dict.fromkeys(cites))[:6],
            )
        )  # fmt: skip
    return out


def _mechanism(h: Hypothesis, card: Family | None, lang: str) -> str:
    """The mechanism of the first rule; of a lead without rules, what its card explains."""
    if h.rules:
        return both(h.rules[0].mechanism, lang)
    return both(card.explain, lang) if card else ""


def _headline(
    known: Knowledge, outcome: Outcome, carrier: Hypothesis | None, causes: list[Cause], ledger: Ledger, lang: str
) -> str:
    if outcome == "incident" and causes:
        top = causes[0]
        layer = say(f"layer.{top.layer}", lang)
        return say(
            "headline.incident",
            lang,
            title=top.title,
            layer=layer,
            band=say(f"band.{top.band}", lang),
            confidence=top.confidence,
        )
    if carrier is not None:
        title = both(carrier.rules[0].title, lang)
        return say(f"headline.{outcome}", lang, title=title, confidence=carrier.stated)
    if not len(ledger):
        return say("headline.nothing", lang)
    lead = next((c for c in causes if c.verdict == "lead"), None)
    if lead:
        return say("headline.lead", lang, title=lead.title, band=say(f"band.{lead.band}", lang))
    return say("headline.undecidable", lang)


def _layers(
    known: Knowledge,
    found: list[Hypothesis],
    ordered: list[Hypothesis],
    results: list[RuleResult],
    outcome: Outcome,
    lang: str,
) -> list[LayerRow]:
    rows: list[LayerRow] = []
    for layer in LAYERS:
        tool, command = LAYER_TOOLS[layer]
        mine = [r for r in results if r.layer == layer and known.rules[r.id].outcome == "incident"]
        hit = (
            next((h for h in ordered if h.layer == layer), None)
            if outcome in ("incident", "theoretical_limit")
            else None
        )
        row = LayerRow(layer=layer, status="not_examined", tool=tool, verify=command)
        clear = [r for r in mine if r.state == "clear"]
        if hit is not None:
            card = known.families.get(hit.family)
            row.status, row.hypothesis = "implicated", both(card.title, lang) if card else hit.family
            row.evidence = hit.evidence[:4]
            row.because = hit.says[0] if hit.says else ""
            if card and card.probes:
                row.verify = card.probes[0].command
        elif clear:
            lead = next((h for h in found if h.layer == layer and h.outcome == "incident" and not h.refuted), None)
            names = list(dict.fromkeys(r.family for r in clear))
            # A few clear rules do not clear a layer: what could not be looked at is said with them.
            known_enough = lead is None and len(clear) >= RULED_OUT_FROM * len(mine)
            row.status = "ruled_out" if known_enough else "not_examined"
            row.evidence = list(dict.fromkeys(i for r in clear for i in r.evidence))[:4]
            row.because = say("layers.clear", lang, n=len(clear), of=len(mine), names=", ".join(names[:4]))
            row.hypothesis = lead.family if lead else ""
            need = list(dict.fromkeys(f for r in mine if r.state == "missing_input" for f in r.missing))
            if not known_enough and need:
                row.because += "; " + say("layers.missing", lang, facts=", ".join(need[:3]))
        else:
            need = list(dict.fromkeys(f for r in mine if r.state == "missing_input" for f in r.missing))
            row.because = say("layers.missing", lang, facts=", ".join(need[:3])) if need else say("layers.none", lang)
        rows.append(row)
    return rows


def _ruled_out(
    known: Knowledge, found: list[Hypothesis], results: list[RuleResult], ordered: list[Hypothesis], lang: str
) -> list[RuledOut]:
    out: list[RuledOut] = []
    top = {h.family for h in ordered}
    for h in found:
        if h.outcome == "incident" and (h.refuted or (h.against and h.family not in top)):
            card = known.families.get(h.family)
            because = h.against[0] if h.against else ""
            out.append(
                RuledOut(
                    family=h.family,
                    title=both(card.title, lang) if card else h.family,
                    because=because,
                    evidence=h.evidence[:3],
                )
            )
    told = {row.family for row in out} | top | {h.family for h in found}
    per: dict[str, list[RuleResult]] = {}
    for result in results:
        if known.rules[result.id].outcome == "incident":
            per.setdefault(result.family, []).append(result)
    for family, rows in sorted(per.items()):
        if (
            family in told
            or not all(r.state in ("clear", "not_applicable") for r in rows)
            or all(r.state == "not_applicable" for r in rows)
        ):
            continue
        card = known.families.get(family)
        ids = list(dict.fromkeys(i for r in rows if r.state == "clear" for i in r.evidence))[:3]
        because = say("ruled_out.clear", lang, n=sum(r.state == "clear" for r in rows))
        out.append(
            RuledOut(family=family, title=both(card.title, lang) if card else family, because=because, evidence=ids)
        )
    return out[:14]


def _provenance(env: Env, state: State, ledger: Ledger) -> Provenance:
    return Provenance(
        inferdx=VERSION,
        knowledge=env.known.version,
        engine=str(ledger.value("engine.name") or ""),
        engine_version=str(ledger.value("engine.version") or ""),
        inputs=dict(sorted(state.get("kinds", {}).items())),
        steps=list(state.get("steps", [])),
        seconds={"total": round(env.clock() - state.get("started", env.clock()), 3)},
    )
