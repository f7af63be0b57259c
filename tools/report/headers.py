"""Column headers and row labels of tables: the metric, unit and conditions they name."""

from __future__ import annotations

import re

from msgspec import Struct, field

from tools.report import conditions, entities, lexicon, metrics, quantities
from tools.report.conditions import Condition
from tools.report.metrics import Mention

_UNIT = re.compile(
    r"(?:\(|\[|,\s?|_|(?<!\d)\s|^)(?P<u>ms|us|µs|sec|seconds?|s|min|tok(?:ens?)?/s(?:ec)?|tokens?[_ ]per[_ ]s(?:ec(?:ond)?)?|tps|t/s|req/s|req(?:uest)?s?[_ ]per[_ ](?:s|min)|rps|qps|%|pct|GB/s|GiB|GB|MiB|MB|W|w|MHz|mhz|C|c|x)(?:\)|\]|$|\s|,)"
)


_OTHERS = re.compile(
    r"^\W*(?:theirs?|others?|published|readme|official|expected|reference|target|vendor|datasheet|claimed|别人|官方|预期)\b",
    re.IGNORECASE,
)


_SUM = re.compile(r"\b(?:sum|total|aggregate|all|combined|overall|system)\b|合计|总", re.IGNORECASE)


_UNITS: dict[str, tuple[str, float]] = {
    "ms": ("seconds", 0.001),
    "us": ("seconds", 1e-6),
    "µs": ("seconds", 1e-6),
    "s": ("seconds", 1.0),
    "sec": ("seconds", 1.0),
    "second": ("seconds", 1.0),
    "seconds": ("seconds", 1.0),
    "min": ("seconds", 60.0),
    "tps": ("tokens_per_s", 1.0),
    "t/s": ("tokens_per_s", 1.0),
    "req/s": ("requests_per_s", 1.0),
    "rps": ("requests_per_s", 1.0),
    "qps": ("requests_per_s", 1.0),
    "%": ("fraction", 0.01),
    "pct": ("fraction", 0.01),
    "gb/s": ("bytes_per_s", 1.0),
    "gib": ("bytes", 1.0),
    "gb": ("bytes", 1.0),
    "mib": ("bytes", 1 / 1024),
    "mb": ("bytes", 1 / 1024),
    "w": ("watts", 1.0),
    "mhz": ("hertz", 1.0),
    "c": ("celsius", 1.0),
    "x": ("factor", 1.0),
}


_KINDS: tuple[tuple[str, str], ...] = (
    (
        "concurrency",
        r"^(?:max[ _-]?)?(?:concurren\w+|conc|parallel\w*|clients?|users?|streams?|sessions?|batch(?:[ _]?size)?|bs|n|c|in[ -]?flight|并发(?:数|量)?|用户数)\b",
    ),
    (
        "context",
        r"^(?:context|ctx|prompt(?:[ _](?:tokens?|len(?:gth)?))?|input(?:[ _](?:tokens?|len(?:gth)?))?|isl|seq(?:uence)?[ _]?len(?:gth)?|tokens in|length|上下文|输入长度)\b",
    ),
    ("gpus", r"^(?:#?\s?(?:gpus?|cards?|ranks|devices)|tp(?:[ _]size)?|tensor[ _-]parallel\w*|nodes?|卡数)$"),
    (
        "version",
        r"^(?:version|release|image|tag|build|engine version|vllm|sglang|commit|source(?: state)?|wheel|版本)\b",
    ),
    ("run", r"^(?:run|pass|round|iteration|turn|attempt|trial|request #|query|call|step|epoch|轮次|次数)\b"),
    ("uptime", r"^(?:time|uptime|hours?|minutes?|elapsed|clock|day|at|t|时间|when|age)\b"),
    ("power_cap", r"^(?:power[ _]?)?(?:cap|limit)(?:[ _]?w)?$"),
    (
        "setting",
        r"^(?:num[ _]speculative[ _]tokens|draft(?:[ _]tokens)?|k|gamma|block[ _]size|chunk(?:[ _]size)?|budget|threads|workers|cores|channels|size|message size)\b",
    ),
)


