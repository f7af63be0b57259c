"""Which quantity a figure is: mentions of metrics with their statistic and declared unit, and the choice per figure."""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

from tools.report import lexicon, ratings
from tools.report.quantities import Quantity

STATS: tuple[tuple[str, str], ...] = (
    ("p99", r"\bp99(?:\.\d)?\b|99th|99 ?(?:th )?percentile|99分位|tp99"),
    ("p95", r"\bp95\b|95th|tp95"),
    ("p90", r"\bp90\b|90th|tp90"),
    ("p50", r"\bp50\b|\bmedian\b|50th|中位"),
    ("max", r"\bmax(?:imum)?\b|\bpeaks?\b|\bworst\b|\bslowest\b|最大|峰值|最高|最慢"),
    ("min", r"\bmin(?:imum)?\b|\bbest\b|最小|最低"),
    ("mean", r"\bmean\b|\bavg\b|\baverage[ds]?\b|平均"),
)
_STAT = re.compile("|".join(f"(?P<{name}>{body})" for name, body in STATS), re.IGNORECASE)
_DECLARED = re.compile(
    r"^[^.;:]{0,24}?(?:\bin|\()\s?(?P<unit>ms|milliseconds|us|µs|s|sec|seconds|tok(?:ens)?/s|%|GB/s|GiB)\b",
    re.IGNORECASE,
)
_UNIT_DIM = {
    "ms": ("seconds", 0.001),
    "milliseconds": ("seconds", 0.001),
    "us": ("seconds", 1e-6),
    "µs": ("seconds", 1e-6),
}
_BEHIND = re.compile(
    r"^\s?(?:is |of |in |mean |average |avg |median |p\d\d |more |extra |additional |lower |higher |the |for |as |a |\(|max |peak |total )*$",
    re.IGNORECASE,
)
DEFAULTS = {
    "tokens_per_s": "generation_tps",
    "requests_per_s": "requests_per_s",
    "watts": "power",
    "hertz": "clock_sm",
    "celsius": "temperature",
    "bytes_per_s": "busbw",
}
_PROMPT = re.compile(
    r"\b(?:prompt|prefill|input)\b(?! (?:tokens?|of|and))[^,;.]{0,40}$|预填充[^,，。]{0,12}$", re.IGNORECASE
)


class Mention(Struct):
    """A metric named in a sentence; ``unit`` where the text declares it for bare figures (``TTFT in ms``)."""

    metric: str
    start: int
    stop: int
    stat: str = ""
    unit: tuple[str, float] | None = None
    stats: tuple[str, ...] = ()


def mentions(text: str, written: str) -> list[Mention]:
    """Metric mentions of a masked sentence (``written``: the same as the person wrote it), left to right."""
    out: list[Mention] = []
    ids = lexicon.metric_ids()
    for found in lexicon.metric_pattern().finditer(text):
        if not found.lastgroup or found.end() == found.start():
            continue
        item = Mention(ids[int(found.lastgroup[1:])], found.start(), found.end())
        item.stat = stat_near(written, item.start, item.stop)
        item.stats = stat_list(written, item.start, item.stop)
        declared = _DECLARED.match(text[item.stop : item.stop + 40])
        if declared and not re.search(r"\d", re.sub(r"\b[pP]\d\d\b", "", declared[0])):
            item.unit = _declared(declared["unit"])
        # "hit rate: GPU: 12 %, CPU: 0 %": a side of the metric in front, no utilisation.
        if item.metric in ("gpu_util", "cpu_util") and out and _TIER.fullmatch(text, out[-1].stop, item.stop):
            continue
        out.append(item)
    return out


_TIER = re.compile(r"\s?[:=]\s?(?:[gc]pus?\s?[:=]?\s?[\d.]+\s?%\s?[,;/]\s?(?:and\s)?)?[gc]pus?", re.IGNORECASE)


