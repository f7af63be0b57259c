"""What the labels of benchmark output mean: one label in, the canonical metric and the factor to its unit out.

Labels come as table heads (``Mean TTFT (ms)``), JSON keys (``p99_itl_ms``), text labels and ``key=value`` words.
Canonical latencies are in milliseconds, rates per second, durations in seconds.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

LATENCIES = ("ttft", "tpot", "itl", "e2e", "ttst")
UNITS: dict[str, str] = {
    **{
        f"{family}.{stat}_ms": "ms"
        for family in LATENCIES
        for stat in ("mean", "p50", "p90", "p95", "p99", "max", "min")
    },
    "output_tokens_per_s": "tokens/s",
    "input_tokens_per_s": "tokens/s",
    "total_tokens_per_s": "tokens/s",
    "peak_output_tokens_per_s": "tokens/s",
    "output_tokens_per_s_per_user": "tokens/s",
    "decode_tokens_per_s": "tokens/s",
    "prefill_tokens_per_s": "tokens/s",
    "requests_per_s": "requests/s",
    "goodput_requests_per_s": "requests/s",
    "completed": "requests",
    "failed": "requests",
    "requested": "requests",
    "duration_s": "s",
    "concurrency": "requests",
    "mean_concurrency": "requests",
    "peak_concurrency": "requests",
    "request_rate": "requests/s",
    "achieved_rate": "requests/s",
    "input_tokens": "tokens",
    "output_tokens": "tokens",
    "total_input_tokens": "tokens",
    "total_output_tokens": "tokens",
    "retokenized_output_tokens": "tokens",
    "acceptance_length": "tokens",
    "acceptance_rate": "fraction",
    "accuracy": "fraction",
    "schedule_delay.mean_ms": "ms",
    "schedule_delay.p99_ms": "ms",
    "schedule_delay.max_ms": "ms",
}


class Field(NamedTuple):
    """``key``: canonical metric (see :data:`UNITS`) or a condition's name; ``scale``: factor to the canonical unit.

    ``unit``: the unit the label itself names, empty when it names none (then the family's usual one is taken).
    """

    key: str
    scale: float = 1.0
    unit: str = ""


_SPLIT = re.compile(r"[\s_/]+")
_PAREN = re.compile(r"[(\[]([^)\]]{1,30})[)\]]")
_UNIT_WORDS: dict[str, tuple[str, float]] = {
    "ms": ("time", 1.0),
    "msec": ("time", 1.0),
    "milliseconds": ("time", 1.0),
    "s": ("time", 1000.0),
    "sec": ("time", 1000.0),
    "secs": ("time", 1000.0),
    "second": ("time", 1000.0),
    "seconds": ("time", 1000.0),
    "us": ("time", 0.001),
    "µs": ("time", 0.001),
    "μs": ("time", 0.001),
    "ns": ("time", 1e-6),
    "min": ("time", 60000.0),
    "tok/s": ("tokens", 1.0),
    "toks/s": ("tokens", 1.0),
    "token/s": ("tokens", 1.0),
    "tokens/s": ("tokens", 1.0),
    "tokens/sec": ("tokens", 1.0),
    "tok/sec": ("tokens", 1.0),
    "tokens/second": ("tokens", 1.0),
    "t/s": ("tokens", 1.0),
    "tps": ("tokens", 1.0),
    "tokens/sec/user": ("tokens", 1.0),
    "req/s": ("requests", 1.0),
    "reqs/s": ("requests", 1.0),
    "requests/s": ("requests", 1.0),
    "requests/sec": ("requests", 1.0),
    "requests/second": ("requests", 1.0),
    "rps": ("requests", 1.0),
    "qps": ("requests", 1.0),
    "requests/min": ("requests", 1.0 / 60.0),
    "%": ("percent", 0.01),
    "percent": ("percent", 0.01),
    "pct": ("percent", 0.01),
}
_COUNTS = frozenset({"tokens", "token", "requests", "count", "per sec", "per second", "reqs", "req", "#"})
_RATE = re.compile(
    r"(?i)(?<![a-z])(tok(?:en)?s?|reqs?|requests?)\s*(?:/|[_ ]per[_ ])\s*(s|sec|second|min)(?:ond)?s?(?![a-z])(?:\s*/\s*(user|gpu))?"
)
_STAT = re.compile(
    r"(?i)(?<![a-z0-9])(?:(mean|avg|average|durchschnitt|mittel|平均)|(median|mdn|med)|p ?(\d{2}(?:\.\d+)?)"
    r"|(\d{2})(?:th)? ?%?[- ]?(?:percentile|tile)|(max|maximum|maximal|最大)|(min|minimum|最小)|(std|stddev|stdev))(?![a-z0-9])"
)
_FAMILY: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (family, re.compile(pattern))
    for family, pattern in (
        ("ttst", r"time to second token|\bttst\b"),
        ("ttft", r"\bttfts?\b|time to (?:the )?first[- ]token|first[- ]token(?: latency| time)?|首 ?token"),
        ("itl", r"\bitls?\b|inter[- ]?token|inter[- ]?chunk|\bpackage latency\b|token间"),
        ("tpot", r"\btpots?\b|time per (?:output )?token|per[- ]token latency"),
        ("e2e", r"\be2e\b|\be2el\b|end[- ]to[- ]end|request latency|average latency|\blatency\b|\blatencies\b|总延迟"),
    )
)
_ACCEPTED = re.compile(r"\bacc(?:ept(?:ance|ed)?)? ?len(?:gth)?\b")
_EXACT: dict[str, Field] = {
    "completed": Field("completed"),
    "successful requests": Field("completed"),
    "succeed requests": Field("completed"),
    "success requests": Field("completed"),
    "success": Field("completed"),
    "ok": Field("completed"),
    "request count": Field("completed"),
    "failed": Field("failed"),
    "failed requests": Field("failed"),
    "errors": Field("failed"),
    "error count": Field("failed"),
    "num prompts": Field("requested"),
    "total requests": Field("requested"),
    "number of requests": Field("requested"),
    "num requests": Field("requested"),
    "duration": Field("duration_s", 1.0, "s"),
    "benchmark duration": Field("duration_s"),
    "time taken for tests": Field("duration_s"),
    "test duration": Field("duration_s"),
    "elapsed time": Field("duration_s"),
    "wall": Field("duration_s"),
    "maximum request concurrency": Field("concurrency"),
    "max request concurrency": Field("concurrency"),
    "max concurrency": Field("concurrency"),
    "number of concurrency": Field("concurrency"),
    "concurrency": Field("concurrency"),
    "conc": Field("concurrency"),
    "concurrent requests": Field("concurrency"),
    "concurrent": Field("concurrency"),
    "clients": Field("concurrency"),
    "users": Field("concurrency"),
    "c": Field("concurrency"),
    "streams": Field("concurrency"),
    "并发": Field("concurrency"),
    "并发数": Field("concurrency"),
    "peak concurrent requests": Field("peak_concurrency"),
    "max concurrent requests": Field("peak_concurrency"),
    "request rate": Field("request_rate"),
    "traffic request rate": Field("request_rate"),
    "request rate configured": Field("request_rate"),
    "total input tokens": Field("total_input_tokens"),
    "total num input tokens": Field("total_input_tokens"),
    "total generated tokens": Field("total_output_tokens"),
    "total output tokens": Field("total_output_tokens"),
    "total num output tokens": Field("total_output_tokens"),
    "total output tokens retokenized": Field("retokenized_output_tokens"),
    "total generated tokens retokenized": Field("retokenized_output_tokens"),
    "input sequence length": Field("input_tokens"),
    "output sequence length": Field("output_tokens"),
    "output token count": Field("output_tokens"),
    "input tokens per request": Field("input_tokens"),
    "output tokens per request": Field("output_tokens"),
    "avg input tokens": Field("input_tokens"),
    "avg output tokens": Field("output_tokens"),
    "in tokens": Field("input_tokens"),
    "out tokens": Field("output_tokens"),
    "isl": Field("input_tokens"),
    "osl": Field("output_tokens"),
    "input len": Field("input_tokens"),
    "output len": Field("output_tokens"),
    "random input len": Field("input_len"),
    "random output len": Field("output_len"),
    "sharegpt output len": Field("output_len"),
    "goodput": Field("goodput_requests_per_s"),
    "request goodput": Field("goodput_requests_per_s"),
    "accept length": Field("acceptance_length"),
    "accept len": Field("acceptance_length"),
    "acceptance length": Field("acceptance_length"),
    "mean acceptance length": Field("acceptance_length"),
    "acclen": Field("acceptance_length"),
    "acceptance": Field("acceptance_rate"),
    "acceptance rate": Field("acceptance_rate"),
    "accept rate": Field("acceptance_rate"),
    "accuracy": Field("accuracy"),
    "output throughput": Field("output_tokens_per_s"),
    "output token throughput": Field("output_tokens_per_s"),
    "output token throughput per user": Field("output_tokens_per_s_per_user"),
    "user throughput": Field("output_tokens_per_s_per_user"),
    "peak output token throughput": Field("peak_output_tokens_per_s"),
    "max output tokens per s": Field("peak_output_tokens_per_s"),
    "input throughput": Field("input_tokens_per_s"),
    "input token throughput": Field("input_tokens_per_s"),
    "total throughput": Field("total_tokens_per_s"),
    "total token throughput": Field("total_tokens_per_s"),
    "request throughput": Field("requests_per_s"),
    "requests per second": Field("requests_per_s"),
    "tokens per second": Field("total_tokens_per_s"),
    "throughput": Field("output_tokens_per_s"),
    "generation tok": Field("output_tokens_per_s"),
    "decode tps": Field("decode_tokens_per_s"),
    "gesamt tps": Field("output_tokens_per_s"),
    "gesamt": Field("output_tokens_per_s"),
    "decode": Field("decode_tokens_per_s"),
    "prefill": Field("prefill_tokens_per_s"),
}


def _unit(label: str) -> tuple[str, str, float, str]:
    """``(label without its unit, kind of unit, factor, unit word)``."""
    rate = _RATE.search(label)
    if rate:
        kind = "requests" if rate[1].lower().startswith("req") else "tokens"
        factor = 1.0 / 60.0 if rate[2].lower() == "min" else 1.0
        rest = label[: rate.start()] + " " + label[rate.end() :] + (f" per {rate[3]}" if rate[3] else "")
        return re.sub(r"[(\[]\s*[)\]]", " ", rest), kind, factor, rate[0]
    for found in _PAREN.finditer(label):
        word = found[1].strip().lower()
        if word in _COUNTS:
            return label[: found.start()] + " " + label[found.end() :], "", 1.0, ""
        if word in _UNIT_WORDS:
            kind, factor = _UNIT_WORDS[word]
            return label[: found.start()] + " " + label[found.end() :], kind, factor, word
    words = _SPLIT.split(label.strip())
    for at in (len(words) - 1, len(words) - 2, 0):
        if len(words) > 1 and 0 <= at < len(words) and words[at].lower() in _UNIT_WORDS:
            word = words[at].lower()
            if word in ("min", "s") and at != len(words) - 1 and not _STAT.fullmatch(words[-1]):
                continue
            kind, factor = _UNIT_WORDS[word]
            if word == "min" and _family(label):
                continue  # "TTFT min" is a statistic
            return " ".join(words[:at] + words[at + 1 :]), kind, factor, word
    return label, "", 1.0, ""


def _family(label: str) -> str:
    low = label.lower().replace("_", " ")
    return next((family for family, pattern in _FAMILY if pattern.search(low)), "")


def _stat(label: str) -> tuple[str, str]:
    """``(statistic, label without it)``; the statistic is empty when the label names none."""
    plain = label.replace("_", " ")
    found = _STAT.search(plain)
    if not found:
        return "", plain
    rest = plain[: found.start()] + " " + plain[found.end() :]
    if found[1]:
        return "mean", rest
    if found[2]:
        return "p50", rest
    if found[3] or found[4]:
        return f"p{found[3] or found[4]}", rest
    return ("max" if found[5] else "min" if found[6] else "std"), rest


@lru_cache(maxsize=4096)
def field(label: str, *, unit: str = "", stat: str = "") -> Field | None:
    """What a label means; ``None`` when it is no benchmark quantity. ``unit`` and ``stat`` complete a bare label."""
    label = label.strip().strip("*`:").strip()
    if not label or len(label) > 80:
        return None
    rest, kind, factor, word = _unit(label)
    if not kind and unit:
        _, kind, factor, word = (
            _unit(f"x {unit}") if unit.strip().lower() in _UNIT_WORDS or _RATE.search(unit) else ("", "", 1.0, "")
        )
    named, bare = _stat(rest)
    which = named or stat
    family = _family(rest)
    if family and kind in ("", "time"):
        key = f"{family}.{which or 'mean'}_ms"
        return Field(key, factor if kind else 1.0, word) if key in UNITS else None
    words = " ".join(part for part in re.split(r"[^\w%]+", bare.lower().replace("_", " ")) if part)
    if kind == "requests":
        goodput = "goodput" in words
        rated = bool(set(words.split()) & {"rate", "offered", "arrival", "arrivals", "target", "requested"})
        return Field(
            "goodput_requests_per_s" if goodput else "request_rate" if rated else "requests_per_s", factor, word
        )
    if kind == "tokens":
        return Field(_rate_key(words, which), factor, word)
    whole = " ".join(part for part in re.split(r"[^\w%]+", rest.lower().replace("_", " ")) if part)
    exact = _EXACT.get(whole) or _EXACT.get(words)
    if exact is None and _ACCEPTED.search(whole):
        exact = Field("acceptance_length")
    if exact is None:
        return None
    if exact.key == "duration_s":
        return Field("duration_s", factor / 1000.0 if kind == "time" else 1.0, word)
    if kind == "time":
        return None  # the time that a phase takes, no rate of it
    if kind == "percent":
        return Field(exact.key, 0.01, word)
    if which in ("p50", "p90", "p95", "p99", "max", "min", "std") and exact.key in ("input_tokens", "output_tokens"):
        return None
    return exact._replace(unit=word)


def _rate_key(words: str, stat: str) -> str:
    parts = set(words.split())
    if "user" in parts:
        return "output_tokens_per_s_per_user"
    if "peak" in parts or stat == "max":
        return "peak_output_tokens_per_s"
    if parts & {"input", "prompt"}:
        return "input_tokens_per_s"
    if "prefill" in parts:
        return "prefill_tokens_per_s"
    if "total" in parts or "tot" in parts:
        return "total_tokens_per_s"
    if "decode" in parts:
        return "decode_tokens_per_s"
    return "output_tokens_per_s"
