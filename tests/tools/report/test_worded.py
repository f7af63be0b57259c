"""Shapes and symptoms said in words, and the cues that deny them or mark a reference."""

from __future__ import annotations

import pytest

from tools.contract import Context
from tools.part import Part
from tools.report.concepts import match
from tools.report.read import read


def facts(text: str) -> set[str]:
    return {r.fact for r in read([Part(name="report.md", data=text.encode())], Context()).readings}


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("It is much faster at short contexts.", "shape.grows_with_context"),
        ("Decode is far quicker with short prompts.", "shape.grows_with_context"),
        ("Performance degrades badly at around 16 concurrent requests.", "shape.cliff_at_concurrency"),
        ("Throughput collapses at 24 parallel users.", "shape.cliff_at_concurrency"),
        ("All traffic goes to one gpu pod while the others wait.", "shape.one_replica_differs"),
        ("Most requests land on a single worker.", "shape.one_replica_differs"),
        ("There is a discrepancy between the benchmark and the engine logs.", "shape.two_metrics_disagree"),
        ("The whole server is frozen.", "shape.hang"),
        ("两卡没有提升。", "shape.more_gpus_no_gain"),
    ],
)
def test_a_shape_said_in_words(text: str, fact: str) -> None:
    assert fact in facts(text)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Engine A is much faster at short contexts than engine B.", "shape.grows_with_context"),
        ("It drops to 20 tok/s at 16 concurrent requests.", "shape.cliff_at_concurrency"),
        ("All requests go to one queue.", "shape.one_replica_differs"),
        ("There is a discrepancy between the two cards.", "shape.two_metrics_disagree"),
        ("We replay one frozen request from the trace.", "shape.hang"),
        ("We kept a frozen 4,096-token prompt for all runs.", "symptom.hang"),
        ("It shows as a cliff of latency rather than a hang.", "shape.hang"),
        ("The clock is stuck at 1410 MHz.", "shape.hang"),
        ("单卡比2卡慢。", "shape.more_gpus_slower"),
        ("单卡比两卡没有提升。", "shape.more_gpus_no_gain"),
        ("With spec decoding we get 90 tok/s.", "said.reference"),
        ("spec 7b: 61 tok/s", "said.reference"),
    ],
)
def test_a_look_alike_says_none(text: str, fact: str) -> None:
    assert fact not in facts(text)


@pytest.mark.parametrize("text", ["I get 60 tok/s and hoped for 280 tok/s.", "I was hoping for 280 tok/s."])
def test_what_is_hoped_for_is_a_reference(text: str) -> None:
    assert "said.reference" in facts(text)


def test_what_is_set_aside_is_not_claimed() -> None:
    text = "We neglect the slow case due to expert imbalance."
    assert not match("report.md", [(1, text)], "concept.expert_hot")