def _declared(unit: str) -> tuple[str, float]:
    low = unit.lower()
    if low in _UNIT_DIM:
        return _UNIT_DIM[low]
    if low.startswith("tok"):
        return ("tokens_per_s", 1.0)
    if low == "%":
        return ("fraction", 0.01)
    if low == "gb/s":
        return ("bytes_per_s", 1.0)
    if low == "gib":
        return ("bytes", 1.0)
    return ("seconds", 1.0)


def stat_near(text: str, start: int, stop: int, inside: bool = True) -> str:
    """Statistic named right in front of, (for names) in, or behind ``text[start:stop]``; empty when none is."""
    found: re.Match[str] | None = None
    for hit in _STAT.finditer(text, max(0, start - 12), stop if inside else start):
        found = hit
    if found is None and re.match(r"\s?(?:requests?\s|tokens?\s)?on average\b", text[stop : stop + 24], re.IGNORECASE):
        return "mean"
    if found is None:
        found = _STAT.search(text, stop, min(len(text), stop + 8))
        if (
            found
            and (
                not re.fullmatch(r"[\s(:]*", text[stop : found.start()])
                or re.match(r"\s?[:=]?\s?[~<>]?\d", text[found.end() : found.end() + 4])
                # "753 tok/s (peak of the curve 1,300)": the statistic belongs to the figure inside the parentheses.
                or (
                    "(" in text[stop : found.start()]
                    and re.match(r"[^()\d]{0,40}\d", text[found.end() : found.end() + 48])
                )
            )
        ):
            found = None
    return found.lastgroup or "" if found else ""


def stat_list(text: str, start: int, stop: int) -> tuple[str, ...]:
    """Statistics of a slash list around a metric: ``TTFT p50/p95`` → ``("p50", "p95")``; empty when there is none."""
    window = text[max(0, start - 16) : stop + 20]
    hit = re.search(
        r"\b(?:p\d\d|mean|avg|median|max|min)(?:\s?/\s?(?:p\d\d|mean|avg|median|max|min))+\b", window, re.IGNORECASE
    )
    if not hit:
        return ()
    return tuple((found.lastgroup or "") for found in _STAT.finditer(hit[0]))


def fits(metric_id: str, dim: str) -> bool:
    """Whether a value of this dimension can be a value of the metric."""
    dims = lexicon.metrics()[metric_id].dims
    return dim in dims or (dim == "count" and "plain" in dims)


def resolve(metric_id: str, dim: str) -> str:
    """The generic ``throughput`` becomes what its unit says."""
    if metric_id == "throughput":
        return "requests_per_s" if dim == "requests_per_s" else "generation_tps"
    return metric_id


# Shares that people also write as a bare number between 0 and 1.
_SHARES = ("kv_usage", "prefix_hit_rate", "acceptance_rate")


_WORK = re.compile(
    r"\b(?:benchmarks?|runs?|jobs?|batch(?:es)?|corpus|(?:work)?load|drain\w*|build|requests|prompts|questions|tests?|sweep|pass(?:es)?|procedure|processing|evaluation|eval|dataset|documents)\b|压测|任务|批量",
    re.IGNORECASE,
)


def choose(text: str, item: Quantity, found: list[Mention], taken: list[Quantity]) -> Mention | None:
    """The metric a figure belongs to, ``None`` when nothing says so. ``taken`` are figures already assigned."""
    if ratings.of_equipment(text, item):
        return None
    timed, mention = _eval_line(text, item)
    if not timed:
        mention = _choose(text, item, found, taken)
    if mention is None or (mention.metric in _RATES and item.dim == "plain" and _OTHER_UNIT.match(text, item.stop)):
        return None
    if mention.metric == "takes":
        owner = _owner(text, item, mention, found)
        if owner is not None:
            return owner
        if _WORK.search(text[max(0, mention.start - 80) : mention.start]):
            return msgspec.structs.replace(mention, metric="duration")
    elif mention.metric in ("requests_per_s", "throughput") and item.dim == "requests_per_s":
        if ratings.asked(text, item, _timed(found)):
            return msgspec.structs.replace(mention, metric="request_rate")
    elif mention.metric in ("gpu_memory", "host_memory") and item.dim == "fraction":
        if _OF_LIMIT.match(text, item.stop):
            return None
    elif mention.metric == "accuracy" and item.dim != "fraction" and item.value > 100:
        return None
    elif mention.metric in _SHARES and item.dim == "plain" and mention.unit is None:
        if item.value > 1:
            return msgspec.structs.replace(mention, metric="acceptance_length")
        return msgspec.structs.replace(mention, unit=("fraction", 1.0))
    return mention


