"""What a person wrote becomes facts with verbatim spans; what is asked, advised or denied does not."""

from __future__ import annotations

import pytest

from tools.contract import Context, Reading, ReadResult
from tools.part import Part
from tools.report.read import read
from tools.report.sniff import sniff


def run(text: str, name: str = "report.md") -> ReadResult:
    return read([Part(name=name, data=text.encode())], Context())


def of(result: ReadResult, fact: str) -> list[Reading]:
    return [item for item in result.readings if item.fact == fact]


def values(text: str, fact: str) -> list[object]:
    return [item.value for item in of(run(text), fact)]


def test_feature_pair_gives_ratios_difference_and_unequal_lengths() -> None:
    text = (
        "vLLM 0.5.0 on an A100, 2,000 requests. Without speculation: TTFT 63.0 ms, TPOT 14.5 ms, average latency "
        "1,567 ms, 485.5 tokens/s. With n-gram speculation of 8 tokens: TTFT 66.5 ms, TPOT 21.7 ms, average latency "
        "1,360 ms, 301.1 tokens/s."
    )
    found = run(text)
    assert [item.value for item in of(found, "pair.tpot.ratio")] == [1.4966]
    assert [item.value for item in of(found, "pair.throughput.ratio")] == [0.6202]
    assert [item.value for item in of(found, "pair.difference")] == [["feature_on_off"]]
    assert of(found, "shape.latency_better_but_lengths_differ")
    assert of(found, "said.gpu.name")[0].value == "A100"
    # The run without the feature is the comparison, not the state of the server.
    assert [item.value for item in of(found, "tpot.mean_s")] == [0.0217]


def test_version_table_pairs_only_equal_load() -> None:
    text = "| image | c=1 tok/s | c=12 tok/s |\n|---|---|---|\n| 0.26.0 | 148.3 | 1295.0 |\n| 0.29.0 | 41.4 | 362.3 |\n"
    found = of(run(text), "pair.throughput.ratio")
    assert sorted((item.labels["concurrency"], item.value) for item in found) == [("1", 0.2792), ("12", 0.2798)]
    assert all(item.labels["difference"] == "version_upgrade" for item in found)
    assert of(run(text), "shape.after_upgrade")


def test_gpu_series_without_repeated_unit() -> None:
    found = run("One stream: TP=1 90 tok/s, TP=2 77, TP=4 78.")
    assert [item.value for item in of(found, "sweep.throughput.ratio")] == [0.8667]
    assert of(found, "shape.more_gpus_slower")
    assert [item.value for item in of(found, "pair.difference")] == [["gpu_count"]]


def test_context_sweep_has_a_cliff() -> None:
    text = (
        "Results: 8K context 494 tok/s with TTFT 3,226 ms; 32K 640 tok/s with 3,757 ms; 50K 44 tok/s with 134,173 ms."
    )
    found = run(text)
    assert of(found, "shape.cliff_at_context")
    assert not of(found, "shape.grows_with_concurrency")


def test_constant_extra_ttft_through_a_gateway() -> None:
    text = "TTFT p50 in ms, plain vLLM: 16.9 at concurrency 1, 35.0 at 8, 84.1 at 32. Behind the gateway: 64.8, 66.2, 158.1."
    found = run(text)
    assert of(found, "shape.constant_extra_ttft")
    assert of(found, "shape.only_via_gateway")
    assert "route" in of(found, "pair.difference")[0].value


def test_kv_capacity_pair_is_no_context_length() -> None:
    found = run("After the upgrade GPU KV cache size went from ~55k tokens to ~525k tokens.")
    assert [item.value for item in of(found, "pair.kv_capacity.ratio")] == [9.5455]
    assert not of(found, "said.prompt_tokens")


