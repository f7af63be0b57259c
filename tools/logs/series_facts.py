"""What a series of statistics lines says: the facts shared with the live metrics reader, and the shape of the series."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from knowledge.versions import holds
from tools.contract import Reading, Source
from tools.logs.dist import Dist
from tools.logs.series import KV_FULL, KV_HIGH, KV_LOW, EngineSeries

HIT_CAVEAT = "vLLM prints the hit rate over its last 1000 requests, not over this interval"
PROMPT_CAVEAT = (
    "prompt tokens are credited when a prefill ends: a long chunked prefill reads 0 and then a spike; "
    "since 0.16 only locally computed tokens count, before that cached ones too"
)
SGLANG_HIT_CAVEAT = "cached / (cached + new) tokens over the prefill batches that were printed"
STALL_SHARE = 0.05
BURST_FACTOR = 4.0
BURST_FLOOR = 200.0
FLAT = 0.97


class SeriesFacts:
    """Readings of one engine's series; ``origin`` is the file's first time stamp."""

    def __init__(self, series: EngineSeries, ref: str, origin: float | None) -> None:
        self.s = series
        self._first = Source(kind="file", ref=ref, line=series.first_line)
        self._last = Source(kind="file", ref=ref, line=series.last_line)
        self._window: tuple[float, float] | None = None
        if series.first_time is not None and series.last_time is not None:
            base = origin if origin is not None else series.first_time
            self._window = (series.first_time - base, series.last_time - base)
        self._pool = series.busy if series.n_busy else series.all
        kind = "busy samples" if series.n_busy else "samples, all idle,"
        self._span = f"{series.n_busy or series.n} {kind} of {series.n} statistics lines"

    def _make(self, fact: str, value: Any, how: str, *caveats: str, last: bool = False) -> Reading:
        if isinstance(value, float):
            value = round(value, 4)
        return Reading(
            fact=fact,
            value=value,
            source=self._last if last else self._first,
            method=how,
            labels={"engine": self.s.engine},
            window=self._window,
            caveats=tuple(note for note in caveats if note),
        )

    def readings(self, version: str) -> Iterator[Reading]:
        """All of them. ``version``: the engine's, where known: since 0.11.1 a V1 line without ``Preemptions`` says none."""
        yield from self._load()
        yield from self._queue()
        yield from self._cache(version)
        yield from self._sglang()
        yield from self._rates()
        yield from self._trends()

    def _load(self) -> Iterator[Reading]:
        for name, base, wanted, note in (
            ("running", "queue.running", ("last", "p50", "max", "min", "mean"), ""),
            ("waiting", "queue.waiting", ("last", "p50", "max", "min", "mean"), ""),
            ("deferred", "queue.deferred", ("max",), ""),
            ("kv", "kv.usage", ("last", "p50", "max", "min", "mean"), ""),
            ("prompt", "throughput.prompt_tokens_per_s", ("mean", "max"), PROMPT_CAVEAT),
            ("generation", "throughput.generation_tokens_per_s", ("mean", "max", "min", "p50"), ""),
            ("kv_fetch_wait", "log.kv_fetch.waiting", ("max",), ""),
            ("kv_fetch_progress", "log.kv_fetch.in_progress", ("max",), ""),
            ("kv_fetch_done", "log.kv_fetch.completed_waiting", ("max",), ""),
        ):
            dist = self._pool.get(name)
            if dist is None:
                continue
            for stat in wanted:
                if stat == "last":
                    yield self._make(f"{base}.last", self.s.all[name].last, "the last statistics line", note, last=True)
                    continue
                value = dist.quantile(0.5) if stat == "p50" else float(getattr(dist, stat))
                word = "median" if stat == "p50" else stat
                yield self._make(f"{base}.{stat}", value, f"{word} over {self._span}", note)
        yield self._make("load.present", self.s.n_busy > 0, f"{self.s.n_busy} of {self.s.n} statistics lines show work")
        running = self.s.busy.get("running")
        if self.s.n_busy >= 3 and running and running.max > 0:
            flat = running.count(lambda v: v == running.max) / running.n
            yield self._make("running.flat_share", flat, f"share of {self._span} with running = {running.max:g}")
            how = f"(max − min) ÷ max of running over {self._span}"
            yield self._make("running.spread", (running.max - running.min) / running.max, how)

    def _queue(self) -> Iterator[Reading]:
        s = self.s
        waiting = self._pool.get("waiting")
        if waiting:
            share = waiting.count(lambda v: v > 0) / waiting.n
            yield self._make("queue.waiting.share_above_zero", share, f"share of {self._span} with a queue")
        if "deferred" in s.all:
            share = s.all["deferred"].count(lambda v: v > 0) / s.n
            yield self._make("queue.deferred.share_above_zero", share, f"share of {s.n} lines with deferred requests")
        if s.n_busy >= 4 and waiting:
            drained = s.queue_peak > 0 and s.queue_peak_at < s.n_busy and s.queue_last <= 0.25 * s.queue_peak
            how = f"the queue peaked at {s.queue_peak:g} and was {s.queue_last:g} in the last busy sample"
            yield self._make("queue.waiting.drained", drained, how)
        for name, fact in (("queue", "queue.waiting.growth"), ("busy_running", "queue.running.growth")):
            thirds = s.order[name].thirds(4)
            if thirds:
                how = f"mean of the last third {thirds[1]:.4g} minus the first {thirds[0]:.4g}"
                yield self._make(fact, thirds[1] - thirds[0], how)
        kv = self._pool.get("kv")
        if kv:
            share = kv.count(lambda v: v >= KV_HIGH) / kv.n
            yield self._make("kv.usage.share_above_90", share, f"share of {self._span} with KV use ≥ {KV_HIGH:g}")
        starved = s.kv_while_waiting
        if starved.n:
            how = f"KV use over {starved.n} samples with a queue"
            yield self._make("kv.usage.while_waiting.max", starved.max, f"highest {how}")
            yield self._make("kv.usage.while_waiting.p50", starved.quantile(0.5), f"median {how}")
            how = f"of {starved.n} samples with a queue, those with KV use"
            yield self._make("log.queue_with_kv_low_share", s.queue_kv_low / starved.n, f"{how} under {KV_LOW:.0%}")
            high = s.queue_kv_high / starved.n
            yield self._make("log.queue_with_kv_high_share", high, f"{how} of {KV_HIGH:.0%} or more")

    def _cache(self, version: str) -> Iterator[Reading]:
        s = self.s
        if "hit" in s.all:
            yield self._make("prefix.hit_rate", s.all["hit"].last, "the last statistics line", HIT_CAVEAT, last=True)
            halves = s.order["hit"].halves()
            if halves:
                how = f"mean of the second half {halves[1]:.4g} minus the first {halves[0]:.4g}"
                yield self._make("prefix.hit_rate.change", halves[1] - halves[0], how, HIT_CAVEAT)
        elif s.cached + s.computed > 0:
            total = s.cached + s.computed
            how = f"{s.cached:g} cached of {total:g} prompt tokens in {s.prefills} batches"
            yield self._make("prefix.hit_rate", s.cached / total, how, SGLANG_HIT_CAVEAT)
        if "external_hit" in s.all:
            value = s.all["external_hit"].last
            yield self._make("prefix.external_hit_rate", value, "the last statistics line", HIT_CAVEAT, last=True)
        if s.preemption_samples:
            how = f"sum of `Preemptions:` in {s.preemption_samples} statistics lines"
            yield self._make("preemptions.count", s.preemptions, how, "vLLM prints the field only when it is above 0")
        elif s.family == "vllm-v1" and s.n >= 3 and version and holds(">=0.11.1", version):
            how = f"none of {s.n} statistics lines prints `Preemptions:`, which vLLM {version} prints when above 0"
            yield self._make("preemptions.count", 0, how)
        for name in ("swapped", "corrupted"):
            if name in s.all and s.all[name].max > 0:
                yield self._make(f"log.{name}_requests.max", s.all[name].max, f"max over {s.n} statistics lines")

    def _sglang(self) -> Iterator[Reading]:
        s = self.s
        if "accept_len" in s.all:
            dist = s.all["accept_len"]
            how = f"mean of `accept len` in {dist.n} decode lines"
            yield self._make("spec.acceptance_length", dist.mean, how, "includes the bonus token")
        if "accept_rate" in s.all:
            dist = s.all["accept_rate"]
            yield self._make("spec.acceptance_rate", dist.mean, f"mean of `accept rate` in {dist.n} decode lines")
        total = s.graph_true + s.graph_false
        if total:
            how = f"{s.graph_false} of {total} decode lines say `cuda graph: False`"
            yield self._make("log.sglang.cuda_graph_false_share", s.graph_false / total, how)
        for name in ("transfer_queue", "prealloc_queue", "bootstrap_queue", "inflight_queue"):
            if name in s.all:
                how = f"max over {s.all[name].n} batch lines"
                yield self._make(f"log.sglang.{name}.max", s.all[name].max, how)

    def _rates(self) -> Iterator[Reading]:
        """Stalls, bursts and what the rates amount to per request."""
        s = self.s
        yield self._make("log.stats_lines", s.n, "statistics lines read")
        if s.period.n:
            yield self._make("log.stats_period_s", s.period.quantile(0.5), f"median of {s.period.n} steps")
        running = s.generation_running
        if running.n:
            limit = max(0.05, STALL_SHARE * running.quantile(0.9))
            stalls = running.count(lambda v: v < limit)
            how = f"of {running.n} samples with running > 0, those that generate under {limit:.3g} tokens/s"
            yield self._make("log.generation_stalls", stalls, how, PROMPT_CAVEAT if stalls else "")
            how = f"generation ÷ running, {s.per_request.n} samples"
            yield self._make("log.generation_per_request.p50", s.per_request.quantile(0.5), how)
        prompt, generation = s.busy.get("prompt"), s.busy.get("generation")
        if prompt and prompt.n >= 3 and prompt.mean > 0:
            yield from self._prompt(prompt, generation)
        full, low = s.generation_full, s.generation_low
        if full.n >= 2 and low.n >= 2 and low.mean > 0:
            how = f"mean generation of {full.n} samples with KV ≥ {KV_FULL:.0%} over that of {low.n} under {KV_LOW:.0%}"
            yield self._make("log.kv_full_generation_ratio", full.mean / low.mean, how)
        if s.n_holes:
            line, length = s.holes[0]
            how = f"statistics missing for over 3.5 periods although requests ran; the longest after line {line}"
            note = "a log with lines cut out looks the same"
            yield self._make("log.silent_gaps", s.n_holes, how, note)
            yield self._make("log.silent_gap_max_s", length, how, note)

    def _prompt(self, prompt: Dist, generation: Dist | None) -> Iterator[Reading]:
        bursts = prompt.count(lambda v: v >= max(BURST_FLOOR, BURST_FACTOR * prompt.mean))
        how = f"samples with at least {BURST_FACTOR:g} times the mean of {prompt.mean:.4g} tokens/s, over {self._span}"
        yield self._make("log.prompt_bursts", bursts, how, PROMPT_CAVEAT if bursts else "")
        flat = prompt.count(lambda v: v >= FLAT * prompt.max) / prompt.n
        how = f"share of {self._span} with at least {FLAT:.0%} of the highest rate, {prompt.max:.4g} tokens/s"
        yield self._make("log.prompt_flat_share", flat, how)
        if generation and generation.mean > 0:
            how = f"mean prompt rate {prompt.mean:.4g} over mean generation rate {generation.mean:.4g} tokens/s"
            yield self._make("log.prompt_generation_ratio", prompt.mean / generation.mean, how)

    def _trends(self) -> Iterator[Reading]:
        for name, fact in (
            ("generation", "log.generation_decay_ratio"),
            ("running", "log.running_decay_ratio"),
            ("per_request", "log.per_request_decay_ratio"),
        ):
            thirds = self.s.order[name].thirds()
            if thirds and thirds[0] > 0:
                how = f"mean of the last third {thirds[1]:.4g} over the first {thirds[0]:.4g}"
                yield self._make(fact, thirds[1] / thirds[0], f"{how}, {self.s.order[name].n} samples")
        thirds = self.s.order["kv"].thirds()
        if thirds:
            how = f"mean of the last third {thirds[1]:.4g} minus the first {thirds[0]:.4g}"
            yield self._make("log.kv_usage_change", thirds[1] - thirds[0], how)
