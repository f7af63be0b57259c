"""Text of logs, prompts, names and chat on its way to a model or a screen: data, fenced, capped, cleaned."""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.")
CAP = 4000


def clean(text: str, cap: int = CAP) -> str:
    """No control or invisible characters, no escape sequences, look-alike letters folded, length bounded."""
    text = _ANSI.sub("", text[: cap * 4])
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    text = "".join(c if c in "\n\t" or c.isprintable() else " " for c in text)
    return text if len(text) <= cap else text[:cap] + " …(cut)"


def fence(text: str, label: str, cap: int = CAP) -> str:
    """Quoted data block. The fence cannot be closed from inside: its marker is removed from the text."""
    body = clean(text, cap).replace("<<<", "‹‹‹").replace(">>>", "›››")
    return f"<<<DATA {label}\n{body}\nDATA>>>"
