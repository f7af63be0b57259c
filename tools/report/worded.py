"""Shapes and symptoms that a person states in words; the patterns are data (``knowledge/lexicon/worded.yaml``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec
from msgspec import Struct

from knowledge.loader import ROOT, read_yaml
from tools.contract import Reading
from tools.report import emit, lexicon, spans
from tools.report.document import Document
from tools.report.observe import Parsed
from tools.report.pairs import Pair
from tools.report.shapes import Shape

MAX_PER_FACT = 3
# Differences of which a worse side is a complaint; against a norm or another tool it is one too.
_COMPLAINT = (
    "version_upgrade",
    "feature_on_off",
    "gpu_count",
    "route",
    "time",
    "dependency",
    "reference",
    "before_after",
    "unnamed",
    "other_load",
    "hardware",
)


class Worded(Struct, forbid_unknown_fields=True, kw_only=True):
    """One fact and the patterns that state it; ``asked``: a question that presupposes it counts too."""

    fact: str
    words: list[str]
    asked: bool = False


@lru_cache(maxsize=1)
def table() -> list[tuple[Worded, re.Pattern[str]]]:
    """All rows with one compiled alternation each."""
    rows = msgspec.convert(read_yaml(ROOT / "lexicon" / "worded.yaml"), list[Worded])
    return [(row, re.compile("|".join(f"(?:{word})" for word in row.words), re.IGNORECASE)) for row in rows]


def _hits(doc: Document, prefix: str) -> Iterator[tuple[str, int, str, Parsed]]:
    """``(fact, line, span, sentence)`` of every accepted match, at most ``MAX_PER_FACT`` per fact."""
    count: dict[str, int] = {}
    for parsed in doc.parsed:
        text = parsed.sentence.text
        for row, pattern in table():
            if not row.fact.startswith(prefix) or count.get(row.fact, 0) >= MAX_PER_FACT:
                continue
            for found in pattern.finditer(text):
                if not _stands(parsed, found, row.asked):
                    continue
                line, span = parsed.sentence.locate(found.start(), found.end())
                if span:
                    count[row.fact] = count.get(row.fact, 0) + 1
                    yield row.fact, line, span, parsed
                    break


def _stands(parsed: Parsed, found: re.Match[str], asked: bool) -> bool:
    text = parsed.sentence.text
    mode = spans.mode_at(parsed.clauses, found.start(), found.end(), text)
    if mode not in ("said", "asked") or (mode == "asked" and not asked):
        return False
    return not spans.denied(text, parsed.clauses, found.start(), found.end())


def shapes(doc: Document, pairs: list[Pair]) -> list[Shape]:
    """Shapes stated in words, and those that follow from the words around a worse figure."""
    out = [Shape(fact, line, span, "stated in words") for fact, line, span, _ in _hits(doc, "shape.")]
    names = {item.fact for item in out}
    if "shape.more_gpus_slower" in names and "shape.more_gpus_no_gain" not in names:
        first = next(item for item in out if item.fact == "shape.more_gpus_slower")
        out.append(Shape("shape.more_gpus_no_gain", first.line, first.span, "slower with more GPUs is no gain either"))
    return out


def symptoms(doc: Document, pairs: list[Pair]) -> Iterator[Reading]:
    """Complaints: stated in words, or a figure that got worse by the threshold of ``shapes.yaml``."""
    ref = doc.part.name
    for fact, line, span, _ in _hits(doc, "symptom."):
        yield Reading(fact=fact, value=True, source=emit.words(ref, line, span), method="stated in words")
    limit = lexicon.shapes().worse
    known = lexicon.metrics()
    for pair in pairs:
        worse = pair.worse()
        if worse is None or worse < limit or pair.difference not in _COMPLAINT:
            continue
        symptom = "throughput" if pair.metric == "speed" else known[pair.metric].symptom
        if symptom:
            method = f"{pair.metric} is {worse:.2f} times worse ({pair.what or pair.difference})"
            yield Reading(
                fact=f"symptom.{symptom}", value=True, source=emit.words(ref, pair.line, pair.span), method=method
            )
