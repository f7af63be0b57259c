"""The other periodic lines: speculation, KV transfer, single steps, CUDA-graph tables, expert balance, TGI times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tools.contract import Reading, Source
from tools.logs.dist import Dist, Ordered
from tools.logs.stats import Iteration, Spec

MAX_POSITIONS = 64
_TRANSFER = (
    ("Avg xfer time (ms)", "log.kv_transfer.avg_ms", "mean"),
    ("P90 xfer time (ms)", "log.kv_transfer.p90_ms", "max"),
    ("Throughput (MB/s)", "log.kv_transfer.mb_per_s", "mean"),
    ("Avg MB per transfer", "log.kv_transfer.mb_per_transfer", "mean"),
    ("Num successful transfers", "log.kv_transfer.transfers", "total"),
    ("Num failed transfers", "log.kv_transfer.failures", "total"),
)


class Extras:
    """One accumulator for a whole file; every field is a fixed-size statistic."""

    def __init__(self) -> None:
        self.spec_lines = 0
        self.accepted = self.drafted = self.drafts = 0.0
        self.lengths, self.rates = Dist(), Dist()
        self.length_order = Ordered()
        self.position_sums: list[float] = []
        self.position_weights: list[float] = []
        self.transfer: dict[str, Dist] = {}
        self.step_mixed, self.step_decode = Dist(), Dist()
        self.context_tokens = Dist()
        self.graph_rows: dict[str, int] = {}
        self.balance = Dist()
        self.tgi: dict[str, Dist] = {}
        self.lines: dict[str, int] = {}

    def _mark(self, key: str, line: int) -> None:
        self.lines.setdefault(key, line)

    def add_spec(self, spec: Spec, line: int) -> None:
        """One speculation line; intervals are weighted by their number of drafts where that is known."""
        self._mark("spec", line)
        self.spec_lines += 1
        drafts = 0.0
        if spec.accepted is not None and spec.drafted is not None:
            self.accepted += spec.accepted
            self.drafted += spec.drafted
            if spec.positions:
                drafts = spec.drafted / len(spec.positions)
                self.drafts += drafts
        if spec.length is not None:
            self.lengths.add(spec.length)
            self.length_order.add(spec.length)
        if spec.rate is not None:
            self.rates.add(spec.rate)
        for index, share in enumerate(spec.positions[:MAX_POSITIONS]):
            if index >= len(self.position_sums):
                self.position_sums.append(0.0)
                self.position_weights.append(0.0)
            self.position_sums[index] += share * (drafts or 1.0)
            self.position_weights[index] += drafts or 1.0

    def add_transfer(self, pairs: dict[str, float], line: int) -> None:
        """One KV-transfer line."""
        self._mark("transfer", line)
        for name, _, _ in _TRANSFER:
            if name in pairs:
                self.transfer.setdefault(name, Dist()).add(pairs[name])

    def add_iteration(self, step: Iteration, line: int) -> None:
        """One step; steps with prefill work are kept apart from pure decode steps."""
        self._mark("iteration", line)
        if step.context_requests:
            self.step_mixed.add(step.elapsed)
            self.context_tokens.add(float(step.context_tokens))
        elif step.generation_requests:
            self.step_decode.add(step.elapsed)

    def add_graph_row(self, mode: str, count: int, line: int) -> None:
        """A row of the CUDA-graph table."""
        self._mark("graph", line)
        if len(self.graph_rows) < 32 or mode in self.graph_rows:
            self.graph_rows[mode] = self.graph_rows.get(mode, 0) + count

    def add_balance(self, value: float, line: int) -> None:
        """``balancedness=`` of an EPLB line."""
        self._mark("balance", line)
        self.balance.add(value)

    def add_tgi(self, times: dict[str, float], line: int) -> None:
        """Times of one TGI request in milliseconds."""
        self._mark("tgi", line)
        for name, value in times.items():
            self.tgi.setdefault(name, Dist()).add(value)

    def readings(self, ref: str) -> Iterator[Reading]:
        """All facts that lines were seen for."""

        def make(fact: str, value: Any, how: str, key: str, *caveats: str) -> Reading:
            source = Source(kind="file", ref=ref, line=self.lines.get(key, 0))
            return Reading(fact=fact, value=value, source=source, method=how, caveats=caveats)

        yield from self._spec(make)
        for name, fact, stat in _TRANSFER:
            dist = self.transfer.get(name)
            if dist and dist.n:
                yield make(fact, round(getattr(dist, stat), 4), f"{stat} of `{name}` over {dist.n} lines", "transfer")
        if self.step_decode.n:
            dist = self.step_decode
            how = f"{dist.n} steps without prefill work"
            yield make("log.iteration.decode_ms.p50", round(dist.quantile(0.5), 3), f"median of {how}", "iteration")
            yield make("log.iteration.decode_ms.max", round(dist.max, 3), f"max of {how}", "iteration")
        if self.step_mixed.n:
            dist = self.step_mixed
            how = f"{dist.n} steps with prefill work"
            yield make("log.iteration.mixed_ms.p50", round(dist.quantile(0.5), 3), f"median of {how}", "iteration")
            yield make("log.iteration.mixed_ms.max", round(dist.max, 3), f"max of {how}", "iteration")
            yield make("log.iteration.context_tokens.max", self.context_tokens.max, f"max of {how}", "iteration")
        total = sum(self.graph_rows.values())
        if total:
            none = self.graph_rows.get("NONE", 0)
            how = f"{none} of {total} steps ran with runtime mode NONE"
            yield make("log.cudagraph_none_share", round(none / total, 4), how, "graph")
        if self.balance.n:
            how = f"lowest of {self.balance.n} expert-balance lines"
            yield make("log.eplb.balancedness.min", round(self.balance.min, 4), how, "balance")
        for name, dist in self.tgi.items():
            for stat, share in (("p50", 0.5), ("p99", 0.99)):
                how = f"{stat} of {dist.n} requests"
                yield make(f"log.tgi.{name}_ms.{stat}", round(dist.quantile(share), 3), how, "tgi")

    def _spec(self, make: Any) -> Iterator[Reading]:
        if not self.spec_lines:
            return
        few = (f"only {self.drafted:g} drafted tokens: the shares mean little",) if 0 < self.drafted < 200 else ()
        over = f"over {self.spec_lines} speculation lines"
        if self.drafted > 0:
            how = f"{self.accepted:g} accepted of {self.drafted:g} drafted tokens {over}"
            yield make("spec.acceptance_rate", round(self.accepted / self.drafted, 4), how, "spec", *few)
            yield make("spec.drafted_tokens", self.drafted, f"sum {over}", "spec")
        elif self.rates.n:
            yield make("spec.acceptance_rate", round(self.rates.mean, 4), f"mean {over}", "spec")
        if self.drafts > 0:
            how = f"1 + {self.accepted:g} accepted tokens / {self.drafts:g} drafts {over}"
            yield make("spec.acceptance_length", round(1 + self.accepted / self.drafts, 4), how, "spec", *few)
        elif self.lengths.n:
            yield make("spec.acceptance_length", round(self.lengths.mean, 4), f"mean {over}", "spec")
        if self.position_sums:
            shares = [
                round(total / weight, 4)
                for total, weight in zip(self.position_sums, self.position_weights, strict=True)
                if weight
            ]
            yield make("spec.acceptance_by_position", shares, f"weighted by drafts {over}", "spec", *few)
        thirds = self.length_order.thirds()
        if thirds and thirds[0] > 0:
            how = f"mean length of the last third {thirds[1]:.3g} over the first {thirds[0]:.3g}"
            yield make("log.acceptance_length_decay_ratio", round(thirds[1] / thirds[0], 4), how, "spec")
