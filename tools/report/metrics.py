"""Which quantity a figure is: mentions of metrics with their statistic and declared unit, and the choice per figure."""

from __future__ import annotations

import re

from msgspec import Struct

from tools.report import lexicon
from tools.report.quantities import Quantity

STATS: tuple[tuple[str, str], ...] = (
    ("p99", r"\bp99(?:\.\d)?\b|99th|99 ?(?:th )?percentile|99分位|tp99"),
    ("p95", r"\bp95\b|95th|tp95"),
    ("p90", r"\bp90\b|90th|tp90"),
    ("p50", r"\bp50\b|\bmedian\b|50th|中位"),
    ("max", r"\bmax(?:imum)?\b|\bpeaks?\b|\bworst\b|最大|峰值|最高"),
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
    r"^\s?(?:of |in |mean |average |avg |median |p\d\d |more |extra |additional |lower |higher |the |for |as |a |\(|max |peak |total )*$",
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
        out.append(item)
    return out


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


_WORK = re.compile(
    r"\b(?:benchmarks?|runs?|jobs?|batch(?:es)?|corpus|(?:work)?load|drain\w*|build|requests|prompts|questions|tests?|sweep|pass(?:es)?|procedure|processing|evaluation|eval|dataset|documents)\b|压测|任务|批量",
    re.IGNORECASE,
)


def choose(text: str, item: Quantity, found: list[Mention], taken: list[Quantity]) -> Mention | None:
    """The metric a figure belongs to, ``None`` when nothing says so. ``taken`` are figures already assigned."""
    mention = _choose(text, item, found, taken)
    if (
        mention is not None
        and mention.metric == "takes"
        and _WORK.search(text[max(0, mention.start - 80) : mention.start])
    ):
        return Mention("duration", mention.start, mention.stop, mention.stat, mention.unit, mention.stats)
    return mention


def _choose(text: str, item: Quantity, found: list[Mention], taken: list[Quantity]) -> Mention | None:
    worded = _worded(text, item) or _cores(text, item)
    if worded:
        return Mention(worded, item.start, item.stop)
    behind = [m for m in found if m.start >= item.stop and _BEHIND.match(text[item.stop : m.start])]
    before = [m for m in found if m.stop <= item.start and _usable(m, item)]
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
    default = DEFAULTS.get(item.dim)
    return Mention(default, item.start, item.stop) if default else None


def _usable(mention: Mention, item: Quantity) -> bool:
    if fits(mention.metric, item.dim):
        return True
    return item.dim == "plain" and mention.unit is not None and fits(mention.metric, mention.unit[0])


def _blocked(text: str, mention: Mention, item: Quantity) -> bool:
    """A plain number far from its metric, or behind a sentence part that speaks of something else, is not its value."""
    between = text[mention.stop : item.start]
    if item.dim == "plain" and mention.unit is None:
        return not re.fullmatch(
            r"[\s:=~<>(]*(?:is|are|was|were|of|at|about|only|reads?|shows?|around|roughly|falls? to|drops? to|rises? to|from|[\s,])*[\s~]*(?:[\d.,\s/]|about|and|to)*",
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
        return len(between) > 48 or bool(re.search(r"[;:]", between[1:]))
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


def _worded(text: str, item: Quantity) -> str:
    if item.dim != "tokens_per_s":
        return ""
    unit = re.sub(r"^[\d.,\s~<>+kK-]+", "", text[item.start : item.stop])
    for metric, pattern in _WORDS:
        if re.match(pattern, unit, re.IGNORECASE):
            return metric
    return ""
