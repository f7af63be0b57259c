"""The memoised layer between readers and rules. Each function names its inputs; a missing input yields nothing."""

from __future__ import annotations

import re
from collections.abc import Callable

from tools.contract import Context, Reading
from tools.derive.base import computed, first
from tools.derive.setup import cpu_quota, replicas, shared_blocks, transports
from tools.view import Evidence, Ledger

Step = Callable[[Ledger], list[Reading]]


def sequence_cap(ledger: Ledger) -> list[Reading]:
    """The cap on concurrent sequences and how close running comes to it.

    ``--max-num-active-seqs`` takes precedence over ``--max-num-seqs`` (vLLM scheduler). Without a known cap, a gauge
    pinned flat at N with a queue and free KV means a cap of N.
    """
    out: list[Reading] = []
    names = [
        n
        for n in ("config.max_num_active_seqs", "config.max_num_seqs", "log.sglang.max_running_requests_effective")
        if ledger.num(n)
    ]
    running = ledger.num("queue.running.max")
    if names:
        source = min(names, key=lambda n: ledger.num(n) or 0.0)
        cap = ledger.num(source) or 0.0
        out.append(computed("limits.sequence_cap", cap, f"smallest of {', '.join(names)}", ledger, source))
        one = _fullest(ledger)
        if one is not None and cap > 0:
            method = f"max running {one.value:g} of one engine ÷ cap {cap:g}"
            out.append(computed("limits.running_over_cap", one.value / cap, method, ledger, one, source))
    flat, waits = ledger.num("running.flat_share"), ledger.num("queue.waiting.share_above_zero")
    if running and flat is not None and waits is not None and flat >= 0.8 and waits >= 0.5:
        method = f"running flat at {running:g} in {flat:.0%} of scrapes while requests wait in {waits:.0%}"
        out.append(
            computed(
                "limits.pinned_at",
                running,
                method,
                ledger,
                "queue.running.max",
                "running.flat_share",
                "queue.waiting.share_above_zero",
            )
        )
    return out


def _fullest(ledger: Ledger) -> Evidence | None:
    """Running of the fullest engine: what caps a batch holds for each engine, not for their sum."""
    for fact in ("replicas.running_max", "queue.running.max"):
        behind = [e for i in ledger.ids(fact) if (e := ledger.get(i)) and isinstance(e.value, int | float)]
        if behind:
            return max(behind, key=lambda e: e.value)
    return None


def _told_lengths(ledger: Ledger) -> tuple[Evidence, Evidence] | None:
    """Prompt and answer length of one kind of request; with several kinds told, those that stand in one line."""
    prompts, outputs = ([e for e in ledger.of(f"said.{x}_tokens") if e.value] for x in ("prompt", "output"))
    if len({e.value for e in prompts}) > 1 or len({e.value for e in outputs}) > 1:
        lines = {(e.source.ref, e.source.line): e for e in outputs}
        both = [(e, lines[at]) for e in prompts if (at := (e.source.ref, e.source.line)) in lines]
    else:
        both = list(zip(prompts, outputs, strict=False))
    return max(both, key=lambda pair: pair[0].value + pair[1].value, default=None)


def _lengths(ledger: Ledger) -> tuple[tuple[str | Evidence, float], tuple[str | Evidence, float]] | None:
    """Prompt and answer length of a request with where each is from; ``None`` when one is not known."""
    prompt = first(ledger, "prompt_tokens.mean", "bench.input_tokens", "said.prompt_tokens")
    output = first(ledger, "output_tokens.mean", "bench.output_tokens", "said.output_tokens")
    if not prompt or not output or not prompt[1] or not output[1]:
        return None
    if prompt[0].startswith("said.") and output[0].startswith("said."):
        told = _told_lengths(ledger)
        return ((told[0], told[0].value), (told[1], told[1].value)) if told else None
    return prompt, output


