"""Cells that GPU tools print: numbers with units, and the many ways of saying that there is none."""

from __future__ import annotations

import math
import re

from msgspec import Struct

_NUMBER = re.compile(r"^([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*([^\d\s].*)?$")
_ABSENT = re.compile(
    r"^\[?(?:n/?a|not supported|not available|none|unknown|-+|requested functionality has been deprecated"
    r"|deprecated.*|insufficient permissions|not applicable)\]?$",
    re.I,
)
_RESET = re.compile(r"gpu requires reset|requires? (?:a )?reset|reset required", re.I)
_ERROR = re.compile(r"\berr!|unknown error|gpu is lost|fallen off the bus|\[?error\b", re.I)

# Values that NVML and DCGM use for "blank" instead of a number (dcgm_structs.h: DCGM_*_BLANK and its neighbours).
_BLANK_INT64 = 0x7FFFFFFFFFFFFFF0
_BLANK_INT32 = range(0x7FFFFFF0, 0x80000000)
_BLANK_FP64 = range(140737488355328, 140737488355344)

SCALE = {
    "ghz": 1000.0,
    "khz": 0.001,
    "hz": 1e-6,
    "gib": 1024.0,
    "kib": 1 / 1024.0,
    "b": 1 / 1048576.0,
    "mw": 0.001,
    "kw": 1000.0,
}


class Cell(Struct, frozen=True):
    """``value`` when there is a number; ``fault`` is ``reset``, ``error`` or empty; ``text`` as printed."""

    text: str
    value: float | None = None
    unit: str = ""
    fault: str = ""

    @property
    def absent(self) -> bool:
        """Neither a number nor a word with a meaning."""
        return self.value is None and (not self.text or bool(_ABSENT.match(self.text)))


def cell(text: str) -> Cell:
    """Read one cell. ``[N/A]`` is absent, ``ERR!`` and ``[GPU requires reset]`` are faults; nothing becomes zero."""
    body = text.strip().strip('"')
    if _RESET.search(body):
        return Cell(body, fault="reset")
    if _ERROR.search(body):
        return Cell(body, fault="error")
    if body.lower().startswith("0x"):
        try:
            return Cell(body, value=float(int(body, 16)), unit="hex")
        except ValueError:
            return Cell(body)
    found = _NUMBER.match(body)
    if found:
        value = float(found[1])
        if not is_blank(value):
            return Cell(body, value=value, unit=(found[2] or "").strip())
        return Cell("")
    return Cell(body)


def is_blank(value: float) -> bool:
    """Whether a number is one of the placeholders for "no value"."""
    if not math.isfinite(value):
        return True
    if value >= _BLANK_INT64 * 0.999999999:
        return True
    return value.is_integer() and (int(value) in _BLANK_INT32 or int(value) in _BLANK_FP64)


def in_unit(found: Cell, wanted: str) -> float | None:
    """The number in MHz, MiB, W or as it stands; scaled when the cell states another unit of the same kind."""
    if found.value is None:
        return None
    unit = found.unit.lower().strip("[]() ")
    if unit == wanted.lower() or not unit or unit in ("%", "c", "w", "mhz", "mib", "us", "kb/s"):
        return found.value
    return found.value * SCALE.get(unit, 1.0)


def flag(found: Cell) -> bool | None:
    """Yes/Active/Enabled/1 → True, No/Not Active/Disabled/0 → False, else ``None``."""
    word = found.text.lower()
    if word in ("yes", "active", "enabled", "on", "true"):
        return True
    if word in ("no", "not active", "disabled", "off", "false", "inactive"):
        return False
    if found.value is not None and found.unit in ("", "hex"):
        return found.value != 0
    return None
