"""From rule results to hypotheses with a computed, capped confidence. No model takes part.

Strengths are log-odds. The first rule of a family counts fully, further ones with falling weight: rules of one family
share evidence. Refuters, look-alike separators and benign explanations subtract. Weights are calibrated on the evals
(``knowledge/calibration.yaml``); the caps are promises and are not.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct, field

from agent import origins
from agent.diagnosis import Band, RuleResult
from agent.screen import tree
from knowledge.loader import ROOT, read_yaml
from knowledge.logic import evaluate
from knowledge.schema import Knowledge, LookAlike, Refuter, Rule, Sign, both
from tools.view import Ledger

# Who asks for approval complains of nothing: words alone must not make an incident of it.
NO_COMPLAINT = "concept.asks_approval"
# Who wishes for a feature tells the mechanism it would cure; who asks how to set a flag names it.
WISH = "concept.asks_feature"
HOW = "concept.asks_how"
CALM = "words.calm"
SAME_IN_BOTH = {"en": "It is the same in both runs that are compared", "zh": "两次对比运行中相同"}
UNREADABLE = "metrics.unusable"
NOT_GIVEN = "report.missing_file"


class Calibration(Struct, forbid_unknown_fields=True, kw_only=True):
    """Weights in log-odds, caps and thresholds. ``fitted_on``: the set and date they came from.

    ``curve``: rising ``(raw, stated)`` knots from the evals; what is said of a verdict, never the verdict itself.
    ``curve_words``: the same where words alone speak. ``plain``: say raw values (to fit the curves).
    """

    prior: float
    strengths: dict[str, float]
    further: float
    support: float
    against: float
    separator: float
    partial: float
    refuted: float
    incident_at: float
    benign_at: float
    lead_at: float
    cap_no_refuter: float
    cap_no_decisive: float
    cap_one_snapshot_rate: float
    cap_words: float
    cap_words_unlike: float
    resemblance: float
    resemblance_alone: float
    resemblance_from: float
    resemblance_at: float
    calm_at: float
    bands: dict[str, float]
    curve: list[tuple[float, float]] = []
    curve_words: list[tuple[float, float]] = []
    plain: bool = False
    fitted_on: str = ""
    curves_fitted_on: str = ""


@lru_cache(maxsize=1)
def calibration() -> Calibration:
    """The numbers of ``knowledge/calibration.yaml``."""
    return msgspec.convert(read_yaml(ROOT / "calibration.yaml"), Calibration)


class Hypothesis(Struct, kw_only=True):
    """A family (or a benign explanation) with everything that speaks for and against it."""

    key: str
    family: str
    outcome: str
    layer: str
    rules: list[Rule] = field(default_factory=list)
    results: list[RuleResult] = field(default_factory=list)
    logit: float = 0.0
    confidence: float = 0.0
    stated: float = 0.0
    evidence: list[str] = field(default_factory=list)
    says: list[str] = field(default_factory=list)
    against: list[str] = field(default_factory=list)
    refuted: bool = False
    passed: list[str] = field(default_factory=list)
    untested: list[Refuter] = field(default_factory=list)
    caps: list[str] = field(default_factory=list)
    decisive: bool = False
    shown: bool = False
    only_partial: bool = False


def band(confidence: float) -> Band:
    """The word for a confidence, from the calibrated edges."""
    edges = calibration().bands
    if confidence >= edges["very_likely"]:
        return "very likely"
    if confidence >= edges["likely"]:
        return "likely"
    return "possible" if confidence >= edges["possible"] else "unlikely"


def stated(raw: float, curve: list[tuple[float, float]] | None = None) -> float:
    """How often an answer with this raw confidence came true in the evals: linear between the knots of the curve, from
    zero below the first, flat above the last. The raw value where nothing was fitted."""
    knots = calibration().curve if curve is None else curve
    if not knots:
        return raw
    for (x0, y0), (x1, y1) in pairwise([(0.0, 0.0), *knots]):
        if raw <= x1:
            return y0 + (y1 - y0) * (raw - x0) / (x1 - x0)
    return knots[-1][1]


def sigmoid(logit: float) -> float:
    """Log-odds to probability."""
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, logit))))


def hypotheses(known: Knowledge, ledger: Ledger, results: list[RuleResult], lang: str = "en") -> list[Hypothesis]:
    """All hypotheses with any support, best first; of equal ones what is said surer, then log-odds and key: stable."""
    table: dict[str, Hypothesis] = {}
    for result in results:
        rule = known.rules[result.id]
        partial = result.state == "missing_input" and bool(_seen(result)) and rule.outcome == "incident"
        if result.state != "fired" and not partial:
            continue
        key = rule.family if rule.outcome == "incident" else f"{rule.outcome}:{rule.family or rule.id}"
        found = table.setdefault(key, Hypothesis(key=key, family=rule.family, outcome=rule.outcome, layer=rule.layer))
        found.rules.append(rule)
        found.results.append(result)
    for hypothesis in table.values():
        _weigh(known, ledger, hypothesis, lang)
    _resemblance(known, ledger, table, lang)
    _explain_away(table)
    for hypothesis in table.values():
        _cap(ledger, hypothesis)
    return sorted(table.values(), key=lambda h: (-round(h.confidence, 6), -h.stated, -round(h.logit, 6), h.key))


def _seen(result: RuleResult) -> list[str]:
    """Held conditions that a reading made true; that something is not known supports nothing."""
    return [text for text in result.held if not text.startswith(("unknown(", "not "))]


def _weigh(known: Knowledge, ledger: Ledger, h: Hypothesis, lang: str) -> None:
    cal = calibration()
    weights: list[float] = []
    evidence: dict[str, None] = {}
    h.only_partial = all(r.state != "fired" or origins.common(ledger, r) for r in h.results)
    for rule, result in zip(h.rules, h.results, strict=True):
        weight = cal.strengths[rule.strength]
        common = result.state == "fired" and origins.common(ledger, result)
        if common:
            h.against.append(_cited(SAME_IN_BOTH.get(lang, SAME_IN_BOTH["en"]), result.evidence))
            weights.append(cal.partial * weight)
            evidence.update(dict.fromkeys(result.evidence))
        elif result.state == "fired":
            weights.append(weight)
            h.decisive = h.decisive or rule.strength == "decisive"
            evidence.update(dict.fromkeys(result.evidence))
            h.says.append(_cited(both(rule.mechanism, lang), result.evidence))
            weights.extend(_signs(ledger, rule.supports, h.says, evidence, lang, h))
        else:
            held = len(_seen(result))
            share = held / (held + len(result.missing))
            weights.append(cal.partial * weight * share)
            evidence.update(dict.fromkeys(result.evidence))
    h.shown = _shown(ledger, h, list(evidence))
    weights.sort(reverse=True)
    total = sum(weight * (cal.further**rank) for rank, weight in enumerate(weights))
    total -= _minus(known, ledger, h, lang)
    h.logit = cal.prior + total
    h.evidence = list(evidence)
    card = known.families.get(h.family)
    _refute(ledger, h, [r for rule in _speaking(h) for r in rule.refuted_by] + (card.refuted_by if card else []), lang)


def _shown(ledger: Ledger, h: Hypothesis, evidence: list[str]) -> bool:
    """A reading shows it. A rule that rests on settings alone does where nothing else speaks or a reading does; that it
    is what hurts is told where only words stand beside it."""
    fired = [x for x in h.results if x.state == "fired" and not origins.common(ledger, x)]
    settings = [x for x in fired if origins.settings_only(ledger, x.evidence)]
    read = any(x not in settings and not origins.told(ledger, x.evidence) for x in fired)
    return read or (bool(settings) and not origins.told(ledger, evidence))


def _signs(
    ledger: Ledger, signs: list[Sign], says: list[str], evidence: dict[str, None], lang: str, h: Hypothesis
) -> list[float]:
    cal = calibration()
    out: list[float] = []
    for sign in signs:
        verdict = evaluate(tree(sign.cond), ledger)
        if verdict.truth:
            out.append(cal.support * cal.strengths[sign.strength])
            h.decisive = h.decisive or sign.strength == "decisive"
            says.append(_cited(both(sign.says, lang), verdict.used))
            evidence.update(dict.fromkeys(verdict.used))
    return out


def _minus(known: Knowledge, ledger: Ledger, h: Hypothesis, lang: str) -> float:
    """Signs against (strongest counts fully, others half) and separators that point to a look-alike."""
    cal = calibration()
    costs: list[float] = []
    for rule, result in zip(h.rules, h.results, strict=True):
        if result.state != "fired":
            continue
        for sign in rule.against:
            verdict = evaluate(tree(sign.cond), ledger)
            if verdict.truth:
                costs.append(cal.against * cal.strengths[sign.strength])
                h.against.append(_cited(both(sign.says, lang), verdict.used))
    card = known.families.get(h.family)
    twins: list[LookAlike] = [t for rule in _speaking(h) for t in rule.look_alikes] + (card.look_alikes if card else [])
    for twin in twins:
        verdict = evaluate(tree(twin.cond), ledger)
        if verdict.truth:
            costs.append(cal.separator)
            h.against.append(_cited(both(twin.says, lang), verdict.used))
    costs.sort(reverse=True)
    return sum(cost * (0.5**rank) for rank, cost in enumerate(costs))


def _speaking(h: Hypothesis) -> list[Rule]:
    """The rules that fired, else all: what would speak against a rule is no word against another that fired."""
    return [rule for rule, x in zip(h.rules, h.results, strict=True) if x.state == "fired"] or h.rules


def _refute(ledger: Ledger, h: Hypothesis, refuters: list[Refuter], lang: str) -> None:
    for refuter in refuters:
        verdict = evaluate(tree(refuter.cond), ledger)
        if verdict.truth is True:
            h.refuted = True
            h.logit -= calibration().refuted
            h.against.append(_cited(both(refuter.says, lang), verdict.used))
        elif verdict.truth is False:
            h.passed.append(_cited(both(refuter.says, lang), verdict.used))
        else:
            h.untested.append(refuter)


def _resemblance(known: Knowledge, ledger: Ledger, table: dict[str, Hypothesis], lang: str) -> None:
    """What the words resemble: some weight for a family that rules support, a lead of its own where no rule speaks.

    It names a cause by itself only where its share is high, nobody merely asks for approval, and no incident rule that
    read an instrument or compared figures carries an answer; the cap for words then holds it at "possible".
    """
    cal = calibration()
    carried = ledger.value(NO_COMPLAINT) is True or any(
        h.outcome == "incident" and not h.refuted and sigmoid(h.logit) >= cal.incident_at
        and (h.shown or (not h.only_partial and origins.figures(ledger, h.evidence)))
        for h in table.values()
    )  # fmt: skip
    for item in ledger.of(origins.LIKENESS):
        family = item.labels.get("family", "")
        share = item.value if isinstance(item.value, float) else 0.0
        card = known.families.get(family)
        if card is None or share < cal.resemblance_from:
            continue
        h = table.get(family)
        if h is None:
            h = table[family] = Hypothesis(key=family, family=family, outcome="incident", layer=card.layer)
            h.logit = cal.prior
            h.only_partial = True
            _refute(ledger, h, card.refuted_by, lang)
            h.logit -= _minus(known, ledger, h, lang)
        if h.only_partial:
            h.logit += cal.resemblance_alone * share
            h.only_partial = carried or share < cal.resemblance_at
        else:
            h.logit += cal.resemblance * share
        h.evidence.append(item.id)
        words = {"en": "the words resemble what is told of this cause", "zh": "这些描述与该原因的常见表现相似"}
        h.says.append(f"{words.get(lang, words['en'])} [{item.id}]")


def _symptom(ledger: Ledger) -> bool:
    """Something that hurts is named: late tokens, failures, a crash …"""
    return any(ledger.value(fact) is True for fact in ledger.facts() if fact.startswith("symptom."))


def _explain_away(table: dict[str, Hypothesis]) -> None:
    """A benign explanation that holds takes weight from the families it names."""
    cal = calibration()
    for benign in [h for h in table.values() if h.outcome != "incident" and not h.refuted]:
        for rule, result in zip(benign.rules, benign.results, strict=True):
            for family in rule.explains_away if result.state == "fired" else []:
                if family in table and sigmoid(benign.logit) >= cal.lead_at:
                    table[family].logit -= cal.separator
                    table[family].against.append(_cited(rule.title.en, result.evidence))


def _cap(ledger: Ledger, h: Hypothesis) -> None:
    """What the confidence may be, and what is said of it: the curve that belongs to the evidence, below every cap."""
    cal = calibration()
    raw = value = sigmoid(h.logit)
    limits = [*(_promises(h) if h.shown else _words_alone(ledger, h)), *_gaps(ledger, h)]
    for limit, why in limits:
        if value > limit:
            value = limit
            h.caps.append(f"≤ {limit:g}: {why}")
    h.confidence = round(value, 4)
    if cal.plain:
        h.stated = round(value if h.shown else raw, 4)
        return
    said = [limit for limit, _ in limits]
    if _unlike(ledger, h):
        said.append(cal.cap_words_unlike)
        h.caps.append(f"said ≤ {cal.cap_words_unlike:g}: one phrase speaks for it, the rest of the words do not")
    curve = stated(value, cal.curve) if h.shown else stated(raw, cal.curve_words)
    h.stated = round(min([curve, *said]), 4)


def _promises(h: Hypothesis) -> list[tuple[float, str]]:
    """The promises of the design for what a reading shows: no refuter passed, no decisive evidence."""
    cal = calibration()
    limits: list[tuple[float, str]] = []
    if not h.passed:
        limits.append((cal.cap_no_refuter, "no refuter passed"))
    strong = any(r.strength == "strong" and x.state == "fired" for r, x in zip(h.rules, h.results, strict=True))
    if not h.decisive and not (strong and h.passed):
        limits.append((cal.cap_no_decisive, "no decisive evidence"))
    return limits


def _gaps(ledger: Ledger, h: Hypothesis) -> list[tuple[float, str]]:
    """Inputs that are not there: a second snapshot, the inputs of its rules, a file that was pointed to, the pages."""
    cal = calibration()
    limits: list[tuple[float, str]] = []
    if origins.one_snapshot(ledger, h.evidence):
        limits.append((cal.cap_one_snapshot_rate, "a rate claim on one snapshot"))
    if h.only_partial:
        limits.append((cal.incident_at - 0.01, "inputs of its rules are missing"))
    if h.outcome == "incident" and not h.shown and ledger.value(NOT_GIVEN) is not None:
        limits.append((cal.incident_at - 0.01, "only words speak for it, and a file they point to is not here"))
    if (
        ledger.value(UNREADABLE) is True
        and h.outcome != "theoretical_limit"
        and not (h.decisive and origins.logged(ledger, h.evidence))
    ):
        limits.append((min(cal.incident_at, cal.benign_at) - 0.01, "no metrics page given could be read"))
    return limits


def _words_alone(ledger: Ledger, h: Hypothesis) -> list[tuple[float, str]]:
    """What a person's words alone carry: never "likely", and no fault where they read as if nothing were wrong.

    How a text sounds holds back what it merely resembles; a rule that fired heard a mechanism.
    """
    cal = calibration()
    limits = [(cal.cap_words, "only words speak for it")]
    calm = ledger.value(CALM)
    reads_calm = isinstance(calm, float) and calm >= cal.calm_at and not _ruled(h)
    hurts = _symptom(ledger)
    asked = ledger.value(NO_COMPLAINT) is True and not hurts
    wished = ledger.value(WISH) is True and not origins.figures(ledger, h.evidence)
    how = ledger.value(HOW) is True and not hurts and not _ruled(h)
    if h.outcome == "incident" and (asked or reads_calm or wished or how):
        limits.append(
            (cal.incident_at - 0.01, "only words speak for it, and they read like a question or expected behaviour")
        )
    return limits


def _ruled(h: Hypothesis) -> bool:
    return any(result.state == "fired" for result in h.results)


def _unlike(ledger: Ledger, h: Hypothesis) -> bool:
    """A rule that only phrases fired, for a family that the report as a whole does not resemble."""
    items = ledger.of(origins.LIKENESS)
    if h.shown or h.outcome != "incident" or not items or origins.figures(ledger, h.evidence):
        return False
    shares = [i.value for i in items if i.labels.get("family") == h.family and isinstance(i.value, float)]
    return max(shares, default=0.0) < calibration().resemblance_from


def _cited(text: str, ids: Any) -> str:
    marks = "".join(f"[{i}]" for i in list(ids)[:6])
    return f"{text.strip()} {marks}".strip()


def leads(found: list[Hypothesis]) -> list[Hypothesis]:
    """Incident hypotheses worth naming. Beside a cause that readings make very likely, what words merely resemble is none."""
    cal = calibration()
    out = [h for h in found if h.outcome == "incident" and not h.refuted and h.confidence >= cal.lead_at]
    sure = any(h.shown and h.confidence >= cal.bands["very_likely"] for h in out)
    return [h for h in out if h.rules or not sure]
