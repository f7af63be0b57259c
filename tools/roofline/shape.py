"""The shape of a model as the calculator sees it: layers, tensor sizes, bytes per tensor class, cache per token.

Layer formulas leave out biases and norms (under 0.01 % of the weights). Counts are elements unless a name says
``bytes``; bytes are decimal. Source of the formulas: the published model code of each architecture; the exact checks
stand in ``tests/tools/roofline``.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, structs

Math = Literal["bf16", "fp8", "int8", "fp4", "int4", "fp32"]


class Refusal(Struct, frozen=True, kw_only=True):
    """Why nothing was computed: the input ``field`` that is missing or cannot be true, and what to do about it."""

    field: str
    why: str
    do: str = ""

    def line(self) -> str:
        """One sentence a person can act on."""
        return f"{self.field}: {self.why}" + (f"; {self.do}" if self.do else "")


class Fmt(Struct, frozen=True):
    """How one tensor class is stored: ``bytes`` per weight with its scales, and the arithmetic its kernels use."""

    bytes: float = 2.0
    math: Math = "bf16"


BF16 = Fmt(2.0, "bf16")


class Formats(Struct, frozen=True, kw_only=True):
    """Storage per tensor class of one layer (a mean where one class mixes formats)."""

    attn: Fmt = BF16
    rec: Fmt = BF16
    ffn: Fmt = BF16
    expert: Fmt = BF16
    shared: Fmt = BF16


class Attn(Struct, frozen=True, kw_only=True):
    """One attention layer.

    ``d`` and ``dv``: key and value size per head. ``window``: tokens a query can see, 0 for all; ``chunked``: the
    window is a fixed chunk (half full on average). MLA: ``latent`` (c), ``rope`` (r), ``nope`` (n), ``q_lora``.
    ``topk``: cache rows read at most by sparse selection, 0 for dense. ``ratio``: tokens per compressed cache row
    (0: none); ``row_bytes``: fixed bytes of a cache row where the engine knows only one format.
    ``owns_kv`` false: reads another layer's cache.
    """

    kind: Literal["gqa", "mla", "csa"] = "gqa"
    heads: int
    kv_heads: int
    d: int
    dv: int
    window: int = 0
    chunked: bool = False
    gate: bool = False
    owns_kv: bool = True
    v_proj: bool = True
    q_lora: int = 0
    latent: int = 0
    rope: int = 0
    nope: int = 0
    topk: int = 0
    index_heads: int = 0
    index_dim: int = 0
    owns_index: bool = True
    ratio: int = 0
    row_bytes: int = 0
    o_lora: int = 0
    o_groups: int = 1

    def parts(self, hidden: int) -> dict[str, int]:
        """Elements of each projection matrix, by the name it has in checkpoints."""
        h, d = self.heads, self.d
        if self.kind == "mla":
            qk = self.nope + self.rope
            out = {
                "kv_a_proj_with_mqa": hidden * (self.latent + self.rope),
                "kv_b_proj": self.latent * h * (self.nope + self.dv),
                "o_proj": h * self.dv * hidden + (h * self.dv * hidden if self.gate else 0),
            }
            if self.q_lora:
                out |= {"q_a_proj": hidden * self.q_lora, "q_b_proj": self.q_lora * h * qk}
            else:
                out["q_proj"] = hidden * h * qk
            if self.index_dim and self.owns_index:
                out["indexer"] = self.q_lora * self.index_heads * self.index_dim + hidden * (
                    self.index_dim + self.index_heads
                )
            return out
        if self.kind == "csa":
            out = {
                "wq_a": hidden * self.q_lora,
                "wq_b": self.q_lora * h * d,
                "wkv": hidden * d,
                "wo_a": h * d * self.o_lora,
                "wo_b": self.o_groups * self.o_lora * hidden,
            }
            if self.ratio:
                overlap = 2 if self.index_dim else 1
                out["compressor"] = 2 * hidden * overlap * d
            if self.index_dim:
                out["indexer"] = self.q_lora * self.index_heads * self.index_dim + hidden * (
                    self.index_heads + 2 * 2 * self.index_dim
                )
            return out
        out = {
            "q_proj": hidden * h * d * (2 if self.gate else 1),
            "k_proj": hidden * self.kv_heads * d,
            "o_proj": h * self.dv * hidden,
        }
        if self.v_proj:
            out["v_proj"] = hidden * self.kv_heads * self.dv
        if self.index_dim:
            out["indexer"] = hidden * (self.index_heads + 1) * self.index_dim
        return out

    def params(self, hidden: int) -> int:
        """Elements of all projections."""
        return sum(self.parts(hidden).values())

    def replicated(self, hidden: int) -> int:
        """Elements that every tensor-parallel rank holds whole (MLA down-projections, latent keys, indexer)."""
        parts = self.parts(hidden)
        names = ("q_a_proj", "kv_a_proj_with_mqa", "indexer", "wq_a", "wkv", "compressor")
        return sum(parts[name] for name in names if name in parts)

    def kv_elements(self) -> int:
        """Cache elements a token adds to this layer (before compression)."""
        if not self.owns_kv:
            return 0
        if self.kind == "mla":
            return self.latent + self.rope
        if self.kind == "csa":
            return self.d
        return self.kv_heads * (self.d + self.dv)


class Recurrent(Struct, frozen=True, kw_only=True):
    """A layer with a state of fixed size instead of a cache: gated DeltaNet, KDA or Mamba 2.

    ``proj``: elements of its projections, ``conv_weights``: of the short convolution. ``state``: elements of the
    recurrent state, ``conv_state``: of the convolution's. ``state_bytes``: bytes per state element as shipped.
    """

    kind: Literal["gdn", "kda", "mamba2"]
    proj: tuple[tuple[str, int], ...]
    conv_weights: int
    state: int
    conv_state: int
    state_bytes: float = 4.0

    def params(self) -> int:
        """Elements of projections and convolution."""
        return sum(size for _, size in self.proj) + self.conv_weights

    def bytes_per_seq(self, state_bytes: float | None = None) -> float:
        """Bytes of state of one sequence (convolution state at 16 bit)."""
        return self.state * (self.state_bytes if state_bytes is None else state_bytes) + self.conv_state * 2.0


class Ffn(Struct, frozen=True, kw_only=True):
    """A feed-forward block: dense (``experts`` 0) or a mixture. ``mats``: 3 for gated, 2 for plain.

    ``width``: dense width. ``m``: expert width, ``latent``: size of the experts' input where it is not the hidden
    size, ``shared``: total width of shared experts; ``beside``: that block is a dense one beside the experts.
    """

    mats: int = 3
    width: int = 0
    experts: int = 0
    top_k: int = 0
    m: int = 0
    latent: int = 0
    shared: int = 0
    shared_mats: int = 3
    beside: bool = False

    def dense_params(self, hidden: int) -> int:
        """Elements of the dense block."""
        return self.mats * hidden * self.width

    def expert_params(self, hidden: int) -> int:
        """Elements of one routed expert."""
        return self.mats * (self.latent or hidden) * self.m if self.experts else 0

    def shared_params(self, hidden: int) -> int:
        """Elements of the shared experts and of the projections around latent experts."""
        return self.shared_mats * hidden * self.shared + (2 * hidden * self.latent if self.latent else 0)

    def router_params(self, hidden: int) -> int:
        """Elements of the router."""
        return hidden * self.experts


class Layer(Struct, frozen=True, kw_only=True):
    """``count`` equal layers: a mixer (attention, recurrent or none) and a feed-forward block (or none)."""

    count: int
    attn: Attn | None = None
    rec: Recurrent | None = None
    ffn: Ffn | None = None
    fmt: Formats = Formats()
    extra: int = 0


class ModelShape(Struct, frozen=True, kw_only=True):
    """A decoder as the calculator needs it. ``caveats`` name every assumption that was not in the input.

    ``weights``: the checkpoint's precision in one word. ``kv_hint``: cache precision the checkpoint asks for.
    ``embed_extra``: elements of per-layer embedding tables (resident, a row read per token). ``vision``: elements of
    a vision tower at 16 bit (resident, idle in text decode); neither is in :meth:`active_params`.
    """

    name: str
    model_type: str = ""
    hidden: int
    vocab: int
    tied: bool = False
    layers: tuple[Layer, ...]
    max_context: int = 0
    head: Fmt = BF16
    embed: Fmt = BF16
    weights: str = "bf16"
    kv_hint: str = ""
    embed_extra: int = 0
    vision: int = 0
    parallel_block: bool = False
    caveats: tuple[str, ...] = ()

    def depth(self) -> int:
        """Transformer blocks; for models that list mixers and feed-forwards separately, mixers."""
        mixers = sum(g.count for g in self.layers if g.attn or g.rec)
        ffns = sum(g.count for g in self.layers if g.ffn)
        return max(mixers, ffns)

    def body_params(self) -> int:
        """Elements of all layers, without embedding and head."""
        total = 0
        for group in self.layers:
            size = group.extra
            if group.attn:
                size += group.attn.params(self.hidden)
            if group.rec:
                size += group.rec.params()
            if group.ffn:
                ffn = group.ffn
                size += ffn.dense_params(self.hidden) + ffn.shared_params(self.hidden) + ffn.router_params(self.hidden)
                size += ffn.experts * ffn.expert_params(self.hidden)
            total += group.count * size
        return total

    def params(self) -> int:
        """All elements: embedding, head when untied, layers, and one norm before each mixer and feed-forward."""
        norms = self.hidden * (1 + sum(g.count * (bool(g.attn or g.rec) + bool(g.ffn)) for g in self.layers))
        return self.body_params() + self.vocab * self.hidden * (1 if self.tied else 2) + self.embed_extra + norms

    def active_params(self) -> int:
        """Elements read for one token alone: ``top_k`` experts, the head, no embedding."""
        idle = sum(
            g.count * (g.ffn.experts - g.ffn.top_k) * g.ffn.expert_params(self.hidden) for g in self.layers if g.ffn
        )
        return self.body_params() - idle + self.vocab * self.hidden

    def is_moe(self) -> bool:
        """Whether any layer routes tokens to experts."""
        return any(g.ffn and g.ffn.experts for g in self.layers)

    def is_mla(self) -> bool:
        """Whether attention keeps a latent that tensor parallelism cannot split."""
        return any(g.attn and g.attn.kind != "gqa" for g in self.layers)

    def is_hybrid(self) -> bool:
        """Whether some layers keep a recurrent state."""
        return any(g.rec for g in self.layers)

    def heads(self) -> int:
        """Query heads of the widest attention layer, 0 for none."""
        return max((g.attn.heads for g in self.layers if g.attn), default=0)

    def kv_heads(self) -> int:
        """Fewest key/value heads of any full GQA layer; 1 for latent attention."""
        return min((g.attn.kv_heads if g.attn.kind == "gqa" else 1 for g in self.layers if g.attn), default=1)

    def with_caveat(self, *texts: str) -> ModelShape:
        """A copy with further caveats."""
        return structs.replace(self, caveats=(*self.caveats, *texts))
