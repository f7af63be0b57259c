"""The operators of one decode step and of one prompt, per GPU: bytes moved and arithmetic done.

Operators run one after another, so a step takes at least the sum over operators of the larger of the two times.
Activations are left out: at decode batch sizes they stay on chip. Worked examples of the formulas stand in the tests.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from msgspec import Struct

from tools.roofline.kv import KvFormat, index_bytes, index_rows, read_rows, row_bytes, split
from tools.roofline.request import Layout
from tools.roofline.shape import Attn, Layer, Math, ModelShape

Coverage = Literal["fewest", "uniform", "zipf", "typical"]
Kind = Literal["weights", "experts", "kv", "state", "head"]


class Op(Struct, frozen=True, kw_only=True):
    """One kind of work, summed over its layers: ``bytes`` and ``flops`` on one GPU, ``math`` of its kernels."""

    name: str
    kind: Kind
    bytes: float
    flops: float
    math: Math = "bf16"


def distinct_experts(experts: int, top_k: int, tokens: float) -> float:
    """Expected number of distinct experts that ``tokens`` tokens touch under uniform routing.

    Uniform is the largest expectation: skewed popularity touches fewer. Never below ``top_k`` nor above ``experts``.
    """
    if experts <= 0 or tokens <= 0:
        return 0.0
    if tokens <= 1.0:
        return float(top_k)
    return float(experts * (1.0 - (1.0 - top_k / experts) ** tokens))


@lru_cache(maxsize=4096)
def zipf_experts(experts: int, top_k: int, tokens: float, power: float = 0.8) -> float:
    """As :func:`distinct_experts` with expert popularity falling as ``rank ** -power`` (each at most once a token)."""
    weights = [1.0 / (rank**power) for rank in range(1, experts + 1)]
    scale = top_k / sum(weights)
    for _ in range(40):
        chance = [min(1.0, w * scale) for w in weights]
        total = sum(chance)
        if abs(total - top_k) < 1e-9 * top_k:
            break
        scale *= top_k / total
    return float(sum(1.0 - (1.0 - min(1.0, w * scale)) ** tokens for w in weights))


def attn_flops_per_row(attn: Attn) -> float:
    """Arithmetic of one query against one cache row in decode, all heads (latent attention in absorbed form)."""
    if attn.kind == "mla":
        return 2.0 * attn.heads * (2 * attn.latent + attn.rope)
    return 2.0 * attn.heads * (attn.d + attn.dv)


def attn_weight_params(group: Layer, hidden: int, tp: int) -> float:
    """Elements of attention weights on one GPU: KV projections are whole heads, latent down-projections stand on every rank."""
    if group.attn is None:
        return 0.0
    sizes = sizes_of(group, hidden)
    if group.attn.kind != "gqa":
        return (sizes.attn - sizes.attn_whole) / tp + sizes.attn_whole
    return (sizes.attn - sizes.attn_kv) / tp + sizes.attn_kv / min(tp, group.attn.kv_heads)


class Sizes(Struct, frozen=True):
    """Element counts of one layer of a group, computed once."""

    attn: int
    attn_whole: int
    attn_kv: int
    rec: int
    dense: int
    expert: int
    shared: int
    router: int
    per_row: float


_SIZES: dict[int, tuple[Layer, Sizes]] = {}


def sizes_of(group: Layer, hidden: int) -> Sizes:
    """:class:`Sizes` of a group, remembered per group object (a model's groups are reused by every evaluation)."""
    held = _SIZES.get(id(group))
    if held is not None and held[0] is group:
        return held[1]
    attn, ffn = group.attn, group.ffn
    parts = attn.parts(hidden) if attn else {}
    sizes = Sizes(
        attn=sum(parts.values()),
        attn_whole=attn.replicated(hidden) if attn else 0,
        attn_kv=parts.get("k_proj", 0) + parts.get("v_proj", 0) if attn and attn.kind == "gqa" else 0,
        rec=group.rec.params() if group.rec else 0,
        dense=ffn.dense_params(hidden) if ffn else 0,
        expert=ffn.expert_params(hidden) if ffn else 0,
        shared=ffn.shared_params(hidden) if ffn else 0,
        router=ffn.router_params(hidden) if ffn else 0,
        per_row=attn_flops_per_row(attn) if attn else 0.0,
    )
    if len(_SIZES) > 4096:
        _SIZES.clear()
    _SIZES[id(group)] = (group, sizes)
    return sizes


def decode_ops(
    model: ModelShape,
    layout: Layout,
    *,
    batch: float,
    context: float,
    form: KvFormat,
    experts: Coverage = "uniform",
    tokens_each: float = 1.0,
) -> list[Op]:
    """Work of one decode step on one GPU, through all pipeline stages.

    ``batch``: sequences decoding over the whole deployment; ``tokens_each``: tokens a sequence verifies in the step
    (speculation). ``experts``: distinct experts per layer, see :func:`distinct_experts`.
    """
    tp, hidden = layout.tp, model.hidden
    rank = batch / (layout.dp * layout.pp * layout.replicas)
    tokens = batch / (layout.pp * layout.replicas) * tokens_each
    rows = rank * tokens_each
    sums: dict[tuple[str, Kind, Math], list[float]] = {}

    def put(name: str, kind: Kind, math: Math, size: float, flops: float) -> None:
        cell = sums.setdefault((name, kind, math), [0.0, 0.0])
        cell[0] += size
        cell[1] += flops

    fewest = experts == "fewest"
    for group in model.layers:
        n, f, z = group.count, group.fmt, sizes_of(group, hidden)
        if group.attn:
            attn = group.attn
            weights = n * attn_weight_params(group, hidden, tp)
            put("attention weights", "weights", f.attn.math, weights * f.attn.bytes, 2.0 * rows * weights)
            ways = split(attn, tp, dcp=layout.dcp)
            seen, scan, row = read_rows(attn, context), index_rows(attn, context), row_bytes(attn, form)
            # A layer that shares another's cache still reads it; a hard floor may assume that it stayed on chip.
            read = seen * row + scan * index_bytes(attn) if attn.owns_kv or not fewest else 0.0
            write = row * tokens_each if attn.owns_kv else 0.0
            flops = n * rows * seen * z.per_row / tp
            flops += n * rows * scan * 2.0 * attn.index_heads * attn.index_dim
            put("KV cache", "kv", "bf16", n * rank * (read + write) / ways, flops)
        if group.rec:
            rec = group.rec
            weights = n * z.rec / tp
            put("recurrent weights", "weights", f.rec.math, weights * f.rec.bytes, 2.0 * rows * weights)
            narrow = 2.0 if fewest else None
            state = 2.0 * rank * n * rec.bytes_per_seq(narrow if narrow else form.state or None) / tp
            put("recurrent state", "state", "bf16", state, rows * n * 6.0 * rec.state / tp)
        ffn = group.ffn
        if ffn:
            if ffn.width:
                weights = n * z.dense / tp
                put("dense FFN weights", "weights", f.ffn.math, weights * f.ffn.bytes, 2.0 * rows * weights)
            if ffn.experts:
                one = z.expert
                touched = _touched(ffn.experts, ffn.top_k, tokens, experts)
                size = n * touched * one * f.expert.bytes / layout.shards
                flops = 2.0 * tokens * n * ffn.top_k * one / layout.shards
                put("expert weights", "experts", f.expert.math, size, flops)
                weights = n * z.shared / tp
                put("shared expert weights", "weights", f.shared.math, weights * f.shared.bytes, 2.0 * rows * weights)
                router = n * z.router
                put("router", "weights", "bf16", router * 2.0, 2.0 * rows * router)
        if group.extra:
            weights = n * group.extra / tp
            put("per-layer inputs", "weights", f.ffn.math, weights * f.ffn.bytes, 2.0 * rows * weights)
    head = model.vocab * hidden / (tp * layout.dp if fewest else tp)
    put("output head", "head", model.head.math, head * model.head.bytes, 2.0 * rows * head)
    return [Op(name=k[0], kind=k[1], math=k[2], bytes=v[0], flops=v[1]) for k, v in sums.items() if v[0] or v[1]]


def _touched(total: int, top_k: int, tokens: float, mode: str) -> float:
    if mode == "fewest":
        return float(top_k)
    if mode == "zipf":
        return zipf_experts(total, top_k, max(1.0, tokens))
    if mode == "typical":
        # Real routing lies between: measured steps fit half way to a Zipf popularity.
        return (distinct_experts(total, top_k, max(1.0, tokens)) + zipf_experts(total, top_k, max(1.0, tokens))) / 2.0
    return distinct_experts(total, top_k, max(1.0, tokens))


def causal_pairs(new: float, past: float, window: float = 0.0, *, chunked: bool = False) -> float:
    """Query-key pairs of ``new`` tokens after ``past`` cached ones, causal; a window caps each query's reach."""
    if window <= 0:
        return new * past + new * (new + 1.0) / 2.0
    if chunked:
        full, rest = divmod(past + new, window)
        whole = full * window * (window + 1) / 2 + rest * (rest + 1) / 2
        before_full, before_rest = divmod(past, window)
        return whole - before_full * window * (window + 1) / 2 - before_rest * (before_rest + 1) / 2
    ramp = min(new, max(0.0, window - past))
    return ramp * past + ramp * (ramp + 1.0) / 2.0 + (new - ramp) * window


def prefill_ops(
    model: ModelShape,
    layout: Layout,
    *,
    prompt: float,
    cached: float = 0.0,
    prompts: float = 1.0,
    form: KvFormat,
    ideal: bool = False,
) -> list[Op]:
    """Work of ``prompts`` prompts of ``prompt`` tokens on one GPU (``cached`` of each already in the cache).

    ``ideal`` spreads even a single prompt over attention replicas and pipeline stages (for floors that must hold).
    The head runs once per prompt; weights are read once, experts as far as the tokens reach them.
    """
    tp, hidden = layout.tp, model.hidden
    new = max(1.0, prompt - cached)
    past = prompt - new
    wide = layout.dp * layout.replicas * layout.pp if ideal else max(1.0, min(prompts, layout.dp * layout.replicas))
    rows = new * prompts / wide
    total = new * prompts / (layout.replicas if prompts >= layout.replicas else 1.0)
    if ideal:
        total = new * prompts / (layout.replicas * layout.pp)
    sums: dict[tuple[str, Kind, Math], list[float]] = {}

    def put(name: str, kind: Kind, math: Math, size: float, flops: float) -> None:
        cell = sums.setdefault((name, kind, math), [0.0, 0.0])
        cell[0] += size
        cell[1] += flops

    for group in model.layers:
        n, f, z = group.count, group.fmt, sizes_of(group, hidden)
        if group.attn:
            attn = group.attn
            weights = n * (z.attn / tp if ideal else attn_weight_params(group, hidden, tp))
            put("attention weights", "weights", f.attn.math, weights * f.attn.bytes, 2.0 * rows * weights)
            pairs = _pairs(attn, new, past) * prompts / wide
            per_pair = 2.0 * attn.heads * (attn.d + attn.dv) / tp
            flops = n * pairs * per_pair
            if attn.index_dim and attn.owns_index:
                scan = causal_pairs(new, past) / (attn.ratio or 1) * prompts / wide
                flops += n * scan * 2.0 * attn.index_heads * attn.index_dim / (tp if ideal else 1)
            size = n * prompts / wide * past * row_bytes(attn, form) / split(attn, tp) if past else 0.0
            put("attention", "kv", "bf16", size, flops)
        if group.rec:
            weights = n * z.rec / tp
            scan = 0.0 if ideal else rows * n * 6.0 * group.rec.state / tp
            put("recurrent layers", "weights", f.rec.math, weights * f.rec.bytes, 2.0 * rows * weights + scan)
        ffn = group.ffn
        if ffn:
            if ffn.width:
                weights = n * z.dense / tp
                put("dense FFN", "weights", f.ffn.math, weights * f.ffn.bytes, 2.0 * rows * weights)
            if ffn.experts:
                one = z.expert
                touched = float(ffn.top_k) if ideal else distinct_experts(ffn.experts, ffn.top_k, total)
                flops = 2.0 * total * n * ffn.top_k * one / layout.shards
                put("experts", "experts", f.expert.math, n * touched * one * f.expert.bytes / layout.shards, flops)
                weights = n * z.shared / tp
                put("shared experts", "weights", f.shared.math, weights * f.shared.bytes, 2.0 * rows * weights)
                router = n * z.router
                put("router", "weights", "bf16", router * 2.0, 2.0 * rows * router / tp)
        if group.extra:
            weights = n * group.extra / tp
            put("per-layer inputs", "weights", f.ffn.math, weights * f.ffn.bytes, 2.0 * rows * weights)
    head = model.vocab * hidden / tp
    put("output head", "head", model.head.math, head * model.head.bytes, 2.0 * prompts / wide * head)
    return [Op(name=k[0], kind=k[1], math=k[2], bytes=v[0], flops=v[1]) for k, v in sums.items() if v[0] or v[1]]


def _pairs(attn: Attn, new: float, past: float) -> float:
    if attn.kind == "csa":
        near = causal_pairs(new, past, attn.window)
        if not attn.ratio:
            return near
        far = causal_pairs(new, past) / attn.ratio
        return near + (min(far, new * attn.topk) if attn.topk else far)
    pairs = causal_pairs(new, past, attn.window, chunked=attn.chunked)
    return min(pairs, causal_pairs(new, past, attn.topk)) if attn.topk else pairs


def weight_bytes_per_gpu(model: ModelShape, layout: Layout) -> float:
    """Resident weight bytes on one GPU: shards, replicated projections, padded vocabulary, one pipeline stage."""
    tp, hidden = layout.tp, model.hidden
    body = 0.0
    for group in model.layers:
        n, f, z = group.count, group.fmt, sizes_of(group, hidden)
        body += n * attn_weight_params(group, hidden, tp) * f.attn.bytes
        if group.rec:
            body += n * z.rec / tp * f.rec.bytes
        if group.ffn:
            ffn = group.ffn
            body += n * z.dense / tp * f.ffn.bytes
            body += n * ffn.experts * z.expert / layout.shards * f.expert.bytes
            body += n * z.shared / tp * f.shared.bytes + n * z.router * 2.0
        body += n * group.extra / tp * f.ffn.bytes
    vocab = -(-model.vocab // (64 * tp)) * 64 * tp
    ends = vocab * hidden * (model.embed.bytes + (0.0 if model.tied else model.head.bytes)) / tp
    return (
        body / layout.pp
        + ends / (2 if layout.pp > 1 and not model.tied else 1)
        + (model.embed_extra + model.vision) * 2.0 / tp
    )
