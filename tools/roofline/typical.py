"""What a well-kept engine is usually seen to reach, term by term. Half of all deployments do better.

A step takes: bytes and arithmetic at the shares of peak that real kernels reach, a residual per layer for launches,
serialisation and small kernels (by engine and by what the layer holds), collectives, a cost per step for scheduling
and sampling, and the prompts that are processed in between. Every constant stands in
``knowledge/hardware/efficiency.yaml`` with its reason. Times in seconds.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

from msgspec import Struct

from knowledge.loader import ROOT, read_yaml
from tools.roofline.comm import allreduces, prefill_seconds, step_seconds
from tools.roofline.hardware import Hardware
from tools.roofline.kv import kv_format
from tools.roofline.request import Request
from tools.roofline.work import Op, decode_ops, distinct_experts, prefill_ops


class Share(Struct, frozen=True):
    """Shares of published bandwidth (weights, experts, cache) and of dense peak (by arithmetic) in large kernels."""

    weights: float
    experts: float
    kv: float
    bf16: float
    fp8: float
    fp4: float
    attention: float
    launch: float


class Engine(Struct, frozen=True):
    """Residual microseconds per layer and per step of one engine, and its share of prompt time."""

    dense: float
    moe: float
    latent: float
    recurrent: float
    parallel: float
    step_us: float
    per_seq: float
    first_ms: float
    stall: float
    bandwidth: float
    hbm: float
    prompt: float
    quant: float
    fast: bool


class Part(Struct, frozen=True):
    """One term of a typical time: name, seconds, and how it came about."""

    name: str
    seconds: float
    how: str


@lru_cache(maxsize=1)
def _constants() -> dict[str, Any]:
    data = read_yaml(ROOT / "hardware" / "efficiency.yaml")
    return dict(data)


@lru_cache(maxsize=64)
def share_of(family: str, gpu_id: str) -> Share:
    """Shares for a hardware family, with a part's own figures on top."""
    table = _constants()["families"]
    base = dict(table["default"]) | dict(table.get(family, {})) | dict(_constants()["parts"].get(gpu_id, {}))
    base.pop("why", None)
    return Share(**base)


@lru_cache(maxsize=64)
def engine_of(name: str) -> Engine:
    """Constants of an engine by any of its names; vLLM's where the engine is not known."""
    table = _constants()["engines"]
    low = name.lower()
    key = next((k for k, spec in table.items() if any(word in low for word in spec["words"])), "vllm")
    base = dict(table["vllm"]) | dict(table[key])
    for extra in ("words", "why"):
        base.pop(extra, None)
    return Engine(**base)


@lru_cache(maxsize=256)
def era_factor(name: str, *, amd: bool = False, latent: bool = False) -> float:
    """How much larger the residual of an old engine is: by version, or by a year in its name."""
    low = name.lower()
    for rule in _constants()["eras"]:
        if rule["word"] not in low:
            continue
        kind = "latent" if latent and "latent" in rule else "amd" if amd and "amd" in rule else "factor"
        factor = float(rule[kind])
        found = re.search(r"(\d+)\.(\d+)", low.split(rule["word"], 1)[1])
        if found and "before" in rule and (int(found[1]), int(found[2])) < tuple(rule["before"]):
            return factor
        if "year" in rule and str(rule["year"]) in low:
            return factor
    return 1.0


def _era(request: Request) -> float:
    return era_factor(request.engine, amd=request.gpu.is_amd(), latent=request.model.is_mla())


def op_seconds(op: Op, gpu: Hardware, share: Share, engine: Engine, hidden: int = 4096) -> float:
    """Time of one operator: memory and arithmetic overlap in part, so the larger counts most."""
    rate = {"weights": share.weights, "head": share.weights, "experts": share.experts}.get(op.kind, share.kv)
    rate *= engine.bandwidth * (1.0 if _is_gddr(gpu) else engine.hbm)
    memory = op.bytes / (gpu.bw * rate)
    return math.hypot(memory, op.flops / math_rate(op, gpu, share, engine, hidden))


def _is_gddr(gpu: Hardware) -> bool:
    return "gddr" in gpu.family or gpu.family in ("ada", "turing", "apple", "pascal", "rdna3", "xe2")


def math_rate(op: Op, gpu: Hardware, share: Share, engine: Engine, hidden: int = 4096) -> float:
    """FLOP/s an operator reaches. Narrow formats gain with the model's width, as quantising and norms weigh less."""
    if op.kind in ("kv", "state"):
        return gpu.peak("bf16") * share.attention
    # A part without the format multiplies it at 16 bit after unpacking.
    have = op.math in gpu.peaks
    narrow = {"fp8": share.fp8, "int8": share.fp8, "fp4": share.fp4}.get(op.math) if have else None
    wide = min(2.0, max(0.5, hidden / 4096.0))
    if engine.fast:
        # llama.cpp multiplies at 16 bit with narrow accumulators, whatever the weights are stored in.
        return gpu.peak("bf16", fast=True) * share.bf16 * (0.75 if op.math == "int4" else 1.0)
    if narrow is None:
        return gpu.peak("bf16") * share.bf16 * math.pow(wide, 0.1)
    return gpu.peak(op.math) * narrow * math.pow(wide, 0.4) * (0.8 if op.kind == "experts" else 1.0)