def kv_arithmetic(ledger: Ledger) -> list[Reading]:
    """Tokens one request holds and how many of them the pool can hold (prompt plus generated)."""
    out: list[Reading] = []
    pool = first(ledger, "kv.capacity_tokens", "log.kv_cache.tokens")
    if not pool or not pool[1]:
        return out
    lengths = _lengths(ledger)
    if lengths:
        prompt, output = lengths
        ends = (prompt[0], output[0])
        each = prompt[1] + output[1]
        fits = pool[1] / each
        out.append(computed("kv.tokens_per_request", each, "mean prompt + mean output", ledger, *ends))
        method = f"pool {pool[1]:,.0f} ÷ {each:,.0f} tokens a request at its end"
        out.append(computed("kv.requests_that_fit", fits, method, ledger, pool[0], *ends))
        one = _fullest(ledger)  # the pool is that of one engine
        peak = (one, one.value) if one else first(ledger, "said.concurrency", "bench.concurrency")
        if peak:
            method = f"{peak[1]:g} requests × {each:,.0f} tokens ÷ pool"
            out.append(computed("kv.demand_ratio", peak[1] * each / pool[1], method, ledger, peak[0], pool[0], *ends))
        out.append(computed("prompt.pool_share", prompt[1] / pool[1], "mean prompt ÷ pool", ledger, prompt[0], pool[0]))
        cap = ledger.num("limits.sequence_cap")
        if cap:
            method = "requests that fit ÷ sequence cap"
            out.append(computed("kv.fit_over_cap", fits / cap, method, ledger, pool[0], "limits.sequence_cap"))
    length = ledger.num("config.max_model_len")
    if length:
        method = f"pool ÷ max_model_len {length:,.0f}"
        out.append(
            computed("kv.full_length_requests", pool[1] / length, method, ledger, pool[0], "config.max_model_len")
        )
    return out


def budget(ledger: Ledger) -> list[Reading]:
    """Prompt length against the per-step token budget: how many steps a prefill takes, how much of a step it fills."""
    out: list[Reading] = []
    limit = first(ledger, "config.max_num_scheduled_tokens", "config.max_num_batched_tokens")
    if not limit or limit[1] <= 0:
        return out
    for prompt in ("prompt_tokens.mean", "prompt_tokens.p99", "bench.input_tokens", "said.prompt_tokens"):
        value = ledger.num(prompt)
        if value:
            out.append(
                computed(
                    "prefill.steps_per_prompt",
                    value / limit[1],
                    f"{prompt} {value:,.0f} ÷ token budget {limit[1]:,.0f}",
                    ledger,
                    prompt,
                    limit[0],
                )
            )
    out.append(computed("limits.token_budget", limit[1], limit[0], ledger, limit[0]))
    step = ledger.num("iteration.tokens.mean")
    if step:
        out.append(
            computed(
                "iteration.budget_share",
                step / limit[1],
                "mean tokens of a step with output ÷ budget",
                ledger,
                "iteration.tokens.mean",
                limit[0],
            )
        )
    return out


def phase_mix(ledger: Ledger) -> list[Reading]:
    """How prefill-heavy the load is: computed prompt tokens per generated token, and prompt work per second."""
    out: list[Reading] = []
    prompt, made = ledger.num("throughput.prompt_tokens.count"), ledger.num("throughput.generation_tokens.count")
    cached = ledger.num("prompt.cached_share") or 0.0
    if prompt is not None and made:
        out.append(
            computed(
                "work.prompt_per_generated",
                prompt * (1 - cached) / made,
                "computed prompt tokens ÷ generated tokens",
                ledger,
                "throughput.prompt_tokens.count",
                "throughput.generation_tokens.count",
            )
        )
    itl, p99 = ledger.num("itl.p50_s"), ledger.num("itl.p99_s")
    if itl and p99:
        out.append(
            computed(
                "itl.p99_over_p50",
                p99 / itl,
                "p99 ÷ median of the gap between outputs",
                ledger,
                "itl.p99_s",
                "itl.p50_s",
            )
        )
    low, high = ledger.num("ttft.p50_s"), ledger.num("ttft.p99_s")
    if low and high:
        out.append(
            computed("ttft.p99_over_p50", high / low, "p99 ÷ median of TTFT", ledger, "ttft.p99_s", "ttft.p50_s")
        )
    asked, got = ledger.num("max_tokens_param.mean"), ledger.num("output_tokens.mean")
    if asked and got:
        out.append(
            computed(
                "output.length_over_asked",
                got / asked,
                "mean output ÷ mean requested max_tokens",
                ledger,
                "output_tokens.mean",
                "max_tokens_param.mean",
            )
        )
    return out


