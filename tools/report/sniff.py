"""How sure a text is to be a person's report. Prose is what nothing else claims, so the score is low on purpose."""

from __future__ import annotations

import re

_WORDS = re.compile(r"[A-Za-z]{2,}(?: [a-z']{1,14}){3}|[\u3400-\u9fff]{6}")


def sniff(name: str, head: str) -> float:
    """0.3 for running text and for ``.md``/``.txt`` names with letters in them, 0 for the rest."""
    if not head.strip() or "\x00" in head[:4096]:
        return 0.0
    if _WORDS.search(head[:8192]):
        return 0.3
    return 0.3 if re.search(r"(?i)\.(?:md|markdown|txt|rst)$", name) and re.search(r"[^\W\d_]", head[:4096]) else 0.0


_LOOSE = re.compile(r"(?i)\.(?:md|markdown|txt|rst)$|^[^.]*$")
_MARKDOWN = re.compile(r"(?i)\.(?:md|markdown)$")
_FENCED = re.compile(r"^\s{0,3}(?:`{3,}|~{3,})[^\n]*\n.*?^\s{0,3}(?:`{3,}|~{3,})\s*$", re.M | re.S)
_HEADING = re.compile(r"^#{1,4} [^\n]*[A-Za-z]{3,}[^\n]* [^\n]*$", re.M)
_SENTENCE = re.compile(
    r"^(?![A-Z]{2,}[ :]|\S+[=:]\S*\s|.{0,60}\.py:\d)[^\n]{0,40}?\b[A-Za-z][a-z']+(?:,? [a-z][a-z'-]*){3}[^\n]*$|[\u3400-\u9fff]{8,}",
    re.M,
)


def written(name: str, head: str) -> bool:
    """Whether a person wrote this around what a tool printed: then it is a report, and the print-outs are parts of it.

    A heading, a fence or two lines of running text outside of fences; of a ``.txt``, a fence and such lines.
    """
    if not _LOOSE.search(name.rsplit("/", 1)[-1]):
        return False
    outside = _FENCED.sub("\n", head[:65536])
    lines = sum(1 for _, _ in zip(range(2), _SENTENCE.finditer(outside), strict=False))
    fenced = len(outside) < len(head[:65536])
    if _MARKDOWN.search(name):
        return lines >= 1 and (fenced or lines >= 2 or _HEADING.search(outside) is not None)
    return fenced and lines >= 1
