"""A report taken apart: sentences with their observations and stated changes, tables, and excerpts for other readers."""

from __future__ import annotations

import re

from msgspec import Struct, field

from tools.part import Part
from tools.report import blocks, compare, observe, spans, tables
from tools.report.checked import checked
from tools.report.compare import Ratio
from tools.report.observe import Observation, Parsed, Scope

MAX_LINES = 2000
MAX_NESTED = 200
_OPERATION_S = 0.001
_SIZE = re.compile(r"^\d+(?:\.\d+)? ?[KMG]i?B?$")
_PROSE = ("heading", "text", "item", "quote")


# Headings that an issue tracker's form prints: nobody said them.
_FORM = re.compile(
    r"[\W_]{0,12}(?:report of performance regression|misc discussion on performance|proposal to improve performance"
    r"|your current environment\b.*|describe the bug|checklist|reproduction|before submitting a new issue\b.*|model input dumps"
    r"|how would you like to use \w+|alternatives|additional context|the feature, motivation and pitch)[\s:.?*_]*",
    re.IGNORECASE,
)


class Document(Struct):
    """``ratios`` pair a stated change with the sentence it stands in; ``table_ratios`` are relative cells (−8 %).

    ``figures`` are the observations by sentence. ``listed`` are the lines of name/value tables: what the set-up is, said without a sentence.
    """

    part: Part
    parsed: list[Parsed] = field(default_factory=list)
    found: list[Observation] = field(default_factory=list)
    figures: list[tuple[Parsed, list[Observation]]] = field(default_factory=list)
    ratios: list[tuple[Ratio, Parsed]] = field(default_factory=list)
    table_ratios: list[Observation] = field(default_factory=list)
    listed: list[Parsed] = field(default_factory=list)
    nested: list[Part] = field(default_factory=list)
    lines: list[tuple[int, str]] = field(default_factory=list)
    changed: list[tuple[int, str]] = field(default_factory=list)
    cut: bool = False

    def text(self) -> str:
        """All prose and table lines."""
        return "\n".join(text for _, text in self.lines)

    def prose(self) -> str:
        """Prose only, without tables."""
        return "\n".join(item.sentence.text for item in self.parsed)


def take_apart(part: Part) -> Document:
    """Read a part once, front to back. Lines past ``MAX_LINES`` are left out and ``cut`` is set."""
    doc = Document(part)
    scope = Scope()
    recent: list[str] = []
    lines: list[blocks.Line] = []
    for number, text in part.lines():
        if len(lines) >= MAX_LINES:
            doc.cut = True
            break
        lines.append(blocks.Line(number, text))
    section = 0
    for number, block in enumerate(blocks.split(lines, standalone=bool(part.parent)), 1):
        if block.kind in ("fence", "log", "command"):
            _nest(doc, block)
            continue
        if block.kind == "heading" and all(_FORM.fullmatch(line.text) for line in block.lines):
            section += 1
            continue
        doc.lines.extend((line.no, line.text) for line in block.lines)
        if block.kind == "table":
            _table(doc, block, recent[-2:], number)
            continue
        if block.kind == "diff":
            doc.changed.extend((line.no, line.text) for line in block.lines)
            continue
        section += block.kind == "heading"
        if block.kind in _PROSE:
            for line in blocks.inline(block):
                _nest(doc, blocks.Block("command", [line]))
            for sentence in spans.sentences(block, number, section):
                recent.append(sentence.text)
                _sentence(doc, observe.parse(sentence), scope)
    return doc


def _table(doc: Document, block: blocks.Block, before: list[str], number: int) -> None:
    group = f"table{number}"
    told, listed = tables.read(block, tables.caption(before), group)
    for line, at, text, marks in told.spoken:
        parsed = observe.parse(spans.Sentence(text, [(0, line.no, at)], {line.no: line.text}, "item", number))
        for seen in observe.read(parsed, Scope()):
            seen.conditions = {**marks, **seen.conditions}
            seen.group = group
            told.found.append(seen)
    doc.found.extend(_operations(told.found))
    doc.table_ratios.extend(told.ratios)
    doc.listed.extend(observe.parse(item) for item in listed)


def _operations(found: list[Observation]) -> list[Observation]:
    """A latency below a millisecond, or one by message size, is that of an operation, not of a request."""
    for item in found:
        label = item.conditions.get("label")
        if item.metric == "e2e" and (item.value < _OPERATION_S or (label and _SIZE.match(label.name))):
            item.metric = "kernel_time"
    return found


def _sentence(doc: Document, parsed: Parsed, scope: Scope) -> None:
    doc.parsed.append(parsed)
    found = checked(parsed, observe.read(parsed, scope))
    doc.figures.append((parsed, found))
    doc.found.extend(found)
    doc.ratios.extend((item, parsed) for item in compare.read(parsed))


def _nest(doc: Document, block: blocks.Block) -> None:
    if not block.lines or len(doc.nested) >= MAX_NESTED:
        return
    body = "\n".join(line.text for line in block.lines) + "\n"
    doc.nested.append(
        Part(
            name=f"{doc.part.name}#block{len(doc.nested) + 1}",
            data=body.encode("utf-8", "replace"),
            hint=block.lang,
            parent=doc.part.name,
            line0=block.lines[0].no - 1,
            time=doc.part.time,
            group=doc.part.group,
        )
    )