_KIND = [(kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _KINDS]


CLOCK = re.compile(r"^(?:\d{4}-\d\d-\d\d[ T])?(\d{1,2}):(\d\d)(?::(\d\d))?$")


SIZE = re.compile(r"^[x×]?\s?(\d[\d,]*(?:\.\d+)?)\s?([kKM])?[xX×]?$")


_LOADED = re.compile(
    r"^(?:c|n|bs|conc(?:urrency)?|batch)\s?=\s?(?P<n>\d{1,5})[\s,]+(?P<rest>[A-Za-z][^=]*)$", re.IGNORECASE
)


class Head(Struct):
    """What a column or row label says: a metric, conditions, or a kind whose value stands in each cell."""

    text: str
    mention: Mention | None = None
    kind: str = ""
    unit: tuple[str, float] | None = None
    marks: list[Condition] = field(default_factory=list)
    relative: bool = False


def head(text: str) -> Head:
    """Classify a column header or row label."""
    clean = re.sub(r"[*`]", "", text).strip()
    loaded = _LOADED.match(clean)
    if loaded:
        item = head(loaded["rest"])
        item.text = clean
        mark = Condition("concurrency", 0, len(clean), clean, float(loaded["n"]))
        item.marks = [*(old for old in item.marks if old.kind != "concurrency"), mark]
        return item
    spaced = clean.replace("_", " ")
    item = Head(clean)
    unit = _UNIT.search(clean) or _UNIT.search(spaced)
    if unit:
        item.unit = unit_of(unit["u"])
    item.relative = bool(
        re.search(
            r"\brelative\b|\bvs\.?\b|\bchange\b|\bdelta\b|Δ|against|compared|diff(?:erence)?\b|变化",
            clean,
            re.IGNORECASE,
        )
    )
    for kind, pattern in _KIND:
        if (
            pattern.match(spaced)
            and not (item.unit and item.unit[0] in ("tokens_per_s", "requests_per_s"))
            and not re.search(r"latency|throughput|usage|rate", spaced, re.I)
        ):
            if kind == "uptime" and metrics_of(clean) is not None:
                continue
            item.kind = kind
            break
    if re.fullmatch(rf"(?:{'|'.join(lexicon.names().packages)})(?: version)?", spaced, re.IGNORECASE) and not item.kind:
        item.kind = "package"
    elif _SUM.search(spaced) and not item.kind and item.unit and item.unit[0] == "tokens_per_s":
        item.mention = Mention("generation_tps", 0, 0)
    bare = _UNIT.sub(" ", clean).strip() if unit else clean
    item.marks = marks_of(bare)
    if any(mark.kind == item.kind and mark.number is not None for mark in item.marks):
        item.kind = ""
    if not item.kind or item.kind == "uptime":
        found = metrics_of(clean) if item.unit or len(clean.split()) <= 6 else None
        if found is not None:
            item.mention, item.kind = found, ""
        elif item.unit and item.unit[0] in metrics.DEFAULTS and not item.kind:
            item.mention = Mention(metrics.DEFAULTS[item.unit[0]], 0, 0)
    return item


def unit_of(word: str) -> tuple[str, float]:
    low = word.lower()
    if low in _UNITS:
        return _UNITS[low]
    if low.startswith("tok"):
        return ("tokens_per_s", 1.0)
    return ("requests_per_s", 1 / 60 if "min" in low else 1.0)


def metrics_of(text: str) -> Mention | None:
    """The metric a label names, ``None`` when it names none."""
    names = entities.find(text)
    plain = entities.mask(
        text, [item for item in names if item.kind in ("gpu", "model", "version", "package")]
    ).replace("_", " ")
    found = metrics.mentions(plain, text.replace("_", " "))
    found = [item for item in found if item.metric not in ("takes",)]
    if not found:
        return None
    specific = [item for item in found if item.metric not in ("throughput", "e2e", "power")]
    return (specific or found)[0]


def marks_of(text: str) -> list[Condition]:
    names = entities.find(text)
    plain = entities.mask(text, names)
    found = quantities.find(plain)
    marks = [
        mark
        for mark in conditions.find(text, plain, names, found)
        if mark.kind != "reference"
        or re.search(r"readme|official|published|theirs|expected|target|reference|官方", text, re.I)
    ]
    if _OTHERS.match(text) and not any(mark.kind == "reference" for mark in marks):
        marks.append(Condition("reference", 0, len(text), text))
    size = SIZE.match(text.strip())
    if not marks and re.match(r"^x\d+$", text.strip(), re.IGNORECASE) and size:
        marks.append(Condition("concurrency", 0, len(text), text, float(size[1].replace(",", ""))))
    feature = conditions.feature_of(text)
    if feature and not any(mark.kind == "feature" for mark in marks):
        off = re.search(r"\b(?:no|off|without|w/o|disabled?|none|baseline)\b|关闭|无", text, re.IGNORECASE)
        marks.append(Condition("feature", 0, len(text), feature, on=not off))
    if re.search(
        r"^\W*(?:baseline|default|none|off|plain|vanilla|stock|control|without|before|parent|good)\b|基线|默认",
        text,
        re.IGNORECASE,
    ) and not any(mark.kind in ("feature", "side", "baseline") for mark in marks):
        marks.append(Condition("baseline", 0, len(text), text))
    return marks


def clock_heads(heads: list[Head]) -> None:
    """Columns named by clock times are a time axis."""
    clocks = [CLOCK.match(item.text) for item in heads[1:]]
    if len(clocks) >= 2 and all(clocks):
        base: float | None = None
        for item, clock in zip(heads[1:], clocks, strict=True):
            assert clock is not None
            seconds = int(clock[1]) * 3600 + int(clock[2]) * 60 + int(clock[3] or 0)
            base = seconds if base is None else base
            item.kind, item.mention = "", None
            item.marks = [Condition("uptime", 0, len(item.text), item.text, float(seconds - base))]


def repeated(heads: list[Head]) -> None:
    """Columns with the same metric are told apart by their headers; a bare repeat belongs to the marked column before it."""
    texts = [item.text.lower() for item in heads]
    by_metric: dict[str, list[Head]] = {}
    marked: list[Condition] = []
    for item in heads:
        if item.marks and item.mention:
            marked = item.marks
        elif item.mention and texts.count(item.text.lower()) > 1 and marked:
            item.marks = list(marked)
        if item.mention and not item.kind:
            by_metric.setdefault(item.mention.metric + item.mention.stat, []).append(item)
    for same in by_metric.values():
        if len(same) > 1:
            for item in same:
                if not item.marks and texts.count(item.text.lower()) == 1:
                    item.marks = [Condition("variant", 0, len(item.text), item.text)]
