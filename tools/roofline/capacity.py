"""What fits: weights, the KV pool that is left, and how many sequences it holds. Bytes, per GPU unless said."""

from __future__ import annotations

from math import ceil

from msgspec import Struct

from tools.roofline.kv import KvFormat, bytes_per_token, kept_rows, kv_format, row_bytes, split
from tools.roofline.kv import index_bytes as index_row
from tools.roofline.kv import index_rows as index_count
from tools.roofline.request import Layout, Request
from tools.roofline.shape import ModelShape
from tools.roofline.work import weight_bytes_per_gpu

# Activations, graph pool, NCCL and context: what engines were seen to need besides weights and cache.
OVERHEAD_BYTES = 2.0e9


class Capacity(Struct, frozen=True, kw_only=True):
    """``pool``: KV bytes per GPU; ``sequence``: bytes a sequence of ``context`` tokens takes on one GPU;
    ``concurrency``: sequences the whole deployment holds; ``tokens``: that times the context; ``short``: bytes by
    which the weights miss the budget, 0 when they fit."""

    fits: bool
    weights: float
    budget: float
    pool: float
    sequence: float
    context: float
    concurrency: float
    tokens: float
    per_token: float
    short: float


def sequence_bytes(
    model: ModelShape, layout: Layout, context: float, form: KvFormat, *, block: int = 1, slack_tokens: float = 0.0
) -> float:
    """Bytes of cache and state one sequence takes on one GPU of its engine.

    ``block`` rounds a full-attention sequence up; ``slack_tokens``: tokens in flight that an engine reserves beyond
    each window. Pipeline stages share the layers.
    """
    total = 0.0
    rounded = ceil(context / block) * block if block > 1 else context
    for group in model.layers:
        if group.attn and group.attn.owns_kv:
            attn = group.attn
            rows = kept_rows(attn, rounded)
            if attn.window and attn.kind == "gqa" and slack_tokens:
                rows = min(context, attn.window - 1 + slack_tokens)
                rows = (ceil(rows / block) + 1) * block
            size = rows * row_bytes(attn, form) + index_count(attn, rounded) * index_row(attn)
            total += group.count * size / split(attn, layout.tp, dcp=layout.dcp)
        if group.rec:
            total += group.count * group.rec.bytes_per_seq(form.state or None) / layout.tp
    return total / layout.pp


def capacity(request: Request, *, context: float = 0.0, overhead: float = OVERHEAD_BYTES) -> Capacity:
    """What fits on this hardware in this layout, for sequences of ``context`` tokens (default: prompt and answer)."""
    model, gpu, layout = request.model, request.gpu, request.layout
    length = context or request.context or request.mean * (request.isl + request.osl)
    form = kv_format(request.kv, hint=model.kv_hint, mla=model.is_mla())
    weights = weight_bytes_per_gpu(model, layout)
    budget = request.memory_util * gpu.usable()
    pool = max(0.0, budget - weights - overhead)
    sequence = sequence_bytes(model, layout, length, form, block=request.block)
    share = pool / sequence if sequence > 0 else 0.0
    count = share * layout.dp * layout.replicas * (1 if sequence else 0)
    return Capacity(
        fits=weights + overhead < budget,
        weights=weights,
        budget=budget,
        pool=pool,
        sequence=sequence,
        context=length,
        concurrency=count,
        tokens=count * length,
        per_token=bytes_per_token(model, form),
        short=max(0.0, weights + overhead - budget),
    )


def vllm_reported_tokens(request: Request) -> tuple[float, float]:
    """``(GPU KV cache size in tokens, maximum concurrency)`` as vLLM 0.32 prints them for ``max_model_len``.

    It reserves, per sliding layer, the window plus the tokens in flight, so both depend on ``max_model_len``.
    """
    model, layout = request.model, request.layout
    length = float(request.max_model_len or model.max_context or request.isl + request.osl)
    form = kv_format(request.kv, hint=model.kv_hint, mla=model.is_mla())
    slack = float(request.max_batched_tokens or 8192)
    need = sequence_bytes(model, layout, length, form, block=request.block, slack_tokens=slack)
    pool = capacity(request).pool
    ratio = pool / need if need else 0.0
    return float(int(ratio * length)), ratio


def largest_batch(request: Request, *, context: float, mem_share: float = 1.0, low: bool = False) -> float:
    """Most sequences that can decode together: memory over cache bytes of ``context`` tokens each.

    ``low``: nothing but weights and cache in memory and no rounding, the bound that no deployment can pass.
    """
    model, layout = request.model, request.layout
    form = kv_format(request.kv, hint=model.kv_hint, mla=model.is_mla())
    free = request.gpu.usable() * mem_share - weight_bytes_per_gpu(model, layout) - (0.0 if low else OVERHEAD_BYTES)
    need = sequence_bytes(model, layout, max(1.0, context), form, block=1 if low else request.block)
    if free <= 0 or need <= 0:
        return 0.0
    return free / need * layout.dp * layout.replicas


def printed_over_computed(request: Request, printed_tokens: float) -> float | None:
    """Ratio of the cache tokens an engine printed to what memory arithmetic gives; ``None`` when nothing fits.

    Within 0.9 to 1.1 is agreement. Well below: something else took the memory (another process, a larger activation
    peak, a lower utilisation than stated). Above: the precision or layout is not as stated.
    """
    computed = vllm_reported_tokens(request)[0]
    return printed_tokens / computed if computed > 0 else None
