"""Text of logs, prompts, names and chat on its way to a model or a screen: data, fenced, capped, cleaned."""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef]"
)
_ANSI = re.compile(
    r"\x1b\[[0-9;?]{0,64}[ -/]{0,8}[@-~]|\x9b[0-9;?]{0,64}[ -/]{0,8}[@-~]|\x1b[\]PX^_][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|\x1b."
)
# Cyrillic and Greek letters that look Latin, folded only in words that also hold Latin letters.
_ALIKE = str.maketrans(
    "аВвеЕКкМНоОрРсСТуХхАіІјЅѕЈԁһԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧανορτυχ", "aBbeEKkMHoOpPcCTyXxAiIjSsJdhqwABEZHIKMNOPTYXavoptux"
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_OTHER = re.compile(r"[\u0370-\u03ff\u0400-\u052f]")
CAP = 4000


def _fold(match: re.Match[str]) -> str:
    word = match.group(0)
    if not _OTHER.search(word):
        return word
    folded = word.translate(_ALIKE)
    return word if _OTHER.search(folded) else folded


def clean(text: str, cap: int = CAP) -> str:
    """No control or invisible characters, no escape sequences, look-alike letters folded, length bounded."""
    text = _ANSI.sub("", text[: cap * 4])
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    text = _WORD.sub(_fold, text)
    text = "".join(c if c in "\n\t" or c.isprintable() else " " for c in text)
    return text if len(text) <= cap else text[:cap] + " …(cut)"


def fence(text: str, label: str, cap: int = CAP) -> str:
    """Quoted data block. The fence cannot be closed from inside: its marker is removed from the text."""
    body = clean(text, cap).replace("<<<", "‹‹‹").replace(">>>", "›››")
    return f"<<<DATA {label}\n{body}\nDATA>>>"
