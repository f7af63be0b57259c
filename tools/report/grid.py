"""Layout of a table: its cells with their places, which line is the header, and where the metrics are named."""

from __future__ import annotations

import re

from msgspec import Struct

from tools.report import quantities
from tools.report.blocks import Block, Line, cells, frame, piped, table_mode
from tools.report.columns import (
    CLOCK,
    clock_heads,
    condition,
    layouts,
    rates,
    repeated,
    samples,
    sides,
    switches,
    units,
)
from tools.report.conditions import Condition
from tools.report.headers import SIZE, Head, head, metrics_of
from tools.report.metrics import Mention

MAX_ROWS = 20000
MAX_COLUMNS = 64
_RULE = re.compile(r"^[\s|:=+-]*$")
_AXES = ("concurrency", "context", "gpus", "run", "power_cap", "setting")
# A column of one of these names its rows: figures of a column ``n`` beside it count the samples of the row.
_CLASS = re.compile(r"^(?:class|kind|type|group|category|bucket|dataset|task|tenant|类别|类型)\b", re.IGNORECASE)
_SAMPLES = re.compile(r"^(?:n|#|count|samples)$", re.IGNORECASE)
_NAMES = re.compile(r"^(?:metrics?|measures?|names?|keys?|counters?|quantity|指标)$", re.IGNORECASE)
_VALUES = re.compile(r"^(?:values?|settings?|details?|what|ours?|mine|值)?$", re.IGNORECASE)
_ONE_DEVICE = re.compile(r"^#?\s?(?:gpu|card|rank|device|node)$", re.IGNORECASE)
_FIGURE = re.compile(r"^[\s(]*[~<>≈≥≤±+−-]{0,2}\s?\d")
_TAG = re.compile(r"</?(?:mark|b|i|u|strong|em|sup|sub|code|br|font|span)(?:\s[^<>]{0,60})?\s?/?>", re.IGNORECASE)
_MEASURE = ("tokens_per_s", "requests_per_s", "seconds")
_PAIR = re.compile(r"(?P<key>[A-Za-z_][\w.%-]*)=(?P<value>[^\s,;]+)")


class Cell(Struct):
    """A cell with its place in the line."""

    text: str
    start: int = 0


class Grid(Struct):
    """A table with its header read.

    ``key`` is the column whose cells name the metrics where ``transposed``. ``listed``: there is no header, every line
    is a name and its value; ``keyed``: every line holds ``key=value`` pairs.
    """

    heads: list[Head]
    rows: list[tuple[Line, list[Cell]]]
    transposed: bool = False
    key: int = 0
    listed: bool = False
    keyed: bool = False

    def told(self) -> bool:
        """Whether each line tells one thing of the set-up: a name and what it is."""
        return self.keyed or (
            len(self.heads) == 2
            and (self.listed or (bool(_VALUES.match(self.heads[1].text)) and not self.heads[0].kind))
        )


def layout(block: Block) -> Grid | None:
    """The grid of a table block; ``None`` when nothing can be told from it."""
    framed = frame(block.lines[0].text)
    lines = [line for line in block.lines if not _RULE.match(piped(line.text))][:MAX_ROWS]
    if not framed and not block.lines[0].text.strip(" |"):
        # ``| | |`` is a header without words.
        lines.insert(0, block.lines[0])
    mode = "md" if framed else table_mode([line.text for line in block.lines[:3]]) or "gap"
    if len(lines) < 2:
        return None
    if mode == "kv":
        heads = [head(found["key"]) for found in _PAIR.finditer(lines[0].text)][:MAX_COLUMNS]
        grid = _finished(heads, [(line, _values(line)) for line in lines])
        grid.keyed = True
        return grid
    below = block.lines[2 if framed else 1 :][:1]
    ruled = bool(below) and bool(_RULE.match(piped(below[0].text)))
    first = _split(lines[0], mode)[:MAX_COLUMNS]
    split = [_split(line, mode) for line in lines[1:]]
    listed = not ruled and _listed([first, *split])
    if listed:
        width = max(len(first), *(len(row) for row in split))
        rows = [(lines[0], first), *zip(lines[1:], split, strict=True)]
        return Grid([Head("") for _ in range(width)], rows, transposed=True, listed=True)
    if mode == "gap" and first and first[0].start > 0 and max(len(row) for row in split[:7]) > len(first):
        first.insert(0, Cell("", 0))
    if all(SIZE.match(cell.text) for cell in first):
        return None
    rows = [(line, _align(row, first, mode)) for line, row in zip(lines[1:], split, strict=True)]
    heads = [head(cell.text) for cell in first]
    _axis(heads, first)
    if _all_measured(heads, rows):
        heads.insert(0, Head(""))
        rows = [(line, [Cell(""), *row]) for line, row in rows]
    return _finished(heads, rows)


def _all_measured(heads: list[Head], rows: list[tuple[Line, list[Cell]]]) -> bool:
    """No column names the rows: the first holds measurements like the others, and the headers are the runs."""
    if len(heads) < 2 or any(item.kind or item.mention for item in heads) or not heads[0].text:
        return False
    for _, row in rows:
        dims = [next((item.dim for item in quantities.find(cell.text)), "") for cell in row]
        if (
            not dims
            or dims[0] not in _MEASURE
            or len(set(dims)) > 1
            or any(not _FIGURE.match(cell.text) for cell in row)
        ):
            return False
    return bool(rows)


