"""Four numbers kept apart, what binds, measurements against floors, and properties that must always hold."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from tools.roofline.checks import Measured, compare, little
from tools.roofline.floors import batch_times, decode_times, estimate, first_times, throughput_times
from tools.roofline.hardware import Hardware, hardware_from_text
from tools.roofline.model import model_from_name, with_weights
from tools.roofline.request import Layout, Request, layout_of
from tools.roofline.shape import ModelShape
from tools.roofline.typical import engine_of, era_factor, expert_skew, first_token_seconds, share_of, step_parts
from tools.roofline.work import weight_bytes_per_gpu

MODELS = ("llama-3.1-8b", "llama-3.1-70b-fp8", "qwen3-30b-a3b", "gpt-oss-120b", "deepseek-v3", "qwen3-next", "gemma-3-27b",
          "deepseek-v4-flash", "nemotron-3-nano")  # fmt: skip
GPUS = ("h100 sxm", "h200 sxm", "b200", "a100 sxm", "mi300x", "l40s")
FAST = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def make(name: str = "llama-3.1-70b-fp8", gpu: str = "h200 sxm", tp: int = 4, **fields: object) -> Request:
    model, part, layout = model_from_name(name), hardware_from_text(gpu), layout_of(tp=tp)
    assert isinstance(model, ModelShape)
    assert isinstance(part, Hardware)
    assert isinstance(layout, Layout)
    return structs.replace(Request(model=model, gpu=part, layout=layout), **fields)  # type: ignore[arg-type]


def test_spec_bandwidth_times_of_worked_examples() -> None:
    for name, batch, context, expected in (
        ("llama-3.1-8b", 1, 2048, 4.6),
        ("llama-3.1-8b", 64, 2048, 9.6),
        ("qwen3-30b-a3b", 16, 2048, 12.8),
    ):
        request = make(name, "h100 sxm", 1, batch=batch, context=context, kv="bf16")
        assert decode_times(request, batch)[0].expected == pytest.approx(expected, rel=0.02)


def test_prompt_floor_of_seventy_billion() -> None:
    request = make("llama-3.1-70b", "h100 sxm", 4, isl=8192.0, kv="bf16")
    assert first_times(request).hard == pytest.approx(306, rel=0.01)


def test_throughput_at_full_load_is_bound_by_arithmetic_there() -> None:
    times = throughput_times(make(tp=1, isl=2048, osl=128, kv="fp8", engine="trtllm"))
    assert times.hard == pytest.approx(153.8, rel=0.002)


def test_what_binds_follows_the_load() -> None:
    def limiter(**fields: object) -> str:
        return estimate(make(**fields)).limiter  # type: ignore[arg-type]

    assert limiter(name="llama-3.1-8b", gpu="h100 sxm", tp=1, batch=1.0) == "dense weights"
    assert (
        limiter(name="llama-3.1-8b", gpu="h100 sxm", tp=1, batch=100.0, context=4000.0, offline=True) == "KV bandwidth"
    )
    assert limiter(name="llama-3.1-8b", gpu="h100 sxm", tp=1, batch=100.0, context=90000.0) == "capacity"
    assert limiter(name="deepseek-v3", tp=8, batch=64.0, offline=True) == "expert weights"
    assert limiter(name="llama-3.1-8b", gpu="b200", tp=8, batch=1.0) == "launch"
    assert limiter(batch=64.0, concurrency=64.0, isl=16000.0, osl=128.0) == "prompt interference"
    assert limiter(name="llama-3.1-8b", gpu="h20", tp=1, batch=200.0, context=64.0, offline=True) == "compute"


def test_a_request_that_does_not_fit_says_by_how_much() -> None:
    result = estimate(make("llama-3.1-70b", "h100 sxm", 1))
    assert result.limiter == "capacity"
    assert any("short by" in text for text in result.warnings)
    clipped = estimate(make("llama-3.1-8b", "h100 sxm", 1, concurrency=5000.0, isl=2000.0, osl=2000.0))
    assert clipped.batch < 400
    assert any("batch clipped" in text for text in clipped.warnings)


def test_a_measurement_between_the_floors() -> None:
    result = estimate(make(batch=16.0, concurrency=16.0, low=0.8, mean=0.9, kv="fp8", engine="trtllm"))
    seen = compare(result, Measured(tpot_ms=8.93, ttft_ms=282.0, output_tps=16 / 8.93e-3, request_rps=2.0))
    assert seen.over_hard == pytest.approx(2.39, rel=0.01)
    assert seen.mbu is not None and 0.40 < seen.mbu < 0.46
    assert seen.mfu is not None and 0.0 < seen.mfu < 0.2
    assert seen.excess_ttft_ms == pytest.approx(282 - result.ttft.expected)
    assert seen.little_batch == pytest.approx(16)
    assert seen.broken == ()
    assert not seen.at_limit


def test_broken_measurements_are_named() -> None:
    result = estimate(make(batch=16.0, concurrency=16.0, kv="fp8", engine="trtllm"))
    assert "under the hard floor" in compare(result, Measured(tpot_ms=1.0)).broken[0]
    assert "to the first token" in compare(result, Measured(ttft_ms=0.5)).broken[0]
    assert "sequences decoding" in compare(result, Measured(tpot_ms=9.0, output_tps=9000.0)).broken[0]
    assert "dense peak" in compare(result, Measured(prompt_tps=1e9)).broken[0]
    assert little(1000.0, 10.0) == 10.0


def test_at_the_limit() -> None:
    result = estimate(make(batch=16.0, kv="fp8"))
    assert compare(result, Measured(tpot_ms=result.tpot.practical * 1.1)).at_limit
    assert not compare(result, Measured(tpot_ms=result.tpot.practical * 2.5)).at_limit
    assert not compare(result, Measured(tpot_ms=result.tpot.hard * 0.5)).at_limit


def test_batches_and_whole_estimates() -> None:
    request = make("llama-2-7b", "a100 sxm", 1, batch=32.0, isl=2048.0, osl=2048.0, kv="bf16")
    assert batch_times(request, 32.0).hard == pytest.approx(67_801, rel=0.001)
    whole = estimate(request, whole=True)
    assert whole.e2e is not None and whole.per_request is not None
    assert estimate(request).e2e is None


def test_old_engines_and_their_residual() -> None:
    assert era_factor("vLLM 0.6.1") > era_factor("vllm 0.9") > era_factor("vllm 0.18.0") == 1.0
    assert era_factor("vllm 0.6", amd=True) > era_factor("vllm 0.6")
    assert engine_of("TensorRT-LLM 1.0").dense < engine_of("sglang").dense
    assert engine_of("never heard of") == engine_of("vllm")
    assert share_of("hopper", "h200-sxm").weights > share_of("cdna3", "mi300x").weights


def test_busiest_expert_rank_and_eager_mode_cost() -> None:
    request = make("deepseek-v3", tp=8, batch=8.0)
    spread = structs.replace(request, layout=structs.replace(request.layout, ep=8))
    assert expert_skew(spread, 8) > 1.3 > expert_skew(spread, 4096) >= 1.0
    slow = sum(p.seconds for p in step_parts(structs.replace(request, eager=True), 8, 1000))
    assert slow > 1.5 * sum(p.seconds for p in step_parts(request, 8, 1000))


def test_cached_prompt_tokens_shorten_the_first_token() -> None:
    cold, warm = make(isl=8000.0), make(isl=8000.0, cached=7500.0)
    assert first_times(warm).hard < 0.2 * first_times(cold).hard
    assert first_token_seconds(warm) < 0.5 * first_token_seconds(cold)


@FAST
@given(
    name=st.sampled_from(MODELS),
    gpu=st.sampled_from(GPUS),
    batch=st.floats(1, 512),
    context=st.floats(1, 65536),
    tp=st.sampled_from([1, 2, 4, 8]),
)
def test_floors_are_ordered_and_batch_never_speeds_a_step_up(
    name: str, gpu: str, batch: float, context: float, tp: int
) -> None:
    request = make(name, gpu, tp, batch=batch, context=context)
    times = decode_times(request, batch)[0]
    assert 0 < times.hard <= times.expected <= times.practical
    assert times.typical > times.hard
    more = decode_times(structs.replace(request, batch=batch * 1.5), batch * 1.5)[0]
    for field in ("hard", "expected", "practical", "typical"):
        assert getattr(more, field) >= getattr(times, field) * (1 - 1e-9)


@FAST
@given(name=st.sampled_from(MODELS), batch=st.floats(1, 256), context=st.floats(1, 32768), factor=st.floats(1.01, 4))
def test_more_bandwidth_never_raises_a_floor(name: str, batch: float, context: float, factor: float) -> None:
    request = make(name, "h100 sxm", 2, batch=batch, context=context)
    gpu = structs.replace(request.gpu, bw=request.gpu.bw * factor, pin_bw=request.gpu.pin_bw * factor)
    slow, fast = decode_times(request, batch)[0], decode_times(structs.replace(request, gpu=gpu), batch)[0]
    for field in ("hard", "expected", "practical", "typical"):
        assert getattr(fast, field) <= getattr(slow, field) * (1 + 1e-9)


@FAST
@given(name=st.sampled_from(MODELS), tp=st.sampled_from([1, 2, 4, 8, 16]))
def test_tensor_parallelism_never_raises_weights_on_a_gpu(name: str, tp: int) -> None:
    model = model_from_name(name)
    assert isinstance(model, ModelShape)
    one, two = layout_of(tp=tp), layout_of(tp=2 * tp)
    assert isinstance(one, Layout) and isinstance(two, Layout)
    # Padding of the vocabulary to whole blocks may add a fraction of a percent.
    assert weight_bytes_per_gpu(model, two) <= weight_bytes_per_gpu(model, one) * 1.001


@FAST
@given(name=st.sampled_from(MODELS), prompt=st.floats(1, 65536), cached=st.floats(0, 1))
def test_longer_prompts_take_longer_and_caching_never_hurts(name: str, prompt: float, cached: float) -> None:
    request = make(name, isl=prompt)
    longer = first_times(structs.replace(request, isl=prompt * 1.3))
    times = first_times(request)
    assert longer.hard >= times.hard * (1 - 1e-9)
    warm = first_times(structs.replace(request, cached=cached * (prompt - 1) if prompt > 1 else 0.0))
    # A short prompt is bound by reading the weights; the cached prefix is then read on top of them.
    assert warm.hard <= times.hard * 1.03


@FAST
@given(
    name=st.sampled_from(("llama-3.1-70b", "deepseek-v3", "qwen3-30b-a3b")),
    word=st.sampled_from(("fp8", "nvfp4", "int4")),
)
def test_narrower_weights_never_raise_a_floor(name: str, word: str) -> None:
    request = make(name, batch=8.0)
    thin = structs.replace(request, model=with_weights(with_weights(request.model, "bf16"), word, low=True))
    wide = structs.replace(request, model=with_weights(request.model, "bf16"))
    assert decode_times(thin, 8)[0].hard < decode_times(wide, 8)[0].hard


UNITS = re.compile(
    r"second|field|\bms\b|_ms|byte|\bgb\b|flop|token|share|sequence|element|ratio|expert|factor|\brows?\b|pairs|ways|mean",
    re.I,
)


def test_units_stand_in_public_names_or_docstrings() -> None:
    checked = 0
    for path in sorted((Path(__file__).parents[3] / "tools" / "roofline").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            returns = ast.unparse(node.returns) if node.returns else ""
            if "float" not in returns and "Times" not in returns:
                continue
            checked += 1
            text = f"{node.name} {ast.get_docstring(node) or ''}"
            assert UNITS.search(text), f"{path.name}: {node.name} returns {returns} without a unit"
    assert checked > 40
