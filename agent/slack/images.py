"""Pictures for the thread: the incident's timeline from its scrapes, or measured times against the computed floors."""

from __future__ import annotations

import io
from typing import Any

from agent.diagnosis import Diagnosis
from tools.part import Part

_TRACKS = (("waiting", "requests waiting"), ("running", "requests running"), ("kv_usage", "KV cache use"))
_BARS = (("hard_floor_ms", "hard floor"), ("expected_floor_ms", "expected floor"), ("practical_floor_ms", "practical floor"))  # fmt: skip
MAX_SCRAPES = 400


def picture(d: Diagnosis, parts: list[Part]) -> bytes:
    """PNG bytes of the timeline, else of the floors; empty when neither can be drawn (or matplotlib is not there)."""
    try:
        return timeline(parts) or floors(d)
    except ImportError:
        return b""


def series_of(parts: list[Part]) -> dict[str, list[tuple[float, float]]]:
    """``name → (seconds since the first scrape, value)`` of the vital gauges; needs two timed scrapes."""
    from tools.intake.registry import classify
    from tools.metrics.exposition import parse_page
    from tools.metrics.names import canonical
    from tools.metrics.series import SeriesSet

    series = SeriesSet()
    pages = [p for p in parts if p.time is not None and classify(p) == "metrics"][:MAX_SCRAPES]
    for part in sorted(pages, key=lambda p: p.time or 0.0):
        series.add_page(parse_page(part.lines()), part.name, part.time or 0.0)
    out: dict[str, list[tuple[float, float]]] = {}
    for key, name in _TRACKS:
        if key in canonical() and series.has(key):
            points = series.pooled(key)
            if len(points) > 1:
                start = series.times[0]
                out[name] = [(t - start, v) for t, v in points]
    return out


def timeline(parts: list[Part]) -> bytes:
    """Queue, running and KV use over the window, one panel each."""
    tracks = series_of(parts)
    if not tracks:
        return b""
    figure, panels = _figure(len(tracks))
    for axes, (name, points) in zip(panels, tracks.items(), strict=True):
        axes.plot([t for t, _ in points], [v for _, v in points], marker=".", linewidth=1.2)
        axes.set_ylabel(name, fontsize=8)
        axes.set_ylim(bottom=0)
        axes.grid(True, linewidth=0.3, alpha=0.5)
    panels[-1].set_xlabel("seconds since the first scrape")
    return _png(figure)


def floors(d: Diagnosis) -> bytes:
    """Measured time against the floors of the roofline, where the evidence holds both."""
    values = {e.fact: float(e.value) for e in d.evidence if e.status == "ok" and _number(e.value)}
    groups: list[tuple[str, list[tuple[str, float]]]] = []
    for kind, measured in (("tpot", "tpot.mean_s"), ("ttft", "ttft.mean_s")):
        bars = [(text, values[f"roofline.{kind}.{key}"]) for key, text in _BARS if f"roofline.{kind}.{key}" in values]
        if bars and measured in values:
            groups.append((kind.upper(), [*bars, ("measured", values[measured] * 1000)]))
    if not groups:
        return b""
    figure, panels = _figure(len(groups))
    for axes, (name, bars) in zip(panels, groups, strict=True):
        axes.barh([t for t, _ in bars], [v for _, v in bars], color=["C0"] * (len(bars) - 1) + ["C3"])
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("milliseconds")
    return _png(figure)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _figure(count: int) -> tuple[Any, list[Any]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 1.2 + 1.5 * count), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, [figure.add_subplot(count, 1, n + 1) for n in range(count)]


def _png(figure: Any) -> bytes:
    body = io.BytesIO()
    figure.savefig(body, format="png", dpi=120)
    return body.getvalue()