_RATES = ("throughput", "generation_tps", "total_tps", "prompt_tps", "user_tps", "requests_per_s")
# "14 → 16.8 pages/s": a rate of something else.
_OTHER_UNIT = re.compile(
    r"\s?(?:(?:-?->|→|to|-|–)\s?[\d.,]+\s?)?(?!tok|req|prompt|sample|quer|step|it/|iter)[a-z]{3,12}\s?/\s?(?:s|sec|second|min)\b",
    re.IGNORECASE,
)
# The timing lines of llama.cpp and Ollama: "prompt eval time = 176 ms / 58 tokens (3 ms per token, 328 tokens per second)".
_EVAL = re.compile(
    r"\b(?:(?P<prompt>prompt )?eval(?:uation)?|(?P<total>total))\s(?:time|rate|duration)\s?[=:]", re.IGNORECASE
)


def _eval_line(text: str, item: Quantity) -> tuple[bool, Mention | None]:
    """Whether a figure stands in such a line, and what it is there; the time per prompt token, which is the rate beside
    it once more, is nothing."""
    lines = list(_EVAL.finditer(text, max(0, item.start - 120), item.start))
    line = lines[-1] if lines else None
    if line is None or line["total"]:
        return False, None
    if item.dim == "tokens_per_s":
        return True, Mention("prompt_tps" if line["prompt"] else "generation_tps", item.start, item.stop)
    if line["prompt"] and item.dim == "seconds":
        whole = text[line.end() : item.start].isspace()
        return True, Mention("prefill_time", line.start(), line.end()) if whole else None
    return False, None


# A share of what a container may use is no memory in use on the GPU.
_OF_LIMIT = re.compile(r"\s?of (?:the |its )?(?:\w+ )?(?:limit|request|quota)\b", re.IGNORECASE)
_CARD_HOLDS = re.compile(
    r"\b(?:gpus?|cards?|nvidia-smi)\b[^.;,]{0,24}\b(?:shows?|says|reports|needs?|takes?|uses?|holds?|fills?)\s(?:about |around |only )?$",
    re.IGNORECASE,
)
_PHRASES = r"(?:\s(?:from|to|of|for|on|in|per|with|at)(?:\s(?:a|an|the|each|one|this|our))?\s[\w-]+){0,3}"
_SUBJECT = re.compile(
    _PHRASES + r"\s(?:now\s|still\s|often\s|usually\s|then\s|itself\s|alone\s|already\s|only\s|always\s)?",
    re.IGNORECASE,
)


def _owner(text: str, item: Quantity, takes: Mention, found: list[Mention]) -> Mention | None:
    """What "takes 4 s" is said of: its subject in front, or the moment behind ("takes 4 s until the first token")."""
    for other in reversed(found):
        if other.metric == "takes" or not fits(other.metric, item.dim):
            continue
        if other.stop <= takes.start and _SUBJECT.fullmatch(text, other.stop, takes.start):
            return other
        if other.start >= item.stop and text[item.stop : other.start].isspace():
            return other
    return None


def _timed(found: list[Mention]) -> bool:
    return any("seconds" in lexicon.metrics()[other.metric].dims for other in found)


