"""Nsight Compute details (``ncu --csv --page details``): how close one kernel comes to the hardware's peaks."""

from __future__ import annotations

from tools.contract import Problem
from tools.part import Part
from tools.profile.model import Ncu, Profile
from tools.profile.numbers import number
from tools.profile.tables import Head, Row, items

_WANTED = {
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "dram_pct",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": "dram_pct",
    "dram throughput": "dram_pct",
    "memory throughput": "memory_pct",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": "memory_pct",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "sm_pct",
    "compute (sm) throughput": "sm_pct",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy_pct",
    "achieved occupancy": "occupancy_pct",
    "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active": "tensor_pct",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": "tensor_pct",
}


def read_ncu(part: Part) -> Profile:
    """Percent-of-peak metrics per kernel; a metric that ncu printed as ``n/a`` is missing, not zero."""
    profile = Profile(ref=part.name, kind="ncu")
    at: dict[str, int] = {}
    kernels: dict[tuple[str, str], Ncu] = {}
    for item in items(part.lines()):
        if isinstance(item, Head):
            at = {title.lower(): index for index, title in enumerate(item.columns)}
            profile.lines.setdefault("ncu", item.line)
        elif isinstance(item, Row) and {"kernel name", "metric name", "metric value"} <= set(at):
            _take(item.cells, at, kernels)
    profile.ncu = [row for row in kernels.values() if row.metrics]
    if kernels and not profile.ncu:
        profile.problems.append(
            Problem(ref=part.name, what="an ncu report without throughput metrics", do="collect with ncu --set full")
        )
    return profile


def _take(cells: list[str], at: dict[str, int], kernels: dict[tuple[str, str], Ncu]) -> None:
    def cell(key: str) -> str:
        index = at.get(key, -1)
        return cells[index] if 0 <= index < len(cells) else ""

    key = (cell("id"), cell("kernel name"))
    row = kernels.setdefault(key, Ncu(key[1]))
    wanted = _WANTED.get(cell("metric name").lower())
    value = number(cell("metric value"))
    if wanted and value is not None and cell("metric unit") in ("%", ""):
        row.metrics[wanted] = value
