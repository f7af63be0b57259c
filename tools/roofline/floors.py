"""Hard, expected and practical floors and the typical time of a decode step, a first token, a batch and a request.

Four numbers that are kept apart. *Hard*: pin-rate bandwidth, dense peak at its fastest, last-level cache taken off,
the fewest experts, 8-bit cache where possible, shortest sampled length, no latency: a correct measurement is never
below it. *Expected*: the same with the number of experts that uniform routing touches. *Practical*: bytes at the best
share of bandwidth any kernel was seen to reach, lowest collective latencies, 1.5 us a kernel. *Typical*: see
:mod:`tools.roofline.typical`. All in milliseconds.
"""

from __future__ import annotations

from msgspec import Struct, structs

from tools.roofline.capacity import Capacity, capacity, largest_batch
from tools.roofline.comm import allreduces, prefill_seconds, step_seconds
from tools.roofline.kv import KvFormat, kv_format
from tools.roofline.request import Request
from tools.roofline.shape import Math
from tools.roofline.typical import Part, first_token_seconds, prompt_seconds, stall_seconds, step_parts
from tools.roofline.work import Coverage, Op, decode_ops, prefill_ops

KERNEL_SECONDS = 1.5e-6


class Times(Struct, frozen=True, kw_only=True):
    """One quantity's four numbers in milliseconds."""

    hard: float
    expected: float
    practical: float
    typical: float


class Estimate(Struct, frozen=True, kw_only=True):
    """Everything known of a request. Times in ms. ``batch``: sequences in a step after clipping to what fits;
    ``shares``: part of the typical step per term; ``limiter``: the term that binds; ``per_request``: ms of the whole
    deployment's time one request costs at maximum throughput. ``mbu``: expected bytes over what the step could move.
    """

    request: Request
    tpot: Times
    ttft: Times
    e2e: Times | None
    per_request: Times | None
    capacity: Capacity
    batch: float
    context: float
    limiter: str
    shares: dict[str, float]
    parts: tuple[Part, ...]
    ops: tuple[Op, ...]
    prefill: tuple[Op, ...]
    expected_bytes: float
    prompt_flops: float
    flops_per_token: float
    warnings: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()


def low_form(request: Request) -> KvFormat:
    """Cache format of a floor: the stated one, and 8 bit where it was not stated."""
    form = kv_format(request.kv, hint=request.model.kv_hint, mla=request.model.is_mla())
    stated = request.kv.strip().lower() not in ("", "auto") or bool(request.model.kv_hint)
    return structs.replace(form, bytes=form.bytes if stated else min(form.bytes, 1.0), state=2.0)


def _form(request: Request) -> KvFormat:
    return kv_format(request.kv, hint=request.model.kv_hint, mla=request.model.is_mla())


def _sum(ops: list[Op], request: Request) -> tuple[float, float]:
    """Bytes, and seconds of arithmetic at the fastest rates (attention at 8 bit where weights or cache are)."""
    narrow = request.model.weights not in ("bf16", "fp16", "fp32") or low_form(request).bytes < 2.0
    busy = 0.0
    for op in ops:
        math: Math = "fp8" if narrow and op.kind == "kv" else op.math
        busy += op.flops / request.gpu.peak(math, fast=True)
    return sum(op.bytes for op in ops), busy


def step_floor(request: Request, batch: float, context: float, coverage: Coverage, *, strict: bool) -> float:
    """Seconds of one decode step that no engine can beat. ``strict``: plain maximum of memory and arithmetic, and the
    narrowest states; otherwise the larger of the two for each operator, as operators run one after another."""
    gpu = request.gpu
    form = low_form(request)
    if not strict:
        form = structs.replace(form, state=0.0)
    ops = decode_ops(
        request.model,
        request.layout,
        batch=batch,
        context=context,
        form=form,
        experts=coverage,
        tokens_each=1.0,
    )
    size, busy = _sum(ops, request)
    memory = max(0.0, size - gpu.llc) / gpu.pin_bw
    if strict:
        return max(memory, busy)
    serial = sum(max(op.bytes / gpu.pin_bw, op.flops / gpu.peak(op.math, fast=True)) for op in ops)
    return max(memory, busy, serial - gpu.llc / gpu.pin_bw)


def _kernels(request: Request) -> float:
    """Seconds of kernel turn-round in one pass: 5 kernels a dense block, one more for routing or a state."""
    count = 0.0
    for group in request.model.layers:
        each = (3 if group.attn or group.rec else 0) + (2 if group.ffn else 0)
        each += (1 if group.ffn and group.ffn.experts else 0) + (1 if group.rec else 0)
        count += group.count * each
    return count * KERNEL_SECONDS


