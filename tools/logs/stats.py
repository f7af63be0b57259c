"""Parsers of the lines that engines print again and again: one line in, one small record out.

Layouts: vLLM V0 and V1 (``v1/metrics/loggers.py``, 0.4.3 to 0.33.0), SGLang (``metrics_reporter.py`` and its
forerunners, 0.4.1 to 0.5.23), text-generation-inference's success lines.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

_ENGINE = re.compile(r"Engine (\d{1,4}): |(\d{1,4}) Engines Aggregated: ")
_PAIR = re.compile(
    r"(Avg prompt throughput|Avg generation throughput|Running|Waiting|Deferred|Pending|Swapped|Preemptions|Corrupted"
    r"|CPU KV cache usage(?=: [\d.]+%\.?$)|\w{1,20} KV cache usage|External prefix cache hit rate"
    r"|Prefix cache hit rate|MM cache hit rate): (?:GPU: )?(-?[\d.]+|nan|inf)"
)
# The line nearly every vLLM V1 log is full of, read in one go; any other layout takes the general way below.
_USUAL = re.compile(
    r"Engine (\d{1,4}): Avg prompt throughput: (\d+\.?\d*) tokens/s, Avg generation throughput: (\d+\.?\d*) tokens/s, "
    r"Running: (\d+) reqs, Waiting: (\d+) reqs, GPU KV cache usage: (\d+\.?\d*)%, Prefix cache hit rate: (\d+\.?\d*)%$"
)
_FETCH = re.compile(r"KV fetch: (\d+) waiting to start, (\d+) in progress, (\d+) completed waiting")
_SPEC = re.compile(
    r"(Mean acceptance length|Accepted|Drafted|Avg Draft acceptance rate|Draft acceptance rate|System efficiency"
    r"|Number of accepted tokens|Number of draft tokens|Number of speculative tokens): ([\d.]+|nan)"
)
_POSITIONS = re.compile(r"Per-position acceptance rate: ((?:[\d.]+|nan)(?:, (?:[\d.]+|nan)){0,63})")
_ITERATION = re.compile(
    r"Iteration\((\d+)\): (\d+) context requests?, (\d+) context tokens?, (\d+) generation requests?, "
    r"(\d+) generation tokens?, iteration elapsed time: ([\d.]+) ms(?! \(dummy)"
)
_TRANSFER = re.compile(r"([A-Z][\w %()/.-]{2,48})=(-?[\d.]+)(?:,|$)")
_GRAPH_ROW = re.compile(r"\| *(\d+) *\| *(\d+) *\| *(\d+) *\| *(\w+) *\| *(\d+) *\|")
_TGI = re.compile(
    r"(total_time|validation_time|queue_time|inference_time|time_per_token)=\"?(?:Some\()?([\d.]+)(ns|µs|us|ms|s)"
)
_UNIT_MS = {"ns": 1e-6, "µs": 1e-3, "us": 1e-3, "ms": 1.0, "s": 1000.0}

_FIELDS = {
    "Avg prompt throughput": "prompt",
    "Avg generation throughput": "generation",
    "Running": "running",
    "Waiting": "waiting",
    "Pending": "waiting",
    "Deferred": "deferred",
    "Swapped": "swapped",
    "Preemptions": "preemptions",
    "Corrupted": "corrupted",
    "Prefix cache hit rate": "hit",
    "External prefix cache hit rate": "external_hit",
    "MM cache hit rate": "mm_hit",
}
_PERCENT = {"hit", "external_hit", "mm_hit", "kv"}


class Sample(NamedTuple):
    """One statistics line. ``values`` may hold running, waiting, deferred, swapped (requests), kv, hit,
    external_hit, mm_hit (fraction 0 to 1), prompt and generation (tokens/s), preemptions and corrupted (count)."""

    family: str
    engine: str
    values: dict[str, float]


class Spec(NamedTuple):
    """One speculative-decoding line; ``length`` counts the bonus token, ``positions`` are fractions."""

    accepted: float | None
    drafted: float | None
    rate: float | None
    length: float | None
    positions: tuple[float, ...]


class Batch(NamedTuple):
    """One SGLang batch line; ``values`` by SGLang's own words, ``graph`` is its ``cuda graph:`` field."""

    decode: bool
    values: dict[str, float]
    graph: bool | None


class Iteration(NamedTuple):
    """One vLLM iteration-detail line; ``elapsed`` in milliseconds."""

    context_requests: int
    context_tokens: int
    generation_requests: int
    generation_tokens: int
    elapsed: float


