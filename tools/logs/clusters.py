"""Groups warning and error lines by template, so that a line nobody knows is counted and never dropped."""

from __future__ import annotations

import re

from msgspec import Struct

MAX_CLUSTERS = 400
SAMPLE = 300

_QUOTED = re.compile(r"'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`")
_PATH = re.compile(r"(?:https?:/)?(?:/[\w.@+%~-]+){2,}/?")
_HEX = re.compile(r"\b(?=[0-9a-fA-F-]{8,}\b)(?=[^\W_]*\d)[0-9a-fA-F][0-9a-fA-F-]{7,}\b|\b0x[0-9a-fA-F]+\b")
_NUMBER = re.compile(r"[-+]?\d+(?:[.,:]\d+)*")


def template(text: str) -> str:
    """The line with quoted words, paths, identifiers and numbers replaced: equal templates are one kind of line."""
    out = _QUOTED.sub("'…'", text[:600])
    out = _PATH.sub("/…", out)
    out = _HEX.sub("…", out)
    return _NUMBER.sub("#", out)[:SAMPLE].strip()


class Cluster(Struct):
    """One kind of line: how often, where first, an example, which processes, whether a signature knows it."""

    key: str
    level: str
    text: str
    first_line: int
    last_line: int
    count: int = 1
    processes: set[str] = set()
    phase: str = ""


class Clusters:
    """Clusters of one level group (warnings or errors); past 400 kinds, lines are counted in ``overflow``."""

    def __init__(self) -> None:
        self._by_key: dict[str, Cluster] = {}
        self.total = 0
        self.overflow = 0

    def add(self, text: str, level: str, line: int, process: str, phase: str) -> Cluster | None:
        """Count a line; the cluster it belongs to, ``None`` when the table is full."""
        self.total += 1
        key = template(text)
        cluster = self._by_key.get(key)
        if cluster is None:
            if len(self._by_key) >= MAX_CLUSTERS:
                self.overflow += 1
                return None
            cluster = Cluster(
                key=key, level=level, text=text[:SAMPLE], first_line=line, last_line=line, processes=set(), phase=phase
            )
            self._by_key[key] = cluster
        else:
            cluster.count += 1
            cluster.last_line = line
        if process and len(cluster.processes) < 64:
            cluster.processes.add(process)
        return cluster

    def again(self, cluster: Cluster, line: int) -> None:
        """Another line of a known cluster."""
        self.total += 1
        cluster.count += 1
        cluster.last_line = line

    def most(self, limit: int = 40) -> list[Cluster]:
        """The most frequent kinds, ties by first appearance."""
        return sorted(self._by_key.values(), key=lambda c: (-c.count, c.first_line))[:limit]

    def __len__(self) -> int:
        return len(self._by_key)
