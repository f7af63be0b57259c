"""Blocks of device work from an nsys export, and the sums over them."""

from __future__ import annotations

from typing import Any, NamedTuple

from tools.profile import classify
from tools.profile.model import Kernel, Profile

KERNEL, COPY, SET, GRAPH = 0, 1, 2, 3


class Events(NamedTuple):
    """A block of device work sorted by start: ns, ns, event kind, device slot, name id, graph flag."""

    start: Any
    end: Any
    kind: Any
    slot: Any
    name: Any
    graph: Any


class Totals:
    """Sums per kernel name, fed block by block."""

    def __init__(self) -> None:
        self.count: dict[int, int] = {}
        self.total: dict[int, float] = {}
        self.in_graph = 0
        self.kernels = 0
        self.opaque = 0.0
        self.work = 0.0

    def add(self, events: Events) -> None:
        """Add one block."""
        import numpy as np

        kernel = events.kind == KERNEL
        names, length = events.name[kernel], (events.end - events.start)[kernel]
        counts = np.bincount(names)
        sums = np.bincount(names, weights=length)
        for i in np.flatnonzero(counts):
            key = int(i)
            self.count[key] = self.count.get(key, 0) + int(counts[i])
            self.total[key] = self.total.get(key, 0.0) + float(sums[i])
        self.in_graph += int(events.graph[kernel].sum())
        self.kernels += len(names)
        graph = events.kind == GRAPH
        self.opaque += float((events.end - events.start)[graph].sum())
        self.work += float(sums.sum())

    def into(self, profile: Profile, names: dict[int, str]) -> None:
        """Write kernels and graph shares into the profile."""
        merged: dict[str, Kernel] = {}
        for key, count in self.count.items():
            name = names.get(key, f"unnamed kernel {key}")
            row = merged.setdefault(name, Kernel(name, classify.kernel_class(name), 0, 0.0))
            row.count += count
            row.total += self.total[key]
        profile.kernels = sorted(merged.values(), key=lambda k: -k.total)
        profile.kernel_total = self.work
        if self.kernels:
            profile.graph_share = self.in_graph / self.kernels if self.in_graph or not self.opaque else None
            profile.listed = 1.0
        if self.opaque:
            profile.graph_opaque = self.opaque / (self.opaque + self.work)
