"""The feed-forward part of each layer of a config: dense, mixture of experts, or none."""

from __future__ import annotations

from typing import Any

from tools.roofline.fields import Fields, Missing
from tools.roofline.mixers import blocks
from tools.roofline.shape import Ffn, Refusal

# Two matrices instead of three: no gate projection.
_PLAIN = (
    "gpt2", "gpt_neox", "gptj", "gpt_bigcode", "opt", "bloom", "falcon", "mpt", "phi", "starcoder2", "nemotron",
    "nemotron_h", "arcee",
)  # fmt: skip
# Expert width stands in ``intermediate_size``.
_WIDTH_IS_EXPERT = ("mixtral", "gpt_oss", "minimax_m2", "phimoe", "llama4", "granitemoe", "minimax")
_EXPERTS = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
_TOP_K = (
    "num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_k", "moe_topk", "experts_per_token",
)  # fmt: skip


def ffns(f: Fields, count: int) -> list[Ffn | None]:
    """One entry per block. Raises :class:`~tools.roofline.fields.Missing` with the field that is needed."""
    if f.items("block_configs"):
        return [_puzzle(f, block) for block in f.items("block_configs")]
    if f.model_type == "nemotron_h" or f.raw("hybrid_override_pattern", "layers_block_type") is not None:
        return [_nemotron(f, word) for word in blocks(f)]
    experts = f.opt(*_EXPERTS)
    if experts <= 1:
        if f.raw("num_experts_per_tok") and f.raw("moe_intermediate_size"):
            raise Missing(Refusal(field="num_experts", why="experts per token are given but not how many there are"))
        return [_dense(f)] * count
    moe = _moe(f, experts)
    sparse = _sparse_layers(f, count)
    dense = _dense(f) if not all(sparse) else None
    return [moe if use else dense for use in sparse]


def _mats(f: Fields) -> int:
    act = f.word("mlp_hidden_act", "hidden_act", "hidden_activation", "activation_function")
    if act == "relu2" or f.model_type in _PLAIN:
        return 2
    return 3


def _dense(f: Fields) -> Ffn:
    raw = f.data.get("intermediate_size")
    if isinstance(raw, list) and raw:
        widths = {w for w in raw if isinstance(w, int)}
        if len(widths) != 1:
            raise Missing(Refusal(field="intermediate_size", why="differs per layer, which is not supported"))
        return Ffn(mats=_mats(f), width=widths.pop())
    names = ("dense_intermediate_size", "intermediate_size_mlp", "intermediate_size", "ffn_hidden_size", "n_inner")
    width = f.opt(*names)
    if not width:
        if f.model_type in ("gpt2", "bloom", "falcon"):
            width = 4 * f.need("hidden_size", "n_embd")
            f.notes.append("intermediate_size is not in the file: four times the hidden size taken")
        else:
            width = f.need("intermediate_size")
    return Ffn(mats=_mats(f), width=width)


def _moe(f: Fields, experts: int) -> Ffn:
    top_k = f.need(*_TOP_K)
    if top_k > experts:
        raise Missing(Refusal(field=_TOP_K[0], why=f"{top_k} experts per token of only {experts}"))
    m = f.opt("moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size")
    if not m:
        if f.model_type and not f.model_type.startswith(_WIDTH_IS_EXPERT):
            raise Missing(Refusal(field="moe_intermediate_size", why="missing, so the experts' size is unknown"))
        m = f.need("intermediate_size")
    mats = _mats(f)
    shared = f.opt("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "share_expert_dim")
    if f.model_type.startswith("llama4"):
        shared = m
    elif not shared:
        number = f.opt("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
        shared = number * m if number else f.opt("shared_intermediate_size")
    beside = f.flag("enable_moe_block")
    if beside:
        shared += f.need("intermediate_size")
    latent = f.opt("moe_latent_size", "routed_expert_hidden_size")
    return Ffn(
        mats=mats, experts=experts, top_k=top_k, m=m, latent=latent, shared=shared, shared_mats=mats, beside=beside
    )


def _sparse_layers(f: Fields, count: int) -> list[bool]:
    """Which blocks route: a list, the first dense ones, an interval, or all."""
    kinds = [str(kind) for kind in f.items("mlp_layer_types")]
    if len(kinds) >= count:
        return [kind == "sparse" for kind in kinds[:count]]
    freq = f.raw("moe_layer_freq")
    if isinstance(freq, list):
        if len(freq) < count:
            raise Missing(Refusal(field="moe_layer_freq", why=f"{len(freq)} entries for {count} layers"))
        return [bool(step) for step in freq[:count]]
    first = f.opt("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index")
    step = f.opt("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_interval", default=1) or 1
    if isinstance(freq, int) and freq > 1:
        step = freq
    only = {i for i in f.items("mlp_only_layers") if isinstance(i, int)}
    return [i >= first and (i + 1) % step == 0 and i not in only for i in range(count)]


def _nemotron(f: Fields, word: str) -> Ffn | None:
    if word == "mlp":
        return Ffn(mats=2, width=f.need("intermediate_size"))
    if word == "moe":
        shared = f.opt("moe_shared_expert_intermediate_size") * f.opt("n_shared_experts", default=1)
        return Ffn(
            mats=2,
            experts=f.need("n_routed_experts"),
            top_k=f.need("num_experts_per_tok"),
            m=f.need("moe_intermediate_size"),
            latent=f.opt("moe_latent_size"),
            shared=shared,
            shared_mats=2,
        )
    return None


def _puzzle(f: Fields, block: Any) -> Ffn | None:
    spec = block.get("ffn") if isinstance(block, dict) else None
    if not isinstance(spec, dict):
        raise Missing(Refusal(field="block_configs", why="a block has no ffn entry"))
    if spec.get("no_op"):
        return None
    if spec.get("replace_with_linear"):
        raise Missing(Refusal(field="block_configs", why="ffn replaced by a linear layer is not supported"))
    width = spec.get("intermediate_size")
    if not isinstance(width, int):
        mult = spec.get("ffn_mult")
        if not isinstance(mult, (int, float)) or not 0 < mult < 64:
            raise Missing(Refusal(field="block_configs", why="ffn_mult is missing"))
        width = -(-int(2 * mult * f.need("hidden_size") / 3) // 256) * 256
    return Ffn(width=width)
