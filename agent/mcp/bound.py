"""Results of bounded size, with nothing in them that could steer a terminal or carry a key out."""

from __future__ import annotations

import json
import math
from typing import Any

from agent.untrusted import clean
from tools.mask import Masker

# A token of compact JSON or English is about four characters; 3.5 errs on the safe side.
CHARS_A_TOKEN = 3.5


def rough_tokens(text: str) -> int:
    """Upper estimate of the tokens of a text."""
    return int(len(text.encode()) / CHARS_A_TOKEN) + 1


def dumps(data: Any) -> str:
    """Compact JSON."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def without_keys(text: str) -> str:
    """The text with keys and tokens masked; addresses and names stay, as the reader needs them."""
    masker = Masker()
    out = masker.mask(text)
    for name, original in reversed(masker.table.items()):
        if not name.startswith("<key"):
            out = out.replace(name, original)
    return out


def short(text: str, cap: int = 240) -> str:
    """One cleaned line of at most ``cap`` characters, keys masked."""
    return clean(" ".join(without_keys(text[: cap * 4]).split()), cap)


def tidy(value: Any, cap: int = 240) -> Any:
    """All strings of plain data through :func:`short`; non-finite numbers become text, as JSON has none."""
    if isinstance(value, str):
        return short(value, cap)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {short(str(k), 120): tidy(v, cap) for k, v in list(value.items())[:60]}
    if isinstance(value, (list, tuple)):
        return [tidy(v, cap) for v in value[:60]]
    return value


def fit(data: dict[str, Any], room: int) -> dict[str, Any]:
    """``data`` in at most ``room`` rough tokens: the longest lists lose their tails, then the longest texts.

    What was left out is counted in ``cut`` (list name → items left out). The first item of a list stays.
    """
    cut: dict[str, int] = {}
    while rough_tokens(dumps(data)) > room:
        lists = [(len(dumps(v)), k) for k, v in data.items() if isinstance(v, list) and len(v) > 1]
        if lists:
            key = max(lists)[1]
            drop = max(1, len(data[key]) // 8)
            data[key] = data[key][:-drop]
            cut[key] = cut.get(key, 0) + drop
            data["cut"] = cut
            continue
        texts = [(len(v), k) for k, v in data.items() if isinstance(v, str) and len(v) > 200]
        rows = [(len(v), row, k) for rows in data.values() if isinstance(rows, list) for row in rows
                if isinstance(row, dict) for k, v in row.items() if isinstance(v, str) and len(v) > 200]  # fmt: skip
        if texts:
            key = max(texts)[1]
            data[key] = data[key][: len(data[key]) * 2 // 3].rstrip() + " …(cut)"
        elif rows:
            _, row, key = max(rows, key=lambda r: r[0])
            row[key] = row[key][: len(row[key]) * 2 // 3].rstrip() + " …(cut)"
        else:
            break
    return data
