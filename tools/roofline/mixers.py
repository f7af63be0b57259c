"""What mixes tokens in each layer of a config: GQA with windows, MLA, compressed attention, or a recurrent state."""

from __future__ import annotations

from typing import Any

from tools.roofline.fields import Fields, Missing
from tools.roofline.shape import Attn, Recurrent, Refusal

Mixer = Attn | Recurrent | None
_RECURRENT = ("linear_attention", "gdn", "kda", "mamba", "mamba2")
_PLAIN_WINDOW = ("mistral", "mixtral", "phi3", "starcoder2", "ministral")


def mixers(f: Fields) -> list[Mixer]:
    """One entry per block. Raises :class:`~tools.roofline.fields.Missing` with the field that is needed."""
    kind = f.model_type
    if f.raw("compress_ratios") is not None:
        return _compressed(f)
    if kind == "nemotron_h" or f.raw("hybrid_override_pattern", "layers_block_type") is not None:
        return [_nemotron(f, word) for word in blocks(f)]
    if f.items("block_configs"):
        return [_puzzle(f, block) for block in f.items("block_configs")]
    if isinstance(f.data.get("linear_attn_config"), dict):
        return _kimi_linear(f)
    count = f.need("num_hidden_layers", "n_layer", "num_layers", "n_layers")
    if count > 4096:
        raise Missing(Refusal(field="num_hidden_layers", why=f"{count} layers cannot be true", do="check the file"))
    words = _layer_words(f, count)
    if f.opt("kv_lora_rank"):
        return _mla_layers(f, words)
    shared = f.opt("num_kv_shared_layers")
    out: list[Mixer] = []
    for index, word in enumerate(words):
        if word in _RECURRENT:
            out.append(gated_delta(f))
        else:
            out.append(_gqa(f, word, owns=index < count - shared))
    return _sparse(f, out)


def blocks(f: Fields) -> list[str]:
    """Nemotron-H style block words: mamba, attention, mlp or moe, one per block."""
    words = [str(word).lower() for word in f.items("layers_block_type")]
    if words:
        return words
    pattern = f.raw("hybrid_override_pattern")
    if not isinstance(pattern, str) or not pattern or len(pattern) > 4096:
        raise Missing(Refusal(field="hybrid_override_pattern", why="missing, so the block kinds are unknown"))
    names = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
    unknown = sorted({ch for ch in pattern if ch not in names})
    if unknown:
        raise Missing(Refusal(field="hybrid_override_pattern", why=f"unknown block letter {unknown[0]!r}"))
    return [names[ch] for ch in pattern]


def _layer_words(f: Fields, count: int) -> list[str]:
    """``full_attention``, ``sliding_attention``, ``chunked_attention`` or ``linear_attention`` per layer."""
    listed = [str(word).lower() for word in f.items("layer_types")]
    if listed:
        if len(listed) < count:
            raise Missing(Refusal(field="layer_types", why=f"{len(listed)} entries for {count} layers"))
        return listed[:count]
    pattern = f.items("hybrid_layer_pattern")
    if pattern:
        return ["sliding_attention" if step else "full_attention" for step in pattern[:count]]
    interval = f.opt("full_attention_interval")
    if interval and f.opt("linear_num_value_heads"):
        return ["full_attention" if (i + 1) % interval == 0 else "linear_attention" for i in range(count)]
    if f.opt("attention_chunk_size") and f.model_type.startswith("llama4"):
        ropes = f.items("no_rope_layers")
        if len(ropes) >= count:
            return ["chunked_attention" if use else "full_attention" for use in ropes[:count]]
        return ["full_attention" if (i + 1) % 4 == 0 else "chunked_attention" for i in range(count)]
    return _window_words(f, count)


