"""Arms that do not reason: what a score is worth is its distance from these."""

from __future__ import annotations

from collections import Counter

from agent.investigate import baseline_ledger
from evals.arms.base import Answer, Arm, Task, plain
from tools.contract import Context
from tools.view import Ledger

FOLKLORE = "kv_cache_exhausted"

# fact → (value at which a dashboard turns red, the family that folklore blames). Larger is worse for all of them.
GAUGES: dict[str, tuple[float, str]] = {
    "kv.usage.max": (0.9, "kv_cache_exhausted"),
    "preemptions.count": (5.0, "kv_cache_exhausted"),
    "queue.waiting.max": (10.0, "overload"),
    "ttft.mean_s": (2.0, "overload"),
    "ttft.p99_s": (5.0, "overload"),
    "itl.p99_s": (0.3, "prefill_interference"),
    "tpot.mean_s": (0.1, "host_step_overhead"),
    "http.5xx.count": (5.0, "engine_crash"),
    "http.4xx.count": (5.0, "request_rejected"),
    "said.ttft_s": (2.0, "overload"),
    "said.tpot_s": (0.1, "host_step_overhead"),
}


def constant(task: Task) -> Answer:
    """KV cache, always: what most dashboards would say."""
    return Answer(diagnosis=plain(task.known, "incident", [FOLKLORE]))


def majority(task: Task) -> Answer:
    """The most frequent family of the dev half."""
    counts = Counter(x.main() for x in task.labels if x.split == "dev" and x.outcome == "incident")
    top = sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))[:1]
    total = sum(counts.values())
    families = [name for name, _ in top]
    return Answer(diagnosis=plain(task.known, "incident", families, confidence=top[0][1] / total if top else 0.0))


def loudest(ledger: Ledger) -> tuple[str, float]:
    """``(family, value ÷ red line)`` of the gauge that is furthest over its line; empty when none is over."""
    best = ("", 1.0)
    for fact, (line, family) in GAUGES.items():
        value = ledger.num(fact)
        if value is not None and value / line > best[1]:
            best = (family, value / line)
    return best


def loudest_metric(task: Task) -> Answer:
    """The reddest gauge is the cause; with none red, all is well."""
    ledger = baseline_ledger(task.known, [task.world], Context())
    family, ratio = loudest(ledger)
    if not family:
        return Answer(diagnosis=plain(task.known, "healthy"))
    return Answer(diagnosis=plain(task.known, "incident", [family], confidence=min(0.99, 1 - 0.5 / ratio)))


def always_abstain(task: Task) -> Answer:
    """Cannot tell, ever."""
    return Answer(diagnosis=plain(task.known, "undecidable", confidence=0.0))


def everything_broken(task: Task) -> Answer:
    """Every family is a root cause."""
    return Answer(diagnosis=plain(task.known, "incident", sorted(task.known.causes), confidence=0.99))


ARMS = [
    Arm(name="constant", says="always the KV cache", answer=constant, reads=False),
    Arm(
        name="majority",
        says="always the most frequent family of the dev half",
        answer=majority,
        reads=False,
        learns=True,
    ),
    Arm(name="loudest-metric", says="the gauge furthest over its red line names the cause", answer=loudest_metric),
    Arm(name="always-abstain", says="cannot tell, ever", answer=always_abstain, reads=False),
    Arm(name="everything-broken", says="every family is a root cause", answer=everything_broken, reads=False),
]