def graphs(ledger: Ledger) -> list[Reading]:
    """Batch width that graphs must cover (sequences × (1 + draft tokens)) against the largest captured size."""
    captured = first(ledger, "log.cudagraph_truncated_to", "config.cudagraph.capture_max")
    limits: tuple[str, ...] = ("limits.sequence_cap", "config.max_num_seqs")
    drafts = ledger.num("config.spec.num_tokens") or 0.0
    inputs: tuple[str, ...] = ("config.spec.num_tokens",)
    if not captured:
        # SGLang captures batch sizes, each with its drafts in it, and caps sequences far above what it captures:
        # only a width that was seen says anything.
        captured, drafts, inputs = first(ledger, "log.sglang.cuda_graph_max_bs"), 0.0, ()
        limits = ("queue.running.p50", "queue.running.mean")
    one = _fullest(ledger)
    seqs = first(ledger, "said.concurrency") or (one and (one, one.value)) or first(ledger, *limits)
    if not captured or not captured[1] or not seqs:
        return []
    cap = ledger.num("limits.sequence_cap")
    if cap and cap < seqs[1]:
        seqs = ("limits.sequence_cap", cap)  # more clients than the cap lets in do not widen a batch
    width = seqs[1] * (1 + drafts)
    method = f"{seqs[1]:g} sequences × {1 + drafts:g} tokens ÷ captured {captured[1]:g}"
    return [
        computed("cudagraph.width_over_capture", width / captured[1], method, ledger, captured[0], seqs[0], *inputs)
    ]


def platform(ledger: Ledger) -> list[Reading]:
    """Whether the engine runs on CPUs, where GPU-only readings (graphs, NCCL) mean nothing."""
    device = ledger.value("config.device")
    if device is None:
        return []
    return [
        computed("engine.on_cpu", str(device).lower().startswith("cpu"), f"device {device}", ledger, "config.device")
    ]


def _whole_run(ledger: Ledger, fact: str) -> Evidence | None:
    """The reading of the one whole run; parts of a run (streams) and several runs have no server mean of their own."""
    whole = [e for e in ledger.of(fact) if "stream" not in e.labels and isinstance(e.value, int | float)]
    return whole[0] if len({e.value for e in whole}) == 1 else None


def _file(item: Evidence) -> str:
    return item.source.ref.partition("#")[0] or item.id


def client_against_server(ledger: Ledger) -> list[Reading]:
    """Client TTFT and ITL against the server's own of the same run: what lies between them is outside the engine."""
    out: list[Reading] = []
    for name, theirs, ours in (
        ("ttft.over_server", "bench.ttft.mean_ms", "ttft.mean_s"),
        ("itl.over_server", "bench.itl.mean_ms", "itl.mean_s"),
        ("itl.p50_over_server", "bench.itl.p50_ms", "itl.p50_s"),
    ):
        client, server = _whole_run(ledger, theirs), ledger.num(ours)
        if (
            client is None
            or not server
            or _file(client) in {_file(e) for i in ledger.ids(ours) if (e := ledger.get(i))}
        ):
            continue  # one table that two readers read is no second measurement
        seconds = client.value / 1000
        method = f"client {seconds * 1000:.0f} ms, server {server * 1000:.0f} ms"
        out.append(computed(f"client.{name}", seconds / server, method, ledger, client, ours))
        if "p50" not in name:
            extra = name.replace("over_server", "extra_s")
            out.append(computed(f"client.{extra}", seconds - server, method, ledger, client, ours))
    return out


