"""Benchmark points in a file: floors and typical time of each, and what in a point cannot be true.

The file holds ``configs`` (name → config.json content) and ``points``. ``kind``: ``tpot`` (ms of a decode step),
``e2e`` (a fixed batch from prompt to end), ``prefill`` (first token or prompt rate) or ``thr`` (deployment time per
request at maximum throughput). All results in ms of the same quantity as the point's ``measured_ms``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from tools.roofline.floors import (
    Times,
    batch_times,
    decode_times,
    low_form,
    prompt_floor,
    prompt_practical,
    throughput_times,
)
from tools.roofline.hardware import Hardware, hardware_from_text
from tools.roofline.model import model_from_config, model_from_name, with_weights
from tools.roofline.plausible import implausible
from tools.roofline.precision import canonical
from tools.roofline.request import Layout, Request
from tools.roofline.shape import ModelShape, Refusal
from tools.roofline.typical import first_token_seconds, prompt_seconds
from tools.roofline.work import decode_ops, prefill_ops

KINDS = ("tpot", "e2e", "prefill", "thr")
MAX_BYTES = 64 << 20


class Point(Struct, frozen=True, kw_only=True):
    """A point made ready: ``floor`` assumes the narrowest storage its label allows, ``usual`` what ships."""

    id: str
    kind: str
    floor: Request
    usual: Request
    measured_ms: float | None
    prompts: float
    row: dict[str, Any]


def number(row: dict[str, Any], *names: str) -> float | None:
    """First finite number among fields, in the unit that the field's name says."""
    for name in names:
        value = row.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(float(value)) < 1e15:
            return float(value)
    return None


def _count(row: dict[str, Any], name: str, default: int) -> int:
    value = number(row, name)
    return int(value) if value is not None and value >= 1 else default


def _range(row: dict[str, Any]) -> tuple[float, float]:
    """Shortest and mean sampled length as shares of nominal."""
    found = re.search(r"(0?\.\d+|1(?:\.0+)?)\s*(?:-|–|to)\s*(0?\.\d+|1(?:\.\d+)?)", str(row.get("length_range", "")))
    ratio = number(row, "random_range_ratio")
    if found:
        low, high = float(found[1]), float(found[2])
        return low, (low + high) / 2.0
    if ratio is not None and 0 < ratio <= 1:
        return ratio, (1.0 + ratio) / 2.0
    return 1.0, 1.0


def _kv_word(row: dict[str, Any]) -> str:
    size = number(row, "kv_bytes")
    if size is None:
        return str(row.get("kv_cache_dtype") or "auto")
    return "fp8" if size == 1 else "nvfp4" if size < 1 else "bf16" if size == 2 else "fp32"


def measured_ms(row: dict[str, Any]) -> float | None:
    """The measurement as ms of the point's quantity: the stated one, else derived from rate and lengths."""
    stated = number(row, "measured_ms")
    if stated is not None:
        return stated
    value, unit, kind = number(row, "measured"), str(row.get("unit", "")).lower(), row.get("kind")
    if value is None or value <= 0:
        return None
    if unit in ("ms", "s"):
        return value * (1000.0 if unit == "s" else 1.0)
    batch, isl, osl = number(row, "batch") or 1.0, number(row, "isl") or 0.0, number(row, "osl") or 0.0
    if unit.startswith("req"):
        return 1000.0 / value
    if "tok" in unit:
        amount = {"tpot": 1.0, "e2e": batch * osl, "prefill": batch * isl, "thr": osl}.get(str(kind))
        return amount / value * 1000.0 if amount else None
    return None


def _model(row: dict[str, Any], configs: dict[str, Any]) -> ModelShape | Refusal:
    name = str(row.get("model", ""))
    config = configs.get(name)
    return model_from_config(config, name=name) if isinstance(config, dict) else model_from_name(name)


def prepare(row: dict[str, Any], configs: dict[str, Any]) -> Point | Refusal:
    """A point as two requests, or why not."""
    ident = str(row.get("id", "?"))
    kind = str(row.get("kind", ""))
    if kind not in KINDS:
        return Refusal(field="kind", why=f"{ident}: {kind!r} is none of {', '.join(KINDS)}")
    model = _model(row, configs)
    if isinstance(model, Refusal):
        return model
    gpu = hardware_from_text(str(row.get("gpu", "")))
    if isinstance(gpu, Refusal):
        return gpu
    word = str(row.get("weights") or row.get("precision") or model.weights)
    if canonical(word) is None:
        return Refusal(field="weights", why=f"{ident}: precision {word!r} is not known")
    low, mean = _range(row)
    layout = _layout(row)
    concurrency = number(row, "client_concurrency", "concurrency") or 0.0
    base = Request(
        model=with_weights(model, word),
        gpu=gpu,
        layout=layout,
        engine=str(row.get("engine", "")),
        batch=number(row, "batch") or 0.0,
        concurrency=concurrency,
        isl=max(0.0, number(row, "isl") or 0.0),
        osl=max(0.0, number(row, "osl") or 0.0),
        low=low,
        mean=mean,
        kv=_kv_word(row),
        offline=kind == "e2e" or not concurrency,
    )
    narrow = structs.replace(base, model=with_weights(model, word, low=True))
    prompts = 1.0 if concurrency else max(1.0, base.batch)
    return Point(id=ident, kind=kind, floor=narrow, usual=base, measured_ms=measured_ms(row), prompts=prompts, row=row)


