"""Report reader: a person's text → readings with verbatim spans, and excerpts handed back for their own readers."""

from __future__ import annotations

from collections.abc import Iterator

from tools.contract import Context, Problem, Reading, ReadResult
from tools.part import Part
from tools.report import (
    document,
    emit,
    fleet,
    hints,
    moves,
    pairs,
    reached,
    said,
    shapes,
    sweeps,
    turns,
    vantage,
    worded,
)
from tools.report.concepts import match
from tools.report.counts import counts
from tools.report.document import Document
from tools.report.observe import Observation
from tools.report.pairs import Pair


def read(parts: list[Part], context: Context) -> ReadResult:
    """Readings of all parts, in their order. A part that is cut short or empty becomes a problem, never an error."""
    out = ReadResult(readings=[], problems=[], nested=[])
    everything: list[Observation] = []
    differences: list[tuple[str, Pair]] = []
    for part in parts:
        doc = document.take_apart(part)
        if doc.cut:
            what = f"only the first {document.MAX_LINES} lines are read as a report"
            out.problems.append(Problem(ref=part.name, what=what, do="give the rest as its own file"))
        out.nested.extend(doc.nested)
        found = _pairs(doc)
        differences.extend((part.name, pair) for pair in found)
        mine = list(_readings(doc, found))
        out.readings.extend(mine)
        out.readings.extend(counts(part.name, doc.lines, {r.fact for r in mine}))
        for item in doc.found:
            item.part = part.name
        everything.extend(doc.found)
    if len(parts) > 1:
        out.readings.extend(_between(everything, parts))
    out.readings.extend(said.differences(differences))
    return ReadResult(readings=_distinct(out.readings), problems=out.problems, nested=out.nested)


def _pairs(doc: Document) -> list[Pair]:
    prose = doc.prose()
    # Which of two figures comes first is settled where the sentence itself says so.
    told = {
        (parsed.sentence.locate(item.start, item.stop)[0], frozenset((item.before, item.after)))
        for item, parsed in doc.ratios
        if item.before is not None
    }
    seen = pairs.of_observations(doc.found, prose)
    out = [pair for pair in seen if (pair.line, frozenset((pair.before, pair.after))) not in told]
    said_first = (item.sentence.text for item in doc.parsed[:4])
    opening = " ".join(text for text in said_first if not text.rstrip().endswith(("?", "？")))
    for index, (item, parsed) in enumerate(doc.ratios):
        line, span = parsed.sentence.locate(item.start, item.stop)
        around = opening if index < 400 else ""
        out.append(pairs.of_ratio(item, line, span, parsed.sentence.text, around))
    for cell in doc.table_ratios:
        kinds = [pairs.DIFFERENCES[kind] for kind in cell.conditions if kind in pairs.DIFFERENCES]
        spoken = hints.cues(prose)
        difference = next(iter(kinds), next(iter(spoken), "unnamed"))
        out.append(Pair(cell.metric, cell.value, difference, "", cell.line, cell.span, stated=True))
    out.extend(said.changed(doc))
    known = {(pair.metric, pair.before, pair.after) for pair in out}
    moved = moves.pairs_told(doc.figures, doc.ratios)
    return out + [pair for pair in moved if (pair.metric, pair.before, pair.after) not in known]


def _readings(doc: Document, found: list[Pair]) -> Iterator[Reading]:
    ref = doc.part.name
    yield from said.entities(doc)
    for item in doc.found:
        yield from emit.observation(ref, item)
    yield from reached.shares(doc)
    for pair in found:
        yield from emit.pair(ref, pair)
    curves = sweeps.of_observations(doc.found)
    for curve in curves:
        yield from emit.sweep(ref, curve)
    count: dict[str, int] = {}
    for shape in (*shapes.of_sweeps(curves), *shapes.of_pairs(found), *worded.shapes(doc, found)):
        count[shape.fact] = count.get(shape.fact, 0) + 1
        if count[shape.fact] <= worded.MAX_PER_FACT:
            yield emit.shape(ref, shape)
    yield from worded.symptoms(doc, found)
    yield from vantage.readings(doc)
    yield from fleet.readings(ref, doc.lines)
    yield from turns.readings(ref, doc.lines)
    yield from match(ref, doc.lines)


def _between(everything: list[Observation], parts: list[Part]) -> Iterator[Reading]:
    """Shapes between two files of one report."""
    for shape in shapes.between_parts(everything):
        ref = next(
            (item.part for item in everything if item.line == shape.line and item.span == shape.span), parts[0].name
        )
        yield emit.shape(ref, shape)


def _distinct(found: list[Reading]) -> list[Reading]:
    """One reading per fact, value, place and labels; the order stays."""
    seen: set[tuple[object, ...]] = set()
    out = []
    for item in found:
        if item.source.kind == "words" and not item.source.span:
            continue
        key = (item.fact, repr(item.value), item.source.ref, item.source.line, item.source.span, repr(item.labels))
        if key not in seen:
            seen.add(key)
            out.append(item)
    return out
