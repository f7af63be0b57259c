"""M10: seconds, probes, tokens and money; per case and per correct case."""

from __future__ import annotations

from collections.abc import Sequence

from evals.scorers import m08_calibration
from evals.scorers.base import Measure, Pair
from evals.stats import percentile


def measure(pairs: Sequence[Pair]) -> list[Measure]:
    """Wall P50 and P95, time to the first finding P95, most probes, tokens and cost per correct case."""
    n = len(pairs)
    walls = [row.seconds for _, row in pairs]
    first = [row.first_s for _, row in pairs]
    probes = max((row.probes_run for _, row in pairs), default=0)
    tokens, usd = sum(row.model_tokens for _, row in pairs), sum(row.usd for _, row in pairs)
    correct = sum(m08_calibration.right(label, row) for label, row in pairs)
    p95, found = percentile(walls, 95), percentile(first, 95)
    return [
        Measure(id="M10.p50", name="seconds per case, P50", value=percentile(walls, 50), n=n, unit="s"),
        Measure(id="M10.p95", name="seconds per case, P95", value=p95, n=n, target="≤ 90", met=p95 <= 90, unit="s"),
        Measure(
            id="M10.first", name="seconds to first finding, P95", value=found, n=n, target="≤ 10", met=found <= 10, unit="s"
        ),
        Measure(
            id="M10.probes", name="probes run, most", value=float(probes), n=n, target="≤ 12", met=probes <= 12, unit="probes"
        ),
        Measure(id="M10.tokens", name="model tokens per case", value=tokens / n if n else 0.0, n=n, unit="tokens"),
        Measure(
            id="M10.usd", name="USD per correct case", value=usd / correct if correct else 0.0, n=correct, unit="USD",
            note="correct cases; 0 without a priced model",
        ),
    ]  # fmt: skip
