"""Explicit observations in prose: metric, value, statistic, conditions, span. What is asked or advised is none."""

from __future__ import annotations

import re

from msgspec import Struct, field

from tools.report import compare, conditions, entities, lexicon, metrics, quantities, spans
from tools.report.conditions import Condition
from tools.report.metrics import Mention
from tools.report.quantities import Quantity
from tools.report.spans import Sentence

_CHUNK = re.compile(r"(?<!\d)[,，]|[,，](?!\d{3}(?!\d))|[;；:：()（）。]|\s(?:and|while|but|whereas)\s")
_AT = re.compile(r"\b(?:at|for|with|on|in|to)\s(?:about |around |~)?$|[@(=]\s?$|在\s?$", re.IGNORECASE)
_ZERO = re.compile(
    r"\b(?:no|zero|without(?: any)?|never any|not a single)\s(?P<what>(?:\w+\s)?(?:pre-?emptions?|errors?|time-?outs?|failures?|failed requests|retries|waiting(?: requests)?|queued requests|restarts?))\b"
    r"|\b(?:nothing|no (?:requests?|one))\s(?:is |was |are |were )?(?P<wait>waits?|waiting|queued|queues?|pending)\b"
    r"|(?:没有|无)(?:任何)?(?P<zh>抢占|报错|错误|超时|失败|重试|排队|等待|重启)",
    re.IGNORECASE,
)
_ZERO_OF = (
    ("preemptions", r"pre-?empt|抢占"),
    ("timeouts", r"time-?out|超时"),
    ("retries", r"retr|重试"),
    ("waiting", r"wait|queue|pending|排队|等待"),
    ("restarts", r"restart|重启"),
    ("errors", r"err|fail|报错|错误|失败"),
)
NUMERIC = ("concurrency", "context", "prompt_tokens", "gpus", "power_cap", "run", "uptime")
_STICKY = (
    "version",
    "feature",
    "route",
    "side",
    "gpus",
    "gpu",
    "run",
    "tool",
    "reference",
    "context",
    "concurrency",
    "baseline",
    "package",
    "uptime",
)


_SIDES = ("side", "version", "variant", "feature", "route", "run", "reference", "concurrency", "context")


# A per-token time above this is not carried over from the sentence before: the sentence then speaks of something else.
_LONG_TOKEN_S = 0.5


class Observation(Struct):
    """One measured figure as said. ``conditions``: kind → condition; ``norm`` marks what others reach or should be."""

    metric: str
    value: float
    unit: str
    line: int
    span: str
    stat: str = ""
    low: float | None = None
    high: float | None = None
    cmp: str = ""
    approx: bool = False
    per: str = ""
    conditions: dict[str, Condition] = field(default_factory=dict)
    norm: bool = False
    extra: bool = False
    part: str = ""
    group: str = ""
    order: int = 0
    seconds: float | None = None

    def number(self, kind: str) -> float | None:
        """Numeric value of a condition, ``None`` when it is not known."""
        found = self.conditions.get(kind)
        return found.number if found else None


class Scope(Struct):
    """What carries over between sentences: header conditions of a list, the last metric, the last numeric kind."""

    header: dict[str, Condition] = field(default_factory=dict)
    mention: Mention | None = None
    numeric: str = ""
    order: int = 0
    titled: bool = False
    last: tuple[str, str, float] = ("", "", 1.0)
    series: list[Condition] = field(default_factory=list)


class Parsed(Struct):
    """A sentence taken apart once, for all readers of it."""

    sentence: Sentence
    plain: str
    clauses: list[spans.Clause]
    entities: list[entities.Entity]
    quantities: list[Quantity]
    mentions: list[Mention]
    conditions: list[Condition]


def parse(sentence: Sentence) -> Parsed:
    """Entities, quantities, metric mentions and condition markers of a sentence."""
    text = sentence.text
    names = entities.find(text)
    plain = entities.mask(text, names)
    found = quantities.find(plain)
    marks = conditions.find(text, plain, names, found)
    said = [
        m
        for m in metrics.mentions(plain, text)
        if not any(q.start <= m.start < q.stop and q.dim != "count" for q in found)
    ]
    return Parsed(sentence, plain, spans.clauses(sentence), names, found, said, marks)


