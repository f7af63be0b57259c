"""Self-checks on a benchmark point: what in its label or number cannot be true, one reason each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tools.roofline.capacity import largest_batch
from tools.roofline.checks import LITTLE_FACTOR, layout_warnings, little
from tools.roofline.floors import Times, prompt_floor
from tools.roofline.work import weight_bytes_per_gpu

if TYPE_CHECKING:
    from tools.roofline.points import Point


def implausible(point: Point, times: Times) -> Iterator[str]:
    """Reasons why a point cannot be what it says: floor, capacity, layout, Little's law, streaming, names."""
    yield from _floor(point, times)
    yield from _memory(point)
    yield from layout_warnings(point.floor)
    yield from _layout(point)
    yield from _rates(point, times)
    yield from _names(point)


def _number(row: dict[str, Any], *names: str) -> float | None:
    for name in names:
        value = row.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    return None


def _floor(point: Point, times: Times) -> Iterator[str]:
    seen = point.measured_ms
    if seen is None:
        return
    if seen <= 0:
        yield f"measured {seen:g} ms cannot be a duration"
    elif seen < times.hard:
        yield (
            f"measured {seen:.4g} ms is below the hard floor of {times.hard:.4g} ms: the number is no time of this "
            "quantity (coalesced stream chunks, failed requests) or model, precision, GPU or batch are mislabelled"
        )
    elif seen < times.expected * 0.75:
        yield (
            f"measured {seen:.4g} ms is {times.expected / seen:.1f} times under the expected floor of "
            f"{times.expected:.4g} ms: only a smaller batch or strongly skewed routing could explain that"
        )


def _memory(point: Point) -> Iterator[str]:
    request = point.floor
    weights = weight_bytes_per_gpu(request.model, request.layout)
    memory = request.gpu.usable()
    if weights > memory:
        yield (
            f"weights need {weights / 1e9:.1f} GB on each GPU, {request.gpu.name} has {memory / 1e9:.0f}: "
            "layout, precision or GPU count cannot be as stated"
        )
        return
    stated = request.batch or request.concurrency
    if point.kind == "tpot" and stated > 1:
        room = largest_batch(request, context=max(1.0, request.mid_context(request.low)), mem_share=0.97, low=True)
        if stated > room:
            yield (
                f"{stated:.0f} sequences stated to decode together, but beside the weights there is room for "
                f"{room:.0f} of {request.mid_context(request.low):.0f} tokens: the stated concurrency cannot be right"
            )


def _layout(point: Point) -> Iterator[str]:
    row, layout = point.row, point.floor.layout
    gpus = _number(row, "n_gpus")
    if gpus and gpus % layout.engine_gpus():
        yield f"{gpus:.0f} GPUs, but tp x pp x dp is {layout.engine_gpus()}"
    if gpus and layout.engine_gpus() > gpus:
        yield f"tp x pp x dp is {layout.engine_gpus()}, more than the {gpus:.0f} GPUs stated"


def _rates(point: Point, times: Times) -> Iterator[str]:
    row, request = point.row, point.floor
    tpot = point.measured_ms if point.kind == "tpot" else _number(row, "measured_tpot_ms")
    tps = _number(row, "output_tps", "output_tok_s", "measured_output_tps")
    batch = request.batch
    if tpot and tps and batch and tps > 0:
        seen = little(tps, tpot)
        if not batch / LITTLE_FACTOR <= seen <= batch * LITTLE_FACTOR:
            yield (
                f"{tps:.0f} tok/s at {tpot:.3g} ms a token mean {seen:.1f} sequences decoding, {batch:.1f} are stated: "
                "the time is not per token (chunked stream, speculation) or requests failed"
            )
    clients = request.concurrency
    if clients and batch > clients * 1.05:
        yield f"a decode batch of {batch:.1f} is more than the {clients:.0f} clients"
    median, itl = _number(row, "median_tpot_ms"), _number(row, "median_itl_ms", "measured_itl_ms")
    if itl is not None and itl < times.hard * 0.2 and point.kind == "tpot":
        yield f"inter-token latency of {itl:g} ms: the client timed stream chunks, not tokens"
    if median and tpot and not 0.33 <= median / tpot <= 3.0:
        yield f"mean and median time per token differ by {max(median / tpot, tpot / median):.1f} times"
    ttft = _number(row, "measured_ttft_ms")
    if ttft is not None and request.isl > 0:
        own = prompt_floor(request, max(1.0, request.isl * request.low)) * 1e3
        if 0 <= ttft < own:
            yield f"time to first token of {ttft:.4g} ms is under the prompt's own floor of {own:.4g} ms"


_SIZE = re.compile(r"(?<![\w.])(?:(\d{1,2})x)?(\d{1,4}(?:\.\d{1,2})?)b(?![a-z0-9])")


def _names(point: Point) -> Iterator[str]:
    """A size in the model's name that its config does not have (``8x7b`` counts as eight experts, not checked)."""
    for field in ("model", "id"):
        text = str(point.row.get(field, "")).lower().replace("_", "-").rpartition("/")[2]
        found = _SIZE.search(text.replace("-", " "))
        if not found or found[1]:
            continue
        said, have = float(found[2]), point.floor.model.params() / 1e9
        if said >= 0.3 and not 0.72 <= said / have <= 1.38:
            yield f"{field} names {said:g} B parameters, its config has {have:.1f} B"
            return
    engine = point.floor.engine.lower()
    if point.floor.gpu.is_amd() and ("tensorrt" in engine or "trt" in engine):
        yield "TensorRT-LLM does not run on AMD GPUs"
