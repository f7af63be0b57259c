"""Worked examples of a decode step and a prompt: bytes, arithmetic, distinct experts, capacity, ridge points."""

from __future__ import annotations

import pytest
from msgspec import structs

from tools.roofline.capacity import capacity, printed_over_computed, sequence_bytes, vllm_reported_tokens
from tools.roofline.comm import all_to_all_seconds, allreduce_seconds, allreduces, step_seconds
from tools.roofline.hardware import Hardware, hardware_from_text, with_memory
from tools.roofline.kv import KvFormat
from tools.roofline.model import model_from_name, with_weights
from tools.roofline.request import Layout, Request, layout_of
from tools.roofline.shape import ModelShape, Refusal
from tools.roofline.work import (
    attn_flops_per_row,
    causal_pairs,
    decode_ops,
    distinct_experts,
    prefill_ops,
    weight_bytes_per_gpu,
    zipf_experts,
)


def model(name: str, weights: str = "") -> ModelShape:
    shape = model_from_name(name)
    assert isinstance(shape, ModelShape)
    return with_weights(shape, weights, low=True) if weights else shape


def gpu(text: str) -> Hardware:
    part = hardware_from_text(text)
    assert isinstance(part, Hardware)
    return part


def layout(**figures: int) -> Layout:
    made = layout_of(**figures)
    assert isinstance(made, Layout)
    return made


def step_gb(name: str, batch: float, context: float, weights: str = "", kv: float = 2.0, **lay: int) -> float:
    ops = decode_ops(model(name, weights), layout(**lay), batch=batch, context=context, form=KvFormat(bytes=kv))
    return sum(op.bytes for op in ops) / 1e9


@pytest.mark.parametrize(
    ("name", "batch", "context", "weights", "kv", "lay", "gigabytes"),
    [
        ("llama-3.1-8b", 1, 2048, "", 2, {}, 15.28),
        ("llama-3.1-8b", 32, 2048, "", 2, {}, 23.6),
        ("llama-3.1-8b", 256, 2048, "", 2, {}, 83.7),
        ("llama-3.1-8b", 128, 2048, "fp8", 1, {}, 25.2),
        ("llama-3.1-70b", 1, 2048, "", 2, {"tp": 4}, 34.9),
        ("llama-3.1-70b", 64, 2048, "", 2, {"tp": 4}, 45.5),
        ("llama-3.1-70b", 64, 2048, "fp8", 1, {"tp": 4}, 23.0),
        ("qwen3-30b-a3b", 1, 2048, "", 2, {}, 6.3),
        ("qwen3-30b-a3b", 8, 2048, "", 2, {}, 27.5),
        ("qwen3-30b-a3b", 64, 2048, "", 2, {}, 72.4),
        ("deepseek-v3", 1, 4096, "", 2, {"tp": 8}, 6.0),
        ("deepseek-v3", 32, 4096, "", 2, {"tp": 8}, 64.5),
        ("deepseek-v3", 128, 4096, "", 2, {"tp": 8}, 120.3),
        ("deepseek-v3", 8, 4096, "", 2, {"tp": 1, "dp": 8, "ep": 8}, 35.85),
        ("deepseek-v3", 1024, 4096, "", 2, {"tp": 1, "dp": 8, "ep": 8}, 135.8),
        ("gemma-3-27b", 1, 8192, "", 2, {}, 55.1),
        ("gemma-3-27b", 32, 8192, "", 2, {}, 89.5),
        ("gpt-oss-120b", 1, 8192, "", 2, {}, 5.3),
        ("gpt-oss-120b", 64, 8192, "", 2, {}, 75.7),
        ("qwen3-next", 1, 32768, "", 2, {}, 8.1),
        ("qwen3-next", 32, 32768, "", 2, {}, 107.2),
        ("nemotron-h-56b", 1, 8192, "", 2, {"tp": 2}, 55.9),
        ("nemotron-h-56b", 32, 8192, "", 2, {"tp": 2}, 75.3),
    ],
)
def test_bytes_of_a_decode_step(
    name: str, batch: float, context: float, weights: str, kv: float, lay: dict[str, int], gigabytes: float
) -> None:
    assert step_gb(name, batch, context, weights, kv, **lay) == pytest.approx(gigabytes, rel=0.008)


@pytest.mark.parametrize(
    ("name", "prompt", "prompts", "lay", "teraflop"),
    [
        ("llama-3.1-8b", 1024, 1, {}, 14.57),
        ("llama-3.1-8b", 8192, 1, {}, 131.9),
        ("llama-3.1-70b", 8192, 1, {}, 1209.5),
        ("deepseek-v3", 8192, 1, {"tp": 8}, 858.0),
        ("deepseek-v3", 8192, 8, {"tp": 1, "dp": 8, "ep": 8}, 753.0),
    ],
)
def test_arithmetic_of_a_prompt(name: str, prompt: float, prompts: float, lay: dict[str, int], teraflop: float) -> None:
    made = layout(**lay)
    ops = prefill_ops(model(name), made, prompt=prompt, prompts=prompts, form=KvFormat())
    assert sum(op.flops for op in ops) * made.gpus() / prompts / 1e12 == pytest.approx(teraflop, rel=0.002)


