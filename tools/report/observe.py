"""Explicit observations in prose: metric, value, statistic, conditions, span. What is asked or advised is none."""

from __future__ import annotations

import re

from msgspec import Struct, field

from tools.report import compare, conditions, entities, lexicon, metrics, quantities, spans
from tools.report.attach import attach, groups
from tools.report.conditions import Condition
from tools.report.elliptic import aligned, elliptic_mark, elliptic_value
from tools.report.metrics import Mention
from tools.report.quantities import Quantity
from tools.report.spans import Sentence

_ZERO = re.compile(
    r"\b(?:no|zero|without(?: any)?|never any|not a single)\s(?!an?\s)(?P<what>(?:\w+\s)?(?:pre-?emptions?|errors?|time-?outs?|failures?|failed requests|retries|waiting(?: requests)?|queued requests|restarts?))\b(?! (?:(?:is|was|are) )?(?:set|configured|limits?|values?|settings?)\b)"
    r"|\b(?:nothing|no (?:requests?|one))\s(?:is |was |are |were )?(?P<wait>waits?|waiting|queued|queues?|pending)\b(?! (?:longer|more) than)"
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
_ITEM_LABEL = re.compile(r"^[-*+•\s]{0,6}(?P<name>[^:：\n]{1,48})[:：]\s")
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


_LOADS = ("concurrency", "context", "prompt_tokens", "gpus")
# A line of its own that names a run and is no sentence: "0.9.1", "after PR29708", "TP8 concurrency=128".
_BARE = re.compile(
    r"(?:(?:here(?:'s| is| are)|below is|this is) (?:my|the|our) \w+ (?:on|with|for|of|in|using) (?:the )?)?"
    r"(?:[\w.+=:/@-]+(?:\s|$)){1,5}",
    re.IGNORECASE,
)


# A status line of an engine is figures, however long.
_STATUS = re.compile(r"(?:[A-Za-z][\w /-]{2,40}[:=]\s?[\d.]+[^,:=]{0,14},?\s?){2}")


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
    series = aligned(parsed, scope)
    label = _label(parsed)
    for item in parsed.quantities:
        if any(start <= item.start < stop for start, stop in ratio_spans) or _is_mark(item, marks):
            continue
        if spans.mode_at(parsed.clauses, item.start, item.stop, text) in ("asked", "advised"):
            continue
        if item.dim == "plain" and not series and elliptic_mark(plain, item, marks, scope, parsed.quantities):
            continue
        mention = metrics.choose(plain, item, parsed.mentions, taken) if not series else scope.mention
        if mention is None and item.dim == "plain":
            mention = elliptic_value(plain, item, values, scope, marks)
        elif (
            mention is None
            and item.dim == scope.last[1]
            and not parsed.mentions
            and (label is not None or any(mark.kind in _SIDES for mark in marks))
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
        seen = _observation(parsed, item, mention, marks, values, scope, out[-1] if out else None)
        if label is not None and not any(kind in _SIDES for kind in seen.conditions):
            seen.conditions["label"] = label
        out.append(seen)
    out.extend(_zeros(parsed))
    _remember(parsed, values, marks, scope)
    for seen in out:
        scope.order += 1
        seen.order = scope.order
    return out


def _label(parsed: Parsed) -> Condition | None:
    """The name in front of the colon of a list item ("- fa3, bf16: 908 tok/s"): the run its figures belong to."""
    text = parsed.sentence.text
    plain = parsed.sentence.kind == "text" and len(text) <= 40 and not parsed.mentions
    found = _ITEM_LABEL.match(text) if parsed.sentence.kind == "item" or plain else None
    if found is None or any(item.start < found.end("name") and item.dim != "plain" for item in parsed.quantities):
        return None
    return Condition("label", found.start("name"), found.end("name"), found["name"].strip(" `*_"))


def _allowed(mention: Mention, item: Quantity, text: str) -> bool:
    if mention.metric in ("running", "waiting") and re.search(
        r"\d\s?(?:samples|lines|points|scrapes|entries)\b", text[item.start : item.stop + 10], re.IGNORECASE
    ):
        return False
    if item.dim in ("tokens", "factor", "bits_per_s") and mention.metric not in (
        "cached_tokens",
        "acceptance_length",
        "busbw",
        "kv_capacity",
        "output_tokens",
        "block_tokens",
        "shared_tokens",
    ):
        return False
    return item.dim != "count" or _counted(mention, item, text)


def _is_mark(item: Quantity, marks: list[Condition]) -> bool:
    return any(mark.number is not None and mark.start < item.stop and item.start < mark.stop for mark in marks) or any(
        mark.kind == "uptime" and mark.start <= item.start < mark.stop for mark in marks
    )


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


# Canonical unit of each dimension, of prose and of tables.
UNITS = {
    "seconds": "s",
    "tokens_per_s": "tokens/s",
    "requests_per_s": "requests/s",
    "fraction": "fraction",
    "bytes_per_s": "GB/s",
    "bits_per_s": "Gb/s",
    "bytes": "GiB",
    "watts": "W",
    "hertz": "MHz",
    "celsius": "C",
    "count": "count",
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
        unit = UNITS.get(dim, "")
    metric = metrics.resolve(mention.metric, dim)
    line, span = parsed.sentence.locate(*_stretch(parsed, item, mention))
    value_line, value_span = parsed.sentence.locate(item.start, item.stop)
    if value_span and value_span not in span:
        line, span = value_line, value_span
    stat = metrics.stat_near(text, item.start, item.stop, inside=False) or mention.stat
    if mention.stats:
        group = next((group for group in groups(parsed.plain, parsed.quantities) if item in group), [item])
        place = group.index(item)
        stat = mention.stats[place] if len(group) == len(mention.stats) else stat
    found = attach(text, item, marks, values, scope, host)
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
    if sentence.kind == "text" and (
        (len(text) > 70 and not _STATUS.search(text)) or text.endswith((".", "。", "!", "?"))
    ):
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
    bare = parsed.sentence.kind == "text" and len(text) <= 60 and bool(_BARE.fullmatch(text))
    if (heads or bare) and not values and len(text) <= 80:
        fresh = {mark.kind: mark for mark in marks if mark.kind in _STICKY}
        if fresh and bare and not heads:
            # A side or a release under a line that gives the load: both hold.
            loads = {} if fresh.keys() & set(_LOADS) else {k: v for k, v in scope.header.items() if k in _LOADS}
            fresh = {**loads, **fresh}
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
