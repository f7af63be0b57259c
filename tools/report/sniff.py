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
