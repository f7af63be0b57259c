"""Collects an engine's periodic samples and says what shape the series has. Constant memory per engine label."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from knowledge.versions import holds
from tools.contract import Reading, Source
from tools.logs.dist import Dist, Ordered
from tools.logs.stats import Batch, Sample

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
KV_LOW, KV_HIGH, KV_FULL = 0.80, 0.90, 0.95


class EngineSeries:
    """Samples of one engine label (a data-parallel rank), kept as distributions.

    ``busy`` means that something ran or waited in the interval; an idle engine's samples would hide the rest.
    """

    def __init__(self, family: str, engine: str) -> None:
        self.family, self.engine = family, engine
        self.busy: dict[str, Dist] = {}
        self.all: dict[str, Dist] = {}
        self.generation_running = Dist()
        self.per_request = Dist()
        self.order = {name: Ordered() for name in ("generation", "running", "per_request", "kv", "hit")}
        self.generation_full, self.generation_low = Dist(), Dist()
        self.n = self.n_busy = self.queue_kv_low = self.queue_kv_high = self.queue_kv_known = 0
        self.preemptions = self.preemption_samples = 0
        self.last: dict[str, float] = {}
        self.first_line = self.last_line = 0
        self.first_time: float | None = None
        self.last_time: float | None = None
        self.last_clock = ""
        self.period = Dist()
        self.holes: list[tuple[int, float]] = []
        self.n_holes = 0
        self.cached = self.computed = 0.0
        self.graph_true = self.graph_false = self.prefills = 0

    # ── input ────────────────────────────────────────────────────────────────────────────────────────────────
    def add(self, sample: Sample, line: int, time: float | None, clock: str) -> None:
        """One vLLM statistics line."""
        values = sample.values
        self._clock(line, time, clock)
        self.n += 1
        self.last = values
        running, waiting = values.get("running", 0.0), values.get("waiting", 0.0)
        is_busy = running + waiting > 0
        self.n_busy += is_busy
        for name, value in values.items():
            self.all.setdefault(name, Dist()).add(value)
            if is_busy:
                self.busy.setdefault(name, Dist()).add(value)
        if "preemptions" in values:
            self.preemptions += int(values["preemptions"])
            self.preemption_samples += 1
        kv, generation = values.get("kv"), values.get("generation")
        if is_busy and "hit" in values:
            self.order["hit"].add(values["hit"])
        if is_busy and kv is not None:
            self.order["kv"].add(kv)
            if waiting > 0:
                self.queue_kv_known += 1
                self.queue_kv_low += kv < KV_LOW
                self.queue_kv_high += kv >= KV_HIGH
        if running > 0 and generation is not None:
            self._generation(running, generation, kv)

    def _generation(self, running: float, generation: float, kv: float | None) -> None:
        self.generation_running.add(generation)
        self.per_request.add(generation / running)
        self.order["generation"].add(generation)
        self.order["running"].add(running)
        self.order["per_request"].add(generation / running)
        if kv is not None and kv >= KV_FULL:
            self.generation_full.add(generation)
        elif kv is not None and kv < KV_LOW:
            self.generation_low.add(generation)

    def add_batch(self, batch: Batch, line: int, time: float | None, clock: str) -> None:
        """One SGLang batch line. Prefill lines carry queue and hit rate, decode lines the generation rate."""
        got = batch.values
        values: dict[str, float] = {}
        for name, key in (("running", "#running-req"), ("waiting", "#queue-req")):
            if key in got:
                values[name] = got[key]
        usages = [
            got[key] for key in ("token usage", "full token usage", "swa token usage", "mamba usage") if key in got
        ]
        if usages:
            values["kv"] = max(usages)
        for name, key in (("accept_len", "accept len"), ("accept_rate", "accept rate")):
            if key in got:
                values[name] = got[key]
        for name, key in (
            ("transfer_queue", "#transfer-req"),
            ("prealloc_queue", "#prealloc-req"),
            ("bootstrap_queue", "#bootstrap-req"),
            ("inflight_queue", "#inflight-req"),
        ):
            if key in got:
                values[name] = got[key]
        if batch.decode:
            if "gen throughput (token/s)" in got:
                values["generation"] = got["gen throughput (token/s)"]
            if batch.graph is not None:
                self.graph_true += batch.graph
                self.graph_false += not batch.graph
        else:
            self.prefills += 1
            self.cached += got.get("#cached-token", 0.0)
            self.computed += got.get("#new-token", 0.0)
            if "input throughput (token/s)" in got:
                values["prompt"] = got["input throughput (token/s)"]
        self.add(Sample("sglang", self.engine, values), line, time, clock)

    def _clock(self, line: int, time: float | None, clock: str) -> None:
        self.first_line = self.first_line or line
        if time is not None:
            if self.first_time is None:
                self.first_time = time
            if self.last_time is not None and clock == self.last_clock and time > self.last_time:
                step = time - self.last_time
                usual = self.period.quantile(0.5) if self.period.n >= 3 else 10.0
                if self.last.get("running", 0.0) > 0 and step > max(30.0, 3.5 * usual):
                    self.n_holes += 1
                    self.holes = sorted([*self.holes, (self.last_line, step)], key=lambda hole: -hole[1])[:8]
                else:
                    self.period.add(step)
            self.last_time, self.last_clock = time, clock
        self.last_line = line

    # ── output ───────────────────────────────────────────────────────────────────────────────────────────────
    def window(self, origin: float | None) -> tuple[float, float] | None:
        """First and last sample, in seconds since ``origin``."""
        if self.first_time is None or self.last_time is None:
            return None
        base = origin if origin is not None else self.first_time
        return (self.first_time - base, self.last_time - base)

    def readings(self, ref: str, origin: float | None, version: str) -> Iterator[Reading]:
        """Facts of the series; names shared with the live metrics reader where both can tell.

        ``version``: the engine's, where known: since 0.11.1 a V1 line without the preemption field says "none".
        """
        source = Source(kind="file", ref=ref, line=self.first_line)
        last_source = Source(kind="file", ref=ref, line=self.last_line)
        window = self.window(origin)
        labels = {"engine": self.engine}
        pool = self.busy if self.n_busy else self.all
        kind = "busy samples" if self.n_busy else "samples, all idle,"
        span = f"{self.n_busy or self.n} {kind} of {self.n} statistics lines"

        def make(fact: str, value: Any, how: str, *caveats: str, at: Source = source) -> Reading:
            return Reading(
                fact=fact,
                value=value,
                source=at,
                method=how,
                labels=labels,
                window=window,
                caveats=tuple(note for note in caveats if note),
            )

        for name, base, wanted in (
            ("running", "queue.running", ("last", "p50", "max", "min")),
            ("waiting", "queue.waiting", ("last", "p50", "max", "min")),
            ("deferred", "queue.deferred", ("max",)),
            ("kv", "kv.usage", ("last", "p50", "max")),
        ):
            if name in pool:
                yield from self._stats(make, pool[name], self.all[name], base, wanted, span, last_source)
        for name, base, which, notes in (
            ("prompt", "throughput.prompt_tokens_per_s", ("mean", "max"), (PROMPT_CAVEAT,)),
            ("generation", "throughput.generation_tokens_per_s", ("mean", "max", "min", "p50"), ()),
        ):
            if name in pool:
                yield from self._stats(make, pool[name], self.all[name], base, which, span, last_source, notes)
        if "waiting" in pool:
            waiting = pool["waiting"]
            share = waiting.count(lambda v: v > 0) / waiting.n
            yield make("queue.waiting.share_above_zero", round(share, 4), f"share of {span} with a queue")
        if self.n_busy >= 3 and "running" in self.busy:
            running = self.busy["running"]
            flat = running.count(lambda v: v == running.max) / running.n
            yield make("running.flat_share", round(flat, 4), f"share of {span} with running = {running.max:g}")
        yield from self._cache(make, last_source, version)
        yield from self._shape(make, span)

    @staticmethod
    def _stats(
        make: Any,
        dist: Dist,
        every: Dist,
        base: str,
        wanted: tuple[str, ...],
        span: str,
        last_source: Source,
        notes: tuple[str, ...] = (),
    ) -> Iterator[Reading]:
        for stat in wanted:
            if stat == "last":
                yield make(f"{base}.last", round(every.last, 4), "the last statistics line", *notes, at=last_source)
                continue
            value = dist.quantile(0.5) if stat == "p50" else float(getattr(dist, stat))
            word = "median" if stat == "p50" else stat
            yield make(f"{base}.{stat}", round(value, 4), f"{word} over {span}", *notes)

    def _cache(self, make: Any, last_source: Source, version: str) -> Iterator[Reading]:
        if "hit" in self.all:
            value = round(self.all["hit"].last, 4)
            yield make("prefix.hit_rate", value, "the last statistics line", HIT_CAVEAT, at=last_source)
        elif self.cached + self.computed > 0:
            value = round(self.cached / (self.cached + self.computed), 4)
            how = f"{self.cached:g} cached of {self.cached + self.computed:g} prompt tokens in {self.prefills} batches"
            yield make("prefix.hit_rate", value, how, SGLANG_HIT_CAVEAT)
        if "external_hit" in self.all:
            yield make(
                "prefix.external_hit_rate",
                round(self.all["external_hit"].last, 4),
                "the last statistics line",
                HIT_CAVEAT,
            )
        if self.preemption_samples:
            how = f"sum of `Preemptions:` in {self.preemption_samples} statistics lines"
            yield make("preemptions.count", self.preemptions, how, "vLLM prints the field only when it is above 0")
        elif self.family == "vllm-v1" and self.n >= 3 and version and holds(">=0.11.1", version):
            how = f"none of {self.n} statistics lines prints `Preemptions:`, which vLLM {version} prints when above 0"
            yield make("preemptions.count", 0, how)
        for name in ("swapped", "corrupted"):
            if name in self.all and self.all[name].max > 0:
                yield make(f"log.{name}_requests.max", self.all[name].max, f"max over {self.n} statistics lines")
        if "accept_len" in self.all:
            dist = self.all["accept_len"]
            how = f"mean of `accept len` in {dist.n} decode lines"
            yield make("spec.acceptance_length", round(dist.mean, 4), how, "includes the bonus token")
        if "accept_rate" in self.all:
            dist = self.all["accept_rate"]
            yield make("spec.acceptance_rate", round(dist.mean, 4), f"mean of `accept rate` in {dist.n} decode lines")
        total = self.graph_true + self.graph_false
        if total:
            how = f"{self.graph_false} of {total} decode lines say `cuda graph: False`"
            yield make("log.sglang.cuda_graph_false_share", round(self.graph_false / total, 4), how)
        for name in ("transfer_queue", "prealloc_queue", "bootstrap_queue", "inflight_queue"):
            if name in self.all:
                yield make(f"log.sglang.{name}.max", self.all[name].max, f"max over {self.all[name].n} batch lines")

    def _shape(self, make: Any, span: str) -> Iterator[Reading]:
        yield make("log.stats_lines", self.n, "statistics lines read")
        if self.period.n:
            yield make("log.stats_period_s", round(self.period.quantile(0.5), 3), f"median of {self.period.n} steps")
        running = self.generation_running
        if running.n:
            limit = max(0.05, STALL_SHARE * running.quantile(0.9))
            stalls = running.count(lambda v: v < limit)
            how = f"of {running.n} samples with running > 0, those that generate under {limit:.3g} tokens/s"
            yield make("log.generation_stalls", stalls, how, PROMPT_CAVEAT if stalls else "")
            per = self.per_request
            yield make(
                "log.generation_per_request.p50", round(per.quantile(0.5), 4), f"generation / running, {per.n} samples"
            )
        prompt = self.busy.get("prompt")
        if prompt and prompt.n >= 3 and prompt.mean > 0:
            bursts = prompt.count(lambda v: v >= max(BURST_FLOOR, BURST_FACTOR * prompt.mean))
            how = f"samples with at least {BURST_FACTOR:g} times the mean of {prompt.mean:.4g} tokens/s, over {span}"
            yield make("log.prompt_bursts", bursts, how, PROMPT_CAVEAT if bursts else "")
            flat = prompt.count(lambda v: v >= FLAT * prompt.max) / prompt.n
            how = f"share of {span} with at least {FLAT:.0%} of the highest rate, {prompt.max:.4g} tokens/s"
            yield make("log.prompt_flat_share", round(flat, 4), how)
            generation = self.busy.get("generation")
            if generation and generation.mean > 0:
                how = f"mean prompt rate {prompt.mean:.4g} over mean generation rate {generation.mean:.4g} tokens/s"
                yield make("log.prompt_generation_ratio", round(prompt.mean / generation.mean, 4), how)
        for name, fact in (
            ("generation", "log.generation_decay_ratio"),
            ("running", "log.running_decay_ratio"),
            ("per_request", "log.per_request_decay_ratio"),
        ):
            thirds = self.order[name].thirds()
            if thirds and thirds[0] > 0:
                how = f"mean of the last third {thirds[1]:.4g} over the first {thirds[0]:.4g}, {self.order[name].n} samples"
                yield make(fact, round(thirds[1] / thirds[0], 4), how)
        for kind, fact in (("kv", "log.kv_usage_change"), ("hit", "log.hit_rate_change")):
            thirds = self.order[kind].thirds()
            if thirds:
                how = f"mean of the last third {thirds[1]:.4g} minus the first {thirds[0]:.4g}"
                yield make(fact, round(thirds[1] - thirds[0], 4), how)
        if self.queue_kv_known:
            n = self.queue_kv_known
            how = f"of {n} samples with a queue, those with KV use under {KV_LOW:.0%}"
            yield make("log.queue_with_kv_low_share", round(self.queue_kv_low / n, 4), how)
            how = f"of {n} samples with a queue, those with KV use of {KV_HIGH:.0%} or more"
            yield make("log.queue_with_kv_high_share", round(self.queue_kv_high / n, 4), how)
        full, low = self.generation_full, self.generation_low
        if full.n >= 2 and low.n >= 2 and low.mean > 0:
            how = f"mean generation of {full.n} samples with KV ≥ {KV_FULL:.0%} over that of {low.n} under {KV_LOW:.0%}"
            yield make("log.kv_full_generation_ratio", round(full.mean / low.mean, 4), how)
        if self.n_holes:
            line, length = self.holes[0]
            how = f"statistics missing for longer than 3.5 periods although requests ran; longest after line {line}"
            note = "a log with lines cut out looks the same"
            yield make("log.silent_gaps", self.n_holes, how, note)
            yield make("log.silent_gap_max_s", round(length, 3), how, note)
