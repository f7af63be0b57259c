"""Which conditions of a sentence belong to which of its figures."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from tools.report.conditions import FIGURE, Condition
from tools.report.metrics import Mention
from tools.report.quantities import Quantity

if TYPE_CHECKING:
    from tools.report.observe import Observation, Scope

# Conditions with a number: they belong to the figure next to them.
NUMERIC = ("concurrency", "context", "prompt_tokens", "gpus", "power_cap", "run", "uptime")


_CHUNK = re.compile(r"(?<!\d)[,，]|[,，](?!\d{3}(?!\d))|[;；:：()（）。]|\s(?:and|while|but|whereas)\s")


def groups(text: str, found: list[Quantity]) -> list[list[Quantity]]:
    """Quantities joined by a slash belong together (``p50/p95``)."""
    out: list[list[Quantity]] = []
    for item in found:
        if out and text[out[-1][-1].stop : item.start].strip() == "/":
            out[-1].append(item)
        else:
            out.append([item])
    return out


def _chunks(text: str) -> list[tuple[int, int]]:
    edges = [0, *(found.end() for found in _CHUNK.finditer(text)), len(text)]
    return [(start, stop) for start, stop in itertools.pairwise(edges) if stop > start]


def attach(
    text: str,
    item: Quantity,
    marks: list[Condition],
    values: list[tuple[Quantity, Mention]],
    scope: Scope,
    host: Observation | None,
) -> dict[str, Condition]:
    """Conditions of one figure: those of its own chunk, then those in front in the sentence, then the header's."""
    found: dict[str, Condition] = dict(scope.header)
    parts = _chunks(text)
    own = next((part for part in parts if part[0] <= item.start < part[1]), (0, len(text)))
    group = next((group for group in groups(text, [value for value, _ in values]) if item in group), [item])
    start, stop = group[0].start, group[-1].stop
    others = sorted(value.start for value, _ in values if value not in group)
    bracket = text.rfind("(", 0, start) if text.rfind("(", 0, start) > text.rfind(")", 0, start) else -1
    for mark in marks:
        if mark.stop > start or (mark.kind in ("reference", "side") and not _in_reach(text, mark, item)):
            continue
        # A marker that stands behind another figure in that figure's chunk belongs to that figure.
        chunk = next((part for part in parts if part[0] <= mark.start < part[1]), own)
        if chunk != own and bracket < 0 and mark.kind != "gpu" and _trails(text, mark, chunk, others):
            continue
        found[mark.kind] = mark
    following = min(
        (other for other in others if other >= stop and not _bracketed(text, stop, other)), default=len(text)
    )
    reach = own[1]
    if bracket < 0 and text[own[1] - 1 : own[1]] == "(":
        close = text.find(")", own[1])
        reach = next((part[1] for part in parts if close >= 0 and part[0] <= close + 1 < part[1]), own[1])
    for mark in marks:
        if (mark.start == item.start and mark.stop == item.start) or (
            stop <= mark.start < min(following, reach) and not _foreign(text, mark, stop)
        ):
            found[mark.kind] = mark
    if bracket >= 0 and host is not None and "reference" not in found and "side" not in found:
        for kind, mark in host.conditions.items():
            found.setdefault(kind, mark)
        _like_before(text, bracket, marks, found)
    return found


def _trails(text: str, mark: Condition, chunk: tuple[int, int], others: list[int]) -> bool:
    """Whether a marker stands behind a figure of its own chunk, or right behind that figure's brackets."""
    if any(chunk[0] <= other < mark.start for other in others):
        return True
    return text[chunk[0] - 1 : chunk[0]] == ")" and any(other < chunk[0] for other in others)


def _bracketed(text: str, stop: int, other: int) -> bool:
    return text.rfind("(", stop, other) > text.rfind(")", stop, other)


def _foreign(text: str, mark: Condition, stop: int) -> bool:
    """A marker behind a figure that belongs to another one: it has its own figure, or speaks of others far away."""
    if mark.kind in ("reference", "side") and _owns(text, mark):
        return True
    if mark.kind == "feature" and FIGURE.match(text[mark.stop : mark.stop + 24]):
        return True
    if mark.kind == "reference":
        # "12 vs ~36 claimed": the word is said of the figure it stands behind.
        return mark.start - stop > 30 or bool(_AGAINST.search(text[stop : mark.start]))
    return "(" in text[stop : mark.start] and mark.kind not in ("side", *NUMERIC) and ")" not in text[stop : mark.start]


_AGAINST = re.compile(r"\b(?:vs\.?|versus|against|compared (?:to|with))\s(?:the\s|about\s)?[~≈]?\d", re.IGNORECASE)
_THAN = re.compile(r"\bthan\s$", re.IGNORECASE)


def _owns(text: str, mark: Condition) -> bool:
    """``README 64.4``: the marker has its own figure right behind it."""
    return bool(re.match(r"\s?(?:says|shows|is|about|around|~|:)?\s?\d", text[mark.stop : mark.stop + 12]))


def _like_before(text: str, bracket: int, marks: list[Condition], found: dict[str, Condition]) -> None:
    """A bare bracketed figure plays the part of the first bracketed figure of the sentence (``(README 64.4) … (116.8)``)."""
    first = text.find("(")
    if first < 0 or first == bracket:
        return
    close = text.find(")", first)
    for mark in marks:
        if first < mark.start < close and mark.kind == "reference":
            found["reference"] = mark


def _in_reach(text: str, mark: Condition, item: Quantity) -> bool:
    between = text[mark.stop : item.start]
    if mark.kind == "side":
        return not re.search(r"[;；.]|\bbut\b|\bnow\b|\bthen\b|现在", between, re.IGNORECASE)
    # "Slower than expected, only 8 tok/s": the figure behind is what was seen.
    if _THAN.search(text[: mark.start][-6:]) and re.match(r"\s?[,(]|\s(?:with|at|of|reaching|getting|only)\b", between):
        return False
    return not re.search(
        r"[;；.]|,\s(?:but|i|we|my|our|mine|ours|here)\b|\b(?:not|instead of|rather than|but)\b|\)",
        between,
        re.IGNORECASE,
    )
