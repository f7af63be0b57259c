"""Causal order: which supported cause drives which, so that a victim is not blamed for what happens upstream of it."""

from __future__ import annotations

from agent.belief import Hypothesis, calibration
from agent.diagnosis import Link
from knowledge.schema import Knowledge, both
from tools.view import Ledger

SYMPTOMS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "ttft": ("late first tokens (TTFT)", "首 token 变慢（TTFT）", ("symptom.ttft", "ttft.p99_s", "ttft.mean_s")),
    "tpot": ("slow or uneven tokens (TPOT/ITL)", "token 间隔变慢（TPOT/ITL）", ("symptom.tpot", "symptom.itl", "itl.p99_s", "tpot.mean_s")),
    "throughput": ("low throughput", "吞吐低", ("symptom.throughput", "throughput.generation_tokens_per_s.mean")),
    "errors": ("failing requests", "请求失败", ("symptom.errors", "http.4xx.count", "http.5xx.count")),
    "crash": ("the server dies", "服务崩溃", ("symptom.crash", "log.engine_dead")),
    "hang": ("no progress", "无进展", ("symptom.hang", "engine.frozen_s")),
    "startup": ("slow or failing start", "启动慢或失败", ("symptom.startup",)),
}  # fmt: skip

# A driver that is surer of itself by less than this below its victim is not blamed in the victim's place.
NEAR = 0.25

# Seconds of p99 TTFT that anybody notices, and how many p99 token gaps it must outweigh.
LATE_S, LATE_GAPS = 2.0, 20.0


def drivers(known: Knowledge, h: Hypothesis) -> set[str]:
    """Families that may stand upstream of this one, from its card and its fired rules."""
    card = known.families.get(h.family)
    names = set(card.driven_by) if card else set()
    for rule in h.rules:
        names.update(rule.driven_by)
    return names


def effects(known: Knowledge, h: Hypothesis) -> list[str]:
    """Families or symptoms that this one leads to, in the order given."""
    card = known.families.get(h.family)
    names = list(card.leads_to) if card else []
    for rule in h.rules:
        names.extend(n for n in rule.leads_to if n not in names)
    return names


def order(known: Knowledge, found: list[Hypothesis]) -> tuple[list[Hypothesis], dict[str, str]]:
    """Supported incident hypotheses with roots first, and the role of each: root, contributing or symptom.

    A hypothesis is a symptom when a supported, not much weaker hypothesis is one of its drivers and it is not itself
    a driver of that one. Words alone name one root: a second one that nothing was read for stays a lead.
    """
    cal = calibration()
    supported = [h for h in found if h.outcome == "incident" and not h.refuted and h.confidence >= cal.incident_at]
    roles: dict[str, str] = {}
    for h in supported:
        upstream = [
            u for u in supported
            if u is not h and u.confidence >= h.confidence - NEAR and u.family in drivers(known, h) and h.family not in drivers(known, u)
        ]  # fmt: skip
        roles[h.family] = "symptom" if upstream else "root"
    roots = [h for h in supported if roles[h.family] == "root"]
    if not roots and supported:
        roles[supported[0].family] = "root"
        roots = [supported[0]]
    lead = roots[0].confidence if roots else 0.0
    for h in roots[1:]:
        if h.confidence < lead - NEAR:
            roles[h.family] = "contributing"
    rest = [h for h in supported if h not in roots]
    roots = [h for h in roots if h.shown or h is roots[0]]
    return roots + rest, roles


def chain(known: Knowledge, ordered: list[Hypothesis], roles: dict[str, str], ledger: Ledger, lang: str) -> list[Link]:
    """Root → … → symptom, along supported edges; ends with the symptom whose facts are at hand."""
    if not ordered:
        return []
    links: list[Link] = []
    here: Hypothesis | None = ordered[0]
    by_family = {h.family: h for h in ordered}
    symptom = ""
    while here is not None and len(links) < 6:
        links.append(_link(known, here, lang))
        step: Hypothesis | None = None
        for name in effects(known, here):
            if name in SYMPTOMS and not symptom and (name in ("ttft", "tpot", "throughput") or _felt(name, ledger)):
                symptom = name
            follower = by_family.get(name)
            if step is None and follower and roles.get(name) == "symptom" and all(x.state != name for x in links):
                step = follower
        if step is None:
            step = next(
                (h for h in ordered if roles.get(h.family) == "symptom" and here.family in drivers(known, h)
                 and all(x.state != h.family for x in links)),
                None,
            )  # fmt: skip
        here = step
    if symptom in ("tpot", "throughput") and _late_first(ledger):
        symptom = "ttft"
    symptom = felt(symptom, [name for name in SYMPTOMS if ledger.value(f"symptom.{name}") is True])
    if symptom:
        en, zh, _ = SYMPTOMS[symptom]
        title = zh if lang == "zh" else en
        ids = [i for fact in SYMPTOMS[symptom][2] for i in ledger.ids(fact)][:3]
        links.append(Link(state=symptom, layer="symptom", title=title, evidence=ids))
    return links


def felt(symptom: str, told: list[str]) -> str:
    """What a person says they feel goes before what the cause usually does.

    A start that fails is told as errors, a crash or a hang too, and short freezes of a stream as a hang.
    """
    if not told or symptom in told or (told == ["hang"] and symptom == "tpot"):
        return symptom
    return "startup" if "startup" in told else told[0]


def _late_first(ledger: Ledger) -> bool:
    """Users wait for the first token far longer than for any other: that is what they feel, whatever a cause does first."""
    first, gap = ledger.value("ttft.p99_s"), ledger.value("itl.p99_s")
    if not isinstance(first, float) or not isinstance(gap, float):
        return False
    return first >= LATE_S and first >= LATE_GAPS * gap


def _felt(name: str, ledger: Ledger) -> bool:
    return any(ledger.value(fact) for fact in SYMPTOMS[name][2])


def _link(known: Knowledge, h: Hypothesis, lang: str) -> Link:
    card = known.families.get(h.family)
    return Link(
        state=h.family, layer=h.layer, title=both(card.title, lang) if card else h.family, evidence=h.evidence[:4]
    )
