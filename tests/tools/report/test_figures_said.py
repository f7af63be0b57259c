"""Which quantity a figure of a person's sentence is, and which numbers beside it are load, set-up or equipment."""

from __future__ import annotations

import pytest

from tools.contract import Context, Reading
from tools.part import Part
from tools.report.read import read


def run(text: str) -> list[Reading]:
    return read([Part(name="report.md", data=text.encode())], Context()).readings


def values(text: str, fact: str) -> list[object]:
    return [item.value for item in run(text) if item.fact == fact]


@pytest.mark.parametrize(
    ("text", "fact", "value"),
    [
        # Rates that were sent or set.
        ("Traffic is a steady 40 req/s all afternoon.", "said.request_rate", 40.0),
        ("We send 64 requests per second to it.", "said.request_rate", 64.0),
        ("The arrival rate is 9 req/s.", "said.request_rate", 9.0),
        ("At 12 req/s the TTFT is 3 s.", "said.request_rate", 12.0),
        ("Nothing differs between 50 and 400 RPS.", "said.request_rate", 400.0),
        # Rates that were served.
        ("Of the offered 16 req/s it serves 9 req/s.", "said.requests_per_s", 9.0),
        ("Throughput tops out at 12 req/s with a TTFT of 3 s.", "said.requests_per_s", 12.0),
        # Spelled and shared amounts.
        ("The first token takes half a minute.", "said.ttft_s", 30.0),
        ("TTFT 也要二十多秒。", "said.ttft_s", 20.0),
        ("TTFT 大概 40 多秒。", "said.ttft_s", 40.0),
        ("Output throughput is only 1.2 to 1.4 K tok/s.", "said.generation_tps", 1300.0),
        ("Decode stays between 2 and 7 tok/s.", "said.generation_tps", 4.5),
        ("The KV usage fell from 70-90 % to 5-7 %.", "said.kv_usage", 0.8),
        # "takes" is said of something.
        ("First token takes 3 to 5 s, then the text flows.", "said.ttft_s", 4.0),
        ("A turn takes 60-80 s before the first word.", "said.ttft_s", 70.0),
        ("The KV copy from prefill to decode takes 2.5 s.", "said.transfer_s", 2.5),
        ("An upload takes 3 s.", "said.takes_s", 3.0),
        ("We count 31 ms per token in every chat.", "tpot.mean_s", 0.031),
        ("Tokens arrive late, p99 is 90 ms between two.", "said.itl_s", 0.09),
        ("It is 300 ms, of which 120 ms is the KV pull.", "said.transfer_s", 0.12),
        # A key of its own.
        ('ttft="2.5s" kv_transfer_time="1.5s" other_time="9s"', "said.ttft_s", 2.5),
        # Lists and bare shares.
        ("num_running_reqs over the day: median 41, p95 77, max 90.", "queue.running.max", 90.0),
        ("num_running_reqs over the day: median 41, p95 77, max 90.", "queue.running.p50", 41.0),
        ("In the evening running requests climb past 300.", "queue.running.max", 300.0),
        ("num_requests_running is 24 on average.", "queue.running.mean", 24.0),
        ("KV use 0.35 all day.", "kv.usage.max", 0.35),
        ("Acceptance is 2.71 on our chats.", "said.acceptance_length", 2.71),
        ("We see 4.2 tokens per verify.", "said.acceptance_length", 4.2),
        ("GPU about 30-40 % while it serves.", "gpu.util", 0.35),
        ("GPU 7 % while it serves.", "gpu.util", 0.07),
        ("I see 80-90 % GPU with it.", "gpu.util", 0.85),
        ("For a while 46 % prefix hits.", "prefix.hit_rate", 0.46),
        ("The engine reports 300 cached tokens for it.", "said.cached_tokens", 300.0),
        ("每路只剩 3 token/s。", "said.user_tps", 3.0),
        ("A single user gets 9 tok/s.", "said.user_tps", 9.0),
        ("最慢的一个 TTFT 有 7.5 秒。", "said.ttft_s", 7.5),
        ("We saw 210 preemptions that day.", "preemptions.count", 210.0),
        ("In the list we see restart count 9 for it.", "said.restarts", 9.0),
        ("Each card shows 20480 MB with it.", "said.gpu_memory_gib", 20.0),
        ("The total throughput 2100 was measured.", "said.total_tps", 2100.0),
        ("每个 decode step 要 2 秒。", "said.step_s", 2.0),
    ],
)
def test_a_figure_is_of_its_own_metric(text: str, fact: str, value: float) -> None:
    assert value in [pytest.approx(found) for found in values(text, fact)]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Traffic is a steady 40 req/s all afternoon.", "throughput.requests_per_s.mean"),
        ("The request rate is from 10 to 20 req/s and TTFT is 2 s.", "pair.throughput.ratio"),
        ("We finish 40 req/s.", "said.request_rate"),
        ("The difference between 20 ms and 90 ms TPOT is large.", "said.itl_s"),
        ("First token takes 3 s.", "said.takes_s"),
        ("A turn takes 60 s before the first word.", "said.duration_s"),
        ("Served one after the other.", "said.waiting"),
        ('ttft="2.5s" other_time="9s"', "said.takes_s"),
        ("最慢的一个 TTFT 有 7.5 秒。", "ttft.mean_s"),
        ("A 1200 W PSU feeds both cards.", "said.power_w"),
        ("Power limit=200 W (default=300 W, max=320 W).", "said.power_w"),
        ("An EPYC 7543 CPU at 2.80 GHz.", "said.clock_sm_mhz"),
        ("A box with unified memory, 273 GB/s.", "said.bus_bandwidth_gbps"),
        ("One DGX Spark (273 GB/s) at home.", "said.bus_bandwidth_gbps"),
        ("The gap between requests is 0.8 s.", "said.gap_s"),
        ("The run reached 960 per card.", "said.gpu.count"),
        ("A load test with 128 in flight.", "queue.running.max"),
        ("KV cache usage 一路涨到 100%。", "said.concurrency"),
        ("Accuracy: 1100/1300 of the questions.", "said.accuracy"),
        ("Latency of a request 0.7 s; gap between requests 0.9 s.", "said.gap_s"),
        ("There are 2,000 preemptions per hour.", "preemptions.count"),
        ("The memory is at 30 % of the limit.", "said.gpu_memory_gib"),
    ],
)
def test_a_figure_is_not_of_what_stands_near(text: str, fact: str) -> None:
    assert values(text, fact) == []


