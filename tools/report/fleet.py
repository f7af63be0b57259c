"""Replicas or ranks beside each other in a person's table: who queues while another has room, whose pool is smaller.

Three layouts are read: one replica per column, one per row, and ``dp_rank=2 running=1 waiting=11`` lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, field

from tools.contract import Reading, Source
from tools.replicas import compared, waiting_beside_free
from tools.report.blocks import cells, table_mode

MAX_REPLICAS = 512
# Lines without a figure of a replica after which a table is over.
_PATIENCE = 2
_KIND = r"(?P<kind>dp[ _-]?ranks?|ranks?|dp|engines?|replicas?|workers?|instances?|pods?|nodes?|servers?|hosts?|backends?|副本|实例|节点)"
_NAME = re.compile(
    rf"^\W*{_KIND}[ _#:-]?(?P<id>[A-Za-z]?\d{{1,4}}|[A-Za-z])\W*$|^\W*(?P<short>(?:dp|r|w|n)\d{{1,3}})\W*$", re.I
)
_HEAD = re.compile(rf"^\W*{_KIND}(?:[ _](?:id|name|rank|index))?\W*$", re.I)
_KEYED = re.compile(rf"(?<![\w.]){_KIND}\s?[=:]?\s?(?P<id>\d{{1,4}})(?![\d.:])", re.I)
_METRICS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("capacity", re.compile(r"(?:kv|cache)[\w ]*(?:size|capacity)|\bkv tokens|kv\s?(?:容量|大小)", re.I)),
    ("kv", re.compile(r"\bkv\b|cache us|token[ _]usage|kv\s?占用", re.I)),
    (
        "waiting",
        re.compile(r"waiting|queued?\b|queue_reqs|queue[ _-](?:len|depth|size)|pending|backlog|等待|排队", re.I),
    ),
    ("running", re.compile(r"running|in[ -]flight|active (?:requests|reqs)|outstanding|运行", re.I)),
)
_COUNT = re.compile(r"(?P<key>[\w.#-]*(?:running|queue|waiting|pending)[\w.-]*)\s?[=:]\s?(?P<n>\d+)", re.I)
# Of a range ("9-12") the lower end.
_NUMBER = re.compile(r"(?P<n>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?:\s?[-–]\s?\d+(?:\.\d+)?)?\s?(?P<percent>%)?")
_RANKS = re.compile(r"rank|^dp", re.I)


class _Fleet(Struct):
    """What one table says: metric → name → value, and the line that a name or the table stands on."""

    values: dict[str, dict[str, float]] = field(default_factory=dict)
    lines: dict[str, tuple[int, str]] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)

    def put(self, metric: str, name: str, value: float, line: tuple[int, str]) -> None:
        if len(self.lines) < MAX_REPLICAS or name in self.lines:
            self.values.setdefault(metric, {}).setdefault(name, value)
            self.lines.setdefault(name, line)


def readings(ref: str, lines: Iterable[tuple[int, str]]) -> Iterator[Reading]:
    """``replicas.*`` of the first table that sets two replicas or more beside each other. A person's words."""
    held = list(lines)
    for fleet in (_keyed(held), *_tables(held)):
        told = list(_facts(ref, fleet))
        if told:
            yield from told
            return


def _facts(ref: str, fleet: _Fleet) -> Iterator[Reading]:
    waiting, running = fleet.values.get("waiting", {}), fleet.values.get("running", {})
    names = waiting.keys() | running.keys()
    if len(names) < 2:
        return
    loads = {name: running.get(name, 0.0) + waiting.get(name, 0.0) for name in names}
    top = max(sorted(loads), key=lambda name: loads[name])
    number, text = fleet.lines[top]

    def make(fact: str, value: Any, how: str) -> Reading:
        source = Source(kind="words", ref=ref, line=number, span=text.strip()[:200])
        return Reading(fact=fact, value=value, source=source, method=how)

    yield make("replicas.count", len(loads), "replicas in the table somebody gives")
    yield make("replicas.are_ranks", all(_RANKS.search(kind) for kind in fleet.kinds), "what the table calls them")
    usage = fleet.values.get("kv", {})
    for row in compared(running, waiting, usage):
        yield make(*row)
    if not usage:
        # Nothing runs there and nothing waits: whatever its pool is, it has room.
        usage = {name: 0.0 for name in waiting if running.get(name) == 0.0 and waiting[name] == 0.0}
    if usage and len(waiting) > 1:
        seen, how = waiting_beside_free(waiting, usage)
        yield make("replicas.waiting_beside_free", seen, how)
    pools = [value for value in fleet.values.get("capacity", {}).values() if value > 0]
    if len(pools) > 1:
        yield make("replicas.pool_max_over_min", round(max(pools) / min(pools), 4), "largest ÷ smallest KV pool")


