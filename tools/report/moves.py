"""Changes told over two figures: a later sentence says that the metric ``increases to 3 s`` from what was said last."""

from __future__ import annotations

import re

from tools.report import hints, pairs
from tools.report.compare import Ratio
from tools.report.observe import Observation, Parsed
from tools.report.pairs import Pair

NEAR_SENTENCES = 3
NEAR_FIGURES = 12
# A state is told and left: "drops to 17 tok/s when …", "涨到 3 秒".
_MOVES = re.compile(
    r"\b(?:increas\w+|ris(?:es|en|ing)|rose|grows?|grew|jump(?:s|ed)|climb(?:s|ed)|balloon(?:s|ed)|shoots? up|shot up|go(?:es)? (?:up|down)|went (?:up|down)|drop(?:s|ped)|falls?|fell|decreas\w+|declin\w+|collaps\w+|plummet\w+|sinks?|sank|degrad\w+|slows?(?: down)?|slowed(?: down)?)"
    r"\s(?:\w+ly\s)?(?:back\s)?to\s(?:\w+\s){0,2}?[~≈<>]?\s?$|(?:涨|升|增加|上升|增|降|掉|跌|下降|降低|变|恶化)(?:到|至|为|成)了?\s?(?:约|大约|仅|只有)?\s?$",
    re.IGNORECASE,
)
_FROM = re.compile(r"\bfrom\s(?:\w+\s){0,3}?[~≈]?\d|从", re.IGNORECASE)
_ONE = re.compile(r"\b(?:single|one|1)[- ](?:\w+[- ])?(?:gpu|card|machine|node|server)\b|单[卡机]", re.IGNORECASE)
_SEVERAL = re.compile(
    r"\btensor[- ]parallel\w*|\bTP\b|\b(?:two|three|four|eight|both|multiple|several|[2-9]|16)[- ](?:\w+[- ])?(?:gpus|cards)\b|[双多两]卡|[2-9]\s?卡",
    re.IGNORECASE,
)
_MACHINES = re.compile(
    r"\b(?:two|three|four|both|multiple|several|[2-9])[- ](?:\w+[- ])?(?:machines|nodes|servers|hosts)\b|[双多两]机",
    re.I,
)


def pairs_told(sentences: list[tuple[Parsed, list[Observation]]], stated: list[tuple[Ratio, Parsed]]) -> list[Pair]:
    """A pair for each figure that a metric moves to, with the last figure of the same metric said shortly before."""
    out: list[Pair] = []
    own = {(ratio.metric, id(parsed)) for ratio, parsed in stated if ratio.before is not None}
    for number, (parsed, found) in enumerate(sentences):
        text = parsed.sentence.text
        for index, item in enumerate(found):
            place = text.find(item.span)
            figure = re.search(r"[~≈<>]?\d[\d.,]*(?!.*\d)", item.span)
            if place < 0 or figure is None or item.norm or item.extra or (item.metric, id(parsed)) in own:
                continue
            front = text[max(0, place + figure.start() - 60) : place + figure.start()]
            if not _MOVES.search(front) or _FROM.search(front):
                continue
            earlier = [(parsed, seen) for seen in found[max(0, index - NEAR_FIGURES) : index]]
            for other, seen in sentences[max(0, number - NEAR_SENTENCES) : number]:
                earlier[:0] = [(other, one) for one in seen[-NEAR_FIGURES:]]
            like = [
                (other, seen)
                for other, seen in earlier
                if (seen.metric, seen.stat, seen.unit, seen.per) == (item.metric, item.stat, item.unit, item.per)
                and not seen.norm
                and not seen.extra
                # Another load is a point of a curve, no other state.
                and all(seen.number(kind) == item.number(kind) for kind in pairs.LOAD)
                and seen.value > 0
            ]
            if like and not _other_subject(like[-1][0], parsed):
                out.append(_pair(like[-1][0].sentence.text, like[-1][1], text, item))
    return out


def _other_subject(before: Parsed, after: Parsed) -> bool:
    """Two models, engines or cards told one after the other are no change of one of them."""
    for kind in ("model", "engine", "gpu"):
        first, second = ({x.name.lower() for x in p.entities if x.kind == kind} for p in (before, after))
        if second and first and not first & second:
            return True
    sizes = [set(re.findall(r"\b\d+(?:\.\d+)?[bB]\b", p.sentence.text)) for p in (before, after)]
    return bool(sizes[0] and sizes[1] and not sizes[0] & sizes[1])


def _pair(before: str, first: Observation, after: str, second: Observation) -> Pair:
    told = after if before == after else f"{before} {after}"
    kind, what = "unnamed", ""
    if _ONE.search(before) and _MACHINES.search(after):
        kind = "layout"
    elif _ONE.search(before) and _SEVERAL.search(after):
        kind = "gpu_count"
    else:
        kind = next(iter(hints.cues(told)), "unnamed")
    return Pair(
        second.metric,
        second.value / first.value,
        kind,
        what,
        second.line,
        second.span,
        first.value,
        second.value,
        second.unit,
        second.stat,
    )
