"""Caches, latencies, sizes, speculation, efficiency and front-end: what histograms and ratios of counters tell."""

from __future__ import annotations

from tools.metrics.maker import Maker, ref_of
from tools.metrics.series import Window

# Looked-up tokens from which never a hit says something: a few prompts of usual length, beyond a first request.
MANY_QUERIES = 4000.0


def _total(m: Maker, key: str) -> float:
    return sum(t.values[-1] for t in m.series.all(key))


def _queries(m: Maker) -> str:
    """The counter of tokens looked up; SGLang has none of its own and looks up every prompt token."""
    return "prefix_queries" if m.series.all("prefix_queries") else "prompt_tokens"


def _never_hit(m: Maker) -> bool:
    """A counter at zero since start is a rate of zero in any window; one request alone has nothing to hit."""
    if not m.series.all("prefix_hits") or _total(m, "prefix_hits") > 0:
        return False
    several = not m.series.all("success") or _total(m, "success") > 1
    return several and _total(m, _queries(m)) >= MANY_QUERIES


def prefix(m: Maker) -> None:
    queries, hits = m.series.delta("prefix_queries"), m.series.delta("prefix_hits")
    if queries is None and hits is not None:
        queries = m.series.delta("prompt_tokens")
    if queries and hits and queries[0] > 0:
        m.put("prefix.hit_rate", min(1.0, hits[0] / queries[0]), f"Δhits ÷ Δqueries in tokens {m.over()}", hits[2][1])
        m.put("prefix.queries_tokens", queries[0], f"increase {m.over()}", queries[2][1])
        hs, qs = dict(m.series.steps("prefix_hits")), m.series.steps("prefix_queries")
        if len(qs) >= 4:
            half = len(qs) // 2
            rates = []
            for chunk in (qs[:half], qs[half:]):
                total = sum(v for _, v in chunk)
                rates.append(sum(hs.get(t, 0.0) for t, _ in chunk) / total if total > 0 else None)
            if rates[0] is not None and rates[1] is not None:
                m.put(
                    "prefix.hit_rate.change",
                    rates[1] - rates[0],
                    "hit rate of the second half minus the first half",
                    hits[2][1],
                )
    elif m.n == 1 and _never_hit(m):
        how = "the hits counter is still 0 since the process started"
        m.put("prefix.hit_rate", 0.0, how, ref_of(m.series, "prefix_hits"))
        m.put("prefix.queries_tokens", _total(m, _queries(m)), "since start", ref_of(m.series, _queries(m)))
    elif m.series.all("hit_rate_gauge"):
        value = m.series.pooled("hit_rate_gauge")[-1][1]
        m.put("prefix.hit_rate.gauge", value, "engine's own ratio, window unknown", ref_of(m.series, "hit_rate_gauge"))
    ext_q, ext_h = m.series.delta("external_queries"), m.series.delta("external_hits")
    if ext_q and ext_h and ext_q[0] > 0:
        m.put("prefix.external_hit_rate", ext_h[0] / ext_q[0], f"external Δhits ÷ Δqueries {m.over()}", ext_h[2][1])
    cached = m.series.delta("prompt_tokens_source", source="local_cache_hit")
    prompt = m.series.delta("prompt_tokens")
    if cached and prompt and prompt[0] > 0:
        m.put(
            "prompt.cached_share",
            cached[0] / prompt[0],
            "prompt tokens from the local cache ÷ all prompt tokens",
            cached[2][1],
        )
    for key, fact in (
        ("kv_lifetime", "kv.block_lifetime.mean_s"),
        ("kv_idle_evict", "kv.block_idle_before_evict.mean_s"),
        ("kv_reuse_gap", "kv.block_reuse_gap.mean_s"),
    ):
        window = m.series.window(key)
        if window and window.count > 0:
            m.put(fact, window.mean(), f"Δsum ÷ Δcount {m.over()}, sampled blocks", window.refs[1])


_LATENCY = ("ttft", "itl", "tpot", "e2e", "queue_time", "prefill_time", "decode_time")
_AT_FINISH = ("tpot", "e2e", "queue_time", "prefill_time", "decode_time")


def _windowed(m: Maker, key: str) -> tuple[Window | None, tuple[str, ...], str]:
    window = m.series.window(key)
    if window is not None and window.count > 0:
        return window, (), m.over()
    if m.n == 1:
        alone = m.series.window(key, since_start=True)
        return alone, ("since the process started: one scrape has no window",), "since start, one scrape"
    return None, (), ""


