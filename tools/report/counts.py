"""Counts that stand before their noun: "240 requests waiting", "16 running", "排队 240". The tables read the rest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tools.contract import Reading, Source

_EN = re.compile(
    r"(?<![\w.:,/=-])(?P<n>\d{1,6})\+?\s+(?:(?:more|other)\s+)?(?:(?:requests?|reqs?|sequences?|seqs?)\s+)?(?:(?:are|were|is|sit|in|still|remain|remains|stay|stays|stuck|keep|kept|left|only)\s+)*"
    r"(?:(?P<waiting>waiting|queued|pending|in queue)|(?P<running>running))\b(?!\s*(?:[:=]|instances?|replicas?|seconds?|min))",
    re.I,
)
# "pending: 3 reqs" of a status line
_KEY = re.compile(
    r"\b(?:(?P<waiting>pending|waiting|queued)|(?P<running>running)):\s?(?P<n>\d{1,6})\s(?:reqs?|requests?)\b", re.I
)
_NONE = re.compile(
    r"\b(?P<waiting>(?:waiting|queued|pending)[- ]requests?)(?: count| number)? (?:remains|stays|is|stayed|remained)(?: always)?(?: at)? (?P<n>zero)\b",
    re.I,
)
_ZH = re.compile(
    r"(?:(?P<waiting>排队|等待)|(?P<running>运行中?))(?:的?请求)?(?:数|队列)?(?:为|有|达|约|:|：)?\s*(?P<n>\d{1,6})\s*(?:个|条|请求)"
)
_FACTS = {"waiting": ("said.waiting", "queue.waiting.max"), "running": ("said.running", "queue.running.max")}


def counts(ref: str, lines: Iterable[tuple[int, str]], have: set[str]) -> Iterator[Reading]:
    """``said.waiting``/``said.running`` and the queue facts for the first such count; facts in ``have`` are left alone.

    One count said is the highest anybody named, not a series: only ``.max`` facts are given.
    """
    done = set(have)
    for number, line in lines:
        for found in (*_EN.finditer(line), *_KEY.finditer(line), *_NONE.finditer(line), *_ZH.finditer(line)):
            kind = "waiting" if found.groupdict().get("waiting") else "running"
            said, fact = _FACTS[kind]
            if said in done:
                continue
            done.add(said)
            source = Source(kind="words", ref=ref, line=number, span=found[0])
            for name in (said, fact):
                yield Reading(
                    fact=name,
                    value=0.0 if found["n"] == "zero" else float(found["n"]),
                    source=source,
                    method="a count somebody states",
                )