def _keyed(lines: list[tuple[int, str]]) -> _Fleet:
    """``dp_rank=2  num_running_reqs=1  num_queue_reqs=11``: a replica per line, its figures by name."""
    fleet = _Fleet()
    for number, text in lines:
        name = _KEYED.search(text)
        counts = list(_COUNT.finditer(text)) if name else []
        for found in counts:
            metric = _metric(found["key"])
            if name and metric in ("waiting", "running"):
                fleet.kinds.add(name["kind"].lower())
                fleet.put(metric, name["id"], float(found["n"]), (number, text))
    return fleet


def _tables(lines: list[tuple[int, str]]) -> Iterator[_Fleet]:
    for place in range(len(lines) - 1):
        mode = table_mode([text for _, text in lines[place : place + 3]])
        if mode not in ("md", "gap", ",", ";", "space"):
            continue
        head = cells(lines[place][1], mode)
        named = [cell for cell in head if _NAME.match(cell)]
        if len(named) >= 2:
            yield _by_column(head, lines[place + 1 :], mode)
        elif head and _HEAD.match(head[0]) and any(_metric(cell) for cell in head[1:]):
            yield _by_row(head, lines[place + 1 :], mode)


def _by_column(head: list[str], body: list[tuple[int, str]], mode: str) -> _Fleet:
    fleet = _Fleet()
    names = [(index, cell) for index, cell in enumerate(head) if _NAME.match(cell)]
    fleet.kinds = {_kind(cell) for _, cell in names}
    misses = 0
    for number, text in body:
        row = cells(text, mode)
        # A header without a cell above the labels is one cell short.
        shift = 1 if names[0][0] == 0 else 0
        metrics = [_metric(piece) for piece in re.split(r"\s?/\s?|,\s?", row[0])] if row else []
        read = False
        for index, name in names if any(metrics) else []:
            pieces = list(_NUMBER.finditer(row[index + shift])) if index + shift < len(row) else []
            for metric, found in zip(metrics, pieces, strict=False):
                value = _value(metric, found)
                if value is not None:
                    fleet.put(metric, name, value, (number, text))
                    read = True
        misses = 0 if read else misses + 1
        if misses > _PATIENCE:
            break
    return fleet


def _by_row(head: list[str], body: list[tuple[int, str]], mode: str) -> _Fleet:
    fleet = _Fleet()
    found_head = _HEAD.match(head[0])
    fleet.kinds = {found_head["kind"].lower() if found_head else ""}
    metrics = [_metric(cell) for cell in head]
    for number, text in body:
        row = cells(text, mode)
        if len(row) != len(head) or not row[0]:
            if set(text.strip()) <= set("-=|: +"):
                continue
            break
        for metric, cell in list(zip(metrics, row, strict=True))[1:]:
            found = _NUMBER.search(cell)
            value = _value(metric, found) if found else None
            if value is not None:
                fleet.put(metric, row[0], value, (number, text))
    return fleet


def _metric(text: str) -> str:
    return next((metric for metric, pattern in _METRICS if pattern.search(text)), "")


def _value(metric: str, found: re.Match[str]) -> float | None:
    """A count, tokens, or a fraction; a percentage that is no use of KV, and a bare KV figure, are something else."""
    value = float(found["n"].replace(",", ""))
    if metric == "kv":
        return value / 100 if found["percent"] else value if value <= 1 else None
    return value if metric and not found["percent"] else None


def _kind(cell: str) -> str:
    found = _NAME.match(cell)
    return ((found["kind"] or found["short"]) if found else "").lower()
