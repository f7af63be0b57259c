"""Which tensors of a checkpoint are quantised and how: ``quantization_config`` and ``hf_quant_config.json``.

One number per method is wrong for most current checkpoints: attention, shared experts, first layers and the head
often stay at 16 bit. Patterns in the file are data: they are matched by a small glob matcher, never compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from tools.roofline.precision import fmt, integer_fmt
from tools.roofline.shape import BF16, Fmt

_PREFIX = re.compile(r"^(?:model\.|language_model\.|backbone\.|transformer\.)+")
_MAX_PATTERNS = 20000


class Scheme(Struct, frozen=True, kw_only=True):
    """A parsed quantisation: the default format, exceptions by module name, the cache precision it asks for."""

    word: str
    default: Fmt
    exact: dict[str, Fmt] = {}
    skip: frozenset[str] = frozenset()
    globs: tuple[str, ...] = ()
    only_named: bool = False
    expert: Fmt | None = None
    kv: str = ""
    notes: tuple[str, ...] = ()

    def of(self, names: list[str], *, expert: bool = False) -> Fmt:
        """Format of a module known under several names (checkpoints differ); BF16 when any of them is excluded."""
        for name in names:
            if any(stem in self.skip for stem in _stems(name)):
                return BF16
            if any(_glob(pattern, name) for pattern in self.globs):
                return BF16
        for name in names:
            for stem in _stems(name):
                if stem in self.exact:
                    return self.exact[stem]
        if self.only_named:
            return BF16
        return self.expert if expert and self.expert else self.default


def _stems(name: str) -> Iterator[str]:
    """A module name and the modules it lies in: an exclusion of a parent excludes its children."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _glob(pattern: str, text: str) -> bool:
    """``*`` matches any run; at most ``len(pattern) * len(text)`` steps, no backtracking blow-up."""
    if not text.startswith(pattern.partition("*")[0]):
        return False
    core = pattern.strip("*")
    if pattern[:1] == "*" and pattern[-1:] == "*" and "*" not in core:
        return core in text
    p = t = 0
    star, mark = -1, 0
    while t < len(text):
        if p < len(pattern) and pattern[p] == text[t] and pattern[p] != "*":
            p, t = p + 1, t + 1
        elif p < len(pattern) and pattern[p] == "*":
            star, mark, p = p, t, p + 1
        elif star >= 0:
            mark += 1
            p, t = star + 1, mark
        else:
            return False
    return all(ch == "*" for ch in pattern[p:])


def _clean(name: str) -> str:
    return _PREFIX.sub("", name)


def _from_regex(body: str) -> list[str] | None:
    """A ``re:`` pattern as globs: ``.*``, escaped dots, ``$`` and one group of plain alternatives; else ``None``."""
    body = body.strip().lstrip("^").rstrip("$")
    group = re.search(r"\((?:\?:)?([A-Za-z0-9_|.]+)\)", body)
    bodies = [body.replace(group[0], word, 1) for word in group[1].split("|")] if group else [body]
    out = []
    for text in bodies:
        text = text.replace(".*", "*").replace("\\.", ".").replace("\\d+", "*").replace("[0-9]+", "*")
        if re.search(r"[\\^$+?{}\[\]()|]", text):
            return None
        out.append(text if text.startswith("*") else f"*{text}")
        if not text.endswith("*"):
            out[-1] += "*"
    return out


def _sort(patterns: list[Any]) -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]:
    exact: set[str] = set()
    globs: list[str] = []
    bad: list[str] = []
    for raw in patterns[:_MAX_PATTERNS]:
        if not isinstance(raw, str) or len(raw) > 400:
            continue
        if raw.startswith("re:"):
            found = _from_regex(raw[3:])
            if found is None:
                bad.append(raw)
            else:
                globs.extend(found)
        elif "*" in raw:
            globs.append(_clean(raw))
        else:
            exact.add(_clean(raw))
    wanted = [g for g in dict.fromkeys(globs) if "vision" not in g and "mm_projector" not in g]
    # A pattern that names a module also covers what lies in it.
    wanted += [f"{g}.*" for g in wanted if not g.endswith("*")]
    return frozenset(exact), tuple(wanted), tuple(f"pattern not understood, taken as quantised: {b}" for b in bad[:3])


def _weights(spec: Any) -> Fmt | None:
    """A compressed-tensors ``weights`` block."""
    if not isinstance(spec, dict):
        return None
    bits, kind, group = spec.get("num_bits"), str(spec.get("type", "int")), spec.get("group_size") or 0
    if not isinstance(bits, (int, float)) or not isinstance(group, (int, float)):
        return None
    if kind == "float" and bits == 4:
        return fmt("nvfp4" if group == 16 else "mxfp4", low=False)
    if kind == "float" and bits == 8:
        return fmt("fp8_block" if spec.get("strategy") == "block" else "fp8", low=False)
    if kind == "int":
        return integer_fmt(float(bits), int(group), spec.get("symmetric") is False, "int4" if bits <= 4 else "int8")
    return None


