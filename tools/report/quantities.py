"""Numbers with units in running text: durations, rates, percentages, counts, ranges, comparators, English and Chinese."""

from __future__ import annotations

import itertools
import re
from functools import lru_cache

from msgspec import Struct

from tools.report import lexicon

_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.#@])(?<![A-Za-z_][-/])(?<![A-Za-z0-9_][.:])(?P<sign>(?:(?<![%％\d])[-−+])?(?=[\d.]))?"
    r"(?P<num>\d{1,3}(?:[,，'\u202f]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
    r"(?P<plus>\+(?!\d))?(?P<mult>\s?(?:[kK](?=[-\s,.;:)/]|$|(?=tok)|[\u3400-\u9fff])|M(?=\s(?:tok|par)|\b(?![-\w]))|million\b|thousand\b|千|万|亿))?(?P<odd>\s?多(?=\s?(?:秒|毫秒|分钟|小时|天|个|条|倍|张|块|台|token)))?"
)
_MULTIPLIER = {"k": 1e3, "m": 1e6, "million": 1e6, "thousand": 1e3, "千": 1e3, "万": 1e4, "亿": 1e8}
_RANGE = re.compile(r"^\s?(?:-|–|—|~|～|to|至|到|\.\.\.?|or|and)\s?$", re.IGNORECASE)
_ARROW = re.compile(r"^\s?(?:->|→|=>|➜|⇒|-->|——>|-＞)\s?$")
_TO = re.compile(
    r"^\s?(?:to|down to|up to|升到|降到|掉到|涨到|变成|变为|到)\s?(?:about |around |only |just |roughly |~|约)?$",
    re.IGNORECASE,
)
# Levels between two bounds; a difference between two levels is none.
_BETWEEN = re.compile(
    r"(?P<apart>\b(?:differ\w*|gaps?|ratio|factor|cho\w+|compar\w+)\s)?\bbetween\s(?:about |around |roughly |some |~)?$",
    re.IGNORECASE,
)
_FROM = re.compile(
    r"(?:\bfrom|从|由)\s?(?:about |around |roughly |approximately |~|约|a |an |some )?(?:[\w\s]{0,24}\b(?:of|at)\s)?$",
    re.IGNORECASE,
)
_INSTEAD = re.compile(
    r"^\s?(?:[,(]\s?)?(?:instead of|rather than|as opposed to|versus|vs\.?|against|compared (?:to|with)|down from|up from"
    r"|where it (?:was|had been)|was|it was|before:?|previously|formerly|used to be|而不是|对比|相比|原来是?|之前是?)\s?"
    r"(?:about |around |the |roughly |~|约|only )?$",
    re.IGNORECASE,
)
# "dropped to 10 tok/s from 30": the end of the change is told first.
_FALLEN = re.compile(r"\b\w+\s(?:down |up )?to\s(?:about |around |only |just |roughly |~)?$", re.IGNORECASE)
MAX_GAP = 40


class Quantity(Struct):
    """A number as said. ``value`` is in the canonical ``unit``; a range keeps ``low`` and ``high``.

    ``dim``: seconds, tokens_per_s, fraction, … , ``count`` (with ``noun``) or ``plain`` (no unit at all).
    ``cmp``: ``>`` or ``<`` where the person only bounded it. ``per``: what a rate is counted per (gpu, user, step …).
    """

    start: int
    stop: int
    value: float
    dim: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    cmp: str = ""
    approx: bool = False
    noun: str = ""
    raw: float = 0.0
    per: str = ""
    signed: bool = False
    glued: bool = False
    kilo: float = 1.0


class Change(Struct, frozen=True):
    """Two quantities of one kind set against each other: ``before`` and ``after`` in the writer's order of events."""

    before: Quantity
    after: Quantity
    how: str


@lru_cache(maxsize=1)
def _unit_pattern() -> list[tuple[re.Pattern[str], str, str, float]]:
    out = []
    for unit in lexicon.units():
        body = "|".join(unit.words)
        flags = re.RegexFlag(0) if unit.case else re.IGNORECASE
        out.append((re.compile(rf"\s?-?(?:{body})", flags), unit.dim, unit.unit, unit.scale))
    return out


_PER = re.compile(
    r"^\s?(?:(?:median|mean|average|avg|p\d\d)\s)?(?:/|per\s|a\s|each\s|每\s?)\s?(gpu|card|user|request|stream|client|session|step|op(?:eration)?|token|iteration|layer|node|replica|卡|用户)\b",
    re.IGNORECASE,
)


def find(text: str) -> list[Quantity]:
    """All quantities of a sentence from left to right. ``text`` has names and versions blanked out already."""
    found: list[Quantity] = []
    for match in _NUMBER.finditer(text):
        item = _read(text, match)
        if item is not None:
            found.append(item)
    found.extend(_words(text, found))
    found.sort(key=lambda item: item.start)
    return _ranges(text, found)


