"""What words may carry: never "likely", nothing for a mere question, nothing while a file they point to is missing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agent.belief import Hypothesis, band, calibration, leads, sigmoid, stated
from agent.write import decide
from knowledge.schema import FactDef, Knowledge
from tests.agent.small_knowledge import NOTE, from_ledger, knowledge, rule, twin
from tools.contract import Reading, Source
from tools.view import Ledger

CAL = calibration()


def known(*rules: Any) -> Knowledge:
    out = knowledge(*rules)
    for name, kind in (
        ("words.calm", "number"), ("symptom.ttft", "bool"), ("concept.asks_approval", "bool"),
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


def test_words_alone_are_never_likely_however_strong_the_rule() -> None:
    base = known(rule(strength="decisive"))
    told, shown = (judged(base, {"flag.n0": True}, kind=kind)["cause"] for kind in ("words", "file"))
    assert shown.shown and not told.shown
    assert told.logit == shown.logit
    assert shown.stated > CAL.cap_words
    assert CAL.incident_at <= told.confidence <= CAL.cap_words
    assert band(told.stated) == "possible"


def test_what_is_said_of_words_follows_their_own_curve_below_the_cap() -> None:
    base = known(rule(strength="strong"))
    told = judged(base, {"flag.n0": True})["cause"]
    assert told.stated == pytest.approx(min(CAL.cap_words, stated(sigmoid(told.logit), CAL.curve_words)), abs=1e-4)


def test_one_phrase_that_the_rest_of_the_words_do_not_bear_out_is_said_low() -> None:
    base = known(rule(strength="decisive"))
    unlike = judged(base, {"flag.n0": True}, alike=CAL.resemblance_from / 2)["cause"]
    assert unlike.confidence >= CAL.incident_at
    assert unlike.stated <= CAL.cap_words_unlike
    assert judged(base, {"flag.n0": True}, alike=0.9)["cause"].stated > CAL.cap_words_unlike
    shown = judged(base, {"flag.n0": True}, kind="file", alike=CAL.resemblance_from / 2)["cause"]
    assert shown.stated > CAL.cap_words_unlike


def test_likeness_alone_names_a_possible_cause() -> None:
    base = known()
    found = judged(base, {}, alike=0.99)["cause"]
    assert CAL.incident_at <= found.confidence <= CAL.cap_words
    assert judged(base, {}, alike=CAL.resemblance_at - 0.01)["cause"].confidence < CAL.incident_at


@pytest.mark.parametrize(
    ("calm", "holds_rules"), [({"words.calm": CAL.calm_at}, False), ({"concept.asks_approval": True}, True)]
)
def test_words_that_read_as_if_nothing_were_wrong_name_no_fault(calm: dict[str, Any], holds_rules: bool) -> None:
    base = known(rule(strength="decisive"))
    told = judged(base, {"flag.n0": True, **calm})["cause"]
    assert (told.confidence < CAL.incident_at) is holds_rules, "the tone of a text holds back likeness, not a mechanism"
    assert judged(base, {"flag.n0": True, **calm}, kind="file")["cause"].confidence >= CAL.incident_at
    assert judged(known(), calm, alike=0.99)["cause"].confidence < CAL.incident_at


def test_who_asks_for_approval_and_names_a_symptom_is_believed() -> None:
    base = known(rule(strength="decisive"))
    facts = {"flag.n0": True, "concept.asks_approval": True, "symptom.ttft": True}
    assert judged(base, facts)["cause"].confidence >= CAL.incident_at


def test_likeness_may_outweigh_another_cause_that_only_words_speak_for_but_not_one_that_a_reading_shows() -> None:
    base = known(rule(id="R-o", family="other", strength="strong"))
    facts = {"flag.n0": True}
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


def test_figures_that_a_rule_compared_weigh_more_than_the_tone() -> None:
    base = known(rule(strength="decisive", when="ttft.mean_s >= 2"))
    base.facts["ttft.mean_s"] = FactDef(name="ttft.mean_s", unit="s", type="number", means=NOTE, combine="max")
    calm = {"words.calm": CAL.calm_at}
    assert judged(base, {"ttft.mean_s": 5.0, **calm})["cause"].confidence >= CAL.incident_at
    asked = {"concept.asks_approval": True}
    assert judged(base, {"ttft.mean_s": 5.0, **asked})["cause"].confidence < CAL.incident_at


def test_beside_a_cause_that_readings_make_very_likely_mere_likeness_is_no_lead() -> None:
    base = known(rule(id="R-o", family="other", strength="decisive"))
    facts = {"flag.n0": True}
    shown = judged(base, facts, kind="file", alike=0.4)
    assert shown["cause"].confidence >= CAL.lead_at
    for confidence, kept in (
        (CAL.bands["very_likely"], {"other"}),
        (CAL.bands["very_likely"] - 0.01, {"other", "cause"}),
    ):
        found = [
            msgspec.structs.replace(h, confidence=confidence) if h.family == "other" else h for h in shown.values()
        ]
        assert {h.family for h in leads(found)} == kept
    told = judged(base, facts, alike=0.4)
    assert {h.family for h in leads([*told.values()])} == {"other", "cause"}


def _weighed(outcome: str, stated: float, *, shown: bool = False) -> Hypothesis:
    return Hypothesis(
        key=outcome, family="", outcome=outcome, layer="memory", confidence=CAL.cap_words, stated=stated, shown=shown
    )


def test_words_that_speak_for_health_and_more_for_a_fault_decide_nothing() -> None:
    calm, fault = _weighed("healthy", 0.42), _weighed("incident", 0.59)
    assert decide([fault, calm], [fault]) == ("undecidable", None)
    near = _weighed("incident", 0.45)
    assert decide([calm, near], [near]) == ("healthy", calm)
    measured = _weighed("healthy", 0.42, shown=True)
    assert decide([fault, measured], [fault]) == ("healthy", measured)


def test_of_equal_causes_the_one_that_is_said_surer_stands_first() -> None:
    base = known(rule(strength="decisive"), rule(id="R-o", family="other", strength="decisive", when="flag.n1"))
    found = judged(base, {"flag.n0": True, "flag.n1": True}, alike=0.9)
    assert found["cause"].confidence == found["other"].confidence == CAL.cap_words
    assert next(iter(found)) == "cause"
    assert found["other"].stated < found["cause"].stated


def _computed(base: Knowledge, kind: str) -> Hypothesis:
    """One rule on a reading that was computed from another of this kind."""
    ledger = Ledger(base)
    first = Source(kind=kind, ref="r.md", line=1, span="so")  # type: ignore[arg-type]
    behind = ledger.add(Reading(fact="flag.n1", value=True, source=first))
    ledger.add(Reading(fact="flag.n0", value=True, source=Source(kind="computed", inputs=(behind,))))
    return from_ledger(base, ledger)["cause"]


def test_what_is_computed_from_words_alone_is_words() -> None:
    base = known(rule(strength="decisive"))
    assert not _computed(base, "words").shown
    assert _computed(base, "file").shown


def test_a_rule_that_compared_figures_goes_before_mere_likeness() -> None:
    base = known(rule(strength="strong", when="words.calm > 5"))
    ledger = Ledger(base)
    words = Source(kind="words", ref="r.md", line=1, span="so")
    ledger.add(Reading(fact="words.calm", value=9.0, source=words))
    ledger.add(Reading(fact="words.resemble", value=0.99, labels={"family": "other"}, source=words))
    found = from_ledger(base, ledger)
    assert found["cause"].confidence >= CAL.incident_at > found["other"].confidence
    assert found["cause"].stated > CAL.cap_words_unlike, "figures are more than one phrase"


@pytest.mark.parametrize(("via", "shown"), [("config", False), ("log", True)])
def test_a_setting_beside_words_shows_no_symptom(via: str, shown: bool) -> None:
    base = known(rule(strength="decisive", when={"all": ["flag.n0", "flag.n1"]}))
    ledger = Ledger(base)
    ledger.add(Reading(fact="flag.n0", value=True, source=Source(kind="words", ref="r.md", line=1, span="so")))
    ledger.add(Reading(fact="flag.n1", value=True, source=Source(kind="file", ref="x.txt", line=1), via=via))
    assert from_ledger(base, ledger)["cause"].shown is shown


def test_settings_alone_may_show_a_fault() -> None:
    base = known(rule(strength="decisive"))
    ledger = Ledger(base)
    ledger.add(Reading(fact="flag.n0", value=True, source=Source(kind="file", ref="x.txt", line=1), via="config"))
    assert from_ledger(base, ledger)["cause"].shown


def _two_launches(base: Knowledge, *, other: bool, compared: bool) -> Hypothesis:
    """A rule on a setting of two launch commands, of which the second has it or not."""
    ledger = Ledger(base)
    for line, (variant, value) in enumerate([("with A", True), ("without A", other)], 1):
        source = Source(kind="file", ref="launch.txt", line=line)
        ledger.add(Reading(fact="flag.n0", value=value, source=source, via="config", labels={"variant": variant}))
    if compared:
        words = Source(kind="words", ref="r.md", line=1, span="so")
        ledger.add(Reading(fact="pair.difference", value=["feature_on_off"], source=words, via="report"))
    return from_ledger(base, ledger)["cause"]


def test_what_both_compared_runs_share_does_not_make_the_difference() -> None:
    base = known(rule(strength="decisive"))
    base.facts["pair.difference"] = FactDef(name="pair.difference", unit="", type="list", means=NOTE, combine="first")
    shared = _two_launches(base, other=True, compared=True)
    assert shared.confidence < CAL.incident_at and not shared.shown
    assert any(text.startswith("It is the same in both runs") for text in shared.against)
    for other, compared in ((False, True), (True, False)):
        assert _two_launches(base, other=other, compared=compared).confidence >= CAL.incident_at


def test_what_separates_a_cause_from_its_look_alike_counts_for_mere_likeness_too() -> None:
    plain = known()
    base = known()
    base.families["cause"] = msgspec.structs.replace(base.families["cause"], look_alikes=[twin("flag.n5")])
    free, held = (judged(b, {"flag.n5": True}, alike=0.99)["cause"] for b in (plain, base))
    assert held.logit == pytest.approx(free.logit - CAL.separator)
    assert held.against


@pytest.mark.parametrize("asked", ["concept.asks_feature", "concept.asks_how"])
def test_wishes_and_how_to_questions_get_no_fault_from_likeness(asked: str) -> None:
    base = known()
    base.facts[asked] = FactDef(name=asked, unit="", type="bool", means=NOTE, combine="any")
    assert judged(base, {asked: True}, alike=0.99)["cause"].confidence < CAL.incident_at
    hurt = judged(base, {asked: True, "symptom.ttft": True}, alike=0.99)["cause"]
    assert (hurt.confidence >= CAL.incident_at) is (asked == "concept.asks_how"), "a wish tells the pain it would cure"


def test_a_wish_holds_back_a_phrase_and_not_figures() -> None:
    wish = "concept.asks_feature"
    for when, facts, named in (("flag.n0", {"flag.n0": True}, False), ("words.calm > 5", {"words.calm": 9.0}, True)):
        base = known(rule(strength="decisive", when=when))
        base.facts[wish] = FactDef(name=wish, unit="", type="bool", means=NOTE, combine="any")
        assert (judged(base, {**facts, wish: True})["cause"].confidence >= CAL.incident_at) is named


def test_a_decisive_rule_that_both_runs_share_is_not_decisive() -> None:
    base = known(rule(strength="decisive"))
    base.facts["pair.difference"] = FactDef(name="pair.difference", unit="", type="list", means=NOTE, combine="first")
    shared = _two_launches(base, other=True, compared=True)
    assert not shared.decisive and not shared.says


def test_what_separates_a_rule_that_did_not_fire_speaks_against_no_other() -> None:
    fired = rule(id="R-1", strength="strong")
    half = rule(id="R-2", when={"all": ["flag.n1", "flag.n2"]}, look_alikes=[twin("flag.n5")])
    facts = {"flag.n0": True, "flag.n1": True, "flag.n5": True}
    alone, both_rules = (judged(known(*rules), facts, kind="file")["cause"] for rules in ((fired,), (fired, half)))
    assert both_rules.logit >= alone.logit and not both_rules.against
    assert judged(known(half), facts, kind="file")["cause"].against, "of rules that all lack input it still speaks"