def latencies(m: Maker) -> None:
    for key in _LATENCY:
        window, caveats, over = _windowed(m, key)
        if window is None or window.count <= 0:
            continue
        if key in _AT_FINISH:
            caveats += ("recorded when a request finishes: lags behind an incident",)
        suffix = "" if m.n > 1 else ".since_start"
        m.put(
            f"{key}.mean_s{suffix}",
            window.mean(),
            f"Δsum ÷ Δcount of {window.count:.0f} observations {over}",
            window.refs[1],
            caveats=caveats,
        )
        if m.n > 1:
            m.put(f"{key}.count", window.count, f"observations {over}", window.refs[1])
            for q, name in ((0.5, "p50_s"), (0.99, "p99_s")):
                found = window.quantile(q)
                if found:
                    few = (
                        ("fewer than 100 observations: a p99 is the worst one or two",)
                        if q == 0.99 and window.count < 100
                        else ()
                    )
                    m.put(
                        f"{key}.{name}",
                        found[0],
                        f"{found[1]}, {window.count:.0f} observations {over}",
                        window.refs[1],
                        caveats=caveats + found[2] + few,
                    )
    ttft, done = m.series.window("ttft"), m.series.delta("success")
    run = m.series.pooled("running")
    if ttft and done and run and ttft.count > 0 and m.n > 1:
        still = run[-1][1] - run[0][1]
        lost = max(0.0, ttft.count - done[0] - max(0.0, still))
        m.put("requests.started.count", ttft.count, f"first tokens {m.over()}", ttft.refs[1])
        m.put(
            "requests.abandoned.count",
            lost,
            "first tokens − finished − growth of running: given up by the client, counted nowhere else",
            ttft.refs[1],
        )
        m.put("requests.abandoned_share", lost / ttft.count, "abandoned ÷ first tokens", ttft.refs[1])
    prompt, whole = m.series.delta("prompt_tokens"), m.series.window("prompt_len")
    if prompt and whole and whole.count > 0 and prompt[0] > 0:
        m.put(
            "prompt.unfinished_share",
            max(0.0, 1 - whole.total / prompt[0]),
            "prompt tokens prefilled − those of finished requests, ÷ prefilled",
            prompt[2][1],
        )


def shares(m: Maker) -> None:
    """Attribution by means of one window; never differences of quantiles."""
    means: dict[str, float] = {}
    ref = None
    for key in ("ttft", "queue_time", "prefill_time", "decode_time", "itl"):
        window = m.series.window(key)
        if window and window.count > 0:
            means[key] = window.total / window.count
            ref = ref or window.refs[1]
    if "ttft" in means and means["ttft"] > 0 and "queue_time" in means:
        queue, prefill = means["queue_time"], means.get("prefill_time", 0.0)
        note = "means of the same window; queue and prefill are finish-time series"
        m.put("ttft.queue_share", min(1.0, queue / means["ttft"]), f"mean queue ÷ mean TTFT; {note}", ref)
        if "prefill_time" in means:
            m.put("ttft.prefill_share", min(1.0, prefill / means["ttft"]), f"mean prefill ÷ mean TTFT; {note}", ref)
            front = means["ttft"] - queue - prefill
            m.put("frontend_time.mean_s", front, f"mean TTFT − queue − prefill; {note}", ref)
            m.put("ttft.frontend_share", max(0.0, front) / means["ttft"], f"front-end ÷ mean TTFT; {note}", ref)


def sizes(m: Maker) -> None:
    for key, fact in (
        ("prompt_len", "prompt_tokens"),
        ("output_len", "output_tokens"),
        ("max_tokens", "max_tokens_param"),
        ("computed_len", "prefill_computed_tokens"),
    ):
        window, caveats, over = _windowed(m, key)
        if window is None or window.count <= 0:
            continue
        m.put(
            f"{fact}.mean",
            window.mean(),
            f"Δsum ÷ Δcount of {window.count:.0f} finished requests {over}",
            window.refs[1],
            caveats=caveats,
        )
        if m.n > 1:
            for q, name in ((0.5, "p50"), (0.99, "p99")):
                found = window.quantile(q)
                if found:
                    m.put(f"{fact}.{name}", found[0], f"{found[1]} {over}", window.refs[1], caveats=found[2])
    steps = m.series.window("iteration")
    if steps and steps.count > 0:
        m.put(
            "iteration.tokens.mean",
            steps.mean(),
            f"Δsum ÷ Δcount of {steps.count:.0f} steps with output {m.over()}",
            steps.refs[1],
        )
        if m.span_s:
            m.put("iteration.steps_per_s", steps.count / m.span_s, f"steps with output {m.over()}", steps.refs[1])
        made = m.series.delta("generation_tokens")
        if made and made[0] > 0:
            m.put("decode.batch.mean", made[0] / steps.count, "generated tokens ÷ steps with output", steps.refs[1])
    again = m.series.window("req_preemptions")
    if again and again.count > 0:
        m.put("preemptions.per_finished_request", again.mean(), f"Δsum ÷ Δcount {m.over()}", again.refs[1])


