"""What one sequence keeps in GPU memory and what one decode step reads of it.

All figures are bytes over the whole model before any split over GPUs; the ``split`` helpers say how tensor
parallelism divides them. A KV head cannot be halved: tensor parallelism beyond the KV heads replicates them, and a
latent (MLA) cache is whole on every rank.
"""

from __future__ import annotations

from msgspec import Struct

from tools.roofline.precision import kv_bytes
from tools.roofline.shape import Attn, Layer, ModelShape

# vLLM `fp8_ds_mla`: 512 FP8 latent values, 64 BF16 rope values, 16 bytes of scales. `nvfp4` latent rows: 352 bytes.
MLA_ROWS = {"fp8_ds_mla": 656, "nvfp4": 352}
INDEX_SCALE_BYTES = 4


class KvFormat(Struct, frozen=True, kw_only=True):
    """Cache storage: ``bytes`` per element, ``row`` fixed bytes of a latent row (0: count elements),
    ``state`` bytes per recurrent state element (0: as shipped)."""

    bytes: float = 2.0
    row: int = 0
    state: float = 0.0


def kv_format(word: str, *, hint: str = "", mla: bool = False) -> KvFormat:
    """From a ``kv_cache_dtype`` word; ``auto`` follows what the checkpoint asks for, else 16 bit."""
    text = word.strip().lower()
    if text in ("", "auto"):
        text = hint
    size = kv_bytes(text) if text else None
    return KvFormat(bytes=2.0 if size is None else size, row=MLA_ROWS.get(text, 0) if mla else 0)


def row_bytes(attn: Attn, form: KvFormat) -> float:
    """Bytes a token adds to one layer that owns its cache (before compression)."""
    if attn.row_bytes:
        return float(attn.row_bytes)
    if attn.kind == "mla":
        return float(form.row) if form.row else (attn.latent + attn.rope) * form.bytes
    if attn.kind == "csa":
        return attn.d * form.bytes
    return attn.kv_heads * (attn.d + attn.dv) * form.bytes


def index_bytes(attn: Attn) -> float:
    """Bytes a token (or compressed row) adds to the index of sparse attention: 8-bit keys and a scale."""
    return float(attn.index_dim + INDEX_SCALE_BYTES) if attn.index_dim and attn.owns_index else 0.0


def kept_rows(attn: Attn, context: float) -> float:
    """Cache rows kept for ``context`` tokens."""
    if attn.kind == "csa":
        return min(context, attn.window) + (context / attn.ratio if attn.ratio else 0.0)
    if attn.window:
        return min(context, attn.window)
    return context


def read_rows(attn: Attn, context: float) -> float:
    """Cache rows one decode step reads for ``context`` tokens in the cache."""
    if attn.kind == "csa":
        rows = min(context, attn.window)
        if attn.ratio:
            compressed = context / attn.ratio
            rows += min(compressed, attn.topk) if attn.topk else compressed
        return rows
    rows = context
    if attn.window:
        # A chunk restarts empty: on average half of it is visible once the context is longer than one chunk.
        rows = min(context, attn.window / 2 if attn.chunked and context > attn.window else attn.window)
    return min(rows, attn.topk) if attn.topk else rows


def index_rows(attn: Attn, context: float) -> float:
    """Index entries scanned (and kept) for ``context`` tokens."""
    return context / attn.ratio if attn.ratio else context


def split(attn: Attn, tp: int, *, dcp: int = 1) -> float:
    """How many ways tensor parallelism divides a layer's cache (``dcp``: decode context parallel ranks)."""
    ways = min(tp, attn.kv_heads) if attn.kind == "gqa" else 1
    return float(max(1, ways) * max(1, dcp))


def layer_kept_bytes(group: Layer, context: float, form: KvFormat) -> float:
    """Bytes one layer of a group keeps for one sequence."""
    total = 0.0
    if group.attn and group.attn.owns_kv:
        total += kept_rows(group.attn, context) * row_bytes(group.attn, form)
        total += index_rows(group.attn, context) * index_bytes(group.attn)
    if group.rec:
        total += group.rec.bytes_per_seq(form.state or None)
    return total


def layer_read_bytes(group: Layer, context: float, form: KvFormat, *, shared_too: bool = True) -> float:
    """Cache bytes one layer of a group reads in one decode step of one sequence (index included, state not).

    ``shared_too``: a layer that uses another layer's cache still reads it; a hard floor may assume it stayed on chip.
    """
    attn = group.attn
    if attn is None or not (attn.owns_kv or shared_too):
        return 0.0
    return read_rows(attn, context) * row_bytes(attn, form) + index_rows(attn, context) * index_bytes(attn)


def bytes_per_token(model: ModelShape, form: KvFormat) -> float:
    """Bytes each further token costs once every window is full (the figure that grows without limit)."""
    total = 0.0
    for group in model.layers:
        attn = group.attn
        if attn is None or not attn.owns_kv:
            continue
        grows = 1.0 / attn.ratio if attn.ratio else 0.0 if attn.window else 1.0
        total += group.count * grows * (row_bytes(attn, form) + index_bytes(attn))
    return total


def bytes_per_sequence(model: ModelShape, context: float, form: KvFormat) -> float:
    """Bytes one sequence of ``context`` tokens keeps: full layers, filled windows and recurrent states."""
    return sum(group.count * layer_kept_bytes(group, context, form) for group in model.layers)


def fixed_bytes(model: ModelShape, form: KvFormat) -> float:
    """Bytes a long sequence keeps that do not grow with its length: full windows and recurrent states."""
    total = 0.0
    for group in model.layers:
        if group.attn and group.attn.owns_kv and group.attn.window:
            total += group.count * group.attn.window * row_bytes(group.attn, form)
        if group.rec:
            total += group.count * group.rec.bytes_per_seq(form.state or None)
    return total


def naive_bytes_per_token(model: ModelShape, form: KvFormat) -> float:
    """What a calculator that ignores windows, sharing and compression would say (to explain a discrepancy)."""
    return sum(g.count * row_bytes(g.attn, form) for g in model.layers if g.attn)
