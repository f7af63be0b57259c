"""Reports with nested statistics: GuideLLM, AIPerf and genai-perf JSON, AIPerf records, inference-perf, a load
generator's per-request record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tools.bench.fields import UNITS, Field
from tools.bench.run import Run, new_run, number, quantile, spread

_STATS = {"mean": "mean", "avg": "mean", "median": "p50", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
_STATS |= {"min": "min", "max": "max"}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _latency(run: Run, family: str, block: dict[str, Any], factor: float) -> None:
    for stat, name in _STATS.items():
        value = number(block.get(stat))
        key = f"{family}.{name}_ms"
        if value is not None and key in UNITS:
            run.put(Field(key, factor), value, over=False)


def _scalar(run: Run, key: str, value: Any, factor: float = 1.0) -> None:
    amount = number(value)
    if amount is not None:
        run.put(Field(key, factor), amount)


# ── GuideLLM ─────────────────────────────────────────────────────────────────────────────────────────────────
_GUIDE = (
    ("time_to_first_token_ms", "ttft", 1.0),
    ("inter_token_latency_ms", "itl", 1.0),
    ("time_per_output_token_ms", "tpot", 1.0),
    ("request_latency", "e2e", 1000.0),
)
_GUIDE_MEANS = (
    ("requests_per_second", "requests_per_s"),
    ("request_concurrency", "mean_concurrency"),
    ("output_tokens_per_second", "output_tokens_per_s"),
    ("tokens_per_second", "total_tokens_per_s"),
    ("prompt_tokens_per_second", "input_tokens_per_s"),
    ("prompt_token_count", "input_tokens"),
    ("output_token_count", "output_tokens"),
)


def guidellm(data: dict[str, Any], ref: str) -> Iterator[Run]:
    """Each entry of ``benchmarks``. Latencies are those of successful requests."""
    for index, bench in enumerate(data.get("benchmarks") or []):
        metrics = _dict(_dict(bench).get("metrics"))
        if not metrics:
            continue
        run = new_run(f"{ref}#{index + 1}", "GuideLLM", ref)
        for name, family, factor in _GUIDE:
            block = _dict(metrics.get(name))
            good = _dict(block.get("successful")) or block
            _latency(run, family, good, factor)
            _latency(run, family, _dict(good.get("percentiles")), factor)
        for name, key in _GUIDE_MEANS:
            block = _dict(metrics.get(name))
            good = _dict(block.get("successful")) or _dict(block.get("total")) or block
            _scalar(run, key, good.get("mean"))
        totals = _dict(metrics.get("request_totals")) or _dict(_dict(bench.get("run_stats")).get("requests_made"))
        _scalar(run, "completed", totals.get("successful"))
        _scalar(run, "failed", totals.get("errored"))
        cut = number(totals.get("incomplete"))
        if cut:
            run.caveats.append(f"{cut:g} requests were cut by the end of the run and are in no latency")
        _scalar(run, "duration_s", bench.get("duration"))
        config = _dict(bench.get("config")) or _dict(bench.get("args"))
        strategy = _dict(config.get("strategy")) or _dict(_dict(bench.get("scheduler")).get("strategy"))
        kind = strategy.get("type_") or strategy.get("kind") or strategy.get("type")
        if isinstance(kind, str):
            run.conditions["variant"] = kind
        _scalar(run, "concurrency", strategy.get("streams"))
        _scalar(run, "request_rate", strategy.get("rate"))
        yield run


# ── AIPerf, genai-perf ───────────────────────────────────────────────────────────────────────────────────────
_AIPERF_LATENCY = {
    "time_to_first_token": "ttft",
    "time_to_second_token": "ttst",
    "inter_token_latency": "itl",
    "request_latency": "e2e",
}
_AIPERF_SCALAR = {
    "output_token_throughput": "output_tokens_per_s",
    "output_token_throughput_per_user": "output_tokens_per_s_per_user",
    "total_token_throughput": "total_tokens_per_s",
    "request_throughput": "requests_per_s",
    "goodput": "goodput_requests_per_s",
    "request_count": "completed",
    "error_request_count": "failed",
    "input_sequence_length": "input_tokens",
    "output_sequence_length": "output_tokens",
    "total_output_tokens": "total_output_tokens",
    "total_isl": "total_input_tokens",
}
_TIME = {"ms": 1.0, "s": 1000.0, "sec": 1000.0, "us": 0.001, "µs": 0.001, "ns": 1e-6}


def looks_aiperf(data: dict[str, Any]) -> bool:
    """Whether an object has AIPerf's metric blocks."""
    return any(
        isinstance(data.get(key), dict) and "avg" in data[key] for key in (*_AIPERF_LATENCY, "request_throughput")
    )