def _choose(text: str, item: Quantity, found: list[Mention], taken: list[Quantity]) -> Mention | None:
    worded = _worded(text, item) or _cores(text, item)
    if worded:
        return Mention(worded, item.start, item.stop, stat_near(text, item.start, item.stop))
    behind = [m for m in found if m.start >= item.stop and _BEHIND.match(text[item.stop : m.start])]
    before = [m for m in found if m.stop <= item.start and (_usable(m, item) or _counter(text, m, item))]
    near = before[-1] if before else None
    if behind and _usable(behind[0], item):
        follower = behind[0]
        claimed = near is not None and not any(near.stop <= other.start < item.start for other in taken)
        own_value = re.match(
            r"\s?(?:is|are|was|of|at|:|=|to|from|stays?|falls?|drops?|rises?)?\s?[~<>]?\d",
            text[follower.stop : follower.stop + 12],
        )
        if not claimed or (near is not None and item.start - near.stop > 40) or (not own_value and near is None):
            return follower
    if near is not None and not _blocked(text, near, item):
        return near
    if behind and _usable(behind[0], item):
        return behind[0]
    if item.dim == "tokens_per_s" and _PROMPT.search(text[max(0, item.start - 60) : item.start]):
        return Mention("prompt_tps", item.start, item.stop)
    if item.dim == "tokens_per_s" and item.per in ("user", "request", "stream", "client", "session"):
        return Mention("user_tps", item.start, item.stop)
    if item.dim == "bytes" and _CARD_HOLDS.search(text[max(0, item.start - 60) : item.start]):
        return Mention("gpu_memory", item.start, item.stop)
    default = DEFAULTS.get(item.dim)
    return Mention(default, item.start, item.stop) if default else None


def _usable(mention: Mention, item: Quantity) -> bool:
    if fits(mention.metric, item.dim) or _bare_share(mention, item):
        return True
    return item.dim == "plain" and mention.unit is not None and fits(mention.metric, mention.unit[0])


def _counter(text: str, mention: Mention, item: Quantity) -> bool:
    """``restart count 14``: the name says that it counts, so the number needs no noun."""
    named = text[mention.start : mention.stop].lower().endswith((" count", "_count", "_total"))
    return item.dim == "plain" and named and "count" in lexicon.metrics()[mention.metric].dims


def _bare_share(mention: Mention, item: Quantity) -> bool:
    """``KV use 0.4``, ``acceptance 2.53``: a decimal without a unit; above 1 an acceptance counts tokens."""
    if item.dim != "plain" or mention.metric not in _SHARES or mention.unit is not None or item.kilo != 1.0:
        return False
    top = 20 if mention.metric == "acceptance_rate" else 1
    return 0 <= item.value < top and item.raw != int(item.raw)


_LISTED_STAT = r"(?:p\d\d|\u00b7{3,5}|median|mean|avg|average|max|min)\s"
# "running: median 67, p95 96, max 103"
_LISTED = re.compile(rf"[^.;:]{{0,80}}:\s?(?:{_LISTED_STAT}[\d.,]+\s?){{0,6}}{_LISTED_STAT}", re.IGNORECASE)
# "prefill_time=\"99 ms\" kv_copy_time=\"4 s\"": the second figure has a key of its own.
_OWN_KEY = re.compile(r"[\s,;{(](?:[A-Za-z]+[_.][\w.]*\s?=|\"[\w.]+\"\s?:)\s?[\"']?$")


_CLIENT_GAP = re.compile(r"\bgaps? between (?:two |the )?(?:requests|calls|runs|turns|prompts)\b", re.IGNORECASE)


_LOWER = re.compile(r"\bcpus?\s?[:=]\s?$", re.IGNORECASE)
_FALLS = re.compile(
    r"\s(?:[a-z]+ly )?(?:degrad|drop|fall|fell|decay|decreas|declin|collaps|sink|sank|ris|rose|climb|go|went)\w*(?:\s[a-z]+){0,8}\sto(?:\s(?:about|around|only|just))?\s[~]?",
    re.IGNORECASE,
)


