"""Links: ``nvidia-smi topo -m`` and ``topo -p2p``, ``nvlink --status``, ``lspci -vv`` with ACS."""

from __future__ import annotations

import re

from tools.contract import Problem
from tools.gpu.state import Gpu, Link, Machine, Topology
from tools.part import Part

ORDER = ("NVL", "PIX", "PXB", "PHB", "NODE", "SYS")
P2P_ORDER = ("OK", "NS", "GNS", "TNS", "CNS", "DR", "U")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LEGEND = re.compile(r"^\s*(?:X|SYS|NODE|PHB|PXB|PIX|NV#|OK|CNS|GNS|TNS|NS|U|DR)\s+=", re.I)
_GPU_HEAD = re.compile(r"^GPU (\d+):\s*(.*?)(?: \(UUID: ([^)]+)\))?\s*$")
_NVLINK = re.compile(r"^\s*Link (\d+):\s*(?:<?(inactive)>?|([\d.]+) GB/s)", re.I)
_NVERR = re.compile(r"^\s*Link (\d+):\s*(?:Replay|Recovery|CRC(?: FLIT| Data)?)(?: Errors?)?:\s*(\d+)", re.I)
_SLOT = re.compile(r"^(?:([0-9a-f]{4}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])\s+(.*)$", re.I)
_CAP = re.compile(r"LnkCap:.*?Speed ([\d.]+)GT/s.*?Width x(\d+)")
_STA = re.compile(r"LnkSta:\s*Speed ([\d.]+)GT/s\s*(\([^)]*\))?.*?Width x(\d+)\s*(\([^)]*\))?")
_ACS = re.compile(r"ACSCtl:\s*(.*)$")
_NO_NVLINK = re.compile(r"\bno NVLink\b|\bwithout NVLink\b|NVLink[^.\n]{0,20}not (?:present|available|supported)", re.I)
_NO_SWITCH = re.compile(
    r"(?:directly|straight) (?:off|on|to) the CPU|no (?:common )?PCIe switch|traffic goes through the CPU", re.I
)


def link_word(text: str) -> str:
    """``NV18`` → ``NVL``; other words as they are; empty for what is no link."""
    word = text.strip().upper()
    if re.fullmatch(r"NV\d+", word):
        return "NVL"
    return word if word in ORDER else ""


def read_topo(part: Part) -> tuple[Machine, list[Problem]]:
    """Matrices of any spacing. Only pairs of GPUs count for the worst link; NICs are kept out."""
    machine = Machine(ref=part.name, kind="nvidia-smi topo")
    machine.topology = topology = Topology()
    columns: list[str] = []
    for number, raw in part.lines():
        line = _ANSI.sub("", raw)
        if _LEGEND.match(line):
            continue
        cells = line.split()
        if len(cells) >= 2 and cells[0].upper() == "GPU0" and cells[1].upper() not in ("X",) and _is_head(cells):
            columns = [c.upper() for c in cells if re.fullmatch(r"(?:GPU|NIC|mlx5_|MLX5_)\d+", c, re.I)]
            topology.line = topology.line or number
            continue
        if cells and cells[0].upper() == "GPU0" and len(cells) > 1 and cells[1] == "CPU":
            columns = ["GPU0"]
            topology.line = topology.line or number
            continue
        if columns and cells and re.fullmatch(r"GPU\d+", cells[0], re.I):
            _row(machine, topology, columns, cells, number)
        elif not columns:
            _words(machine, line, number)
    if not columns and not machine.topology.pairs and not machine.gpus and not machine.errors and not machine.no_nvlink:
        return machine, [
            Problem(ref=part.name, what="no topology matrix in it", do="nvidia-smi topo -m", severity="error")
        ]
    return machine, []


def _is_head(cells: list[str]) -> bool:
    return not any(link_word(c) or c == "X" or c in P2P_ORDER for c in cells)


def _row(machine: Machine, topology: Topology, columns: list[str], cells: list[str], number: int) -> None:
    row = cells[0].upper()
    gpu = machine.gpu(row.removeprefix("GPU"), number)
    gpu.index = row.removeprefix("GPU")
    for column, text in zip(columns, cells[1:], strict=False):
        if not column.startswith("GPU") or column == row:
            continue
        pair = (min(row, column), max(row, column))
        word = link_word(text)
        if word:
            topology.pairs.setdefault(pair, text.upper())
        elif text.upper() in P2P_ORDER:
            topology.p2p.setdefault(pair, text.upper())
    rest = cells[1 + len(columns) :]
    if rest and re.match(r"^\d", rest[0]):
        gpu.cpus = rest[0]
        gpu.numa = rest[1] if len(rest) > 1 and rest[1].isdigit() else ""


def _words(machine: Machine, line: str, number: int) -> None:
    """Prose about the wiring: weaker than a matrix, so only two statements are taken."""
    if _NO_NVLINK.search(line):
        machine.no_nvlink = number
    if _NO_SWITCH.search(line) and machine.topology is not None:
        machine.topology.pairs.setdefault(("GPU0", "GPU1"), "PHB")
        machine.topology.line = number
    if line.startswith("ERROR"):
        machine.errors.append(line.strip()[:120])


def read_nvlink(part: Part) -> tuple[Machine, list[Problem]]:
    """Lanes up and down per GPU; ``all links are inActive`` is none up; MIG mode hides them."""
    machine = Machine(ref=part.name, kind="nvidia-smi nvlink")
    gpu: Gpu | None = None
    for number, line in part.lines():
        head = _GPU_HEAD.match(line)
        if head:
            gpu = machine.gpu(head[1], number)
            gpu.index, gpu.name, gpu.uuid = head[1], head[2].strip(), head[3] or ""
            continue
        link, error = _NVLINK.match(line), _NVERR.match(line)
        if gpu is None:
            continue
        if link:
            gpu.links_up = (gpu.links_up or 0) + (link[2] is None)
            gpu.links_down = (gpu.links_down or 0) + (link[2] is not None)
            if link[3]:
                gpu.values["nvlink_raw_gbs"] = gpu.values.get("nvlink_raw_gbs", 0.0) + float(link[3])
        elif error:
            gpu.values["nvlink_errors"] = gpu.values.get("nvlink_errors", 0.0) + float(error[2])
        elif "all links are inactive" in line.lower():
            gpu.links_up = 0
        elif "not supported for Devices in MIG mode" in line:
            gpu.mig = True
    return machine, []


def read_lspci(part: Part) -> tuple[Machine, list[Problem]]:
    """Bridges and GPUs: link as it runs against what it can, and ACS redirection on bridges."""
    machine = Machine(ref=part.name, kind="lspci")
    link: Link | None = None
    for number, line in part.lines():
        slot = _SLOT.match(line)
        if slot:
            link = Link(slot=slot[2], name=slot[3].strip(), line=number)
            machine.links.append(link)
            continue
        acs = _ACS.search(line)
        if link is None:
            if not acs:
                continue
            link = Link(slot="?", line=number)
            machine.links.append(link)
        cap, sta = _CAP.search(line), _STA.search(line)
        if cap:
            link.cap_speed, link.cap_width = float(cap[1]), int(cap[2])
        elif sta:
            link.speed, link.width = float(sta[1]), int(sta[3])
            link.downgraded = "downgraded" in f"{sta[2]}{sta[4]}"
        elif acs:
            flags = acs[1]
            link.acs_redirect = "ReqRedir+" in flags or "CmpltRedir+" in flags
            link.line = number
    if not machine.links:
        return machine, [Problem(ref=part.name, what="no PCI devices in it", do="sudo lspci -vv", severity="error")]
    return machine, []