def test_latent_attention_arithmetic_per_pair() -> None:
    attn = model("deepseek-v3").layers[0].attn
    assert attn is not None
    assert attn_flops_per_row(attn) == 278_528
    assert 2 * attn.heads * (attn.d + attn.dv) == 81_920


@pytest.mark.parametrize(
    ("experts", "top_k", "tokens", "uniform", "zipf"),
    [
        (128, 8, 4, 29.1, 24.4),
        (128, 8, 32, 111.8, 88.6),
        (128, 8, 128, 128.0, 124.7),
        (256, 8, 16, 102.0, 76.7),
        (256, 8, 64, 222.4, 172.0),
        (128, 4, 16, 51.0, None),
        (512, 10, 64, 367.1, None),
    ],
)
def test_distinct_experts(experts: int, top_k: int, tokens: float, uniform: float, zipf: float | None) -> None:
    assert distinct_experts(experts, top_k, tokens) == pytest.approx(uniform, abs=0.06)
    if zipf is not None:
        assert zipf_experts(experts, top_k, tokens) == pytest.approx(zipf, abs=0.06)


def test_causal_pairs_with_past_window_and_chunk() -> None:
    assert causal_pairs(4, 0) == 10
    assert causal_pairs(2, 3) == 9
    assert causal_pairs(5, 0, 2) == 1 + 2 + 2 + 2 + 2
    assert causal_pairs(2, 5, 3) == 6
    assert causal_pairs(6, 0, 4, chunked=True) == 1 + 2 + 3 + 4 + 1 + 2


@pytest.mark.parametrize(
    ("name", "math", "ridge"),
    [
        ("h100 sxm", "bf16", 295),
        ("h100 sxm", "fp8", 591),
        ("h200 sxm", "bf16", 206),
        ("h200 sxm", "fp8", 412),
        ("b200", "fp4", 1125),
        ("a100 sxm", "bf16", 153),
        ("mi300x", "fp8", 493),
        ("h20", "bf16", 37),
        ("l40s", "bf16", 419),
        ("rtx 4090", "bf16", 164),
    ],
)
def test_ridge_points(name: str, math: str, ridge: float) -> None:
    assert gpu(name).ridge(math) == pytest.approx(ridge, abs=0.6)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "kv", "lay", "pool_gb", "each_gb", "count"),
    [
        ("llama-3.1-8b", "bf16", {}, 53.9, 1.07, 50),
        ("llama-3.1-70b-fp8", "fp8", {"tp": 2}, 67.3 / 2, 1.34 / 2, 50),
        ("qwen3-30b-a3b", "bf16", {}, 8.9, 0.81, 11),
        ("gpt-oss-120b", "bf16", {}, 4.8, 0.307, 15),
        ("gemma-3-27b", "bf16", {}, 15.1, 1.11, 13),
    ],
)
def test_capacity_on_eighty_decimal_gigabytes(
    name: str, kv: str, lay: dict[str, int], pool_gb: float, each_gb: float, count: int
) -> None:
    part = with_memory(gpu("H100 SXM"), 80e9)
    room = capacity(Request(model=model(name), gpu=part, layout=layout(**lay), kv=kv), context=8192)
    assert room.pool / 1e9 == pytest.approx(pool_gb, abs=0.11)
    assert room.sequence / 1e9 == pytest.approx(each_gb, rel=0.01)
    assert int(room.concurrency) == count
    assert room.fits


def test_latent_cache_is_not_split_by_tensor_parallelism() -> None:
    form = KvFormat(bytes=2.0)
    deepseek = model("deepseek-v3")
    assert sequence_bytes(deepseek, layout(tp=8), 4096, form) == sequence_bytes(deepseek, layout(tp=1), 4096, form)
    llama = model("llama-3.1-70b")
    assert sequence_bytes(llama, layout(tp=16), 4096, form) == sequence_bytes(llama, layout(tp=8), 4096, form)
    assert sequence_bytes(deepseek, layout(tp=8, dcp=8), 4096, form) * 8 == sequence_bytes(
        deepseek, layout(), 4096, form
    )


def test_engine_reserves_more_than_the_window() -> None:
    request = Request(model=model("gpt-oss-120b"), gpu=gpu("H100 SXM"), max_model_len=131_072, max_batched_tokens=8192)
    tokens, ratio = vllm_reported_tokens(request)
    assert tokens == int(ratio * 131_072)
    plain = capacity(request, context=131_072).concurrency
    assert printed_over_computed(request, tokens * 0.5) == pytest.approx(0.5)
    assert printed_over_computed(structs.replace(request, memory_util=0.5), 1000.0) is None
    assert 0 < ratio < plain


