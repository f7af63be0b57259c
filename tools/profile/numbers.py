"""Numbers as tables print them: thousands marks and decimal signs of any locale, units in headers or in cells."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

TIME_NS = {
    "ns": 1.0, "nsec": 1.0, "nanoseconds": 1.0,
    "us": 1e3, "usec": 1e3, "μs": 1e3, "µs": 1e3,
    "ms": 1e6, "msec": 1e6, "milliseconds": 1e6,
    "s": 1e9, "sec": 1e9, "seconds": 1e9,
    "min": 6e10, "m": 6e10,
}  # fmt: skip
SIZE_BYTES = {"b": 1.0, "byte": 1.0, "bytes": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1024.0, "mib": 1048576.0,
              "gib": 1073741824.0}  # fmt: skip
_SPACES = "\u00a0\u202f\u2009\u2007"
_THOUSANDS = re.compile(rf"[’'_{_SPACES}]|(?<=\d) (?=\d{{3}}(?:\D|$))")
_NUMBER = re.compile(rf"[-+]?\d[\d.,’'_{_SPACES}]*(?:[eE][-+]?\d+)?$")
_CELL_UNIT = re.compile(r"([-+]?[\d.,]+(?:[eE][-+]?\d+)?)\s*([a-zA-Zµμ]+)$")


def looks_numeric(text: str) -> bool:
    """Whether a cell can be a number in some locale."""
    return bool(_NUMBER.match(text.strip(" ")))


def decimal_sign(cells: Iterable[str]) -> str:
    """``,`` or ``.``: the decimal sign of a table, judged from all of its numeric cells.

    A sign that repeats in a cell, or is followed by exactly three digits everywhere, separates thousands. With both
    signs in one cell the later one is the decimal sign.
    """
    votes = {",": 0, ".": 0}
    for raw in cells:
        text = raw.strip(" %")
        comma, dot = text.rfind(","), text.rfind(".")
        if comma >= 0 and dot >= 0:
            votes["," if comma > dot else "."] += 4
        elif comma >= 0 or dot >= 0:
            sign, at = (",", comma) if comma >= 0 else (".", dot)
            after = len(text) - at - 1
            if text.count(sign) > 1:
                votes["." if sign == "," else ","] += 3
            elif after != 3:
                votes[sign] += 2
    return "," if votes[","] > votes["."] else "."


def number(text: str, decimal: str = ".") -> float | None:
    """The number in a cell, ``None`` when it holds none (``N/A``, ``-``, text). Never raises."""
    body = _THOUSANDS.sub("", text.strip(" %\t"))
    if decimal == ",":
        body = body.replace(".", "").replace(",", ".")
    else:
        body = body.replace(",", "")
    try:
        value = float(body)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def header_unit(header: str) -> str:
    """``Total Time (ns)`` → ``ns``; empty without a unit."""
    found = re.search(r"[(\[]([^)\]]+)[)\]]\s*$", header)
    return found[1].strip().lower() if found else ""


def duration_ns(text: str) -> float | None:
    """``2.193ms`` → 2193000.0; a bare number is not a duration."""
    found = _CELL_UNIT.match(text.strip())
    if not found:
        return None
    scale, value = TIME_NS.get(found[2].lower()), number(found[1])
    return value * scale if scale is not None and value is not None else None
