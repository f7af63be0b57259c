"""Column headers and row labels of tables: the metric, unit and conditions they name."""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct, field

from knowledge.loader import ROOT, read_yaml
from tools.report import alternatives, conditions, entities, lexicon, metrics, quantities
from tools.report.conditions import Condition
from tools.report.metrics import Mention

_UNIT = re.compile(
    r"(?:\(|\[|,\s?|_|(?<!\d)\s|^)(?P<u>ms|us|µs|sec|seconds?|s|min|tok(?:ens?)?/s(?:ec)?|tokens?[_ ]per[_ ]s(?:ec(?:ond)?)?|tps|t/s|req/s|req(?:uest)?s?[_ ]per[_ ](?:s|min)|rps|qps|%|pct|GB/s|GiB|GB|MiB|MB|W|w|MHz|mhz|C|c|x)(?:\)|\]|$|\s|,)"
)


# A single capital behind a word ("engine C") is a name; it is a unit only behind a metric it can be of.
_LETTER_UNIT = ("W", "w", "C", "c")
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
        r"^(?:max[ _-]?|num(?:ber)?[ _](?:of[ _])?)?(?:concurren\w+|(?<=max.)requests|conc|parallel\w*|clients?|users?|streams?|sessions?|batch(?:[ _]?size)?|bs|n|c|in[ -]?flight|并发(?:数|量)?|用户数)\b",
    ),
    (
        "context",
        r"^(?:context|ctx|(?:kv|context)[ _-]?depth|n[ _]past|prompt(?:[ _](?:tokens?|len(?:gth)?))?|input(?:[ _](?:tokens?|len(?:gth)?))?|isl|seq(?:uence)?[ _]?len(?:gth)?|tokens in|length|上下文|输入长度)\b",
    ),
    ("gpus", r"^(?:#?\s?(?:gpus?|cards?|ranks|devices)|tp(?:[ _]size)?|tensor[ _-]parallel\w*|nodes?|卡数)$"),
    (
        "version",
        r"^(?:version|release|image|tag|build|engine version|commit|source(?: state)?|wheel|版本)\b|^(?:vllm|sglang)(?: version)?$",
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


_RELEASE = re.compile(
    r"\b(?:previous|old|older|last|prior|earlier|former|this|new|newer|current|latest|present)"
    r" (?:engine |vllm |sglang )?(?:release|version|build|image|wheel|nightly)\b",
    re.IGNORECASE,
)
_ONE_STREAM = re.compile(r"\b(?:single|one|per|each|every|an?|\d+)[- ]streams?\b", re.IGNORECASE)
# ``prefill`` and ``decode`` name a phase, with "tokens" or "batches" a count; they are a rate only where a unit says so.
_PHASE = re.compile(
    r"^(?:prefill|prompt|input|output|decod(?:e|ing)|generat(?:ion|ed))(?:[ _-]tok(?:en)?s?)?$", re.IGNORECASE
)
_COUNTED = re.compile(
    r"^[\s-]?(?:batch(?:es)?|steps?|requests?|chunks?|calls?|nodes?|workers?|layout)\b", re.IGNORECASE
)
# ``spec steps``, ``drafts/step``: how often, in a table of a feature that is on throughout.
_TALLY = re.compile(
    r"(?:spec\w*|drafts?|mtp|eagle\d?|verif\w+)[ _-](?:steps?|rounds?|cycles?|calls?|iterations?)|drafts?/(?:step|cycle|round)",
    re.IGNORECASE,
)
_STAT = re.compile(
    r"avg\.?|averages?|mean|min(?:imum)?|max(?:imum)?|median|p ?\d{2}(?:\.\d+)?|\d{2}(?:\.\d+)?%|平均值?|最大值?|最小值?|中位数",
    re.IGNORECASE,
)
_PHASE_TIME = (
    ("prefill", "prefill_time"),
    ("queue", "queue_time"),
    ("transfer", "transfer_time"),
    ("step", "step_time"),
)
# A yield (``tok/s per W``) is none of the quantities it is made of.
_YIELD = re.compile(r"\bper (?:w(?:att)?|joule|kwh|dollar|\$)(?![a-z])", re.IGNORECASE)
# A column of differences of two others: its figures are none that anybody measured.
_DIFFERENCE = re.compile(
    r"(?:abs(?:olute)? )?(?:diff(?:erence)?|delta|Δ)(?: \(?[a-z/]{1,6}\)?)?|差值|差异", re.IGNORECASE
)
SIZE = re.compile(r"^[x×]?\s?(\d[\d,]*(?:\.\d+)?)\s?([kKM])?[xX×]?$")


_LOADED = re.compile(
    r"^(?:c|n|bs|conc(?:urrency)?|batch)\s?=\s?(?P<n>\d{1,5})[\s,]+(?P<rest>[A-Za-z][^=]*)$", re.IGNORECASE
)


class Head(Struct):
    """What a column or row label says: a metric, conditions, or a kind whose value stands in each cell.

    ``phase``: only a phase of the work is named, which is a rate where the unit says so.
    """

    text: str
    mention: Mention | None = None
    kind: str = ""
    unit: tuple[str, float] | None = None
    marks: list[Condition] = field(default_factory=list)
    relative: bool = False
    difference: bool = False
    phase: bool = False
    stat: str = ""
    crossed: bool = False


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
    if _YIELD.search(spaced):
        return item
    if _TALLY.fullmatch(clean):
        item.kind = "aside"
        return item
    if _STAT.fullmatch(clean):
        item.stat = metrics.stat_near(spaced, 0, len(spaced))
    unit = _unit(clean) or _unit(spaced)
    if unit:
        item.unit = unit_of(unit["u"])
    item.difference = _DIFFERENCE.fullmatch(clean) is not None
    item.relative = bool(
        re.search(
            r"\brelative\b|\bvs\.?(?:\s|$)|\bchange\b|\bdelta\b|Δ|against|compared|diff(?:erence)?\b|变化",
            clean,
            re.IGNORECASE,
        )
    )
    found = metrics_of(clean) if item.unit or len(clean.split()) <= 6 else None
    item.kind = _kind(clean, spaced, item.unit, found)
    if re.fullmatch(rf"(?:{'|'.join(lexicon.names().packages)})(?: version)?", spaced, re.IGNORECASE) and not item.kind:
        item.kind = "package"
    elif _SUM.search(spaced) and not item.kind and item.unit and item.unit[0] == "tokens_per_s":
        item.mention = Mention("generation_tps", 0, 0)
    bare = _UNIT.sub(" ", clean).strip() if unit else clean
    item.marks = marks_of(bare)
    if any(mark.kind == item.kind and mark.number is not None for mark in item.marks):
        item.kind = ""
    if not item.kind or item.kind == "uptime":
        timed = _timed(spaced, item.unit, found)
        item.phase = found is not None and _phase(clean, item.unit, found)
        if timed or (found is not None and not (item.phase and _counted(clean, found))):
            item.mention, item.kind = timed or found, ""
        elif item.unit and item.unit[0] in metrics.DEFAULTS and not item.kind:
            item.mention = Mention(metrics.DEFAULTS[item.unit[0]], 0, 0)
    return item


def _unit(text: str) -> re.Match[str] | None:
    found = _UNIT.search(text)
    if found is None or found["u"] not in _LETTER_UNIT or text[found.start("u") - 1 : found.start("u")].strip():
        return found
    named = metrics_of(text[: found.start("u")])
    return found if named is not None and metrics.fits(named.metric, unit_of(found["u"])[0]) else None


def _kind(clean: str, spaced: str, unit: tuple[str, float] | None, found: Mention | None) -> str:
    """The kind of condition whose value stands in each cell; a metric named behind the word for it comes first."""
    if setting_of(clean):
        return "setting"
    timed = unit is not None and unit[0] in ("seconds", "tokens_per_s", "requests_per_s")
    if re.search(r"latency|throughput|usage|rate", spaced, re.IGNORECASE):
        return ""
    for kind, pattern in _KIND:
        hit = pattern.match(spaced)
        if hit is None or (timed and kind != "uptime"):
            continue
        if found is not None and (kind == "uptime" or found.stop > hit.end()):
            continue
        return kind
    return ""


def _phase(text: str, unit: tuple[str, float] | None, found: Mention) -> bool:
    """Whether only a phase of the work is named (``decode``, ``prefill tokens``), which is no rate without a unit."""
    rate = found.metric in ("prompt_tps", "generation_tps")
    return rate and unit is None and bool(_PHASE.match(text[found.start : found.stop].strip()))


def _counted(text: str, found: Mention) -> bool:
    """``prefill batches``, ``output tokens``: how many there were."""
    return "tok" in text[found.start : found.stop].lower() or bool(_COUNTED.match(text[found.stop :]))


def _timed(spaced: str, unit: tuple[str, float] | None, found: Mention | None) -> Mention | None:
    """``prefill p50 s``, ``queue (ms)``: the time of a phase."""
    if unit is None or unit[0] != "seconds" or (found is not None and metrics.fits(found.metric, "seconds")):
        return None
    metric = next((metric for word, metric in _PHASE_TIME if re.match(rf"{word}\b", spaced, re.IGNORECASE)), "")
    return Mention(metric, 0, 0, metrics.stat_near(spaced, 0, len(spaced))) if metric else None


@lru_cache(maxsize=1)
def _flags() -> dict[str, str]:
    """Flag of an engine, with spaces between its words → the name shared by the engines."""
    out: dict[str, str] = {}
    for engine in ("vllm", "sglang"):
        for flag in read_yaml(ROOT / "config" / f"{engine}_flags.yaml")["flags"]:
            if "-" in flag["name"]:
                out[flag["name"].replace("-", " ")] = str(flag.get("fact") or flag["name"]).removeprefix("config.")
    return out


def setting_of(text: str) -> str:
    """The setting a header is the name of (``--max-num-seqs``, ``max_num_seqs``); empty when it is none."""
    spaced = re.sub(r"[-_\s]+", " ", text.strip("` -")).lower()
    known = _flags().get(spaced, "")
    if not known and re.match(r"--[a-z][\w-]+$", text.strip("` ")):
        known = text.strip("` -").replace("-", "_")
    return known


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
    release = _RELEASE.search(text)
    if release and not any(mark.kind == "version" for mark in marks):
        marks = [mark for mark in marks if mark.kind != "side"]
        marks.append(Condition("version", release.start(), release.end(), release[0].lower()))
    choice = alternatives.known(text)
    feature = "" if choice else conditions.feature_of(_ONE_STREAM.sub(" ", text))
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