def test_a_key_without_a_metric_gives_its_value_to_nobody() -> None:
    assert values('ttft="2.5s" kv_transfer_time="1.5s" other_time="9s"', "said.transfer_s") == [1.5]


def test_the_order_inside_a_request_is_no_side_of_a_change() -> None:
    found = run("The first token came after 2 s before the first chunk, TTFT is 2 s.")
    assert not any(item.labels.get("side") for item in found)
    told = run("Before the update TTFT was 2 s, after it TTFT is 4 s.")
    assert {item.labels.get("side") for item in told if item.fact == "said.ttft_s"} == {"before", "after"}


@pytest.mark.parametrize(
    ("text", "fact", "value"),
    [
        ("All prompts are about 9,000 tokens.", "said.prompt_tokens", 9000.0),
        ("Very large prompts (90k tokens) only.", "said.prompt_tokens", 90000.0),
        ("Prompts ~36K, answers short.", "said.prompt_tokens", 36000.0),
        ("Six requests of ~12.5k prompt tokens.", "said.prompt_tokens", 12500.0),
        ("Prompts of 3.5k tokens.", "said.prompt_tokens", 3500.0),
        ("A document of 50k tokens went in.", "said.prompt_tokens", 50000.0),
        ("Mostly 2.5k in, 300 out.", "said.prompt_tokens", 2500.0),
        ("About 900 prompt and 400 output tokens each.", "said.prompt_tokens", 900.0),
        ("Batch 16, 64 decode tokens.", "said.output_tokens", 64.0),
        ("With 3k prompts TTFT is 1 s.", "said.prompt_tokens", 3000.0),
        ("Concurrency 64, 2000 prompts.", "said.concurrency", 64.0),
        ("We keep 48 in flight.", "said.concurrency", 48.0),
        ("300 prompts at once.", "said.concurrency", 300.0),
        ("4x H100, TP=2, DP=2.", "said.gpu.count", 4.0),
        ("Two DGX Spark boxes.", "said.gpu.count", 2.0),
        ("We run it with --tp 4 on A100 cards.", "said.gpu.count", 4.0),
    ],
)
def test_the_load_as_it_is_told(text: str, fact: str, value: float) -> None:
    assert values(text, fact) == [value]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("An offline batch of 80k prompts.", "said.prompt_tokens"),
        ("We process all 80k prompts at night.", "said.prompt_tokens"),
        ("It gives 3.6 tokens per verify.", "said.prompt_tokens"),
        ("Prefill does only 1.2 to 1.9 K tok/s.", "said.prompt_tokens"),
        ("The input rate is fine, input 128 tok/s.", "said.prompt_tokens"),
        ("No file for E=64, N=512.", "said.concurrency"),
        ("N=1/2/4 replicas, equal requests.", "said.concurrency"),
        ("Nothing was sent before a single request.", "said.concurrency"),
        ("TP=2 and PP=4 in both.", "said.gpu.count"),
        ("The fleet has 6x H200 nodes.", "said.gpu.count"),
        ("Moved vllm with --gpu-memory-utilization 0.9 to the new version.", "said.versions"),
        ("The engine 10.1.2.33 is slow.", "said.versions"),
        ("It stops at seed 12, step 40.", "said.model"),
    ],
)
def test_numbers_that_are_no_load_and_no_set_up(text: str, fact: str) -> None:
    assert values(text, fact) == []


