"""Mutated files never crash a reader, and never make it slow."""

from __future__ import annotations

import gzip
import io
import json
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evals.bench import synth_profiles as synth
from knowledge.loader import load
from tools.contract import Context, Problem, Reading
from tools.part import Part
from tools.profile.read import read

from .test_cpu import RAW


def _seeds() -> list[tuple[str, bytes]]:
    out: list[tuple[str, bytes]] = []
    for form in ("text", "box", "csv", "json"):
        text = io.StringIO()
        synth.write_reports(text, synth.reports(110, 1), form)
        out.append((f"stats-{form}.txt", text.getvalue().encode()))
    rows = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": f"gemm{i}",
            "pid": 0,
            "tid": 7,
            "ts": i * 10,
            "dur": 4,
            "args": {"device": 0},
        }
        for i in range(40)
    ]
    out.append(("t.json", json.dumps({"distributedInfo": {"rank": 0}, "traceEvents": rows}).encode()))
    out.append(("t.json.gz", gzip.compress(out[-1][1])))
    out.append(("stacks.txt", RAW.encode()))
    out.append(
        (
            "dump.txt",
            b'Process 1: VLLM::EngineCore\nThread 1 (active+gil): "MainThread"\n    schedule (vllm/v1/core/sched/scheduler.py:1)\n',
        )
    )
    scope = {
        "$schema": "speedscope",
        "shared": {"frames": [{"name": "a"}]},
        "profiles": [{"type": "sampled", "name": "x", "samples": [[0]], "weights": [1]}],
    }
    out.append(("s.speedscope.json", json.dumps(scope).encode()))
    return out


SEEDS = _seeds()
KNOWN = load().facts


def check(name: str, data: bytes) -> None:
    result = read([Part(name=name, data=data)], Context())
    assert all(isinstance(r, Reading) and r.fact in KNOWN for r in result.readings)
    assert all(isinstance(p, Problem) and p.what for p in result.problems)
    for r in result.readings:
        if r.fact.endswith("_share") or ".share." in r.fact or ".kernel_share." in r.fact:
            assert -1e-9 <= r.value <= 1 + 1e-6, r


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.sampled_from(SEEDS),
    edits=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=6), st.integers(0, 60)), max_size=5),
    cut=st.floats(0.05, 1),
)
def test_edits_inside_a_file(seed: tuple[str, bytes], edits: list[tuple[float, bytes, int]], cut: float) -> None:
    name, data = seed
    for place, new, gone in edits:
        at = int(place * len(data))
        data = data[:at] + new + data[at + gone :]
    check(name, data[: int(len(data) * cut)])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_damaged_database(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    blob = bytearray(DATABASE(tmp_path_factory))
    for _ in range(data.draw(st.integers(1, 12))):
        blob[data.draw(st.integers(20, len(blob) - 1))] = data.draw(st.integers(0, 255))
    check("a.sqlite", bytes(blob[: int(len(blob) * data.draw(st.floats(0.2, 1)))]))


_CACHE: list[bytes] = []


def DATABASE(factory: pytest.TempPathFactory) -> bytes:
    if not _CACHE:
        path: Path = factory.mktemp("db") / "a.sqlite"
        synth.write_sqlite(path, 300, 1)
        _CACHE.append(path.read_bytes())
    return _CACHE[0]


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("a.txt", lambda n: b"-" * n + b" " + b"-" * n),
        ("a.txt", lambda n: (b"a;" * n) + b"b 1\n" + b"a;b 1\n" * 3),
        ("a.txt", lambda n: b" Time (%)  Total Time (ns)  Instances  Name\n --------  ---------------  ---------  ----\n" + b"1 " * n),
        ("a.txt", lambda n: b"Time (%),Total Time (ns),Instances,Name\n" + b'1,1,1,"' + b"," * n),
        ("a.json", lambda n: b'{"traceEvents": [' + b"[" * n),
        ("a.json", lambda n: b'{"traceEvents": [{"ph": "X", "name": "' + b"\\" * n),
        ("a.json", lambda n: b'{"traceEvents": [' + b'{"a":' * n),
        ("a.svg", lambda n: b"<svg flame samples fg:w" + b"<title>" * n),
        ("a.txt", lambda n: b"| " * n + b"\n|---|---|\n" + b"| 1 " * n),
    ],
)  # fmt: skip
def test_hostile_shapes_stay_linear(name: str, make: object) -> None:
    times = []
    for size in (20_000, 80_000):
        data = make(size)  # type: ignore[operator]
        begin = time.process_time()
        check(name, data)
        times.append(time.process_time() - begin)
    assert times[1] < max(0.5, 12 * times[0]), times
