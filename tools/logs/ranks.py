"""What the data-parallel ranks of one log look like beside each other: who queues while another has room."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from tools.contract import Reading, Source
from tools.logs.series import EngineSeries
from tools.replicas import compared, waiting_beside_free

_DP = re.compile(r"\bDP\d+")
# SGLang's decode side of a prefill/decode split queues in front of the allocation, not in the running queue.
_QUEUES = ("waiting", "prealloc_queue")


def _ranks(series: Iterable[EngineSeries]) -> dict[str, list[EngineSeries]]:
    """Series by data-parallel rank; tensor-parallel ranks of one engine say the same and are one."""
    out: dict[str, list[EngineSeries]] = {}
    for one in series:
        if one.engine == "all":
            continue
        found = _DP.search(one.engine)
        name = found[0] if found else one.engine if one.family.startswith("vllm") else "one"
        out.setdefault(name, []).append(one)
    return out


def _mean(group: list[EngineSeries], name: str) -> float | None:
    values = [one.all[name].mean for one in group if name in one.all]
    return max(values) if values else None


def readings(series: Iterable[EngineSeries], ref: str) -> Iterator[Reading]:
    """``replicas.*`` of a log that prints two ranks or more; loads are means over each rank's statistics lines."""
    ranks = _ranks(series)
    if len(ranks) < 2:
        return
    first = min(one.first_line for group in ranks.values() for one in group)

    def make(fact: str, value: Any, how: str) -> Reading:
        return Reading(fact=fact, value=value, source=Source(kind="file", ref=ref, line=first), method=how)

    queues = {name: sum(_mean(group, key) or 0.0 for key in _QUEUES) for name, group in ranks.items()}
    running = {name: _mean(group, "running") or 0.0 for name, group in ranks.items()}
    yield make("replicas.count", len(ranks), "ranks that print statistics lines")
    yield make("replicas.are_ranks", True, "ranks of one log")
    usage = {name: kv for name, group in ranks.items() if (kv := _mean(group, "kv")) is not None}
    for row in compared(running, queues, usage):
        yield make(*row)
    if len(usage) > 1:
        seen, how = waiting_beside_free(queues, usage)
        yield make("replicas.waiting_beside_free", seen, how)