def aiperf(data: dict[str, Any], ref: str) -> Run:
    """``profile_export_aiperf.json`` or genai-perf's JSON: each metric is a block with its unit."""
    run = new_run(ref, "AIPerf", ref)
    for name, family in _AIPERF_LATENCY.items():
        block = _dict(data.get(name))
        _latency(run, family, block, _TIME.get(str(block.get("unit", "ms")).lower(), 1.0))
    for name, key in _AIPERF_SCALAR.items():
        _scalar(run, key, _dict(data.get(name)).get("avg"))
    load = _dict(_dict(data.get("input_config")).get("loadgen")) or _dict(
        _dict(data.get("input_config")).get("perf_analyzer")
    )
    _scalar(run, "concurrency", load.get("concurrency"))
    _scalar(run, "request_rate", load.get("request_rate"))
    summary = data.get("error_summary")
    for item in summary if isinstance(summary, list) else []:
        details, count = _dict(_dict(item).get("error_details")), number(_dict(item).get("count"))
        text = str(details.get("message") or details.get("type") or "")[:200]
        if text:
            run.errors[text] = int(count or 1)
    return run


class Records:
    """AIPerf's ``profile_export.jsonl``: one request a line, kept as samples up to 200 000 of each kind."""

    LIMIT = 200_000

    def __init__(self, ref: str) -> None:
        self.run = new_run(ref, "AIPerf records", ref)
        self._samples: dict[str, list[float]] = {}
        self._begin: float | None = None
        self._end: float | None = None
        self.good = self.bad = 0

    def add(self, record: dict[str, Any], line: int) -> None:
        """One line."""
        metrics, meta = _dict(record.get("metrics")), _dict(record.get("metadata"))
        error = record.get("error")
        if error is not None or meta.get("was_cancelled") is True:
            self.bad += 1
            text = str(_dict(error).get("type") or _dict(error).get("message") or "cancelled")[:200]
            if text in self.run.errors or len(self.run.errors) < 50:
                self.run.errors[text] = self.run.errors.get(text, 0) + 1
            return
        self.good += 1
        for name, block in metrics.items():
            value = number(_dict(block).get("value"))
            if value is None:
                continue
            factor = _TIME.get(str(_dict(block).get("unit", "")).lower(), 1.0)
            samples = self._samples.setdefault(name, [])
            if len(samples) < self.LIMIT:
                samples.append(value * factor)
        begin, end = number(meta.get("request_start_ns")), number(meta.get("request_end_ns"))
        if begin is not None and end is not None:
            self._begin = begin if self._begin is None else min(self._begin, begin)
            self._end = end if self._end is None else max(self._end, end)

    def finish(self) -> Run:
        """The run of all lines."""
        run = self.run
        for name, family in _AIPERF_LATENCY.items():
            spread(run, family, self._samples.get(name, []), 1.0)
        for name, key in (("input_sequence_length", "input_tokens"), ("output_token_count", "output_tokens")):
            values = self._samples.get(name)
            if values:
                run.metrics[key] = round(sum(values) / len(values), 6)
        run.metrics["completed"], run.metrics["failed"] = self.good, self.bad
        if self._begin is not None and self._end is not None and self._end > self._begin:
            seconds = (self._end - self._begin) / 1e9
            run.metrics["duration_s"] = round(seconds, 6)
            run.metrics["requests_per_s"] = round(self.good / seconds, 6)
            tokens = sum(self._samples.get("output_token_count", []))
            if tokens:
                run.metrics["output_tokens_per_s"] = round(tokens / seconds, 6)
        run.lists["ttft"] = [v / 1000.0 for v in self._samples.get("time_to_first_token", [])]
        run.lists["output"] = self._samples.get("output_token_count", [])
        return run


