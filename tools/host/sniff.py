"""Is this a table of processes with CPU shares (pidstat, top, ps) or per-CPU lines (mpstat)?"""

from __future__ import annotations

import re

_PROC = re.compile(r"^\s*(?:#\s*)?(?:process|USER|PID|UID|Time|Linux|top -).*%CPU.*$", re.M | re.I)
_CPU = re.compile(r"^cpu\d+\s+usr=", re.M)


def sniff(name: str, head: str) -> float:
    """0..1: how sure this is a host CPU table."""
    score = 0.0
    if _PROC.search(head):
        score = 0.85
    if _CPU.search(head):
        score = max(score, 0.9)
    return score