def _finished(heads: list[Head], rows: list[tuple[Line, list[Cell]]]) -> Grid:
    written = [[cell.text for cell in row] for _, row in rows]
    clock_heads(heads)
    samples(heads)
    repeated(heads)
    layouts(heads)
    sides(heads)
    _loads(heads)
    switches(heads, written)
    units(heads, written)
    rates(heads, written)
    grid = Grid(heads, rows)
    _first(grid)
    grid.key = _key(grid)
    named = sum(1 for _, row in rows if grid.key < len(row) and metrics_of(row[grid.key].text) is not None)
    others = any(item.mention for index, item in enumerate(heads) if index != grid.key)
    grid.transposed = (grid.key > 0 or named * 2 >= len(rows)) and named > 0 and not others
    if not grid.transposed:
        grid.key = 0
    return grid


def _split(line: Line, mode: str) -> list[Cell]:
    if mode == "gap":
        return [Cell(found[0].strip(), found.start()) for found in re.finditer(r"\S+(?:[^\S\t]\S+)*", line.text)]
    return [Cell(re.sub(r"^[*_`]+|[*_`]+$", "", _TAG.sub("", text))) for text in cells(line.text, mode)]


def _values(line: Line) -> list[Cell]:
    return [Cell(found["value"], found.start("value")) for found in _PAIR.finditer(line.text)][:MAX_COLUMNS]


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


def named(label: str, value: str) -> Mention | None:
    """The metric a line ``label   value`` gives a figure of; some names are one only in front of a number."""
    if not quantities.find(value):
        return None
    found = metrics_of(label)
    if found is None:
        found = metrics_of(f"{label}: {value}")
    return found if found is not None and found.start < len(label) else None


def _listed(rows: list[list[Cell]]) -> bool:
    """Whether the first line is no header but a name with its value like the lines below it."""
    first = rows[0]
    if len(first) < 2 or not re.search(r"[^\W\d]", first[0].text) or any(len(row) < 2 for row in rows[1:3]):
        return False
    if head(first[0].text).kind in _AXES and len(first) > 2:
        return False
    values = [cell.text for cell in first[1:]]
    if all(CLOCK.match(text) for text in values):
        return False
    if len(first) == 2 and named(first[0].text, values[0]) is not None:
        return True
    if not all(_FIGURE.match(text) or text.startswith("(") for text in values):
        return False
    if named(first[0].text, values[0]) is not None:
        return True
    return len([text for text in values if not text.startswith("(")]) == 1


def _axis(heads: list[Head], first: list[Cell]) -> None:
    """A header line ``concurrency  1  8  32`` gives each column its load; ``share with X  0  50 %`` its feature."""
    axis = heads[0]
    values = [cell.text for cell in first[1:]]
    if len(values) < 2 or not all(_FIGURE.match(text) for text in values):
        return
    feature = next((mark for mark in axis.marks if mark.kind == "feature"), None)
    if axis.kind not in _AXES:
        if feature is None or not any(re.match(r"0\s?%?$", text) for text in values):
            return
        for item, text in zip(heads[1:], values, strict=True):
            used = bool(re.search(r"[1-9]", text))
            item.marks = [Condition("feature", 0, len(text), feature.name, on=used)]
            item.kind, item.mention = "", None
        return
    if axis.kind == "gpus" and (_ONE_DEVICE.match(axis.text) or "0" in values):
        return
    marks = [condition(axis, cell.text) for cell in first[1:]]
    if any(mark is None or mark.number is None for mark in marks):
        return
    for item, mark in zip(heads[1:], marks, strict=True):
        item.kind, item.mention, item.marks = "", None, [mark] if mark else []
    axis.kind = ""


def _loads(heads: list[Head]) -> None:
    """Of two columns that both could be the load neither is it alone; a count of samples is no load."""
    if any(_CLASS.match(item.text) for item in heads):
        for item in heads:
            if _SAMPLES.match(item.text):
                item.kind, item.mention = "aside", None
    loads = [item for item in heads if item.kind == "concurrency"]
    if len(loads) > 1:
        batches = [item for item in loads if re.search(r"batch", item.text, re.IGNORECASE)]
        for item in loads if len(loads) - len(batches) != 1 else batches:
            item.kind = "aside" if len(loads) - len(batches) != 1 else "setting"


def _first(grid: Grid) -> None:
    """A first column of words labels the rows, whatever its header says (``prefill layout``)."""
    first = grid.heads[0]
    if first.mention is None or len(grid.heads) < 2:
        return
    if first.mention.metric in ("cpu_limit", "power_limit"):
        first.kind, first.mention = ("setting" if first.mention.metric == "cpu_limit" else "power_cap"), None
        return
    filled = [row[0].text for _, row in grid.rows if row and row[0].text]
    if filled and sum(bool(_FIGURE.match(text)) for text in filled) * 2 < len(filled):
        first.mention, first.unit = None, None


def _key(grid: Grid) -> int:
    """The column whose cells name metrics: the one that says so, else the first."""
    for index, item in enumerate(grid.heads[:4]):
        if index and _NAMES.match(item.text) and not item.kind:
            return index
    return 0
