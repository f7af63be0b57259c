"""Which families the words of a report resemble, and how much they read as if nothing were wrong, as readings.

A lead for ordering, never a proof.
"""

from __future__ import annotations

import re

from tools.contract import Reading, Source
from tools.part import Part
from tools.report.likeness import BENIGN, shares, weight, words

MAX_CHARS = 6000
MAX_PARTS = 24
TOP = 6
# A line of complaint resembles many cards by accident; below this many words a share counts in proportion.
ENOUGH = 30
LEAST = 8
# Keys and help texts of a format are nobody's words.
# Flags and program names resemble the card of whatever they belong to; so do a printed environment and a form's boxes.
_COMMAND = re.compile(
    r"^\s{0,8}(?:[$>#]\s?)?(?:(?:export )?[A-Z][A-Z0-9_]{2,40}=\S+\s{1,4}){0,12}(?:sudo )?"
    r"(?:vllm (?:serve|bench)|python3?\s+(?:-m|\S+\.py)|docker\s+run|sglang\s|lmdeploy\s+serve|trtllm-serve)"
    r"|^\s{0,12}--[a-z][\w-]+(?:[ =]\S+)?\s*\\?$|\b(?:Namespace|ServerArgs|EngineArgs)\(|^\s*-\s*\[[ xX]\]\s"
    r"|^\s*\"[\w.-]+\"\s*:|^(?:PyTorch version|Is debug build|CUDA (?:used|runtime|available)|Is CUDA|ROCM used|OS|GCC version|Clang|CMake"
    r"|Libc|Python (?:version|platform)|GPU models|Nvidia driver|cuDNN|HIP runtime|MIOpen|Is XNNPACK|CPU op-mode|Address sizes"
    r"|Byte Order|On-line CPU|Vendor ID|Model name|CPU family|Thread\(s\)|Core\(s\)|Socket\(s\)|Stepping|BogoMIPS|Flags|L[123]\w? cache"
    r"|NUMA node\w*|Vulnerability \w+|\[(?:pip3|conda)\])\b[^\n]{0,40}:?"
)
# "No preemption, no OOM": what is denied is not what the report is about.
_DENIED = re.compile(
    r"\b(?:no|not a single|zero|without any|never any)\s(?:\w+[ -]){0,3}\w+(?=[,.;:\n]|$| and | or )", re.I
)
_DATA = (".json", ".jsonl", ".csv", ".prom", ".sqlite")


def readings(parts: list[Part]) -> list[Reading]:
    """The best families for the words of all text parts together, each with the line that speaks for it most."""
    lines: list[tuple[str, int, str]] = []
    for part in [p for p in parts if not p.name.lower().endswith(_DATA)][:MAX_PARTS]:
        left = MAX_CHARS
        for number, line in part.lines(limit=400):
            left -= len(line)
            if left < 0:
                break
            if not _COMMAND.search(line):
                lines.append((part.name, number, line[:600]))
    text = _DENIED.sub(" ", "\n".join(line for _, _, line in lines))
    count = words(text, ENOUGH)
    if count < LEAST:
        return []
    scale = count / ENOUGH
    every = shares(text)
    found = [row for row in every if not row[0].startswith(BENIGN)]
    out = [
        _reading(
            "words.resemble", share * scale, lines, family, f"share of the likeness to what is told of {family}, place {rank}",
            {"family": family, "rank": str(rank)},
        )
        for rank, (family, share) in enumerate(found[:TOP], 1)
    ]  # fmt: skip
    calm = [row for row in every if row[0].startswith(BENIGN)]
    if calm:
        name = calm[0][0]
        method = "share of the likeness to questions, expected behaviour and limits, most to " + name.removeprefix(
            BENIGN
        )
        labels = {"like": name.removeprefix(BENIGN)}
        out.append(_reading("words.calm", sum(share for _, share in calm) * scale, lines, name, method, labels))
    return out


def _reading(
    fact: str, value: float, lines: list[tuple[str, int, str]], name: str, method: str, labels: dict[str, str]
) -> Reading:
    """A share with the line that speaks most for ``name``."""
    ref, number, span = max(lines, key=lambda row: (weight(row[2], name), -len(row[2])))
    return Reading(
        fact=fact,
        value=round(value, 4),
        source=Source(kind="words", ref=ref, line=number, span=span.strip()[:200]),
        method=method,
        labels=labels,
        caveats=("likeness of words is a lead, not evidence of a cause",),
    )
