"""Hardware state of any tool → readings, and what two files only say together."""

from __future__ import annotations

import re
from collections.abc import Callable

from tools.contract import Context, Problem, ReadResult
from tools.gpu.emit import gpu_readings, kind_of
from tools.gpu.emit_links import host_readings, link_readings, mismatch
from tools.gpu.sniff import _DCGM, _SURE, _TREE
from tools.gpu.state import Machine
from tools.part import Part

Reader = Callable[[Part], tuple[Machine, list[Problem]]]
_WATCHED = {
    "util": "utilisation",
    "power": "power",
    "temperature": "temperature",
    "clock_sm": "SM clock",
    "memory_used": "memory",
}


def read(parts: list[Part], context: Context) -> ReadResult:
    """Every part by its form. Never raises on content."""
    result = ReadResult()
    machines: list[Machine] = []
    for part in parts:
        machine, problems = machine_of(part)
        result.problems += problems + _absent(machine)
        machines.append(machine)
    _violations(machines)
    _used(machines)
    for machine in machines:
        found = gpu_readings(machine) + link_readings(machine) + host_readings(machine)
        if not found and not any(p.ref == machine.ref for p in result.problems):
            what = machine.errors[0] if machine.errors else f"nothing usable in this {machine.kind or 'file'}"
            result.problems.append(
                Problem(ref=machine.ref, what=what, do="paste nvidia-smi -q, or topo -m for the wiring")
            )
        result.readings += found
    result.readings += mismatch(machines)
    return result


def machine_of(part: Part) -> tuple[Machine, list[Problem]]:
    """Read one part by what its head looks like."""
    raw = part.head(65536)
    if not raw:
        return Machine(ref=part.name), [
            Problem(ref=part.name, what="empty, or not readable", do="run the tool again", severity="error")
        ]
    if part.is_binary():
        return Machine(ref=part.name), [
            Problem(ref=part.name, what="a binary file", do="give the tool's text output", severity="error")
        ]
    head = raw.decode(part.encoding().removesuffix("-le").removesuffix("-be"), "replace")
    return _reader(part, head)(part)


def _reader(part: Part, head: str) -> Reader:
    from tools.gpu import excerpt, host, links, metrics, rocm, smi_q, smi_rows, smi_table

    if _DCGM.search(head):
        return metrics.read_metrics
    table: list[tuple[str, Reader]] = [
        ("xml", smi_q.read_xml),
        ("q", smi_q.read_q),
        ("dmon", smi_rows.read_dmon),
        ("dcgmi", smi_rows.read_dmon),
        ("table", smi_table.read_table),
        ("query", smi_rows.read_query),
        ("topo", links.read_topo),
        ("nvlink", links.read_nvlink),
        ("list", smi_rows.read_list),
        ("version", smi_rows.read_list),
        ("rocm", rocm.read_rocm_smi),
        ("amd", _amd(head)),
        ("lspci", links.read_lspci),
        ("lscpu", host.read_host),
        ("numactl", host.read_host),
        ("governor", host.read_host),
    ]
    for kind, reader in table:
        if _SURE[kind].search(head):
            return reader
    if _TREE.search(head):
        return smi_q.read_q
    if re.search(r"\bNVLink\b|PCIe switch", head, re.I) and not re.search(r"power\.draw|utilization", head):
        return links.read_topo
    if re.search(r"^\|\s*\d+\s+\S.*\|", head, re.M):
        return smi_table.read_table
    if re.search(r"ERR!\s+ERR!", head):
        return _both(smi_table.read_table, excerpt.read_excerpt)
    if "strace" in head or _SURE["strace"].search(head):
        return _both(host.read_host, excerpt.read_excerpt)
    return excerpt.read_excerpt


def _amd(head: str) -> Reader:
    from tools.gpu import rocm

    return rocm.read_amd_csv if re.search(r"^gpu,", head, re.M) else rocm.read_amd_tree


def _both(first: Reader, second: Reader) -> Reader:
    """Two views of a fragment; the problems count only when neither saw anything."""

    def reader(part: Part) -> tuple[Machine, list[Problem]]:
        machine, problems = first(part)
        other, more = second(part)
        for key, gpu in other.gpus.items():
            known = machine.gpus.setdefault(key, gpu)
            if known is not gpu:
                known.errors += [e for e in gpu.errors if e not in known.errors]
                known.reset = gpu.reset if known.reset is None else known.reset
                for field, value in gpu.values.items():
                    known.values.setdefault(field, value)
        machine.host = machine.host or other.host
        return machine, (problems + more if not machine.gpus and not machine.host else [])

    return reader


def _absent(machine: Machine) -> list[Problem]:
    """Cells that a tool printed as having no value, one line a GPU."""
    out = []
    for position, gpu in enumerate(machine.gpus.values()):
        names = [_WATCHED[f] for f in gpu.absent if f in _WATCHED and f not in gpu.values]
        if names:
            why = " (MIG mode hides it; read the instances)" if gpu.mig else ""
            what = f"GPU {gpu.index or position}: no value for {', '.join(dict.fromkeys(names))}{why}"
            out.append(
                Problem(
                    ref=machine.ref, what=what, do="" if gpu.mig else "read it with DCGM or as root", severity="note"
                )
            )
    return out[:8]


def _used(machines: list[Machine]) -> None:
    """GPUs that hold an engine process, for the topology: unused ones must not decide the worst link."""
    used = {
        f"GPU{gpu.index}"
        for machine in machines
        for gpu in machine.gpus.values()
        if gpu.index and any(kind_of(process) == "engine" and process.name for process in gpu.processes)
    }
    for machine in machines:
        if machine.topology is not None:
            machine.topology.used = used


def _violations(machines: list[Machine]) -> None:
    """Violation counters that rose between the first and the last page of an exporter."""
    pages = sorted((m for m in machines if m.kind == "gpu metrics"), key=lambda m: m.ref)
    if len(pages) < 2:
        return
    for key, last in pages[-1].gpus.items():
        first = pages[0].gpus.get(key)
        for field, reason in (("power_violation", "sw_power_cap"), ("thermal_violation", "sw_thermal")):
            if first and field in first.values and field in last.values:
                last.throttle_known = True
                if last.values[field] > first.values[field]:
                    last.add_throttle(reason)
