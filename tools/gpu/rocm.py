"""AMD: the concise table of ``rocm-smi``, and ``amd-smi`` as CSV or as an indented tree."""

from __future__ import annotations

import re

from tools.cells import cells as cells_of
from tools.contract import Problem
from tools.gpu.cells import cell
from tools.gpu.state import Gpu, Machine
from tools.part import Part

_ROW = re.compile(r"^(\d+)\s+(?:\d+\s+)?(?:\[.*?\]|0x[0-9a-f]+,?)\s*")
_NAME = re.compile(r"^\s+((?:AMD|Instinct|Radeon|MI\d).*\S)\s*$")
_TREE_GPU = re.compile(r"^\s*GPU:\s*(\d+)\s*$")
_TREE = re.compile(r"^(\s+)([A-Z][A-Z0-9_ ]+?)\s*:\s*(.*)$")
_COLUMNS = {"sclk": "clock_sm", "mclk": "clock_mem", "power": "power", "avgpwr": "power", "pwrcap": "power_limit", "vram%": "memory_pct",
            "gpu%": "util", "temp": "temperature"}  # fmt: skip
_CSV = {"gfx": "util", "gfx_clk": "clock_sm", "gfx_clock": "clock_sm", "vram_used": "memory_used", "vram_total": "memory_total",
        "power": "power", "power_usage": "power", "gpu_t": "temperature", "hotspot_temperature": "temperature", "mem_clk": "clock_mem",
        "mem_clock": "clock_mem", "power_usage_w": "power"}  # fmt: skip
_TREE_NAMES = {"GFX_ACTIVITY": "util", "UMC_ACTIVITY": "mem_util", "MAX_POWER": "power_max", "SOCKET_POWER": "power",
               "TOTAL_VRAM": "memory_total", "USED_VRAM": "memory_used", "HOTSPOT": "temperature"}  # fmt: skip


def read_rocm_smi(part: Part) -> tuple[Machine, list[Problem]]:
    """Two header rows and two lines a card; values are found by what they look like (°C, W, Mhz, %)."""
    machine = Machine(ref=part.name, kind="rocm-smi")
    gpu: Gpu | None = None
    for number, line in part.lines():
        row, name = _ROW.match(line), _NAME.match(line)
        if row:
            gpu = machine.gpu(row[1], number)
            gpu.index = row[1]
            _concise(gpu, line[row.end() :])
        elif name and gpu is not None and not gpu.name:
            gpu.name = name[1]
    if not machine.gpus:
        return machine, [Problem(ref=part.name, what="no cards in the rocm-smi table", severity="error")]
    return machine, []


def _concise(gpu: Gpu, rest: str) -> None:
    watts = re.findall(r"([\d.]+)W\b", rest)
    clocks = re.findall(r"(\d+)Mhz", rest, re.I)
    percents = re.findall(r"(\d+)%", rest)
    heat = re.search(r"([\d.]+)\s*°?[Cc]\b", rest)
    if heat:
        gpu.put("temperature", float(heat[1]))
    for key, found in zip(("power", "power_limit"), watts, strict=False):
        gpu.put(key, float(found))
    for key, found in zip(("clock_sm", "clock_mem"), clocks, strict=False):
        gpu.put(key, float(found))
    if len(percents) >= 2:
        gpu.put("memory_pct", float(percents[-2]))
        gpu.put("util", float(percents[-1]))


def read_amd_csv(part: Part) -> tuple[Machine, list[Problem]]:
    """``amd-smi monitor --csv``: names and order differ by version, so columns go by name."""
    machine = Machine(ref=part.name, kind="amd-smi")
    columns: list[str] = []
    for number, line in part.lines():
        cells = [c.strip() for c in cells_of(line)]
        if not columns:
            columns = [c.lower() for c in cells] if "gpu" in [c.lower() for c in cells] else []
            continue
        if not any(cells):
            continue
        row = dict(zip(columns, cells, strict=False))
        gpu = machine.gpu(row.get("gpu", ""), number)
        gpu.index = row.get("gpu", "")
        for name, text in row.items():
            if name in _CSV:
                gpu.put(_CSV[name], cell(text).value)
    return machine, []


def read_amd_tree(part: Part) -> tuple[Machine, list[Problem]]:
    """``amd-smi static`` and ``metric``: a value and its unit in one cell, sometimes a list of them."""
    machine = Machine(ref=part.name, kind="amd-smi")
    gpu: Gpu | None = None
    for number, line in part.lines():
        head = _TREE_GPU.match(line)
        if head:
            gpu = machine.gpu(head[1], number)
            gpu.index = head[1]
            continue
        pair = _TREE.match(line)
        if gpu is None or pair is None or not pair[3]:
            continue
        name, text = pair[2].strip(), pair[3]
        if name == "MARKET_NAME":
            gpu.name = text.strip()
        elif name in _TREE_NAMES and not text.startswith("["):
            field = "power_limit" if name == "SOCKET_POWER" and "power_max" in gpu.values else _TREE_NAMES[name]
            gpu.put(field, cell(text).value)
    return machine, []
