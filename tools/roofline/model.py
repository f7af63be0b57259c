"""From a Hugging Face ``config.json`` or a model's name to its :class:`~tools.roofline.shape.ModelShape`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from msgspec import Struct, structs

from knowledge.loader import ROOT, read_yaml
from tools.roofline.ffns import ffns
from tools.roofline.fields import Fields, Missing, runs
from tools.roofline.mixers import Mixer, mixers
from tools.roofline.precision import canonical, fmt
from tools.roofline.quant import Scheme, scheme_from
from tools.roofline.shape import BF16, Attn, Ffn, Fmt, Formats, Layer, ModelShape, Recurrent, Refusal

# Keys that mean machinery this calculator does not know: silence would make the result wrong.
_FOREIGN = (
    "ssm_cfg", "rwkv", "attn_layer_period", "mamba_d_state", "mamba_expand", "time_mix_extra_dim", "rnn_width",
    "lightning", "full_attn_idxs", "conv_L_cache", "is_encoder_decoder_only", "encoder_layers", "d_state", "zero_expert_num",
    "attn_type_list",
)  # fmt: skip


class _Entry(Struct, frozen=True):
    config: dict[str, Any]
    source: str


@lru_cache(maxsize=1)
def _defaults() -> dict[str, dict[str, Any]]:
    data = read_yaml(ROOT / "models" / "defaults.yaml")
    return {name: dict(entry["fields"]) for name, entry in data.items()}


@lru_cache(maxsize=1)
def _table() -> dict[str, _Entry]:
    out: dict[str, _Entry] = {}
    for record in read_yaml(ROOT / "models" / "models.yaml"):
        entry = _Entry(record["config"], record["source"])
        for name in (record["id"], *record.get("aliases", ())):
            out[_key(name)] = entry
    return out


def _key(name: str) -> str:
    text = name.strip().lower().rstrip("/").rpartition("/")[2]
    text = re.sub(r"[_\s.:]+", "-", text)
    text = re.sub(r"-+", "-", text)
    return re.sub(r"^(?:meta-)?(?=llama)", "", text)


_SUFFIX = re.compile(
    r"-(?:instruct|chat|it|hf|base|thinking|fp8|fp8-kv|fp4|nvfp4|mxfp4|bf16|fp16|awq|gptq|int4|int8|w4a16|w8a8|gguf|"
    r"dynamic|fp8-dynamic|block|mtp|v0-1|v0-2|v0-3|v1|2407|2501|2503|2506|2507|0528|0324|0905|preview|latest|kv|"
    r"quantized|autoround|q4-k-m|q8-0|turbo|pt|static|per-?tensor|4bit|8bit|online|bnb|text|code)$"
)


@lru_cache(maxsize=256)
def model_from_name(name: str) -> ModelShape | Refusal:
    """Shape of a model of the shipped table, by any usual spelling; the precision in the name is applied.

    An unknown name is refused, never guessed from its size.
    """
    table = _table()
    key = _key(name)
    probe = key
    while probe and probe not in table:
        shorter = _SUFFIX.sub("", probe)
        if shorter == probe:
            break
        probe = shorter
    entry = table.get(probe)
    if entry is None:
        close = sorted(k for k in table if probe and (k.startswith(probe[:9]) or probe in k))[:4]
        hint = f"; nearest in the table: {', '.join(close)}" if close else ""
        return Refusal(
            field="model", why=f"{name!r} is not in the model table{hint}", do="give its config.json or another name"
        )
    shape = model_from_config(entry.config)
    if isinstance(shape, Refusal):
        return shape
    shape = structs.replace(shape, name=name)
    word = _precision_in(key)
    return with_weights(shape, word) if word and word != shape.weights else shape


def _precision_in(key: str) -> str:
    for word in ("nvfp4", "mxfp4", "fp8", "awq", "gptq", "w4a16", "w8a8", "int4", "int8", "fp4"):
        if re.search(rf"(?:^|-){word}(?:-|$)", key):
            return word
    return ""


def model_from_config(
    config: dict[str, Any], *, quant: dict[str, Any] | None = None, name: str = ""
) -> ModelShape | Refusal:
    """Shape of a decoder from its ``config.json`` (``quant``: the content of ``hf_quant_config.json``, if any).

    Returns a :class:`Refusal` naming the field when something needed is missing or cannot be true; never raises on
    content and never fills a structural field silently (defaults taken stand in ``caveats``).
    """
    if not isinstance(config, dict):
        return Refusal(field="config", why="not a JSON object", do="give the model's config.json")
    if "quantization" in config and "hidden_size" not in config and "text_config" not in config:
        return Refusal(
            field="hidden_size",
            why="this is a quantisation file alone (hf_quant_config.json)",
            do="give config.json beside it",
        )
    fields = Fields(config, _defaults())
    try:
        return _build(fields, _scheme(fields, quant), name)
    except Missing as missing:
        return missing.refusal
    except (TypeError, ValueError, OverflowError, AttributeError, KeyError) as error:
        return Refusal(field="config", why=f"a field has an unexpected form ({error})", do="check the file")


def _scheme(fields: Fields, quant: dict[str, Any] | None) -> Scheme | None:
    if quant is None:
        quant = fields.data.get("quantization_config") or fields.data.get("compression_config")
    elif isinstance(quant.get("quantization"), dict):
        quant = quant["quantization"]
    if not isinstance(quant, dict) or not quant:
        return None
    scheme = scheme_from(quant)
    if scheme is None:
        method = quant.get("quant_method", quant.get("quant_algo", "?"))
        raise Missing(
            Refusal(
                field="quantization_config",
                why=f"method {method!r} is not known, so bytes per weight are not",
                do="state the precision (--weights)",
            )
        )
    if fields.word("expert_dtype") == "fp4" and scheme.expert is None:
        scheme = structs.replace(scheme, expert=fmt("mxfp4", low=False))
    return scheme


def _build(f: Fields, scheme: Scheme | None, name: str) -> ModelShape:
    # MiniMax lists an attention type for each layer; 1 is full attention, 0 its older linear form.
    foreign = [key for key in _FOREIGN if f.data.get(key) not in (None, False, 0)]
    if "attn_type_list" in foreign and all(kind == 1 for kind in f.items("attn_type_list")):
        foreign.remove("attn_type_list")
    if foreign:
        raise Missing(Refusal(field=foreign[0], why=f"the architecture {f.model_type!r} is not supported"))
    mix = mixers(f)
    hidden, vocab = f.need("hidden_size", "n_embd", "d_model"), f.need("vocab_size")
    feed = ffns(f, len(mix))
    if len(feed) != len(mix):
        raise Missing(Refusal(field="num_hidden_layers", why=f"{len(mix)} mixers but {len(feed)} feed-forward blocks"))
    notes = list(dict.fromkeys(f.notes))
    extra, table_extra = _per_layer_inputs(f, len(mix), hidden)
    rows = [(m, n, _formats(i, m, n, hidden, scheme)) for i, (m, n) in enumerate(zip(mix, feed, strict=True))]
    layers = tuple(
        Layer(
            count=count,
            attn=m if isinstance(m, Attn) else None,
            rec=m if isinstance(m, Recurrent) else None,
            ffn=n,
            fmt=formats,
            extra=extra,
        )
        for (m, n, formats), count in runs(rows)
    )
    if scheme:
        notes.extend(scheme.notes)
    said = _precision_in(_key(name)) if name else ""
    if said and scheme is None and _dtype(f) == "bf16":
        notes.append(f"the name says {said}, the config has no quantization_config: {_dtype(f)} taken")
    if f.model_type not in _known_types() and f.model_type:
        notes.append(f"model_type {f.model_type!r} is not among the checked ones: computed from its generic fields")
    if not f.model_type:
        notes.append("model_type is not in the file: computed from its generic fields")
    return ModelShape(
        name=name or str(f.data.get("_name_or_path") or f.model_type or "model"),
        model_type=f.model_type,
        hidden=hidden,
        vocab=vocab,
        tied=f.flag("tie_word_embeddings", default=f.model_type.startswith("gemma")),
        layers=layers,
        max_context=f.opt("max_position_embeddings", "n_positions", "seq_length"),
        head=scheme.exact.get("lm_head", BF16) if scheme else BF16,
        weights=scheme.word if scheme else _dtype(f),
        kv_hint=scheme.kv if scheme else "",
        embed_extra=table_extra,
        vision=_vision(f),
        parallel_block=f.model_type in ("cohere", "cohere2", "gptj", "falcon", "phi"),
        caveats=tuple(notes),
    )


@lru_cache(maxsize=1)
def _known_types() -> frozenset[str]:
    data = read_yaml(ROOT / "models" / "checked_types.yaml")
    return frozenset(data)


def _dtype(f: Fields) -> str:
    return canonical(f.word("torch_dtype", "dtype") or "bf16") or "bf16"


def _per_layer_inputs(f: Fields, depth: int, hidden: int) -> tuple[int, int]:
    """Gemma-3n style per-layer embeddings: elements per layer, and elements of the resident table."""
    size = f.opt("hidden_size_per_layer_input")
    if not size:
        return 0, 0
    rank, inputs = f.opt("laurel_rank"), f.opt("altup_num_inputs", default=1)
    per_layer = 2 * hidden * size + 2 * hidden * rank + hidden * size
    altup = 2 * hidden * hidden * max(0, inputs - 1) // max(1, depth)
    return per_layer + altup, f.opt("vocab_size_per_layer_input", default=0) * size * depth


def _vision(f: Fields) -> int:
    """Elements of a plain vision transformer, 0 when its sizes are not in the file."""
    spec = f.data.get("vision_config")
    if not isinstance(spec, dict):
        return 0
    depth = spec.get("num_hidden_layers", spec.get("depth"))
    width, inner = spec.get("hidden_size", spec.get("embed_dim")), spec.get("intermediate_size")
    if not (isinstance(depth, int) and isinstance(width, int) and isinstance(inner, int)):
        return 0
    if not (0 < depth < 1000 and 0 < width < 100_000 and 0 < inner < 1_000_000):
        return 0
    return depth * (4 * width * width + 2 * width * inner)


def _formats(index: int, mix: Mixer, ffn: Ffn | None, hidden: int, scheme: Scheme | None) -> Formats:
    if scheme is None:
        return Formats()
    at = f"layers.{index}"
    attn = rec = dense = expert = shared = BF16
    roots: tuple[str, ...]
    if isinstance(mix, Attn):
        roots = ("self_attn", "attn", "mixer", "attention")
        attn = _blend({key: ([f"{at}.{r}.{key}" for r in roots], n) for key, n in mix.parts(hidden).items()}, scheme)
    if isinstance(mix, Recurrent):
        roots = ("linear_attn", "mixer", "self_attn")
        parts = {key: ([f"{at}.{r}.{key}" for r in roots], n) for key, n in mix.proj}
        if "in_proj_qkv" in parts:
            parts["in_proj_qkv"][0].extend([f"{at}.linear_attn.in_proj_qkvz"])
        rec = _blend(parts, scheme)
    if ffn:
        roots = ("mlp", "block_sparse_moe", "ffn", "mixer", "feed_forward")
        if ffn.width:
            dense = scheme.of([f"{at}.{r}.{n}" for r in roots for n in ("gate_proj", "up_proj", "w1")])
        if ffn.experts:
            heads = [at] if ffn.beside else [f"{at}.{r}" for r in roots]
            expert = scheme.of(
                [f"{h}.experts.0.{n}" for h in heads for n in ("gate_proj", "up_proj", "w1")], expert=True
            )
            kinds = (
                [f"{at}.mlp"]
                if ffn.beside
                else [f"{h}.{k}" for h in heads for k in ("shared_experts", "shared_expert")]
            )
            shared = scheme.of([f"{k}.{n}" for k in kinds for n in ("gate_proj", "up_proj", "w1")])
    return Formats(attn=attn, rec=rec, ffn=dense, expert=expert, shared=shared)


def _blend(parts: dict[str, tuple[list[str], int]], scheme: Scheme) -> Fmt:
    total = sum(n for _, n in parts.values()) or 1
    found = {key: (scheme.of(names), n) for key, (names, n) in parts.items()}
    size = sum(one.bytes * n for one, n in found.values()) / total
    widest = max(found.values(), key=lambda item: item[1])[0]
    return Fmt(round(size, 6), widest.math)


def with_weights(model: ModelShape, word: str, *, low: bool = False) -> ModelShape:
    """The same model at another precision, by what published checkpoints of that precision leave at 16 bit.

    gpt-oss keeps attention at 16 bit, Kimi's INT4 attention, shared experts and dense layers too; 4-bit float
    checkpoints of latent-attention models keep attention wider, which a floor (``low``) must not count on.
    An unknown word returns the model unchanged.
    """
    one = fmt(word, low=low)
    name = canonical(word)
    if one is None or name is None:
        return model
    four_float = one.math == "fp4"
    keep_attn = model.model_type.startswith("gpt_oss") and four_float
    only_experts = keep_attn or (model.model_type in ("kimi_k2", "kimi_k25") and name == "int4")
    if four_float and model.is_moe() and not low:
        keep_attn = True
    layers = []
    for group in model.layers:
        formats = Formats(
            attn=BF16 if keep_attn or only_experts else one,
            rec=BF16 if only_experts or (four_float and not low) else one,
            ffn=BF16 if only_experts else one,
            expert=one,
            shared=BF16 if only_experts or (keep_attn and not low) else one,
        )
        layers.append(structs.replace(group, fmt=formats))
    return structs.replace(model, layers=tuple(layers), weights=name, head=BF16)
