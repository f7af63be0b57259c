"""What is known about the machine and the engine apart from the command: given by the caller or found beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

# Memory of common accelerators in GiB as the driver reports it, for the defaults that depend on it. Only names that
# come in one size; the others need the size beside the name ("A100 80GB").
_MEMORY: tuple[tuple[str, float], ...] = (
    (r"mi3[25]\dx|mi355", 256), (r"mi300x", 192), (r"mi300a", 128), (r"mi250", 64),
    (r"gb300|b300", 268), (r"gb200|b200", 180), (r"gh200|h200", 140), (r"h20\b", 95), (r"h100", 80), (r"h800", 80),
    (r"a800|a100-?80", 80), (r"l40s?\b|rtx 6000 ada|rtx6000 ada|a6000|a40\b", 48), (r"rtx pro 6000|pro 6000", 95),
    (r"5090", 32), (r"3090|4090|\ba10g?\b|\bl4\b|a5000", 24), (r"\bv100\b", 32), (r"\bt4\b|4080|5080|a4000", 16),
    (r"gb10|dgx spark", 119), (r"rtx 5050|3050|3070|4060\b", 8), (r"4070|3060|5070\b", 12),
)  # fmt: skip
_SIZE = re.compile(r"\b(\d{1,3})\s?gi?b\b", re.IGNORECASE)
_NAME = re.compile(
    r"\b(?:nvidia |amd |geforce |instinct |tesla )*"
    r"(mi\d{3}[a-z]?|gb?[23]00|gh200|h(?:20|100|200|800)|a(?:10g?|30|40|100|800|4000|5000|6000)|l(?:4|40s?)|v100|t4"
    r"|rtx (?:pro )?\d{4}(?: ?(?:ti|super|ada))?|gb10|dgx spark|(?:30|40|50)[5-9]0)\b",
    re.IGNORECASE,
)
# Option name → facts that may tell it, best first.
OPTION_FACTS: dict[str, tuple[str, ...]] = {
    "engine.name": ("engine.name",),
    "engine.version": ("engine.version", "log.engine_version", "report.engine_version"),
    "engine.generation": ("engine.generation",),
    "config.device": ("config.device",),
    "gpu.name": ("gpu.name", "report.gpu_name"),
    "gpu.memory_gib": ("gpu.memory_gib", "gpu.memory_total_gib"),
}


class World(Struct):
    """Facts that defaults depend on. Empty or ``None`` means not known, never a default."""

    engine: str = ""
    version: str = ""
    version_how: str = ""
    generation: str = ""
    device: str = ""
    gpu_name: str = ""
    gpu_gib: float | None = None
    context: str = ""


def gpu_in(text: str) -> tuple[str, float | None]:
    """First GPU named in a text and its memory in GiB, when the name or a size beside it tells."""
    found = _NAME.search(text)
    if not found:
        return "", None
    name = found[1].lower()
    size = _SIZE.search(text, found.end(), found.end() + 16)
    return name, float(size[1]) if size else memory_of(name)


def memory_of(name: str) -> float | None:
    """GiB of a GPU by name; ``None`` when the name does not tell."""
    low = name.lower()
    size = _SIZE.search(low)
    if size:
        return float(size[1])
    for pattern, gib in _MEMORY:
        if re.search(pattern, low):
            return float(gib)
    return None


def world_from(options: Mapping[str, str], text: str = "") -> World:
    """From ``Context.options`` (see :data:`OPTION_FACTS`), completed by a GPU named in the text itself."""
    name = options.get("gpu.name", "").lower()
    try:
        gib = float(options["gpu.memory_gib"]) if options.get("gpu.memory_gib") else None
    except ValueError:
        gib = None
    if not name:
        name, found = gpu_in(text[:20_000])
        gib = gib if gib is not None else found
    elif gib is None:
        gib = memory_of(name)
    version = options.get("engine.version", "")
    return World(
        engine=options.get("engine.name", "").lower(),
        version=version,
        version_how="known from elsewhere" if version else "",
        generation=options.get("engine.generation", ""),
        device=options.get("config.device", "").lower(),
        gpu_name=name,
        gpu_gib=gib,
        context=options.get("usage.context", ""),
    )


def options_from(value: Callable[[str], Any]) -> dict[str, str]:
    """Options for :func:`tools.config.read.read` from what a ledger already knows (``value`` = its lookup)."""
    out: dict[str, str] = {}
    for option, facts in OPTION_FACTS.items():
        found = next((text for fact in facts if (text := value(fact)) is not None), None)
        if found is not None:
            out[option] = str(found)
    return out