def number(text: str) -> float | None:
    """A finite number, thousands separators allowed; ``None`` for anything else (``nan`` and ``inf`` included)."""
    try:
        value = float(text.replace(",", "").rstrip("."))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def stats_line(text: str) -> Sample | None:
    """vLLM's throughput line of either engine generation."""
    usual = _USUAL.match(text)
    if usual:
        prompt, generation, running, waiting, kv, hit = map(float, usual.groups()[1:])
        return Sample("vllm-v1", str(int(usual[1])), {
            "prompt": prompt, "generation": generation, "running": running, "waiting": waiting, "kv": kv / 100.0,
            "hit": hit / 100.0,
        })  # fmt: skip
    values: dict[str, float] = {}
    family = ""
    for found in _PAIR.finditer(text):
        key, value = found[1], number(found[2])
        field = _FIELDS.get(key)
        if key == "Pending":
            family = "vllm-v0"
        if field is None:
            if key == "CPU KV cache usage" and "kv" in values:
                continue  # V0 prints the swap space after the GPU's own figure
            field = "kv"
        if value is not None:
            values[field] = value / 100.0 if field in _PERCENT else value
    if "running" not in values or not ({"prompt", "generation"} & set(values)):
        return None
    fetch = _FETCH.search(text)
    if fetch:
        for index, field in enumerate(("kv_fetch_wait", "kv_fetch_progress", "kv_fetch_done"), 1):
            values[field] = float(fetch[index])
    engine = _ENGINE.search(text)
    name = "0" if engine is None else str(int(engine[1])) if engine[1] else "all"
    return Sample(family or "vllm-v1", name, values)


def spec_line(text: str) -> Spec | None:
    """``SpecDecoding metrics`` (V1) or ``Speculative metrics`` (V0)."""
    got = {found[1]: number(found[2]) for found in _SPEC.finditer(text)}
    if not got:
        return None
    places = _POSITIONS.search(text)
    positions = tuple(v for v in map(number, places[1].split(", ")) if v is not None) if places else ()
    accepted = got.get("Accepted", got.get("Number of accepted tokens"))
    drafted = got.get("Drafted", got.get("Number of draft tokens"))
    percent = got.get("Avg Draft acceptance rate")
    rate = percent / 100.0 if percent is not None else got.get("Draft acceptance rate")
    return Spec(accepted, drafted, rate, got.get("Mean acceptance length"), positions)


def batch_line(text: str) -> Batch | None:
    """SGLang ``Prefill batch`` or ``Decode batch``, or their figures alone (the head cut off by who copied it)."""
    at = text.find("batch")
    decode = at >= 0 and text.startswith("Decode", max(0, at - 7))
    if at < 0 or not (decode or text.startswith("Prefill", max(0, at - 8))):
        start = text.find("#running-req: ")
        if start < 0:
            return None
        decode, at = "#new-token" not in text, start - 5
    values: dict[str, float] = {}
    graph: bool | None = None
    for piece in text[at + 5 : at + 1200].split(", "):
        key, _, raw = piece.partition(": ")
        raw = raw.strip(" ,")
        key = key.strip(" .,")
        if "]" in key:
            key = key.rpartition("]")[2].strip()
        key = key.replace("token_usage", "token usage")
        if key == "cuda graph":
            graph = raw.startswith("True")
        elif key and raw and (value := number(raw)) is not None:
            values[key] = value
    return Batch(decode, values, graph) if values else None


def iteration_line(text: str) -> Iteration | None:
    """vLLM's per-step line (``--enable-logging-iteration-details``); dummy steps are skipped."""
    found = _ITERATION.search(text)
    if not found:
        return None
    return Iteration(int(found[2]), int(found[3]), int(found[4]), int(found[5]), float(found[6]))


def transfer_line(text: str) -> dict[str, float]:
    """``KV Transfer metrics: name=value, …``; names as printed."""
    body = text.partition("KV Transfer metrics:")[2]
    pairs = ((found[1].strip(), number(found[2])) for found in _TRANSFER.finditer(body))
    return {name: value for name, value in pairs if value is not None}


def graph_row(text: str) -> tuple[str, int] | None:
    """A row of vLLM's CUDA-graph table: runtime mode and how often."""
    found = _GRAPH_ROW.search(text)
    return (found[4].upper(), int(found[5])) if found else None


def tgi_line(text: str) -> dict[str, float]:
    """Times of one text-generation-inference request, in milliseconds."""
    return {found[1]: float(found[2]) * _UNIT_MS[found[3]] for found in _TGI.finditer(text) if number(found[2])}
