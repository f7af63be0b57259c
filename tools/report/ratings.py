"""Figures that look like readings and are none: what the equipment is rated for, and the rate that was asked for."""

from __future__ import annotations

import re

from tools.report.quantities import Quantity

_RATED = re.compile(r"\s?(?:psu|power suppl\w+|supply|adapter|ups|tdp|rated|rating|circuit|breaker)\b", re.IGNORECASE)
_NOT_IN_FORCE = re.compile(
    r"\b(?:default|max(?:imum)?|min(?:imum)?)(?: limit)?\s?(?:=|:|is|of|was)?\s?$", re.IGNORECASE
)
_HOST_CLOCK = re.compile(
    r"\b(?:cpus?|xeon|epyc|ryzen|threadripper|core i\d|i[3579]-\d+\w*)\b[^;,]{0,40}$", re.IGNORECASE
)
_MEMORY_SPEED = re.compile(
    r"(?:\b(?:unified|hbm\d?e?|dram|vram|memory|swap|disk|nvme|ssd|storage)\b[^;,.:]{0,24},?\s?|\u00b7\s?\(?(?:about |~)?)$",
    re.IGNORECASE,
)


def of_equipment(text: str, item: Quantity) -> bool:
    """A figure of the equipment, not a reading of the GPU: a power supply, a default limit, a CPU clock, a memory's speed."""
    before = text[max(0, item.start - 64) : item.start]
    if item.dim == "watts":
        limit = re.search(r"\blimit\b", before, re.IGNORECASE) and _NOT_IN_FORCE.search(before)
        return bool(limit or _RATED.match(text, item.stop))
    if item.dim == "hertz":
        return bool(_HOST_CLOCK.search(before))
    if item.dim == "bytes_per_s":
        return bool(_MEMORY_SPEED.search(before) and not re.search(r"bandwidth|带宽|\bmbu\b", before, re.IGNORECASE))
    return False


_ASKED = re.compile(
    r"\b(?:offer(?:ed|s|ing)?|ask(?:ed|s|ing)?|request(?:ed)? rate|request-rate|arriv\w+|inject\w*|send(?:s|ing)?|sent|submit\w*|fir(?:e|ing)|"
    r"constant(?! at)|steady(?! at)|fixed|poisson|incoming|target(?:ed)?|(?:^|the )load(?: is| of)?|take)\b[^.;,\d]{0,24}(?:\d[\d.]*\s?(?:to|and|-|–|,)\s?)?$|发送|到达率|请求速率",
    re.IGNORECASE,
)
_ASKED_BEHIND = re.compile(
    r"\s?(?:offered|asked|arriv\w+|requested|incoming|of (?:load|traffic)|load\b)", re.IGNORECASE
)
_SERVED = re.compile(r"(?:throughput|serv\w+|complet\w+|finish\w*|achiev\w+|吞吐|完成)[^.;,]{0,32}$", re.IGNORECASE)
# "no difference between 100 and 1000 rps": the loads that were tried.
_TRIED = re.compile(
    r"\b(?:differ\w*|same|flat|every|any)\b[^.;,]{0,24}\b(?:between|from)\s[\d.]+\s?(?:to|and|-)\s?$", re.IGNORECASE
)
_AT_RATE = re.compile(r"(?P<verb>\b\w+\s)?\b(?:at|beyond|past)\s(?:about |around |a |~)?$", re.IGNORECASE)
_REACHES = re.compile(
    r"throughput|through|runs?|stays?|stuck|sits?|peaks?|out|saturat\w+|flat|level\w*|caps?|capped|plateaus?|is|are|finish\w*|complet\w+|serv\w+",
    re.IGNORECASE,
)


def asked(text: str, item: Quantity, timed: bool) -> bool:
    """A rate of requests that was sent or set, not one that was served. ``timed``: the sentence tells of times as well."""
    before = text[max(0, item.start - 64) : item.start]
    sent, served = _ASKED.search(before), _SERVED.search(before)
    if sent and (served is None or served.start() < sent.start()):
        return True
    if served is None and (_TRIED.search(before) or _ASKED_BEHIND.match(text, item.stop)):
        return True
    at = _AT_RATE.search(before)
    return at is not None and timed and not (at["verb"] and _REACHES.fullmatch(at["verb"].strip()))
