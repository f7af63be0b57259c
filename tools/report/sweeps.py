"""Sweeps: one metric against concurrency, context length, pass number, uptime, GPU count or power cap."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct

from tools.report import lexicon
from tools.report.observe import Observation

DIMENSIONS = ("concurrency", "context", "prompt_tokens", "gpus", "uptime", "run", "power_cap")
MAX_POINTS = 2000


class Sweep(Struct):
    """Points in the order of the axis. ``first``/``last`` are metric values; ``xs`` the axis values."""

    dimension: str
    metric: str
    stat: str
    xs: list[float]
    ys: list[float]
    line: int
    span: str
    label: str = ""
    part: str = ""
    group: str = ""

    @property
    def first(self) -> float:
        """Value at the low end of the axis."""
        return self.ys[0]

    @property
    def last(self) -> float:
        """Value at the high end of the axis."""
        return self.ys[-1]

    @property
    def ratio(self) -> float | None:
        """last/first; ``None`` when the first is zero."""
        return self.ys[-1] / self.ys[0] if self.ys[0] else None

    @property
    def monotone(self) -> bool:
        """Never turns back by more than the noise threshold."""
        noise = lexicon.shapes().same
        up = all(b >= a * (1 - noise) for a, b in zip(self.ys, self.ys[1:], strict=False))
        down = all(b <= a * (1 + noise) for a, b in zip(self.ys, self.ys[1:], strict=False))
        return up or down

    @property
    def peak_at(self) -> float:
        """Axis value of the largest metric value."""
        return self.xs[max(range(len(self.ys)), key=lambda index: self.ys[index])]

    @property
    def better(self) -> str:
        """Good direction of the metric."""
        return lexicon.metrics()[self.metric].better

    def cliff(self) -> tuple[float, float] | None:
        """Axis value in front of and behind the one step that carries the loss; ``None`` without such a step."""
        shapes = lexicon.shapes()
        sign = {"low": 1.0, "high": -1.0}.get(self.better)
        if sign is None or any(value <= 0 for value in self.ys):
            return None
        steps = [sign * math.log(b / a) for a, b in zip(self.ys, self.ys[1:], strict=False)]
        if not steps:
            return None
        worst = max(range(len(steps)), key=lambda index: steps[index])
        total = sum(step for step in steps if step > 0)
        # A latency that grows in proportion to the load has no cliff: compare with what the axis itself did.
        grown = math.log(self.xs[worst + 1] / self.xs[worst]) if self.xs[worst] > 0 else 0.0
        excess = steps[worst] - (grown if self.better == "low" else 0.0)
        if excess >= math.log(shapes.cliff) * 0.999 and steps[worst] >= shapes.cliff_share * total:
            return self.xs[worst], self.xs[worst + 1]
        return None


def of_observations(found: Iterable[Observation]) -> list[Sweep]:
    """Sweeps among observations of one part: at least three axis values, everything else equal."""
    groups: dict[tuple[str, ...], list[Observation]] = {}
    for item in found:
        if item.norm or item.extra:
            continue
        for dimension in DIMENSIONS:
            if item.number(dimension) is None:
                continue
            rest = sorted(
                f"{kind}={mark.label()}"
                for kind, mark in item.conditions.items()
                if kind not in (dimension, "label", "side", "setting") and not (dimension == "gpus" and kind == "gpu")
            )
            groups.setdefault((dimension, item.group, item.metric, item.stat, item.per, *rest), []).append(item)
    out: list[Sweep] = []
    for (dimension, group, metric, stat, _, *rest), items in groups.items():
        points: dict[float, Observation] = {}
        for item in items[:MAX_POINTS]:
            points.setdefault(item.number(dimension) or 0.0, item)
        if len(points) < 3:
            continue
        xs = sorted(points)
        last = points[xs[-1]]
        label = ", ".join(part for part in rest if not part.startswith("context")) if rest else ""
        out.append(
            Sweep(dimension, metric, stat, xs, [points[x].value for x in xs], last.line, last.span, label, group=group)
        )
    return out
