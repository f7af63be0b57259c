"""Cuts text into tables: by bars (Markdown, boxes), by commas, or by the columns that blanks leave free."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tools.cells import cells

_BAR = re.compile(r"[|│┃]")
_RULE = re.compile(r"^[\s|│┃+:=\-─━┌┐└┘├┤┬┴┼┏┓┗┛┣┫┳┻╋┡┩╇╈╪╞╡]+$")
_CELL = re.compile(r"\S+(?: \S+)*")
_VALUE = re.compile(
    r"[~≈<>≤≥]?\s*[-+]?\d[\d.,'\u2019]*(?:[eE][-+]?\d+)?\s*[kKM]?\s*(?:ms|us|µs|s|sec|tok/s|tokens/s|req/s|reqs|tps|%|x|GB/s|GB|W)?"
    r"(?:\s*(?:[-–/]|to)\s*[~≈<>≤≥]?\s*\d[\d.,]*\s*(?:ms|us|µs|s|tok/s|GB/s|%)?)?"
)
_MEASURED = re.compile(r"(?<![\w.])\d[\d.,]*\s?(?:ms|s|sec|tok/s|tokens/s|req/s|GB/s|GiB|GB|%)(?!\w)")
MAX_ROWS = 5000
MAX_COLUMNS = 60


class Table(NamedTuple):
    """``heads``: one text per column, several head rows joined; ``rows``: line number and as many cells."""

    heads: list[str]
    rows: list[tuple[int, list[str]]]
    line: int


class _Line(NamedTuple):
    number: int
    text: str
    cells: list[str]
    kind: str


def is_value(cell: str) -> bool:
    """Whether a cell is a number, a range or a pair, with at most a unit behind it."""
    return bool(cell) and _VALUE.fullmatch(cell.strip()[:60]) is not None


def _kind(text: str) -> str:
    if _BAR.search(text):
        return "bar"
    if re.search(r"\S(?:\s{2,}|\t)\S", text):
        return "gap"
    return "comma" if text.count(",") >= 2 else ""


def _cells(text: str, kind: str) -> list[str]:
    if kind == "bar":
        parts = [part.strip(" *") for part in _BAR.split(text.strip())]
        parts = parts[1:] if parts and not parts[0] else parts
        parts = parts[:-1] if parts and not parts[-1] else parts
        return parts[:MAX_COLUMNS]
    if kind == "gap":
        return [found[0] for found in _CELL.finditer(text.replace("\t", "    "))][:MAX_COLUMNS]
    return [part.strip() for part in cells(text)][:MAX_COLUMNS]


def tables(lines: list[tuple[int, str]]) -> Iterator[Table]:
    """Blocks of at least one head and one row with the same kind of separator."""
    block: list[_Line] = []
    for number, text in [*lines, (0, "")]:
        if text.strip() and _RULE.match(text):
            continue
        kind = _kind(text) if not text.lstrip().startswith("#") else ""
        pair = bool(block) and block[-1].kind == "comma" and len(block[-1].cells) == 2
        if not kind and "," in text and len(text) < 200 and (pair or text.lower().startswith("metric,")):
            kind = "comma"
        cells = _cells(text, kind) if kind else []
        if len(cells) >= 2 and (not block or block[-1].kind == kind):
            block.append(_Line(number, text.replace("\t", "    "), cells, kind))
            continue
        if len(block) >= 2:
            yield from _table(block)
        block = [_Line(number, text.replace("\t", "    "), cells, kind)] if len(cells) >= 2 else []


def _table(block: list[_Line]) -> Iterator[Table]:
    """Head rows are the leading rows with hardly a number in them; they are joined per column."""
    at = 0
    for line in block:
        if sum(map(is_value, line.cells[1:])) >= max(1, (len(line.cells) - 1) // 3):
            break
        if any(_MEASURED.search(cell) for cell in line.cells[1:]):
            break  # words around a figure with its unit: a row of prose, no head
        at += 1
    if not at or at >= len(block):
        return
    heads, rows = block[:at], block[at : at + MAX_ROWS]
    width = max(len(line.cells) for line in rows)
    kept = [line.cells for line in heads if len(line.cells) >= max(2, width // 2)] or [heads[-1].cells]
    joined = _join(kept, max(width, len(kept[-1])))
    aligned = [(line.number, _aligned(line, heads[-1], len(joined))) for line in rows]
    yield Table(joined, aligned, block[0].number)


def _aligned(line: _Line, head: _Line, width: int) -> list[str]:
    """Cells of a row, put below the heads they stand under when blanks separate columns and some are empty."""
    cells = line.cells
    if line.kind == "gap" and len(cells) < len(head.cells):
        starts = [found.start() for found in _CELL.finditer(head.text)][:width]
        placed = [""] * width
        for found in _CELL.finditer(line.text):
            nearest = min(range(len(starts)), key=lambda i: abs(starts[i] - found.start()))
            placed[nearest] = placed[nearest] or found[0]
        return placed
    return (cells + [""] * width)[:width]


def _join(heads: list[list[str]], width: int) -> list[str]:
    """Several head rows become one; in all but the last, a head spreads over the empty cells to its right."""
    out = [""] * width
    for depth, row in enumerate(heads):
        last = ""
        for index in range(width):
            cell = row[index] if index < len(row) else ""
            last = cell or (last if depth < len(heads) - 1 else "")
            out[index] = f"{out[index]} {last}".strip()
    return out
