"""Figures as people write them: sides of a metric, bounds that are counted against, names that are no features."""

from __future__ import annotations

import pytest

from tests.tools.report.test_report_read import of, run, values


@pytest.mark.parametrize(
    ("text", "fact", "expected"),
    [
        ("Hit rate: GPU: 12 %, CPU: 0 %.", "said.prefix_hit_rate", [0.12]),
        ("Hit rate: GPU: 12 %, CPU: 0 %.", "said.gpu_util", []),
        ("Latency is 3.4 ms per layer.", "said.kernel_s", [0.0034]),
        ("It is slower than expected, only 8 tok/s.", "said.generation_tps", [8]),
        ("12 tok/s vs ~36 claimed", "said.generation_tps", [12]),
        ("12 tok/s vs ~36 claimed", "said.reference", [36]),
        ("I was hoping for 280 tok/s.", "said.reference", [280]),
        ("The kernel goes from 14 to 16.8 pages/s.", "said.generation_tps", []),
        ("54 of 1250 requests > 20 s", "said.e2e_s", []),
        ("No timeouts set in the proxy.", "said.timeouts", []),
        ("No timeouts so far.", "said.timeouts", [0]),
        ("max_total_tokens=8000000", "said.setting", []),
        ("context length 8192", "said.setting", [8192]),
        ("We ran at 1/2/4/8 concurrent sessions.", "said.concurrency", [8]),
        ("Two 1M sessions run.", "said.concurrency", []),
        ("n=3, temperature=0.8", "said.concurrency", []),
        ("12 requests remain pending.", "said.waiting", [12]),
        ("pending: 3 reqs", "said.waiting", [3]),
        ("Waiting requests remains zero.", "said.waiting", [0]),
        ("KV cache 利用率 95 %", "said.kv_usage", [0.95]),
        ("vLLM 版本: 0.8.5", "said.versions", [["0.8.5"]]),
        ("Run with gmu .9, mns=64, mnbt=2048.", "said.setting", [0.9, 64, 2048]),
        ("A 32k prefill takes 3 s.", "said.prompt_tokens", [32768]),
        ("NPU util is 40 %.", "said.gpu_util", [0.4]),
        ("It runs in a single H200(×8) node.", "said.gpu.count", [8]),
        ("The gain on H200 (4.3x) is smaller.", "said.gpu.count", []),
    ],
)
def test_figures(text: str, fact: str, expected: list[object]) -> None:
    found = values(text, fact)
    assert found == (pytest.approx(expected) if all(isinstance(x, (int, float)) for x in expected) else expected)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Is it the scheduler that hangs", "symptom.hang"),
        ("是不是显存碎片导致的", "concept.fragmentation"),
        ("It is a cliff rather than a hang.", "symptom.hang"),
        ("We use chunking to avoid preemption.", "concept.preemption"),
        ("Qwen3-30B-MTP-GGUF gives 40 tok/s.", "concept.speculation_on"),
    ],
)
def test_what_is_asked_avoided_or_only_a_name_is_not_claimed(text: str, fact: str) -> None:
    assert not of(run(text), fact)


@pytest.mark.parametrize(
    ("text", "fact", "ratio"),
    [("TTFT is 2.1 s without and 1.4 s with offload.", "pair.ttft.ratio", 0.667)],
)
def test_a_bare_without_is_the_control_run(text: str, fact: str, ratio: float) -> None:
    (item,) = of(run(text), fact)
    assert item.value == pytest.approx(ratio, abs=0.01) and item.labels["difference"] == "feature_on_off"


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("I get 67 tokens/s, others with the same cards report about 67 tokens/s.", [1.0]),
        ("I get 20 tokens/s, the README claims 80 tokens/s.", [0.25]),
        ("TTFT is 400 ms, others report 200 ms.", [0.5]),
        ("I get 67 tokens/s.", []),
        ("Others report 67 tokens/s. TTFT is 2 s.", []),
    ],
)
def test_the_share_of_what_others_report(text: str, share: list[float]) -> None:
    assert values(text, "report.reference_share") == share
