"""Figures that leave out what the figure before said: bare numbers that repeat a metric, a unit or a condition."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tools.report import conditions
from tools.report.attach import NUMERIC, groups
from tools.report.conditions import Condition
from tools.report.metrics import Mention
from tools.report.quantities import Quantity

if TYPE_CHECKING:
    from tools.report.observe import Parsed, Scope


_AT = re.compile(r"\b(?:at|for|with|on|in|to)\s(?:about |around |~)?$|[@(=]\s?$|在\s?$", re.IGNORECASE)


def aligned(parsed: Parsed, scope: Scope) -> list[tuple[Quantity, Condition]]:
    """``Behind the proxy: 65/68, 66/79, 158/473``: bare figures in the order of the conditions of the line before."""
    if len(scope.series) < 2 or parsed.mentions or scope.mention is None or scope.mention.unit is None:
        return []
    if any(item.dim != "plain" for item in parsed.quantities):
        return []
    found = groups(parsed.plain, parsed.quantities)
    if len(found) != len(scope.series):
        return []
    return [(item, condition) for group, condition in zip(found, scope.series, strict=True) for item in group]


def elliptic_mark(text: str, item: Quantity, marks: list[Condition], scope: Scope, found: list[Quantity]) -> bool:
    """``12 at 5``, ``32K 640 tok/s``: a bare number that repeats the kind of the last numeric condition."""
    kinds = [
        mark.kind for mark in marks if mark.number is not None and mark.kind in NUMERIC and mark.start < item.start
    ]
    kind = kinds[-1] if kinds else scope.numeric
    kilo = bool(re.search(r"[kK]$", text[item.start : item.stop]))
    if kilo and (kind == "context" or "context" in text.lower() or "prompt" in text.lower()):
        following = min((other.start for other in found if other.start >= item.stop), default=len(text))
        if following - item.stop > 3 and not _AT.search(text[max(0, item.start - 12) : item.start]):
            return False
        value = number_of(text[item.start : item.stop])
        marks.append(Condition("context", item.start, item.stop, text[item.start : item.stop], value))
        marks.sort(key=lambda mark: (mark.start, mark.stop))
        return True
    before = text[max(0, item.start - 12) : item.start]
    if not _AT.search(before) or re.search(r"\bto\s$|\($", before[-4:]):
        return False
    if not kind or item.raw != int(item.raw):
        return False
    marks.append(Condition(kind, item.start, item.stop, text[item.start : item.stop], item.value))
    marks.sort(key=lambda mark: (mark.start, mark.stop))
    return True


def number_of(text: str) -> float:
    """``32K`` as a context size."""
    return conditions.number(re.sub(r"[^\d.,]", "", text), "k" if re.search(r"[kK]", text) else None)


def elliptic_value(
    text: str, item: Quantity, values: list[tuple[Quantity, Mention]], scope: Scope, marks: list[Condition]
) -> Mention | None:
    """Bare numbers that repeat metric and unit of the figure before: ``12 at 5``, ``(README 64.4)``, ``others get 67``."""
    if values:
        last, mention = values[-1]
        dim = last.dim if last.dim != "plain" else (mention.unit or ("", 1.0))[0]
        scale = last.value / last.raw if last.raw and last.dim != "plain" else (mention.unit or ("", 1.0))[1]
        known = (mention.metric, dim, scale)
    else:
        known = scope.last
    if not known[0] or not known[1]:
        return None
    tail = text[item.stop : item.stop + 22]
    head = text[max(0, item.start - 44) : item.start]
    repeats = bool(values) and re.match(r"\s?(?:at|for|with|@|\(at)\s(?:concurrency\s)?\d", tail, re.IGNORECASE)
    bracket = bool(values) and re.search(r"\((?P<word>[\w\s:']{0,24})$", head) and re.match(r"\s?\)", tail)
    told = re.search(
        r"\b(?:gets?|got|reports?|reached?|reaches|sees?|saw|have|had|was|were|did|do|does|claims?|shows?|measured?)\s(?:about |around |roughly |only |just |~)?$",
        head,
        re.I,
    )
    sided = told and re.match(r"\s?(?:$|[.,;)]|on\b|with\b|for\b|here\b|before\b|now\b)", tail)
    named = (
        bool(values)
        and any(mark.number is not None and 0 <= item.start - mark.stop <= 2 for mark in marks)
        and re.match(r"\s?(?:$|[,.;，。)])", tail)
    )
    against = (
        bool(values)
        and re.search(r"\b(?:vs\.?|versus|against)\s(?:the |about )?[~≈]?\s?$", head, re.IGNORECASE)
        and any(mark.kind == "reference" and 0 <= mark.start - item.stop <= 2 for mark in marks)
    )
    if not (
        repeats
        or against
        or bracket
        or named
        or (sided and any(mark.kind in ("reference", "side") and mark.start < item.start for mark in marks))
    ):
        return None
    return Mention(known[0], item.start, item.start, "", (known[1], known[2]))
