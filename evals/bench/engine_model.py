"""A small model of a continuous-batching engine: enough queueing, KV accounting and step time to write metrics pages
whose counters, gauges and histograms agree with each other. Nothing in it is measured; it is for made worlds only."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

TTFT: list[float] = [
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1,
    2.5,
    5,
    7.5,
    10,
    20,
    40,
    80,
    160,
    640,
    2560,
]
ITL: list[float] = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80]
REQUEST: list[float] = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680]
TOKENS: list[float] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000]
STEP: list[float] = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]


@dataclass
class Histogram:
    """Cumulative-bucket histogram as Prometheus writes it."""

    edges: list[float]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0
    n: int = 0

    def observe(self, value: float) -> None:
        """Count one value."""
        if not self.counts:
            self.counts = [0] * (len(self.edges) + 1)
        self.counts[bisect_left(self.edges, value)] += 1
        self.total += value
        self.n += 1

    def cumulative(self) -> list[int]:
        """Counts at or below each edge."""
        out, run = [], 0
        for count in (self.counts or [0] * (len(self.edges) + 1))[:-1]:
            run += count
            out.append(run)
        return out


@dataclass
class Request:
    """A request in the model."""

    arrived: float
    prompt: int
    output: int
    cached: int = 0
    computed: int = 0
    goal: int = 0
    made: int = 0
    since: int = 0
    started: float | None = None
    first: float | None = None
    last: float = 0.0
    preempted: int = 0

    def own(self) -> int:
        """KV tokens that only this request holds: computed since its admission beyond the shared part, and made since."""
        return max(0, self.computed - self.cached) + self.since


@dataclass
class Setup:
    """Engine and load. ``step``: seconds of a step from (prefill tokens, decoding requests, KV tokens read).
    ``shared``: leading tokens of each prompt that are already cached. ``accept``: chance per draft token.
    ``users``: makes the next request of a user whose last one ended (closed loop)."""

    step: Callable[[int, int, int], float]
    arrivals: Callable[[random.Random], list[Request]]
    max_num_seqs: int = 256
    budget: int = 8192
    pool: int = 400_000
    drafts: int = 0
    accept: float = 0.0
    users: Callable[[random.Random, float], Request] | None = None
    bytes_per_step: float = 0.0
    bytes_per_kv_token: float = 0.0
    flops_per_token: float = 0.0


class Engine:
    """Runs a setup in model time and keeps the counters a server would expose."""

    def __init__(self, setup: Setup, seed: int) -> None:
        self.setup, self.rng = setup, random.Random(seed)
        self.coming = sorted(setup.arrivals(self.rng), key=lambda r: r.arrived)
        self.now = 0.0
        self.running: list[Request] = []
        self.waiting: list[Request] = []
        self.count: dict[str, float] = {}
        self.per_position: list[int] = [0] * setup.drafts
        self.hist = {
            "time_to_first_token_seconds": Histogram(TTFT), "inter_token_latency_seconds": Histogram(ITL),
            "request_time_per_output_token_seconds": Histogram(ITL), "e2e_request_latency_seconds": Histogram(REQUEST),
            "request_queue_time_seconds": Histogram(REQUEST), "request_prefill_time_seconds": Histogram(REQUEST),
            "request_decode_time_seconds": Histogram(REQUEST), "request_inference_time_seconds": Histogram(REQUEST),
            "request_prompt_tokens": Histogram(TOKENS), "request_generation_tokens": Histogram(TOKENS),
            "iteration_tokens_total": Histogram(STEP),
        }  # fmt: skip

    def add(self, name: str, value: float) -> None:
        """Raise a counter."""
        self.count[name] = self.count.get(name, 0.0) + value

    def used(self) -> int:
        """KV tokens in use by running requests; a prefix that all share is held once."""
        shared = max((r.cached for r in self.running), default=0)
        return sum(r.own() for r in self.running) + shared

    def until(self, moment: float) -> None:
        """Run steps until model time reaches ``moment``."""
        while self.now < moment:
            while self.coming and self.coming[0].arrived <= self.now:
                self.waiting.append(self.coming.pop(0))
            if not self.running and not self.waiting:
                self.now = min(moment, self.coming[0].arrived) if self.coming else moment
                continue
            self._step()

    def _step(self) -> None:
        left, prefill, used = self.setup.budget, 0, self.used()
        decoding: list[Request] = []
        chunks: list[tuple[Request, int]] = []
        for request in list(self.running):
            if request not in self.running:
                continue
            if request.computed < request.goal:
                take = min(left, request.goal - request.computed)
                if take > 0:
                    chunks.append((request, take))
                    left, prefill = left - take, prefill + take
                continue
            while used + len(decoding) >= self.setup.pool and self.running[-1] is not request:
                used -= self.running[-1].own()
                self._preempt(self.running[-1], decoding, chunks)
            decoding.append(request)
            left -= 1 + self.setup.drafts
        while self.waiting and left > 0 and len(self.running) < self.setup.max_num_seqs:
            head = self.waiting[0]
            need = head.prompt + head.made - head.cached
            if used + need > self.setup.pool and self.running:
                break
            used += need
            self.running.append(self.waiting.pop(0))
            if head.started is None:
                head.started = self.now
                self.add("prefix_cache_queries", head.prompt)
                self.add("prefix_cache_hits", head.cached)
            head.computed, head.goal, head.since = head.cached, head.prompt + head.made, 0
            take = min(left, head.goal - head.computed)
            chunks.append((head, take))
            left, prefill = left - take, prefill + take
        self.now += self.setup.step(prefill, len(decoding), used)
        self.add("read_bytes", self.setup.bytes_per_step + self.setup.bytes_per_kv_token * used)
        self.add("flops", self.setup.flops_per_token * (prefill + len(decoding)))
        self.hist["iteration_tokens_total"].observe(prefill + len(decoding))
        for request, take in chunks:
            request.computed += take
            if request.computed >= request.goal:
                self._emit(request, 1)
        for request in decoding:
            self._emit(request, 1 + self._drafted())

    def _drafted(self) -> int:
        """Draft tokens accepted in one verification."""
        if not self.setup.drafts:
            return 0
        accepted = 0
        while accepted < self.setup.drafts and self.rng.random() < self.setup.accept:
            self.per_position[accepted] += 1
            accepted += 1
        self.add("drafts", 1)
        self.add("draft_tokens", self.setup.drafts)
        self.add("accepted_tokens", accepted)
        return accepted

    def _preempt(self, request: Request, decoding: list[Request], chunks: list[tuple[Request, int]]) -> None:
        self.running.remove(request)
        if request in decoding:
            decoding.remove(request)
        chunks[:] = [c for c in chunks if c[0] is not request]
        request.preempted += 1
        request.computed = request.since = 0
        self.add("preemptions", 1)
        self.waiting.insert(0, request)

    def _emit(self, request: Request, tokens: int) -> None:
        if request.first is None:
            request.first = self.now
            self.hist["time_to_first_token_seconds"].observe(self.now - request.arrived)
            self.add("prompt_tokens", request.prompt)
        else:
            for _ in range(tokens):
                self.hist["inter_token_latency_seconds"].observe((self.now - request.last) / tokens)
        request.last = self.now
        request.made += tokens
        request.since += tokens
        self.add("generation_tokens", tokens)
        if request.made >= request.output:
            self._finish(request)

    def _finish(self, request: Request) -> None:
        self.running.remove(request)
        first, started = request.first or self.now, request.started or request.arrived
        observed = {
            "e2e_request_latency_seconds": self.now - request.arrived, "request_queue_time_seconds": started - request.arrived,
            "request_prefill_time_seconds": first - started, "request_decode_time_seconds": self.now - first,
            "request_inference_time_seconds": self.now - started, "request_prompt_tokens": float(request.prompt),
            "request_generation_tokens": float(request.made),
            "request_time_per_output_token_seconds": (self.now - first) / max(1, request.made - 1),
        }  # fmt: skip
        for name, value in observed.items():
            self.hist[name].observe(value)
        self.add("finished", 1)
        if self.setup.users is not None:
            self.waiting.append(self.setup.users(self.rng, self.now))