def test_memory_table_over_clock_times_stays_within_a_row() -> None:
    text = "Memory of the processes:\n\n            12:00    15:00    18:00\nworker  9.1 GiB  17.8 GiB  26.5 GiB\ncore  2.2 GiB  2.2 GiB  2.3 GiB\n"
    found = of(run(text), "pair.memory.ratio")
    assert found
    assert max(item.value for item in found) < 3


@pytest.mark.parametrize(
    ("text", "fact", "value"),
    [
        ("KV cache usage sits at 97 % and 12 requests are waiting.", "kv.usage.max", 0.97),
        ("The prefix cache hit rate is 32.2 %.", "prefix.hit_rate", 0.322),
        ("GPU KV cache usage 就到 100%。", "kv.usage.max", 1.0),
        ("Nothing waits, no preemptions.", "preemptions.count", 0.0),
        ("TTFT p99 is 2.5 s.", "ttft.p99_s", 2.5),
        ("Mean acceptance length 1.87.", "spec.acceptance_length", 1.87),
        ("TTFT 有 10.820 秒。", "ttft.mean_s", 10.82),
        ("We finish 384.1 req/s.", "throughput.requests_per_s.mean", 384.1),
        ("num_requests_running 32 all day", "queue.running.max", 32.0),
    ],
)
def test_live_quantities_have_live_names(text: str, fact: str, value: float) -> None:
    assert values(text, fact) == [pytest.approx(value)]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("TPOT gets very bad, only with penalties.", "shape.only_with_feature"),
        ("After the upgrade decode is slower.", "shape.after_upgrade"),
        ("升级到 0.10 之后吞吐下降。", "shape.after_upgrade"),
        ("All of it disappears when an application bypasses the proxy.", "shape.only_via_gateway"),
        ("It happens at the top of every hour.", "shape.periodic"),
        ("It resolves itself in two minutes.", "shape.recovers_by_itself"),
        ("The pod never gets ready.", "shape.at_startup"),
        ("引擎卡死,客户端无响应。", "shape.hang"),
        ("四卡反而略慢。", "shape.more_gpus_slower"),
        ("Doubled the network between the nodes, tokens per second did not move.", "shape.bandwidth_no_gain"),
        ("It gets slower and slower; restart helps.", "shape.decays_with_uptime"),
        ("The first request takes 40 seconds.", "shape.first_request_only"),
        ("One replica is slower than the rest.", "shape.one_replica_differs"),
        ("The text comes in lumps.", "symptom.itl"),
        ("Requests fail with HTTP 503.", "symptom.errors"),
        ("Why is it this slow?", "symptom.throughput"),
    ],
)
def test_shapes_and_symptoms_in_words(text: str, fact: str) -> None:
    found = of(run(text), fact)
    assert found
    assert found[0].value is True
    assert found[0].source.span in text


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Could it hang after an upgrade?", "shape.hang"),
        ("It did not hang again.", "shape.hang"),
        ("Nothing crashes.", "shape.crash"),
        ("I suspect it crashes.", "shape.crash"),
        ("GPU memory is far from full.", "symptom.memory"),
        ("Run-to-run throughput differs by a factor of two.", "pair.throughput.ratio"),
        ("Generation is below 10 tokens per second.", "said.prompt_tokens"),
        ("We sampled #running-req of one run (5875 samples).", "queue.running.max"),
        ("第一条请求不慢。", "shape.first_request_only"),
        ("Should I buy an H200? A blog recommends TTFT below 200 ms.", "ttft.mean_s"),
        ("The all-reduce table:\n\n| size | latency |\n|---|---|\n| 8 KB | 41 us |\n| 1 MB | 2,100 us |", "e2e.mean_s"),
    ],
)
def test_what_is_asked_denied_or_other_is_not_said(text: str, fact: str) -> None:
    assert values(text, fact) == []


def test_others_figures_are_references_not_live() -> None:
    found = run("I get 48.4 tokens/s on prose. Others with the same cards get about 67 tokens/s.")
    assert [item.value for item in of(found, "throughput.generation_tokens_per_s.mean")] == [48.4]
    assert [item.value for item in of(found, "said.reference")] == [67.0]


