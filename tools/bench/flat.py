"""Runs kept as flat JSON objects: vLLM ``bench serve``/``throughput``/``latency``/``sweep``, SGLang ``bench_serving``,
InferenceX, and home-made lists of rows with recognisable keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tools.bench.fields import UNITS, Field, field
from tools.bench.run import Run, is_inf, new_run, number, spread

_FLAT = re.compile(r"^(mean|median|std|max|min|p\d{1,2}(?:\.\d+)?)_(ttft|tpot|itl|e2el|e2e|e2e_latency|latency)(_ms)?$")
_FAMILY = {"e2el": "e2e", "e2e_latency": "e2e", "latency": "e2e"}
_STAT = {"median": "p50"}
_TEXT = {
    "backend": "backend",
    "endpoint_type": "backend",
    "model_id": "model",
    "model": "model",
    "dataset_name": "dataset",
    "label": "variant",
    "tag": "variant",
    "szenario": "variant",
    "scenario": "variant",
    "name": "variant",
    "engine": "backend",
}
_SKIP = {
    "input_lens",
    "output_lens",
    "ttfts",
    "itls",
    "errors",
    "generated_texts",
    "server_info",
    "start_times",
    "date",
}
_KNOWN = frozenset(
    {
        "request_throughput",
        "output_throughput",
        "total_token_throughput",
        "total_throughput",
        "mean_ttft_ms",
        "median_ttft_ms",
        "median_ttft",
        "p99_ttft_ms",
        "mean_tpot_ms",
        "median_itl_ms",
        "mean_e2e_latency_ms",
        "tokens_per_second",
        "avg_latency",
        "requests_per_second",
        "total_input_tokens",
        "max_concurrency",
    }
)


def looks_flat(data: dict[str, Any]) -> bool:
    """Whether a JSON object is one run of a known generator."""
    return len(_KNOWN & data.keys()) >= 2


def _tool(data: dict[str, Any]) -> str:
    if "sharegpt_output_len" in data or "total_output_tokens_retokenized" in data:
        return "sglang.bench_serving"
    if "avg_latency" in data:
        return "vllm bench latency"
    if "elapsed_time" in data and "tokens_per_second" in data:
        return "vllm bench throughput"
    if "run_number" in data:
        return "vllm bench sweep"
    if "median_ttft" in data or "median_tpot" in data:
        return "InferenceX"
    return "vllm bench serve"


def flat_run(data: dict[str, Any], name: str, ref: str, line: int = 0) -> Run:
    """One run of a flat object. Fields that hold no number are kept in ``missing``."""
    run = new_run(name, _tool(data), ref, line)
    for key, value in data.items():
        if key in _SKIP:
            continue
        if key in _TEXT and isinstance(value, str):
            run.conditions.setdefault(_TEXT[key], value[:120])
            continue
        _put(run, key, value)
    percentiles = data.get("percentiles")
    if run.tool == "vllm bench latency":
        _latency(run, data, percentiles if isinstance(percentiles, dict) else {})
    _details(run, data)
    return run


def _put(run: Run, key: str, value: Any) -> None:
    name = key.rstrip(":")
    if key in ("request_rate", "request_rate_configured"):
        if is_inf(value):
            run.rate_is_inf = True
        elif (rate := number(value)) is not None:
            run.put(Field("request_rate"), rate)
        return
    found = _FLAT.match(name)
    if found:
        stat, family = _STAT.get(found[1], found[1]), _FAMILY.get(found[2], found[2])
        meaning: Field | None = Field(f"{family}.{stat}_ms", 1.0 if found[3] else 1000.0)
        if meaning and meaning.key not in UNITS:
            return
    elif name == "concurrency" and "max_concurrency" not in run.conditions and run.tool == "sglang.bench_serving":
        meaning = Field("mean_concurrency")
    else:
        meaning = field(name)
    if meaning is None or meaning.key not in UNITS:
        if meaning is not None:
            name = meaning.key
        if isinstance(value, (str, int, float, bool)) and value is not None and len(run.conditions) < 40:
            run.conditions.setdefault(name[:60], str(value)[:120])
        return
    if value is None:
        return
    amount = number(value)
    if amount is None:
        if isinstance(value, (str, float)):
            run.missing[meaning.key] = str(value)[:40]
        return
    run.put(meaning, amount)


def _latency(run: Run, data: dict[str, Any], percentiles: dict[str, Any]) -> None:
    mean = number(data.get("avg_latency"))
    if mean is not None:
        run.put(Field("e2e.mean_ms", 1000.0), mean)
    for share, value in percentiles.items():
        amount = number(value)
        key = f"e2e.p{share}_ms"
        if amount is not None and key in UNITS:
            run.put(Field(key, 1000.0), amount)
    run.caveats.append("latency of whole batches, not of single requests under load")


def _numbers(value: Any) -> list[float]:
    if not isinstance(value, list):
        return []
    return [float(v) for v in value[:2_000_000] if isinstance(v, (int, float)) and not isinstance(v, bool)]


def _details(run: Run, data: dict[str, Any]) -> None:
    """Per-request lists of ``--save-detailed``: distributions, the first request, output lengths, errors."""
    outputs, ttfts = _numbers(data.get("output_lens")), _numbers(data.get("ttfts"))
    if ttfts:
        answered = [t for t, n in zip(ttfts, outputs, strict=False) if n > 0] if len(outputs) == len(ttfts) else ttfts
        spread(run, "ttft", answered, 1000.0)
        run.lists["ttft"] = answered
    gaps = data.get("itls")
    if isinstance(gaps, list):
        flat = [
            g for one in gaps[:200_000] if isinstance(one, list) for g in one[:100_000] if isinstance(g, (int, float))
        ]
        spread(run, "itl", [float(g) for g in flat[:5_000_000]], 1000.0)
    if outputs:
        run.lists["output"] = outputs
    inputs = _numbers(data.get("input_lens"))
    if inputs:
        run.lists["input"] = inputs
    starts = _numbers(data.get("start_times"))
    if starts:
        run.lists["start"] = starts
    errors = data.get("errors")
    if isinstance(errors, list):
        for error in errors:
            if isinstance(error, str) and error.strip():
                text = error.strip().splitlines()[-1][:200]
                if text in run.errors or len(run.errors) < 50:
                    run.errors[text] = run.errors.get(text, 0) + 1


def rows_in(data: dict[str, Any], ref: str) -> Iterator[Run]:
    """Home-made results: the longest list of objects of which two keys at least are benchmark quantities."""
    best: list[Any] = []
    for value in data.values():
        if (
            isinstance(value, list)
            and value
            and all(isinstance(item, dict) for item in value)
            and len(value) > len(best)
        ):
            best = value
    shared = {k: str(v)[:120] for k, v in data.items() if isinstance(v, (str, int, float)) and not isinstance(v, bool)}
    for index, item in enumerate(best[:5000]):
        meanings = [found for key in item if (found := field(str(key))) is not None and found.key in UNITS]
        if len(meanings) < 2:
            continue
        run = flat_run(item, f"{ref}#{index + 1}", ref)
        run.tool = "own client"
        for key, text in shared.items():
            run.conditions.setdefault(_TEXT.get(key, key)[:60], text)
        yield run
