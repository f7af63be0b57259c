"""Both languages everywhere: each sentence a person reads stands in English and Chinese."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from knowledge.lint_base import Book
from knowledge.schema import Text

# Fields of type ``Text | str``: a plain string there has no Chinese.
_SENTENCES = ("says", "gain", "cost", "risk", "if_true", "if_false", "will_not_help")
# Words to search by, never shown.
_SEARCHED = frozenset({"told"})
# Words that renderers translate themselves.
_WORDS = frozenset({"", "none", "low", "medium", "moderate", "high"})


def check(book: Book) -> None:
    """Findings for texts without Chinese, and for English sentences that hold Chinese."""
    for kind in ("facts", "rules", "families", "pages"):
        for key, record in getattr(book, kind).items():
            for place, text in _walk(record, ""):
                what = _wrong(text)
                if what:
                    book.add(kind, key, f"{place}: {what}", "write it as {en: …, zh: …}")


def _wrong(text: Text | str) -> str:
    if isinstance(text, str):
        return "" if text.strip().lower() in _WORDS else f"no Chinese for {text[:50]!r}"
    if not text.en.strip():
        return "the English text is empty"
    if not text.zh.strip():
        return f"no Chinese for {text.en[:50]!r}"
    if has_cjk(text.en):
        return "the English text holds Chinese"
    return ""


def has_cjk(text: str) -> bool:
    """Whether a text holds Chinese characters."""
    return any("\u4e00" <= char <= "\u9fff" for char in text)


def _walk(value: Any, place: str) -> Iterator[tuple[str, Text | str]]:
    if isinstance(value, Text):
        yield place, value
    elif isinstance(value, Struct):
        cost_is_a_word = type(value).__name__ in ("Probe", "Get")
        for name in value.__struct_fields__:
            if name in _SEARCHED:
                continue
            inner = getattr(value, name)
            if isinstance(inner, str):
                if name in _SENTENCES and not (cost_is_a_word and name in ("cost", "risk")):
                    yield f"{place}.{name}".lstrip("."), inner
            else:
                yield from _walk(inner, f"{place}.{name}".lstrip("."))
    elif isinstance(value, (list, tuple)):
        for number, inner in enumerate(value):
            here = f"{place}[{number}]"
            if isinstance(inner, str):
                if place.rsplit(".", 1)[-1] in _SENTENCES:
                    yield here, inner
            else:
                yield from _walk(inner, here)
