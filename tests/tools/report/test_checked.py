"""Figures that the words around them turn into something else, changes told over two sentences, and odd tables."""

from __future__ import annotations

import pytest

from tests.tools.report.test_report_read import of, run, values
from tools.contract import Reading
from tools.report import alternatives, blocks

LLAMA = "slot print_timing: {} time =  200.0 ms /  100 tokens (  2.0 ms per token,  500.0 tokens per second)\n"


def pair(text: str, fact: str) -> list[tuple[str, float]]:
    return [(item.labels["difference"], round(float(str(item.value)), 2)) for item in of(run(text), fact)]


@pytest.mark.parametrize(
    ("text", "fact", "expected"),
    [
        (LLAMA.format("prompt eval"), "said.prompt_tps", [500]),
        (LLAMA.format("prompt eval"), "said.generation_tps", []),
        (LLAMA.format("prompt eval"), "said.tpot_s", []),
        (LLAMA.format("eval"), "said.generation_tps", [500]),
        ("The latency is 4 ms per layer.", "said.kernel_s", [0.004]),
        ("The latency is 4 ms per layer.", "said.e2e_s", []),
        ("The latency is 4 s per request.", "said.kernel_s", []),
        ("Throughput at 2/4/8 concurrent users is stable.", "said.generation_tps", []),
        ("TTFT today: 40 requests >15 s, 7 >60 s.", "said.ttft_s", []),
        ("TTFT is >15 s with 40 requests.", "said.ttft_s", [15]),
        ("Generation speed is worse than expected, only 9 tokens/s.", "said.generation_tps", [9]),
        ("Generation speed is worse than expected, only 9 tokens/s.", "said.reference", []),
        ("Expected 30 tokens/s.", "said.reference", [30]),
    ],
)
def test_what_the_words_around_a_figure_say(text: str, fact: str, expected: list[object]) -> None:
    assert values(text, fact) == expected


@pytest.mark.parametrize(
    ("text", "fact", "expected"),
    [
        ("On one card TTFT is 300 ms. On two machines TTFT increases to 3 s.", "pair.ttft.ratio", [("layout", 10)]),
        (
            "On a single GPU I see 40 tokens/s, but it drops to only 20 tokens/s when employing tensor parallelism.",
            "pair.throughput.ratio",
            [("gpu_count", 0.5)],
        ),
        # Another load is a point of a curve; a figure alone, or the same twice with "from", is no second pair.
        ("TTFT is 1 s at concurrency 1. TTFT rises to 4 s at concurrency 8.", "pair.ttft.ratio", []),
        ("TTFT increases to 3 s.", "pair.ttft.ratio", []),
        ("TTFT rises from 1 s to 4 s.", "pair.ttft.ratio", [("unnamed", 4)]),
        ("GPU 0 runs at 1500 MHz, a 60% speed drop.", "pair.throughput.ratio", [("unnamed", 0.4)]),
        ("It is far from the claimed 4 times speedup.", "pair.throughput.ratio", []),
        ("Both gave the same 20x speedup of TTFT.", "pair.ttft.ratio", []),
        ("With two services on the same GPUs each is twice as slow as one service.", "pair.throughput.ratio", [("unnamed", 0.5)]),
        ("With two GPUs inference is twice as slow as on one GPU.", "pair.throughput.ratio", [("gpu_count", 0.5)]),
        ("After we upgraded the CPU it is 3x faster.", "pair.throughput.ratio", [("unnamed", 3)]),
        ("After we upgraded vLLM it is 3x slower.", "pair.throughput.ratio", [("version_upgrade", 0.33)]),
    ],
)  # fmt: skip
def test_changes(text: str, fact: str, expected: list[tuple[str, float]]) -> None:
    assert pair(text, fact) == expected


def test_first_token_later_and_tokens_as_fast_does_not_clear_the_engine() -> None:
    text = "TPOT is unchanged. TTFT goes from 200 ms to 90 seconds."
    assert not of(run(text), "shape.engine_metrics_unchanged_client_worse")


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("TP8", "TEP8", "layout"),
        ("TP8", "EP8", "layout"),
        ("DEP16", "TP16", "layout"),
        ("TP4-triton", "TEP4-triton", "layout"),
        ("TEP4-triton", "TEP4-flashinfer", "attention_backend"),
        ("EPMoE", "DeepEP", "layout"),
        ("TP4-triton", "TEP4-flashinfer", ""),
        ("TP1", "TP4", ""),
        ("STEP8", "TP8", ""),
        ("warm", "cold", ""),
    ],
)
def test_layouts_of_one_word(left: str, right: str, expected: str) -> None:
    assert alternatives.kind(left, right) == expected


