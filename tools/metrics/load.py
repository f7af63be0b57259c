"""Load and scheduler state: gauges over the scrapes with work, arrivals, counters, frozen engines, replicas."""

from __future__ import annotations

import itertools

from tools.metrics.maker import Maker, mean_of, pairs, ref_of
from tools.metrics.series import PLACES, Ref, median, pool_tokens
from tools.replicas import compared, waiting_beside_free


def gauges(m: Maker) -> None:
    run, wait, kv = (m.series.pooled(key) for key in ("running", "waiting", "kv_usage"))
    waits = dict(wait)
    live = _active(run, waits)
    note = f"{len(live)} scrapes with work of {m.n}"
    if run:
        ref, values = ref_of(m.series, "running"), [v for _, v in live]
        _stats(m, "queue.running", values, run[-1][1], note, ref)
        top = max(values)
        if top > 0 and len(values) >= 3:
            flat = sum(v >= top for v in values) / len(values)
            m.put("running.flat_share", flat, f"share of {note} with running equal to its maximum {top:g}", ref)
            m.put("running.spread", (top - min(values)) / top, f"(max − min)/max of running, {note}", ref)
        if len(values) >= 4:
            third = max(1, len(values) // 3)
            rise = mean_of(values[-third:]) - mean_of(values[:third])
            m.put("queue.running.growth", rise, "mean of last third minus first third of running", ref)
            m.put("queue.running.growth_ratio", rise / top if top else 0.0, "growth of running ÷ its maximum", ref)
        m.put(
            "load.present",
            top > 0 or any(v > 0 for v in waits.values()),
            f"running or waiting above 0 in {m.n} scrapes",
            ref,
        )
    if wait:
        ref, window = ref_of(m.series, "waiting"), {t for t, _ in live}
        values = [v for t, v in wait if t in window] or [v for _, v in wait]
        _stats(m, "queue.waiting", values, wait[-1][1], note, ref)
        m.put(
            "queue.waiting.share_above_zero",
            sum(v > 0 for v in values) / len(values),
            f"share of {note} with waiting > 0",
            ref,
        )
        if len(values) >= 4:
            third = max(1, len(values) // 3)
            m.put(
                "queue.waiting.growth",
                mean_of(values[-third:]) - mean_of(values[:third]),
                "mean of last third minus first third of waiting",
                ref,
            )
            peak = values.index(max(values))
            drained = max(values) > 0 and peak < len(values) - 1 and values[-1] <= 0.25 * max(values)
            m.put("queue.waiting.drained", drained, "waiting rose and fell to a quarter of its peak or less", ref)
    for reason, fact in (("capacity", "queue.waiting.capacity.max"), ("deferred", "queue.deferred.max")):
        points = m.series.pooled("waiting_reason", reason=reason)
        if points:
            m.put(
                fact,
                max(v for _, v in points),
                f"max over {m.n} scrapes, reason={reason}",
                ref_of(m.series, "waiting_reason"),
            )
    deferred = m.series.pooled("waiting_reason", reason="deferred") or m.series.pooled("deferred")
    if deferred:
        m.put(
            "queue.deferred.share_above_zero",
            sum(v > 0 for _, v in deferred) / len(deferred),
            f"share of {m.n} scrapes with deferred > 0",
            ref_of(m.series, "waiting_reason") or ref_of(m.series, "deferred"),
        )
        if m.series.all("deferred"):
            m.put(
                "queue.deferred.max",
                max(v for _, v in deferred),
                f"max over {m.n} scrapes",
                ref_of(m.series, "deferred"),
            )
    if kv:
        ref, window = ref_of(m.series, "kv_usage"), {t for t, _ in live}
        values = [v for t, v in kv if t in window] or [v for _, v in kv]
        values = [v / 100 if max(values) > 1.5 else v for v in values]
        _stats(m, "kv.usage", values, values[-1], note, ref)
        m.put(
            "kv.usage.share_above_90",
            sum(v >= 0.9 for v in values) / len(values),
            f"share of {note} with usage ≥ 0.9",
            ref,
        )
        starved = [
            k for k, (t, v) in zip(values, [p for p in kv if p[0] in window] or kv, strict=False) if waits.get(t, 0) > 0
        ]
        if starved:
            m.put("kv.usage.while_waiting.max", max(starved), "max usage over scrapes with waiting > 0", ref)
            m.put("kv.usage.while_waiting.p50", median(starved), "median usage over scrapes with waiting > 0", ref)


def _active(running: list[tuple[float, float]], waiting: dict[float, float]) -> list[tuple[float, float]]:
    """Scrapes between the first and the last with work; all of them when there was never any."""
    busy = [i for i, (t, v) in enumerate(running) if v > 0 or waiting.get(t, 0) > 0]
    return running[busy[0] : busy[-1] + 1] if busy else running


def _stats(m: Maker, base: str, values: list[float], last: float, note: str, ref: Ref | None) -> None:
    m.put(f"{base}.last", last, "last scrape", ref)
    m.put(f"{base}.max", max(values), f"max of {note}", ref)
    if len(values) >= 2:
        m.put(f"{base}.min", min(values), f"min of {note}", ref)
        m.put(f"{base}.p50", median(values), f"median of {note}", ref)
        m.put(f"{base}.mean", mean_of(values), f"mean of {note}", ref)


def arrivals(m: Maker) -> None:
    """Arrivals are not exported: in one interval they are growth of (running + waiting) plus what left.

    Requests that a client gave up leave without being counted, so this is a lower bound.
    """
    if m.span_s is None or m.n < 3:
        return
    done = dict.fromkeys(m.series.times, 0.0)
    for t, v in m.series.steps("success"):
        done[t] = done.get(t, 0.0) + v
    held = dict(m.series.pooled("running"))
    for t, v in m.series.pooled("waiting"):
        held[t] = held.get(t, 0.0) + v
    times = sorted(held)
    rows: list[tuple[float, float, float]] = []
    for before, now in itertools.pairwise(times):
        came = max(0.0, held[now] - held[before] + done.get(now, 0.0))
        rows.append((now - before, came, done.get(now, 0.0)))
    total = sum(came for _, came, _ in rows)
    if total <= 0:
        return
    ref = ref_of(m.series, "running")
    rates = [(came / dt, dt) for dt, came, _ in rows if dt > 0]
    mean = total / m.span_s
    m.put("arrivals.per_s.mean", mean, f"(Δ in system + finished)/time {m.over()}; abandoned requests not counted", ref)
    peak = max(rate for rate, _ in rates)
    m.put("arrivals.per_s.max", peak, "busiest interval between two scrapes", ref)
    m.put("arrivals.burst_ratio", peak / mean, "busiest interval ÷ mean", ref)
    top, seconds, came_top = sorted(rates, reverse=True), 0.0, 0.0
    for rate, dt in top:
        if seconds + dt > 0.3 * m.span_s:
            break
        seconds, came_top = seconds + dt, came_top + rate * dt
    if seconds:
        m.put(
            "arrivals.peak_share",
            came_top / total,
            f"share of arrivals within the busiest {seconds:.0f} s of {m.span_s:.0f} s",
            ref,
        )
    served = [gone / dt for dt, _, gone in rows if dt > 0]
    if len(served) >= 3:
        m.put("service.per_s.max", max(served), "most finished per second in one interval", ref)


def batch_gain(m: Maker) -> None:
    """What more running requests bring: relative gain of tokens/s over relative growth of running; 1 linear, 0 none.

    Only where running itself varied at least twofold between intervals; tells a full device from a cap.
    """
    if not m.span_s:
        return
    run = dict(m.series.pooled("running"))
    rows: list[tuple[float, float]] = []
    for (before, _), (now, made) in pairs(m.series.steps("generation_tokens"), m.series.times):
        level = (run.get(before, 0.0) + run.get(now, 0.0)) / 2
        if now > before and level >= 1 and min(run.get(before, 0.0), run.get(now, 0.0)) > 0:
            rows.append((level, made / (now - before)))
    rows.sort()
    third = len(rows) // 3
    if third < 1:
        return
    low = (mean_of([a for a, _ in rows[:third]]), mean_of([b for _, b in rows[:third]]))
    high = (mean_of([a for a, _ in rows[-third:]]), mean_of([b for _, b in rows[-third:]]))
    if low[0] <= 0 or low[1] <= 0 or high[0] < 1.8 * low[0]:
        return
    gain = (high[1] / low[1] - 1) / (high[0] / low[0] - 1)
    method = f"running {low[0]:.1f} → {high[0]:.1f}, tokens/s {low[1]:.0f} → {high[1]:.0f} between intervals"
    m.put("throughput.batch_gain", gain, method, ref_of(m.series, "generation_tokens"))


def counters(m: Maker) -> None:
    resets = 0
    for key, fact in (
        ("preemptions", "preemptions.count"),
        ("prompt_tokens", "throughput.prompt_tokens"),
        ("generation_tokens", "throughput.generation_tokens"),
        ("success", "requests.finished.count"),
        ("aborted", "requests.aborted.count"),
        ("rejections", "admission.rejected.count"),
        ("nixl_failed", "kv_transfer.failed.count"),
        ("nixl_expired", "kv_transfer.expired.count"),
    ):
        found = m.series.delta(key)
        if found is None:
            continue
        grown, again, (_, last) = found
        resets = max(resets, again)
        name = f"{fact}.count" if fact.startswith("throughput") else fact
        m.put(name, grown, f"increase {m.over()}", last)
        if m.span_s:
            if key in ("prompt_tokens", "generation_tokens"):
                m.put(f"{fact}_per_s.mean", grown / m.span_s, f"rate {m.over()}", last)
            elif key == "preemptions":
                m.put("preemptions.per_s", grown / m.span_s, f"rate {m.over()}", last)
            elif key == "success":
                m.put("throughput.requests_per_s.mean", grown / m.span_s, f"rate {m.over()}", last)
    rates = (
        [v / (t - p) for (p, _), (t, v) in pairs(m.series.steps("generation_tokens"), m.series.times) if t > p]
        if m.span_s
        else []
    )
    if len(rates) >= 3:
        ref = ref_of(m.series, "generation_tokens")
        m.put("throughput.generation_tokens_per_s.max", max(rates), "best interval between two scrapes", ref)
        m.put("throughput.generation_tokens_per_s.min", min(rates), "worst interval between two scrapes", ref)
    done = m.series.delta("success")
    preempted = m.series.delta("preemptions")
    if done and preempted and done[0] >= 1:
        m.put("preemptions.per_request", preempted[0] / done[0], "preemptions ÷ finished requests", preempted[2][1])
    for reason in m.series.values_of("success", "finished_reason"):
        part = m.series.delta("success", finished_reason=reason)
        if part and done and done[0] >= 1:
            m.put(
                f"requests.finished.{reason}_share",
                part[0] / done[0],
                f"finished_reason={reason} ÷ all finished",
                part[2][1],
            )
    if done is None and m.n == 1:
        for key, fact in (("preemptions", "preemptions.since_start"), ("success", "requests.finished.since_start")):
            tracks = m.series.all(key)
            if tracks:
                m.put(
                    fact,
                    sum(t.values[-1] for t in tracks),
                    "total since the process started; no rate from one scrape",
                    tracks[0].refs[-1],
                )
    restarted = len({v for _, v in m.series.pooled("start_time")}) > 1
    if m.n > 1:
        m.put(
            "engine.restarts",
            max(resets, int(restarted)),
            "counter resets or changed start time",
            ref_of(m.series, "start_time"),
        )


def _pools(m: Maker) -> list[float]:
    """KV pool of each engine in tokens, from the exposed size or from blocks × block size."""
    sizes: dict[str, float] = {t.who(): t.values[-1] for t in m.series.all("kv_tokens_max")}
    for track in m.series.all("cache_config"):
        sizes.setdefault(track.who(), pool_tokens(track.labels))
    return [size for size in sizes.values() if size > 0]


def health(m: Maker) -> None:
    """A frozen engine answers scrapes and looks calm: running above 0 while the token counter stands still."""
    gen = m.series.steps("generation_tokens")
    run = dict(m.series.pooled("running"))
    frozen = longest = 0.0
    for (before, _), (now, grown) in pairs(gen, m.series.times):
        stuck = grown == 0 and run.get(now, 0) > 0 and run.get(before, 0) > 0
        frozen = frozen + (now - before) if stuck else 0.0
        longest = max(longest, frozen)
    if gen and m.span_s:
        m.put(
            "engine.frozen_s",
            longest,
            "longest stretch with running > 0 and no generated token",
            ref_of(m.series, "generation_tokens"),
        )
    engines: dict[str, dict[str, float]] = {}
    for key in ("running", "waiting", "kv_usage"):
        tracks = m.series.all(key)
        if len({t.who() for t in tracks}) > 1:
            for track in tracks:
                engines.setdefault(track.who(), {})[key] = mean_of(track.values)
    if len(engines) > 1:
        running, queues, usage = (
            {who: row[key] for who, row in engines.items() if key in row} for key in ("running", "waiting", "kv_usage")
        )
        ref = ref_of(m.series, "running")
        m.put("replicas.count", len(engines), "distinct engine, instance or replica labels", ref)
        homes = {tuple((k, v) for k, v in t.labels.items() if k in PLACES) for t in m.series.all("running")}
        m.put("replicas.are_ranks", len(homes) == 1, "told apart by the engine label alone, or by their address", ref)
        tops = [max(t.values) for t in m.series.all("running")]
        if len(tops) > 1:
            m.put("replicas.running_max", max(tops), f"highest running of one of {len(tops)} engines", ref)
        models = {t.labels.get("model_name", "") for t in m.series.all("running")}
        pools = _pools(m)
        if len(pools) > 1 and len(models) == 1:
            m.put("replicas.pool_max_over_min", max(pools) / min(pools), "largest ÷ smallest KV pool in tokens", ref)
        for fact, value, how in compared(running, queues, usage):
            m.put(fact, value, how, ref)
        # An engine of another model has no room for these requests.
        if len(models) == 1 and len(usage) > 1 and len(queues) > 1:
            m.put("replicas.waiting_beside_free", *waiting_beside_free(queues, usage), ref)
    for state in ("weights_offloaded", "discard_all"):
        if any(v > 0 for _, v in m.series.pooled("sleep_state", sleep_state=state)):
            m.put("engine.sleeping", True, f"sleep_state={state}", ref_of(m.series, "sleep_state"))