def test_what_does_not_fit_is_short_by_a_number() -> None:
    room = capacity(Request(model=model("llama-3.1-70b"), gpu=gpu("H100 SXM")))
    assert not room.fits
    assert room.short == pytest.approx(weight_bytes_per_gpu(model("llama-3.1-70b"), Layout()) + 2e9 - room.budget)
    assert room.concurrency == 0


def test_collectives_of_a_seventy_billion_model() -> None:
    llama, part = model("llama-3.1-70b"), gpu("H100 SXM")
    assert allreduces(llama) == 160
    assert step_seconds(part, llama, layout(tp=8), 1) * 1e3 == pytest.approx(0.58, rel=0.06)
    assert step_seconds(part, llama, layout(tp=8), 64) * 1e3 == pytest.approx(2.2, rel=0.15)
    assert step_seconds(part, llama, layout(), 64) == 0.0
    assert step_seconds(gpu("L40S"), llama, layout(tp=4), 1) * 1e3 == pytest.approx(2.1, rel=0.12)


def test_expert_all_to_all_and_pairwise_links() -> None:
    deepseek = model("deepseek-v3")
    assert 58 * all_to_all_seconds(gpu("H200 SXM"), deepseek, 8, 1) * 1e3 == pytest.approx(1.4, rel=0.1)
    assert 58 * all_to_all_seconds(gpu("H200 SXM"), deepseek, 8, 128) * 1e3 == pytest.approx(6.0, rel=0.2)
    amd = gpu("MI300X")
    assert amd.fabric(2) == pytest.approx(64e9)
    assert amd.fabric(8) == pytest.approx(448e9)
    assert allreduce_seconds(amd, 2, 1 << 30) > allreduce_seconds(amd, 8, 1 << 30)


def test_layouts_that_do_not_multiply_out_are_refused() -> None:
    for bad in ({"gpus": 8, "tp": 3}, {"tp": 0, "gpus": -1}, {"tp": 99999}):
        refused = layout_of(**bad)
        assert isinstance(refused, Refusal)
    assert layout(gpus=8, tp=2).replicas == 4
    assert layout(gpus=8).tp == 8


def test_pipeline_stages_share_weights_not_time() -> None:
    llama = model("llama-3.1-70b")
    one, two = layout(tp=4), layout(tp=4, pp=2)
    assert weight_bytes_per_gpu(llama, two) == pytest.approx(weight_bytes_per_gpu(llama, one) / 2, rel=0.01)
    form = KvFormat()
    short = sum(op.bytes for op in decode_ops(llama, one, batch=1, context=1, form=form))
    assert sum(op.bytes for op in decode_ops(llama, two, batch=2, context=1, form=form)) == pytest.approx(short)


def test_speculation_multiplies_rows_not_weights() -> None:
    llama = model("llama-3.1-8b")
    plain = decode_ops(llama, Layout(), batch=4, context=100, form=KvFormat())
    drafted = decode_ops(llama, Layout(), batch=4, context=100, form=KvFormat(), tokens_each=4)
    assert sum(op.flops for op in drafted) == pytest.approx(4 * sum(op.flops for op in plain))
    assert sum(op.bytes for op in drafted) < 1.01 * sum(op.bytes for op in plain)


def test_a_hard_floor_counts_neither_shared_caches_twice_nor_wide_states() -> None:
    shared = model("gemma-3n-e4b")
    full = decode_ops(shared, Layout(), batch=8, context=4096, form=KvFormat())
    least = decode_ops(shared, Layout(), batch=8, context=4096, form=KvFormat(), experts="fewest")
    kv = [sum(op.bytes for op in ops if op.kind == "kv") for ops in (full, least)]
    assert kv[1] < 0.7 * kv[0]
    hybrid = model("qwen3-next")
    states = [
        sum(
            op.bytes
            for op in decode_ops(hybrid, Layout(), batch=1, context=1, form=KvFormat(), experts=mode)
            if op.kind == "state"
        )
        for mode in ("fewest", "uniform")
    ]
    assert states[1] / states[0] == pytest.approx(77.267 / 39.518, rel=0.001)


def test_request_helpers() -> None:
    request = Request(
        model=model("llama-3.1-8b"), gpu=gpu("H100 SXM"), concurrency=100, max_num_seqs=64, isl=1000, osl=200
    )
    assert request.decoding() == 64
    assert request.mid_context() == 1100
    assert structs.replace(request, mean=0.9).mid_context() == pytest.approx(990)
    assert structs.replace(request, context=7).mid_context() == 7
