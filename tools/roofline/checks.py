"""What binds a step, what in a request cannot be true, and how a measurement stands against the floors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from tools.roofline.capacity import Capacity
from tools.roofline.comm import allreduces
from tools.roofline.hardware import Hardware
from tools.roofline.request import Request
from tools.roofline.typical import Part
from tools.roofline.work import Op

if TYPE_CHECKING:
    from tools.roofline.floors import Estimate

LITTLE_FACTOR = 1.5
COLLECTIVE_SHARE = 0.20
EXPLAINED_SHARE = 0.50
# At the limit: within a quarter of the best that kernels reach, or at shares of peak that only tuned set-ups show.
LIMIT_OVER_PRACTICAL = 1.25
LIMIT_MBU = 0.70
LIMIT_MFU = 0.60


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
        name = {"kv": "KV bandwidth", "experts": "expert weights", "state": "recurrent state"}.get(
            op.kind, "dense weights"
        )
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


def compare(estimate: Estimate, seen: Measured) -> Comparison:
    """A measurement against an :class:`~tools.roofline.floors.Estimate`.

    A time under the hard floor, a time to first token under the prompt's own, or a rate that contradicts the time per
    token by more than 1.5 times is a broken measurement, never a fast server.
    """
    request, gpu = estimate.request, estimate.request.gpu
    broken: list[str] = []
    ratios: dict[str, float] = {}
    mbu = mfu = excess = batch = None
    if seen.tpot_ms is not None and seen.tpot_ms > 0:
        floor = estimate.tpot
        ratios = {
            "over_hard": seen.tpot_ms / floor.hard,
            "over_expected": seen.tpot_ms / floor.expected,
            "over_typical": seen.tpot_ms / floor.typical,
        }
        mbu = estimate.expected_bytes / (seen.tpot_ms * 1e-3 * gpu.bw)
        if seen.tpot_ms < floor.hard:
            broken.append(
                f"{seen.tpot_ms:.3g} ms a token is under the hard floor of {floor.hard:.3g} ms: "
                "model, precision, GPU, layout or the measurement is not what it seems"
            )
    if seen.ttft_ms is not None and seen.ttft_ms >= 0:
        excess = seen.ttft_ms - estimate.ttft.expected
        if excess < 0:
            broken.append(
                f"{seen.ttft_ms:.3g} ms to the first token is under the prompt's own {estimate.ttft.hard:.3g} ms"
            )
    if seen.output_tps and seen.tpot_ms:
        batch = little(seen.output_tps, seen.tpot_ms)
        want = estimate.batch
        if request.batch and not want / LITTLE_FACTOR <= batch <= want * LITTLE_FACTOR:
            broken.append(
                f"{seen.output_tps:.0f} tok/s at {seen.tpot_ms:.3g} ms a token mean {batch:.1f} sequences decoding, "
                f"not {want:.1f}: the time is not per token, or requests failed"
            )
    mfu = _mfu(estimate, seen)
    if mfu is not None and mfu > 1.0:
        broken.append(f"{mfu:.2f} of dense peak: more arithmetic than the GPUs can do")
    near = seen.tpot_ms is not None and seen.tpot_ms <= LIMIT_OVER_PRACTICAL * estimate.tpot.practical
    full = (mbu or 0.0) >= LIMIT_MBU or (mfu or 0.0) >= LIMIT_MFU
    at_limit = not broken and (near or full)
    return Comparison(
        over_hard=ratios.get("over_hard"),
        over_expected=ratios.get("over_expected"),
        over_typical=ratios.get("over_typical"),
        mbu=mbu,
        mfu=mfu,
        excess_ttft_ms=excess,
        little_batch=batch,
        at_limit=at_limit,
        broken=tuple(broken),
    )


def _mfu(estimate: Estimate, seen: Measured) -> float | None:
    """Model arithmetic (causal, active experts) over what all GPUs could do at the weights' dense peak."""
    request = estimate.request
    gpus = request.layout.gpus()
    math = max(estimate.prefill, key=lambda op: op.flops).math
    peak = request.gpu.peak(math) * gpus
    prompt = max(1.0, request.isl * request.mean)
    per_prompt_token = estimate.prompt_flops / prompt
    per_output = estimate.flops_per_token * request.layout.engine_gpus()
    rate = 0.0
    if seen.prompt_tps:
        rate += seen.prompt_tps * per_prompt_token
    if seen.request_rps and not seen.prompt_tps:
        rate += seen.request_rps * estimate.prompt_flops
    if seen.output_tps:
        rate += seen.output_tps * per_output
    return rate / peak if rate else None
