"""From readings to the calculator: which probe runs, what a change would buy, and which input is missing for it."""

from __future__ import annotations

from typing import Any

import pytest

from agent.deployment import evidence_ids, figures, measured_of, request_of
from agent.diagnosis import Diagnosis, Provenance
from agent.executables import YIELDS, executables, roofline
from agent.fixtures import ledger_of
from agent.investigate import investigate, make_env
from agent.predict import ledger_of as ledger_again
from agent.predict import predict
from agent.sources import Sources
from knowledge import load
from tools.contract import Reading
from tools.roofline.request import Request
from tools.view import Ledger

KNOWN = load()
FACTS: dict[str, Any] = {
    "config.model": "Qwen/Qwen3-8B",
    "gpu.name": "NVIDIA H100 80GB HBM3",
    "config.tensor_parallel_size": 1.0,
    "queue.running.mean": 16.0,
    "prompt_tokens.mean": 2000.0,
    "output_tokens.mean": 300.0,
    "itl.mean_s": 0.02,
}


def world(**changes: Any) -> Ledger:
    facts = {**FACTS, **{name.replace("__", "."): value for name, value in changes.items()}}
    return ledger_of(KNOWN, {name: value for name, value in facts.items() if value is not None})


def diagnosis(ledger: Ledger) -> Diagnosis:
    return Diagnosis(
        outcome="undecidable", headline="", causes=[], chain=[], layers=[], actions=[], probes=[],
        evidence=list(ledger), rules=[], provenance=Provenance(inferdx="0", knowledge="0"),
    )  # fmt: skip


def test_the_probe_is_offered_when_model_and_device_are_known() -> None:
    assert [p.id for p in executables(world())] == ["roofline"]
    assert executables(world(engine__on_cpu=False))


@pytest.mark.parametrize("changes", [{"config__model": None}, {"gpu__name": None}, {"engine__on_cpu": True}])
def test_the_probe_is_not_offered_otherwise(changes: dict[str, Any]) -> None:
    assert executables(world(**changes)) == []


def test_the_probe_yields_known_facts_from_named_evidence() -> None:
    ledger = world()
    found = roofline(ledger)
    facts = {r.fact: r.value for r in found}
    assert set(facts) <= set(KNOWN.facts)
    assert set(facts) & set(YIELDS)
    assert facts["roofline.tpot.measured_over_hard"] == pytest.approx(20 / facts["roofline.tpot.hard_floor_ms"], 1e-3)
    model, device = ledger.ids("config.model")[0], ledger.ids("gpu.name")[0]
    floor = next(r for r in found if r.fact == "roofline.tpot.hard_floor_ms")
    assert floor.source.kind == "computed"
    assert {model, device} <= set(floor.source.inputs)


def test_everything_the_probe_promises_is_in_the_vocabulary() -> None:
    assert set(YIELDS) <= set(KNOWN.facts)


def test_without_a_measured_time_there_are_floors_and_no_comparison() -> None:
    facts = {r.fact for r in roofline(world(itl__mean_s=None))}
    assert "roofline.tpot.hard_floor_ms" in facts
    assert "roofline.tpot.measured_over_hard" not in facts


def test_a_device_nobody_knows_is_a_named_gap_and_no_floor() -> None:
    (gap,) = roofline(world(gpu__name="Zorblax 9000"))
    assert (gap.fact, gap.value) == ("roofline.missing_input", ["gpu"])
    assert "Zorblax" in gap.method


def test_a_probe_that_raises_is_a_problem_and_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Ledger) -> list[Reading]:
        raise RuntimeError("out of order")

    monkeypatch.setattr("agent.executables.roofline", broken)
    env = make_env(Sources(), known=KNOWN)
    env.gather = lambda: (_readings(world()), [], {"made": "report"})
    found, state = investigate(env)
    assert state["probes_run"] == ["roofline"]
    assert [p.what for p in found.problems if p.ref == "roofline"] == ["probe failed (RuntimeError: out of order)"]
    assert not [e for e in found.evidence if e.fact.startswith("roofline.")]


