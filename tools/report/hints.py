"""Kinds of difference a text speaks of: a release, a feature, a path, a count of GPUs, time …"""

from __future__ import annotations

import re
from functools import lru_cache

from tools.report import conditions, lexicon

# An arrow between two figures of one unit, and new hardware, are no change of a release.
_NO_RELEASE = re.compile(
    r"\d+(?:\.\d+)?\s?(?:→|->|=>)\s?\d+(?:\.\d+)?\s?(?:[a-zA-Zµ]+/[a-zA-Z]+|ms|s|%|GB|GiB|tps)(?![a-zA-Z])"
    r"|\bupgrad\w+ (?:(?:the|our|my|its|from|to) ){0,2}(?:\w+ )?(?:cpus?|gpus?|ram|memory|hardware|host|machine|cards?|processor|disks?|ssd|nic|psu)\b"
    r"|\b(?:cpus?|gpus?|ram|hardware|host|machine|cards?|processor|disks?|ssd|nic|psu) (?:was|were|is|got|has been|have been|being) upgraded\b",
    re.IGNORECASE,
)


# An upgrade of what the engine stands on.
_PACKAGE = re.compile(
    r"\b(?:upgrad|updat)\w+ (?:(?:the|our|my|nvidia|gpu|to|from) ){0,3}(?:drivers?|cuda|cudnn|nccl|py?torch|triton|flash-?infer|flash-?attn|deep-?gemm|transformers|kernel)\b"
    r"|\b(?:drivers?|cuda|nccl|py?torch|triton|flash-?infer) (?:was |were |got |has been )?(?:upgraded|updated|upgrade|update)\b|升级(?:了)?\s?(?:驱动|CUDA)",
    re.IGNORECASE,
)


@lru_cache(maxsize=256)
def cues(text: str) -> tuple[str, ...]:
    """Kinds of difference a text speaks of, most specific first."""
    out = []
    plain = _NO_RELEASE.sub(" ", text)
    if _PACKAGE.search(plain):
        out.append("dependency")
        plain = _PACKAGE.sub(" ", plain)
    if lexicon.cue("headline.upgrade").search(plain):
        out.append("version_upgrade")
    if any(mark.on is False for mark in conditions.feature_marks(text)) or re.search(
        r"\b(?:with and without|with(?:out)? vs\.?|on vs\.? off)\b", text, re.I
    ):
        out.append("feature_on_off")
    if lexicon.cue("headline.route").search(text) and (
        lexicon.cue("headline.direct").search(text)
        or re.search(r"\b(?:through|behind|via|only)\b|经过|通过", text, re.I)
    ):
        out.append("route")
    if re.search(
        r"\b(?:gpus?(?! (?:util|mem|usage|load|clock))|cards?|tp|tensor[- ]parallel\w*)\b.{0,40}\b(?:gpus?(?! (?:util|mem|usage|load|clock))|cards?|tp"
        r"|(?:one|single|two|more)(?! (?!gpus?|cards?|of|is|was|alone|only|does|did|it|and|or|the)[a-z]))\b|[单双两多]卡",
        text,
        re.IGNORECASE,
    ):
        out.append("gpu_count")
    if re.search(
        r"\b(?:after|for|over|within|several|few|couple of|some|\d+)\s(?:\w+\s)?(?:hours?|days?)\b|\bwithin\s(?:\S+\s){0,2}(?:minutes?|hours?|days?)\b|\b(?:overnight|uptime|restart(?:ing|ed)?|reboot)\b"
        r"|重启|运行(?:一段时间|几)",
        text,
        re.IGNORECASE,
    ):
        out.append("time")
    if re.search(r"\b(?:first|second|cold|warm)\s(?:\w+\s)?(?:run|request|pass|call|start)", text, re.IGNORECASE):
        out.append("run_order")
    if re.search(
        r"\b(?:when|as soon as|while|once|whenever)\b.{0,60}\b(?:arriv\w+|joins?|comes? in|starts?|others?|second|another|new (?:requests?|users?))\b",
        text,
        re.IGNORECASE,
    ):
        out.append("other_load")
    return tuple(out)
