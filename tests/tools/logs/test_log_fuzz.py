"""Mutated logs of every family: nothing escapes the reader, and time grows with the size."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tools.logs.test_log_read import CORE, START, trace
from tests.tools.logs.test_log_series import v1
from tools.contract import Context
from tools.logs.prefix import parse
from tools.logs.read import read
from tools.logs.sniff import sniff
from tools.part import Part

SEEDS = [item[2] for item in yaml.safe_load((Path(__file__).parent / "lines.yaml").read_text(encoding="utf-8"))]
SEEDS += [START, v1(0, 1.0, 5.0, 4, 0, 50.0), *trace(CORE, "execute_model", "RuntimeError: x").splitlines()]
SEEDS += [
    "[2026-01-01 00:00:10 TP0] Decode batch [40], #running-req: 6, #token: 900, token usage: 0.95, gen throughput (token/s): 2",
    'INFO:     10.0.0.1:3 - "POST /v1/completions HTTP/1.1" 200 OK',
    '{"timestamp":"2026-01-01T00:00:00Z","level":"WARNING","message":"hot"}',
]
CUT = st.tuples(st.integers(0, 400), st.integers(0, 400), st.text(max_size=12))


def mutate(line: str, cuts: list[tuple[int, int, str]]) -> str:
    for at, length, put in cuts:
        at = min(at, len(line))
        line = line[:at] + put + line[min(len(line), at + length % 7) :]
    return line


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.sampled_from(SEEDS), st.lists(CUT, max_size=4)), min_size=1, max_size=12),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_mutated_lines_never_raise(items: list[tuple[str, list[tuple[int, int, str]]]], newline: str) -> None:
    text = newline.join(mutate(line, cuts) for line, cuts in items)
    result = read([Part(name="server.log", data=text.encode("utf-8", "replace"))], Context())
    assert all(r.source.ref == "server.log" for r in result.readings)
    assert 0.0 <= sniff("server.log", text) <= 1.0


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=3000))
def test_any_bytes_never_raise(data: bytes) -> None:
    read([Part(name="x.log", data=data)], Context())


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_a_line(text: str) -> None:
    assert isinstance(parse(text).text, str)


def cost(data: bytes) -> float:
    begin = time.process_time()
    read([Part(name="x.log", data=data)], Context())
    return time.process_time() - begin


HOSTILE: list[Any] = [
    b"(" * 60000,
    b"a " * 30000,
    b"[" + b"0-" * 30000,
    b"Custom allreduce is disabled because " + b"x" * 60000,
    b"Traceback (most recent call last):\n" + b'  File "a", line 1, in f\n' * 3000,
    b"Iteration(1): " + b"1 context requests, " * 3000,
    b"SpecDecoding metrics: Per-position acceptance rate: " + b"0.1, " * 12000,
    b"{" * 60000,
    b'"GET /' + b"a" * 60000,
    b"capture cuda graph begin [" + b"1, " * 20000,
    b"error: " + b"A." * 30000 + b"Error: x",
]


@pytest.mark.parametrize("seed", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_lines_cost_linear_time(seed: bytes) -> None:
    once = max(min(cost(seed) for _ in range(3)), 0.01)
    assert once < 2.0  # 60 kB: quadratic work would take far longer, a loaded machine does not
    assert min(cost(b"\n".join([seed] * 4)) for _ in range(2)) < 12 * once + 0.3
