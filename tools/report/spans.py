"""Sentences and clauses with line offsets; denial, questions, suppositions, advice and quoted norms.

A span is given back only when it stands verbatim in one line of the part: text that runs over a soft line break is cut
to its longest piece on one line.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from tools.report import lexicon
from tools.report.blocks import Block

Mode = Literal["said", "asked", "supposed", "advised", "norm"]

_END = re.compile(r"(?<=[。！？；])|(?<=[.!?])(?=[\"')\]*_`]{0,3}\s+\S)|(?<=[.!?][\"')\]])(?=\s+[A-Z])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|approx|vs|etc|cf|resp|incl|max|min|avg|no|fig|ca|aprox|ver|Mr|Dr|St)\.)$", re.IGNORECASE
)
_CLAUSE = re.compile(
    r"\s*[;；]\s*|\s+[–—]\s+|\s+--\s+|\s+-\s+(?=[a-z])|[,，、]?\s*(?=\b(?:but|yet|although|though|while|whereas|however|because|"
    r"unless|except that|even though)\b)|[,，]\s*(?=\b(?:and|so|then|which|where|with|without|when|if|as soon as|it|they|we|i|"
    r"the|my|our|there|nothing|no|not|only|every|each)\b)|(?<!\d)[，]|(?=(?:但是?|不过|然而|而且|可是|因为|所以|却))",
    re.IGNORECASE,
)
_TAIL = re.compile(r"[)\]}\"'*_`\s]*$")
MAX_SENTENCE = 4000


class Sentence(Struct):
    """A sentence of one block. ``starts`` maps offsets to lines: (offset in ``text``, line number, column)."""

    text: str
    starts: list[tuple[int, int, int]]
    lines: dict[int, str]
    kind: str = "text"
    block: int = 0
    section: int = 0

    def locate(self, start: int, stop: int) -> tuple[int, str]:
        """Line number and verbatim span of ``text[start:stop]``; the longest one-line piece of a wrapped match."""
        best: tuple[int, str] = (self.starts[0][1], "")
        for index, (offset, number, column) in enumerate(self.starts):
            following = self.starts[index + 1][0] if index + 1 < len(self.starts) else len(self.text) + 1
            low, high = max(start, offset), min(stop, following)
            if high <= low:
                continue
            piece = self.lines[number][column + low - offset : column + high - offset].strip()
            if len(piece) > len(best[1]):
                best = (number, piece)
        return best


class Clause(Struct, frozen=True):
    """A stretch of a sentence with one mode."""

    start: int
    stop: int
    mode: Mode


def sentences(block: Block, number: int, section: int) -> Iterator[Sentence]:
    """Sentences of a block of prose (text, item, heading, quote); each keeps its line offsets."""
    text, starts, lines = "", [], {}
    for line in block.lines:
        body = line.text
        column = len(body) - len(body.lstrip())
        mark = re.match(r"^\s*(?:#{1,6}\s+|>\s?|(?:[-*+•]|\d{1,2}[.)、])\s+)*(?:\[[ xX]\]\s+)?", body)
        if (mark and mark.end() > column and line is block.lines[0]) or (mark and block.kind == "quote"):
            column = mark.end()
        starts.append((len(text), line.no, column))
        lines[line.no] = body
        text += body[column:].rstrip() + " "
    text = text.rstrip()
    begin = 0
    for stop in _cuts(text):
        if text[begin:stop].strip():
            yield _part(text, begin, stop, starts, lines, block, number, section)
        begin = stop


def _cuts(text: str) -> Iterator[int]:
    last = 0
    for found in _END.finditer(text):
        at = found.start()
        if at - last < 2 or _ABBREVIATION.search(text[max(0, at - 12) : at]):
            continue
        last = at
        yield at
    while len(text) - last > MAX_SENTENCE:
        last += MAX_SENTENCE
        yield last
    yield len(text)


def _part(
    text: str,
    begin: int,
    stop: int,
    starts: list[tuple[int, int, int]],
    lines: dict[int, str],
    block: Block,
    number: int,
    section: int,
) -> Sentence:
    while begin < stop and text[begin] == " ":
        begin += 1
    own: list[tuple[int, int, int]] = []
    for index, (offset, line, column) in enumerate(starts):
        following = starts[index + 1][0] if index + 1 < len(starts) else len(text) + 1
        if following <= begin or offset >= stop:
            continue
        if offset <= begin:
            own.append((0, line, column + begin - offset))
        else:
            own.append((offset - begin, line, column))
    return Sentence(text[begin:stop], own, lines, block.kind, number, section)


# Questions without their mark: an auxiliary in front of its subject.
_ASKS = re.compile(
    r"(?:how (?:do|can|should) (?:i|we)|any idea|please (?:advise|help))\b"
    r"|(?:(?:or|and|so|but)\s)?(?:(?:is|are|was|were|isn't|aren't)\s(?:it|this|that|there|these|those|they|we)|(?:could|can|would|might)\s(?:it|this|that|there|they|we|i|you|anyone|someone|somebody|anybody))\b"
    r"|(?:is|are|was|were)\s(?:the|my|our)\s[^,;.]{2,60}\b(?:because|due to|caused by|related to)\b"
    r"|(?:do|does|did)\s(?:(?:it|this|that)\s(?:mean|matter|happen|affect|look|depend)\b|(?:you|anyone|someone|we|i)\s)",
    re.IGNORECASE,
)
# What follows is told, not asked: "do you know why TTFT is 5 s", "can anyone help, we get …".
_GIVEN = re.compile(
    r"\b(?:why|how come|normal that|normal to)\b|,\s(?:we|i|it|the|my|our|vllm|sglang)\b", re.IGNORECASE
)
_ASKS_ZH = re.compile(
    r"是不是|会不会|难道|是否(?:是|因为|由于|存在)|一般(?:是|有)?多少|多少(?:算|才|合适|正常)|(?<!不管)(?<!无论)(?<!不论)怎么(?:选|设|算|计算|配置|理解)|有(?:什么|啥)区别"
)


def clauses(sentence: Sentence) -> list[Clause]:
    """Clauses of a sentence with their modes, left to right, covering all of it."""
    text = sentence.text
    edges = [0]
    for found in _CLAUSE.finditer(text):
        at = found.end() if found.end() > found.start() else found.start()
        if at - edges[-1] >= 3 and at < len(text) - 1 and not _inside_parentheses(text, edges[-1], at):
            edges.append(at)
    edges.append(len(text))
    out: list[Clause] = []
    asked_from = _question_start(text, edges)
    for start, stop in itertools.pairwise(edges):
        body = text[start:stop]
        mode = _mode(body)
        if asked_from is not None and start >= asked_from and mode == "said":
            mode = "asked"
        out.append(Clause(start, stop, mode))
    return out


def _inside_parentheses(text: str, start: int, at: int) -> bool:
    return text.count("(", start, at) > text.count(")", start, at)


def _question_start(text: str, edges: list[int]) -> int | None:
    """Offset from which the sentence asks without asserting; ``None`` when it does not."""
    body = _TAIL.sub("", text)
    chinese_open = lexicon.cue("question.zh_open").search(body)
    asks = body.endswith(("?", "？")) or bool(chinese_open) or bool(lexicon.cue("question.zh_polar").search(body[-4:]))
    low = text.lstrip(" \"'*_`(")
    if not asks:
        if _ASKS.match(low):
            return None if _GIVEN.search(low[:120]) else 0
        guess = _ASKS_ZH.search(body)
        if guess is None:
            return None
        # An ASCII comma between Chinese words parts clauses as well.
        comma = max(body.rfind(mark, 0, guess.start()) for mark in ",，") + 1
        return max(comma, *(edge for edge in edges[:-1] if edge <= guess.start()))
    if lexicon.cue("question.given").match(low) or re.match(r"^(?:为什么|为何|怎么会|何以)", low):
        return None
    if re.search(r"[\u3400-\u9fff]", body):
        polar = lexicon.cue("question.zh_polar").search(body)
        found = polar or chinese_open or _ASKS_ZH.search(body)
        if not found:
            return None
        starts = [edge for edge in edges[:-1] if edge <= found.start()]
        return starts[-1] if starts else 0
    for start, stop in itertools.pairwise(edges):
        piece = text[start:stop].lstrip(" \"'*_`(,")
        if lexicon.cue("question.polar").match(piece) or lexicon.cue("question.open").match(piece):
            return start
    return None


@lru_cache(maxsize=4096)
def _mode(body: str) -> Mode:
    if lexicon.cue("hypothesis").search(body):
        return "supposed"
    if lexicon.cue("advice").search(body):
        return "advised"
    return "said"


def mode_at(parts: list[Clause], start: int, stop: int, text: str) -> Mode:
    """Mode of a match; a cue that lies inside the match itself (part of the claim) does not count."""
    for part in parts:
        if part.start <= start < part.stop:
            if part.mode in ("supposed", "advised"):
                outside = text[part.start : start] + " \u0001 " + text[min(stop, part.stop) : part.stop]
                return _mode(outside)
            return part.mode
    return "said"


# "A cliff rather than a hang"; "less likely to get stuck"; "to avoid preemption": what is not, or shall not be.
_INSTEAD = re.compile(
    r"\b(?:rather than|as opposed to|unlike)\s(?:an?\s|the\s|any\s)?(?:\w+\s)?$"
    r"|\b(?:(?:are|is|be|become\w*) less likely to|(?:to|in order to|so as to) (?:avoid|prevent))\s(?:[\w-]+\s){0,4}$",
    re.IGNORECASE,
)
# "We can neglect the first case due to X": X is laid aside.
_SET_ASIDE = re.compile(
    r"\b(?:neglect|ignor(?:e|ed|ing)|disregard(?:ed|ing)?|leav(?:e|ing) aside|not counting)\b[^.;]{0,60}\b(?:due to|because of|caused by)\s(?:\w+\s){0,2}$",
    re.IGNORECASE,
)
_EXCLUDED = re.compile(
    r"[\w/-]*(?:,? (?:and|or) [\w -]{2,24}| [\w-]{2,16})?\s(?:is|are|was|were) (?:thus |therefore |also |both )?(?:ruled out|excluded)\b",
    re.IGNORECASE,
)


def denied(text: str, parts: list[Clause], start: int, stop: int) -> bool:
    """Whether ``text[start:stop]`` stands under a denial in its own clause."""
    low = 0
    for part in parts:
        if part.start <= start < part.stop:
            low = part.start
            high = part.stop
            break
    else:
        high = len(text)
    before = text[max(low, start - 120) : start]
    if _INSTEAD.search(before) or _SET_ASIDE.search(before) or _EXCLUDED.match(text[stop : stop + 90]):
        return True
    hits = [found for found in lexicon.cue("negation.forward").finditer(before) if not _exempt(before, found)]
    if hits:
        between = before[hits[-1].end() :]
        if (
            len(between.split()) <= 7
            and not lexicon.cue("negation.stop").search(between)
            and not re.search(r"[.:;()]\s|, (?=\w+ (?:is|are|was|were|has|have)\b)", between)
        ):
            return True
    after = text[stop : min(len(text), max(high, stop) + 30, stop + 60)]
    return bool(lexicon.cue("negation.backward").match(after))


def _exempt(before: str, found: re.Match[str]) -> bool:
    window = before[max(0, found.start() - 2) : found.end() + 12]
    return any(
        item.start() <= found.start() - max(0, found.start() - 2) < item.end()
        for item in lexicon.cue("negation.exempt").finditer(window)
    )
