"""Windowed series → facts: counters become rates over real time; one scrape has gauges and since-start means only."""

from __future__ import annotations

from tools.contract import Reading
from tools.metrics import latency, load
from tools.metrics.maker import Maker, first_ref
from tools.metrics.series import SeriesSet

_STEPS = (
    load.gauges,
    load.arrivals,
    load.batch_gain,
    load.counters,
    latency.prefix,
    latency.latencies,
    latency.shares,
    latency.sizes,
    latency.spec,
    latency.mfu,
    latency.http,
    latency.front,
    load.health,
)


def compute(series: SeriesSet, kind: str = "file") -> list[Reading]:
    """All facts that this set of series supports, in a fixed order."""
    maker = Maker(series, kind)
    if not series.times:
        return []
    maker.put("window.scrapes", maker.n, "number of good scrapes", first_ref(series))
    if maker.span_s is not None:
        maker.put("window.seconds", maker.span_s, "last minus first scrape time", first_ref(series))
    for step in _STEPS:
        step(maker)
    return maker.out
