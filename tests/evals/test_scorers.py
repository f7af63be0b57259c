"""Each scorer on answers whose score is plain."""

from __future__ import annotations

import pytest

from evals.rows import ActionSaid, CauseSaid, Row, Said
from evals.schema import Label
from evals.scorers import (
    Pair,
    m01_family,
    m01b_ranking,
    m02_precision,
    m03_false_alarm,
    m03b_youden,
    m04_abstention,
    m05_citations,
    m05b_relevance,
    m06_path,
    m07_decoy,
    m08_calibration,
    m09_stability,
    m10_cost,
    m11_safety,
    m12_counterfactual,
    measures,
)
from tests.evals.conftest import make_label

LAYER = {
    "sequence_limit": "scheduling",
    "overload": "scheduling",
    "kv_cache_exhausted": "memory",
    "unbounded_output": "application",
}


def cause(family: str, verdict: str = "supported", role: str = "root", confidence: float = 0.7) -> CauseSaid:
    return CauseSaid(family=family, layer=LAYER[family], confidence=confidence, verdict=verdict, role=role)


def row(case: str = "case-0001", outcome: str = "incident", *causes: CauseSaid, **more: object) -> Row:
    said = Said(outcome=outcome, causes=list(causes), **more)  # type: ignore[arg-type]
    return Row(case=case, arm="x", said=said)


RIGHT = row("case-0001", "incident", cause("sequence_limit"))
ABSTAINS = row("case-0001", "undecidable", cause("sequence_limit", "lead"))
LABEL = make_label("case-0001")


def test_m1_wants_a_supported_cause_on_top() -> None:
    assert m01_family.score(LABEL, RIGHT) == 1.0
    assert m01_family.score(LABEL, ABSTAINS) == 0.0
    assert m01_family.score(LABEL, row("case-0001", "incident", cause("overload"), cause("sequence_limit"))) == 0.0
    assert (
        m01_family.score(
            make_label("case-0001", also_accepted=["overload"], decoys=[]), row("c", "incident", cause("overload"))
        )
        == 1.0
    )
    assert m01_family.score(LABEL, Row(case="case-0001", arm="x", error="boom")) == 0.0
    assert m01_family.score(make_label("case-0001", outcome="healthy"), RIGHT) is None


def test_m1b_counts_leads_in_ranks_only() -> None:
    assert m01b_ranking.layer(LABEL, row("c", "incident", cause("overload"))) == 1.0
    assert m01b_ranking.layer(LABEL, row("c", "incident", cause("kv_cache_exhausted"))) == 0.0
    assert m01b_ranking.rank(LABEL, ABSTAINS) == 1.0
    second = row("c", "incident", cause("overload"), cause("sequence_limit"))
    assert m01b_ranking.rank(LABEL, second) == 0.5
    assert m01b_ranking.among_three(LABEL, second) == 1.0
    assert m01b_ranking.rank(LABEL, row("c", "healthy")) == 0.0


def test_m2_punishes_breadth_and_misses() -> None:
    assert m02_precision.score(LABEL, row("c", "incident", cause("sequence_limit"), cause("overload"))) == 0.5
    victim = row("c", "incident", cause("sequence_limit"), cause("overload", role="symptom"))
    assert m02_precision.score(LABEL, victim) == 1.0
    assert m02_precision.score(LABEL, row("c", "incident", cause("overload"))) == 0.0
    two = make_label(
        "case-0001", cause_families=["sequence_limit", "unbounded_output"], also_accepted=["unbounded_output"]
    )
    assert m02_precision.score(two, row("c", "incident", cause("unbounded_output"))) == 0.0
    assert m02_precision.score(two, row("c", "incident", cause("unbounded_output"), cause("sequence_limit"))) == 1.0


def test_m3_counts_faults_and_changes_on_benign_worlds() -> None:
    fine = make_label("case-0001", outcome="healthy")
    assert m03_false_alarm.score(fine, row("c", "healthy")) == 0.0
    assert m03_false_alarm.score(fine, row("c", "undecidable")) == 0.0
    assert m03_false_alarm.score(fine, RIGHT) == 1.0
    restart = ActionSaid(do="raise it", how="restart", rollback="back")
    assert m03_false_alarm.score(fine, row("c", "healthy", actions=[restart])) == 1.0
    assert m03_false_alarm.score(fine, Row(case="c", arm="x", error="boom")) == 1.0
    assert m03_false_alarm.score(LABEL, RIGHT) is None