def layer_seconds(request: Request, share: Share, engine: Engine) -> float:
    """Launches, serialisation and small kernels of all layers of one step."""
    model = request.model
    total = 0.0
    for group in model.layers:
        if group.attn or group.ffn:
            mixer, feed = 0.55 if group.attn else 0.0, 0.45 if group.ffn else 0.0
            total += group.count * engine.dense * (mixer + feed)
        if group.attn and group.attn.kind != "gqa":
            total += group.count * engine.latent * (1.5 if group.attn.index_dim else 1.0)
        if group.rec:
            total += group.count * (engine.dense * 0.55 + engine.recurrent)
        if group.ffn and group.ffn.experts:
            total += group.count * engine.moe
        if group.fmt.expert.math in ("fp8", "fp4") or group.fmt.ffn.math in ("fp8", "fp4"):
            total += group.count * engine.quant
    if request.layout.tp > 1:
        total += allreduces(model) * engine.parallel
    if request.eager:
        total += model.depth() * 160.0
    return total * 1e-6 * share.launch * _era(request)


def step_parts(request: Request, batch: float, context: float) -> list[Part]:
    """Terms of one decode step of ``batch`` sequences with ``context`` tokens each, without prompts in between."""
    model, gpu, layout = request.model, request.gpu, request.layout
    share, engine = share_of(gpu.family, gpu.id), engine_of(request.engine)
    form = kv_format(request.kv, hint=model.kv_hint, mla=model.is_mla())
    each = 1.0 + request.draft_tokens
    ops = decode_ops(model, layout, batch=batch, context=context, form=form, experts="typical", tokens_each=each)
    skew = expert_skew(request, batch) if layout.ep > 1 else 1.0
    parts = [
        Part(
            op.name,
            op_seconds(op, gpu, share, engine, model.hidden) * (skew if op.kind == "experts" else 1.0),
            _how(op, gpu),
        )
        for op in ops
    ]
    parts.append(Part("launch and small kernels", layer_seconds(request, share, engine), f"{model.depth()} layers"))
    talk = step_seconds(gpu, model, layout, batch)
    if talk:
        parts.append(Part("collectives", talk, f"{allreduces(model)} hand-overs, tp {layout.tp}"))
    rank = batch / (layout.dp * layout.replicas * layout.pp)
    host = (engine.step_us + engine.per_seq * rank) * 1e-6 * layout.pp * _era(request)
    parts.append(Part("scheduling and sampling", host, "per step and sequence"))
    return parts


def expert_skew(request: Request, batch: float) -> float:
    """Load of the busiest expert-parallel rank over the mean: the slowest rank sets the step."""
    ranks = float(request.layout.ep)
    tokens = max(1.0, batch / (request.layout.pp * request.layout.replicas))
    for group in request.model.layers:
        if group.ffn and group.ffn.experts:
            mean = distinct_experts(group.ffn.experts, group.ffn.top_k, tokens) / ranks
            peak = min(mean + math.sqrt(2.0 * mean * math.log(ranks)), group.ffn.experts / ranks)
            return max(1.0, peak / mean)
    return 1.0


def _how(op: Op, gpu: Hardware) -> str:
    bound = "compute" if op.flops / gpu.peak(op.math) > op.bytes / gpu.bw else "memory"
    return f"{op.bytes / 1e9:.3g} GB, {op.flops / 1e9:.3g} GFLOP, {bound}"


def prompt_seconds(request: Request, prompts: float = 1.0, *, prompt: float = 0.0, full: bool = False) -> float:
    """Compute time of ``prompts`` prompts at once. ``full``: all GPUs kept busy with prompts (offline throughput)."""
    model, gpu, layout = request.model, request.gpu, request.layout
    share, engine = share_of(gpu.family, gpu.id), engine_of(request.engine)
    form = kv_format(request.kv, hint=model.kv_hint, mla=model.is_mla())
    length = prompt or max(1.0, request.isl * request.mean)
    ops = prefill_ops(model, layout, prompt=length, cached=request.cached, prompts=prompts, form=form)
    rate = engine.prompt * (1.0 if _is_gddr(gpu) else engine.hbm)
    total = sum(op_seconds(op, gpu, share, engine, model.hidden) for op in ops) / rate
    new = max(1.0, length - request.cached)
    chunks = max(1.0, new * prompts / 8192.0)
    total += layer_seconds(request, share, engine) * chunks
    wide = max(1.0, min(prompts, layout.dp * layout.replicas))
    total += prefill_seconds(gpu, model, layout, new * prompts / wide)
    return total


def stall_seconds(request: Request, batch: float) -> float:
    """Time a token waits for other requests' prompts, in a closed loop of equal requests.

    Only arithmetic counts: the weights are read for the decoding sequences anyway. Requests of one length move in
    waves, so that about half of the prompts fall between tokens of nobody.
    """
    others = max(0.0, batch - 1.0) / request.layout.replicas
    if request.offline or others <= 0 or request.osl <= 1:
        return 0.0
    model, gpu = request.model, request.gpu
    share, engine = share_of(gpu.family, gpu.id), engine_of(request.engine)
    form = kv_format(request.kv, hint=model.kv_hint, mla=model.is_mla())
    length = max(1.0, request.isl * request.mean)
    ops = prefill_ops(model, request.layout, prompt=length, cached=request.cached, form=form)
    busy = sum(op.flops / math_rate(op, gpu, share, engine, model.hidden) for op in ops) / engine.prompt
    busy += prefill_seconds(gpu, model, request.layout, length - request.cached) * 0.5
    waves = 0.5 if request.mean >= 1.0 else 1.0
    # A prompt of one attention replica holds up the others only where they share experts.
    return engine.stall * waves * others * busy / request.layout.dp / max(2.0, request.osl * request.mean)


def first_token_seconds(request: Request) -> float:
    """A single request's own time to the first token: prompt work, hand-over, tokenisation and scheduling."""
    return prompt_seconds(request) + engine_of(request.engine).first_ms * 1e-3