def test_fences_and_excerpts_are_handed_back_with_their_lines() -> None:
    text = (
        "It is slow.\n\n```yaml\nreplicas: 2\n```\n\nvllm serve m --max-num-seqs 8 \\\n  --enforce-eager\n\n"
        "INFO 01-02 10:00:00 [core.py:58] Initializing a V1 LLM engine\n"
    )
    found = run(text).nested
    assert [(part.name, part.line0, part.hint) for part in found] == [
        ("report.md#block1", 3, "yaml"),
        ("report.md#block2", 6, ""),
        ("report.md#block3", 9, ""),
    ]
    assert next(iter(found[1].lines())) == (7, "vllm serve m --max-num-seqs 8 \\")
    assert all(part.parent == "report.md" for part in found)


def test_package_lines_name_the_dependency() -> None:
    found = run("Slower since Monday.\n\n-flashinfer-python==0.6.12\n+flashinfer-python==0.6.13\n")
    assert of(found, "pair.difference")[0].value == ["dependency"]


def test_too_long_is_one_problem() -> None:
    found = run("plain words here\n\n" * 1100)
    assert [problem.ref for problem in found.problems] == ["report.md"]


def test_sniff_is_low_for_prose_and_zero_for_nothing() -> None:
    assert sniff("report.md", "It is slow and we do not know why.") == 0.3
    assert sniff("x.txt", "\n\n") == 0.0
    assert sniff("x.bin", "abc\x00def ghi jkl mno") == 0.0


@pytest.mark.parametrize(
    ("text", "fact", "ratio"),
    [
        ("The node is a quarter faster than plain TP.", "pair.throughput.ratio", 1.25),
        ("The new build is a third slower.", "pair.throughput.ratio", 2 / 3),
        ("ITL got a quarter longer after the upgrade.", "pair.itl.ratio", 1.25),
        ("Speed is a third of what it was.", "pair.throughput.ratio", 1 / 3),
        ("It runs half as fast.", "pair.throughput.ratio", 0.5),
        ("TTFT is half of what it was.", "pair.ttft.ratio", 0.5),
        ("We lost a third of the throughput.", "pair.throughput.ratio", 2 / 3),
    ],
)
def test_a_share_more_or_less_is_not_what_is_left(text: str, fact: str, ratio: float) -> None:
    found = {r.fact: r.value for r in read([Part(name="r.md", data=text.encode())], Context()).readings}
    assert found[fact] == pytest.approx(ratio, abs=1e-3)


def test_no_restart_is_no_crash() -> None:
    for text, crashed in (("restart count 0, then it serves", False), ("restart count 4 since noon", True)):
        facts = {r.fact for r in read([Part(name="r.md", data=text.encode())], Context()).readings}
        assert ("symptom.crash" in facts) is crashed, text


