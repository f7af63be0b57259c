"""Time that GPUs spend talking: all-reduce, expert all-to-all and pipeline hand-over of one decode step or prompt.

Small messages are bound by latency (published per part and degree), large ones by bandwidth. Switch-reduced
all-reduce moves each byte once, so the ring formula is no lower bound there. Times in seconds.
"""

from __future__ import annotations

from tools.roofline.hardware import Hardware
from tools.roofline.request import Layout
from tools.roofline.shape import ModelShape

# Latency of a captured all-reduce where a part has no published figure, by what carries it (microseconds).
_BASE_US = {
    "nvlink": {2: 4.0, 4: 4.6, 8: 6.0},
    "bridge": {2: 5.0, 4: 12.0, 8: 20.0},
    "xgmi": {2: 7.0, 4: 8.0, 8: 10.0},
    "": {2: 6.0, 4: 13.0, 8: 25.0},
}
_SMALL = 1 << 20
_TOKEN = 1 << 14


def allreduce_seconds(gpu: Hardware, ranks: int, size: float) -> float:
    """Lowest time an all-reduce of ``size`` bytes over ``ranks`` devices can be expected to take inside a graph."""
    if ranks <= 1:
        return 0.0
    table = gpu.allreduce_us or _BASE_US.get(gpu.link_kind, _BASE_US[""])
    near = max((r for r in table if r <= ranks), default=min(table))
    base = table[near] * (1.0 + 0.25 * max(0, ranks // near - 1)) * 1e-6
    link = gpu.fabric(ranks)
    if ranks > gpu.domain and gpu.link_kind in ("nvlink", "xgmi"):
        base = max(base, 25e-6)
    ring = 2.0 * (ranks - 1) / ranks
    large = link / 1.05 if gpu.nvls else link / ring
    small = min(large, link / 4.0)
    # The published latencies are those of one token's message, 16 KiB.
    body = max(0.0, min(size, _SMALL) - _TOKEN)
    return base + body / small + max(0.0, size - _SMALL) / (0.65 * large)


def allreduces(model: ModelShape) -> int:
    """All-reduces of one pass under tensor parallelism: one after each mixer and each feed-forward block."""
    each = sum(g.count * (bool(g.attn or g.rec) + bool(g.ffn)) for g in model.layers)
    return sum(g.count for g in model.layers) if model.parallel_block else each


def moe_layers(model: ModelShape) -> int:
    """Layers that route."""
    return sum(g.count for g in model.layers if g.ffn and g.ffn.experts)


def all_to_all_seconds(gpu: Hardware, model: ModelShape, ranks: int, tokens_each: float) -> float:
    """Dispatch (8 bit) and combine (16 bit) of one MoE layer for ``tokens_each`` tokens a rank."""
    if ranks <= 1:
        return 0.0
    top_k = max((g.ffn.top_k for g in model.layers if g.ffn and g.ffn.experts), default=0)
    spread = min(top_k, 4 if ranks > gpu.domain else top_k)
    wire = tokens_each * spread * model.hidden * (1.0 + 4.0 / 128.0 + 2.0) * (ranks - 1) / ranks
    rate = gpu.fabric(ranks) * 0.45
    return 24.5e-6 + wire / rate


def step_seconds(gpu: Hardware, model: ModelShape, layout: Layout, batch: float) -> float:
    """All collectives of one decode step through all stages."""
    rank = batch / (layout.dp * layout.pp * layout.replicas)
    size = rank * model.hidden * 2.0
    total = 0.0
    routed = moe_layers(model) if layout.dp > 1 else 0
    if layout.tp > 1:
        total += (allreduces(model) - routed) * allreduce_seconds(gpu, layout.tp, size)
    if routed:
        total += routed * all_to_all_seconds(gpu, model, layout.tp * layout.dp, rank / layout.tp)
    if layout.pp > 1:
        total += (layout.pp - 1) * (8e-6 + size / gpu.fabric(2))
    return total


def prefill_seconds(gpu: Hardware, model: ModelShape, layout: Layout, tokens: float) -> float:
    """All collectives of a pass over ``tokens`` prompt tokens of one attention replica."""
    size = tokens * model.hidden * 2.0
    total = 0.0
    routed = moe_layers(model) if layout.dp > 1 else 0
    if layout.tp > 1:
        total += (allreduces(model) - routed) * allreduce_seconds(gpu, layout.tp, size)
    if routed:
        total += routed * all_to_all_seconds(gpu, model, layout.tp * layout.dp, tokens / layout.tp)
    if layout.pp > 1:
        total += (layout.pp - 1) * (8e-6 + size / gpu.fabric(2))
    return total
