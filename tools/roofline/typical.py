"""What a well-kept engine is usually seen to reach, term by term. Half of all deployments do better.

A step takes: bytes and arithmetic at the shares of peak that real kernels reach, a residual per layer for launches,
serialisation and small kernels (by engine and by what the layer holds), collectives, a cost per step for scheduling
and sampling, and the prompts that are processed in between. Every constant stands in
``knowledge/hardware/efficiency.yaml`` with its reason. Times in seconds.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from msgspec import Struct

from knowledge.loader import ROOT, read_yaml
from tools.roofline.comm import allreduces, moe_layers, prefill_seconds, step_seconds
from tools.roofline.hardware import Hardware
from tools.roofline.kv import kv_format
from tools.roofline.request import Request
from tools.roofline.work import Op, decode_ops, prefill_ops


class Share(Struct, frozen=True):
    """Shares of published bandwidth (weights, experts, cache) and of dense peak (by arithmetic) in large kernels."""

    weights: float
    experts: float
    kv: float
    bf16: float
    fp8: float
    fp4: float
    attention: float
    launch: float


class Engine(Struct, frozen=True):
    """Residual microseconds per layer and per step of one engine, and its share of prompt time."""

    dense: float
    moe: float
    latent: float
    recurrent: float
    parallel: float
    step_us: float
    first_ms: float
    stall: float
    bandwidth: float
    prompt: float
    quant: float


class Part(Struct, frozen=True):
    """One term of a typical time: name, seconds, and how it came about."""

    name: str
    seconds: float
    how: str


@lru_cache(maxsize=1)
def _constants() -> dict[str, Any]:
    data = read_yaml(ROOT / "hardware" / "efficiency.yaml")
    return dict(data)


@lru_cache(maxsize=64)
def share_of(family: str, gpu_id: str) -> Share:
    """Shares for a hardware family, with a part's own figures on top."""
    table = _constants()["families"]
    base = dict(table["default"]) | dict(table.get(family, {})) | dict(_constants()["parts"].get(gpu_id, {}))
    base.pop("why", None)
    return Share(**base)


@lru_cache(maxsize=64)
def engine_of(name: str) -> Engine:
    """Constants of an engine by any of its names; vLLM's where the engine is not known."""
    table = _constants()["engines"]
    low = name.lower()
    key = next((k for k, spec in table.items() if any(word in low for word in spec["words"])), "vllm")
    base = dict(table["vllm"]) | dict(table[key])
    for extra in ("words", "why"):
        base.pop(extra, None)
    return Engine(**base)