def _window_words(f: Fields, count: int) -> list[str]:
    window = f.opt("sliding_window")
    limit = f.opt("max_position_embeddings")
    if not window or not f.flag("use_sliding_window", default=True) or (limit and window >= limit):
        return ["full_attention"] * count
    if f.model_type == "gemma2":
        return ["sliding_attention" if i % 2 == 0 else "full_attention" for i in range(count)]
    if f.model_type.startswith("gpt_oss"):
        return ["sliding_attention" if i % 2 == 0 else "full_attention" for i in range(count)]
    step = f.opt("sliding_window_pattern", "_sliding_window_pattern")
    if step:
        return ["full_attention" if (i + 1) % step == 0 else "sliding_attention" for i in range(count)]
    if f.model_type.startswith(("qwen2", "qwen3")):
        first = f.opt("max_window_layers", default=count)
        return ["sliding_attention" if i >= first else "full_attention" for i in range(count)]
    if f.model_type.startswith(_PLAIN_WINDOW):
        return ["sliding_attention"] * count
    if limit:
        raise Missing(
            Refusal(
                field="layer_types",
                why=f"sliding_window is {window} but nothing says which layers use it",
                do="add layer_types or sliding_window_pattern",
            )
        )
    return ["full_attention"] * count


def _gqa(f: Fields, word: str, *, owns: bool = True) -> Attn:
    if word not in ("full_attention", "sliding_attention", "chunked_attention", "attention", "full", "global"):
        raise Missing(Refusal(field="layer_types", why=f"layer kind {word!r} is not known"))
    sliding = word == "sliding_attention"
    window = 0
    if sliding:
        window = f.need("sliding_window", "sliding_window_size")
    elif word == "chunked_attention":
        window = f.need("attention_chunk_size")
    hidden = f.need("hidden_size", "n_embd", "d_model")
    heads = f.need("num_attention_heads", "n_head", "n_heads")
    kv = f.opt("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
    if not kv:
        kv = 1 if f.flag("multi_query") else heads
        f.notes.append(f"num_key_value_heads is not in the file: {kv} taken")
    d = f.opt("head_dim", "attention_head_dim")
    if not d:
        if hidden % heads:
            raise Missing(
                Refusal(field="head_dim", why=f"missing, and {hidden} hidden is no multiple of {heads} heads")
            )
        d = hidden // heads
    dv = f.opt("v_head_dim", default=d) or d
    k_eq_v = False
    if sliding and f.opt("swa_num_key_value_heads"):
        kv, heads = f.opt("swa_num_key_value_heads"), f.opt("swa_num_attention_heads", default=heads)
        d = f.opt("swa_head_dim", default=d)
        dv = f.opt("swa_v_head_dim", default=dv)
    if not sliding and f.opt("global_head_dim"):
        d = dv = f.opt("global_head_dim")
        kv = f.opt("num_global_key_value_heads", default=kv) or kv
        k_eq_v = f.flag("attention_k_eq_v")
    if heads % kv and kv % heads:
        raise Missing(Refusal(field="num_key_value_heads", why=f"{heads} query heads cannot share {kv} KV heads"))
    gate = f.flag(
        "attn_output_gate", "attention_output_gate", default=f.model_type.startswith(("qwen3_next", "qwen3_5"))
    )
    return Attn(
        heads=heads,
        kv_heads=kv,
        d=d,
        dv=dv,
        window=window,
        chunked=word == "chunked_attention",
        gate=gate,
        owns_kv=owns,
        v_proj=not k_eq_v,
    )


def _sparse(f: Fields, out: list[Mixer]) -> list[Mixer]:
    """Block-sparse selection over a full GQA cache: what is read shrinks, what is kept does not."""
    spec = f.data.get("sparse_attention_config")
    if not isinstance(spec, dict) or not spec.get("use_sparse_attention", True):
        return out
    size, blocks_read, dim = spec.get("sparse_block_size"), spec.get("sparse_topk_blocks"), spec.get("sparse_index_dim")
    if not (isinstance(size, int) and isinstance(blocks_read, int) and isinstance(dim, int)):
        raise Missing(Refusal(field="sparse_attention_config", why="block size, top-k or index size is missing"))
    heads = spec.get("sparse_num_index_heads") or 1
    freq = spec.get("sparse_attention_freq")
    where = freq if isinstance(freq, list) and len(freq) == len(out) else [1] * len(out)
    f.notes.append(
        f"block-sparse attention: at most {size * blocks_read} tokens read; the index cache (one {dim}-wide key a "
        "token and layer) is inferred from the config, not checked against an engine"
    )
    return [
        Attn(**_as_dict(mixer) | {"topk": size * blocks_read, "index_dim": dim, "index_heads": int(heads)})
        if isinstance(mixer, Attn) and use
        else mixer
        for mixer, use in zip(out, where, strict=True)
    ]


def _as_dict(item: Attn) -> dict[str, Any]:
    return {name: getattr(item, name) for name in item.__struct_fields__}


def _mla(f: Fields, *, owns_index: bool = True) -> Attn:
    heads = f.need("num_attention_heads")
    nope, rope = f.need("qk_nope_head_dim"), f.opt("qk_rope_head_dim")
    topk = f.opt("index_topk")
    return Attn(
        kind="mla",
        heads=heads,
        kv_heads=1,
        d=nope + rope,
        dv=f.need("v_head_dim"),
        q_lora=f.opt("q_lora_rank"),
        latent=f.need("kv_lora_rank"),
        rope=rope,
        nope=nope,
        topk=topk,
        gate=f.flag("mla_use_output_gate"),
        index_heads=f.need("index_n_heads") if topk else 0,
        index_dim=f.need("index_head_dim") if topk else 0,
        owns_index=owns_index,
    )


def _mla_layers(f: Fields, words: list[str]) -> list[Mixer]:
    kinds = [str(kind) for kind in f.items("indexer_types")]
    known = ("full_attention", "deepseek_sparse_attention")
    for word in words:
        if word not in known:
            raise Missing(Refusal(field="layer_types", why=f"layer kind {word!r} is not known beside kv_lora_rank"))
    return [_mla(f, owns_index=not (i < len(kinds) and kinds[i] == "shared")) for i in range(len(words))]


def _compressed(f: Fields) -> list[Mixer]:
    """DeepSeek-V4: one shared key/value vector a token, a 128-token window, and rows compressed 4 or 128 to one.

    A row is 448 FP8 values, 64 BF16 rope values and 8 bytes of scales in both engines that serve it.
    """
    count = f.need("num_hidden_layers")
    ratios = f.items("compress_ratios")
    if len(ratios) < count or not all(isinstance(r, int) and r >= 0 for r in ratios):
        raise Missing(Refusal(field="compress_ratios", why=f"needs one whole number for each of {count} layers"))
    dim, rope = f.need("head_dim"), f.need("qk_rope_head_dim")
    row = (dim - rope) + 2 * rope + 8
    out: list[Mixer] = []
    for ratio in ratios[:count]:
        selects = ratio == min((r for r in ratios if r), default=0) and bool(f.opt("index_topk"))
        out.append(
            Attn(
                kind="csa",
                heads=f.need("num_attention_heads"),
                kv_heads=1,
                d=dim,
                dv=dim,
                window=f.need("sliding_window"),
                q_lora=f.need("q_lora_rank"),
                rope=rope,
                ratio=ratio,
                row_bytes=row,
                topk=f.opt("index_topk") if selects else 0,
                index_heads=f.opt("index_n_heads") if selects else 0,
                index_dim=f.opt("index_head_dim") if selects else 0,
                o_lora=f.need("o_lora_rank"),
                o_groups=f.opt("o_groups", default=1),
            )
        )
    return out


def gated_delta(f: Fields) -> Recurrent:
    """Gated DeltaNet (Qwen3-Next, Qwen3.5)."""
    hidden = f.need("hidden_size")
    kh, vh = f.need("linear_num_key_heads"), f.need("linear_num_value_heads")
    dk, dv = f.need("linear_key_head_dim"), f.need("linear_value_head_dim")
    kernel = f.opt("linear_conv_kernel_dim", default=4)
    channels = 2 * kh * dk + vh * dv
    narrow = "bf" in f.word("mamba_ssm_dtype") or "16" in f.word("mamba_ssm_dtype")
    return Recurrent(
        kind="gdn",
        proj=(
            ("in_proj_qkv", hidden * channels),
            ("in_proj_z", hidden * vh * dv),
            ("in_proj_ba", hidden * 2 * vh),
            ("out_proj", vh * dv * hidden),
        ),
        conv_weights=kernel * channels,
        state=vh * dk * dv,
        conv_state=(kernel - 1) * channels,
        state_bytes=2.0 if narrow else 4.0,
    )


def _nemotron(f: Fields, word: str) -> Mixer:
    if word == "attention":
        return _gqa(f, "full_attention")
    if word in ("mlp", "moe"):
        return None
    if word != "mamba":
        raise Missing(Refusal(field="layers_block_type", why=f"block kind {word!r} is not known"))
    hidden, heads, dim = f.need("hidden_size"), f.need("mamba_num_heads"), f.need("mamba_head_dim")
    inner, wide = heads * dim, 2 * f.need("n_groups") * f.need("ssm_state_size")
    kernel = f.opt("conv_kernel", default=4)
    dtype = f.word("mamba_ssm_cache_dtype")
    return Recurrent(
        kind="mamba2",
        proj=(("in_proj", hidden * (2 * inner + wide + heads)), ("out_proj", inner * hidden)),
        conv_weights=kernel * (inner + wide),
        state=inner * f.need("ssm_state_size"),
        conv_state=(kernel - 1) * (inner + wide),
        state_bytes=4.0 if "32" in dtype else 2.0,
    )


def _kimi_linear(f: Fields) -> list[Mixer]:
    spec = f.data["linear_attn_config"]
    full = spec.get("full_attn_layers")
    heads, dim = spec.get("num_heads"), spec.get("head_dim")
    if not isinstance(full, list) or not isinstance(heads, int) or not isinstance(dim, int):
        raise Missing(Refusal(field="linear_attn_config", why="full_attn_layers, num_heads or head_dim is missing"))
    hidden, count = f.need("hidden_size"), f.need("num_hidden_layers")
    kernel = int(spec.get("short_conv_kernel_size") or 4)
    inner = heads * dim
    gate = hidden * inner if spec.get("use_full_rank_gate") else hidden * dim + dim * inner
    rec = Recurrent(
        kind="kda",
        proj=(
            ("q_proj", hidden * inner),
            ("k_proj", hidden * inner),
            ("v_proj", hidden * inner),
            ("f_proj", hidden * dim + dim * inner),
            ("g_proj", gate),
            ("b_proj", hidden * heads),
            ("o_proj", inner * hidden),
        ),
        conv_weights=kernel * 3 * inner,
        state=heads * dim * dim,
        conv_state=(kernel - 1) * 3 * inner,
    )
    f.notes.append("delta-attention projections are taken from the config's names, not checked against a checkpoint")
    wanted = set(full)
    return [_mla(f) if i + 1 in wanted else rec for i in range(count)]


def _puzzle(f: Fields, block: Any) -> Mixer:
    """One block of a searched architecture (``block_configs``): attention may be absent."""
    spec = block.get("attention") if isinstance(block, dict) else None
    if not isinstance(spec, dict):
        raise Missing(Refusal(field="block_configs", why="a block has no attention entry"))
    if spec.get("replace_with_linear"):
        raise Missing(Refusal(field="block_configs", why="attention replaced by a linear layer is not supported"))
    if spec.get("no_op"):
        return None
    group = spec.get("n_heads_in_group")
    heads = f.need("num_attention_heads")
    if not isinstance(group, int) or group <= 0 or heads % group:
        raise Missing(Refusal(field="block_configs", why="n_heads_in_group is missing or does not divide the heads"))
    d = f.opt("head_dim", default=f.need("hidden_size") // heads)
    return Attn(heads=heads, kv_heads=heads // group, d=d, dv=d, window=int(spec.get("window_length") or 0))