def spec(m: Maker) -> None:
    drafts, tokens, accepted = (m.series.delta(k) for k in ("spec_drafts", "spec_draft_tokens", "spec_accepted"))
    if tokens and accepted and tokens[0] > 0:
        m.put("spec.acceptance_rate", accepted[0] / tokens[0], f"Δaccepted ÷ Δdrafted {m.over()}", accepted[2][1])
        m.put("spec.drafted_tokens", tokens[0], f"increase {m.over()}", tokens[2][1])
        if drafts and drafts[0] > 0:
            m.put(
                "spec.acceptance_length",
                1 + accepted[0] / drafts[0],
                "1 + accepted ÷ drafts (bonus token included)",
                accepted[2][1],
            )
            m.put("spec.draft_tokens_per_step", tokens[0] / drafts[0], "drafted ÷ drafts", tokens[2][1])
            rates = []
            for position in sorted(
                m.series.values_of("spec_accepted_pos", "position"), key=lambda p: int(p) if p.isdigit() else 0
            ):
                part = m.series.delta("spec_accepted_pos", position=position)
                rates.append(round(part[0] / drafts[0], 4) if part else 0.0)
            if rates:
                m.put("spec.acceptance_by_position", rates, "accepted at position ÷ drafts", drafts[2][1])
    elif m.series.all("spec_accept_length_gauge"):
        m.put(
            "spec.acceptance_length",
            m.series.pooled("spec_accept_length_gauge")[-1][1],
            "engine's own gauge, bonus token included",
            ref_of(m.series, "spec_accept_length_gauge"),
        )


def mfu(m: Maker) -> None:
    flops, read, wrote = (m.series.delta(k) for k in ("flops", "read_bytes", "write_bytes"))
    if flops is None:
        return
    on = flops[0] > 0
    busy = m.series.delta("generation_tokens")
    if on or (busy and busy[0] > 0):
        m.put(
            "mfu.counters_moving",
            on,
            "estimated_flops counter moved while tokens were generated; 0 means the flag is off",
            flops[2][1],
        )
    if on and m.span_s:
        idle = ("divided by wall time, idle time included",)
        m.put("mfu.tflops_per_gpu", flops[0] / m.span_s / 1e12, f"rate {m.over()}", flops[2][1], caveats=idle)
        if read and wrote:
            m.put(
                "mbu.gb_per_s_per_gpu",
                (read[0] + wrote[0]) / m.span_s / 1e9,
                f"(read + written) rate {m.over()}",
                read[2][1],
                caveats=idle,
            )


def http(m: Maker) -> None:
    classes = {"2": 0.0, "4": 0.0, "5": 0.0}
    last = None
    for status in m.series.values_of("http", "status"):
        part = m.series.delta("http", status=status)
        if part and status[:1] in classes:
            classes[status[:1]] += part[0]
            last = part[2][1]
    if last is None:
        return
    for digit, value in classes.items():
        m.put(f"http.{digit}xx.count", value, f"increase {m.over()}", last)
    total = sum(classes.values())
    if total > 0:
        m.put("http.4xx.share", classes["4"] / total, "4xx ÷ all answered requests", last)
        m.put("http.5xx.share", classes["5"] / total, "5xx ÷ all answered requests", last)


def front(m: Maker) -> None:
    cpu = m.series.delta("front_cpu")
    if cpu and m.span_s:
        m.put(
            "frontend.cpu_cores",
            cpu[0] / m.span_s,
            f"rate of process_cpu_seconds_total {m.over()} (API server process only)",
            cpu[2][1],
        )
    rss = m.series.pooled("front_rss")
    if len(rss) >= 2 and rss[0][1] > 0:
        m.put(
            "frontend.rss_growth_ratio",
            rss[-1][1] / rss[0][1],
            f"last ÷ first RSS of the API server {m.over()}",
            ref_of(m.series, "front_rss"),
        )
