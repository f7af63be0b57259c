"""What the readings say runs where: figures for the roofline calculator, each with the evidence it came from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tools.view import Ledger

if TYPE_CHECKING:
    from tools.roofline.checks import Measured
    from tools.roofline.request import Request
    from tools.roofline.shape import Refusal

# Figure of the calculator → facts that give it, the surest first. Values are used as they are.
FIGURES: dict[str, tuple[str, ...]] = {
    "model": ("config.model", "model.name", "model.served_name", "said.model"),
    "gpu": ("gpu.name", "said.gpu.name"),
    "tp": ("config.tensor_parallel_size",),
    "pp": ("config.pipeline_parallel_size",),
    "dp": ("config.data_parallel_size",),
    "weights": ("config.quantization", "said.quantization", "config.dtype"),
    "kv": ("config.kv_cache_dtype",),
    "memory_util": ("config.gpu_memory_utilization",),
    "max_num_seqs": ("config.max_num_seqs",),
    "max_model_len": ("config.max_model_len",),
    "max_batched_tokens": ("config.max_num_batched_tokens",),
    "draft_tokens": ("config.spec.num_tokens",),
    "eager": ("config.enforce_eager",),
    "concurrency": ("queue.running.mean", "bench.concurrency", "said.concurrency"),
    "isl": ("prompt_tokens.mean", "bench.input_tokens", "said.prompt_tokens"),
    "osl": ("output_tokens.mean", "bench.output_tokens", "said.output_tokens"),
}
_TIMES: dict[str, tuple[tuple[str, float], ...]] = {
    "tpot_ms": (("itl.mean_s", 1e3), ("bench.tpot.mean_ms", 1.0), ("said.tpot_s", 1e3), ("said.itl_s", 1e3)),
    "ttft_ms": (("ttft.mean_s", 1e3), ("bench.ttft.mean_ms", 1.0), ("said.ttft_s", 1e3)),
    "output_tps": (("throughput.generation_tokens_per_s.mean", 1.0), ("bench.output_tokens_per_s", 1.0)),
}
_NEEDS_MORE_THAN_ZERO = {"concurrency", "isl", "osl", "draft_tokens", "tp", "pp", "dp"}


def figures(ledger: Ledger) -> tuple[dict[str, Any], dict[str, str]]:
    """``(figure → value, figure → fact it came from)``; figures without a reading are left out.

    A device count alone is not taken for a layout: eight GPUs in a machine say nothing about tensor parallelism.
    """
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for name, facts in FIGURES.items():
        for fact in facts:
            value = ledger.value(fact)
            if isinstance(value, list):
                value = value[0] if len(value) == 1 else None
            if value in (None, "", "auto", "none", "None"):
                continue
            if name in _NEEDS_MORE_THAN_ZERO and not (isinstance(value, int | float) and value > 0):
                continue
            values[name], origin[name] = value, fact
            break
    return values, origin


def request_of(ledger: Ledger) -> tuple[Request | Refusal, dict[str, str]]:
    """The calculator's request of these readings, or why none can be made. A figure that only ``said`` or an
    auxiliary fact gives and that the calculator cannot read is dropped; model and device never are."""
    from tools.roofline.build import key_of, request_from
    from tools.roofline.request import Request

    values, origin = figures(ledger)
    made = request_from(values)
    for _ in range(len(values)):
        field = "" if isinstance(made, Request) else key_of(made.field) or made.field
        if not field or field not in values or field in ("model", "gpu"):
            break
        values.pop(field)
        origin.pop(field)
        made = request_from(values)
    return made, origin


def measured_of(ledger: Ledger) -> tuple[Measured, tuple[str, ...]]:
    """Measured times in ms and rates per second, and the facts they came from."""
    from tools.roofline.checks import Measured

    found: dict[str, float] = {}
    facts: list[str] = []
    for name, rows in _TIMES.items():
        for fact, scale in rows:
            value = ledger.num(fact)
            if value is not None and value > 0:
                found[name] = value * scale
                facts.append(fact)
                break
    return Measured(**found), tuple(facts)


def evidence_ids(ledger: Ledger, facts: Iterable[str]) -> tuple[str, ...]:
    """Evidence ids of facts, in order and without repeats."""
    return tuple(dict.fromkeys(i for fact in facts for i in ledger.ids(fact)))
