"""Chrome traces: any separator, nested braces, cut ends, odd types; block borders never change the result."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from evals.bench import synth_profiles as synth
from tools.contract import Context
from tools.part import Part
from tools.profile import json_stream
from tools.profile.model import Profile
from tools.profile.read import read, summarize
from tools.profile.trace import read_trace


def event(name: str, ts: float, dur: float, cat: str = "kernel", **args: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": 0,
        "tid": 7,
        "ts": ts,
        "dur": dur,
        "args": {"device": 0, "stream": 7, **args},
    }


def trace(text: str | bytes, name: str = "t.json") -> Profile:
    return read_trace(Part(name=name, data=text if isinstance(text, bytes) else text.encode()))


EVENTS = [
    event('gemm }, { "ph" \\ kernel', i * 10.0, 4.0, nested=[{"ph": "x", "deep": [{"a": "}, {"}]}, {"ph": 2}])
    for i in range(400)
]


@pytest.mark.parametrize("block", [200, 777, 5000])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (",\n  ", " : ")])
def test_block_borders_do_not_matter(monkeypatch: pytest.MonkeyPatch, block: int, separators: tuple[str, str]) -> None:
    text = json.dumps(
        {"deviceProperties": [{"name": "H100"}], "traceEvents": EVENTS, "distributedInfo": {"rank": 3}},
        separators=separators,
    )
    small = json_stream.chunks.__defaults__
    monkeypatch.setattr(json_stream.chunks, "__defaults__", (block,))
    profile = trace(text)
    monkeypatch.setattr(json_stream.chunks, "__defaults__", small)
    assert profile.kernel_count == 400
    assert profile.kernel_total == pytest.approx(400 * 4000)
    assert (profile.device_name, profile.rank, profile.truncated) == ("H100", "3", False)
    assert [p for p in profile.problems if p.severity != "note"] == []


def test_a_list_and_other_arrays_after_the_events() -> None:
    assert trace(json.dumps(EVENTS)).kernel_count == 400
    text = json.dumps(
        {"traceEvents": EVENTS[:5], "stackFrames": [{"ph": i} for i in range(50)], "distributedInfo": {"rank": 1}}
    )
    profile = trace(text)
    assert (profile.kernel_count, profile.rank) == (5, "1")


@pytest.mark.parametrize("cut", [0.3, 0.7, 0.99])
def test_a_cut_trace_gives_its_whole_events(cut: float) -> None:
    text = json.dumps({"traceEvents": EVENTS})
    part = text[: int(len(text) * cut)]
    profile = trace(part)
    assert profile.kernel_count == pytest.approx(400 * cut, abs=3)
    assert profile.truncated
    assert any("ends in the middle" in p.what for p in profile.problems)


def test_a_cut_gzip_gives_its_whole_events() -> None:
    import random

    rnd = random.Random(1)
    rows = [event(f"gemm_{rnd.random()}", i * 10.0, 4.0) for i in range(3000)]
    packed = gzip.compress(json.dumps({"traceEvents": rows}).encode())
    profile = trace(packed[: len(packed) // 2], "t.json.gz")
    assert 800 < profile.kernel_count < 2200
    assert any("compressed data is cut" in p.what for p in profile.problems)
    assert trace(packed, "t.json.gz").kernel_count == 3000
    assert trace(packed, "t.json.gz").problems == []
    two = gzip.compress(json.dumps({"traceEvents": rows}).encode()[:1000]) + gzip.compress(
        json.dumps({"traceEvents": rows}).encode()[1000:]
    )
    assert trace(two, "t.json.gz").kernel_count == 3000


def test_odd_events_cost_themselves_only() -> None:
    odd: list[Any] = [
        {"ph": "X", "cat": "kernel", "name": 5, "ts": "12.5", "dur": "3", "args": "text"},
        {"ph": "X", "cat": "kernel", "name": "a", "ts": None, "dur": 1},
        {"ph": "X", "cat": "kernel", "name": "b", "ts": 1, "dur": -4},
        7, None, [], {"ph": {"x": 1}},
    ]  # fmt: skip
    profile = trace(json.dumps({"traceEvents": [*EVENTS[:3], *odd, *EVENTS[3:6]]}))
    assert profile.kernel_count == 7
    assert any("cannot be read" in p.what for p in profile.problems)
    text = json.dumps({"traceEvents": EVENTS[:4]}).replace('"dur": 4.0', '"dur": NaN', 1)
    assert trace(text).kernel_count == 3


def test_ranges_on_the_device_are_no_kernels() -> None:
    rows = [event("gemm", 0, 10), event("execute_context_0(0)_generation_8(8)", 0, 100, "gpu_user_annotation")]
    profile = trace(json.dumps({"traceEvents": rows}))
    assert profile.kernel_total == 10_000
    assert profile.steps.batch == [8]


def test_self_time_of_operators_without_a_gpu() -> None:
    rows = [
        event("aten::linear", 0, 100, "cpu_op"),
        event("aten::addmm", 10, 70, "cpu_op"),
        event("aten::copy_", 200, 20, "cpu_op"),
    ]
    profile = trace(json.dumps({"traceEvents": rows}))
    assert {op.name: op.total for op in profile.ops} == {
        "aten::linear": 30_000,
        "aten::addmm": 70_000,
        "aten::copy_": 20_000,
    }
    facts = {
        r.fact: r.value
        for r in read([Part(name="t.json", data=json.dumps({"traceEvents": rows}).encode())], Context()).readings
    }
    assert facts["profile.op_share.gemm"] == pytest.approx(100 / 120)
    assert not any(fact.startswith("profile.kernel_share") for fact in facts)


def test_ranks_are_compared_without_their_collectives(tmp_path: Path) -> None:
    parts = []
    for rank, busy in enumerate((100.0, 100.0, 160.0)):
        rows = [event("gemm", 0, busy), event("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", busy, 400 - busy)]
        data = {"distributedInfo": {"rank": rank, "world_size": 3}, "traceEvents": rows}
        parts.append(Part(name=f"rank{rank}.json", data=json.dumps(data).encode()))
    result = read(parts, Context())
    skew = next(r for r in result.readings if r.fact == "profile.rank_skew")
    assert skew.value == pytest.approx(160 / 120, rel=1e-3)
    assert "rank 2" in skew.method
    assert {r.labels.get("rank") for r in result.readings if r.fact == "profile.kernel_share.gemm"} == {"0", "1", "2"}


def test_gzip_and_plain_agree(tmp_path: Path) -> None:
    synth.write_trace(tmp_path / "a.json", 1_500)
    synth.write_trace(tmp_path / "a.json.gz", 1_500)
    plain, packed = summarize(tmp_path / "a.json"), summarize(tmp_path / "a.json.gz")
    assert plain.kernels == packed.kernels
    assert plain.spans == packed.spans
    assert plain.spans[0].gaps.host_late is not None
