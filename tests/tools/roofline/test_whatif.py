"""Predicted changes: direction, range, side effects, and what cannot be applied."""

from __future__ import annotations

import pytest

from tools.roofline.build import key_of, missing_inputs, missing_reading, request_from
from tools.roofline.request import Request
from tools.roofline.shape import Refusal
from tools.roofline.whatif import Change, known_settings, whatif


def base(**more: object) -> Request:
    values: dict[str, object] = {
        "model": "Llama-3.1-70B-FP8",
        "gpu": "2x H100 SXM",
        "tensor_parallel_size": 2,
        "concurrency": 96,
        "isl": "4k",
        "osl": 512,
        "max_num_seqs": 256,
        "engine": "vllm 0.20",
    }
    request = request_from(values | more)
    assert isinstance(request, Request), request.line()
    return request


def change(settings: dict[str, str], **more: object) -> Change:
    return whatif(base(**more), settings)


def direction(result: Change, name: str) -> str:
    delta = result.of(name)
    assert delta is not None
    assert delta.low <= delta.change <= delta.high
    return delta.direction()


def test_eight_bit_cache_doubles_room_and_slows_nothing_at_the_same_batch() -> None:
    result = change({"kv_cache_dtype": "fp8"})
    room = result.of("kv_capacity_tokens")
    assert room is not None
    assert room.after == pytest.approx(2 * room.before)
    assert direction(result, "tpot_same_batch_ms") == "lower"
    assert direction(result, "max_concurrency") == "higher"
    assert direction(result, "ttft_floor_ms") == "same"
    assert any("accuracy" in text for text in result.effects)
    assert any("no more queueing" in text for text in result.effects)


def test_more_ranks_lower_every_time_and_say_what_they_cost() -> None:
    result = change({"tensor_parallel_size": "4"})
    assert result.after.request.layout.gpus() == 4
    for name in ("tpot_floor_ms", "tpot_same_batch_ms", "ttft_typical_ms", "weights_gb_per_gpu"):
        assert direction(result, name) == "lower"
    assert any("4 GPUs" in text for text in result.effects)
    deep = whatif(base(model="deepseek-v3", gpu="16x H200", tensor_parallel_size=8), {"tp": "16"})
    assert any("stands whole on every rank" in text for text in deep.effects)
    assert any("leaves the fast link" in text for text in deep.effects)
    few = whatif(base(model="qwen3-30b-a3b", gpu="8x H100 SXM", tensor_parallel_size=4), {"tp": "8"})
    assert any("stores a copy" in text for text in few.effects)


def test_fewer_seats_queue_the_rest() -> None:
    result = change({"max_num_seqs": "16"})
    assert result.after.batch == 16
    assert direction(result, "tpot_typical_ms") == "lower"
    assert any("80 of 96 requests then wait" in text for text in result.effects)


def test_other_hardware_and_formats_it_cannot_multiply() -> None:
    bigger = change({"gpu": "H200"})
    assert direction(bigger, "tpot_same_batch_ms") == "lower"
    assert direction(bigger, "max_concurrency") == "higher"
    slower = change({"gpu": "H20"})
    assert direction(slower, "ttft_typical_ms") == "higher"
    narrow = change({"quantization": "nvfp4"})
    assert any("has no FP4 arithmetic" in text for text in narrow.effects)
    assert any("accuracy check" in text for text in narrow.effects)
    full = change({"weights": "bf16"}, model="llama-3.1-70b", weights="fp8", gpu="2x L40S")
    assert any("does not fit" in text for text in full.effects)