def _read(text: str, match: re.Match[str]) -> Quantity | None:
    digits = match["num"].replace(",", "").replace("，", "").replace("'", "").replace("\u202f", "")
    try:
        value = float(digits)
    except ValueError:
        return None
    if value in (float("inf"), float("-inf")):
        return None
    factor = _MULTIPLIER.get((match["mult"] or "").strip().lower(), 1.0)
    value *= factor
    if match["sign"] and match["sign"] in "-−":
        value = -value
    stop = match.end()
    item = Quantity(match.start(), stop, value, "plain", raw=value, signed=bool(match["sign"]), kilo=factor)
    if match["plus"] or match["odd"]:
        item.cmp = ">"
    for pattern, dim, unit, scale in _unit_pattern():
        hit = pattern.match(text, stop)
        if hit and not (factor != 1.0 and dim == "seconds"):
            item.dim, item.unit, item.value, item.stop = dim, unit, value * scale, hit.end()
            break
    tail = text[item.stop : item.stop + 1]
    if item.dim == "plain":
        if tail.isascii() and tail.isalpha():
            return None
        _noun(text, item)
    elif item.dim == "tokens":
        item.noun = text[stop : item.stop].strip(" -").lower()
    per = _PER.match(text[item.stop : item.stop + 24])
    if per:
        # A time per token is a metric of its own, not a time counted per something.
        own = per[1].lower() == "token" and item.dim == "seconds"
        item.per = (
            ""
            if own
            else {"card": "gpu", "卡": "gpu", "用户": "user", "operation": "op"}.get(per[1].lower(), per[1].lower())
        )
        item.stop += per.end()
    _bounds(text, item)
    item.glued = text[item.stop : item.stop + 1] == "-" and text[item.stop + 1 : item.stop + 2].isalpha()
    return item


_NO_NOUN = re.compile(r"(?:per|each|every|an?|in|on|at|and|or|to|for|with|from)\s", re.IGNORECASE)


def _noun(text: str, item: Quantity) -> None:
    window = text[item.stop : item.stop + MAX_GAP]
    lead = re.match(r"\s?-?", window)
    offset = lead.end() if lead else 0
    # "960 per card" counts no cards.
    if _NO_NOUN.match(window, offset):
        return
    hit = lexicon.noun_pattern().match(window, offset)
    if hit and hit.lastgroup:
        item.dim, item.noun = "count", hit.lastgroup
        item.stop += hit.end()


@lru_cache(maxsize=1)
def _number_words() -> re.Pattern[str]:
    english = "|".join(sorted(lexicon.names().numbers, key=len, reverse=True))
    chinese = "|".join(sorted(lexicon.names().numbers_zh, key=len, reverse=True))
    return re.compile(
        rf"\b(?P<en>{english})\b|(?<![零一二三四五六七八九十百千万点第\d])(?P<zh>{chinese})(?P<odd>多)?(?=\s?(?:[个张块台路卡条次倍]|秒|分钟))",
        re.IGNORECASE,
    )


_HALF = re.compile(
    r"(?<!every )(?<!for )(?<!after )(?<!within )(?<!over )(?<!last )(?<!past )(?<!and )\bhalf an?\s(?P<unit>second|minute|hour)\b|半个?(?P<zh>秒|分|小时)",
    re.IGNORECASE,
)
_HALVES = {"second": 0.5, "minute": 30.0, "hour": 1800.0, "秒": 0.5, "分": 30.0, "小时": 1800.0}


def _words(text: str, found: list[Quantity]) -> list[Quantity]:
    """Number words in front of a countable noun or unit (``two GPUs``, ``ten seconds``, ``两张卡``)."""
    out = []
    for match in _number_words().finditer(text):
        if any(item.start <= match.start() < item.stop for item in found):
            continue
        word = (match["en"] or match["zh"]).lower()
        value = lexicon.names().numbers.get(word) or lexicon.names().numbers_zh.get(word) or 0.0
        item = Quantity(match.start(), match.end(), value, "plain", raw=value, cmp=">" if match["odd"] else "")
        _noun(text, item)
        if item.dim == "plain":
            for pattern, dim, unit, scale in _unit_pattern():
                hit = pattern.match(text, match.end())
                long = hit is not None and hit.end() - match.end() > 3
                if hit and dim in ("seconds", "factor", "tokens") and (long or (match["zh"] and dim == "seconds")):
                    item.dim, item.unit, item.value, item.stop = dim, unit, value * scale, hit.end()
                    break
        if item.dim != "plain":
            _bounds(text, item)
            out.append(item)
    for match in _HALF.finditer(text):
        value = _HALVES[(match["unit"] or match["zh"]).lower()]
        item = Quantity(match.start(), match.end(), value, "seconds", "s", raw=value, approx=True)
        _bounds(text, item)
        out.append(item)
    return out


