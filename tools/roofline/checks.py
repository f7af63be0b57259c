"""What binds a step, what in a request cannot be true, and how a measurement stands against the floors."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from tools.roofline.capacity import Capacity
from tools.roofline.comm import allreduces
from tools.roofline.hardware import Hardware
from tools.roofline.request import Request
from tools.roofline.typical import Part
from tools.roofline.work import Op

LITTLE_FACTOR = 1.5
COLLECTIVE_SHARE = 0.20
EXPLAINED_SHARE = 0.50


def limiter_of(request: Request, room: Capacity, want: float, parts: list[Part], ops: list[Op]) -> str:
    """The first of: capacity, prompt interference, compute, KV bandwidth, expert weights, weights, collectives, launch.

    A term that is latency only wins when everything the roofline explains is under half of the step.
    """
    if not room.fits or (room.concurrency and want > room.concurrency * 1.001):
        return "capacity"
    total = sum(part.seconds for part in parts) or 1.0
    share = {part.name: part.seconds / total for part in parts}
    if share.get("other requests' prompts", 0.0) > 0.35:
        return "prompt interference"
    explained = sum(share.get(op.name, 0.0) for op in ops)
    talk = share.get("collectives", 0.0)
    if explained < EXPLAINED_SHARE:
        return "collectives" if talk > max(COLLECTIVE_SHARE, share.get("launch and small kernels", 0.0)) else "launch"
    return roofline_limiter(request.gpu, ops)


def roofline_limiter(gpu: Hardware, ops: list[Op]) -> str:
    """Compute, or which bytes: ``KV bandwidth``, ``expert weights``, ``recurrent state`` or ``dense weights``."""
    busy = sum(op.flops / gpu.peak(op.math) for op in ops)
    memory = sum(op.bytes / gpu.bw for op in ops)
    if busy > memory:
        return "compute"
    kinds: dict[str, float] = {}
    for op in ops:
        name = {"kv": "KV bandwidth", "experts": "expert weights", "state": "recurrent state"}.get(op.kind, "dense weights")
        kinds[name] = kinds.get(name, 0.0) + op.bytes
    return max(kinds, key=lambda name: kinds[name])


def request_warnings(request: Request, room: Capacity, want: float, fit: float) -> Iterator[str]:
    """What in the request contradicts itself or does not fit, one sentence each."""
    model, layout = request.model, request.layout
    if room.short:
        yield (
            f"weights need {room.weights / 1e9:.1f} GB a GPU, {room.budget / 1e9:.1f} GB are allowed: "
            f"short by {room.short / 1e9:.1f} GB"
        )
    elif fit >= 1.0 and want > fit * 1.001:
        yield f"{want:.0f} sequences do not fit: the cache holds about {fit:.0f} of this length; batch clipped to that"
    yield from layout_warnings(request)
    if model.max_context and request.mid_context() > model.max_context:
        yield f"context of {request.mid_context():.0f} tokens is over the model's {model.max_context}"
    if layout.tp > 1 and request.gpu.domain < layout.tp and request.gpu.link_kind in ("nvlink", "xgmi"):
        yield f"tp {layout.tp} spans more than one fabric of {request.gpu.domain} GPUs: {allreduces(model)} hand-overs a step cross it"


def layout_warnings(request: Request) -> Iterator[str]:
    """Label errors: heads that cannot be split that way, latent attention over too many ranks."""
    model, layout = request.model, request.layout
    heads = model.heads()
    if heads and (layout.tp > heads or heads % layout.tp):
        yield f"tp {layout.tp} cannot split {heads} query heads"
    if model.is_mla() and layout.tp > 8 and layout.dcp == 1:
        yield (
            f"latent attention with tp {layout.tp}: every rank would hold the whole cache; this is attention data "
            "parallelism recorded as tensor parallelism"
        )
    if layout.shards != layout.tp * layout.dp and layout.shards > 1 and model.is_moe():
        yield f"experts spread over {layout.shards} ranks but tp x dp is {layout.tp * layout.dp}"


class Measured(Struct, frozen=True, kw_only=True):
    """What was seen. Times in ms, rates per second over the whole deployment; ``None`` where not measured."""

    tpot_ms: float | None = None
    ttft_ms: float | None = None
    output_tps: float | None = None
    prompt_tps: float | None = None
    request_rps: float | None = None


class Comparison(Struct, frozen=True, kw_only=True):
    """A measurement against the floors. Ratios: 1 is at the floor, above 1 slower; ``mbu`` and ``mfu`` shares of
    published bandwidth and of dense peak; ``excess_ttft_ms``: time to first token above the prompt's own."""

    over_hard: float | None = None
    over_expected: float | None = None
    over_typical: float | None = None
    mbu: float | None = None
    mfu: float | None = None
    excess_ttft_ms: float | None = None
    little_batch: float | None = None
    at_limit: bool = False
    broken: tuple[str, ...] = ()


def little(tps: float, tpot_ms: float) -> float:
    """Sequences that must have been decoding: output tokens per second times seconds per token."""
    return tps * tpot_ms / 1e3
