"""Tables in text: aligned with a rule of dashes, boxed, Markdown, CSV, and JSON rows; several in one file.

Yields :class:`Head` when a table starts and :class:`Row` for each of its rows, streamed. Aligned rows are cut at the
columns of the rule; a row that does not line up (re-wrapped, pasted) is read token by token instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from msgspec import Struct, field

from tools.cells import cells as cells_of

_RULE = re.compile(r"^[ \t|#]*-{2,}(?:[ \t]+-{2,})+[ \t|]*$")
_BOX = re.compile(r"^[ \t]*\+(?:[-=]+\+)+[ \t]*$")
_MD = re.compile(r"^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)+\|?[ \t]*$")
_TITLE = re.compile(
    r"\(([a-z][a-z0-9_]+)(?::[^)]*)?\):?\s*$|Executing '([a-z0-9_]+)(?::[^']*)?' |[/\\]([a-z0-9_]+)\.py\]"
    r"|Generating (CUDA API|CUDA Kernel|CUDA Memory Operation|Operating System Runtime API|NVTX [\w-]+)"
)
_SKIPPED = re.compile(r"^\s*SKIPPED: (.*)$")
_CSV_HINT = re.compile(
    r"time ?\(%\)|total ?time|total \(\w+\)|start ?\(|duration ?\(|instances|num calls|metric name", re.I
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_INTS = re.compile(r"\s*-?\d+\s+-?\d+\s+-?\d+(?=\s|$)")
_TEXT_COLUMNS = re.compile(
    r"^(?:name|operation|range|style|category|kernel name|domain|device|srcmemkd|dstmemkd|.*type)$", re.I
)


class Head(Struct):
    """Column titles, the report named before them (may be empty), the form, and the 1-based line."""

    columns: list[str]
    title: str
    form: str
    line: int


class Row(Struct):
    """Cells in the order of the last head; line number."""

    cells: list[str]
    line: int


class Skipped(Struct):
    """A report that the tool itself says it left out."""

    why: str
    line: int


Item = Head | Row | Skipped


class _State(Struct):
    title: str = ""
    before: str = ""
    before_line: int = 0
    form: str = ""
    columns: list[str] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    delimiter: str = ","
    box: list[int] = field(default_factory=list)
    waiting: bool = False
    json: list[str] = field(default_factory=list)
    depth: int = 0
    json_columns: list[str] = field(default_factory=list)


def items(lines: Iterable[tuple[int, str]]) -> Iterator[Item]:
    """All tables of a text, in order."""
    state = _State()
    for number, line in lines:
        if state.depth or _json_start(line):
            yield from _json(state, line, number)
            continue
        yield from _line(state, line, number)


def _json_start(line: str) -> bool:
    text = line.strip()
    return text == "[" or text.startswith(("[{", "[ {"))


def _line(state: _State, line: str, number: int) -> Iterator[Item]:
    text = line.strip()
    skipped = _SKIPPED.match(line)
    if skipped:
        yield Skipped(skipped[1], number)
        return
    if not text:
        if state.form in ("text", "csv"):
            state.form = ""
        return
    title = _TITLE.search(text) if not state.form or state.form == "text" else None
    if (
        title
        and not text.startswith(("|", "+"))
        and ("**" in text or "Executing" in text or "[" in text or "Generating" in text)
    ):
        state.title = next(group for group in title.groups() if group)
        state.form = ""
        return
    if _BOX.match(line):
        yield from _border(state, line)
        return
    if _RULE.match(line) and not state.before.lstrip().startswith("|"):
        state.form = ""
        if state.before:
            state.spans = _spans(line, state.before)
            state.columns = [state.before[a:b].strip() for a, b in _wide(state.spans, len(state.before))]
            if all(state.columns):
                yield _head(state, "text", state.before_line)
        return
    if _MD.match(line) and "|" in state.before:
        state.columns = _pipes(state.before, 0)
        yield _head(state, "md", state.before_line)
        return
    yield from _body(state, line, number)


def _head(state: _State, form: str, line: int) -> Head:
    """Start a table; a title and a header line serve one table only."""
    head = Head(state.columns, state.title, form, line)
    state.form, state.title, state.before = form, "", ""
    return head


def _body(state: _State, line: str, number: int) -> Iterator[Item]:
    if state.form == "text":
        cells = _aligned(line, state.spans) or _tokens(line, state.columns)
        if cells:
            yield Row(cells, number)
            return
        state.form = ""
    elif state.form == "md" and "|" in line:
        yield Row(_pipes(line, len(state.columns)), number)
        return
    elif state.form == "box":
        if line.lstrip().startswith("|"):
            yield Row(_boxed(line, state.box, len(state.columns)), number)
            return
        state.form = ""
    elif state.waiting and line.lstrip().startswith("|"):
        state.columns = _pipes(line, 0)
        yield _head(state, "head", number)
        state.waiting = False
        return
    header = _csv_header(line)
    if header:
        state.delimiter, state.columns = header
        yield _head(state, "csv", number)
        return
    if state.form == "csv":
        cells = [cell.strip() for cell in cells_of(line, state.delimiter)]
        if len(cells) > len(state.columns):
            extra = len(cells) - len(state.columns)
            if any(cells[len(state.columns) :]):
                cells = [*cells[: len(state.columns) - 1], state.delimiter.join(cells[len(state.columns) - 1 :])]
            else:
                cells = cells[: len(cells) - extra]
        if len(cells) >= 2:
            yield Row(cells, number)
            return
        state.form = ""
    state.before, state.before_line = line, number


def _csv_header(line: str) -> tuple[str, list[str]] | None:
    if not _CSV_HINT.search(line):
        return None
    for delimiter in (",", ";", "\t"):
        if line.count(delimiter) < 3:
            continue
        cells = [cell.strip() for cell in cells_of(line, delimiter)]
        lowered = {c.lower() for c in cells}
        known = lowered & {"name", "operation", "range", "kernel name"}
        if len(cells) >= 4 and known and not any(re.fullmatch(r"[-\d.,%]+", c) for c in cells):
            return delimiter, cells
    return None


def _spans(rule: str, header: str) -> list[tuple[int, int]]:
    spans = [m.span() for m in re.finditer(r"-{2,}", rule)]
    tail = header[spans[-1][1] :]
    if tail.strip():
        lead = len(tail) - len(tail.lstrip())
        if lead >= 2:
            spans.append((spans[-1][1] + 2, len(header)))
    return spans


def _wide(spans: list[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """The last column runs to the end of the line."""
    return [*spans[:-1], (spans[-1][0], max(size, spans[-1][1]))]


def _aligned(line: str, spans: list[tuple[int, int]]) -> list[str] | None:
    """Cells by position, ``None`` when the text between two columns is not blank."""
    body = line.expandtabs(8) if "\t" in line else line
    for (_, end), (start, _) in pairwise(spans):
        if body[end:start].strip(" "):
            return None
    cells = [body[a:b].strip(" ") for a, b in _wide(spans, len(body))]
    return cells if sum(bool(cell) for cell in cells) >= 2 else None


def _tokens(line: str, columns: list[str]) -> list[str] | None:
    """Cells from left to right: numbers, grids of three numbers, one-word styles; the last column takes the rest.
    With the name first, as torch.profiler prints it, cells are taken from the right."""
    if columns[0].lower() == "name":
        parts = line.strip(" \t").rsplit(None, len(columns) - 1)
        return parts if len(parts) == len(columns) and re.match(r"[\d.]", parts[-1]) else None
    at, cells = 0, []
    for column in columns[:-1]:
        found = _INTS.match(line, at) if column.lower().endswith("xyz") else None
        found = found or re.compile(r"[ \t]*[^ \t]+").match(line, at)
        if not found:
            return None
        cell = found[0].strip(" \t")
        if not _TEXT_COLUMNS.match(column) and not re.match(r"[-+\d.,’'N]", cell):
            return None
        cells.append(cell)
        at = found.end()
    rest = line[at:].strip(" \t")
    return [*cells, rest] if rest else None


def _border(state: _State, line: str) -> Iterator[Item]:
    if state.form == "head":
        state.form = "box"
    elif state.form == "box":
        state.form, state.waiting = "", True
    else:
        state.waiting = True
    state.box = [m.start() for m in re.finditer(r"\+", line)]
    yield from ()


def _boxed(line: str, marks: list[int], columns: int) -> list[str]:
    if len(marks) == columns + 1 and all(at < len(line) and line[at] == "|" for at in marks):
        return [line[a + 1 : b].strip(" ") for a, b in pairwise(marks)]
    return _pipes(line, columns)


def _pipes(line: str, columns: int) -> list[str]:
    body = line.strip().removeprefix("|").removesuffix("|")
    parts = body.split("|", columns - 1) if columns else body.split("|")
    return [part.strip(" \t") for part in parts]


def _json(state: _State, line: str, number: int) -> Iterator[Item]:
    """Rows of an array that is printed over several lines: each object is read when its bracket closes."""
    bare = _STRING.sub("", line)
    state.json.append(line)
    opened = state.depth == 0
    state.depth += bare.count("[") + bare.count("{") - bare.count("]") - bare.count("}")
    if opened:
        state.json_columns = []
    if state.depth > 1 and len(state.json) < 10_000:
        return
    text = "\n".join(state.json).strip()
    state.json = []
    if state.depth <= 0:
        state.depth = 0
        text = text.removesuffix("]")
    for row in _objects(text.lstrip("[").strip().strip(",")):
        columns = list(row)
        if columns != state.json_columns:
            state.json_columns = columns
            yield Head(columns, state.title, "json", number)
        yield Row(["" if value is None else str(value) for value in row.values()], number)


def _objects(text: str) -> list[dict[str, object]]:
    if not text:
        return []
    try:
        found = json.loads(f"[{text}]")
    except (ValueError, RecursionError):
        return []
    return [row for row in found if isinstance(row, dict)]
