"""Direction of a copy by the names that nsys, kineto and rocprof give it."""

from __future__ import annotations

import re

_RULES = (
    ("set", re.compile(r"memset", re.I)),
    ("p2p", re.compile(r"\bp(?:eer)?[\s-]*to[\s-]*p(?:eer)?\b|ptop|device\d+\s*->\s*device", re.I)),
    ("h2d", re.compile(r"h(?:ost)?[\s-]*to[\s-]*d(?:evice)?\b|htod|host\s*->\s*device", re.I)),
    ("d2h", re.compile(r"d(?:evice)?[\s-]*to[\s-]*h(?:ost)?\b|dtoh|device\s*->\s*host", re.I)),
    ("d2d", re.compile(r"d(?:evice)?[\s-]*to[\s-]*d(?:evice)?\b|dtod|device\s*->\s*device", re.I)),
    ("h2h", re.compile(r"h(?:ost)?[\s-]*to[\s-]*h(?:ost)?\b|htoh", re.I)),
)


def copy_kind(name: str) -> str:
    """h2d, d2h, d2d, p2p, h2h, set or other."""
    return next((kind for kind, pattern in _RULES if pattern.search(name)), "other")
