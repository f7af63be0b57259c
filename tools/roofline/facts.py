"""Estimates and model shapes as :class:`~tools.contract.Reading` of the vocabulary ``knowledge/facts/roofline.yaml``."""

from __future__ import annotations

from typing import Any

from tools.contract import Reading, Source
from tools.roofline.capacity import printed_over_computed
from tools.roofline.checks import Comparison, Measured
from tools.roofline.floors import Estimate, Times
from tools.roofline.kv import bytes_per_token, fixed_bytes, kv_format
from tools.roofline.request import Layout
from tools.roofline.shape import ModelShape
from tools.roofline.work import distinct_experts, weight_bytes_per_gpu

_SHARES = {
    "dense FFN weights": "weights",
    "attention weights": "weights",
    "shared expert weights": "weights",
    "recurrent weights": "weights",
    "router": "weights",
    "output head": "weights",
    "per-layer inputs": "weights",
    "expert weights": "experts",
    "KV cache": "kv",
    "recurrent state": "kv",
    "launch and small kernels": "launch",
    "collectives": "collectives",
    "other requests' prompts": "prompts",
    "scheduling and sampling": "host",
}


def model_readings(model: ModelShape, source: Source, labels: dict[str, str] | None = None) -> list[Reading]:
    """Facts of a model shape; sizes in bytes and billions of parameters."""
    form = kv_format("auto", hint=model.kv_hint, mla=model.is_mla())
    ffn = next((g.ffn for g in model.layers if g.ffn and g.ffn.experts), None)
    values: dict[str, tuple[Any, str]] = {
        "model.name": (model.name, "as given"),
        "model.type": (model.model_type, "model_type of the config"),
        "model.params_b": (round(model.params() / 1e9, 4), "sum of all projections, embedding, head and norms"),
        "model.active_params_b": (round(model.active_params() / 1e9, 4), "top-k experts, head, no embedding"),
        "model.weights_dtype": (model.weights, "quantisation of the config, else its dtype"),
        "model.weight_bytes": (round(weight_bytes_per_gpu(model, Layout())), "each tensor class at its own precision"),
        "model.layers": (model.depth(), "blocks"),
        "model.hidden_size": (model.hidden, "hidden_size"),
        "model.heads": (model.heads(), "widest layer"),
        "model.kv_heads": (model.kv_heads(), "fewest of a layer"),
        "model.max_context_tokens": (model.max_context or None, "max_position_embeddings"),
        "model.experts": (ffn.experts if ffn else None, "routed experts of a layer"),
        "model.experts_per_token": (ffn.top_k if ffn else None, "top-k"),
        "model.is_moe": (model.is_moe(), "any layer routes"),
        "model.is_mla": (model.is_mla(), "latent cache"),
        "model.is_hybrid": (model.is_hybrid(), "any layer keeps a state"),
        "model.has_sliding_window": (any(g.attn and g.attn.window for g in model.layers), "any layer has a window"),
        "model.kv_bytes_per_token": (round(bytes_per_token(model, form)), f"{form.bytes:g} bytes an element"),
        "model.kv_fixed_bytes": (round(fixed_bytes(model, form)), "full windows and states"),
        "model.kv_dtype_hint": (model.kv_hint or None, "kv_cache_scheme of the quantisation"),
    }
    return [
        Reading(fact=fact, value=value, source=source, method=method, labels=labels or {}, caveats=model.caveats)
        for fact, (value, method) in values.items()
        if value is not None and value != ""
    ]


def _times(prefix: str, times: Times) -> dict[str, float]:
    return {
        f"{prefix}.hard_floor_ms": times.hard,
        f"{prefix}.expected_floor_ms": times.expected,
        f"{prefix}.practical_floor_ms": times.practical,
        f"{prefix}.typical_ms": times.typical,
    }


def _round(value: float) -> float:
    return float(f"{value:.5g}")


