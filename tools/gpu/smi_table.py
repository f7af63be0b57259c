"""The plain ``nvidia-smi`` table: GPUs, MIG devices, processes; whole, in pieces, or many times over (``-l``)."""

from __future__ import annotations

import re

from tools.contract import Problem
from tools.gpu.cells import cell
from tools.gpu.fields import apply
from tools.gpu.state import Gpu, Machine, Process
from tools.part import Part

_BUS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]"
_HEAD = re.compile(
    rf"^\|\s*(\d+)\s+(\S.{{0,60}}?)\s+(On|Off|N/A|WDDM|TCC|MCDM|ERR!)\s*\|\s*({_BUS})\s+(\S+)\s*\|\s*(\S+)\s*\|"
)
_LOOSE = re.compile(r"^\|\s*(\d+)\s+((?:NVIDIA|Tesla|GeForce|Quadro|A\d|H\d|L\d)\S*(?: \S+){0,6}?)\s*(?:\.\.\.)?\s*\|")
_STAT = re.compile(
    r"(?:^\|?\s*|\s)(\d+%|N/A|ERR!)\s+(-?\d+C|N/A|ERR!)\s+(P\d+|N/A|ERR!|Unknown)\s+"
    r"(\d+W|N/A|ERR!|Unknown)\s*/\s*(\d+W|N/A|ERR!)[\s|]+(?:(\d+)MiB|N/A|ERR!)\s*/\s*(?:(\d+)MiB|N/A|ERR!)(?:[\s|]+(\d+%|N/A|ERR!))?"
)
_MEMORY = re.compile(r"~?\s*([\d.]+)\s*(GiB|GB|MiB|MB)\s*/\s*~?\s*([\d.]+)\s*(GiB|GB|MiB|MB)")
_VERSIONS = re.compile(r"Driver Version:\s*([\d.]+)|CUDA(?: UMD)? Version:\s*([\d.]+)", re.I)
_PROCESS = re.compile(
    r"^\|\s+(\d+)\s+(?:(N/A|\d+)\s+(N/A|\d+)\s+)?(\d+)\s+(M?\+?C(?:\+G)?|G)\s+(\S.*?)\s+(?:(\d+)MiB|N/A)\s*\|"
)
_MIG = re.compile(r"^\|\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s*\|\s*\d+MiB\s*/\s*\d+MiB\s*\|\s*(\d+)\s")
_MIG_MODE = re.compile(r"\|\s*(Enabled|Disabled)\*?\s*\|\s*$")
_GIB = {"gib": 1024.0, "gb": 1e9 / 1048576.0, "mib": 1.0, "mb": 1e6 / 1048576.0}


def read_table(part: Part) -> tuple[Machine, list[Problem]]:
    """Rows by their shape, so borders, colours and missing header lines do not matter."""
    machine = Machine(ref=part.name, kind="nvidia-smi")
    gpu: Gpu | None = None
    for number, raw in part.lines():
        line = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", raw)
        for driver, cuda in _VERSIONS.findall(line):
            machine.driver, machine.cuda = driver or machine.driver, cuda or machine.cuda
        if "Processes:" in line:
            machine.processes_listed = True
        mig = _MIG.match(line)
        process = None if mig else _PROCESS.match(line)
        head = None if mig or process else _HEAD.match(line)
        if mig:
            _mig(machine.gpu(mig[1], number), mig)
        elif process:
            _process(machine.gpu(process[1], number), process)
        elif head:
            gpu = machine.gpu(head[1], number)
            gpu.index, gpu.name, gpu.bus = head[1], head[2].removesuffix("...").strip(), head[4]
            _ecc(gpu, head[6])
        else:
            gpu = _rest(machine, gpu, line, number)
    if machine.processes_listed:
        for known in machine.gpus.values():
            known.processes_known = True
    return machine, []


def _rest(machine: Machine, gpu: Gpu | None, line: str, number: int) -> Gpu | None:
    stat = _STAT.search(line)
    if stat:
        gpu = gpu or machine.gpu("", number)
        _stat(gpu, stat)
        return gpu
    loose = _LOOSE.match(line)
    if loose:
        gpu = machine.gpu(loose[1], number)
        gpu.index, gpu.name = loose[1], gpu.name or loose[2].strip()
    memory = _MEMORY.search(line)
    if memory and (loose or gpu is not None) and "%" not in line and machine.gpus:
        owner = gpu or next(iter(machine.gpus.values()))
        if "memory_total" not in owner.values:
            owner.put("memory_used", float(memory[1]) * _GIB[memory[2].lower()])
            owner.put("memory_total", float(memory[3]) * _GIB[memory[4].lower()])
    mode = _MIG_MODE.search(line)
    if mode and gpu is not None and line.count("|") >= 4:
        gpu.mig = mode[1] == "Enabled"
    return gpu


def _stat(gpu: Gpu, found: re.Match[str]) -> None:
    apply(gpu, "temperature.gpu", found[2].removesuffix("C"))
    apply(gpu, "pstate", found[3])
    apply(gpu, "power.draw", found[4].replace("W", " W"))
    apply(gpu, "power.limit", found[5].replace("W", " W"))
    if found[6]:
        gpu.put("memory_used", float(found[6]))
    if found[7]:
        gpu.put("memory_total", float(found[7]))
    if found[8]:
        apply(gpu, "utilization.gpu", found[8])


def _ecc(gpu: Gpu, text: str) -> None:
    found = cell(text)
    if found.value is not None:
        gpu.values["ecc_uncorrected"] = found.value
    elif found.fault:
        apply(gpu, "ecc", text)


def _process(gpu: Gpu, found: re.Match[str]) -> None:
    gpu.index = gpu.index or found[1]
    memory = float(found[7]) if found[7] else None
    if all(known.pid != found[4] for known in gpu.processes):
        gpu.processes.append(Process(pid=found[4], name=found[6].strip(), kind=found[5], memory=memory))
    gpu.processes_known = True


def _mig(gpu: Gpu, found: re.Match[str]) -> None:
    gpu.mig = True
    gpu.mig_devices += 1
    gpu.mig_sms.append(float(found[5]))