def test_a_statistic_in_parentheses_stays_with_its_own_figure() -> None:
    text = "- vLLM 0.18.0: 1,223 tok/s per GPU (peak of the curve 1,300)\n- vLLM 0.21.0: 753 tok/s per GPU\n"
    found = read([Part(name="r.md", data=text.encode())], Context()).readings
    pair = next(r for r in found if r.fact == "pair.throughput.ratio")
    assert pair.value == pytest.approx(753 / 1223, abs=1e-3)
    assert pair.labels["difference"] == "version_upgrade"


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("超过 4 个并发就一下子掉到 2 token/s。", "shape.cliff_at_concurrency"),
        ("5 路以上就崩,每路只剩 1 token/s。", "shape.cliff_at_concurrency"),
        ("到第 6 个用户就突然慢下来。", "shape.cliff_at_concurrency"),
        ("The pauses get longer the longer the pod runs.", "shape.decays_with_uptime"),
        ("It stalls more often the longer it has been up.", "shape.decays_with_uptime"),
        ("Restarting restores the speed for some hours.", "shape.decays_with_uptime"),
        ("The loss started on the day we moved the image to vLLM 0.19.", "shape.after_upgrade"),
        ("Our nightly turned red with the same update.", "shape.after_upgrade"),
        ("The previous image never did this.", "shape.after_upgrade"),
        ("The old version was fine.", "shape.after_upgrade"),
        ("The slow-down appeared when we switched to SGLang 0.5.2.", "shape.after_upgrade"),
        ("Pod B gets everything.", "shape.one_replica_differs"),
        ("Worker 1 receives all the traffic.", "shape.one_replica_differs"),
        ("One of the pods has all 200 requests, the others have none.", "shape.one_replica_differs"),
        ("3 号卡的显存一直往上涨,其他卡基本不动。", "shape.one_replica_differs"),
        ("One replica is always behind the others.", "shape.one_replica_differs"),
        ("It comes back by itself.", "shape.recovers_by_itself"),
        ("Generation starts again on its own.", "shape.recovers_by_itself"),
        ("The server goes away and gets going again without help.", "shape.recovers_by_itself"),
        ("The router pod keeps dying.", "symptom.crash"),
        ("The engine goes down and comes back.", "symptom.crash"),
        ("Under load the container restarts.", "symptom.crash"),
        ("The worker gets terminated.", "shape.crash"),
        ("The server keeps restarting.", "shape.crash"),
        ("One load tool gives much less than the others.", "shape.two_tools_disagree"),
        ("With another client we measure twice the speed.", "shape.two_tools_disagree"),
        ("Our own timer shows something else.", "shape.two_tools_disagree"),
        ("The first token takes 4 to 6 s.", "symptom.ttft"),
        ("First words come after 3 s.", "symptom.ttft"),
        ("Time to first audio is clearly worse.", "symptom.ttft"),
        ("The first token needs 9 seconds.", "symptom.ttft"),
        ("The answer comes in jerks.", "symptom.itl"),
        ("Text arrives in chunks.", "symptom.itl"),
        ("The streams stop for tens of seconds.", "symptom.itl"),
        ("Answers pause for 5 seconds.", "symptom.itl"),
        ("现在只有 12 tokens/s。", "symptom.throughput"),
        ("用它只剩 8 token/s 左右。", "symptom.throughput"),
        ("只能跑 20 tok/s。", "symptom.throughput"),
        ("两个数字对不上。", "shape.two_metrics_disagree"),
        ("首字时间和总时间一样,说不通。", "shape.two_metrics_disagree"),
        ("Clients report timeouts 12 times.", "symptom.errors"),
        ("The request runs into a timeout after 60 s.", "symptom.errors"),
        ("There are timeouts all day.", "symptom.errors"),
        ("The server freezes.", "shape.hang"),
        ("The whole machine freezes until somebody presses the button.", "shape.hang"),
        ("It freezes while loading.", "shape.hang"),
    ],
)
def test_other_words_for_a_shape_or_symptom(text: str, fact: str) -> None:
    assert values(text, fact) == [True]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("first run      slow step 12/40   wall 600 ms", "shape.first_run_slow"),
        ("run   slow", "shape.first_run_slow"),
        ("有 8 个用户。", "shape.cliff_at_concurrency"),
        ("4 路以上都正常。", "shape.cliff_at_concurrency"),
        ("Restarting helps until the next one comes.", "shape.decays_with_uptime"),
        ("The longer the prompt the longer it takes.", "shape.decays_with_uptime"),
        ("The old version of the paper is fast to read.", "shape.after_upgrade"),
        ("The ratio fell 2.5 to 2.1.", "shape.after_upgrade"),
        ("One replica behind nginx.", "shape.one_replica_differs"),
        ("One engine behind it serves everybody.", "shape.one_replica_differs"),
        ("Then it swaps.", "shape.recovers_by_itself"),
        ("We come back to this later.", "shape.recovers_by_itself"),
        ("The pods die two or three times an hour.", "shape.periodic"),
        ("Every stream freezes for 3 seconds.", "shape.hang"),
        ("The GPU is idle inside the frozen step.", "shape.hang"),
        ("Chats freeze as long as another prompt is read.", "shape.hang"),
        ("All freeze for tens of seconds, then go on.", "shape.hang"),
        ("Every stream freezes for 3 seconds.", "symptom.hang"),
        ("Chats freeze as long as another prompt is read.", "symptom.hang"),
        ("The log ends with `terminated`.", "shape.crash"),
        ("TLS is terminated by us at the edge.", "shape.crash"),
        ("A restart of the pod did not help.", "symptom.crash"),
        ("I ran a raw curl against it.", "shape.two_tools_disagree"),
        ("We used one load tool for both.", "shape.two_tools_disagree"),
        ("The client timeout is 600 s.", "symptom.errors"),
        ("timeout = 30 s", "symptom.errors"),
        ("The prefill runs in chunks.", "symptom.itl"),
        ("The traffic arrives in bursts.", "symptom.itl"),
        ("Requests come in bursts of 50.", "symptom.itl"),
        ("This is where the prefill batch is put together.", "pair.prompt_throughput.ratio"),
        ("What eats the 7 tok/s?", "throughput.generation_tokens_per_s.mean"),
        ("With 32 users each one gets 1.5 tok/s.", "said.reference"),
        ("SLO review: TTFT 26 s is bad.", "said.reference"),
        ("KV cache usage at peak is 95 %.", "said.reference"),
        ("Regression in the scheduler?", "concept.regression"),
        ("All 16 run, waiting 0, preemptions 0.", "concept.preemption"),
    ],
)
def test_look_alikes_of_a_shape_symptom_or_figure(text: str, fact: str) -> None:
    assert values(text, fact) == []