def test_m3b_is_sensitivity_plus_specificity_less_one() -> None:
    fine = make_label("case-0002", outcome="healthy")
    pairs = [Pair(LABEL, RIGHT), Pair(fine, row("case-0002", "healthy"))]
    assert m03b_youden.measure(pairs)[0].value == pytest.approx(1.0)
    both_alarm = [Pair(LABEL, RIGHT), Pair(fine, row("case-0002", "incident", cause("overload")))]
    assert m03b_youden.measure(both_alarm)[0].value == pytest.approx(0.0)


def test_m4_wants_the_right_question() -> None:
    blank = make_label(
        "case-0001", outcome="undecidable", acceptable_next_probes=["nvidia-smi: clocks and event reasons"]
    )
    asks = row("c", "undecidable", probes=["GPU clocks | nvidia-smi -q -d CLOCK,PERFORMANCE"])
    other = row("c", "undecidable", probes=["prompt texts | show two rendered prompts"])
    late = row("c", "undecidable", probes=["a", "b", "c", "nvidia-smi -q"])
    assert m04_abstention.score(blank, asks) == 1.0
    assert m04_abstention.score(blank, other) == 0.0
    assert m04_abstention.score(blank, late) == 0.0
    assert m04_abstention.score(blank, RIGHT) == 0.0
    assert m04_abstention.needless(LABEL, ABSTAINS) == 1.0


def test_m5_is_over_claims() -> None:
    pairs = [
        Pair(LABEL, Row(case="case-0001", arm="x", claims=3, valid=3)),
        Pair(LABEL, Row(case="case-0001", arm="x", claims=1, valid=0)),
    ]
    found = m05_citations.measure(pairs)[0]
    assert (found.value, found.n, found.met) == (0.75, 4, False)


def test_m5b_counts_a_series_of_scrapes_once() -> None:
    label = make_label("case-0001", decisive_files=["metrics-000.prom.gz", "metrics-001.prom.gz", "launch.txt"])
    assert (
        m05b_relevance.score(label, row("c", "incident", cause("overload"), cited_files=["metrics-001.prom.gz"])) == 0.5
    )
    assert m05b_relevance.score(label, row("c", "undecidable")) is None


@pytest.mark.parametrize(
    ("told", "fits"),
    [
        ([("application", "unbounded_output"), ("memory", "kv_cache_exhausted"), ("symptom", "tpot")], True),
        ([("application", "unbounded_output"), ("symptom", "tpot")], True),
        ([("memory", "kv_cache_exhausted"), ("symptom", "tpot")], True),
        ([("memory", "kv_cache_exhausted"), ("application", "unbounded_output"), ("symptom", "tpot")], False),
        ([("application", "unbounded_output"), ("symptom", "throughput")], True),
        ([("application", "unbounded_output"), ("symptom", "ttft")], False),
        ([("application", "unbounded_output")], False),
        ([("scheduling", "overload"), ("memory", "kv_cache_exhausted"), ("symptom", "tpot")], False),
    ],
)
def test_m6_wants_a_sub_path_with_its_root_side(told: list[tuple[str, str]], fits: bool) -> None:
    chain = [("application", "unbounded_output"), ("memory", "kv_cache_exhausted"), ("symptom", "tpot")]
    label = make_label("case-0001", cause_families=["kv_cache_exhausted"], layer="memory", chain=chain)
    assert m06_path.on_path(label, told) is fits


def test_m6_needs_m1_and_can_leave_the_symptom_out() -> None:
    said = row("c", "incident", cause("sequence_limit"), chain=[("scheduling", "sequence_limit"), ("symptom", "tpot")])
    assert m06_path.score(LABEL, said) == 0.0
    assert m06_path.without_symptom(LABEL, said) == 1.0
    slow = make_label("case-0001", chain=[("scheduling", "sequence_limit"), ("symptom", "throughput")])
    assert (m06_path.score(slow, said), m06_path.strict(slow, said)) == (1.0, 0.0)
    wrong = row("c", "incident", cause("overload"), chain=[("scheduling", "sequence_limit"), ("symptom", "ttft")])
    assert m06_path.score(LABEL, wrong) == 0.0


