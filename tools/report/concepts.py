"""Claims in a person's words → yes/no facts with verbatim spans (``knowledge/signatures/report_*.yaml``).

A claim that is denied in its own clause, asked, supposed or quoted as advice is not an observation and leaves no fact.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from knowledge import load
from knowledge.schema import Signature
from tools.contract import Reading, Source
from tools.logs.signatures import captured
from tools.report.spans import Clause, Sentence, clauses, denied, mode_at

MAX_LINES = 3000
_DENIAL = re.compile(r"\b(?:no|not|never|without|zero|neither|none)\b|n't\b|没有|没|无|不|未", re.I)
_NO_DIGITS = str.maketrans("", "", "0123456789")
_CUT = re.compile(r"(?<=[.!?。！？；])\s+|(?<=[。！？；])")


@lru_cache(maxsize=1)
def claims() -> tuple[tuple[Signature, tuple[str, ...]], ...]:
    """Report signatures with their lower-case ``need`` words, of which a sentence must hold one."""
    return tuple(
        (signature, tuple(word.lower() for word in signature.need))
        for signature in load().signatures.values()
        if "report" in signature.where
    )


@lru_cache(maxsize=1)
def needed() -> tuple[dict[str, tuple[int, ...]], tuple[int, ...]]:
    """``need`` word → places in :func:`claims` that it opens; and the places that need none.

    Claims share words: each distinct one is looked for once in a sentence.
    """
    table: dict[str, list[int]] = {}
    free: list[int] = []
    for place, (_, words) in enumerate(claims()):
        for word in dict.fromkeys(words):
            table.setdefault(word, []).append(place)
        if not words:
            free.append(place)
    return {word: tuple(places) for word, places in table.items()}, tuple(free)


@cache
def compiled(pattern: str, case: bool) -> re.Pattern[str] | None:
    """A signature's pattern, compiled when a sentence first needs it: all of them take longer than a report.

    One that does not compile is the linter's finding, not ours.
    """
    try:
        return re.compile(pattern, 0 if case else re.IGNORECASE)
    except re.error:
        return None


def match(ref: str, lines: list[tuple[int, str]], only: str = "") -> list[Reading]:
    """One reading per claimed fact: its first undenied, unhedged mention. ``lines``: numbered prose and table lines;
    ``only``: look for this fact alone."""
    found: dict[str, Reading] = {}
    for number, line in lines[:MAX_LINES]:
        start = 0
        for cut in [*(m.end() for m in _CUT.finditer(line)), len(line)]:
            text = line[start:cut]
            start = cut
            if len(text.strip()) >= 4:
                _sentence(ref, number, text, found, only)
    return list(found.values())


def _kind(fact: str) -> str:
    definition = load().facts.get(fact)
    return definition.type if definition else "text"


@lru_cache(maxsize=4096)
def _speaks_of_denial(pattern: str) -> bool:
    return _DENIAL.search(re.sub(r"\\b|[?:|()\[\]]", " ", pattern)) is not None


def _denies_itself(pattern: str, span: str) -> bool:
    """ "NICs are fine, no retransmits": what the pattern skips over between its words takes the claim back."""
    return _DENIAL.search(span) is not None and not _speaks_of_denial(pattern)


def _sentence(ref: str, number: int, text: str, found: dict[str, Reading], only: str) -> None:
    parts: list[Clause] | None = None
    # With the digits left out too: ``need`` words are written for the log reader, which leaves them out ("a2a" → "aa").
    low = text.lower()
    low = f"{low}\n{low.translate(_NO_DIGITS)}"
    table, free = needed()
    every = claims()
    places = {*free, *(place for word, opened in table.items() if word in low for place in opened)}
    for place in sorted(places):
        signature = every[place][0]
        if signature.fact in found or (only and signature.fact != only):
            continue
        pattern = compiled(signature.pattern, signature.case)
        if pattern is None:
            continue
        hit = pattern.search(text)
        if hit is None or hit.end() == hit.start():
            continue
        if parts is None:
            sentence = Sentence(text=text, starts=[(0, number, 0)], lines={number: text})
            parts = clauses(sentence)
        mode = mode_at(parts, hit.start(), hit.end(), text)
        if mode in ("supposed", "advised") or (mode == "asked" and not signature.asked):
            continue
        if denied(text, parts, hit.start(), hit.end()) or _denies_itself(signature.pattern, hit[0]):
            continue
        span = text[hit.start() : hit.end()].strip()
        value = captured(signature, _kind(signature.fact), hit)
        if not span or value is None:
            continue
        found[signature.fact] = Reading(
            fact=signature.fact,
            value=value,
            source=Source(kind="words", ref=ref, line=number, span=span),
            method=f"claim {signature.id}",
        )
