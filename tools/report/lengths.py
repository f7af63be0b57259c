"""How long prompts, answers and contexts are said to be: "prompts of 12k tokens", "2k in, 300 out", "32K输入1K输出"."""

from __future__ import annotations

import re
from collections.abc import Iterator

_LENGTH = r"(?<![\d.,])(?P<{0}>\d{{1,3}}(?:,\d{{3}})+|\d+(?:\.\d+)?)\s?(?P<{1}>[kK])?"
_CONTEXT = re.compile(
    _LENGTH.format("n", "k")
    + r"(?P<tok>[- ]tok(?:en)?s?)?(?P<join>[- ]?)(?P<what>context(?: length| window)?|prompts?|inputs?|prefix|(?:cold |warm )?prefill(?! tok)|sequence(?: length)?)\b"
    r"|\b(?:context(?: length| size| window)?|prompt(?: length)?|(?<!max[-_ ])input(?:[-_ ]length|[-_ ]len)?|isl|seq(?:uence)?[- ]?len(?:gth)?)\s?(?:of|=|:|at|is)?\s?(?:about |around |~)?(?P<n2>\d{1,3}(?:,\d{3})+|\d+)\s?(?P<k2>[kK])?(?!\d|\s?(?:%|ms|s\b|tok\w*/s|tps|t/s|\.\d))"
    r"|(?:上下文|(?<![\dkK万])输入|提示词?|prompt)\s?(?:长度|为|是|约)?\s?(?P<n3>\d{1,3}(?:,\d{3})+|\d+)(?!\d|\.\d)\s?(?P<k3>[kK万])?(?!\s?(?:%|ms|s\b|sec|min|hour|day|x\b|times|倍|秒|毫秒|分钟|次|tok\w*/s))",
    re.IGNORECASE,
)
# "prompts are about 12,000 tokens", "a prompt (130k tokens)", "a document of 60k tokens"
_LONG = re.compile(
    r"\b(?:prompts?|inputs?|documents?|books?|files?|histor(?:y|ies))\s?(?:(?:is|are|was|were|of|with|have|has|averag\w+|length|lengths)\s)?\(?(?:all |each |now )?(?:(?:about|around|roughly|nearly|almost|over|up to|at most|a bit over|some)\s|~\s?)?"
    + _LENGTH.format("n", "k")
    + r"\s?-?tokens?\b(?!\s?/| per\b| a second\b)",
    re.IGNORECASE,
)
# "prompts ~49K": a sign of a size stands in for the unit.
_LONG_K = re.compile(
    r"\bprompts?\s(?:(?:is|are|of)\s)?(?:about\s|around\s|~\s?)"
    + _LENGTH.format("n", "k")
    + r"(?<=[kK])(?!\w|\s?(?:prompt|request|tok\w*/s|t/s|tps))",
    re.IGNORECASE,
)
# A bare number below this is no length of a context.
FEWEST = 16
# "a batch of 100k prompts": so many, not so long.
_MANY = re.compile(
    r"\b(?:batch|set|job|corpus|list|total|all|send\w*|sent|submit\w*|process\w*|finish\w*|through|over|of the|dataset|queue|run|runs|ran)\s(?:of |the |all |about |our |through |over ){0,3}$",
    re.IGNORECASE,
)
_AT_K = re.compile(
    r"\b(?:at|to|with|past|beyond|above|after|between|and|until|from)\s(?:about |around |~)?(?P<n>\d{1,4}(?:\.\d)?)\s?(?P<k>[kK])\b(?!\s?(?:req|prompt|user|tok\w*\s?(?:/|per)|t/s|tps))",
    re.IGNORECASE,
)
_INOUT = re.compile(
    _LENGTH.format("i", "ik")
    + r"\s?(?:tokens?\s)?(?:in|input|prompt)\b\s?(?:tokens?\s?)?(?:/|and|,|\+|→|->)\s?(?:about |around |~)?(?P<o>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)\s?(?P<ok>[kK])?\s?(?:tokens?\s)?(?:out|output)\b",
    re.IGNORECASE,
)
_INOUT_ZH = re.compile(
    r"(?P<i>\d+(?:\.\d+)?)\s?(?P<ik>[kK万])?\s?(?:个?token)?的?输入[,，、和/]?\s?(?P<o>\d+(?:\.\d+)?)\s?(?P<ok>[kK万])?\s?(?:个?token)?的?输出"
)
_OUT = re.compile(
    _LENGTH.format("n", "k")
    + r"\s?-?(?:output|generated|completion|new|answer|decode) tokens?\b(?!\s?/)|\b(?:osl|(?<!max[-_ ])output(?:[-_ ]length|[-_ ]len)?|max_(?:new_)?tokens)\s?(?:of|=|:)?\s?(?P<n2>\d{1,3}(?:,\d{3})+|\d+)(?!\d|\s?(?:tok\w*/s|%|\.\d|ms))|输出(?:长度)?\s?(?P<n3>\d+)\s?(?:个)?\s?(?:token|字)",
    re.IGNORECASE,
)
_IN = re.compile(
    _LENGTH.format("n", "k")
    + r"\s?-?(?:random )?(?:input|prompt|context) tokens?\b(?!\s?/)|"
    + _LENGTH.format("n2", "k2")
    + r"\s?tokens? (?:per(?!\s?(?:s|layer|sec|seconds?|step|min|minute|hour|gpu|verif\w+|draft|pass|round|forward|rank|expert|run)\b)|in(?! (?:the |a |its )?(?:paged |gpu )?(?:kv|cache|pool))|long|of (?:prompt|input|context)|each)\b(?!\s?/)",
    re.IGNORECASE,
)
_CAPACITY = re.compile(
    r"\bmaximum concurrency for\s?$|\b(?:kv|cache|pool)\b[\w\s-]{0,20}\b(?:size|capacity|tokens?)\b[^.;,]*$",
    re.IGNORECASE,
)
_LENGTHS = (
    (_OUT, "output_tokens"),
    (_IN, "prompt_tokens"),
    (_LONG, "context"),
    (_LONG_K, "context"),
    (_CONTEXT, "context"),
    (_AT_K, "context"),
)


