"""Lines that name a run for the lines below them, and words that a form or a command brought, not a person."""

from __future__ import annotations

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
