"""Where a told first-token time was taken: at the client or in the engine. Told together, their ratio is a fact.

What the engine counts ends at its own door; what a user waits for on top lies in the client, the gateway or the front.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from tools.contract import Reading
from tools.report import emit
from tools.report.document import Document
from tools.report.observe import Observation

_ENGINE = re.compile(
    r"\b(?:vllm|sglang):\w+|\b(?:engine|server|backend|pod|vllm|sglang)(?:'s|s)?[- ](?:own |side |internal |reported )"
    r"|\bengines?\b|\bserver (?=ttft|time to first|metrics?|histogram|logs?)|\bserver[- ]side\b|/metrics\b|\bhistograms?\b|\bprometheus\b"
    r"|\b(?:vllm|sglang) (?:itself )?(?:says|reports?|claims|shows|measures)\b|服务端|引擎(?:侧|自身)?",
    re.IGNORECASE,
)
_CLIENT = re.compile(
    r"\bclients?\b|\b(?:users?|callers?|customers?) (?:see|wait|feel|get|report|observe)\w*|\bfrom outside\b|\bend[- ]to[- ]end\b"
    r"|\b(?:through|via|behind|at|over) (?:the |our |an? )?(?:\w+ )?(?:gateway|proxy|ingress|router|load balancer)\b"
    r"|\b(?:curl|browser|app|frontend|load generator|k6|locust)\b|客户端|用户(?:侧|端)?|业务侧|经(?:过)?网关",
    re.IGNORECASE,
)


# So many first-token times are looked at; a longer list is a table, which names its columns.
MOST = 64


def _marks(text: str) -> list[tuple[int, str]]:
    """Where a sentence names a side, from left to right."""
    found = [(m.start(), "engine") for m in _ENGINE.finditer(text)]
    return sorted(found + [(m.start(), "client") for m in _CLIENT.finditer(text)])


def _side(marks: list[tuple[int, str]], start: int) -> str:
    """``client``, ``engine`` or nothing: the nearest word in front of the figure, else the nearest behind it."""
    at = bisect_right(marks, (start, "~"))
    if at:
        return marks[at - 1][1]
    return marks[0][1] if marks else ""


def readings(doc: Document) -> Iterator[Reading]:
    """``client.ttft.over_server`` and ``client.ttft.extra_s`` when both sides are told once or more, without a contradiction.

    Of all pairs of one statistic the nearest are set against each other: the claim is the least that was said.
    """
    told = [item for item in doc.found if item.metric == "ttft" and not item.norm and item.value > 0][:MOST]
    if len(told) < 2:
        return
    sides: dict[str, list[Observation]] = {"client": [], "engine": []}
    marked: dict[int, list[tuple[int, str]]] = {}
    for item in told:
        for number, parsed in enumerate(doc.parsed):
            text = parsed.sentence.text
            at = text.find(item.span)
            if at >= 0:
                marks = marked[number] if number in marked else marked.setdefault(number, _marks(text))
                side = _side(marks, at + len(item.span) // 2)
                if side:
                    sides[side].append(item)
                break
    pairs = [
        (client, engine)
        for client in sides["client"]
        for engine in sides["engine"]
        # A p99 is never set against a mean; an untold statistic may be either.
        if not client.stat or not engine.stat or client.stat == engine.stat
    ]
    if not pairs:
        return
    client, engine = min(pairs, key=lambda pair: pair[0].value / pair[1].value)
    if client.value <= engine.value:
        return
    how = f"told: {client.value:g} s at the client, {engine.value:g} s in the engine"
    source = emit.words(doc.part.name, client.line, client.span)
    caveats = () if client.stat == engine.stat != "" else ("the statistic of one side or both is not told",)
    for fact, value, unit in (
        ("client.ttft.over_server", client.value / engine.value, ""),
        ("client.ttft.extra_s", client.value - engine.value, "s"),
    ):
        yield Reading(fact=fact, value=round(value, 4), unit=unit, source=source, method=how, caveats=caveats)