def _practical(ops: list[Op], request: Request) -> float:
    gpu = request.gpu
    total = 0.0
    for op in ops:
        best = gpu.best_attn if op.kind in ("kv", "state") else gpu.best_gemm
        rate = gpu.best_math.get(op.math, 0.85)
        total += max(op.bytes / (gpu.bw * best), op.flops / (gpu.peak(op.math, fast=True) * rate))
    return total


def step_practical(request: Request, batch: float, context: float) -> float:
    """Seconds of a decode step at the best of every part."""
    ops = decode_ops(
        request.model, request.layout, batch=batch, context=context, form=structs.replace(low_form(request), state=0.0)
    )
    talk = step_seconds(request.gpu, request.model, request.layout, batch)
    return _practical(ops, request) + talk + _kernels(request)


def prompt_floor(request: Request, length: float, prompts: float = 1.0, *, cached: float = 0.0) -> float:
    """Seconds in which ``prompts`` prompts cannot be beaten: arithmetic at peak over all ranks, or the weights once."""
    gpu = request.gpu
    ops = prefill_ops(
        request.model,
        request.layout,
        prompt=max(1.0, length),
        cached=cached,
        prompts=prompts,
        form=low_form(request),
        ideal=True,
    )
    size, busy = _sum(ops, request)
    return max(busy, max(0.0, size - gpu.llc) / gpu.pin_bw)


def prompt_practical(request: Request, length: float, prompts: float = 1.0) -> float:
    """Seconds of a prompt at the best rates seen, with its collectives."""
    ops = prefill_ops(
        request.model,
        request.layout,
        prompt=max(1.0, length),
        cached=request.cached,
        prompts=prompts,
        form=_form(request),
    )
    talk = prefill_seconds(request.gpu, request.model, request.layout, length * prompts)
    return _practical(ops, request) + _kernels(request) + talk * (1.0 if allreduces(request.model) else 0.0)


def decode_times(request: Request, batch: float) -> tuple[Times, list[Part]]:
    """Milliseconds of one decode step, and the terms of the typical one (prompts in between included)."""
    low, mid = request.mid_context(request.low), request.mid_context()
    hard = step_floor(request, batch, low, "fewest", strict=True)
    expected = max(hard, step_floor(request, batch, low, "uniform", strict=False))
    practical = max(expected, step_practical(request, batch, low))
    parts = step_parts(request, batch, mid)
    stall = stall_seconds(request, batch)
    if stall:
        parts.append(Part("other requests' prompts", stall, "prompt work of the other sequences, per token"))
    gain = 1.0 + request.draft_tokens * request.acceptance
    return (
        Times(
            hard=hard * 1e3 / (1.0 + request.draft_tokens),
            expected=expected * 1e3 / (1.0 + request.draft_tokens),
            practical=practical * 1e3 / gain,
            typical=sum(part.seconds for part in parts) * 1e3 / gain,
        ),
        parts,
    )


def first_times(request: Request) -> Times:
    """Times to the first token of one request that waits for nobody."""
    request = structs.replace(request, layout=structs.replace(request.layout, replicas=1))
    hard = prompt_floor(request, request.isl * request.low, cached=request.cached)
    practical = max(hard, prompt_practical(request, request.isl * request.low))
    return Times(
        hard=hard * 1e3,
        expected=hard * 1e3,
        practical=practical * 1e3,
        typical=first_token_seconds(request) * 1e3,
    )


def batch_times(request: Request, batch: float) -> Times:
    """Milliseconds of a fixed batch: all prompts, then ``osl - 1`` steps. What does not fit runs in waves."""
    steps = max(0.0, request.osl * request.low - 1.0)
    fixed = structs.replace(request, offline=True)
    fit = largest_batch(fixed, context=request.low * (request.isl + request.osl / 2.0), low=True)
    one = min(batch, fit) if fit >= 1.0 else batch
    waves = batch / one
    low, mid = request.mid_context(request.low), request.mid_context()
    prompt = prompt_floor(request, request.isl * request.low, batch)
    hard = prompt + steps * waves * step_floor(request, one, low, "fewest", strict=True)
    expected = prompt + steps * waves * step_floor(request, one, low, "uniform", strict=False)
    practical = prompt_practical(request, request.isl * request.low, batch)
    practical += steps * waves * step_practical(request, one, low)
    real = min(
        batch, max(1.0, largest_batch(fixed, context=request.mean * (request.isl + request.osl / 2.0), mem_share=0.9))
    )
    typical = prompt_seconds(fixed, batch) + max(0.0, request.osl * request.mean - 1.0) * (batch / real) * sum(
        part.seconds for part in step_parts(fixed, real, mid)
    )
    return Times(
        hard=hard * 1e3,
        expected=max(hard, expected) * 1e3,
        practical=max(practical, expected) * 1e3,
        typical=typical * 1e3,
    )


