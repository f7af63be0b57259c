"""Rows with a header: ``--query-gpu`` and ``--query-compute-apps`` CSV, ``dmon``, ``pmon``, ``dcgmi dmon``, listings."""

from __future__ import annotations

import re

from tools.cells import cells as cells_of
from tools.contract import Problem
from tools.gpu.cells import cell
from tools.gpu.fields import apply, norm
from tools.gpu.state import Gpu, Machine, Process
from tools.part import Part

_DMON = re.compile(r"^#\s*(?:date\s+time\s+)?gpu\s", re.I)
_DCGM = re.compile(r"^#\s*Entity\s", re.I)
_LIST = re.compile(r"^\s*GPU (\d+): (.+?)(?: \(UUID: ([^)]+)\))?\s*$")
_MIG = re.compile(r"^\s*MIG (\S+)\s+Device\s+(\d+):")
_VERSION = re.compile(
    r"^(?:DRIVER version|KMD version|NVRM version)\s*:\s*([\d.]+)|^CUDA(?: UMD)? version\s*:\s*([\d.]+)", re.I
)
_ASKED = re.compile(r"nvidia-smi\b.{0,200}?--query-(?:gpu|compute-apps)=[\"']?([\w.,]{1,1000})")
_SAME_CLOCK = {"clocks.gr": "clocks.sm", "clocks.current.graphics": "clocks.current.sm"}
_DMON_NAMES = {"pwr": "power.draw", "gtemp": "temperature.gpu", "mtemp": "temperature.memory", "sm": "utilization.gpu",
               "mem": "utilization.memory", "mclk": "clocks.mem", "pclk": "clocks.sm", "temp": "temperature.gpu"}  # fmt: skip
_RATIOS = {"smact": "sm_active", "smutil": "sm_active", "smocc": "sm_occupancy", "tenso": "tensor_active", "tensor": "tensor_active",
           "drama": "dram_active", "dram": "dram_active", "gract": "gr_active"}  # fmt: skip
_RATES = {"pcitx": "pcie_tx_bytes", "pcirx": "pcie_rx_bytes", "nvltx": "nvlink_tx_bytes", "nvlrx": "nvlink_rx_bytes"}


def read_query(part: Part) -> tuple[Machine, list[Problem]]:
    """CSV below its names; where the names were cut off, they stand in the command line above."""
    machine = Machine(ref=part.name, kind="nvidia-smi --query")
    columns: list[str] = []
    problems: list[Problem] = []
    for number, line in part.lines():
        asked = _ASKED.search(line)
        if asked:
            columns = [norm(name) for name in asked[1].split(",") if name]
            continue
        cells = [c.strip() for c in cells_of(line, skip_space=True)]
        if not any(cells):
            continue
        keys = [norm(c) for c in cells]
        if not columns or sum(k in columns for k in keys) > len(keys) // 2 or "pid" in keys:
            columns = keys
            machine.processes_listed = machine.processes_listed or "pid" in columns
            continue
        if len(cells) < len(columns):
            problems.append(Problem(ref=part.name, what=f"line {number} has {len(cells)} of {len(columns)} columns"))
        row = dict(zip(columns, cells, strict=False))
        (_app if "pid" in row else _gpu)(machine, row, number)
    if machine.processes_listed and not machine.gpus:
        machine.gpu("", 1).processes_known = True
    return machine, problems[:3]


def _key(row: dict[str, str]) -> str:
    for name in ("index", "gpu.bus.id", "pci.bus.id", "gpu.uuid", "uuid"):
        if row.get(name) and not cell(row[name]).absent:
            return row[name]
    return ""


def _gpu(machine: Machine, row: dict[str, str], number: int) -> None:
    gpu = machine.gpu(_key(row), number)
    gpu.index = row.get("index", gpu.index)
    machine.driver = row.get("driver.version", machine.driver)
    for name, text in row.items():
        if _SAME_CLOCK.get(name) not in row:  # graphics and SM clock are one: both columns are no two samples
            apply(gpu, name, text)