def test_rounds_in_chinese_are_runs() -> None:
    found = run("第一轮：TTFT 2 秒。第二轮：TTFT 8 秒。")
    assert [(item.value, item.labels["difference"]) for item in found if item.fact == "pair.ttft.ratio"] == [
        (4.0, "run_order")
    ]


def test_a_line_without_is_the_comparison() -> None:
    found = run("Speculation on and off:\n\n- without: throughput 90 tok/s\n")
    assert not any(item.fact == "throughput.generation_tokens_per_s.mean" for item in found)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("We serve DeepSeek-R1-Distill-Llama-70B here.", "DeepSeek-R1-Distill-Llama-70B"),
        ("We serve qwen2.5vl-7B-awq here.", "qwen2.5vl-7B-awq"),
    ],
)
def test_a_model_keeps_its_whole_name(text: str, name: str) -> None:
    assert values(text, "said.model") == [name]


def test_a_line_named_after_a_feature_is_the_run_with_it() -> None:
    found = run("Plain: ~500 tok/s\nguided_json: ~100 tok/s\n")
    pair = next(item for item in found if item.fact == "pair.throughput.ratio")
    assert (pair.value, pair.labels["difference"]) == (0.2, "feature_on_off")


@pytest.mark.parametrize(
    "text", ["With one user it does 30 tok/s.", "A single request gets 30 tok/s.", "单个请求时 30 tok/s。"]
)
def test_a_lone_request_is_the_load_of_its_figure_only(text: str) -> None:
    found = run(text)
    assert not any(item.fact == "said.concurrency" for item in found)
    assert [item.labels["concurrency"] for item in found if item.fact in ("said.user_tps", "said.generation_tps")] == [
        "1"
    ]


def test_bare_chinese_switch_words() -> None:
    found = [item for item in run("开 eagle 40 tps。不开 eagle 20 tps。") if item.fact == "said.generation_tps"]
    assert [(item.value, item.labels.get("feature")) for item in found] == [
        (40.0, "with speculation"),
        (20.0, "without speculation"),
    ]