def estimate_readings(
    estimate: Estimate,
    inputs: tuple[str, ...] = (),
    labels: dict[str, str] | None = None,
    printed_kv_tokens: float | None = None,
) -> list[Reading]:
    """Facts of an estimate. ``inputs``: evidence ids or fact names it was computed from; ``printed_kv_tokens``: the
    cache size the engine logged, compared with the computed one."""
    room, request = estimate.capacity, estimate.request
    shares: dict[str, float] = {}
    for name, share in estimate.shares.items():
        key = f"roofline.share.{_SHARES[name]}"
        shares[key] = shares.get(key, 0.0) + share
    want = request.decoding()
    values: dict[str, Any] = {
        **_times("roofline.tpot", estimate.tpot),
        **_times("roofline.ttft", estimate.ttft),
        **shares,
        "roofline.limiter": estimate.limiter,
        "roofline.weights.bytes_per_gpu": room.weights,
        "roofline.fits": room.fits,
        "roofline.kv.bytes_per_token": room.per_token,
        "roofline.kv.bytes_per_sequence": room.sequence,
        "roofline.kv.pool_bytes": room.pool,
        "roofline.kv.capacity_tokens": room.tokens,
        "roofline.kv.max_concurrency": room.concurrency,
        "roofline.batch": estimate.batch,
        "roofline.ridge_tokens": request.gpu.ridge("bf16"),
    }
    if room.concurrency:
        values["roofline.kv.demand_over_capacity"] = want / room.concurrency
    ffn = next((g.ffn for g in request.model.layers if g.ffn and g.ffn.experts), None)
    if ffn:
        values["roofline.expected_experts"] = distinct_experts(ffn.experts, ffn.top_k, max(1.0, estimate.batch))
    if printed_kv_tokens is not None:
        values["roofline.kv.engine_over_computed"] = printed_over_computed(request, printed_kv_tokens)
    if estimate.per_request and estimate.per_request.expected > 0:
        values["roofline.throughput.ceiling_rps"] = 1e3 / estimate.per_request.expected
    method = (
        f"{request.model.name} ({request.model.weights}) on {request.layout.gpus()} x {request.gpu.name}, tp "
        f"{request.layout.tp}, {estimate.batch:.4g} sequences of {estimate.context:.5g} tokens"
    )
    return _readings(values, inputs, method, labels, (*estimate.warnings, *estimate.caveats))


def comparison_readings(
    seen: Measured,
    result: Comparison,
    estimate: Estimate,
    inputs: tuple[str, ...] = (),
    labels: dict[str, str] | None = None,
) -> list[Reading]:
    """Facts of a measurement against its floors; what was not measured has no reading."""
    floor = estimate.ttft.expected
    over = seen.ttft_ms / floor if seen.ttft_ms is not None and floor > 0 else None
    values: dict[str, Any] = {
        "roofline.tpot.measured_over_hard": result.over_hard,
        "roofline.tpot.measured_over_expected": result.over_expected,
        "roofline.tpot.measured_over_typical": result.over_typical,
        "roofline.ttft.excess_ms": result.excess_ttft_ms,
        "roofline.ttft.measured_over_floor": over,
        "roofline.mbu": result.mbu,
        "roofline.mfu": result.mfu,
        "roofline.batch_from_rate": result.little_batch,
        "roofline.at_limit": result.at_limit,
        "roofline.measurement_broken": bool(result.broken),
    }
    method = "measured " + ", ".join(
        f"{name} {value:.4g}"
        for name, value in (
            ("ms a token", seen.tpot_ms),
            ("ms to the first token", seen.ttft_ms),
            ("output tok/s", seen.output_tps),
            ("prompt tok/s", seen.prompt_tps),
            ("requests/s", seen.request_rps),
        )
        if value is not None
    )
    return _readings(values, inputs, method, labels, (*result.broken, *estimate.warnings, *estimate.caveats))


def _readings(
    values: dict[str, Any], inputs: tuple[str, ...], method: str, labels: dict[str, str] | None, notes: tuple[str, ...]
) -> list[Reading]:
    source = Source(kind="computed", ref="tools.roofline", inputs=inputs)
    return [
        Reading(
            fact=fact,
            value=_round(value) if isinstance(value, float) else value,
            source=source,
            method=method,
            labels=labels or {},
            caveats=notes,
        )
        for fact, value in values.items()
        if value is not None
    ]
