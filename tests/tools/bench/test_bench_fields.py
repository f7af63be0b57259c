"""Labels of all tools mean the same quantities, in the right unit."""

from __future__ import annotations

import pytest

from tools.bench.fields import UNITS, field
from tools.bench.run import is_inf, number


@pytest.mark.parametrize(
    ("label", "key", "scale"),
    [
        ("Mean TTFT (ms)", "ttft.mean_ms", 1.0),
        ("p99_itl_ms", "itl.p99_ms", 1.0),
        ("P95 Latency(s)", "e2e.p95_ms", 1000.0),
        ("ttft_s_median", "ttft.p50_ms", 1000.0),
        ("Output token throughput (tok/s)", "output_tokens_per_s", 1.0),
        ("Total Token throughput (tok/s)", "total_tokens_per_s", 1.0),
        ("Output Token Throughput Per User (tokens/sec/user)", "output_tokens_per_s_per_user", 1.0),
        ("Output Token Throughput (per sec)", "output_tokens_per_s", 1.0),
        ("Request throughput (req/s)", "requests_per_s", 1.0),
        ("requests_per_min", "requests_per_s", 1 / 60),
        ("Benchmark duration (s)", "duration_s", 1.0),
        ("Successful requests", "completed", 1.0),
        ("max_concurrent_requests", "peak_concurrency", 1.0),
        ("Maximum request concurrency", "concurrency", 1.0),
        ("TTFT min (ms)", "ttft.min_ms", 1.0),
        ("Acclen: theta 10000", "acceptance_length", 1.0),
        ("首 token 延迟 (ms)", "ttft.mean_ms", 1.0),
        ("prose_tps", "output_tokens_per_s", 1.0),
        ("prefill", "prefill_tokens_per_s", 1.0),
        ("Time taken for tests (s)", "duration_s", 1.0),
        ("Number of concurrency", "concurrency", 1.0),
        ("Average time to first token (s)", "ttft.mean_ms", 1000.0),
        ("Average time per output token (s)", "tpot.mean_ms", 1000.0),
        ("Average latency (s)", "e2e.mean_ms", 1000.0),
        ("Average package latency (s)", "itl.mean_ms", 1000.0),
        ("Average output tokens per request", "output_tokens", 1.0),
    ],
)
def test_label(label: str, key: str, scale: float) -> None:
    found = field(label)
    assert found is not None and found.key == key and found.key in UNITS
    assert found.scale == pytest.approx(scale)


@pytest.mark.parametrize(
    "label",
    ["Bus BW", "power_w", "std_ttft_ms", "p99.9_ttft_ms", "", "x" * 200, "temp_c", "prefill_p50_s", "decode (ms)"],
)
def test_other_labels_mean_nothing(label: str) -> None:
    assert field(label) is None


def test_numbers() -> None:
    assert number("5,807.03") == 5807.03 and number("~52") == 52 and number("> 34000") == 34000
    assert number("8K") == 8000 and number("87 %") == 87 and number("1’024") == 1024
    for text in ("N/A", "nan", "", "-", None, True, float("nan"), float("inf"), "x8"):
        assert number(text) is None
    assert is_inf("inf") and is_inf(float("inf")) and not is_inf("1")
