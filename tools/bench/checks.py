"""Checks the measurement before anybody explains it: traps of single runs and of runs put side by side.

Each check is a fact with its arithmetic in words. None of them says what is wrong with the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tools.bench.run import Run, number, quantile
from tools.bench.structured import warm_share

FEW = 30
UNEQUAL = 0.10
FIRST_SLOW = 3.0
LATE_SHARE = 0.90
LATE_DELAY = 0.05


class Finding(NamedTuple):
    """A derived fact of one run: name below ``bench.``, value, how it was computed, caveats."""

    fact: str
    value: float | bool | str | list[str]
    how: str
    caveats: tuple[str, ...] = ()


def complete(run: Run) -> None:
    """Fill in what follows from the run's own numbers by definition; drop zeros that mean "nothing was measured"."""
    metrics = run.metrics
    good = metrics.get("completed")
    for side in ("input", "output"):
        total, each = metrics.get(f"total_{side}_tokens"), metrics.get(f"{side}_tokens")
        if total is not None and good and (each is None or f"{side}_tokens" not in run.lines):
            metrics[f"{side}_tokens"] = round(total / good, 4)
    for side in ("input", "output"):
        asked = number(run.conditions.get(f"{side}_len"))
        if asked and f"{side}_tokens" not in metrics and good != 0:
            metrics[f"{side}_tokens"] = asked
            run.approximate.add(f"{side}_tokens")
    if good is not None and metrics.get("requested") is not None and "failed" not in metrics:
        missing = metrics["requested"] - good
        if missing > 0:
            metrics["failed"] = missing
    zeros = [
        key for key, value in metrics.items() if key.endswith("_ms") and value == 0 and not key.endswith(".min_ms")
    ]
    if zeros and (good is None or good > 0):
        run.caveats.append(
            f"{len(zeros)} latencies read 0 ms and are left out: not streamed, one output token, or unfilled"
        )
    for key in zeros:
        del metrics[key]
    if good == 0:
        kept = ("completed", "failed", "requested", "duration_s", "concurrency", "request_rate")
        for key in [key for key in metrics if key not in kept]:
            del metrics[key]


def of_run(run: Run) -> Iterator[Finding]:
    """All checks of one run."""
    metrics = run.metrics
    good, bad = metrics.get("completed"), metrics.get("failed")
    if good == 0 and (bad or metrics.get("requested")):
        yield Finding(
            "all_failed", True, f"0 of {bad or metrics['requested']:g} requests completed; its zeros are no latencies"
        )
    if good is not None and bad is not None and good + bad > 0:
        yield Finding("failed_share", round(bad / (good + bad), 4), f"{bad:g} of {good + bad:g} requests failed")
    if run.rate_is_inf:
        yield Finding(
            "rate_is_inf", True, "all requests are sent at once: throughput of a full queue, no latency at a load"
        )
    if good is not None and 0 < good < FEW:
        yield Finding("few_requests", True, f"{good:g} requests: quantiles beyond the median mean little")
    if run.missing:
        words = [f"{key}: {text}" for key, text in sorted(run.missing.items())]
        yield Finding("not_a_number", words, "fields without a number are left out, not read as zero")
    yield from _shares(run)
    yield from _within(run)
    odd = list(_inconsistent(run))
    if odd:
        yield Finding("inconsistent", odd, "figures of one run that do not fit each other")


def _shares(run: Run) -> Iterator[Finding]:
    metrics = run.metrics
    ttft, e2e, itl, tpot = (metrics.get(f"{family}.mean_ms") for family in ("ttft", "e2e", "itl", "tpot"))
    if ttft and e2e:
        yield Finding(
            "ttft_share_of_e2e", round(ttft / e2e, 4), f"mean TTFT {ttft:.4g} ms ÷ mean end-to-end {e2e:.4g} ms"
        )
    if itl and tpot:
        how = f"mean ITL {itl:.4g} ms ÷ mean TPOT {tpot:.4g} ms"
        note = ("ITL pools gaps of all requests, TPOT averages per request; several tokens per chunk raise ITL",)
        yield Finding("itl_over_tpot", round(itl / tpot, 4), how, note)
    gap = metrics.get("itl.p50_ms")
    if itl and gap:
        how = f"median ITL {gap:.4g} ms ÷ mean {itl:.4g} ms"
        note = ("far below 1 when tokens arrive in bursts: several per chunk, buffering, or a few long stalls",)
        yield Finding("itl_p50_over_mean", round(gap / itl, 4), how, note)
    p50, p99 = metrics.get("ttft.p50_ms"), metrics.get("ttft.p99_ms")
    if p50 and p99:
        yield Finding("ttft_tail_ratio", round(p99 / p50, 4), f"TTFT p99 {p99:.4g} ms ÷ p50 {p50:.4g} ms")
    rate = metrics.get("requests_per_s")
    if rate and e2e and "mean_concurrency" not in metrics:
        how = f"{rate:.4g} requests/s × {e2e / 1000:.4g} s (Little's law)"
        yield Finding("mean_concurrency", round(rate * e2e / 1000.0, 4), how)
    wanted, got = metrics.get("request_rate"), metrics.get("achieved_rate")
    delay = metrics.get("schedule_delay.mean_ms")
    late = []
    if wanted and got:
        yield Finding(
            "achieved_rate_share", round(got / wanted, 4), f"sent {got:.4g} of {wanted:.4g} requests/s asked for"
        )
        if got < LATE_SHARE * wanted:
            late.append(f"only {got:.4g} of {wanted:.4g} requests/s were sent")
    if delay is not None and delay > LATE_DELAY * 1000.0:
        late.append(f"requests left {delay:.4g} ms late on average")
    if late:
        note = ("latency counts from the late send: the wait in the client is not in it",)
        yield Finding("client_late", True, "; ".join(late), note)