@pytest.mark.parametrize(
    ("text", "fact", "side"),
    [
        ("The first token comes after 3 s, afterwards it flows with an ITL of 21 ms.", "said.itl_s", ""),
        ("We see 2.0 tok/s turn after turn.", "said.generation_tps", ""),
        ("They are served one after the other although KV cache usage is 2 %.", "said.kv_usage", ""),
        ("TTFT is 0.4 s and the tokens after that have an ITL of 80 ms.", "said.itl_s", ""),
        ("ITL is 12 ms as before.", "said.itl_s", ""),
        ("TTFT is 4 s before the first word appears.", "said.ttft_s", ""),
        ("By noon all backends were slow, TTFT 120 s.", "said.ttft_s", ""),
        ("After the upgrade TTFT is 3 s.", "said.ttft_s", "after"),
        ("Before the upgrade TTFT was 1 s.", "said.ttft_s", "before"),
        ("Before we upgraded, TTFT was 1 s.", "said.ttft_s", "before"),
        ("TTFT was 1 s last week.", "said.ttft_s", "before"),
    ],
)
def test_an_order_inside_a_run_is_no_side(text: str, fact: str, side: str) -> None:
    assert [(item.labels or {}).get("side", "") for item in of(run(text), fact)] == [side]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("That would be 30 tok/s, we see half.", 30.0),
        ("A paper reports an acceptance length of 6.1.", 6.1),
        ("Another team gets 67 tok/s with the same cards.", 67.0),
        ("The operating point is 17 tok/s per user.", 17.0),
    ],
)
def test_a_norm_is_a_reference(text: str, value: float) -> None:
    assert values(text, "said.reference") == [value]


def test_decimals_with_a_unit_are_no_versions() -> None:
    assert not of(run("Single stream 19.7 -> 24.3 tok/s with another drafter."), "pair.difference")
    assert values("0.18.0 -> 0.19.0: TTFT went from 1 s to 2 s.", "pair.difference") == [["version_upgrade"]]