def throughput_times(request: Request) -> Times:
    """ms of the whole deployment's time that one request costs when it is kept full."""
    low, osl = request.mid_context(request.low), max(1.0, request.osl * request.low)
    cap = request.batch or request.concurrency or 0.0
    top = largest_batch(
        structs.replace(request, kv=_low_word(request)), context=request.low * (request.isl + osl), low=True
    )
    most = min(cap, top) if cap and top else cap or max(1.0, top)
    hard = _ceiling(request, most, low, osl, "fewest")
    expected = max(hard, _ceiling(request, most, low, osl, "uniform"))
    fill = largest_batch(
        request, context=request.mean * (request.isl + request.osl / 2.0), mem_share=request.memory_util
    )
    real = max(1.0, min(x for x in (cap or fill, fill or 1.0, _seat_limit(request)) if x))
    steps = max(1.0, request.osl * request.mean - 1.0)
    work = structs.replace(request, offline=True)
    step = sum(part.seconds for part in step_parts(work, real, request.mid_context()))
    many = max(1.0, min(real, 8192.0 / max(1.0, request.isl)) * request.layout.dp * request.layout.replicas)
    prompt = prompt_seconds(work, many) / many
    practical = prompt_practical(request, request.isl * request.low, 8.0) / 8.0
    practical += step_practical(request, most, low) * osl / most
    return Times(
        hard=hard * 1e3,
        expected=expected * 1e3,
        practical=max(expected, practical) * 1e3,
        typical=(prompt + steps * step / real) * 1e3,
    )


def _seat_limit(request: Request) -> float:
    engines = request.layout.dp * request.layout.replicas
    if request.max_num_seqs:
        return float(request.max_num_seqs * engines)
    return (2048.0 if "trt" in request.engine.lower() or "tensorrt" in request.engine.lower() else 256.0) * engines


def _low_word(request: Request) -> str:
    return request.kv if request.kv.strip().lower() not in ("", "auto") else "fp8"


def _ceiling(request: Request, batch: float, context: float, osl: float, coverage: Coverage) -> float:
    """Seconds per request: arithmetic of prompt and answer over all GPUs, or weights and cache of all its steps."""
    gpu, layout = request.gpu, request.layout
    form = structs.replace(low_form(request), state=2.0 if coverage == "fewest" else 0.0)
    ops = decode_ops(request.model, layout, batch=batch, context=context, form=form, experts=coverage)
    size, busy = _sum(ops, request)
    prompt = prompt_floor_busy(request, request.isl * request.low)
    compute = prompt + osl * busy / batch
    memory = osl * max(0.0, size - gpu.llc) / gpu.pin_bw / batch
    return max(compute, memory)


def prompt_floor_busy(request: Request, length: float) -> float:
    """Seconds of arithmetic of one prompt spread over every GPU of the deployment."""
    ops = prefill_ops(
        request.model, request.layout, prompt=max(1.0, length), prompts=1.0, form=low_form(request), ideal=True
    )
    return _sum(ops, request)[1]


def estimate(request: Request, *, whole: bool = False) -> Estimate:
    """The numbers of a request; the batch is clipped to what fits, and said so. Never raises on a valid request.

    ``whole`` adds the fixed-batch and the throughput figures.
    """
    from tools.roofline.checks import limiter_of, request_warnings

    room = capacity(request)
    want = request.decoding()
    fit = largest_batch(request, context=max(1.0, request.mid_context()), mem_share=request.memory_util)
    batch = min(want, fit) if fit >= 1.0 else want
    context = request.mid_context()
    tpot, parts = decode_times(request, batch)
    total = sum(part.seconds for part in parts) or 1.0
    shares = {part.name: part.seconds / total for part in parts}
    ops = decode_ops(request.model, request.layout, batch=batch, context=context, form=_form(request))
    prompt = prefill_ops(
        request.model,
        request.layout,
        prompt=max(1.0, request.isl * request.mean),
        cached=request.cached,
        form=_form(request),
    )
    warnings = list(request_warnings(request, room, want, fit))
    return Estimate(
        request=request,
        tpot=tpot,
        ttft=first_times(request),
        e2e=batch_times(request, want) if whole else None,
        per_request=throughput_times(request) if whole else None,
        capacity=room,
        batch=batch,
        context=context,
        limiter=limiter_of(request, room, want, parts, ops),
        shares=shares,
        parts=tuple(parts),
        ops=tuple(ops),
        prefill=tuple(prompt),
        expected_bytes=sum(op.bytes for op in ops),
        prompt_flops=sum(op.flops for op in prompt) * request.layout.tp,
        flops_per_token=sum(op.flops for op in ops) / max(1.0, batch),
        warnings=tuple(warnings),
        caveats=(*request.model.caveats, *request.gpu.caveats),
    )
