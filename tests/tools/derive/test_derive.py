"""Each derivation step: its values by hand, what it cites, and that a missing input yields nothing."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge import load
from tools.contract import Context, Reading, Source
from tools.derive import derive as steps
from tools.derive import setup
from tools.view import Ledger

Facts = dict[str, Any]


def ledger_of(facts: Facts, via: str = "metrics", **labels: str) -> Ledger:
    ledger = Ledger(load())
    for line, (fact, value) in enumerate(facts.items(), 1):
        ledger.add(_reading(fact, value, line, via, labels))
    return ledger


def _reading(fact: str, value: Any, line: int, via: str, labels: dict[str, str]) -> Reading:
    where = Source(kind="file", ref=f"{fact.partition('.')[0]}.txt", line=line)  # each reader has its own file
    return Reading(fact=fact, value=value, source=where, labels=labels, via=via)


def values(readings: list[Reading]) -> Facts:
    assert len({r.fact for r in readings}) == len(readings)
    return {r.fact: r.value for r in readings}


# step, inputs, what must come of them (by hand)
BY_HAND: list[tuple[steps.Step, Facts, Facts]] = [
    (
        steps.sequence_cap,
        {"config.max_num_seqs": 64, "config.max_num_active_seqs": 16, "queue.running.max": 12},
        {"limits.sequence_cap": 16.0, "limits.running_over_cap": 0.75},
    ),
    (
        steps.sequence_cap,
        {"queue.running.max": 8, "running.flat_share": 0.9, "queue.waiting.share_above_zero": 0.6},
        {"limits.pinned_at": 8.0},
    ),
    (
        steps.kv_arithmetic,
        {
            "kv.capacity_tokens": 10_000,
            "prompt_tokens.mean": 800,
            "output_tokens.mean": 200,
            "queue.running.max": 20,
            "limits.sequence_cap": 40,
            "config.max_model_len": 4000,
        },
        {
            "kv.tokens_per_request": 1000.0,
            "kv.requests_that_fit": 10.0,
            "kv.demand_ratio": 2.0,
            "prompt.pool_share": 0.08,
            "kv.fit_over_cap": 0.25,
            "kv.full_length_requests": 2.5,
        },
    ),
    (
        steps.kv_arithmetic,
        {"log.kv_cache.tokens": 8192, "config.max_model_len": 16384},
        {"kv.full_length_requests": 0.5},
    ),
    (
        steps.budget,
        {"config.max_num_batched_tokens": 2048, "prompt_tokens.mean": 5120, "iteration.tokens.mean": 512},
        {"limits.token_budget": 2048.0, "prefill.steps_per_prompt": 2.5, "iteration.budget_share": 0.25},
    ),
    (
        steps.phase_mix,
        {
            "throughput.prompt_tokens.count": 9000,
            "throughput.generation_tokens.count": 1000,
            "prompt.cached_share": 0.5,
            "itl.p50_s": 0.02,
            "itl.p99_s": 0.1,
            "ttft.p50_s": 0.5,
            "ttft.p99_s": 4.0,
            "max_tokens_param.mean": 1024,
            "output_tokens.mean": 256,
        },
        {
            "work.prompt_per_generated": 4.5,
            "itl.p99_over_p50": 5.0,
            "ttft.p99_over_p50": 8.0,
            "output.length_over_asked": 0.25,
        },
    ),
    (
        steps.graphs,
        {"config.cudagraph.capture_max": 512, "queue.running.max": 256, "config.spec.num_tokens": 3},
        {"cudagraph.width_over_capture": 2.0},
    ),
    (
        steps.graphs,
        {"config.cudagraph.capture_max": 64, "config.max_num_seqs": 256},
        {"cudagraph.width_over_capture": 4.0},
    ),
    (
        steps.graphs,
        {"log.sglang.cuda_graph_max_bs": 48, "queue.running.max": 120, "config.spec.num_tokens": 3},
        {"cudagraph.width_over_capture": 2.5},
    ),
    (steps.platform, {"config.device": "CPU"}, {"engine.on_cpu": True}),
    (steps.platform, {"config.device": "cuda"}, {"engine.on_cpu": False}),
    (
        steps.client_against_server,
        {
            "bench.ttft.mean_ms": 900,
            "ttft.mean_s": 0.3,
            "bench.itl.mean_ms": 30,
            "itl.mean_s": 0.02,
            "bench.itl.p50_ms": 10,
            "itl.p50_s": 0.02,
        },
        {
            "client.ttft.over_server": 3.0,
            "client.ttft.extra_s": 0.6,
            "client.itl.over_server": 1.5,
            "client.itl.extra_s": 0.01,
            "client.itl.p50_over_server": 0.5,
        },
    ),
]


@pytest.mark.parametrize(("step", "given", "expected"), BY_HAND)
def test_values_by_hand(step: steps.Step, given: Facts, expected: Facts) -> None:
    ledger = ledger_of(given)
    got = step(ledger)
    assert values(got) == pytest.approx(expected)
    for reading in got:
        assert reading.source.kind == "computed"
        assert reading.method
        assert reading.source.inputs
        assert all(ledger.get(i) is not None for i in reading.source.inputs)
        assert reading.fact in load().facts


@pytest.mark.parametrize("step", steps.STEPS)
def test_a_step_without_inputs_yields_nothing(step: steps.Step) -> None:
    assert step(Ledger(load())) == []


@pytest.mark.parametrize(("step", "given", "expected"), BY_HAND)
def test_each_value_needs_every_input_that_it_cites(step: steps.Step, given: Facts, expected: Facts) -> None:
    ledger = ledger_of(given)
    cited = {r.fact: {item.fact for i in r.source.inputs if (item := ledger.get(i)) is not None} for r in step(ledger)}
    for gone in given:
        left = values(step(ledger_of({fact: value for fact, value in given.items() if fact != gone})))
        for fact, inputs in cited.items():
            # Without drafts a step is one token wide, and the next best source of the width or cap may take over.
            if gone in inputs and fact in left:
                assert left[fact] != expected[fact], (gone, fact)


@pytest.mark.parametrize(
    ("step", "given"),
    [
        (steps.sequence_cap, {"queue.running.max": 8}),
        (steps.sequence_cap, {"queue.running.max": 8, "running.flat_share": 1.0}),
        (
            steps.sequence_cap,
            {"queue.running.max": 8, "running.flat_share": 0.79, "queue.waiting.share_above_zero": 1.0},
        ),
        (
            steps.sequence_cap,
            {"queue.running.max": 8, "running.flat_share": 1.0, "queue.waiting.share_above_zero": 0.49},
        ),
        (steps.kv_arithmetic, {"kv.capacity_tokens": 1000, "prompt_tokens.mean": 10}),
        (steps.kv_arithmetic, {"prompt_tokens.mean": 10, "output_tokens.mean": 10, "config.max_model_len": 100}),
        (steps.budget, {"prompt_tokens.mean": 100, "iteration.tokens.mean": 10}),
        (steps.budget, {"config.max_num_batched_tokens": 0, "prompt_tokens.mean": 100}),
        (steps.phase_mix, {"throughput.prompt_tokens.count": 10, "throughput.generation_tokens.count": 0}),
        (steps.phase_mix, {"itl.p50_s": 0.0, "itl.p99_s": 0.1, "ttft.p99_s": 1.0, "output_tokens.mean": 5}),
        (steps.graphs, {"config.cudagraph.capture_max": 512, "config.spec.num_tokens": 3}),
        (steps.graphs, {"queue.running.max": 512}),
        (steps.client_against_server, {"bench.ttft.mean_ms": 900, "ttft.mean_s": 0.0}),
        (steps.client_against_server, {"bench.ttft.mean_ms": 900, "itl.mean_s": 0.1}),
        (steps.client_failures, {"bench.failed": 3}),
    ],
)
def test_a_missing_or_zero_input_yields_nothing(step: steps.Step, given: Facts) -> None:
    assert step(ledger_of(given)) == []


def test_a_budget_is_compared_with_each_prompt_length_known() -> None:
    got = steps.budget(
        ledger_of(
            {
                "config.max_num_scheduled_tokens": 1000,
                "config.max_num_batched_tokens": 8000,
                "prompt_tokens.mean": 500,
                "prompt_tokens.p99": 3000,
            }
        )
    )
    ratios = {r.method.split()[0]: r.value for r in got if r.fact == "prefill.steps_per_prompt"}
    assert ratios == {"prompt_tokens.mean": 0.5, "prompt_tokens.p99": 3.0}


def _runs(*runs: tuple[float, dict[str, str]]) -> Ledger:
    ledger = ledger_of({"ttft.mean_s": 0.1})
    for line, (value, labels) in enumerate(runs, 10):
        ledger.add(_reading("bench.ttft.mean_ms", value, line, "bench", labels))
    return ledger


def test_the_client_is_compared_by_its_one_whole_run_only() -> None:
    whole = steps.client_against_server(_runs((9000, {"stream": "long"}), (300, {}), (20, {"stream": "short"})))
    assert values(whole) == pytest.approx({"client.ttft.over_server": 3.0, "client.ttft.extra_s": 0.2})
    assert steps.client_against_server(_runs((9000, {"stream": "long"}))) == []
    assert steps.client_against_server(_runs((300, {"concurrency": "1"}), (900, {"concurrency": "8"}))) == []
    twice = steps.client_against_server(_runs((300, {"file": "a"}), (300, {"file": "b"})))
    assert values(twice)["client.ttft.over_server"] == pytest.approx(3.0)


def test_the_client_comparison_cites_the_run_it_used() -> None:
    ledger = _runs((9000, {"stream": "long"}), (300, {}))
    for reading in steps.client_against_server(ledger):
        cited = [ledger.get(i) for i in reading.source.inputs]
        assert {item.value for item in cited if item is not None} == {0.1, 300}


@pytest.mark.parametrize(
    ("errors", "timed_out", "refused"),
    [
        (["7x TimeoutError"], 7, 0),
        (["ReadTimeout after 60 s", "request timed out"], 2, 0),
        (["12x Connect call failed ('127.0.0.1', 8000)", "3x deadline exceeded"], 3, 12),
        (["Cannot connect to host h:8000", "connection reset by peer", "Connection refused"], 0, 3),
        (["5x HTTP 500", "bad JSON"], 0, 0),
        ("4x time-out", 4, 0),
        (["70x refused", "1x Timed Out"], 1, 70),
    ],
)
def test_failed_requests_are_counted_by_kind(errors: Any, timed_out: int, refused: int) -> None:
    got = values(steps.client_failures(ledger_of({"bench.failed": 99, "bench.errors": errors}, "bench")))
    assert got == {"bench.timed_out": timed_out, "bench.refused": refused}


def test_no_failed_request_is_no_failure_of_any_kind() -> None:
    got = values(steps.client_failures(ledger_of({"bench.failed": 0}, "bench")))
    assert got == {"bench.timed_out": 0, "bench.refused": 0}


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("ttft_p99", "ttft.p99_s"),
        ("itl_mean", "itl.mean_s"),
        ("queue_time_p50", "queue_time.p50_s"),
        ("prefix.hit_rate", "prefix.hit_rate"),
        ("prefix_hit", "prefix.hit"),
    ],
)
def test_the_name_of_a_limit_is_a_fact(name: str, fact: str) -> None:
    assert steps.slo_fact(name) == fact


def test_each_limit_is_judged_and_an_unknown_one_says_nothing() -> None:
    ledger = ledger_of({"ttft.p99_s": 2.0, "itl.mean_s": 0.02})
    got = steps.slo(ledger, Context(slo={"ttft_p99": 0.5, "itl_mean": 0.04, "e2e_p99": 9.0, "ttft_p50": 1.0}))
    assert [(r.fact, r.value) for r in got] == [
        ("slo.ratio", 0.5),
        ("slo.breached", False),
        ("slo.ratio", 4.0),
        ("slo.breached", True),
    ]
    assert steps.slo(ledger, Context(slo={"ttft_p99": 0.0})) == []
    at_limit = steps.slo(ledger, Context(slo={"ttft_p99": 2.0}))
    assert [(r.fact, r.value) for r in at_limit] == [("slo.ratio", 1.0), ("slo.breached", False)]


def test_against_a_baseline_only_what_both_have_is_compared() -> None:
    now = ledger_of({"ttft.mean_s": 0.9, "queue.running.mean": 6, "prefix.hit_rate": 0.2, "bench.tpot.mean_ms": 30})
    then = ledger_of({"ttft.mean_s": 0.3, "queue.running.mean": 0, "tpot.mean_s": 0.01, "bench.tpot.mean_ms": 20})
    got = steps.against_baseline(now, then)
    assert values(got) == pytest.approx({"pair.ttft.ratio": 3.0, "pair.tpot.ratio": 1.5})
    assert {r.labels["difference"] for r in got} == {"baseline"}
    assert steps.against_baseline(now, Ledger(load())) == []


def test_derive_appends_once_and_reads_what_earlier_steps_gave() -> None:
    ledger = ledger_of(
        {
            "config.max_num_seqs": 5,
            "kv.capacity_tokens": 10_000,
            "prompt_tokens.mean": 800,
            "output_tokens.mean": 200,
            "ttft.p99_s": 2.0,
        }
    )
    steps.derive(ledger, Context(slo={"ttft_p99": 1.0}))
    assert ledger.value("kv.fit_over_cap") == 2.0
    assert ledger.value("slo.breached") is True
    assert ledger.unknown_facts == set()
    count = len(ledger)
    steps.derive(ledger, Context(slo={"ttft_p99": 1.0}))
    assert len(ledger) == count


def test_a_cap_on_captured_batches_is_compared_with_widths_that_were_seen() -> None:
    assert steps.graphs(ledger_of({"log.sglang.cuda_graph_max_bs": 48, "limits.sequence_cap": 4096})) == []


def test_clients_beyond_the_cap_do_not_widen_a_batch() -> None:
    given = {"config.cudagraph.capture_max": 256, "said.concurrency": 2000, "limits.sequence_cap": 128}
    assert values(steps.graphs(ledger_of(given)))["cudagraph.width_over_capture"] == 0.5


def _several(*rows: tuple[str, Any, int, dict[str, str]], via: str = "log") -> Ledger:
    ledger = Ledger(load())
    for fact, value, line, labels in rows:
        ledger.add(_reading(fact, value, line, via, labels))
    return ledger


def test_a_cap_holds_for_each_engine_not_for_their_sum() -> None:
    rows = [("queue.running.max", running, 1, {"engine": name}) for name, running in (("0", 24), ("1", 40))]
    ledger = _several(*rows, ("config.max_num_seqs", 80, 2, {}), ("config.cudagraph.capture_max", 50, 3, {}))
    assert values(steps.sequence_cap(ledger))["limits.running_over_cap"] == 0.5
    assert values(steps.graphs(ledger))["cudagraph.width_over_capture"] == 0.8
    ledger.add(_reading("replicas.running_max", 20, 4, "metrics", {}))
    assert values(steps.sequence_cap(ledger))["limits.running_over_cap"] == 0.25


@pytest.mark.parametrize(
    ("prompts", "outputs", "each"),
    [
        ([(900, 1)], [(100, 2)], 1000.0),  # one kind of request, told in two lines
        ([(900, 1), (60_000, 3)], [(100, 1)], 1000.0),  # the long one's answer is not told
        ([(900, 1), (60_000, 3)], [(100, 1), (500, 3)], 60_500.0),
        ([(900, 1), (60_000, 3)], [(100, 2)], None),
    ],
)
def test_lengths_of_different_requests_are_not_added(
    prompts: list[tuple[int, int]], outputs: list[tuple[int, int]], each: float | None
) -> None:
    told = [("said.prompt_tokens", v, line, {}) for v, line in prompts]
    told += [("said.output_tokens", v, line, {}) for v, line in outputs]
    got = values(steps.kv_arithmetic(_several(("log.kv_cache.tokens", 121_000, 1, {}), *told)))
    assert got.get("kv.tokens_per_request") == each


def test_one_table_read_twice_is_no_client_against_a_server() -> None:
    ledger = Ledger(load())
    for fact, value, ref in (("bench.ttft.mean_ms", 700, "t.txt"), ("ttft.mean_s", 0.7, "t.txt#text")):
        ledger.add(Reading(fact=fact, value=value, source=Source(kind="file", ref=ref, line=3), via="report"))
    assert steps.client_against_server(ledger) == []


def test_cpu_in_use_is_set_against_the_quota_of_the_same_side() -> None:
    ledger = Ledger(load())
    for line, (fact, value, side) in enumerate(
        [("said.cpu_cores", 2.0, "old"), ("said.cpu_limit", 8.0, "old"), ("said.cpu_cores", 4.0, "new"), ("said.cpu_limit", 4.0, "new")], 1
    ):  # fmt: skip
        source = Source(kind="words", ref="r.md", line=line, span="so")
        ledger.add(Reading(fact=fact, value=value, source=source, labels={"version": side, "metric": fact}))
    found = setup.cpu_quota(ledger)
    assert [r.value for r in found] == [0.25, 1.0]
    assert all(len(r.source.inputs) == 2 for r in found)


def test_cpu_in_use_without_a_quota_says_nothing_and_a_manifest_gives_one() -> None:
    assert setup.cpu_quota(ledger_of({"said.cpu_cores": 3.0})) == []
    found = setup.cpu_quota(ledger_of({"said.cpu_cores": 3.0, "config.cpu_limit_cores": 4.0}))
    assert [r.value for r in found] == [0.75]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"replicas.count": 2, "replicas.load_max_over_mean": 1.02}, {"replicas.even": True}),
        ({"replicas.count": 4, "replicas.load_max_over_mean": 1.6}, {"replicas.even": False}),
        # Two ranks of eight that are alike say nothing of the other six.
        (
            {"replicas.count": 2, "replicas.load_max_over_mean": 1.02, "replicas.are_ranks": True, "config.data_parallel_size": 8},
            {"replicas.unseen": 6.0},
        ),
        ({"replicas.count": 1, "replicas.load_max_over_mean": 1.0}, {}),
        ({"replicas.count": 2}, {}),
    ],
)  # fmt: skip
def test_even_load_needs_all_replicas(facts: Facts, expected: Facts) -> None:
    assert values(setup.replicas(ledger_of(facts))) == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"said.shared_tokens": 240.0, "log.attention_block_tokens": 784}, 240 / 784),
        ({"said.shared_tokens": 1200.0, "said.block_tokens": 600.0}, 2.0),
        ({"said.shared_tokens": 1200.0, "config.block_size": 16}, 75.0),
        ({"said.shared_tokens": 1200.0}, None),
        ({"config.block_size": 16}, None),
    ],
)
def test_shared_prefix_in_blocks(facts: Facts, expected: float | None) -> None:
    found = values(setup.shared_blocks(ledger_of(facts)))
    assert found == ({} if expected is None else {"prefix.shared_over_block": pytest.approx(expected, abs=1e-5)})


@pytest.mark.parametrize(
    ("allowed", "slow"),
    [
        ("tcp", True),
        ("tcp,self", True),
        ("sm, tcp", True),
        ("rc,cuda_ipc,tcp", False),
        ("all", False),
        ("^rc", False),
        ("srd,sm,self", False),
    ],
)
def test_what_ucx_may_use(allowed: str, slow: bool) -> None:
    assert values(setup.transports(ledger_of({"config.env.ucx_tls": allowed}))) == {"config.ucx_slow_only": slow}


def test_no_transport_is_derived_without_the_variable() -> None:
    assert setup.transports(ledger_of({"config.block_size": 16})) == []
