"""Collects an engine's periodic samples. Constant memory per engine label."""

from __future__ import annotations

from collections import defaultdict

from tools.logs.dist import Dist, Ordered
from tools.logs.stats import Batch, Sample

KV_LOW, KV_HIGH, KV_FULL = 0.80, 0.90, 0.95


class EngineSeries:
    """Samples of one engine label (a data-parallel rank), kept as distributions.

    ``busy`` means that something ran or waited in the interval; an idle engine's samples would hide the rest.
    """

    def __init__(self, family: str, engine: str) -> None:
        self.family, self.engine = family, engine
        self.busy: defaultdict[str, Dist] = defaultdict(Dist)
        self.all: defaultdict[str, Dist] = defaultdict(Dist)
        self.generation_running = Dist()
        self.per_request = Dist()
        names = ("generation", "running", "per_request", "kv", "hit", "queue", "busy_running")
        self.order = {name: Ordered() for name in names}
        self.kv_while_waiting = Dist()
        self.queue_peak = self.queue_last = 0.0
        self.queue_peak_at = 0
        self.generation_full, self.generation_low = Dist(), Dist()
        self.n = self.n_busy = self.queue_kv_low = self.queue_kv_high = 0
        self.preemptions = self.preemption_samples = 0
        self.last: dict[str, float] = {}
        self.first_line = self.last_line = self.last_tokens_line = 0
        self.first_time: float | None = None
        self.last_time: float | None = None
        self.last_clock = ""
        self.period = Dist()
        self._usual = 10.0
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
            self.all[name].add(value)
            if is_busy:
                self.busy[name].add(value)
        if "preemptions" in values:
            self.preemptions += int(values["preemptions"])
            self.preemption_samples += 1
        kv, generation = values.get("kv"), values.get("generation")
        if generation:
            self.last_tokens_line = line
        if is_busy:
            self.order["busy_running"].add(running)
            self.order["queue"].add(waiting)
            self.queue_last = waiting
            if waiting > self.queue_peak:
                self.queue_peak, self.queue_peak_at = waiting, self.n_busy
        if is_busy and "hit" in values:
            self.order["hit"].add(values["hit"])
        if is_busy and kv is not None:
            self.order["kv"].add(kv)
            if waiting > 0:
                self.kv_while_waiting.add(kv)
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
                if self.last.get("running", 0.0) > 0 and step > max(30.0, 3.5 * self._usual):
                    self.n_holes += 1
                    self.holes = sorted([*self.holes, (self.last_line, step)], key=lambda hole: -hole[1])[:8]
                else:
                    self.period.add(round(step, 1))
                    if self.period.n in (3, 10) or self.period.n % 256 == 0:
                        self._usual = self.period.quantile(0.5)  # not at each line: it sorts
            self.last_time, self.last_clock = time, clock
        self.last_line = line
