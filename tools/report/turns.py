"""Turns of a conversation beside each other: what of the turn before was found again in the prefix cache.

Read are lines with keys (``turn 2: input=200 cached=100``) and tables with a column for prompt and one for cached tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from msgspec import Struct

from tools.contract import Reading, Source
from tools.report.blocks import cells, table_mode

MAX_TURNS = 200
# Whole blocks are found again, so a count may fall short by a block or so.
NEAR = 0.03
_KEYS = {
    "prompt": r"prompt(?:[ _-]?(?:tokens?|len(?:gth)?))?|input(?:[ _-]?(?:tokens?|len(?:gth)?))?|in",
    "output": r"output(?:[ _-]?(?:tokens?|len(?:gth)?))?|generated(?:[ _-]?tokens?)?|completion(?:[ _-]?tokens?)?|out",
    "cached": r"cached?(?:[ _-]?(?:tokens?|hits?|len))?|hit[ _-]?tokens?|reused(?:[ _-]?tokens?)?",
}
_KEYED = {
    name: re.compile(rf"(?<![\w-])#?(?:{words})\s?[=:]\s?~?(?P<n>\d[\d,]*)(?![\d.]*\d?\s?(?:%|ms\b|s\b))", re.I)
    for name, words in _KEYS.items()
}
_HEADS = {name: re.compile(rf"^\W*#?(?:{words})\W*$", re.I) for name, words in _KEYS.items()}
_NUMBER = re.compile(r"^[~≈]?(\d[\d,]*)(?: tokens?)?$")


class Turn(Struct):
    """Tokens of one turn; ``output`` is ``None`` where it is not told."""

    prompt: float
    cached: float
    output: float | None
    line: int
    span: str


def readings(ref: str, lines: Iterable[tuple[int, str]]) -> Iterator[Reading]:
    """What the counts of two or more turns show of the prefix cache; a person's words, so a lead like other claims."""
    held = list(lines)
    turns = _keyed(held) or _tabled(held)
    for fact, turn, how in _shown(turns):
        source = Source(kind="words", ref=ref, line=turn.line, span=turn.span)
        yield Reading(fact=fact, value=True, source=source, method=how, labels={"by": "figures"})


def _shown(turns: list[Turn]) -> Iterator[tuple[str, Turn, str]]:
    grown = [(a, b) for a, b in pairwise(turns) if b.prompt >= a.prompt * (1 + NEAR)]
    if not grown or len(grown) < len(turns) - 1:
        return
    last = grown[-1][1]
    if all(later.cached == 0 for _, later in grown):
        yield "concept.cache_insert_missing", last, "prompts grow turn by turn and nothing of them is found again"
        return
    if all(abs(b.cached - a.prompt) <= NEAR * a.prompt and (a.output or 0) > NEAR * a.prompt for a, b in grown):
        yield (
            "concept.missing_equals_output",
            last,
            "what is found again is the prompt of the turn before, without its answer",
        )
        return
    found = [later.cached for _, later in grown]
    if len(found) >= 2 and max(found) - min(found) <= NEAR * max(found) and max(found) < 0.9 * grown[-1][0].prompt:
        yield "concept.common_prefix_pinned", last, "prompts grow and as many tokens as before are found again"
    elif found[-1] < 0.5 * max(found):
        yield "concept.hits_decay", last, "fewer tokens are found again than in earlier turns although the prompts grow"


def _keyed(lines: list[tuple[int, str]]) -> list[Turn]:
    out: list[Turn] = []
    for number, text in lines:
        seen = {name: pattern.search(text) for name, pattern in _KEYED.items()}
        prompt, cached, output = seen["prompt"], seen["cached"], seen["output"]
        if prompt and cached and len(out) < MAX_TURNS:
            made = _count(output["n"]) if output else None
            out.append(Turn(_count(prompt["n"]), _count(cached["n"]), made, number, text.strip()[:200]))
    return out


def _tabled(lines: list[tuple[int, str]]) -> list[Turn]:
    for place in range(len(lines) - 2):
        mode = table_mode([text for _, text in lines[place : place + 3]])
        head = cells(lines[place][1], mode) if mode in ("md", "gap", ",", "space") else []
        at = {name: i for name, pattern in _HEADS.items() for i, cell in enumerate(head) if pattern.match(cell)}
        if "prompt" in at and "cached" in at:
            return list(_rows(lines[place + 1 :], mode, len(head), at))
    return []


def _rows(lines: list[tuple[int, str]], mode: str, width: int, at: dict[str, int]) -> Iterator[Turn]:
    for number, text in lines[:MAX_TURNS]:
        row = cells(text, mode)
        if set(text.strip()) <= set("-=|: +"):
            continue
        values = {name: _NUMBER.match(row[i]) for name, i in at.items()} if len(row) == width else {}
        prompt, cached, output = values.get("prompt"), values.get("cached"), values.get("output")
        if prompt is None or cached is None:
            return
        yield Turn(
            _count(prompt[1]), _count(cached[1]), _count(output[1]) if output else None, number, text.strip()[:200]
        )


def _count(text: str) -> float:
    return float(text.replace(",", ""))