# ── inference-perf ───────────────────────────────────────────────────────────────────────────────────────────
_IPERF = {
    "request_latency": "e2e",
    "time_to_first_token": "ttft",
    "time_per_output_token": "tpot",
    "inter_token_latency": "itl",
}


def inference_perf(data: dict[str, Any], ref: str) -> Run:
    """Lifecycle or Prometheus summary of inference-perf (seconds throughout)."""
    good, bad, load = _dict(data.get("successes")), _dict(data.get("failures")), _dict(data.get("load_summary"))
    prometheus = "request_latency" in good
    run = new_run(ref, "inference-perf (Prometheus)" if prometheus else "inference-perf", ref)
    blocks = good if prometheus else _dict(good.get("latency"))
    for name, family in _IPERF.items():
        _latency(run, family, _dict(blocks.get(name)), 1000.0)
    _scalar(run, "completed", good.get("count"))
    _scalar(run, "failed", bad.get("count"))
    throughput = _dict(good.get("throughput"))
    _scalar(run, "requests_per_s", throughput.get("requests_per_sec", good.get("rate")))
    _scalar(
        run, "output_tokens_per_s", throughput.get("output_tokens_per_sec", _dict(good.get("output_len")).get("rate"))
    )
    _scalar(
        run, "input_tokens_per_s", throughput.get("input_tokens_per_sec", _dict(good.get("prompt_len")).get("rate"))
    )
    _scalar(run, "total_tokens_per_s", throughput.get("total_tokens_per_sec"))
    if not prometheus:  # the Prometheus summary divides by other counts and can print thousands of tokens or zero
        _scalar(run, "input_tokens", _dict(good.get("prompt_len")).get("mean"))
        _scalar(run, "output_tokens", _dict(good.get("output_len")).get("mean"))
    _scalar(run, "requested", load.get("count"))
    _scalar(run, "request_rate", load.get("requested_rate"))
    _scalar(run, "achieved_rate", load.get("achieved_rate"))
    delay = _dict(load.get("schedule_delay"))
    for stat in ("mean", "p99", "max"):
        value = number(delay.get(stat))
        if value is not None and value >= 0:
            run.metrics[f"schedule_delay.{stat}_ms"] = round(value * 1000.0, 6)
    if prometheus:
        run.caveats.append("quantiles are interpolated in server histogram buckets, and token means may be off")
        if _dict(good.get("kv_cache_usage_percentage")).get("mean") == 0:
            run.caveats.append("KV use reads 0: the metric name of that server release was not found")
    return run


# ── a load generator's own record ────────────────────────────────────────────────────────────────────────────
def looks_record(data: dict[str, Any]) -> bool:
    """Whether an object is a per-request record: a list of requests with arrival and first-token times."""
    requests = data.get("requests")
    if not isinstance(requests, list) or not requests:
        return False
    first = requests[0]
    return isinstance(first, dict) and "ttft" in first and ("arrival" in first or "status" in first)


def record(data: dict[str, Any], ref: str) -> Iterator[Run]:
    """One run for all requests, and one for each stream where there are several."""
    requests = [item for item in data["requests"][:500_000] if isinstance(item, dict)]
    streams = sorted({str(item.get("stream", "")) for item in requests})
    yield _of_requests(requests, ref, ref, number(data.get("wall_s")), _dict(data.get("summary")))
    if len(streams) > 1:
        for stream in streams[:32]:
            chosen = [item for item in requests if str(item.get("stream", "")) == stream]
            run = _of_requests(chosen, f"{ref}#{stream}", ref, number(data.get("wall_s")), {})
            run.conditions["stream"] = stream
            yield run