_FAILURES = (
    ("bench.timed_out", re.compile(r"timed?[-_ ]?out|deadline", re.I)),
    ("bench.refused", re.compile(r"refused|cannot connect|connect call failed|connection reset by peer", re.I)),
)


def client_failures(ledger: Ledger) -> list[Reading]:
    """Failed client requests by kind, from the counts before the client's own error lines (``70x text``)."""
    out: list[Reading] = []
    if ledger.num("bench.failed") == 0:
        return [computed(fact, 0, "no failed request", ledger, "bench.failed") for fact, _ in _FAILURES]
    for item in ledger.of("bench.errors"):
        lines = item.value if isinstance(item.value, list) else [item.value]
        for fact, pattern in _FAILURES:
            count = 0
            for line in map(str, lines):
                found = re.match(r"(\d+)x ", line)
                count += int(found[1]) if found and pattern.search(line) else int(bool(pattern.search(line)))
            out.append(computed(fact, count, "client errors of this kind", ledger, "bench.errors"))
        break
    return out


STEPS: tuple[Step, ...] = (
    client_against_server,
    client_failures,
    platform,
    sequence_cap,
    kv_arithmetic,
    budget,
    phase_mix,
    graphs,
    replicas,
    cpu_quota,
    transports,
    shared_blocks,
)


def slo(ledger: Ledger, context: Context) -> list[Reading]:
    """Each SLO of the caller against the measured fact: ``slo.breached`` names it, ``slo.ratio`` says by how much."""
    out: list[Reading] = []
    for name, limit in sorted(context.slo.items()):
        fact = slo_fact(name)
        value = ledger.num(fact)
        if value is None or limit <= 0:
            continue
        method = f"{fact} {value:g} ÷ limit {limit:g}"
        out.append(computed("slo.ratio", value / limit, method, ledger, fact))
        out.append(computed("slo.breached", value > limit, method, ledger, fact))
    return out


def slo_fact(name: str) -> str:
    """``ttft_p99`` → ``ttft.p99_s``; a full fact name is kept."""
    if "." in name:
        return name
    base, _, stat = name.rpartition("_")
    return f"{base}.{stat}_s" if base in ("ttft", "tpot", "itl", "e2e", "queue_time") else name.replace("_", ".")


_COMPARED = {
    "ttft": ("ttft.mean_s", "bench.ttft.mean_ms"),
    "tpot": ("itl.mean_s", "tpot.mean_s", "bench.tpot.mean_ms"),
    "e2e": ("e2e.mean_s", "bench.e2e.mean_ms"),
    "throughput": ("throughput.generation_tokens_per_s.mean", "bench.output_tokens_per_s"),
    "queue": ("queue_time.mean_s",),
    "prefill": ("prefill_time.mean_s",),
    "hit_rate": ("prefix.hit_rate",),
    "kv_capacity": ("kv.capacity_tokens", "log.kv_cache.tokens"),
    "acceptance": ("spec.acceptance_rate",),
    "prompt_tokens": ("prompt_tokens.mean",),
    "output_tokens": ("output_tokens.mean",),
    "running": ("queue.running.mean",),
}


def against_baseline(ledger: Ledger, baseline: Ledger) -> list[Reading]:
    """Ratios of the core quantities, now ÷ baseline, as an observation pair (difference=baseline)."""
    out: list[Reading] = []
    for metric, facts in _COMPARED.items():
        for fact in facts:
            now, then = ledger.num(fact), baseline.num(fact)
            if now is not None and then:
                reading = computed(
                    f"pair.{metric}.ratio", now / then, f"{fact}: {now:g} now ÷ {then:g} in the baseline", ledger, fact
                )
                out.append(_labelled(reading, difference="baseline"))
                break
    return out


def _labelled(reading: Reading, **labels: str) -> Reading:
    from msgspec import structs

    return structs.replace(reading, labels={**reading.labels, **labels})


def derive(ledger: Ledger, context: Context) -> None:
    """Run all steps once and append what they give."""
    for step in STEPS:
        ledger.extend(step(ledger))
    ledger.extend(slo(ledger, context))