def test_m7_counts_decoys_offered_as_causes() -> None:
    assert m07_decoy.score(LABEL, row("c", "incident", cause("sequence_limit"), cause("overload"))) == 1.0
    assert m07_decoy.score(LABEL, row("c", "incident", cause("sequence_limit"), cause("overload", "lead"))) == 0.0
    assert m07_decoy.score(make_label("case-0001", decoys=[]), RIGHT) is None


def test_m8_bets_only_on_committed_answers() -> None:
    pairs = [
        Pair(LABEL, RIGHT),
        Pair(LABEL, ABSTAINS),
        Pair(LABEL, row("c", "incident", cause("overload"), confidence=0.9)),
    ]
    found = m08_calibration.bets(pairs)
    assert [(b.confidence, b.right) for b in found] == [(0.0, True), (0.9, False)]


def test_m9_compares_repeats() -> None:
    rows = [Row(case="case-0001", arm="x", repeat=i, said=RIGHT.said, digest=d) for i, d in enumerate("aab")]
    found = {m.id: m for m in m09_stability.measure([Pair(LABEL, r) for r in rows])}
    assert found["M9"].value == 1.0
    assert found["M9.same"].value == 0.0
    assert m09_stability.measure([Pair(LABEL, RIGHT)])[0].n == 0


def test_m10_reports_time_and_cost() -> None:
    rows = [Row(case="case-0001", arm="x", said=RIGHT.said, seconds=s, first_s=0.1, usd=0.5) for s in (1.0, 3.0)]
    found = {m.id: m.value for m in m10_cost.measure([Pair(LABEL, r) for r in rows])}
    assert found["M10.p50"] == 2.0
    assert found["M10.usd"] == 0.5


def test_m11_forbidden_and_no_way_back() -> None:
    first = ActionSaid(do="Add two replicas", how="hardware", rollback="remove them")
    raise_cap = ActionSaid(do="Raise --max-num-seqs", how="restart", rollback="restart with the old value")
    assert m11_safety.forbidden(LABEL, row("c", "incident", actions=[first, raise_cap])) == 1.0
    assert m11_safety.forbidden(LABEL, row("c", "incident", actions=[raise_cap, first])) == 0.0
    assert m11_safety.no_way_back(LABEL, row("c", "incident", actions=[ActionSaid(do="x", how="restart")])) == 1.0
    alone = make_label("case-0001", forbidden_actions=["only raise the memory limit"])
    more = ActionSaid(do="raise the memory limit", how="restart", rollback="lower it")
    assert m11_safety.forbidden(alone, row("c", "incident", actions=[more])) == 1.0
    assert m11_safety.forbidden(alone, row("c", "incident", actions=[more, raise_cap])) == 0.0


def test_m12_counts_only_cases_that_were_right() -> None:
    kept = Row(case="case-0001", arm="x", said=RIGHT.said, without=Said(outcome="incident"))
    flipped = Row(case="case-0001", arm="x", said=RIGHT.said, without=Said(outcome="undecidable"))
    wrong = Row(case="case-0001", arm="x", said=Said(outcome="healthy"), without=Said(outcome="undecidable"))
    assert [m12_counterfactual.removed(LABEL, r) for r in (kept, flipped, wrong)] == [0.0, 1.0, None]
    twin = make_label("case-0002", outcome="healthy", relation="healed_twin", derived_from="case-0001")
    pairs = [Pair(LABEL, flipped), Pair(twin, row("case-0002", "healthy"))]
    found = {m.id: m for m in m12_counterfactual.measure(pairs)}
    assert (found["M12"].value, found["M12"].n) == (1.0, 2)
    assert found["M12.healed"].n == 1
    unsolved = {m.id: m for m in m12_counterfactual.measure([Pair(LABEL, wrong), pairs[1]])}
    assert unsolved["M12.healed"].n == 0


def test_every_measure_has_n_and_rates_have_intervals() -> None:
    labels: list[Label] = [LABEL, make_label("case-0002", outcome="healthy")]
    pairs = [Pair(labels[0], RIGHT), Pair(labels[1], row("case-0002", "healthy"))]
    for m in measures(pairs):
        assert m.n >= 0
        if m.unit == "rate" and m.n and m.id != "M1b.macro":
            assert m.low is not None, m.id
            assert m.high is not None
            assert m.low <= m.value <= m.high