def test_the_loop_runs_the_probe_where_it_may_and_not_on_a_cpu() -> None:
    seen = {}
    for on_cpu in (False, True):
        env = make_env(Sources(), known=KNOWN)
        readings = _readings(world(engine__on_cpu=on_cpu))
        env.gather = lambda readings=readings: (readings, [], {"made": "report"})  # type: ignore[misc]
        found, state = investigate(env)
        seen[on_cpu] = (state.get("probes_run", []), [e for e in found.evidence if e.fact.startswith("roofline.")])
    assert seen[False][0] == ["roofline"]
    assert seen[False][1]
    assert seen[True] == ([], [])


def _readings(ledger: Ledger) -> list[Reading]:
    """Evidence as readings again."""
    return [Reading(**{k: getattr(e, k) for k in Reading.__struct_fields__}) for e in ledger]


def test_figures_prefer_the_surest_fact_and_leave_out_what_says_nothing() -> None:
    values, origin = figures(
        world(said__model="other", config__quantization="none", config__dtype="bfloat16", config__kv_cache_dtype="auto")
    )
    assert (values["model"], origin["model"]) == ("Qwen/Qwen3-8B", "config.model")
    assert (values["weights"], origin["weights"]) == ("bfloat16", "config.dtype")
    assert "kv" not in values
    assert "pp" not in values
    assert "concurrency" not in figures(world(queue__running__mean=0.0))[0], "zero running is no load to compute with"


def test_a_device_count_is_not_taken_for_a_layout() -> None:
    assert "tp" not in figures(world(config__tensor_parallel_size=None, gpu__count=8.0))[0]


def test_a_figure_the_calculator_cannot_read_is_dropped_but_model_and_device_never() -> None:
    made, origin = request_of(world(config__kv_cache_dtype="zorblax_7bit"))
    assert isinstance(made, Request)
    assert "kv" not in origin
    refused, _ = request_of(world(config__model="nobody/unheard-of-thing"))
    assert not isinstance(refused, Request)
    assert refused.field == "model"


def test_measured_times_come_in_ms_with_their_facts() -> None:
    seen, facts = measured_of(world(ttft__mean_s=0.3))
    assert (seen.tpot_ms, seen.ttft_ms) == (pytest.approx(20.0), pytest.approx(300.0))
    assert facts == ("itl.mean_s", "ttft.mean_s")


def test_evidence_ids_do_not_repeat() -> None:
    ledger = world()
    ids = evidence_ids(ledger, ["gpu.name", "config.model", "gpu.name"])
    assert len(ids) == 2


def test_predict_gives_a_range_for_each_change() -> None:
    lines = predict(KNOWN, diagnosis(world()), {"kv": "fp8"})
    moved = [line for line in lines if "→" in line]
    assert moved
    assert all("%" in line and " to " in line for line in moved)
    assert not any(line.startswith("not computed") for line in lines)


def test_predict_names_a_setting_it_knows_nothing_of() -> None:
    lines = predict(KNOWN, diagnosis(world()), {"zorblax": "9"})
    assert any("zorblax" in line for line in lines)


@pytest.mark.parametrize(("gone", "word"), [("config__model", "model"), ("gpu__name", "gpu")])
def test_predict_names_the_missing_input(gone: str, word: str) -> None:
    lines = predict(KNOWN, diagnosis(world(**{gone: None})), {"kv": "fp8"})
    assert len(lines) == 1
    assert lines[0].startswith("not computed: ")
    assert word in lines[0].lower()


def test_predict_before_anything_was_read() -> None:
    (line,) = predict(KNOWN, None, {"kv": "fp8"})
    assert "nvidia-smi" in line
    assert predict(KNOWN, None, {}, "zh")[0].startswith("无法计算")


def test_a_finished_diagnosis_gives_the_same_ledger_again() -> None:
    ledger = world()
    assert [(e.id, e.fact, e.value) for e in ledger_again(KNOWN, diagnosis(ledger))] == [
        (e.id, e.fact, e.value) for e in ledger
    ]