def _layout(row: dict[str, Any]) -> Layout:
    tp, pp, dp = _count(row, "tp", 1), _count(row, "pp", 1), _count(row, "dp", 1)
    ep, gpus = _count(row, "ep", 1), _count(row, "n_gpus", 0)
    moe_tp = _count(row, "moe_tp", 0)
    if dp > 1 and gpus and tp * pp == gpus and tp % dp == 0:
        # Written the way SGLang counts: tp is the whole world and attention uses tp / dp of it.
        tp //= dp
    shards = ep * moe_tp if moe_tp else max(tp * dp, ep)
    one = tp * pp * dp
    replicas = gpus // one if gpus and gpus % one == 0 else 1
    return Layout(tp=tp, pp=pp, dp=dp, ep=ep, shards=shards, replicas=max(1, replicas))


def clip(point: Point) -> tuple[Point, str]:
    """The point with a batch that its memory can hold, and what was clipped."""
    from tools.roofline.capacity import largest_batch

    request = point.floor
    want = request.decoding()
    if point.kind not in ("tpot",) or want <= 1:
        return point, ""
    room = largest_batch(request, context=max(1.0, request.mid_context(request.low)), low=True)
    if room <= 0 or want <= room:
        return point, ""
    note = f"{want:.0f} sequences stated, at most {room:.0f} fit: batch clipped to that"
    return structs.replace(
        point,
        floor=structs.replace(request, batch=room),
        usual=structs.replace(point.usual, batch=room),
    ), note


def times_of(point: Point) -> Times:
    """The four numbers of a point's own quantity in milliseconds."""
    floor, usual = point.floor, point.usual
    if point.kind == "tpot":
        batch = floor.decoding()
        down, up = decode_times(floor, batch)[0], decode_times(usual, batch)[0]
        return structs.replace(down, typical=max(up.typical, down.practical * 0.9))
    if point.kind == "e2e":
        batch = max(1.0, floor.decoding())
        down, up = batch_times(floor, batch), batch_times(usual, batch)
        return structs.replace(down, typical=max(up.typical, down.expected))
    if point.kind == "thr":
        down, up = throughput_times(floor), throughput_times(usual)
        return structs.replace(down, typical=max(up.typical, down.expected))
    hard = prompt_floor(floor, max(1.0, floor.isl * floor.low), point.prompts) * 1e3
    practical = max(hard, prompt_practical(floor, max(1.0, floor.isl * floor.low), point.prompts) * 1e3)
    typical = first_token_seconds(usual) if point.prompts <= 1 else prompt_seconds(usual, point.prompts)
    return Times(hard=hard, expected=hard, practical=practical, typical=max(typical * 1e3, hard))


def floor_limiter(point: Point) -> str:
    """``memory`` or ``compute``: which side of the roofline the point's hard floor stands on."""
    request = point.floor
    gpu: Hardware = request.gpu
    form = low_form(request)
    if point.kind in ("prefill",):
        ops = prefill_ops(
            request.model, request.layout, prompt=max(1.0, request.isl), prompts=point.prompts, form=form, ideal=True
        )
    else:
        batch = request.decoding()
        if point.kind == "thr":
            from tools.roofline.capacity import largest_batch

            batch = max(1.0, largest_batch(request, context=request.isl + request.osl, low=True))
        ops = decode_ops(request.model, request.layout, batch=batch, context=request.mid_context(), form=form)
    busy = sum(op.flops / gpu.peak(op.math, fast=True) for op in ops)
    memory = sum(op.bytes for op in ops) / gpu.pin_bw
    if point.kind == "thr":
        busy = busy * request.osl / batch + prompt_floor(request, max(1.0, request.isl)) / request.layout.replicas
        memory = memory * request.osl / batch
    if point.kind == "e2e":
        busy = busy * request.osl + prompt_floor(request, max(1.0, request.isl), batch)
        memory = memory * request.osl
    return "compute" if busy > memory else "memory"


def evaluate(row: dict[str, Any], configs: dict[str, Any]) -> dict[str, Any]:
    """One result row; a point that cannot be computed has ``null`` numbers and says why in ``warnings``."""
    point = prepare(row, configs)
    if isinstance(point, Refusal):
        empty = dict.fromkeys(("hard_ms", "expected_ms", "practical_ms", "typical_ms"))
        return {"id": str(row.get("id", "?")), **empty, "limiter": None, "warnings": [point.line()]}
    fitted, note = clip(point)
    times = times_of(fitted)
    warnings = ([note] if note else []) + list(implausible(point, times))
    return {
        "id": point.id,
        "hard_ms": round(times.hard, 4),
        "expected_ms": round(times.expected, 4),
        "practical_ms": round(times.practical, 4),
        "typical_ms": round(times.typical, 4),
        "limiter": floor_limiter(fitted),
        "warnings": warnings,
    }


def evaluate_all(data: Any) -> list[dict[str, Any]]:
    """All points of a parsed file; rows that are no objects are reported, never raised."""
    if isinstance(data, list):
        data = {"points": data}
    if not isinstance(data, dict) or not isinstance(data.get("points"), list):
        return [{"id": "?", "warnings": ["points: the file holds no list of points; see the format in the docs"]}]
    configs = data.get("configs") if isinstance(data.get("configs"), dict) else {}
    return [
        evaluate(row, configs or {}) if isinstance(row, dict) else {"id": "?", "warnings": ["point: not an object"]}
        for row in data["points"]
    ]


def main_points(path: Path | str) -> list[dict[str, Any]]:
    """Results of a points file. Raises ``OSError`` and ``ValueError`` (what is wrong with the file)."""
    file = Path(path)
    if file.stat().st_size > MAX_BYTES:
        raise ValueError(f"{file.name}: larger than {MAX_BYTES >> 20} MiB")
    try:
        return evaluate_all(json.loads(file.read_text(encoding="utf-8")))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{file.name}: not JSON ({error})") from None