def test_prefix_cache_eager_replicas_and_experts() -> None:
    warm = change({"prefix_hit_rate": "50%"})
    assert direction(warm, "ttft_typical_ms") == "lower"
    assert direction(warm, "tpot_floor_ms") == "same"
    eager = change({"enforce_eager": "true"})
    assert direction(eager, "tpot_typical_ms") == "higher"
    assert any("CUDA graphs" in text for text in eager.effects)
    twice = change({"gpus": "4"})
    assert twice.after.request.layout.replicas == 2
    assert direction(twice, "max_concurrency") == "higher"
    wide = whatif(base(model="deepseek-v3", gpu="8x H200", tensor_parallel_size=8), {"tp": "1", "dp": "8"})
    assert any("all-to-all" in text for text in wide.effects)
    assert direction(wide, "max_concurrency") == "higher"


def test_no_change_changes_nothing() -> None:
    result = change({"kv_cache_dtype": "auto"})
    assert {delta.direction() for delta in result.deltas} == {"same"}
    assert all(delta.low == delta.high == 0 for delta in result.deltas)


def test_what_cannot_be_applied_is_named_and_the_rest_computed() -> None:
    result = change({"kv": "zz", "color": "blue", "gpu": "abacus", "max_num_seqs": "16"})
    assert {refusal.field for refusal in result.refused} == {"kv_cache_dtype", "gpu"}
    assert result.ignored == ("color",)
    assert result.after.batch == 16
    assert whatif(base(), {"tp": "three"}).refused[0].field == "tp"
    assert whatif(base(), {"model": "nobody-7b"}).refused[0].field == "model"
    assert whatif(base(), {"prefix_hit_rate": "150%"}).refused[0].field == "prefix_hit_rate"
    assert whatif(base(), {"weights": "fp3"}).refused[0].field == "weights"


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"gpu": "h100"}, "model"),
        ({"model": "llama-3.1-8b"}, "gpu"),
        ({"model": "llama-3.1-8b", "gpu": "h100", "isl": "long"}, "isl"),
        ({"model": "llama-3.1-8b", "gpu": "h100", "isl": -4}, "isl"),
        ({"model": "llama-3.1-8b", "gpu": "h100", "gpu_memory_utilization": 90}, "memory_util"),
        ({"model": "llama-3.1-8b", "gpu": "8xh100", "tp": 3, "gpus": 8}, "gpus"),
        ({"model": "llama-3.1-8b", "gpu": "h100", "kv": "q17"}, "kv_cache_dtype"),
        ({"model": "llama-3.1-8b", "gpu": "h100", "weights": "fp3"}, "weights"),
        ({"model": "llama-3.1-8b", "gpu": "h100", "colour": 1}, "colour"),
    ],
)
def test_loose_figures_are_refused_by_field(values: dict[str, object], field: str) -> None:
    refused = request_from(values)
    assert isinstance(refused, Refusal)
    assert refused.field == field


def test_loose_figures_in_many_spellings() -> None:
    request = base(gpu_memory_bytes=85e9, kv_cache_dtype="fp8_e5m2", enforce_eager="True", isl="2,048")
    assert request.isl == 2048
    assert request.eager
    assert request.gpu.usable() == 85e9
    assert base(gpu="H100x8", tensor_parallel_size=None, concurrency=1).layout.tp == 8
    assert key_of("--max-num-seqs") == "max_num_seqs"
    assert key_of("kv-cache-dtype") == "kv"
    assert "tp" in known_settings()
    kept = base(dtype="bfloat16")
    assert kept.model.weights == "fp8"
    ep = base(model="deepseek-v3", gpu="8xH200", tensor_parallel_size=8, enable_expert_parallel=True)
    assert ep.layout.ep == 8


def test_the_missing_number_is_named() -> None:
    assert missing_inputs({"served_model_name": "x"}) == ["gpu", "measured time per token or time to first token"]
    assert missing_inputs({"model": "x", "gpu": "h100", "measured_tpot_ms": 3.0}) == []
    reading = missing_reading({"gpu": "h100"})
    assert reading is not None
    assert (reading.fact, reading.value) == ("roofline.missing_input", ["model"])
    assert missing_reading({"gpu": "h100", "model": "y"}) is None
