"""Columns whose heading says less than their cells: versions that are none, differences, and ranges."""

from __future__ import annotations

from typing import Any

import pytest

from tools.contract import Context
from tools.part import Part
from tools.report.read import read


def _facts(text: str) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {}
    for r in read([Part(name="r.md", data=text.encode())], Context()).readings:
        out.setdefault(r.fact, []).append(r.value)
    return out


def _table(*rows: str) -> str:
    head, *body = rows
    return "\n".join([head, "|" + "---|" * (head.count("|") - 1), *body]) + "\n"


def test_an_engine_name_in_a_heading_is_no_version_column() -> None:
    found = _facts(
        _table("| Metric | gateway | SGLang direct |", "| TTFT (s) | 6.0 | 0.5 |", "| TPOT (ms) | 40 | 39 |")
    )
    assert found["pair.ttft.ratio"] == [pytest.approx(12.0)]
    assert "shape.after_upgrade" not in found


@pytest.mark.parametrize(
    ("cells", "upgrade"), [(("0.9.1", "0.10.0"), True), (("v1", "v2"), True), (("plain", "EPLB"), False)]
)
def test_a_version_column_holds_versions(cells: tuple[str, str], upgrade: bool) -> None:
    found = _facts(_table("| Version | tok/s |", f"| {cells[0]} | 900 |", f"| {cells[1]} | 600 |"))
    assert ("shape.after_upgrade" in found) is upgrade


@pytest.mark.parametrize("head", ["Diff", "Difference", "Delta", "差值"])
def test_a_column_of_differences_is_no_measurement(head: str) -> None:
    found = _facts(_table(f"| Metric | old | new | {head} |", "| TTFT (s) | 1.0 | 4.0 | 3.0 |"))
    assert sorted(found["said.ttft_s"]) == [1.0, 4.0]


@pytest.mark.parametrize(
    ("text", "fact", "value"),
    [
        ("GPU utilization is about 60%-70%.", "said.gpu_util", 0.65),
        ("输入长度3万多字。", "said.prompt_tokens", 30000.0),
        ("压测用 16K输入2K输出。", "said.prompt_tokens", 16384.0),
        ("压测用 16K输入2K输出。", "said.output_tokens", 2048.0),
    ],
)
def test_ranges_and_chinese_lengths(text: str, fact: str, value: float) -> None:
    found = _facts(text)
    assert found[fact] == [pytest.approx(value)]
    assert not any(name.startswith("pair.") for name in found)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("The latency is 568 ms on one GPU and 549 ms on 2 GPUs.", "shape.more_gpus_no_gain"),
        ("TPOT is 20 ms on one GPU and 31 ms on 4 GPUs.", "shape.more_gpus_slower"),
    ],
)
def test_latency_that_more_gpus_do_not_shorten(text: str, shape: str) -> None:
    assert shape in _facts(text)
    assert shape not in _facts("TPOT is 20 ms on one GPU and 11 ms on 2 GPUs.")


@pytest.mark.parametrize(
    ("rows", "trigger"),
    [
        (("| without structured output | 50 |", "| with structured output | 29 |"), True),
        (("| without penalties | 50 |", "| with penalties | 49 |"), False),
        (("| without lora | 50 |", "| with lora | 29 |"), False),
    ],
)
def test_work_per_token_that_costs_is_what_brings_it(rows: tuple[str, str], trigger: bool) -> None:
    assert ("concept.structured_is_trigger" in _facts(_table("| run | tok/s |", *rows))) is trigger
