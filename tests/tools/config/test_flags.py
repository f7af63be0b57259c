"""Existence, advice, description and mention of flags."""

from __future__ import annotations

import pytest

from tools.config.flags import advice_valid, describe_flag, engine_of, flag_exists, flags_mentioned, similar_flags


@pytest.mark.parametrize(
    ("flag", "engine", "version", "expected"),
    [
        ("--max-num-seqs", "vllm", "0.32.0", True),
        ("max_num_seqs", "vllm", "", True),
        ("swap-space", "vllm", "0.17.1", True),
        ("swap-space", "vllm", "0.18.0", False),
        ("swap-space", "vllm", "", None),
        ("num-scheduler-steps", "vllm", "0.10.0", True),
        ("num-scheduler-steps", "vllm", "0.10.1", False),
        ("speculative-config", "vllm", "0.8.1", False),
        ("speculative-config", "vllm", "0.8.2", True),
        ("watermark", "vllm", "0.23.0", False),
        ("watermark", "vllm", "0.24.0", True),
        ("no-enable-prefix-caching", "vllm", "0.20.0", True),
        ("-tp", "vllm", "0.20.0", True),
        ("metrics-port", "vllm", "0.20.0", False),
        ("not-a-flag", "vllm", "", False),
        ("max-num-seqs", "vllm", "9.0.0", None),
        ("swap-space", "vllm", "9.0.0", False),
        ("cuda-graph-max-bs", "sglang", "0.5.20", True),
        ("cuda-graph-max-bs", "sglang", "0.5.21", False),
        ("tp", "sglang", "0.5.9", True),
        ("num-shard", "tgi", "2.0", True),
        ("anything", "tgi", "2.0", None),
    ],
)
def test_flag_exists(flag: str, engine: str, version: str, expected: bool | None) -> None:
    assert flag_exists(flag, engine, version) is expected


@pytest.mark.parametrize(
    ("flag", "version", "expected"),
    [
        ("max-num-batched-tokens", "0.20.0", True),
        ("swap-space", "0.12.0", False),  # parsed, without effect in V1
        ("max-num-partial-prefills", "0.20.0", False),  # stops the start
        ("max-num-partial-prefills", "0.27.0", False),  # gone
        ("disable-cascade-attn", "0.32.0", False),
        ("gpu-memory-utilization", "0.30.0", True),
        ("kv-offloading-size", "", None),
    ],
)
def test_advice_is_valid_only_where_the_flag_does_something(flag: str, version: str, expected: bool | None) -> None:
    assert advice_valid(flag, "vllm", version) is expected


def test_describe_flag_tells_history_defaults_and_replacement() -> None:
    info = describe_flag("--max_num_partial_prefills")
    assert info is not None
    assert (info.since, info.gone, info.engine) == ("0.7.3", "0.27.0", "vllm")
    assert any("V0" in note for note in info.notes) and "long-prefill-token-threshold" in info.instead
    batch = describe_flag("max-num-batched-tokens", "vllm")
    assert batch is not None and any(line.startswith("8192") and "api_server" in line for line in batch.defaults)
    assert batch.means_zh
    tail = describe_flag("chat-template")
    assert tail is not None and tail.history == "0.4.3+" and not tail.fact
    sglang = describe_flag("mem-fraction-static")
    assert sglang is not None and sglang.engine == "sglang"
    assert describe_flag("no-such-flag-anywhere") is None


def test_similar_flags_and_engine_of() -> None:
    assert "max-num-batched-tokens" in similar_flags("max-num-batch-tokens", "vllm")
    assert engine_of("--mem-fraction-static") == "sglang"
    assert engine_of("--no-enable-chunked-prefill") == "vllm"
    assert engine_of("frobnicate") == ""


def test_flags_mentioned_in_prose() -> None:
    text = (
        "An article advises to set max-num-partial-prefills to 4, `--max_num_seqs=64` and VLLM_ATTENTION_BACKEND; "
        "a well-known long-term trade-off. —max-num-batched-tokens 8192, swap_space, --made-up-flag."
    )
    found = flags_mentioned(text)
    assert [m.flag for m in found] == [
        "max-num-partial-prefills",
        "max-num-seqs",
        "VLLM_ATTENTION_BACKEND",
        "max-num-batched-tokens",
        "swap-space",
        "made-up-flag",
    ]
    assert all(text[m.start : m.start + len(m.span)] == m.span for m in found)
    assert found[-1].engine == "" and found[0].engine == "vllm"
