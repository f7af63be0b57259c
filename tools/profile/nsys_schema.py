"""What kind of database a file is, and how its rows name the GPU."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable

DEV_BITS = 5
Columns = Callable[[str], set[str]]


def refusal(tables: Iterable[str]) -> tuple[str, str]:
    """For a database that is no nsys export: what it is, and what to do."""
    have = set(tables)
    if "StringTable" in have or "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL" in have:
        return "an nvprof database, not an nsys export", "profile with nsys and export with --type sqlite"
    if any(table.startswith("rocpd_") for table in have):
        return "a rocprofiler database, not an nsys export", "export a Chrome trace (rocprofv3 --output-format pftrace)"
    seen = ", ".join(sorted(have)[:4]) or "no tables"
    return f"a SQLite file without any CUDA tables ({seen})", "export the report with nsys export --type sqlite"


def device_name(db: sqlite3.Connection, columns: Columns) -> str:
    """Product name of the first GPU; empty when the export does not hold it."""
    if not {"id", "name"} <= columns("TARGET_INFO_GPU"):
        return ""
    row = db.execute("SELECT name FROM TARGET_INFO_GPU ORDER BY id").fetchone()
    return str(row[0]) if row and row[0] else ""


def slot_expression(db: sqlite3.Connection, columns: Columns) -> str:
    """SQL for a GPU number of :data:`DEV_BITS` bits.

    ``deviceId`` counts per process: where two processes call different GPUs zero, the process decides
    (``globalPid`` holds it in bits 24–47).
    """
    plain = f"(deviceId & {(1 << DEV_BITS) - 1})"
    if not {"gpuId", "cudaId", "pid"} <= columns("TARGET_INFO_CUDA_DEVICE"):
        return plain
    found = db.execute("SELECT DISTINCT pid, cudaId, gpuId FROM TARGET_INFO_CUDA_DEVICE").fetchall()
    rows = [row for row in found if all(isinstance(value, int) for value in row)]
    by_cuda: dict[int, set[int]] = {}
    for _, cuda, gpu in rows:
        by_cuda.setdefault(cuda, set()).add(gpu)
    if "globalPid" not in columns("CUPTI_ACTIVITY_KIND_KERNEL") or all(len(gpus) < 2 for gpus in by_cuda.values()):
        return plain
    cases = " ".join(
        f"WHEN {pid * 64 + cuda} THEN {gpu & 31}" for pid, cuda, gpu in rows if 0 <= pid < 1 << 24 and 0 <= cuda < 64
    )
    return f"(CASE ((globalPid >> 24) & 16777215) * 64 + deviceId {cases} ELSE {plain} END)"