def read(parsed: Parsed, scope: Scope) -> list[Observation]:
    """Observations of one sentence; updates the scope."""
    text, plain = parsed.sentence.text, parsed.plain
    enter(parsed.sentence, scope)
    marks = list(parsed.conditions)
    ratio_spans = compare.ratio_spans(plain, parsed.quantities)
    values: list[tuple[Quantity, Mention]] = []
    taken: list[Quantity] = []
    series = _aligned(parsed, scope)
    for item in parsed.quantities:
        if any(start <= item.start < stop for start, stop in ratio_spans) or _is_mark(item, marks):
            continue
        if spans.mode_at(parsed.clauses, item.start, item.stop, text) in ("asked", "advised"):
            continue
        if item.dim == "plain" and not series and _elliptic_mark(plain, item, marks, scope, parsed.quantities):
            continue
        mention = metrics.choose(plain, item, parsed.mentions, taken) if not series else scope.mention
        if mention is None and item.dim == "plain":
            mention = _elliptic_value(plain, item, values, scope, marks)
        elif (
            mention is None
            and item.dim == scope.last[1]
            and not parsed.mentions
            and any(mark.kind in _SIDES for mark in marks)
            and not (scope.last[0] in ("tpot", "itl") and item.value > _LONG_TOKEN_S)
        ):
            mention = Mention(scope.last[0], item.start, item.start)
        if mention is None or not _allowed(mention, item, plain):
            continue
        values.append((item, mention))
        taken.append(item)
    for item, condition in series:
        marks.append(Condition(condition.kind, item.start, item.start, condition.name, condition.number))
    out: list[Observation] = []
    for item, mention in values:
        out.append(_observation(parsed, item, mention, marks, values, scope, out[-1] if out else None))
    out.extend(_zeros(parsed))
    _remember(parsed, values, marks, scope)
    for seen in out:
        scope.order += 1
        seen.order = scope.order
    return out


def _allowed(mention: Mention, item: Quantity, text: str) -> bool:
    if mention.metric in ("running", "waiting") and re.match(
        r"\s?(?:samples|lines|points|scrapes|entries)\b", text[item.stop : item.stop + 10], re.IGNORECASE
    ):
        return False
    if item.dim in ("tokens", "factor", "bits_per_s") and mention.metric not in (
        "cached_tokens",
        "acceptance_length",
        "busbw",
        "kv_capacity",
        "output_tokens",
    ):
        return False
    return item.dim != "count" or _counted(mention, item, text)


def _aligned(parsed: Parsed, scope: Scope) -> list[tuple[Quantity, Condition]]:
    """``Behind the proxy: 65/68, 66/79, 158/473``: bare figures in the order of the conditions of the line before."""
    if len(scope.series) < 2 or parsed.mentions or scope.mention is None or scope.mention.unit is None:
        return []
    if any(item.dim != "plain" for item in parsed.quantities):
        return []
    groups = _groups(parsed.plain, parsed.quantities)
    if len(groups) != len(scope.series):
        return []
    return [(item, condition) for group, condition in zip(groups, scope.series, strict=True) for item in group]


def _groups(text: str, found: list[Quantity]) -> list[list[Quantity]]:
    """Quantities joined by a slash belong together (``p50/p95``)."""
    out: list[list[Quantity]] = []
    for item in found:
        if out and text[out[-1][-1].stop : item.start].strip() == "/":
            out[-1].append(item)
        else:
            out.append([item])
    return out


def _is_mark(item: Quantity, marks: list[Condition]) -> bool:
    return any(mark.number is not None and mark.start < item.stop and item.start < mark.stop for mark in marks) or any(
        mark.kind == "uptime" and mark.start <= item.start < mark.stop for mark in marks
    )


def _elliptic_mark(text: str, item: Quantity, marks: list[Condition], scope: Scope, found: list[Quantity]) -> bool:
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


