"""Who ends the longest gaps: did the host call the launch only after the GPU had run dry?

The correlation id of the kernel after a gap names the API call that launched it. Neither table is indexed by it, so
the call is found by bisecting the runtime table by row id (rows come in order of time) and looking a little around.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from tools.profile.model import Span
from tools.profile.sqlite_columns import DAMAGE

_SAMPLE = 60
_AROUND = 64
_TRIES = 48
_WORK = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
_R = "CUPTI_ACTIVITY_KIND_RUNTIME"


def host_late(
    db: sqlite3.Connection,
    columns: Callable[[str], set[str]],
    span: Span,
    longest: list[tuple[float, float]],
) -> None:
    """Fill ``span.gaps.host_late``: share of the sampled gap time in which the launch call began inside the gap.

    Sampled are the longest gaps below one second. Left ``None`` when fewer than three launches could be found.
    """
    tables = [table for table in _WORK if {"start", "correlationId"} <= columns(table)]
    if not tables or not {"start", "correlationId"} <= columns(_R):
        return
    late = total = 0.0
    found = 0
    try:
        for length, end in [g for g in longest if g[0] < 1e9][-_SAMPLE:]:
            call = next((c for c in (_launch_start(db, t, int(end)) for t in tables) if c is not None), None)
            if call is None:
                continue
            found += 1
            total += length
            if call >= end - length:
                late += length
    except DAMAGE:
        return
    if found >= 3 and total > 0:
        span.gaps.host_late = late / total
        span.gaps.host_late_n = found


def _launch_start(db: sqlite3.Connection, table: str, start: int) -> int | None:
    row = _near(db, table, start)
    if row is None:
        return None
    at = db.execute(
        f"SELECT correlationId FROM {table} WHERE rowid BETWEEN ? AND ? AND start = ? LIMIT 1",
        (row - _AROUND, row + _AROUND, start),
    ).fetchone()
    if not at or not isinstance(at[0], int):
        return None
    near = _near(db, _R, start)
    if near is None:
        return None
    call = db.execute(
        f"SELECT start FROM {_R} WHERE rowid BETWEEN ? AND ? AND correlationId = ? LIMIT 1",
        (near - 40 * _AROUND, near + _AROUND, at[0]),
    ).fetchone()
    return call[0] if call and isinstance(call[0], int) else None


def _near(db: sqlite3.Connection, table: str, start: int) -> int | None:
    """Row id at which ``start`` would stand in a table ordered by time."""
    # one aggregate a query: SQLite answers a lone MIN or MAX from the tree's edge, and both together by a scan
    low = db.execute(f"SELECT MIN(rowid) FROM {table}").fetchone()[0]
    high = db.execute(f"SELECT MAX(rowid) FROM {table}").fetchone()[0]
    if low is None:
        return None
    for _ in range(_TRIES):
        if low >= high:
            break
        middle = (low + high + 1) // 2
        row = db.execute(
            f"SELECT rowid, start FROM {table} WHERE rowid <= ? ORDER BY rowid DESC LIMIT 1", (middle,)
        ).fetchone()
        if row is None or not isinstance(row[1], int):
            return None
        if row[1] <= start:
            low = middle
        else:
            high = row[0] - 1
    return int(low)
