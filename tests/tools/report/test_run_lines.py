"""Lines that name a run for the lines below them, and words that a form or a command brought, not a person."""

from __future__ import annotations

import time

import pytest

from tests.tools.report.test_report_read import of, run, values

SPEED = "`Avg prompt throughput: {} tokens/s, Avg generation throughput: {} tokens/s,`\n\n"


@pytest.mark.parametrize(
    ("text", "fact", "ratio", "difference"),
    [
        ("0.9.1\nOutput throughput: 800 tok/s\n0.11.0\nOutput throughput: 500 tok/s\n", "pair.throughput.ratio", 0.625, "version_upgrade"),
        ("TP8 concurrency=128\nafter PR2\nOutput throughput: 80 tok/s\nbefore PR2\nOutput throughput: 120 tok/s\n", "pair.throughput.ratio", 0.667, "before_after"),
        ("Here's my speed on the 0.2.7 release\n\n" + SPEED.format(1000, 200) + "Here's my speed on 0.3.2\n\n" + SPEED.format(200, 20), "pair.throughput.ratio", 0.1, "version_upgrade"),
        ("time to decode each token:\nbf16: 7.5 ms\nfp8: 9 ms\n", "pair.tpot.ratio", 1.2, "number_format"),
        ("concurrency 6:\n- v0.21.0: ~1000 completion tok/s\n- nightly: ~800 completion tok/s\n", "pair.throughput.ratio", 0.8, "version_upgrade"),
    ],
)  # fmt: skip
def test_a_line_that_names_a_run_heads_the_next(text: str, fact: str, ratio: float, difference: str) -> None:
    (item,) = [x for x in of(run(text), fact) if x.labels["difference"] == difference]
    assert item.value == pytest.approx(ratio, abs=0.001)


def test_a_sentence_names_no_run() -> None:
    text = "We moved to 0.9.1 last week and saw this.\nOutput throughput: 800 tok/s\n"
    assert [item.labels.get("version") for item in of(run(text), "said.generation_tps")] == [None]


@pytest.mark.parametrize(
    ("text", "fact", "expected"),
    [
        ("### Report of performance regression\n\nTTFT is 2 s.\n", "concept.regression", []),
        ("### A performance regression since 0.9\n\nTTFT is 2 s.\n", "concept.regression", [True]),
        ("We ran with a concurrency of 500.", "symptom.errors", []),
        ("It answers with a burst of 503 errors.", "symptom.errors", [True]),
        ("est. speed input: 1000.5 toks/s, output: 271.44 toks/s", "said.generation_tps", [271.44]),
        ("est. speed input: 1000.5 toks/s, output: 271.44 toks/s", "said.output_tokens", []),
        ("Average latency per output token: 0.25 s", "said.tpot_s", [0.25]),
        ("Average latency: 3.5 s", "said.e2e_s", [3.5]),
        ("Update: enabling cudagraph gives 4x faster decode.", "shape.after_upgrade", []),
    ],
)
def test_words_and_figures(text: str, fact: str, expected: list[object]) -> None:
    assert values(text, fact) == expected


@pytest.mark.parametrize(
    "text",
    [
        "command: vllm serve org/m --max-num-seqs 8",
        "server-side: `vllm serve org/m --max-num-seqs 8`",
        "I start it with `vllm serve org/m --max-num-seqs 8` and wait.",
    ],
)
def test_a_command_in_a_sentence_or_behind_a_label_goes_to_its_reader(text: str) -> None:
    parts = run(text).nested
    assert [part.text().strip() for part in parts] == ["vllm serve org/m --max-num-seqs 8"]


@pytest.mark.parametrize(
    ("text", "fact", "expected"),
    [
        # Two sides in one sentence, another card, another load.
        ("Others get 100 tok/s, we get 40 tok/s with MTP and 101 tok/s without.", "report.reference_share", [0.4]),
        ("Others get 50 tok/s on an RTX 3060; we get 52 tok/s on an H100.", "report.reference_share", []),
        ("Others report 50 tok/s with one user, we get 52 tok/s with 64 users.", "report.reference_share", []),
        ("The SLO is 2 s TTFT, we have 1 s TTFT.", "report.reference_share", []),
        # What is told inside a question.
        ("不管怎么配置吞吐都只有20 tok/s", "said.generation_tps", [20]),
        ("TTFT 从 300 ms 涨到 3 秒,是不是 KV 缓存满了", "said.ttft_s", [0.3, 3]),
        ("Can anyone help, we get CUDA out of memory after 2 hours", "concept.gpu_oom", [True]),
        ("Do you know why TTFT is 5 s with 3 users", "said.ttft_s", [5]),
        ("Prompt evaluation is fine but generation speed is only 5 tok/s.", "said.generation_tps", [5]),
        ("We reach 10/20/30 requests/s with three replicas.", "said.requests_per_s", [30]),
        ("E2E latency is 3 s per call.", "said.e2e_s", [3]),
        ("RAM is fine but the pod is killed by the liveness probe.", "concept.host_oom", []),
        ("We do not get any errors reported.", "concept.expected_more", []),
        ("The service should run indefinitely.", "concept.outputs_long", []),
        ("I compared both with the same model, prompts, and identical config.", "concept.version_only_differs", []),
        ('[{"port": 8000, "protocol": "TCP"}]', "concept.tcp_fallback", []),
    ],
)
def test_look_alikes_of_what_is_read(text: str, fact: str, expected: list[object]) -> None:
    assert values(text, fact) == expected


@pytest.mark.parametrize(
    "text",
    [
        "The 7B model gives 100 tok/s. The 70B model falls to 20 tok/s.",
        "With vLLM we see 100 tok/s. With SGLang it drops to 80 tok/s.",
    ],
)
def test_two_subjects_are_no_change_of_one(text: str) -> None:
    assert not of(run(text), "pair.throughput.ratio")


def test_a_command_with_a_chinese_path_is_a_command() -> None:
    text = "TTFT is 5 s.\n\nvllm serve /data/模型/Qwen2.5-7B --tensor-parallel-size 2\n"
    assert len(run(text).nested) == 1


def test_an_x_beside_a_tick_is_a_cross() -> None:
    (item,) = of(run("| MTP | tok/s |\n|---|---|\n| ✓ | 100 |\n| x | 50 |\n"), "pair.throughput.ratio")
    assert item.value == 2 and item.labels["difference"] == "feature_on_off"


@pytest.mark.parametrize(
    "text",
    ["See https://example.com/" + "a" * 150 + "?x=1%20b", "# " + "*" * 20000 + "x", "x" * 20000 + "!", "rises to 12 tok/s " * 1000],
)  # fmt: skip
def test_odd_text_takes_no_long(text: str) -> None:
    start = time.process_time()
    run(text)
    assert time.process_time() - start < 8
