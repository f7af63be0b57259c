"""What words may carry: less than readings, nothing without a complaint, nothing while a file they point to is missing."""

from __future__ import annotations

from typing import Any

import pytest

from agent.belief import COMPLAINTS, Hypothesis, calibration
from knowledge.schema import FactDef, Knowledge
from tests.agent.small_knowledge import NOTE, from_ledger, knowledge, rule
from tools.contract import Reading, Source
from tools.view import Ledger

CAL = calibration()
COMPLAINT = {"complaint.words": COMPLAINTS}


def known(*rules: Any) -> Knowledge:
    out = knowledge(*rules)
    for name, kind in (
        ("complaint.words", "number"), ("symptom.ttft", "bool"), ("concept.asks_approval", "bool"),
        ("report.missing_file", "text"), ("metrics.unusable", "bool"),
    ):  # fmt: skip
        combine = "first" if kind == "text" else "max" if kind == "number" else "any"
        out.facts[name] = FactDef(name=name, unit="", type=kind, means=NOTE, combine=combine)  # type: ignore[arg-type]
    return out


def judged(base: Knowledge, facts: dict[str, Any], *, kind: str = "words", alike: float = 0.0) -> dict[str, Hypothesis]:
    ledger = Ledger(base)
    source = Source(kind=kind, ref="r.md", line=1, span="so")  # type: ignore[arg-type]
    ledger.extend(Reading(fact=name, value=value, source=source) for name, value in facts.items())
    if alike:
        source = Source(kind="words", ref="r.md", line=1, span="so")
        ledger.add(Reading(fact="words.resemble", value=alike, labels={"family": "cause"}, source=source))
    return from_ledger(base, ledger)


def test_a_rule_that_words_alone_fire_weighs_less_than_one_that_a_reading_fires() -> None:
    base = known(rule(strength="strong"))
    told, shown = (judged(base, {"flag.n0": True}, kind=kind)["cause"] for kind in ("words", "file"))
    assert shown.logit - told.logit == pytest.approx(CAL.strengths["strong"] * (1 - CAL.told))
    assert shown.shown and not told.shown


def test_likeness_alone_names_a_cause_only_where_somebody_complains() -> None:
    base = known()
    assert judged(base, {}, alike=0.99)["cause"].confidence < CAL.incident_at
    assert judged(base, {"complaint.words": COMPLAINTS - 1}, alike=0.99)["cause"].confidence < CAL.incident_at
    for complaint in (COMPLAINT, {"symptom.ttft": True}):
        found = judged(base, complaint, alike=0.99)["cause"]
        assert CAL.incident_at <= found.confidence <= CAL.cap_no_decisive
    assert judged(base, {**COMPLAINT, "concept.asks_approval": True}, alike=0.99)["cause"].confidence < CAL.incident_at


def test_likeness_may_outweigh_another_cause_that_only_words_speak_for_but_not_one_that_a_reading_shows() -> None:
    base = known(rule(id="R-o", family="other", strength="strong"))
    facts = {**COMPLAINT, "flag.n0": True}
    told = judged(base, facts, alike=0.99)
    assert told["cause"].logit > told["other"].logit and told["cause"].confidence >= CAL.incident_at
    assert judged(base, facts, kind="file", alike=0.99)["cause"].confidence < CAL.incident_at


def test_words_alone_name_nothing_while_a_file_they_point_to_is_missing() -> None:
    base = known(rule(strength="decisive"))
    facts = {"flag.n0": True, "report.missing_file": "bench.txt"}
    assert judged(base, facts)["cause"].confidence < CAL.incident_at
    assert judged(base, facts, kind="file")["cause"].confidence >= CAL.incident_at


def test_where_no_page_given_could_be_read_a_log_line_may_decide_and_client_figures_may_not() -> None:
    base = known(rule(strength="decisive", when="log.dead"), rule(id="R-o", family="other", strength="decisive"))
    base.facts["log.dead"] = FactDef(name="log.dead", unit="", type="bool", means=NOTE)
    found = judged(base, {"log.dead": True, "flag.n0": True, "metrics.unusable": True}, kind="file")
    assert found["cause"].confidence >= CAL.incident_at
    assert found["other"].confidence < CAL.incident_at
