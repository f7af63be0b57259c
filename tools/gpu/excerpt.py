"""Fragments that people paste: ``power.draw 179.83 W, pstate P2``, ``SW power cap: Active``, ``NVRM: Xid … 79``.

A number counts only beside a name that is unmistakable, so that prose about something else is left alone.
"""

from __future__ import annotations

import re

from tools.contract import Problem
from tools.gpu.fields import apply
from tools.gpu.state import Gpu, Machine
from tools.part import Part

_NAMED = re.compile(
    r"(?<![\w.])(power\.draw|power\.limit|enforced\.power\.limit|power\.max_limit|power\.default_limit|clocks\.sm|clocks\.mem(?:ory)?|clocks\.max\.sm"
    r"|clocks\.max\.mem(?:ory)?|clocks\.current\.(?:sm|memory)|temperature\.(?:gpu|memory)|utilization\.(?:gpu|memory)|memory\.(?:used|total)"
    r"|pcie\.link\.(?:gen|width)\.(?:current|max)|ecc\.errors\.uncorrected\.(?:volatile|aggregate)\.total|temperature|power"
    r"|GPU util(?:i[sz]ation)?|SM clock|power cap|power limit)"
    r"(?:\s*\[[^\]]*\])?\s*(?:[:=]|is|->|→)?\s*(\[[^\]]{1,60}\]|ERR!|N/A|[-+]?\d[\d.]*\s*(?:%|W|MHz|GHz|MiB|GiB|C|°C)?)",
    re.I,
)
_PSTATE = re.compile(r"(?:pstate|performance state|\bperf)\s*[:=]?\s*(P\d{1,2})\b", re.I)
_REASON = re.compile(
    r"(SW power cap|HW slowdown|HW thermal slowdown|SW thermal slowdown|HW power brake(?: slowdown)?|sync boost|applications clocks setting"
    r"|sw_power_cap|hw_slowdown|hw_thermal_slowdown|sw_thermal_slowdown|hw_power_brake_slowdown)\s*[:=]?\s*(?:is\s+)?(not active|active|enabled|yes|no)",
    re.I,
)
_MASK = re.compile(r"clocks_(?:event|throttle)_reasons\.active\s*[:=]?\s*(0x[0-9a-f]+)", re.I)
_XID = re.compile(r"Xid\s*\(PCI:([0-9A-Fa-f:.]+)\):\s*(\d+)|\bXid(?: error)?s?\s*[:=]?\s*(\d{1,3})\b", re.I)
_RESET = re.compile(r"GPU requires reset|reset required\s*[:=]?\s*yes|GPU is lost|fallen off the bus", re.I)
_FAILED = re.compile(
    r"NVIDIA-SMI has failed[^\n]*|Failed to initialize NVML[^\n]*|No devices were found|Unable to determine the device handle[^\n]*"
    r"|Driver/library version mismatch[^\n]*|couldn't communicate with the NVIDIA driver[^\n]*",
    re.I,
)
_TOOL_ERROR = re.compile(r"^\s*ERROR:?\s.{3,160}", re.I)
_MEMORY = re.compile(r"~?\s*(\d+(?:\.\d+)?)\s*(GB|GiB|MiB)\s*/\s*(\d+)\s*MiB", re.I)
_NAME = re.compile(r"\b((?:NVIDIA|Tesla|GeForce|AMD Instinct) [A-Z0-9][\w -]{1,40}?)(?=\s*(?:[,.|;]|\.\.\.|$))")
_SPOKEN = {"gpu util": "utilization.gpu", "gpu utilization": "utilization.gpu", "gpu utilisation": "utilization.gpu", "sm clock": "clocks.sm",
           "power cap": "power.limit", "power limit": "power.limit", "power": "power.draw", "temperature": "temperature.gpu"}  # fmt: skip
_REASON_NAMES = {"hw power brake": "hw.power.brake.slowdown"}


def read_excerpt(part: Part) -> tuple[Machine, list[Problem]]:
    """Fragments of one GPU, unless a bus id tells GPUs apart (Xid lines)."""
    machine = Machine(ref=part.name, kind="excerpt")
    said = ""
    for number, line in part.lines(100_000):
        scan(machine, line, number)
        said = said or (line.strip()[:120] if _TOOL_ERROR.match(line) else "")
    if not machine.gpus:
        what = f"the tool answered with an error: {said}" if said else "no GPU readings that can be recognised"
        return machine, [Problem(ref=part.name, what=what, do="paste nvidia-smi -q", severity="error")]
    return machine, []


def scan(machine: Machine, line: str, number: int) -> None:
    """Take what one line holds."""

    def gpu() -> Gpu:
        return machine.gpu("", number)

    for found in _NAMED.finditer(line):
        name = _SPOKEN.get(found[1].lower(), found[1])
        if name == "power.draw" and found[1].lower() == "power" and not found[2].rstrip().endswith("W"):
            continue
        if name == "temperature.gpu" and found[1].lower() == "temperature" and not found[2].rstrip().endswith("C"):
            continue
        apply(gpu(), name, found[2].replace("°", ""))
    state = _PSTATE.search(line)
    if state:
        gpu().pstate = state[1].upper()
    for found in _REASON.finditer(line):
        name = found[1].lower().replace("_", " ")
        apply(gpu(), "clocks.event.reasons." + _REASON_NAMES.get(name, name), found[2])
    mask = _MASK.search(line)
    if mask:
        apply(gpu(), "clocks.event.reasons.active", mask[1])
    for found in _XID.finditer(line):
        owner = machine.gpu(found[1], number) if found[1] else gpu()
        owner.bus = found[1] or owner.bus
        code = int(found[2] or found[3])
        if code not in owner.xid:
            owner.xid.append(code)
    failed = _FAILED.search(line)
    if failed and failed[0][:120] not in gpu().errors:
        gpu().errors.append(failed[0][:120])
    if _RESET.search(line):
        gpu().reset = True
        if line.strip()[:120] not in gpu().errors:
            gpu().errors.append(line.strip()[:120])
    memory = _MEMORY.search(line)
    if memory and "memory_total" not in (machine.gpus.get("") or Gpu(key="")).values:
        scale = {"gb": 1e9 / 1048576.0, "gib": 1024.0, "mib": 1.0}[memory[2].lower()]
        gpu().put("memory_used", float(memory[1]) * scale)
        gpu().put("memory_total", float(memory[3]))
    named = _NAME.search(line)
    if named and machine.gpus:
        owner = next(iter(machine.gpus.values()))
        owner.name = owner.name or named[1].strip()