def _bounds(text: str, item: Quantity) -> None:
    before = text[max(0, item.start - 24) : item.start]
    near = before[-14:]
    if re.search(
        r"(?:>|≥|>=|\b(?:over|above|more than|greater than|exceeding|at least|beyond)|超过|高于|大于|至少|多于)\s?$",
        before,
        re.I,
    ):
        item.cmp = ">"
    elif re.search(
        r"(?:<|≤|<=|\b(?:under|below|less than|fewer than|at most|up to|within|no more than)|不到|低于|小于|少于|最多|不足)\s?$",
        before,
        re.I,
    ):
        item.cmp = "<"
    if re.search(
        r"(?:~|≈|\b(?:about|around|roughly|approximately|approx\.?|nearly|almost|some|circa)|约|大约|大概)\s?$",
        near,
        re.I,
    ) or (re.match(r"\s?(?:or so\b|左右|上下)", text[item.stop : item.stop + 8], re.I)):
        item.approx = True


def _ranges(text: str, found: list[Quantity]) -> list[Quantity]:
    """Join ``94-98 %`` and ``15 to 40 tokens/s``; leave ``from A to B`` as two quantities."""
    out: list[Quantity] = []
    for item in found:
        last = out[-1] if out else None
        if (last is not None and item.dim not in ("plain",)) or (
            last is not None and last.dim == "plain" and item.dim == "plain"
        ):
            assert last is not None
            link = text[last.stop : item.start]
            words_link = _RANGE.match(link)
            tight = link.strip() in ("-", "–", "—", "~", "～", "至", "to", "到", "...", "..")
            bounds = _BETWEEN.search(text[max(0, last.start - 32) : last.start])
            between = link.strip() == "and" and item.dim != "count" and bounds is not None and not bounds["apart"]
            plain = last.dim == "plain" and last.noun == ""
            same = last.dim == item.dim and last.dim != "plain"
            if (
                words_link
                and (tight or between)
                and (plain or same)
                and last.low is None
                and last.raw < item.raw
                and not last.signed
                and not (
                    link.strip() in ("to", "到", "至") and _FROM.search(text[max(0, last.start - 40) : last.start])
                )
                and not (item.dim == "plain" and link.strip() in ("to", "...", "..") and not between)
            ):
                scale = item.value / item.raw if item.raw else 1.0
                low = last.raw * scale if plain else last.value
                # "1.1 to 1.6 K": the multiplier behind counts for both ends.
                if plain and last.kilo == 1.0 < item.kilo and last.raw * item.kilo < item.raw:
                    low *= item.kilo
                item.low, item.high = low, item.value
                item.value = (low + item.value) / 2
                item.approx = item.approx or last.approx
                item.start = last.start
                out[-1] = item
                continue
        out.append(item)
    return out


def changes(text: str, found: list[Quantity]) -> list[Change]:
    """Explicit comparisons between neighbours: ``from A to B``, ``A → B``, ``B instead of A``, ``B (was A)``."""
    out: list[Change] = []
    for left, right in itertools.pairwise(found):
        link = text[left.stop : right.start]
        if len(link) > MAX_GAP:
            continue
        first, second = _same_unit(left, right)
        if first is None or second is None:
            continue
        if _ARROW.match(link):
            out.append(Change(first, second, "arrow"))
        elif _FROM.search(text[max(0, left.start - 44) : left.start]) and _TO.search(link[-18:]):
            out.append(Change(first, second, "from-to"))
        elif _FROM.fullmatch(link.lstrip()) and _FALLEN.search(text[max(0, left.start - 32) : left.start]):
            out.append(Change(second, first, "to-from"))
        elif _INSTEAD.match(link):
            out.append(Change(second, first, "instead"))
        elif (
            re.match(r"^[\s,]*(?:while|and)?\s*$", link) is None
            and _TO.match(link)
            and re.search(
                r"(?:went|goes|moved|changed|rose|rises|fell|falls|drops?|dropped|jump(?:s|ed)?|grew|grows|increased?|decreased?|climb(?:s|ed)?)\s?$",
                text[max(0, left.start - 24) : left.start],
                re.IGNORECASE,
            )
        ):
            out.append(Change(first, second, "to"))
    return out


def _same_unit(left: Quantity, right: Quantity) -> tuple[Quantity | None, Quantity | None]:
    if left.dim == right.dim:
        return left, right
    if left.dim == "plain" and right.dim not in ("plain", "count"):
        scale = right.value / right.raw if right.raw else 1.0
        return _with(left, right, scale), right
    if right.dim == "plain" and left.dim not in ("plain", "count"):
        scale = left.value / left.raw if left.raw else 1.0
        return left, _with(right, left, scale)
    return None, None


def _with(item: Quantity, other: Quantity, scale: float) -> Quantity:
    return Quantity(
        item.start,
        item.stop,
        item.raw * scale,
        other.dim,
        other.unit,
        cmp=item.cmp,
        approx=item.approx,
        raw=item.raw,
        per=other.per,
    )
