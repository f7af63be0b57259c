"""Engine versions and ranges such as ``>=0.8,<0.11``."""

from __future__ import annotations

import re

_PART = re.compile(r"^\s*(>=|<=|==|!=|>|<)?\s*v?([0-9][0-9a-z.+]*)\s*$")


def parse_version(text: str) -> tuple[int, ...] | None:
    """``v0.20.2rc1+cu129`` → ``(0, 20, 2)``; ``None`` when no number is there."""
    found = re.match(r"^\s*v?(\d+(?:\.\d+)*)", text or "")
    return tuple(int(part) for part in found[1].split(".")) if found else None


def _cmp(left: tuple[int, ...], right: tuple[int, ...]) -> int:
    size = max(len(left), len(right))
    a, b = left + (0,) * (size - len(left)), right + (0,) * (size - len(right))
    return (a > b) - (a < b)


def holds(spec: str, version: str | None) -> bool | None:
    """Whether ``version`` lies in ``spec``; ``None`` when the version is unknown. An empty spec holds always.

    ``==0.8`` means any 0.8.x. Raises ``ValueError`` on a malformed spec.
    """
    if not spec or spec == "*":
        return True
    parsed = parse_version(version) if version else None
    result: bool | None = True
    for part in spec.split(","):
        found = _PART.match(part)
        if not found:
            raise ValueError(f"cannot read version range {spec!r}")
        wanted = parse_version(found[2])
        if parsed is None or wanted is None:
            result = None
            continue
        order = _cmp(parsed, wanted)
        oper = found[1] or "=="
        if oper in ("==", "!="):
            same = parsed[: len(wanted)] == wanted
            okay = same if oper == "==" else not same
        else:
            okay = {">=": order >= 0, "<=": order <= 0, ">": order > 0, "<": order < 0}[oper]
        if not okay:
            return False
    return result