def number(text: str | None, kilo: str | None = None) -> float:
    """``"2,000"`` → 2000; a ``K`` counts 1,024 for powers of two below 1,024 (context sizes) and 1,000 otherwise."""
    value = float((text or "0").replace(",", "") or 0)
    if not kilo:
        return value
    if kilo == "万":
        return value * 1e4
    power = value.is_integer() and 0 < value < 1024 and int(value) & (int(value) - 1) == 0
    return value * (1024 if power else 1000)


def lengths(text: str) -> Iterator[tuple[str, int, int, float]]:
    """``(kind, start, stop, tokens)`` of every length told in a sentence whose names are blanked out."""
    for found in (*_INOUT.finditer(text), *_INOUT_ZH.finditer(text)):
        stop = max(found.end("i"), found.end("ik"))
        yield "prompt_tokens", found.start("i"), stop, number(found["i"], found["ik"])
        yield "output_tokens", found.start("o"), found.end(), number(found["o"], found["ok"])
    for pattern, kind in _LENGTHS:
        for found in pattern.finditer(text):
            key = next((name for name in ("n", "n2", "n3") if found.groupdict().get(name)), "n")
            if _CAPACITY.search(text[max(0, found.start() - 60) : found.start()]):
                continue
            what = (found.groupdict().get("what") or "").lower()
            if what.startswith(("prompt", "input", "prefix", "prefill", "cold", "warm")) and not (
                found["k"] or found["tok"]
            ):
                continue
            plural = what in ("prompts", "inputs") and not found["tok"] and found["join"] != "-"
            if plural and _MANY.search(text[max(0, found.start() - 32) : found.start()]):
                continue
            kilo = found.groupdict().get("k" + key[1:])
            start = found.start("n") if pattern in (_AT_K, _LONG, _LONG_K) else found.start()
            # "Prompt 2", "1 sequence": an ordinal or a count.
            if kind == "context" and not (kilo or found.groupdict().get("tok")) and number(found[key]) < FEWEST:
                continue
            yield kind, start, found.end(), number(found[key], kilo)
