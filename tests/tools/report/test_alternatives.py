"""Two runs that differ in one choice: what they differ in, and which of them the complaint is about."""

from __future__ import annotations

import pytest

from tools.contract import Context
from tools.part import Part
from tools.report.alternatives import alone, kind
from tools.report.read import read


def _pairs(text: str) -> list[tuple[str, float]]:
    out = read([Part(name="r.md", data=text.encode())], Context())
    return [
        (r.labels["difference"], r.value)
        for r in out.readings
        if r.fact.startswith("pair.") and r.fact.endswith("ratio")
    ]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("FlashInfer", "FA3", "attention_backend"),
        ("flashinfer, bf16", "triton, bf16", "attention_backend"),
        ("--attention-backend fa2", "--attention-backend flashinfer", "attention_backend"),
        ("TP 8", "PP 8, TP 1", "layout"),
        ("tp2 / pp2", "tp4", "layout"),
        ("tensor parallel", "pipeline parallel", "layout"),
        ("round_robin", "cache_aware", "routing_policy"),
        ("AWQ", "GPTQ", "number_format"),
        # Two things differ, the number of GPUs does, nothing known does, or nothing at all.
        ("flashinfer, bf16", "fa3, fp8", ""),
        ("tp 1", "tp 2", ""),
        ("box one", "box two", ""),
        ("fa3", "fa3", ""),
        ("", "fa3", ""),
    ],
)
def test_kind_of_choice(left: str, right: str, expected: str) -> None:
    assert kind(left, right) == kind(right, left) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Two runs, only `--block-size` differs.", True),
        ("Nothing else was changed between them.", True),
        ("Everything else is the same.", True),
        ("其他参数都一样。", True),
        ("Several things differ.", False),
        ("Everything else is new.", False),
        ("Only two of the flags were touched", False),
    ],
)
def test_one_thing_alone(text: str, said: bool) -> None:
    assert alone(text) is said


def test_items_named_by_a_backend_are_a_control_run_and_the_slow_one_comes_after() -> None:
    text = "The same server twice.\n\n- fa3, bf16: 410 tok/s\n- flashinfer, bf16: 900 tok/s\n"
    assert _pairs(text) == [("attention_backend", pytest.approx(410 / 900, abs=1e-3))]


def test_another_layout_of_as_many_gpus_is_no_count_of_gpus() -> None:
    assert _pairs("- tp 4: TTFT 1.5 s\n- pp 4, tp 1: TTFT 12 s\n") == [("layout", pytest.approx(8.0))]
    assert _pairs("- tp 1: 23 tok/s\n- tp 2: 22 tok/s\n") == [("gpu_count", pytest.approx(22 / 23, abs=1e-3))]


def test_names_nobody_knows_make_a_pair_only_where_one_thing_is_said_to_differ() -> None:
    rows = "\n\n- alpha: TPOT 20 ms\n- beta: TPOT 31 ms\n"
    assert _pairs("Two of our images." + rows) == []
    assert _pairs("Only `--block-size` differs." + rows) == [("config_value", pytest.approx(1.55))]
    three = rows + "- gamma: TPOT 25 ms\n"
    assert _pairs("Only `--block-size` differs." + three) == []


def test_a_figure_far_away_is_not_the_other_side_of_a_switch() -> None:
    near = "With speculation TPOT is 30 ms.\nTPOT is 20 ms.\n"
    far = "With speculation TPOT is 30 ms.\n" + "\nAnother paragraph on the office.\n" * 8 + "\nTPOT is 20 ms.\n"
    assert any(kind == "feature_on_off" for kind, _ in _pairs(near))
    assert not any(kind == "feature_on_off" for kind, _ in _pairs(far))


@pytest.mark.parametrize(
    ("text", "ratios"),
    [
        ("TTFT takes half a minute.", []),
        ("Throughput is half of what it was.", [0.5]),
        ("The first token needs half an hour.", []),
    ],
)
def test_half_of_a_time_span_is_no_change(text: str, ratios: list[float]) -> None:
    assert [value for _, value in _pairs(text)] == ratios


@pytest.mark.parametrize(
    ("text", "ratio"),
    [
        ("Decode dropped to 10 tok/s from 30 tok/s after the upgrade.", 1 / 3),
        ("TTFT rose to about 6 s from 2 s.", 3.0),
        ("TTFT went from 2 s to 6 s.", 3.0),
    ],
)
def test_the_sentence_says_which_figure_came_first(text: str, ratio: float) -> None:
    assert [value for _, value in _pairs(text)] == [pytest.approx(ratio, abs=1e-3)]
