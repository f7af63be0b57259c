"""Tables of any layout (Markdown, aligned with spaces, CSV, tab) become observations with row and column conditions."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct, field

from tools.report import conditions, entities, metrics, quantities
from tools.report.blocks import Block, Line, cells, table_mode
from tools.report.conditions import Condition
from tools.report.headers import CLOCK, SIZE, Head, clock_heads, head, marks_of, metrics_of, repeated, unit_of
from tools.report.metrics import Mention
from tools.report.observe import Observation
from tools.report.quantities import Quantity

MAX_ROWS = 20000
MAX_COLUMNS = 64
_RULE = re.compile(r"^[\s|:=+-]*$")
_SAME = re.compile(
    r"^\s?(?:about |roughly |nearly |exactly )?(?:the )?(?:same|unchanged|equal|identical|no (?:change|difference))\s*$|^\s?(?:不变|相同|一样|持平)\s*$",
    re.IGNORECASE,
)
_EMPTY = {"", "-", "–", "—", "n/a", "na", "none", "null", "nan", "?", "x", "tbd", "/"}
_CAPTION_UNIT = re.compile(
    r"(?:\(|\[|,\s?|\bin\s)(?P<u>ms|us|µs|seconds|s|tok(?:ens?)?/s|tps|req/s|rps|qps|%|GB/s|GiB|W|MHz)\b(?!\s\w+ed)|(?P<u2>tok(?:ens?)?/s|req/s)(?= per|\s?[:(]|$)"
)
_OWN = re.compile(
    r"^\W*(?:mine|ours?|here|this (?:cluster|machine|box|host|run)|my \w+|measured|actual|我的|实测)\b", re.IGNORECASE
)
_EACH = re.compile(r"\b(?:per|each|every|single)[ -](?:user|session|stream|client|request)\b|单路|每路", re.IGNORECASE)
_DAYS = re.compile(
    r"^(?:day|hour|h|d|min|week)\s?(\d+(?:\.\d+)?)$|^(\d+(?:\.\d+)?)\s?(min|m|h|hours?|d|days?|s|sec)$", re.IGNORECASE
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


class Cell(Struct):
    """A cell with its place in the line."""

    text: str
    start: int = 0


class Caption(Struct):
    """What the text before a table says of all of it: metrics it may hold, a unit, conditions."""

    mentions: list[Mention] = field(default_factory=list)
    unit: tuple[str, float] | None = None
    marks: list[Condition] = field(default_factory=list)

    def for_dim(self, dim: str) -> Mention | None:
        """The last metric named there that such a value can be of."""
        fit = [item for item in self.mentions if metrics.fits(item.metric, dim)]
        host = [item for item in fit if item.metric == "host_memory"]
        return (host or fit)[-1] if fit else None


def caption(texts: list[str]) -> Caption:
    """Caption from the sentences in front of a table (nearest last)."""
    out = Caption()
    for text in texts:
        names = entities.find(text)
        plain = entities.mask(text, names)
        found = quantities.find(plain)
        out.mentions.extend(
            item for item in metrics.mentions(plain, text) if not any(q.start <= item.start < q.stop for q in found)
        )
    if texts:
        unit = _CAPTION_UNIT.search(texts[-1])
        out.unit = unit_of(unit["u"] or unit["u2"]) if unit else None
        found_marks = [
            mark for mark in marks_of(texts[-1]) if mark.kind in ("tool", "route", "side") and not mark.number
        ]
        out.marks = found_marks if len(texts[-1]) < 90 else []
    return out


def read(block: Block, about: Caption, group: str) -> tuple[list[Observation], list[Observation]]:
    """Observations of one table, and its relative cells (``-8 %``), whose ``value`` is the ratio."""
    lines = [line for line in block.lines if not _RULE.match(line.text)][:MAX_ROWS]
    mode = table_mode([line.text for line in block.lines[:3]]) or "gap"
    if len(lines) < 2:
        return [], []
    header = _split(lines[0], mode)[:MAX_COLUMNS]
    if (
        mode == "gap"
        and header
        and header[0].start > 0
        and max(len(_split(line, mode)) for line in lines[1:8]) > len(header)
    ):
        header.insert(0, Cell("", 0))
    body = [(line, _align(_split(line, mode), header, mode)) for line in lines[1:]]
    if _numeric_row(header):
        return [], []
    heads = [head(cell.text) for cell in header]
    clock_heads(heads)
    repeated(heads)
    labels = sum(1 for _, row in body if row and metrics_of(row[0].text) is not None)
    transposed = labels * 2 >= len(body) and labels > 0 and not any(item.mention for item in heads[1:])
    out: list[Observation] = []
    ratios: list[Observation] = []
    for number, (line, row) in enumerate(body):
        _row(line, row, heads, transposed, about, out, ratios, number)
    for item in (*out, *ratios):
        item.group = group
    return out, ratios


def _split(line: Line, mode: str) -> list[Cell]:
    if mode == "gap":
        return [Cell(found[0].strip(), found.start()) for found in re.finditer(r"\S+(?:\s\S+)*", line.text)]
    return [Cell(re.sub(r"^[*_`]+|[*_`]+$", "", text)) for text in cells(line.text, mode)]


def _align(row: list[Cell], header: list[Cell], mode: str) -> list[Cell]:
    """Put the cells of a space-aligned row under their columns, so that empty cells stay empty."""
    if mode != "gap" or len(row) == len(header):
        return row
    out = [Cell("") for _ in header]
    last = -1
    for cell in row:
        best, distance = -1, 1 << 30
        for index in range(last + 1, len(header)):
            left, right = header[index].start, header[index].start + len(header[index].text)
            gap = max(0, left - cell.start - len(cell.text), cell.start - right)
            away = gap * 100 + abs(left - cell.start)
            if away < distance:
                best, distance = index, away
        if best >= 0:
            out[best] = cell
            last = best
    return out


def _numeric_row(row: list[Cell]) -> bool:
    return bool(row) and all(SIZE.match(cell.text) for cell in row)


def _row(
    line: Line,
    row: list[Cell],
    heads: list[Head],
    transposed: bool,
    about: Caption,
    out: list[Observation],
    ratios: list[Observation],
    number: int,
) -> None:
    if not row:
        return
    label = head(row[0].text) if row[0].text and not (SIZE.match(row[0].text) and heads[0].kind) else Head(row[0].text)
    base: dict[str, Condition] = {mark.kind: mark for mark in about.marks}
    for index, (column, cell) in enumerate(zip(heads, row, strict=False)):
        if column.kind:
            worded = (
                [] if SIZE.match(cell.text.strip()) or column.kind in ("version", "package") else marks_of(cell.text)
            )
            mark = _condition(column, cell)
            if mark is not None and not (column.kind == "run" and worded):
                base[mark.kind] = mark
            base.update({mark.kind: mark for mark in worded if mark.kind != column.kind})
        elif (index == 0 and not column.mention) or (
            column.mention is None and not SIZE.match(cell.text) and not transposed and index < 3
        ):
            for mark in label.marks if index == 0 else marks_of(cell.text):
                base[mark.kind] = mark
            if cell.text and index == 0 and not label.mention and "label" not in base:
                base["label"] = Condition("label", 0, len(cell.text), cell.text.strip())
    start = 0
    previous: tuple[Mention, tuple[str, float] | None] | None = None
    for index, (column, cell) in enumerate(zip(heads, row, strict=False)):
        at = line.text.find(cell.text, start) if cell.text else -1
        if at >= 0:
            start = at + len(cell.text)
        if column.kind or cell.text.strip().lower() in _EMPTY or (index == 0 and not column.mention) or at < 0:
            continue
        mention = (
            label.mention
            if transposed and index
            else column.mention or label.mention or (heads[0].mention if index else None)
        )
        unit = column.unit or (label.unit if transposed or not column.mention else None) or heads[0].unit or about.unit
        if mention is None and (column.marks or _OWN.match(column.text) or about.mentions or about.unit):
            mention = _inherit(column, unit or (previous[1] if previous else None), about, previous)
            unit = unit or (previous[1] if previous and mention is previous[0] else None)
        found = {**base, **{mark.kind: mark for mark in column.marks}}
        seen = _cell(line, cell, at, mention, unit, column, label, found, out, ratios, number)
        previous = seen or previous
        if seen and column.mention is None and index and label.mention is None:
            column.mention, column.unit = seen[0], column.unit or seen[1]


def _inherit(
    column: Head,
    unit: tuple[str, float] | None,
    about: Caption,
    previous: tuple[Mention, tuple[str, float] | None] | None,
) -> Mention | None:
    """Metric of a column without one: by the unit the caption gives, else that of the column before it."""
    if unit is not None:
        if unit[0] == "tokens_per_s" and _EACH.search(column.text):
            return Mention("user_tps", 0, 0)
        found = about.for_dim(unit[0])
        if found is not None:
            return found
        default = metrics.DEFAULTS.get(unit[0])
        if default:
            return Mention(default, 0, 0)
    if previous is not None and column.marks:
        return previous[0]
    return about.mentions[-1] if about.mentions and column.marks else None


def _condition(column: Head, cell: Cell) -> Condition | None:
    """The cell of a condition column as a condition."""
    text = cell.text.strip()
    if text.lower() in _EMPTY:
        return None
    size = SIZE.match(text)
    if column.kind in ("concurrency", "context", "gpus", "run", "power_cap", "setting") and size:
        value = float(size[1].replace(",", ""))
        if size[2]:
            value = conditions.number(size[1], "k") if size[2] in "kK" else value * 1e6
        return Condition(column.kind, 0, len(text), text if column.kind != "setting" else column.text, value)
    if column.kind == "uptime":
        clock = CLOCK.match(text)
        if clock:
            return Condition(
                "uptime", 0, len(text), text, int(clock[1]) * 3600.0 + int(clock[2]) * 60.0 + int(clock[3] or 0)
            )
        spoken = _DAYS.match(text)
        if spoken or size:
            value = float((spoken[1] or spoken[2]) if spoken else (size[1] if size else "0").replace(",", ""))
            unit = (spoken[3] if spoken else "") or column.text
            scale = (
                86400.0
                if "d" in unit.lower()
                else 3600.0
                if "h" in unit.lower()
                else 60.0
                if "m" in unit.lower()
                else 1.0
            )
            return Condition("uptime", 0, len(text), text, value * scale)
        return None
    if column.kind == "package":
        return Condition(f"package:{column.text.lower()}", 0, len(text), f"{column.text.lower()} {text}")
    if column.kind == "version":
        return Condition("version", 0, len(text), text)
    marks = marks_of(text)
    number = next((mark for mark in marks if mark.kind == column.kind), None)
    if number is not None:
        return number
    digits = re.search(r"\d[\d,]*(?:\.\d+)?\s?[kK]?", text)
    if digits and column.kind in ("concurrency", "context", "gpus", "run"):
        raw = digits[0]
        return Condition(
            column.kind,
            0,
            len(text),
            text,
            conditions.number(re.sub(r"[^\d.]", "", raw), "k" if raw[-1] in "kK" else None),
        )
    return Condition("label", 0, len(text), text)


def _cell(
    line: Line,
    cell: Cell,
    at: int,
    mention: Mention | None,
    unit: tuple[str, float] | None,
    column: Head,
    label: Head,
    found: dict[str, Condition],
    out: list[Observation],
    ratios: list[Observation],
    number: int,
) -> tuple[Mention, tuple[str, float] | None] | None:
    text = re.sub(r"[*`]", " ", cell.text)
    numbers = [item for item in quantities.find(text) if item.dim != "count"]
    if mention is not None and not numbers and _SAME.match(text):
        metric = metrics.resolve(mention.metric, unit[0] if unit else "tokens_per_s")
        ratios.append(
            Observation(
                metric, 1.0, "x", line.no, cell.text.strip(), mention.stat, conditions=dict(found), order=number
            )
        )
        return None
    if not numbers or (re.search(r"[A-Za-z]{4,}.*[A-Za-z]{4,}", text) and not re.search(r"tok|req|per", text)):
        return None
    if mention is None and numbers[0].dim in metrics.DEFAULTS:
        mention = Mention(metrics.DEFAULTS[numbers[0].dim], 0, 0)
    if mention is None:
        return None
    stats = mention.stats or (label.mention.stats if label.mention else ())
    for place, item in enumerate(numbers[: max(1, len(stats))]):
        value, dim = _value(item, unit)
        stat = stats[place] if place < len(stats) and len(stats) == len(numbers) else mention.stat
        span = cell.text.strip() if len(numbers) == 1 or not stats else text[item.start : item.stop].strip()
        metric = metrics.resolve(mention.metric, dim)
        common: dict[str, Any] = {
            "line": line.no,
            "span": span,
            "conditions": dict(found),
            "stat": stat,
            "order": number,
        }
        relative = item.dim == "fraction" and (item.signed or column.relative) and not metrics.fits(metric, "fraction")
        if relative and (item.signed or abs(item.value) <= 0.03):
            ratios.append(Observation(metric, 1 + item.value, "x", **common))
            continue
        if column.relative and item.dim in ("factor", "fraction"):
            ratios.append(Observation(metric, item.value, "x", **common))
            continue
        if not metrics.fits(mention.metric, dim):
            if dim in metrics.DEFAULTS:
                metric = metrics.DEFAULTS[dim]
            elif dim != "plain" or (not metrics.fits(metric, "plain") and not _natural(metric)):
                continue
        out.append(
            Observation(
                metric,
                value,
                _canonical(metric, dim, item),
                low=item.low,
                high=item.high,
                cmp=item.cmp,
                approx=item.approx,
                per=item.per,
                **common,
            )
        )
    factor = numbers[0].value / numbers[0].raw if numbers[0].raw and numbers[0].dim != "plain" else None
    return mention, (unit or ((numbers[0].dim, factor) if factor is not None else None))


def _value(item: Quantity, unit: tuple[str, float] | None) -> tuple[float, str]:
    if item.dim != "plain" or unit is None:
        return item.value, item.dim
    return item.raw * unit[1], unit[0]


def _natural(metric: str) -> bool:
    """Bare figures of a rate column are in its natural unit; bare durations are not guessed."""
    return metric in _NATURAL


def _canonical(metric: str, dim: str, item: Quantity) -> str:
    table = {
        "seconds": "s",
        "tokens_per_s": "tokens/s",
        "requests_per_s": "requests/s",
        "fraction": "fraction",
        "bytes": "GiB",
        "bytes_per_s": "GB/s",
        "bits_per_s": "Gb/s",
        "watts": "W",
        "hertz": "MHz",
        "celsius": "C",
    }
    if dim in table:
        return table[dim]
    guess = {
        "generation_tps": "tokens/s",
        "prompt_tps": "tokens/s",
        "total_tps": "tokens/s",
        "user_tps": "tokens/s",
        "requests_per_s": "requests/s",
    }
    return guess.get(metric, item.unit)