def _within(run: Run) -> Iterator[Finding]:
    """What per-request lists tell."""
    outputs = run.lists.get("output", [])
    if len(outputs) >= 2 and max(outputs) > 0:
        low, high = min(outputs), max(outputs)
        yield Finding(
            "output_tokens_spread", round((high - low) / high, 4), f"output lengths {low:g} to {high:g} in one run"
        )
    inputs = run.lists.get("input", [])
    if len(inputs) >= 8 and max(inputs) > 0:
        low, high = quantile(sorted(inputs), 0.05), quantile(sorted(inputs), 0.95)
        how = f"p5 to p95 of the prompt lengths of one run: {low:g} to {high:g}"
        yield Finding("input_tokens_spread", round((high - low) / high, 4), how)
    if run.retries is not None:
        yield Finding("retries", run.retries, "requests that repeat an earlier attempt of the same one")
    first = warm_share(run.lists.get("ttft", []))
    if first is not None:
        how = "first TTFT ÷ median of the others"
        yield Finding("first_request_ratio", round(first, 4), how)
        rest = quantile(sorted(run.lists["ttft"][1:]), 0.5)
        if first >= FIRST_SLOW and run.lists["ttft"][0] - rest > 0.2:
            yield Finding(
                "warmup_in_sample", True, f"the first request waited {first:.3g} times the median of the others"
            )
    starts = run.lists.get("start", [])
    wanted = run.metrics.get("request_rate")
    if len(starts) >= 10 and wanted and "achieved_rate" not in run.metrics:
        span = max(starts) - min(starts)
        if span > 0:
            got = (len(starts) - 1) / span
            yield Finding("achieved_rate_share", round(got / wanted, 4), f"sent {got:.4g} of {wanted:.4g} requests/s")


def _inconsistent(run: Run) -> Iterator[str]:
    metrics = run.metrics
    seconds = metrics.get("duration_s")
    for rate_key, count_key, words in (
        ("requests_per_s", "completed", "requests"),
        ("output_tokens_per_s", "total_output_tokens", "output tokens"),
    ):
        rate, count = metrics.get(rate_key), metrics.get(count_key)
        if seconds and rate and count and not 0.9 <= rate * seconds / count <= 1.1:
            yield f"{rate:.4g} {words}/s × {seconds:.4g} s is not {count:.6g} {words}"
    ttft, e2e = metrics.get("ttft.mean_ms"), metrics.get("e2e.mean_ms")
    if ttft and e2e and ttft > 1.02 * e2e:
        yield f"mean TTFT {ttft:.4g} ms is above the mean end-to-end {e2e:.4g} ms: units may differ"
    if e2e and seconds and e2e > 1000.0 * seconds * 1.05:
        yield f"mean end-to-end {e2e / 1000:.4g} s is longer than the run of {seconds:.4g} s: units may differ"
    for family in ("ttft", "tpot", "itl", "e2e"):
        p50, p99 = metrics.get(f"{family}.p50_ms"), metrics.get(f"{family}.p99_ms")
        if p50 and p99 and p99 < 0.98 * p50:
            yield f"{family} p99 {p99:.4g} ms is below its median {p50:.4g} ms"
    inside, outside = metrics.get("peak_concurrency"), metrics.get("concurrency")
    if inside and outside and inside < 0.9 * outside and (metrics.get("completed") or 0) >= outside:
        yield f"at most {inside:g} requests were in flight although {outside:g} were allowed"


def between(runs: list[Run]) -> Iterator[Finding]:
    """Checks over runs that somebody may compare: unequal outputs and inputs, unequal sample sizes."""
    for key, fact, words in (
        ("output_tokens", "unequal_outputs", "output"),
        ("input_tokens", "unequal_inputs", "input"),
    ):
        values = [(run.metrics[key], run.name) for run in runs if run.metrics.get(key)]
        if len(values) < 2:
            continue
        low, high = min(values), max(values)
        apart = (high[0] - low[0]) / high[0]
        how = f"mean {words} tokens a request: {low[0]:.4g} in {low[1]}, {high[0]:.4g} in {high[1]}"
        yield Finding(fact, apart > UNEQUAL, how)