def _blocked(text: str, mention: Mention, item: Quantity) -> bool:
    """A plain number far from its metric, or behind a sentence part that speaks of something else, is not its value."""
    between = text[mention.stop : item.start]
    # "hit rate: GPU: 12 %, CPU: 0 %": what stands behind the second is its lower tier.
    if item.dim == "fraction" and mention.metric not in ("cpu_util", "gpu_util") and _LOWER.search(between[-16:]):
        return True
    if _OWN_KEY.search(between[-80:]) or _CLIENT_GAP.search(between[-80:]):
        return True
    if item.dim == "plain" and mention.unit is None:
        if mention.metric in ("running", "waiting") and _LISTED.fullmatch(between):
            return False
        if mention.metric in _SHARES and 0 < item.value < 1 and _FALLS.fullmatch(between):
            return False
        return not re.fullmatch(
            r"[`\s:=~<>(]*(?:is|are|was|were|has|have|holds?|of|at|about|only|exactly|between|(?:climb|rise|grow|go|jump|get)s? (?:up )?(?:to|past|above|beyond|over)|reads?|shows?|around|roughly|falls? to|drops? to|rises? to|from|[\s,])*[\s~]*(?:[\d.,\s/]|about|and|to)*",
            between,
            re.I,
        )
    if mention.metric in (
        "kv_usage",
        "gpu_util",
        "cpu_util",
        "errors",
        "timeouts",
        "gpu_memory",
        "host_memory",
        "free_memory",
        "temperature",
        "running",
    ):
        tier = re.match(r"\s?:\s?gpus?\s?[:=]", between, re.IGNORECASE)
        return (
            len(between) > 48
            or bool(re.search(r"[;:]", between[tier.end() if tier else 1 :]))
            or len(re.findall(r"[,，](?=\s?[\u3400-\u9fff])", between)) > 1
        )
    return False


_WORDS = (
    ("total_tps", r"^(?:\s?-?)total tok"),
    ("prompt_tps", r"^(?:\s?-?)(?:prompt|input) tok"),
    ("generation_tps", r"^(?:\s?-?)(?:output|generated?|generation|decode) tok"),
)


def _cores(text: str, item: Quantity) -> str:
    """CPU cores as a limit or as a use; a core count of the machine is neither."""
    if item.noun != "cores":
        return ""
    around = text[max(0, item.start - 40) : item.stop + 30]
    if re.search(
        r"\b(?:limit(?:ed|s)?|quota|granted|allowed|requests?|allotted|cgroup|限制|配额)\b", around, re.IGNORECASE
    ):
        return "cpu_limit"
    return (
        "cpu_cores"
        if re.search(r"\b(?:used?|uses|using|busy|climbs?|saturat\w+|burn\w*|占用)\b", around, re.IGNORECASE)
        else ""
    )


_EVERY = re.compile(r"\s?(?:/|per\s|an?\s|each\s|every\s)\s?(?:s\b|sec|min|hour|h\b|day|week)", re.IGNORECASE)


def _worded(text: str, item: Quantity) -> str:
    if item.noun in ("preemptions", "timeouts", "restarts"):
        return "" if _EVERY.match(text, item.stop) else item.noun
    if item.dim == "seconds" and text[item.start : item.stop].lower().endswith("token"):
        return "tpot"
    if item.dim == "tokens" and item.noun.startswith("cached"):
        return "cached_tokens"
    if item.dim != "tokens_per_s":
        return ""
    unit = re.sub(r"^[\d.,\s~<>+kK-]+", "", text[item.start : item.stop])
    for metric, pattern in _WORDS:
        if re.match(pattern, unit, re.IGNORECASE):
            return metric
    return ""
