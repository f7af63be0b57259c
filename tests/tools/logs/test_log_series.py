"""Periodic lines become statistics, and the shape of a series becomes facts."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.loader import load
from tools.contract import Context, ReadResult
from tools.logs import stats
from tools.logs.dist import Dist, Ordered
from tools.logs.read import read
from tools.part import Part

FACTS = load().facts


def read_text(text: str, name: str = "server.log") -> ReadResult:
    return read([Part(name=name, data=text.encode())], Context())


def values(result: ReadResult) -> dict[str, Any]:
    unknown = {r.fact for r in result.readings} - set(FACTS)
    assert not unknown
    return {r.fact: r.value for r in result.readings}


def v1(
    second: int,
    prompt: float,
    generation: float,
    running: int,
    waiting: int,
    kv: float,
    extra: str = "",
    engine: int = 0,
) -> str:
    stamp = f"03-17 15:{second // 60:02d}:{second % 60:02d}"
    return (
        f"(APIServer pid=9) INFO {stamp} [loggers.py:259] Engine {engine:03d}: Avg prompt throughput: {prompt} tokens/s, "
        f"Avg generation throughput: {generation} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs,{extra} "
        f"GPU KV cache usage: {kv}%, Prefix cache hit rate: 12.5%"
    )


def test_shared_facts_of_a_busy_engine() -> None:
    lines = [v1(10 * i, 100.0, 50.0 + i, 4, 20 - i, 30.0 + i) for i in range(10)]
    got = values(read_text("\n".join([*lines, v1(100, 0.0, 0.0, 0, 0, 0.0)])))
    assert (got["queue.running.max"], got["queue.running.min"], got["queue.running.last"]) == (4, 4, 0)
    assert got["queue.running.p50"] == 4 and got["running.flat_share"] == 1.0
    assert (got["queue.waiting.max"], got["queue.waiting.share_above_zero"]) == (20, 1.0)
    assert got["kv.usage.max"] == pytest.approx(0.39) and got["prefix.hit_rate"] == 0.125
    assert got["throughput.generation_tokens_per_s.mean"] == pytest.approx(54.5)
    assert got["log.queue_with_kv_low_share"] == 1.0 and got["log.generation_stalls"] == 0
    assert got["log.duration_s"] == 100 and got["log.stats_period_s"] == 10
    assert got["engine.name"] == "vllm" and got["engine.generation"] == "V1"
    assert "preemptions.count" not in got  # absent field, unknown version: not zero


def test_preemptions_are_summed_and_zero_only_where_the_version_would_print_them() -> None:
    some = "\n".join(v1(10 * i, 1.0, 5.0, 4, 0, 99.0, f" Preemptions: {i}," if i else "") for i in range(4))
    assert values(read_text(some))["preemptions.count"] == 6
    none = "\n".join(v1(10 * i, 1.0, 5.0, 4, 0, 99.0) for i in range(4))
    banner = "(APIServer pid=9) INFO 03-17 14:00:00 [api_server.py:1] vLLM API server version {}\n"
    assert values(read_text(banner.format("0.12.0") + none))["preemptions.count"] == 0
    assert "preemptions.count" not in values(read_text(banner.format("0.10.0") + none))


def test_optional_fields_and_other_devices() -> None:
    line = v1(
        0, 1.0, 5.0, 4, 9, 50.0, " Deferred: 7 reqs, KV fetch: 1 waiting to start, 2 in progress, 3 completed waiting,"
    )
    got = values(read_text(line.replace("GPU KV cache", "CPU KV cache")))
    assert got["queue.deferred.max"] == 7 and got["kv.usage.last"] == 0.5 and got["queue.waiting.last"] == 9


def test_v0_line_reads_pending_as_waiting_and_keeps_the_gpu_usage() -> None:
    line = (
        "INFO 02-01 06:36:05 llm_engine.py:921] Avg prompt throughput: 382.6 tokens/s, Avg generation throughput: 118.5 "
        "tokens/s, Running: 35 reqs, Swapped: 2 reqs, Pending: 115 reqs, GPU KV cache usage: 99.0%, CPU KV cache usage: 0.0%"
    )
    got = values(read_text(line))
    assert (got["queue.waiting.max"], got["kv.usage.max"], got["engine.generation"]) == (115, 0.99, "V0")
    assert got["log.swapped_requests.max"] == 2


def test_engines_stay_apart() -> None:
    result = read_text("\n".join(v1(0, 1.0, 5.0, n + 1, 0, 50.0, engine=n) for n in range(3)))
    seen = {r.labels["engine"]: r.value for r in result.readings if r.fact == "queue.running.last"}
    assert seen == {"0": 1, "1": 2, "2": 3}


def test_stalls_bursts_decay_and_holes() -> None:
    steady = [v1(10 * i, 20.0, 100.0, 8, 0, 40.0) for i in range(12)]
    assert values(read_text("\n".join(steady)))["log.generation_decay_ratio"] == 1.0
    stalled = [v1(10 * i, 9000.0 if i == 6 else 0.0, 0.0 if i in (4, 5) else 100.0, 8, 0, 40.0) for i in range(12)]
    got = values(read_text("\n".join(stalled)))
    assert (got["log.generation_stalls"], got["log.prompt_bursts"]) == (2, 1)
    fading = [v1(10 * i, 20.0, 100.0 - 8 * i, 8, 0, 40.0) for i in range(12)]
    got = values(read_text("\n".join(fading)))
    assert got["log.generation_decay_ratio"] < 0.4 and got["log.running_decay_ratio"] == 1.0
    hole = [*steady[:5], *[v1(10 * i + 400, 20.0, 100.0, 8, 0, 40.0) for i in range(5)]]
    got = values(read_text("\n".join(hole)))
    assert (got["log.silent_gaps"], got["log.silent_gap_max_s"]) == (1, 360)


def _decode(clock: str, rate: float) -> str:
    return f"[2025-03-04 {clock} TP0] Decode batch. #running-req: 3, #token: 900, token usage: 0.1, gen throughput (token/s): {rate}, #queue-req: 0\n"


@pytest.mark.parametrize(
    ("between", "gap", "mean"),
    [
        ("$ python3 -m sglang.launch_server --model m --disable-cuda-graph\n", None, 60.0),
        ("$ # again, with the option\n", None, 60.0),
        ("$ CUDA_VISIBLE_DEVICES=1 ./start.sh --tp 1\n", None, 60.0),
        ("$ tail -n 3 server.log\n", 500.0, 72.0),  # the same program, looked at again
        ("", 500.0, 72.0),
    ],
)
def test_a_program_started_anew_is_a_series_of_its_own(between: str, gap: float | None, mean: float) -> None:
    first = "".join(_decode(f"10:00:0{i}", 90.0) for i in range(2))
    second = "".join(_decode(f"10:08:2{i}", 60.0) for i in range(1, 4))
    got = values(read_text(first + between + second))
    assert got.get("log.silent_gap_max_s") == gap
    assert got["throughput.generation_tokens_per_s.mean"] == mean


def test_a_command_alone_is_no_known_line_of_a_log() -> None:
    assert read_text("$ python3 client.py --n 4\nall four came back late\n").nested


def test_generation_collapses_when_kv_is_full() -> None:
    lines = [v1(10 * i, 20.0, 100.0 if i < 6 else 10.0, 8, 4, 50.0 if i < 6 else 99.0) for i in range(12)]
    assert values(read_text("\n".join(lines)))["log.kv_full_generation_ratio"] == pytest.approx(0.1)


def test_speculation_is_weighted_by_drafts() -> None:
    text = (
        "(APIServer pid=1) INFO 09-07 06:35:30 [metrics.py:120] SpecDecoding metrics: Mean acceptance length: 3.00, Accepted "
        "throughput: 0.20 tokens/s, Drafted throughput: 0.20 tokens/s, Accepted: 2 tokens, Drafted: 2 tokens, Per-position "
        "acceptance rate: 1.000, 1.000, Avg Draft acceptance rate: 100.0%\n"
        "(APIServer pid=1) INFO 09-07 06:43:30 [metrics.py:120] SpecDecoding metrics: Mean acceptance length: 1.50, Accepted "
        "throughput: 1 tokens/s, Drafted throughput: 1 tokens/s, Accepted: 99 tokens, Drafted: 396 tokens, Per-position "
        "acceptance rate: 0.400, 0.100, Avg Draft acceptance rate: 25.0%"
    )
    got = values(read_text(text))
    assert got["spec.acceptance_rate"] == pytest.approx(101 / 398, abs=1e-4)
    assert got["spec.acceptance_length"] == pytest.approx(1 + 101 / 199, abs=1e-4)
    assert got["spec.acceptance_by_position"] == [pytest.approx(0.403, abs=1e-3), pytest.approx(0.1045, abs=1e-3)]
    assert got["spec.drafted_tokens"] == 398


def test_sglang_batches() -> None:
    lines = [
        (
            "[2026-01-01 00:00:00 TP0] Prefill batch, #new-seq: 2, #new-token: 300, #cached-token: 100, token usage: 0.10, "
            "#running-req: 0, #queue-req: 5, #pending-token: 0, cuda graph: False, input throughput (token/s): 1000.5"
        ),
        (
            "[2026-01-01 00:00:10 TP0] Decode batch [40], #running-req: 6, #token: 900, token usage: 0.95, accept len: 2.50, "
            "accept rate: 0.50, cuda graph: True, gen throughput (token/s): 200.0, #queue-req: 3"
        ),
        (
            "[2026-01-01 00:00:20 TP0] Decode batch. #running-req: 8, #token: 900, token usage: 0.97, cuda graph: False, "
            "gen throughput (token/s): 40.0, #queue-req: 3"
        ),
    ]
    got = values(read_text("\n".join(lines)))
    assert (got["queue.running.max"], got["queue.waiting.max"], got["kv.usage.max"]) == (8, 5, 0.97)
    assert got["prefix.hit_rate"] == 0.25 and got["spec.acceptance_length"] == 2.5
    assert got["log.sglang.cuda_graph_false_share"] == 0.5
    assert got["throughput.generation_tokens_per_s.min"] == 40.0 and got["engine.name"] == "sglang"


def test_steps_transfers_graphs_and_tgi() -> None:
    lines = [
        (
            "INFO 01-01 00:00:00 [loggers.py:1] Engine 000: Iteration(7): 1 context requests, 512 context tokens, 3 generation "
            "requests, 3 generation tokens, iteration elapsed time: 42.50 ms, GPU KV cache usage: 1.0%"
        ),
        (
            "INFO 01-01 00:00:00 [loggers.py:1] Engine 000: Iteration(8): 0 context requests, 0 context tokens, 3 generation "
            "requests, 3 generation tokens, iteration elapsed time: 9.50 ms, GPU KV cache usage: 1.0%"
        ),
        (
            "INFO 01-01 00:00:00 [loggers.py:1] KV Transfer metrics: Num successful transfers=4, Avg xfer time (ms)=12.5, "
            "P90 xfer time (ms)=20.1, Avg MB per transfer=64.0, Throughput (MB/s)=5120.0"
        ),
        "| 128 | 128 | 0 | FULL | 30 |",
        "| 700 | 700 | 0 | NONE | 10 |",
        "INFO 01-01 00:00:00 [eplb_state.py:1] EPLB step: 9 for model x: avg_tokens=1.0, max_tokens=4, balancedness=0.25, steps",
        (
            '2024-06-04T15:32:07.1Z  INFO text_generation_router: Success total_time="1.5s" validation_time="200µs" '
            'queue_time="900ms" inference_time="600ms" time_per_token="20ms"'
        ),
    ]
    got = values(read_text("\n".join(lines)))
    assert (got["log.iteration.mixed_ms.max"], got["log.iteration.decode_ms.p50"]) == (42.5, 9.5)
    assert (got["log.kv_transfer.avg_ms"], got["log.kv_transfer.mb_per_s"]) == (12.5, 5120)
    assert got["log.cudagraph_none_share"] == 0.25 and got["log.eplb.balancedness.min"] == 0.25
    assert got["log.tgi.queue_time_ms.p50"] == 900 and got["log.tgi.validation_time_ms.p50"] == pytest.approx(0.2)


def test_numbers_that_are_none() -> None:
    assert stats.number("nan") is None and stats.number("inf") is None and stats.number("1,234.5") == 1234.5
    line = v1(0, 1.0, 5.0, 4, 0, 50.0).replace("Running: 4", "Running: nan")
    assert stats.stats_line(line) is None


def test_distribution_stays_small_and_close() -> None:
    dist, exact = Dist(), [random.Random(7).lognormvariate(3, 1) for _ in range(20000)]
    for value in exact:
        dist.add(value)
    assert len(dist._counts) <= 4096
    assert dist.quantile(0.5) == pytest.approx(sorted(exact)[10000], rel=0.02)
    ordered = Ordered(8)
    for i in range(1000):
        ordered.add(float(i))
    first, last = ordered.thirds() or (0.0, 0.0)
    assert len(ordered._stretches) <= 8 and ordered.n == 1000
    assert first == pytest.approx(166, abs=30) and last == pytest.approx(833, abs=30)


_TENTHS = st.integers(0, 99999).map(lambda n: f"{n / 10:.1f}")


@given(
    st.integers(0, 63), _TENTHS, _TENTHS, st.integers(0, 5000), st.integers(0, 5000), st.integers(0, 1000),
    st.integers(0, 1000),
)  # fmt: skip
def test_the_usual_line_reads_the_same_by_the_short_way_and_the_general_one(
    engine: int, prompt: str, generation: str, running: int, waiting: int, kv: int, hit: int
) -> None:
    text = (
        f"Engine {engine:03d}: Avg prompt throughput: {prompt} tokens/s, Avg generation throughput: {generation} "
        f"tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {kv / 10:.1f}%, "
        f"Prefix cache hit rate: {hit / 10:.1f}%"
    )
    sample = stats.stats_line(text)
    assert sample is not None and sample == stats.stats_line(text + " ")
    assert sample.values["running"] == running and sample.values["kv"] == kv / 10 / 100


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3000))
def test_a_distribution_counts_what_it_was_given(values: list[float]) -> None:
    dist = Dist()
    for value in values:
        dist.add(value)
    assert (dist.n, dist.min, dist.max, dist.last) == (len(values), min(values), max(values), values[-1])
    assert dist.mean == pytest.approx(sum(values) / len(values), abs=1e-3)
    assert dist.quantile(0.5) == sorted(values)[max(1, round(0.5 * len(values) + 0.4999)) - 1]
