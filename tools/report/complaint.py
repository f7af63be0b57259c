"""How much somebody complains, whatever about: the count of distinct words of complaint that are not denied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tools.contract import Reading
from tools.report import emit, lexicon, spans
from tools.report.observe import Parsed

STEM = 5


def complaint(ref: str, sentences: Iterable[Parsed]) -> Iterator[Reading]:
    """One ``complaint.words`` at the first such word: distinct by their first five letters, asked or said."""
    pattern = lexicon.cue("complaint")
    seen: set[str] = set()
    first: tuple[int, str] | None = None
    for parsed in sentences:
        text = parsed.sentence.text
        for found in pattern.finditer(text):
            if spans.denied(text, parsed.clauses, found.start(), found.end()):
                continue
            seen.add(found[0].lower()[:STEM])
            first = first or parsed.sentence.locate(found.start(), found.end())
    if first is not None:
        line, span = first
        source = emit.words(ref, line, span)
        method = f"distinct words of complaint: {', '.join(sorted(seen)[:12])}"
        yield Reading(fact="complaint.words", value=float(len(seen)), source=source, method=method)