def _elliptic_value(
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
    if not (
        repeats
        or bracket
        or named
        or (sided and any(mark.kind in ("reference", "side") and mark.start < item.start for mark in marks))
    ):
        return None
    return Mention(known[0], item.start, item.start, "", (known[1], known[2]))


def _counted(mention: Mention, item: Quantity, text: str) -> bool:
    if item.noun == "cores":
        return mention.metric in ("cpu_cores", "cpu_limit")
    named = {
        "preemptions": "preemptions",
        "errors": "errors",
        "timeouts": "timeouts",
        "retries": "retries",
        "restarts": "restarts",
    }
    if item.noun in named:
        return mention.metric == named[item.noun]
    return item.noun in ("requests", "concurrency") and mention.metric in ("running", "waiting")


def _chunks(text: str) -> list[tuple[int, int]]:
    edges = [0, *(found.end() for found in _CHUNK.finditer(text)), len(text)]
    return [(start, stop) for start, stop in zip(edges, edges[1:], strict=False) if stop > start]


_UNITS = {
    "seconds": "s",
    "tokens_per_s": "tokens/s",
    "requests_per_s": "requests/s",
    "fraction": "fraction",
    "bytes_per_s": "GB/s",
    "bytes": "GiB",
    "watts": "W",
    "hertz": "MHz",
}
_EXTRA_BEHIND = re.compile(
    r"^\s?(?:more|extra|additional|longer|slower|later|of overhead|overhead|on top|added)\b|^\s?(?:额外|更多)",
    re.IGNORECASE,
)
_EXTRA_BEFORE = re.compile(
    r"\b(?:adds?|added|adding|extra|additional|plus|another|overhead (?:of|is)|costs?(?: us| me)?|penalty of|grows by|rises by|increases by|up by)\s(?:about |around |a |some |roughly |~|an? )?$|(?:多了|增加了?|额外)\s?$|\+\s?$",
    re.IGNORECASE,
)


def _observation(
    parsed: Parsed,
    item: Quantity,
    mention: Mention,
    marks: list[Condition],
    values: list[tuple[Quantity, Mention]],
    scope: Scope,
    host: Observation | None,
) -> Observation:
    text = parsed.sentence.text
    value, dim, unit = item.value, item.dim, item.unit
    if item.dim == "plain" and mention.unit is not None:
        dim, value = mention.unit[0], item.raw * mention.unit[1]
        unit = _UNITS.get(dim, "")
    metric = metrics.resolve(mention.metric, dim)
    line, span = parsed.sentence.locate(*_stretch(parsed, item, mention))
    value_line, value_span = parsed.sentence.locate(item.start, item.stop)
    if value_span and value_span not in span:
        line, span = value_line, value_span
    stat = metrics.stat_near(text, item.start, item.stop, inside=False) or mention.stat
    if mention.stats:
        group = next((group for group in _groups(parsed.plain, parsed.quantities) if item in group), [item])
        place = group.index(item)
        stat = mention.stats[place] if len(group) == len(mention.stats) else stat
    found = _attach(text, item, marks, values, scope, host)
    seen = Observation(
        metric,
        value,
        unit or _unit(metric),
        line,
        span,
        stat,
        item.low,
        item.high,
        item.cmp,
        item.approx,
        item.per,
        found,
    )
    seen.norm = "reference" in found
    around = parsed.plain[max(0, item.start - 28) : item.start], parsed.plain[item.stop : item.stop + 16]
    seen.extra = dim == "seconds" and (
        item.signed or bool(_EXTRA_BEHIND.match(around[1])) or bool(_EXTRA_BEFORE.search(around[0]))
    )
    return seen


def _stretch(parsed: Parsed, item: Quantity, mention: Mention) -> tuple[int, int]:
    """The figure together with its metric's name when nothing else stands between them."""
    low, high = min(item.start, mention.start), max(item.stop, mention.stop)
    if high - low > 90 or any(other is not item and low <= other.start < high for other in parsed.quantities):
        return item.start, item.stop
    return low, high


def _unit(metric: str) -> str:
    return (
        "count" if metric in ("running", "waiting", "preemptions", "errors", "timeouts", "retries", "restarts") else ""
    )


def _attach(
    text: str,
    item: Quantity,
    marks: list[Condition],
    values: list[tuple[Quantity, Mention]],
    scope: Scope,
    host: Observation | None,
) -> dict[str, Condition]:
    """Conditions of one figure: those of its own chunk, then those in front in the sentence, then the header's."""
    found: dict[str, Condition] = dict(scope.header)
    parts = _chunks(text)
    own = next((part for part in parts if part[0] <= item.start < part[1]), (0, len(text)))
    group = next((group for group in _groups(text, [value for value, _ in values]) if item in group), [item])
    start, stop = group[0].start, group[-1].stop
    others = sorted(value.start for value, _ in values if value not in group)
    bracket = text.rfind("(", 0, start) if text.rfind("(", 0, start) > text.rfind(")", 0, start) else -1
    for mark in marks:
        if mark.stop > start or (mark.kind in ("reference", "side") and not _in_reach(text, mark, item)):
            continue
        # A marker that stands behind another figure in that figure's chunk belongs to that figure.
        chunk = next((part for part in parts if part[0] <= mark.start < part[1]), own)
        if chunk != own and bracket < 0 and mark.kind != "gpu" and _trails(text, mark, chunk, others):
            continue
        found[mark.kind] = mark
    following = min(
        (other for other in others if other >= stop and not _bracketed(text, stop, other)), default=len(text)
    )
    reach = own[1]
    if bracket < 0 and text[own[1] - 1 : own[1]] == "(":
        close = text.find(")", own[1])
        reach = next((part[1] for part in parts if close >= 0 and part[0] <= close + 1 < part[1]), own[1])
    for mark in marks:
        if mark.start == item.start and mark.stop == item.start:
            found[mark.kind] = mark
        elif stop <= mark.start < min(following, reach) and not _foreign(text, mark, stop):
            found[mark.kind] = mark
    if bracket >= 0 and host is not None and "reference" not in found and "side" not in found:
        for kind, mark in host.conditions.items():
            found.setdefault(kind, mark)
        _like_before(text, bracket, marks, found)
    return found


def _trails(text: str, mark: Condition, chunk: tuple[int, int], others: list[int]) -> bool:
    """Whether a marker stands behind a figure of its own chunk, or right behind that figure's brackets."""
    if any(chunk[0] <= other < mark.start for other in others):
        return True
    return text[chunk[0] - 1 : chunk[0]] == ")" and any(other < chunk[0] for other in others)


def _bracketed(text: str, stop: int, other: int) -> bool:
    return text.rfind("(", stop, other) > text.rfind(")", stop, other)


def _foreign(text: str, mark: Condition, stop: int) -> bool:
    """A marker behind a figure that belongs to another one: it has its own figure, or speaks of others far away."""
    if mark.kind in ("reference", "side") and _owns(text, mark):
        return True
    if mark.kind == "reference":
        return mark.start - stop > 30
    return "(" in text[stop : mark.start] and mark.kind not in ("side", *NUMERIC) and ")" not in text[stop : mark.start]


def _owns(text: str, mark: Condition) -> bool:
    """``README 64.4``: the marker has its own figure right behind it."""
    return bool(re.match(r"\s?(?:says|shows|is|about|around|~|:)?\s?\d", text[mark.stop : mark.stop + 12]))


def _like_before(text: str, bracket: int, marks: list[Condition], found: dict[str, Condition]) -> None:
    """A bare bracketed figure plays the part of the first bracketed figure of the sentence (``(README 64.4) … (116.8)``)."""
    first = text.find("(")
    if first < 0 or first == bracket:
        return
    close = text.find(")", first)
    for mark in marks:
        if first < mark.start < close and mark.kind == "reference":
            found["reference"] = mark


def _in_reach(text: str, mark: Condition, item: Quantity) -> bool:
    between = text[mark.stop : item.start]
    if mark.kind == "side":
        return not re.search(r"[;；.]|\bbut\b|\bnow\b|\bthen\b|现在", between, re.IGNORECASE)
    return not re.search(
        r"[;；.]|,\s(?:but|i|we|my|our|mine|ours|here)\b|\b(?:not|instead of|rather than|but)\b|\)",
        between,
        re.IGNORECASE,
    )


def _zeros(parsed: Parsed) -> list[Observation]:
    out = []
    text = parsed.sentence.text
    for found in _ZERO.finditer(text):
        if spans.mode_at(parsed.clauses, found.start(), found.end(), text) != "said":
            continue
        word = found["what"] or found["wait"] or found["zh"] or ""
        metric = next((name for name, pattern in _ZERO_OF if re.search(pattern, word, re.IGNORECASE)), "")
        if metric:
            line, span = parsed.sentence.locate(found.start(), found.end())
            out.append(Observation(metric, 0.0, "count", line, span))
    return out


def enter(sentence: Sentence, scope: Scope) -> None:
    """Full prose ends what a short header line (``Before:``) said of the lines below it."""
    text = sentence.text.strip()
    if sentence.kind == "text" and (len(text) > 70 or text.endswith((".", "。", "!", "?"))):
        scope.header = {}


def _remember(parsed: Parsed, values: list[tuple[Quantity, Mention]], marks: list[Condition], scope: Scope) -> None:
    """A short line of markers without figures (``Before:``, ``- SGLang v0.4.5``) heads the lines below it."""
    text = parsed.sentence.text.strip()
    if text.endswith((":", "：")) and not values and len({m.metric for m in parsed.mentions}) == 1:
        metric = parsed.mentions[0].metric
        scope.last = (metric, lexicon.metrics()[metric].dims[0], 1.0)
    title = parsed.sentence.kind == "heading"
    heads = (
        text.endswith((":", "："))
        or title
        or (len(text) <= 48 and parsed.sentence.kind == "item" and not text.endswith("."))
    )
    if title:
        scope.header = {}
    if title and (len(text) > 48 or parsed.mentions or not scope.titled):
        scope.titled = True
        return
    if heads and not values and len(text) <= 80:
        fresh = {mark.kind: mark for mark in marks if mark.kind in _STICKY}
        if fresh:
            scope.header = fresh
    numeric = [
        mark.kind for mark in marks if mark.number is not None and mark.kind in ("concurrency", "context", "gpus")
    ]
    if numeric:
        scope.numeric = numeric[-1]
    if values:
        item, mention = values[-1]
        scope.mention = mention
        dim, scale = (
            (item.dim, item.value / item.raw if item.raw else 1.0)
            if item.dim != "plain"
            else (mention.unit or ("", 1.0))
        )
        scope.last = (mention.metric, dim, scale)
    own = [
        mark
        for mark in marks
        if mark.number is not None and mark.kind in ("concurrency", "context", "gpus") and mark.stop > mark.start
    ]
    if len(own) >= 2 and len({mark.kind for mark in own}) == 1 and values:
        scope.series = own
    elif parsed.quantities:
        scope.series = []