def test_columns_named_by_layouts_are_compared_at_one_load() -> None:
    text = "TTFT in ms:\n\n| Max Requests | TP4-triton | TEP4-triton |\n|---|---|---|\n| 8 | 400 | 500 |\n| 16 | 600 | 900 |\n"
    assert pair(text, "pair.ttft.ratio") == [("layout", 1.25), ("layout", 1.5)]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [(("", "✔"), ["feature_on_off"]), (("off", "on"), ["feature_on_off"]), (("✗", "<b>✓</b>"), ["feature_on_off"])],
)
def test_a_ticked_feature(cells: tuple[str, str], expected: list[str]) -> None:
    text = f"| HiCache | TTFT (ms) |\n|---|---|\n| {cells[0]} | 100 |\n| {cells[1]} | 150 |\n"
    assert pair(text, "pair.ttft.ratio") == [(expected[0], 1.5)]


@pytest.mark.parametrize(
    ("text", "fact", "expected"),
    [
        # Thousands are milliseconds, parts of one are seconds, between them nothing is known.
        ("| rate | TTFT | TPOT |\n|---|---|---|\n| a | 2500 | 40 |\n| b | 9000 | 45 |\n", "said.tpot_s", [0.04, 0.045]),
        ("| rate | TTFT |\n|---|---|\n| a | 0.25 |\n| b | 0.5 |\n", "said.ttft_s", [0.25, 0.5]),
        ("| rate | TTFT |\n|---|---|\n| a | 25 |\n| b | 50 |\n", "said.ttft_s", []),
        ("| Request Rate | Throughput |\n|---|---|\n| 8 | 5.5 |\n| 4 | 3.9 |\n", "said.requests_per_s", [5.5, 3.9]),
        ("| ctx | spec steps | decode tok/s |\n|---|---|---|\n| 4k | 210 | 19 |\n| 8k | 200 | 18 |\n", "said.generation_tps", [19, 18]),
        ("| KV depth | decode t/s |\n|---|---|\n| 0 | 30 |\n| 4096 | 20 |\n", "said.kv_usage", []),
        ("baseline | penalties on\n---|---\n30 tok/s | 20 tok/s\n", "said.generation_tps", [30, 20]),
        ("model\tdraft tokens\tspeed\nx\t3\t40 tokens/s\ny\t9\t20 tokens/s\n", "said.generation_tps", [40, 20]),
        ("+-----+-----+\n| Key | Value |\n+=====+=====+\n| Output token throughput (tok/s) | 32.5 |\n+-----+-----+\n| Mean TTFT (s) | 2.5 |\n+-----+-----+\n", "said.generation_tps", [32.5]),
        ("╒════╤════╕\n│ Metric │ Value │\n╞════╪════╡\n│ TTFT │ 250 ms │\n├────┼────┤\n│ TPOT │ 30 ms │\n╘════╧════╛\n", "said.tpot_s", [0.03]),
    ],
)  # fmt: skip
def test_tables(text: str, fact: str, expected: list[object]) -> None:
    assert values(text, fact) == pytest.approx(expected)


def test_columns_of_statistics() -> None:
    text = "| Stage | Average | P99 | N |\n|---|---|---|---|\n| TTFT | 800 ms | 2000 ms | 64 |\n| TPOT | 30 ms | 50 ms | 64 |\n"
    found: list[Reading] = of(run(text), "said.ttft_s")
    assert [(item.value, item.labels.get("stat"), item.labels.get("concurrency")) for item in found] == [
        (0.8, "mean", None),
        (2.0, "p99", None),
    ]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("vllm serve 部署模型,A100,并发8", "text"),
        ("vllm serve hangs after some requests", "text"),
        ("nvidia-smi shows two processes", "text"),
        ("vllm serve Qwen/Qwen3-8B --port 8000", "command"),
        ("vllm serve m --served-model-name '通义千问'", "command"),
        ("-e NCCL_NET=Socket \\", "command"),
    ],
)
def test_commands_and_sentences(text: str, kind: str) -> None:
    assert next(blocks.split([blocks.Line(1, text)])).kind == kind