def _fine(item: dict[str, Any]) -> bool:
    return item.get("status") == 200 and not item.get("error")


def _of_requests(items: list[dict[str, Any]], name: str, ref: str, wall: float | None, summary: dict[str, Any]) -> Run:
    run = new_run(name, "load generator record", ref)
    good = [i for i in items if _fine(i)]
    for family, key in (("ttft", "ttft"), ("e2e", "e2e"), ("tpot", "tpot")):
        values = [v for v in (number(i.get(key)) for i in good) if v is not None]
        spread(run, family, values, 1000.0)
    _latency(run, "itl", _dict(summary.get("itl_s")), 1000.0)
    gaps = [(number(_dict(i.get("itl")).get("n")) or 0.0, number(_dict(i.get("itl")).get("mean")) or 0.0) for i in good]
    if (count := sum(n for n, _ in gaps)) > 0:
        run.put(Field("itl.mean_ms", 1000.0), sum(n * mean for n, mean in gaps) / count, over=False)
    outputs = [v for v in (number(i.get("completion_tokens")) for i in good) if v is not None]
    inputs = [v for v in (number(i.get("prompt_tokens", i.get("prompt_len_sent"))) for i in good) if v is not None]
    run.metrics["completed"], run.metrics["failed"] = len(good), len(items) - len(good)
    for key, values in (("output_tokens", outputs), ("input_tokens", inputs)):
        if values:
            run.metrics[key] = round(sum(values) / len(values), 6)
            run.metrics[f"total_{key}"] = sum(values)
    if wall:
        run.metrics["duration_s"] = wall
        run.metrics["requests_per_s"] = round(len(good) / wall, 6)
        if outputs:
            run.metrics["output_tokens_per_s"] = round(sum(outputs) / wall, 6)
    _in_flight(run, items)
    for item in items:
        if not _fine(item) and len(run.errors) < 50:
            text = str(item.get("error") or f"HTTP {item.get('status')}")[:200]
            run.errors[text] = run.errors.get(text, 0) + 1
    retries = sum(1 for i in items if (number(i.get("attempt")) or 0) > 0)
    if any("attempt" in i for i in items):
        run.retries = retries
    if retries:
        run.caveats.append(f"{retries} of {len(items)} requests are repeats of an earlier attempt")
    arrivals = sorted((number(i.get("arrival")) or 0.0, number(i.get("ttft"))) for i in good)
    run.lists["ttft"] = [t for _, t in arrivals if t is not None]
    run.lists["output"], run.lists["input"] = outputs, inputs
    run.lists["start"] = [a for a, _ in arrivals]
    return run


def _in_flight(run: Run, items: list[dict[str, Any]]) -> None:
    """Peak and mean number of requests in flight, from arrivals and durations."""
    events: list[tuple[float, int]] = []
    for item in items:
        begin, length = number(item.get("arrival")), number(item.get("e2e"))
        if begin is not None and length is not None and length > 0:
            events += [(begin, 1), (begin + length, -1)]
    if not events:
        return
    events.sort()
    level = peak = 0
    area, before = 0.0, events[0][0]
    for at, step in events:
        area += level * (at - before)
        level += step
        peak = max(peak, level)
        before = at
    run.metrics["peak_concurrency"] = peak
    if before > events[0][0]:
        run.metrics["mean_concurrency"] = round(area / (before - events[0][0]), 4)


def warm_share(values: list[float]) -> float | None:
    """The first sample over the median of the rest; ``None`` under six samples."""
    if len(values) < 6:
        return None
    rest = quantile(sorted(values[1:]), 0.5)
    return values[0] / rest if rest > 0 else None
