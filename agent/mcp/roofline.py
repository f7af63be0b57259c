"""``roofline``: how fast it could be, what binds, what a change would buy."""

from __future__ import annotations

import json
from typing import Any

from agent.mcp.bound import short, tidy
from agent.mcp.tool import LIST, NUM, TEXT, Answer, Desk, ToolDef, Trouble, many, obj

_FIGURES = ("batch", "concurrency", "context", "isl", "osl", "tp", "pp", "dp", "ep")
_WORDS = ("model", "gpu", "weights", "kv", "engine")
MAX_CONFIG = 4 << 20


def call(desk: Desk, given: dict[str, Any]) -> Answer:
    """Floors and typical times in ms; a measurement against them; a change when ``set`` is given."""
    from agent.cli_roofline import as_data, change_data
    from tools.roofline.build import request_from
    from tools.roofline.checks import Measured, compare
    from tools.roofline.floors import estimate
    from tools.roofline.request import Request

    values: dict[str, Any] = {name: given[name] for name in (*_FIGURES, *_WORDS) if name in given}
    if given.get("config_path"):
        values["config"] = _config(desk, given["config_path"])
    request = request_from(values)
    if not isinstance(request, Request):
        raise Trouble(
            "bad_argument",
            short(request.line()),
            "give model (or config_path) and gpu; figures in tokens and sequences",
        )
    if given.get("set"):
        from tools.roofline.whatif import whatif

        pairs = [item.partition("=") for item in given["set"]]
        if not all(sign and name.strip() for name, sign, _ in pairs):
            raise Trouble("bad_argument", "set takes KEY=VALUE", "for instance kv_cache_dtype=fp8 or gpu=H200")
        change = whatif(request, {name.strip(): value.strip() for name, _, value in pairs})
        data = {"limiter": change.after.limiter, "warnings": [], "change": change_data(change)}
        moved = "; ".join(f"{d.name} {d.change:+.0%}" for d in change.deltas[:5])
        return Answer(data=tidy(_rounded(data)), text=f"predicted: {moved or 'nothing'}; binds: {change.after.limiter}")
    result = estimate(request, whole=True)
    seen = Measured(**{name: given.get(f"measured_{name}") for name in ("tpot_ms", "ttft_ms", "output_tps")})
    judged = compare(result, seen) if seen != Measured() else None
    data = as_data(result, judged)
    of = ("model", "weights", "gpu", "gpus", "batch", "context_tokens", "request_at_full_load_ms")
    data["of"] = {name: data.pop(name) for name in of}
    for name in ("layout", "batch_end_to_end_ms"):
        data.pop(name)
    tpot, room = result.tpot, result.capacity
    text = (
        f"TPOT {tpot.hard:.3g} ms hard floor, {tpot.practical:.3g} practical, {tpot.typical:.3g} typical; TTFT alone "
        f"{result.ttft.typical:.3g} ms typical; binds: {result.limiter}; {room.concurrency:.0f} sequences of "
        f"{room.context:.0f} tokens fit"
    )
    if judged:
        text += "; measured is at the limit of the hardware" if judged.at_limit else ""
        text += "".join(f"; broken: {line}" for line in judged.broken)
    return Answer(data=tidy(_rounded(data)), text=text)


def _config(desk: Desk, path: str) -> dict[str, Any]:
    part = desk.roots.file(path)
    if part.size() > MAX_CONFIG:
        raise Trouble("too_large", "config_path is over 4 MiB", "give the model's config.json")
    try:
        data = json.loads(part.text(MAX_CONFIG))
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise Trouble("bad_argument", "config_path is not a JSON object", "give the model's config.json")
    return data


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    return [_rounded(v) for v in value] if isinstance(value, (list, tuple)) else value


_TIMES = {"type": "object", "required": ["hard", "practical", "typical"]}

TOOL = ToolDef(
    name="roofline",
    description="Floors and typical TPOT/TTFT (ms) of a model on GPUs, what binds, what fits; judges measured numbers; set "
    "predicts a change.",
    arguments=obj(
        "gpu",
        model={"type": "string", "description": "shipped name, else config_path"},
        config_path=TEXT,
        gpu={"type": "string", "description": "e.g. 8x H100"},
        **dict.fromkeys(_FIGURES, NUM),
        weights=TEXT,
        kv=TEXT,
        engine=TEXT,
        measured_tpot_ms=NUM,
        measured_ttft_ms=NUM,
        measured_output_tps=NUM,
        set={**many(TEXT), "description": "KEY=VALUE"},
    ),
    output=obj(
        "limiter warnings",
        of=obj(),
        tpot_ms=_TIMES,
        ttft_ms=_TIMES,
        capacity_bytes=obj(),
        limiter=TEXT,
        shares=obj(),
        warnings=LIST,
        assumed=LIST,
        measured=obj(),
        change=obj(),
    ),
    call=call,
)
