"""Real files, read in place: every one gives facts or is refused by name, and known ones say what they are known for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from knowledge.loader import load
from tools.contract import Context
from tools.logs.read import read
from tools.part import Part

SHARED = Path(__file__).resolve().parents[4] / "shared"
FILES = sorted((SHARED / "samples" / "logs").glob("*")) + sorted((SHARED / "incidents" / "worlds").glob("*/*.log"))
FILES += sorted((SHARED / "lab" / "worlds").glob("*/server.log"))
pytestmark = pytest.mark.skipif(not FILES, reason="the sample files do not lie beside the project")


def facts(path: Path) -> dict[str, Any]:
    result = read([Part(name=path.name, path=path)], Context())
    known = load().facts
    assert {r.fact for r in result.readings} <= set(known)
    assert result.readings or result.problems
    return {r.fact: r.value for r in result.readings}


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_each_file_is_read(path: Path) -> None:
    assert facts(path)["log.lines"] >= 1


@pytest.mark.parametrize(
    ("file", "want"),
    [
        (
            "samples/logs/vllm-0112-ansi.log",
            {"engine.version": "0.11.2", "log.kv_cache.tokens": 868080, "log.startup_completed": True},
        ),
        (
            "samples/logs/vllm-0251-int4-long.log",
            {"log.jit_during_inference": 4, "log.cudagraph_downgraded": "PIECEWISE"},
        ),
        (
            "samples/logs/vllm-0251-max-model-len-rejected.log",
            {"log.max_model_len_rejected": 999999, "log.first_exception_at": "startup"},
        ),
        ("samples/logs/vllm-0251-unrecognized-argument.log", {"log.unrecognized_arguments": "--no-such-flag 3"}),
        ("samples/logs/vllm-boot-insufficient-excerpt.log", {"log.oom": True, "log.engine_dead": True}),
        (
            "samples/logs/vllm-v0-4x-excerpt.log",
            {"engine.generation": "V0", "queue.waiting.max": 115, "kv.usage.max": 0.99},
        ),
        ("samples/logs/vllm-v0-6x-excerpt.log", {"log.engine_dead": True}),
        ("samples/logs/sglang-spark-crash.log", {"engine.name": "sglang", "log.ended_abruptly": True}),
        ("incidents/worlds/inc-001/server.log", {"log.kv_padding_percent": 60, "log.equivalent_utilization": 0.5413}),
        ("incidents/worlds/inc-009/startup_excerpt.log", {"log.sglang.max_running_requests_effective": 9}),
        ("incidents/worlds/inc-008/server.log", {"log.cudagraph_truncated_to": 4}),
        ("incidents/worlds/inc-041/server.log", {"log.falling_back_v0": "--preemption-mode"}),
        ("incidents/worlds/inc-043/server.log", {"log.generation_stalls": 1, "queue.waiting.max": 0}),
        ("incidents/worlds/inc-002/server.log", {"log.kv_transfer.init_ms": pytest.approx(1800.311, abs=0.01)}),
    ],
)
def test_known_files(file: str, want: dict[str, Any]) -> None:
    got = facts(SHARED / file)
    assert {name: got.get(name) for name in want} == want
