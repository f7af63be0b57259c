"""Figures of a sentence looked at once more: what the words around a figure say it is, or that it is none."""

from __future__ import annotations

import re

from tools.report.observe import Observation, Parsed

_PER_STEP = re.compile(
    r"^[\s)]*(?:per|/|a|each|for (?:each|every|one)) ?(?:transformer |decoder |single |moe |attention )?(?:(?P<part>layer|op(?:eration|erator)?|kernel|launch)|(?P<step>step|iteration|forward(?: pass)?))\b|^\s?每(?:一)?(?:(?P<zpart>层|次调用)|(?P<zstep>步|次迭代))",
    re.IGNORECASE,
)
_TIME = re.compile(r"\d[\d.,]*\s?(?:[mµu]s|s(?:ec(?:onds?)?)?|milliseconds?|microseconds?|毫秒|微秒|秒)", re.IGNORECASE)
_SLASHES = re.compile(
    r"(?<![\w./])\d+(?:\s?/\s?\d+){2,}\s?(?:并发|路|(?:concurren\w+|parallel|simultaneous|clients?|users?|streams?|sessions?|requests?(?!\s?(?:/|per\b|a second)))\b)",
    re.IGNORECASE,
)
_REACHED = re.compile(
    r"\b(?:than|below|short of) (?:i |we |was |were |what (?:i|we) )?(?:\w+ )?expect\w*[^.;\d]{0,30}?[,;:(-]\s?[^.;\d]{0,24}?\b(?:only|just|barely|reach\w*|gett?\w*|achiev\w*|at|about|around)\b[^.;\d]{0,16}$"
    r"|(?:比|低于|不如|慢于)预期[^。；\d]{0,8}[，,][^。；\d]{0,8}(?:只有|只能|仅|才|达到)[^。；\d]{0,6}$",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"(?:\d+(?:\s?/\s?\d+|\s?%|\s?percent)?(?: of)?(?: the| all)? (?:(?:requests?|calls?|turns?|queries|prompts?|samples?)(?: (?:took|take|were|was|are|had|need\w*|wait\w*))?|took|were|took longer)|,\s?\d+)"
    r"\s?(?:[a-z]+ )?(?:[>≥]|(?:longer|more) than|over|above|beyond|exceed\w*)\s?[~≈]?$"
    r"|\d+\s?(?:个|%的?|条)(?:请求)?(?:超过|大于|高于)\s?$",
    re.IGNORECASE,
)


def checked(parsed: Parsed, found: list[Observation]) -> list[Observation]:
    """``found`` without figures that are bounds or loads, and with the metric or side that the words around them name."""
    text = parsed.sentence.text
    slashes = [(hit.start(), hit.end()) for hit in _SLASHES.finditer(text)]
    out: list[Observation] = []
    at = 0
    for item in found:
        figure = re.search(r"\d[\d.,]*(?!.*\d)", item.span)
        place = text.find(item.span, at)
        place = place if place >= 0 else text.find(item.span)
        start = place + (figure.start() if figure else 0) if place >= 0 else -1
        if place >= 0:
            at = max(at, place)
        if start >= 0 and any(low <= start < high for low, high in slashes) and item.metric != "running":
            continue
        front = text[max(0, start - 80) : start] if start >= 0 else ""
        if item.unit == "s" and _BOUND.search(front):
            continue
        _step(item, text[start : start + 64] if start >= 0 else "")
        if item.norm and _REACHED.search(front):
            item.norm = False
            item.conditions.pop("reference", None)
        out.append(item)
    return out


def _step(item: Observation, behind: str) -> None:
    figure = _TIME.match(behind)
    if figure is None:
        return
    hit = _PER_STEP.match(behind[figure.end() :]) if item.metric in ("e2e", "takes", "duration", "tpot") else None
    if hit is not None:
        item.metric = "kernel_time" if hit["part"] or hit["zpart"] else "step_time"
