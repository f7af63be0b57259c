"""Precision words: from what people, engines and checkpoints call a format to bytes per element and arithmetic.

Bytes include scales: NVFP4 carries an 8-bit scale per 16 weights, MXFP4 one per 32, INT4 a 16-bit scale per group.
For GGUF mixes the low figure is the smallest block type in the mix, the usual one the published file size over the
weights that are read. Sources: format definitions of each method; llama.cpp quantisation table for GGUF sizes.
"""

from __future__ import annotations

import re

from tools.roofline.shape import Fmt

_GGUF: dict[str, tuple[float, float]] = {
    "q2_k": (2.6, 3.2),
    "q3_k_s": (3.4, 3.6),
    "q3_k_m": (3.4, 3.95),
    "q3_k_l": (3.4, 4.3),
    "q4_0": (4.5, 4.6),
    "q4_1": (5.0, 5.1),
    "q4_k_s": (4.5, 4.65),
    "q4_k_m": (4.5, 4.9),
    "q4_k": (4.5, 4.9),
    "q5_0": (5.5, 5.6),
    "q5_1": (6.0, 6.1),
    "q5_k_s": (5.5, 5.6),
    "q5_k_m": (5.5, 5.75),
    "q5_k": (5.5, 5.75),
    "q6_k": (6.5625, 6.6),
    "q8_0": (8.5, 8.5),
    "iq4_xs": (4.25, 4.4),
    "iq4_nl": (4.5, 4.6),
}
_WORDS: dict[str, tuple[Fmt, Fmt]] = {
    "fp32": (Fmt(4.0, "fp32"), Fmt(4.0, "fp32")),
    "bf16": (Fmt(2.0, "bf16"), Fmt(2.0, "bf16")),
    "fp8": (Fmt(1.0, "fp8"), Fmt(1.0, "fp8")),
    "fp8_block": (Fmt(1.0002, "fp8"), Fmt(1.0002, "fp8")),
    "w8a16": (Fmt(1.0, "bf16"), Fmt(1.0, "bf16")),
    "int8": (Fmt(1.0, "int8"), Fmt(1.0, "int8")),
    "nvfp4": (Fmt(0.5625, "fp4"), Fmt(0.5625, "fp4")),
    "mxfp4": (Fmt(0.53125, "fp4"), Fmt(0.53125, "fp4")),
    "fp4": (Fmt(0.53125, "fp4"), Fmt(0.5625, "fp4")),
    "w4a8": (Fmt(0.515625, "fp8"), Fmt(0.53125, "fp8")),
    "int4": (Fmt(0.515625, "int4"), Fmt(0.53125, "int4")),
}
_ALIAS: tuple[tuple[str, str], ...] = (
    (r"^(bf16|bfloat16|fp16|f16|float16|half|16bit|16-bit|none|auto)$", "bf16"),
    (r"^(fp32|f32|float32|float)$", "fp32"),
    (r"^(nv ?fp4|nvfp4|w4a4|modelopt_fp4|w4a16_nvfp4|nvfp4_.*)$", "nvfp4"),
    (r"^(mxfp4|mx ?fp4|quark.*mxfp4.*)$", "mxfp4"),
    (r"^(fp4)$", "fp4"),
    (r"^(fp8_block|fp8_pb_wo|fp8_128|fp8_block_wise|deepseek_fp8)$", "fp8_block"),
    (r"^(fp8|f8|float8|fp8_.*|e4m3|e5m2|float8_.*|modelopt|mxfp8|ptpc_fp8|fbgemm_fp8)$", "fp8"),
    (r"^(w8a16|int8_weight_only|int8 weight.only|int8wo)$", "w8a16"),
    (r"^(int8|w8a8|w8a8_int8|smoothquant|sq|i8|8bit|8-bit|int8_.*)$", "int8"),
    (r"^(w4a8|w4afp8|qserve|w4a8_.*)$", "w4a8"),
    (
        r"^(int4|w4a16|awq|gptq|awq_marlin|gptq_marlin|4bit|4-bit|i4|int4_.*|awq[-_].*|gptq[-_].*|u4|hqq|nf4|exl2.*)$",
        "int4",
    ),
)
_KV: dict[str, float] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "fp8_block": 1.0,
    "nvfp4": 0.5625,
    "fp4": 0.5625,
}


def canonical(word: str) -> str | None:
    """The canonical name of a precision word, ``None`` when nobody uses it for one. GGUF names pass through."""
    text = word.strip().lower().replace("torch.", "").replace(" ", "_")
    text = re.sub(r"^gguf[-_:]", "", text)
    if text in _GGUF or text in _WORDS:
        return text
    for pattern, name in _ALIAS:
        if re.match(pattern, text):
            return name
    return _inside(text)


# Words that decide inside a longer label, most telling first.
_TELLING = (
    ("nvfp4", "nvfp4"), ("mxfp4", "mxfp4"), ("w4a8", "w4a8"), ("fp4", "fp4"), ("awq", "int4"), ("gptq", "int4"),
    ("w4a16", "int4"), ("int4", "int4"), ("4bit", "int4"), ("w8a16", "w8a16"), ("weight_only", "w8a16"), ("fp8", "fp8"),
    ("w8a8", "int8"), ("int8", "int8"), ("8bit", "int8"), ("bf16", "bf16"), ("fp16", "bf16"), ("bfloat16", "bf16"),
    ("float16", "bf16"), ("f16", "bf16"),
)  # fmt: skip


def _inside(text: str) -> str | None:
    """A precision named inside a longer label (``int4-awq g128``, ``Q4_K - Medium``)."""
    flat = re.sub(r"[^a-z0-9]+", "_", text).strip("_")
    size = re.search(r"(?:^|_)(i?q\d_(?:k|\d|xs|nl))(?:_(s|m|l)[a-z]*)?(?:_|$)", flat)
    if size:
        for name in (f"{size[1]}_{size[2]}" if size[2] else "", size[1]):
            if name in _GGUF:
                return name
    for word, name in _TELLING:
        if re.search(rf"(?:^|_){word}(?:_|$)", flat):
            return name
    return None


def fmt(word: str, *, low: bool) -> Fmt | None:
    """Storage of a precision word: the smallest the name allows (``low``, for floors) or the usual one."""
    name = canonical(word)
    if name is None:
        return None
    if name in _GGUF:
        return Fmt(_GGUF[name][0 if low else 1] / 8.0, "int4")
    return _WORDS[name][0 if low else 1]


def is_gguf(word: str) -> bool:
    """Whether a precision word is a GGUF mix."""
    return canonical(word) in _GGUF


def integer_fmt(bits: float, group: int, zero_point: bool, math: str) -> Fmt:
    """Group-quantised integers: a 16-bit scale per group, and a zero point of the same width when asymmetric."""
    extra = (16.0 + (bits if zero_point else 0.0)) / group if group > 0 else 0.0
    return Fmt((bits + extra) / 8.0, "int4" if math == "int4" else "int8" if math == "int8" else "bf16")


def kv_bytes(word: str) -> float | None:
    """Bytes per cache element of a ``kv_cache_dtype`` word; ``None`` for ``auto`` or an unknown word.

    ``fp8_ds_mla`` and other fixed row layouts are handled where rows are counted, see :mod:`tools.roofline.kv`.
    """
    text = word.strip().lower()
    if text in ("", "auto", "default"):
        return None
    if text.startswith(("fp8_ds_mla", "fp8_inc")):
        return 1.0
    if text.startswith("turboquant"):
        return None
    name = canonical(text)
    return _KV.get(name) if name else None
