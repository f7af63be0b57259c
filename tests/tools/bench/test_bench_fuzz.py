"""Mutated results never raise, whatever the form; time stays in proportion to the size."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tools.bench.test_bench_read import AIPERF, PRINTED, SERVE, TABLES
from tools.bench.fields import field
from tools.bench.read import read, rows
from tools.bench.sniff import sniff
from tools.contract import Context
from tools.part import Part

SEEDS = [json.dumps(SERVE), PRINTED, AIPERF, *[text for text, *_ in TABLES]]
SEEDS += [json.dumps({"requests": [{"arrival": 1.0, "ttft": 0.1, "status": 200, "e2e": 2.0}], "wall_s": 3})]
CUT = st.tuples(st.integers(0, 900), st.integers(0, 30), st.text(max_size=8))
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *SERVE,
                    "requests",
                    "benchmarks",
                    "metrics",
                    "successes",
                    "load_summary",
                    "ttfts",
                    "itls",
                    "output_lens",
                    "errors",
                    "percentiles",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=14,
)


def feed(text: str, name: str = "bench.json") -> None:
    part = Part(name=name, data=text.encode("utf-8", "replace"))
    read([part], Context())
    rows([part])
    assert 0.0 <= sniff(name, text) <= 1.0


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(SEEDS), st.lists(CUT, max_size=5))
def test_mutated_results(seed: str, cuts: list[tuple[int, int, str]]) -> None:
    for at, length, put in cuts:
        at = min(at, len(seed))
        seed = seed[:at] + put + seed[at + length :]
    feed(seed)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JSON)
def test_any_json(value: Any) -> None:
    feed(json.dumps(value))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=90))
def test_any_label(text: str) -> None:
    field(text)


HOSTILE = [
    "a" * 60000,
    "| " * 20000,
    "1  " * 20000,
    "TTFT (ms)" + " |" * 20000,
    "x: " * 20000,
    "c=1 " * 15000,
    "(" * 50000,
    "1," * 30000,
]


@pytest.mark.parametrize("seed", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_costs_linear_time(seed: str) -> None:
    def cost(text: str) -> float:
        begin = time.process_time()
        feed(text, "bench.txt")
        return time.process_time() - begin

    once = max(min(cost(seed) for _ in range(3)), 0.01)
    assert once < 2.0
    assert min(cost("\n".join([seed] * 4)) for _ in range(2)) < 12 * once + 0.3
