"""Comparisons in words: ``11 % slower``, ``twice as long``, ``doubled``, ``unchanged``, and ``from A to B`` pairs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from tools.report import lexicon, metrics, quantities, spans
from tools.report.metrics import Mention
from tools.report.quantities import Quantity

if TYPE_CHECKING:
    from tools.report.observe import Parsed

_MORE = r"(?:more|higher|longer|larger|bigger|greater|up|increase[ds]?|increasing|rise[sn]?|rose|growth|grew|worse|over|above|高|长|多|大|上升|增加|提高|上涨|变长)"
_LESS = r"(?:less|lower|shorter|smaller|fewer|down|decrease[ds]?|drop(?:s|ped)?|fall(?:s|en)?|fell|reduc(?:ed|tion)|loss|lost|decline[sd]?|under|below|低|短|少|下降|降低|减少|下跌)"
_SLOW = (
    r"(?:slow(?:er|s|ed|down)?(?: down)?|slow-?down|regress(?:ion|ed)?|degrad(?:ation|ed)|penalty|worse|慢|退化|变慢)"
)
_FAST = r"(?:fast(?:er)?|quick(?:er)?|speed-?up|gain|improve(?:ment|d)?|better|快|提升|改善|变快)"
_BEHIND = re.compile(
    rf"^\s?(?:\w+\s){{0,2}}?(?P<word>(?P<slow>{_SLOW})|(?P<fast>{_FAST})|(?P<more>{_MORE})|(?P<less>{_LESS}))\b",
    re.IGNORECASE,
)
_BEHIND_ZH = re.compile(
    r"^\s?(?:左右|的)?(?:(?P<slow>变慢|退化|慢)|(?P<fast>提升|变快|快)|(?P<more>上升|增加|提高|上涨|更?高|更?长)|(?P<less>下降|降低|减少|下跌|更?低|更?少))"
)
_BEFORE = re.compile(
    rf"(?P<word>(?P<slow>slow(?:er|s|ed|down)?|slow-?down|regress(?:ed|ion)?|degrad(?:es|ed|ation)?|worsen(?:s|ed)?|慢了?|变慢了?)"
    rf"|(?P<fast>fast(?:er)?|improv(?:es|ed|ement)|speed-?up|快了?|提升了?|改善了?)"
    rf"|(?P<more>{_MORE}|increases|rises|grows|climb(?:s|ed)?|went up|goes up|gained?)|(?P<less>{_LESS}|decreases|declines|shrinks|went down|goes down|loses?|lost|cuts?|cost(?:s|ing)?|costs us))"
    r"(?:\s?(?:by|of|about|around|roughly|some|nearly|almost|approximately|over|up to|more than|~|约|了|another|an extra|us|is|was)){0,3}\s?$",
    re.IGNORECASE,
)
_TIMES = re.compile(
    r"^\s?(?:as (?P<as>slow|fast|long|high|much|many|large|low)|(?P<than>slower|faster|higher|longer|lower|larger|bigger|worse|better|more|less|shorter|smaller|slowdown|speed-?up|improvement|gain|increase|drop|reduction)|the (?P<the>time|latency|throughput|speed|ttft|tpot))",
    re.IGNORECASE,
)
_WORDS: tuple[tuple[str, float, str], ...] = (
    (
        r"\btwice (?:as|the)\b|\bdoubl(?:e|es|ed|ing)\b|\bdouble the\b|\b(?:a )?factor (?:of )?two\b|\btwofold\b|翻倍|翻了一倍|两倍|2\s?倍",
        2.0,
        "up",
    ),
    (r"\btripl(?:e|es|ed|ing)\b|\bthreefold\b|\bthree times (?:as|the)\b|三倍|3\s?倍", 3.0, "up"),
    (r"\bquadrupl(?:e|es|ed)\b|\bfour times (?:as|the)\b|\bfourfold\b|四倍", 4.0, "up"),
    (r"\b(?:an? )?order of magnitude\b|\bten times (?:as|the)\b|\btenfold\b|十倍", 10.0, "up"),
    (
        r"\bhalf (?:as|of|the|that|its|what|our)\b|\bhalf\b(?! (?:an? |the )?(?:minute|hour|second|day|night|dozen|million|gig|way|open|ready|done)\w*)|\bhalv(?:e|es|ed|ing)\b|减半|一半|腰斩",
        0.5,
        "down",
    ),
    (r"\b(?:a|one) third\b|三分之一", 1 / 3, "down"),
    (r"\b(?:a|one) quarter\b|四分之一", 0.25, "down"),
)
_WORD = [(re.compile(pattern, re.IGNORECASE), factor, way) for pattern, factor, way in _WORDS]
_SPEED = re.compile(
    r"\b(?:slow(?:er|s|ed)?|slowdown|fast(?:er)?|quick(?:er)?|speed(?:s|-up)?|long(?:er)?|time)\b|慢|快|速度",
    re.IGNORECASE,
)


_PLACES = ("over", "under", "above", "below", "up", "down", "lost")
_DIFFERS = re.compile(r"\b(?:differ(?:s|ed|ent)?|var(?:y|ies|ied)|scatter\w*)\b", re.IGNORECASE)
_LOST = re.compile(
    r"\b(?:lost|los(?:e|es|ing)|costs?|(?:drop(?:s|ped)?|down|fell|falls?|cut|reduced|less) by)\s(?:us )?(?:about |almost |nearly |over |some )?$",
    re.IGNORECASE,
)


class Ratio(Struct):
    """A stated change: ``ratio`` is after/before of ``metric`` (``speed`` when only slower or faster was said)."""

    metric: str
    ratio: float
    start: int
    stop: int
    how: str
    approx: bool = True
    before: float | None = None
    after: float | None = None
    unit: str = ""
    stat: str = ""


def ratio_spans(text: str, found: list[Quantity]) -> list[tuple[int, int]]:
    """Stretches whose number is a change, not a value (``11 % slower``)."""
    return [(item.start, item.stop) for item in found if _changed(text, item) is not None]


def _changed(text: str, item: Quantity) -> tuple[str, float] | None:
    """Direction and size of a relative figure: (``more|less|slow|fast``, fraction or factor)."""
    if item.dim == "factor":
        hit = _TIMES.match(text[item.stop : item.stop + 24])
        if hit:
            word = (hit["as"] or hit["than"] or hit["the"] or "").lower()
            way = {
                "slow": "slow",
                "slower": "slow",
                "worse": "slow",
                "slowdown": "slow",
                "fast": "fast",
                "faster": "fast",
                "better": "fast",
                "speedup": "fast",
                "speed-up": "fast",
            }
            if word in ("lower", "less", "shorter", "smaller", "drop", "reduction", "low"):
                return "xless", item.value
            return "x" + way.get(word, "more"), item.value
        back = _BEFORE.search(text[max(0, item.start - 40) : item.start])
        if back:
            return "x" + _way(back), item.value
        zh = re.search(r"(?P<slow>慢|变慢)了?$|(?P<fast>快|提升)了?$", text[max(0, item.start - 4) : item.start])
        if zh:
            return ("xslow" if zh["slow"] else "xfast"), item.value
        return None
    if item.dim != "fraction":
        return None
    after = text[item.stop : item.stop + 28]
    if re.match(r"\s?of\b(?! (?:throughput|speed|performance))", after):
        return None
    front = text[max(0, item.start - 44) : item.start]
    hit = _BEHIND.match(after) or _BEHIND_ZH.match(after)
    if (
        hit
        and not re.match(r"^\s?(?:of|for|util|usage|hit|acceptance)\b", after)
        and (hit.groupdict().get("word") or "").lower() not in _PLACES
    ):
        return _way(hit), abs(item.value)
    back = _BEFORE.search(front)
    if back and not re.search(
        r"\b(?:to|at|from|is|was|only|or)\s?(?:about|~)?\s?$", front[back.start() :], re.IGNORECASE
    ):
        return _way(back), abs(item.value)
    zh = re.search(
        r"(?P<less>下降|降低|减少|降|跌|掉)了?\s?(?:约|大约)?$|(?P<slow>慢)了?\s?(?:约)?$|(?P<more>上升|增加|提高|涨)了?\s?(?:约)?$|(?P<fast>快|提升)了?\s?(?:约)?$",
        front,
    )
    if zh:
        return _way(zh), abs(item.value)
    if item.signed and abs(item.value) < 5:
        return ("less" if item.value < 0 else "more"), abs(item.value)
    return None


def _way(hit: re.Match[str]) -> str:
    groups = hit.groupdict()
    return next((name for name in ("slow", "fast", "more", "less") if groups.get(name)), "more")


def read(parsed: Parsed) -> list[Ratio]:
    """Changes stated in one sentence, leaving out what is asked, supposed or advised."""
    text, plain = parsed.sentence.text, parsed.plain
    out: list[Ratio] = []
    for change in quantities.changes(plain, parsed.quantities):
        first, second = change.before, change.after
        lead = first if first.start < second.start else second
        mention = metrics.choose(plain, lead, parsed.mentions, []) or metrics.choose(plain, second, parsed.mentions, [])
        if mention is None or first.value == 0 or not _open(parsed, lead):
            continue
        if any(
            mark.number is not None and mark.start < lead.stop and lead.start < mark.stop for mark in parsed.conditions
        ):
            continue
        dim = first.dim
        metric = metrics.resolve(mention.metric, dim)
        start, stop = min(first.start, second.start), max(first.stop, second.stop)
        if mention.stop <= start and start - mention.stop < 60:
            start = mention.start
        out.append(
            Ratio(
                metric,
                second.value / first.value,
                start,
                stop,
                change.how,
                False,
                first.value,
                second.value,
                first.unit,
                mention.stat,
            )
        )
    for item in parsed.quantities:
        changed = _changed(plain, item)
        if changed is None or not _open(parsed, item) or _claimed(plain, item):
            continue
        mention = _near(plain, item.start, item.stop, parsed.mentions)
        own = _OWN_NOUN.match(plain, item.stop)
        if own and changed[0] in ("less", "more"):
            # "70 % speed drop": the noun behind the figure is what changed, whatever was named before.
            named = next((m for m in parsed.mentions if own.start("what") <= m.start < own.end("what")), None)
            mention = named or mention
            if named is None and own["what"].lower() in ("speed", "performance", "perf"):
                changed, mention = (("slow" if changed[0] == "less" else "fast"), changed[1]), None
        ratio = _apply(changed, mention)
        if ratio is not None:
            out.append(Ratio(ratio[0], ratio[1], item.start, _word_end(plain, item.stop), "stated", item.approx))
    for pattern, factor, way in _WORD:
        for found in pattern.finditer(plain):
            if any(item.start < found.end() + 3 and found.start() < item.stop for item in out):
                continue
            if spans.mode_at(parsed.clauses, found.start(), found.end(), text) != "said":
                continue
            mention = _near(plain, found.start(), found.end(), parsed.mentions)
            tail = plain[found.end() : found.end() + 24]
            front = plain[max(0, found.start() - 28) : found.start()]
            if _DIFFERS.search(front):
                continue
            share = factor < 1 and not re.search(r"\b(?:as|of|the|that|its|what|our)$", found[0], re.IGNORECASE)
            behind = (_BEHIND.match(tail) or _BEHIND_ZH.match(tail)) if share else None
            if behind and (behind.groupdict().get("word") or "").lower() not in _PLACES:
                # "a third slower" is a share of the speed, "a third of the speed" is what is left.
                ratio = _apply((_way(behind), factor), mention)
                if ratio is not None:
                    out.append(Ratio(*ratio, found.start(), found.end() + behind.end(), "stated"))
                continue
            if mention is None and not _SPEED.search(tail):
                continue
            value = 1 - factor if factor < 0.5 and _LOST.search(front) else factor
            metric = mention.metric if mention else "speed"
            if metric == "speed" and re.match(r"\s?(?:as )?(?:long|slow|time|the time)", tail, re.IGNORECASE):
                value = 1 / factor if way == "up" else factor
            out.append(
                Ratio(
                    metrics.resolve(metric, "tokens_per_s") if metric != "speed" else metric,
                    value,
                    found.start(),
                    found.end(),
                    "stated",
                )
            )
    for found in lexicon.cue("change.same").finditer(plain):
        mention = _near(plain, found.start(), found.end(), parsed.mentions)
        if mention is None or spans.mode_at(parsed.clauses, found.start(), found.end(), text) != "said":
            continue
        if re.search(r"[,，:：;；]", plain[min(found.end(), mention.stop) : max(found.start(), mention.start)]):
            continue
        start, stop = min(found.start(), mention.start), max(found.end(), mention.stop)
        out.append(Ratio(metrics.resolve(mention.metric, "tokens_per_s"), 1.0, start, stop, "same"))
    return out


_OWN_NOUN = re.compile(
    r"\s?(?P<what>speed|performance|perf|throughput|latency) (?:drops?|loss|slowdown|degradation|reduction|decrease|decline|hit|penalty|gain|increase|boost|improvement|regression)\b",
    re.IGNORECASE,
)
_CLAIM = re.compile(
    r"\b(?:claim(?:ed|s)?|advertis\w+|promis\w+|announced|official|theoretical|same)\s(?:\w+\s){0,2}?(?:about |~|up to )?$|(?:宣称|声称|号称|官方|理论)[^，。]{0,6}$",
    re.IGNORECASE,
)


def _claimed(text: str, item: Quantity) -> bool:
    """``the claimed 3.8 times``, ``the same 25x speedup``: what somebody promises, or what both sides have in common."""
    return item.dim in ("factor", "fraction") and bool(_CLAIM.search(text[max(0, item.start - 32) : item.start]))


def _word_end(text: str, stop: int) -> int:
    hit = re.match(r"\s?[\w-]+", text[stop : stop + 20])
    return stop + hit.end() if hit else stop


def _open(parsed: Parsed, item: Quantity) -> bool:
    return spans.mode_at(parsed.clauses, item.start, item.stop, parsed.sentence.text) == "said"


def _near(text: str, start: int, stop: int, found: list[Mention]) -> Mention | None:
    """The metric mentioned nearest in front, else behind, within the same stretch between commas or semicolons."""
    best: Mention | None = None
    for mention in found:
        if mention.metric in ("kv_usage", "running", "waiting", "errors", "temperature") and mention.stop > start:
            continue
        if (
            mention.stop <= start and not re.search(r"[;；.]", text[mention.stop : start]) and start - mention.stop < 70
        ) or (
            mention.start >= stop
            and best is None
            and mention.start - stop < 26
            and not re.search(r"[;；,，.]|--|\band\b", text[stop : mention.start])
        ):
            best = mention
    return best


def _apply(changed: tuple[str, float], mention: Mention | None) -> tuple[str, float] | None:
    way, size = changed
    better = lexicon.metrics()[mention.metric].better if mention else "high"
    metric = metrics.resolve(mention.metric, "tokens_per_s") if mention else "speed"
    if way.startswith("x"):
        if size <= 0:
            return None
        ratio = {"xless": 1 / size, "xmore": size, "xslow": 1 / size, "xfast": size}[way]
        if better == "low" and way in ("xslow", "xfast"):
            ratio = 1 / ratio
        if mention is None and way in ("xmore", "xless"):
            return None
        return metric, ratio
    if way in ("more", "less"):
        if mention is None:
            return None
        return (metric, 1 + size) if way == "more" else ((metric, 1 - size) if size < 1 else None)
    if size >= 1 and way == "slow" and better != "low":
        return None
    ratio = 1 - size if way == "slow" else 1 + size
    if better == "low":
        ratio = 1 + size if way == "slow" else 1 - size
    return metric, ratio