def _kv_of(config: dict[str, Any]) -> str:
    scheme = config.get("kv_cache_scheme", config.get("kv_cache_quant_algo"))
    if isinstance(scheme, dict):
        return "fp8" if scheme.get("num_bits") == 8 else "nvfp4" if scheme.get("num_bits") == 4 else ""
    return scheme.lower() if isinstance(scheme, str) else ""


def _groups(config: dict[str, Any], word: str) -> Scheme | None:
    groups = config.get("config_groups")
    if not isinstance(groups, dict) or not groups:
        return None
    default: Fmt | None = None
    exact: dict[str, Fmt] = {}
    for group in groups.values():
        if not isinstance(group, dict):
            continue
        found = _weights(group.get("weights"))
        if found is None:
            continue
        if found.math in ("int8", "fp8") and group.get("input_activations") is None and found.bytes >= 1.0:
            found = Fmt(found.bytes, "bf16")
        targets = [t for t in group.get("targets") or ["Linear"] if isinstance(t, str)]
        if "Linear" in targets:
            default = found
        else:
            exact |= {_clean(name): found for name in targets if not name.startswith("re:")}
    if default is None and not exact:
        return None
    skip, globs, notes = _sort(config.get("ignore") or config.get("exclude_modules") or [])
    return Scheme(
        word=word or _word_of(default or BF16),
        default=default or BF16,
        exact=exact,
        skip=skip,
        globs=globs,
        only_named=default is None,
        kv=_kv_of(config),
        notes=notes,
    )


def _word_of(one: Fmt) -> str:
    if one.math == "fp4":
        return "nvfp4" if one.bytes > 0.55 else "mxfp4"
    if one.bytes < 1.0:
        return "int4"
    return one.math if one.bytes < 1.5 else "bf16"


def _named_layers(config: dict[str, Any]) -> dict[str, Fmt]:
    named = config.get("quantized_layers")
    out: dict[str, Fmt] = {}
    if isinstance(named, dict):
        for name, spec in list(named.items())[:_MAX_PATTERNS]:
            found = fmt(str(spec.get("quant_algo", "")), low=False) if isinstance(spec, dict) else None
            if found and isinstance(name, str):
                out[_clean(name)] = found
    return out


def scheme_from(config: dict[str, Any]) -> Scheme | None:
    """Parse ``quantization_config`` (or the ``quantization`` block of ``hf_quant_config.json``).

    Returns ``None`` when the method is unknown: the caller must say so, never guess a width.
    """
    method = str(config.get("quant_method", "")).lower()
    algo = str(config.get("quant_algo", "")).upper()
    skip_list = config.get("modules_to_not_convert") or config.get("ignored_layers") or config.get("exclude_modules")
    skip, globs, notes = _sort((skip_list or config.get("ignore") or []) if isinstance(skip_list or [], list) else [])
    named = _named_layers(config)
    kv = _kv_of(config)
    if method == "fp8" or (method in ("", "modelopt") and algo.startswith("FP8")):
        word = "fp8_block" if config.get("weight_block_size") or algo == "FP8_PB_WO" else "fp8"
        base = fmt(word, low=False) or BF16
        return Scheme(word="fp8", default=base, exact=named, skip=skip, globs=globs, kv=kv, notes=notes)
    grouped = _groups(config, "mixed" if algo == "MIXED_PRECISION" else "")
    if grouped:
        return grouped
    if algo == "MIXED_PRECISION" and named:
        return Scheme(
            word="mixed", default=BF16, exact=named, skip=skip, globs=globs, only_named=True, kv=kv, notes=notes
        )
    if algo or method in ("mxfp4", "modelopt", "modelopt_fp4"):
        found = fmt(algo or method, low=False)
        if found:
            word = (algo or method).lower()
            return Scheme(word=word, default=found, exact=named, skip=skip, globs=globs, kv=kv, notes=notes)
    if method in ("awq", "gptq", "auto-round", "autoround", "intel/auto-round"):
        bits, group = (
            config.get("bits", config.get("w_bit", 4)),
            config.get("group_size", config.get("q_group_size", 128)),
        )
        if isinstance(bits, (int, float)) and isinstance(group, (int, float)):
            zero = bool(config.get("zero_point", config.get("sym") is False))
            found = integer_fmt(float(bits), int(group), zero, "int4" if bits <= 4 else "bf16")
            return Scheme(word=method, default=found, skip=skip, globs=globs, kv=kv, notes=notes)
    if method == "bitsandbytes":
        four = bool(config.get("load_in_4bit", config.get("_load_in_4bit", False)))
        found = integer_fmt(4, 64, False, "int4") if four else Fmt(1.0, "bf16")
        return Scheme(word="bnb4" if four else "bnb8", default=found, skip=skip, globs=globs, kv=kv, notes=notes)
    return None
