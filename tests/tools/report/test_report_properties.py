"""Properties: spans verbatim over all worlds, vocabulary, no exception on any text, linear time."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.loader import ROOT, read_yaml
from tools.contract import Context
from tools.part import Part
from tools.report import worded
from tools.report.read import read

BASE = Path(__file__).parents[3]
SHARED = BASE.parent / "shared" / "incidents" / "worlds"
CASES = BASE / "evals" / "cases"
TOKENS = (
    "TTFT|300 ms|12 tok/s|%|is|slow|not|升级|后|变慢|(|)|-|*|`|#|:|;|,|.|?|concurrency|8K|vLLM|0.9.1|A100|two|x|~|from|to|"
    "without|speculation|doubled|half|KV cache usage|100%|before|now|\n|\n\n|```|$|并发|卡死|| "
)
WORDS = st.sampled_from(TOKENS.split("|"))


@cache
def vocabulary() -> set[str]:
    return {item["name"] for path in (ROOT / "facts").glob("*.yaml") for item in read_yaml(path)}


def _worlds() -> list[Path]:
    return sorted(CASES.glob("case-02*/world/report.md")) + sorted(SHARED.glob("inc-*/report.md"))


def _check(part: Part) -> int:
    lines = dict(part.lines())
    readings = read([part], Context()).readings
    for item in readings:
        if item.source.kind == "words":
            assert item.source.span
            assert item.source.span in lines[item.source.line], item
    return len(readings)


def test_every_span_stands_verbatim_in_its_line() -> None:
    paths = _worlds()
    assert len(paths) > 60
    total = sum(_check(Part(name=path.name, path=path)) for path in paths[::3])
    assert total > 150


def test_shared_worlds_present_or_skipped() -> None:
    if not SHARED.is_dir():
        pytest.skip("shared incident worlds are not beside the repository")
    assert all(_check(Part(name=path.name, path=path)) >= 0 for path in sorted(SHARED.glob("inc-*/report.md"))[1::6])


def test_own_facts_are_in_the_vocabulary() -> None:
    known = {item["name"] for item in read_yaml(ROOT / "facts" / "report.yaml")}
    assert {row.fact for row, _ in worded.table()} <= known
    own = ("said.", "pair.", "sweep.", "shape.", "symptom.")
    for path in _worlds()[::9]:
        for item in read([Part(name=path.name, path=path)], Context()).readings:
            if item.fact.startswith(own):
                assert item.fact in known
            elif not item.fact.startswith(("concept.", "gpu.")):
                assert item.fact in vocabulary()


@settings(max_examples=25, deadline=None)
@given(st.lists(WORDS, max_size=40).map(" ".join))
def test_any_mixture_of_words_is_read_without_error(text: str) -> None:
    _check(Part(name="r.md", data=text.encode()))


@settings(max_examples=15, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_error(data: bytes) -> None:
    read([Part(name="r.md", data=data)], Context())


@pytest.mark.parametrize("unit", ["slow ", "1,", "升级", "TTFT 3 ms, "])
def test_time_is_linear(unit: str) -> None:
    def cost(count: int) -> float:
        start = time.process_time()
        read([Part(name="r.md", data=(unit * count).encode())], Context())
        return time.process_time() - start

    cost(50)
    small, large = cost(200), cost(800)
    assert large < 9 * small + 0.15
