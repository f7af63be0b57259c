"""Real result files, read in place: every one gives figures or is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.bench.read import read
from tools.contract import Context
from tools.part import Part

SHARED = Path(__file__).resolve().parents[4] / "shared"
FILES = sorted((SHARED / "samples" / "bench").glob("*")) + sorted((SHARED / "lab" / "vllm-bench-serve").glob("*"))
FILES += sorted((SHARED / "lab" / "worlds").glob("*/client.json")) + sorted(
    (SHARED / "incidents" / "worlds").glob("*/bench*.txt")
)
pytestmark = pytest.mark.skipif(not FILES, reason="the sample files do not lie beside the project")


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_each_file_is_read_or_refused_by_name(path: Path) -> None:
    result = read([Part(name=path.name, path=path)], Context())
    figures = [r for r in result.readings if r.fact not in ("bench.runs", "bench.tool")]
    assert figures or any(problem.ref == path.name for problem in result.problems)
    for reading in figures:
        assert reading.value == reading.value and reading.value not in (float("inf"), None)  # NaN differs from itself


@pytest.mark.parametrize(
    ("file", "fact", "want"),
    [
        ("inferencex-glm5-isl10240-c32.json", "bench.ttft.p50_ms", 15231.834566),
        ("vllm-bench-serve-0251-all-failed.json", "bench.all_failed", True),
        ("inference-perf-vllm-stage_6_lifecycle_metrics.json", "bench.client_late", True),
        ("evalscope-style-text-glm52-h200.txt", "bench.e2e.p99_ms", 858570),
        ("genai-perf.csv", "bench.ttft.p99_ms", 3457.97),
        ("aiperf-console-goodput.txt", "bench.goodput_requests_per_s", 0.14),
        ("sglang-bench-deepseek-dp.jsonl", "bench.output_tokens", 512),
        ("vllm-bench-serve-text-dsr1-h200.txt", "bench.itl_over_tpot", 0.5245),
        ("spark-results-vllm.json", "bench.few_requests", True),
    ],
)
def test_known_figures(file: str, fact: str, want: float | bool) -> None:
    result = read([Part(name=file, path=SHARED / "samples" / "bench" / file)], Context())
    assert next(r.value for r in result.readings if r.fact == fact) == want