def _app(machine: Machine, row: dict[str, str], number: int) -> None:
    key = next((row[n] for n in ("gpu.bus.id", "gpu.uuid", "gpu.name") if row.get(n)), "")
    gpu = machine.gpu(key, number)
    gpu.processes_known = True
    gpu.name = row.get("gpu.name", gpu.name)
    gpu.bus = row.get("gpu.bus.id", gpu.bus)
    memory = next((cell(row[n]).value for n in ("used.gpu.memory", "used.memory") if n in row), None)
    gpu.processes.append(
        Process(pid=row["pid"], name=row.get("process.name", row.get("name", "")), kind="C", memory=memory)
    )


def read_dmon(part: Part) -> tuple[Machine, list[Problem]]:
    """``dmon``, ``pmon`` and ``dcgmi dmon``: many samples; ``-`` is no value."""
    machine = Machine(ref=part.name, kind="nvidia-smi dmon")
    columns: list[str] = []
    units: list[str] = []
    dcgm = False
    for number, raw in part.lines():
        line = raw.strip()
        if _DMON.match(line) or _DCGM.match(line):
            dcgm = bool(_DCGM.match(line))
            columns, units = line.lstrip("# ").lower().split(), []
            continue
        if line.startswith("#"):
            units = line.lstrip("# ").split()
            continue
        cells = line.split()
        if not columns or len(cells) < 2:
            continue
        if dcgm:
            cells = (
                [cells[1], *cells[2:]]
                if cells[0].upper().startswith("GPU") and len(cells) > len(columns) - 1
                else cells
            )
        if "pid" in columns:
            _pmon(machine, columns, cells, number)
        else:
            _sample(machine, columns, units, cells, number)
    return machine, []


def _sample(machine: Machine, columns: list[str], units: list[str], cells: list[str], number: int) -> None:
    row = dict(zip(columns, cells, strict=False))
    unit = dict(zip(columns, units, strict=False))
    key = row.get("gpu", row.get("entity", ""))
    gpu = machine.gpu(key, number)
    gpu.index = key
    for name, text in row.items():
        value = cell(text).value
        if name in _DMON_NAMES:
            apply(gpu, _DMON_NAMES[name], text)
        elif name in _RATIOS and value is not None:
            gpu.put(_RATIOS[name], value / 100.0 if unit.get(name) == "%" else value)
        elif name in _RATES and value is not None:
            gpu.put(_RATES[name], value)
        elif name in ("rxpci", "txpci") and value is not None:
            gpu.put("pcie_rx_bytes" if name == "rxpci" else "pcie_tx_bytes", value * 1e6)
        elif name == "pviol" and value is not None:
            gpu.throttle_known = True
            if value > 0:
                gpu.add_throttle("sw_power_cap")
            gpu.put("power_violation_pct", value)
        elif name == "tviol" and value is not None:
            gpu.throttle_known = True
            if value > 0:
                gpu.add_throttle("sw_thermal")
        elif name == "dbecc" and value is not None:
            gpu.put("ecc_uncorrected", value)
        elif cell(text).fault:
            apply(gpu, name, text)


def _pmon(machine: Machine, columns: list[str], cells: list[str], number: int) -> None:
    row = dict(zip(columns, cells, strict=False))
    gpu = machine.gpu(row.get("gpu", ""), number)
    gpu.index, gpu.processes_known = row.get("gpu", ""), True
    machine.kind = "nvidia-smi pmon"
    pid = row.get("pid", "-")
    if pid == "-" or any(p.pid == pid for p in gpu.processes):
        return
    name = " ".join(cells[columns.index("command") :]) if "command" in columns else ""
    gpu.processes.append(Process(pid=pid, name=name, kind=row.get("type", "")))


def read_list(part: Part) -> tuple[Machine, list[Problem]]:
    """``nvidia-smi -L`` and ``--version``."""
    machine = Machine(ref=part.name, kind="nvidia-smi -L")
    gpu: Gpu | None = None
    for number, line in part.lines():
        found = _LIST.match(line)
        if found:
            gpu = machine.gpu(found[1], number)
            gpu.index, gpu.name, gpu.uuid = found[1], found[2].strip(), found[3] or ""
            continue
        if gpu is not None and _MIG.match(line):
            gpu.mig = True
            gpu.mig_devices += 1
        version = _VERSION.match(line)
        if version:
            machine.driver, machine.cuda = version[1] or machine.driver, version[2] or machine.cuda
    return machine, []
