"""What one cell of a table says: a figure, a change against the other side, or words for the sentence reader."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct, field

from tools.report import lexicon, metrics, quantities
from tools.report.blocks import Line
from tools.report.conditions import Condition
from tools.report.headers import Head
from tools.report.metrics import Mention
from tools.report.observe import UNITS, Observation
from tools.report.quantities import Quantity

Unit = tuple[str, float]
_SAME = re.compile(
    r"^\s?(?:about |roughly |nearly |exactly )?(?:the )?(?:same|unchanged|equal|identical|no (?:change|difference))\s*$|^\s?(?:不变|相同|一样|持平)\s*$",
    re.IGNORECASE,
)
_NATURAL = (
    "generation_tps",
    "prompt_tps",
    "total_tps",
    "user_tps",
    "requests_per_s",
    "power",
    "clock_sm",
    "clock_mem",
    "temperature",
    "power_limit",
    "cpu_cores",
    "cpu_limit",
    "busbw",
)
# Fractions that people also write as a bare number from 0 to 1.
_SHARES = ("prefix_hit_rate", "acceptance_rate", "kv_usage", "gpu_util", "cpu_util")
_COUNTED = ("preemptions", "errors", "timeouts", "retries", "restarts")
_PER = re.compile(
    r"\b(?:per|each|/)\s?(?P<per>hour|h|min(?:ute)?|s(?:ec(?:ond)?)?|day)\b|每(?P<zh>小时|分钟|秒|天)", re.I
)
# Bandwidth of a memory or a disk is none of a link.
_STORES = re.compile(r"\b(?:memory|mem|hbm|dram|swap|disk|ssd|nvme|storage|checkpoint)\b|内存|显存|磁盘", re.IGNORECASE)
_EACH = re.compile(r"\b(?:per|each|every|single)[ -](?:user|session|stream|client|request)\b|单路|每路", re.IGNORECASE)
_PROCESS = re.compile(r"\bVLLM::|\bWorker_?(?:TP|PP|DP)?\d|\bEngine_?Core|\bapi ?server\b|\bsglang::", re.IGNORECASE)
_WORSE = re.compile(r"\b(?:worse|slower)\b|变差|更慢", re.IGNORECASE)
_BETTER = re.compile(r"\b(?:better|faster)\b|变好|更快", re.IGNORECASE)
_MORE = re.compile(r"\b(?:higher|more|longer|up)\b|更高|增加", re.IGNORECASE)
_LESS = re.compile(r"\b(?:lower|less|fewer|shorter|down)\b|更低|减少", re.IGNORECASE)
_WORDS = re.compile(r"[A-Za-z]{4,}.*[A-Za-z]{4,}")
_LEADS = re.compile(r"\s?(?:$|[,;(/]|(?:in|on|at|for|with|during|while|over|to|and)\b)")
_CEILING = re.compile(
    r"\b(?:ceiling|limit|roof(?:line)?|target|theor\w+|ideal|at best|bound)\b|上限|理论", re.IGNORECASE
)
_SPAN = re.compile(r"^\W*(?:between\s)?\W*[\d.,]+\s?(?:and|to|至|到)\s?[\d.,]+", re.IGNORECASE)


class Told(Struct):
    """What a table says. ``spoken`` are cells of words with figures: line, place in it, text, conditions."""

    found: list[Observation] = field(default_factory=list)
    ratios: list[Observation] = field(default_factory=list)
    spoken: list[tuple[Line, int, str, dict[str, Condition]]] = field(default_factory=list)


class Place(Struct):
    """Where a cell stands: its line and row, what its column and row say, and what is compared in it.

    ``natural``: bare figures of a rate are in its natural unit.
    """

    line: Line
    at: int
    row: int
    column: Head
    label: Head
    conditions: dict[str, Condition]
    relative: bool = False
    differences: bool = False
    natural: bool = True


def each(text: str) -> bool:
    """Whether a label speaks of one user or request."""
    return bool(_EACH.search(text))


def default(dim: str, label: str) -> Mention | None:
    """The metric of a figure that nothing names, by its dimension."""
    if dim == "bytes" and _PROCESS.search(label):
        return Mention("host_memory", 0, 0)
    if dim == "bytes_per_s" and _STORES.search(label):
        return None
    if dim == "tokens_per_s" and each(label):
        return Mention("user_tps", 0, 0)
    return Mention(metrics.DEFAULTS[dim], 0, 0) if dim in metrics.DEFAULTS else None


def read(
    written: str, place: Place, mention: Mention | None, unit: Unit | None, out: Told
) -> tuple[Mention, Unit | None] | None:
    """Add what a cell says to ``out``; gives back the metric and unit that it had."""
    text = re.sub(r"[*`]", " ", written)
    shift = text.rfind("=") + 1
    numbers = [item for item in quantities.find(text) if item.dim != "count" and item.start >= shift]
    if mention is not None and not numbers and _SAME.match(text):
        metric = metrics.resolve(mention.metric, unit[0] if unit else "tokens_per_s")
        out.ratios.append(_ratio(metric, 1.0, written.strip(), mention.stat, place))
        return None
    if not numbers:
        return None
    rate = mention is not None and len(numbers) == 1 and re.search(r"tok|req|per", text)
    if _WORDS.search(text) and not rate and not _plain_start(text, numbers[0]):
        # "2 % of requests over 60 s": a bound that is counted against is no time that was measured.
        if not any(item.cmp for item in numbers):
            out.spoken.append((place.line, place.at, written, place.conditions))
        return None
    if mention is None:
        mention = default(numbers[0].dim, f"{place.column.text} {place.label.text}")
    if mention is None:
        return None
    stats = mention.stats or (place.label.mention.stats if place.label.mention else ())
    if _SPAN.match(text) and len(numbers) >= 2 and not stats:
        numbers = [_spanned(numbers[0], numbers[1])]
    variants = [] if stats else _variants(place, numbers, text)
    for index, item in enumerate(numbers[: max(1, len(stats), len(variants))]):
        stat = stats[index] if index < len(stats) and len(stats) == len(numbers) else mention.stat
        whole = len(numbers) == 1 or not (stats or variants)
        span = written.strip() if whole else text[item.start : item.stop].strip()
        extra = {"variant": variants[index]} if index < len(variants) else {}
        _figure(item, mention, unit, stat, span, extra, place, text[:shift], out)
    factor = numbers[0].value / numbers[0].raw if numbers[0].raw and numbers[0].dim != "plain" else None
    return mention, (unit or ((numbers[0].dim, factor) if factor is not None else None))


def _plain_start(text: str, item: Quantity) -> bool:
    """``0.8 in the bad minutes``: the figure leads and what follows only says when or where."""
    return not re.search(r"\w", text[: item.start]) and bool(_LEADS.match(text, item.stop)) and item.noun == ""


def _spanned(low: Quantity, high: Quantity) -> Quantity:
    """``between 6 and 10`` as one range."""
    if low.low is not None or high.low is not None or low.raw >= high.raw or "plain" not in (low.dim, high.dim):
        return low
    scale = high.value / high.raw if high.raw else 1.0
    high.low, high.high = low.raw * scale, high.value
    high.value, high.raw = (high.low + high.high) / 2, (low.raw + high.raw) / 2
    high.start = low.start
    return high


def _variants(place: Place, numbers: list[Quantity], text: str) -> list[Condition]:
    """Names of the two figures of a cell ``76 / 95`` under ``…, prose / code, …``."""
    if len(numbers) < 2 or text.count("/") != len(numbers) - 1:
        return []
    for source in (place.column.text, place.label.text):
        listed = re.search(
            r"(?<![\w/])[A-Za-z][\w-]*(?:\s?/\s?[A-Za-z][\w-]*)+", re.sub(r"\b\w+/s(?:ec)?\b", "", source)
        )
        parts = re.split(r"\s?/\s?", listed[0]) if listed else []
        if len(parts) == len(numbers):
            return [Condition("variant", 0, len(part), part) for part in parts]
    return []


def _figure(
    item: Quantity,
    mention: Mention,
    unit: Unit | None,
    stat: str,
    span: str,
    extra: dict[str, Condition],
    place: Place,
    formula: str,
    out: Told,
) -> None:
    value, dim = (item.value, item.dim) if item.dim != "plain" or unit is None else (item.raw * unit[1], unit[0])
    metric = metrics.resolve(mention.metric, dim)
    if place.column.difference and item.dim not in ("fraction", "factor"):
        return
    changed = _change(item, metric, span, place)
    if changed is not None:
        out.ratios.append(_ratio(metric, changed, span, stat, place))
        return
    if dim == "plain" and metric in _SHARES and 0 <= value <= 1:
        dim = "fraction"
    if dim == "plain" and metric in _COUNTED and float(value).is_integer():
        dim = "count"
    if not metrics.fits(mention.metric, dim):
        if dim in metrics.DEFAULTS:
            found = default(dim, f"{place.column.text} {place.label.text}")
            if found is None:
                return
            metric = found.metric
        elif dim != "plain" or (not metrics.fits(metric, "plain") and (metric not in _NATURAL or not place.natural)):
            return
    difference = item.signed and item.raw != 0 and dim in ("seconds", "tokens_per_s", "requests_per_s", "plain")
    if difference or place.differences:
        if dim != "seconds":
            return
        difference = True
    found_conditions = {**place.conditions, **extra}
    ceiling = _CEILING.search(formula)
    if ceiling:
        found_conditions["reference"] = Condition("reference", 0, len(formula), ceiling[0])
    if metric in ("running", "waiting") and item.high is not None:
        value = item.high
    per = _PER.search(f"{place.label.text} {place.column.text}") if metric in _COUNTED else None
    out.found.append(
        Observation(
            metric,
            value,
            _canonical(metric, dim, item),
            place.line.no,
            span,
            stat,
            item.low,
            item.high,
            item.cmp,
            item.approx,
            item.per or ((per["per"] or per["zh"]) if per else ""),
            found_conditions,
            norm="reference" in found_conditions,
            extra=difference,
            order=place.row,
        )
    )


def _change(item: Quantity, metric: str, span: str, place: Place) -> float | None:
    """The ratio a relative cell states: ``-8 %``, ``13 % worse``, ``1.2x``; ``None`` for a value of its own."""
    relative = place.column.relative or place.relative
    if item.dim == "fraction" and not metrics.fits(metric, "fraction"):
        worded = _worded(metric, span)
        if relative and worded:
            return 1 + worded * abs(item.value)
        if item.signed or (relative and abs(item.value) <= 0.03):
            return 1 + item.value
    if relative and item.dim in ("factor", "fraction"):
        return item.value
    return None


def _worded(metric: str, span: str) -> int:
    """Whether a share more or less is meant, by the words in the cell; 0 when none says."""
    better = lexicon.metrics()[metric].better
    up = 1 if better == "low" else -1 if better == "high" else 0
    if _WORSE.search(span):
        return up
    if _BETTER.search(span):
        return -up
    return 1 if _MORE.search(span) else -1 if _LESS.search(span) else 0


def _ratio(metric: str, ratio: float, span: str, stat: str, place: Place) -> Observation:
    common: dict[str, Any] = {"conditions": dict(place.conditions), "order": place.row}
    return Observation(metric, ratio, "x", place.line.no, span, stat, **common)


def _canonical(metric: str, dim: str, item: Quantity) -> str:
    if dim in UNITS:
        return UNITS[dim]
    guess = {
        "generation_tps": "tokens/s",
        "prompt_tps": "tokens/s",
        "total_tps": "tokens/s",
        "user_tps": "tokens/s",
        "requests_per_s": "requests/s",
    }
    return guess.get(metric, item.unit)
