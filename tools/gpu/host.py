"""Basics of the host: lscpu, numactl, the frequency governor, ``strace -c``, processor affinity."""

from __future__ import annotations

import re

from tools.contract import Problem
from tools.gpu.cells import cell
from tools.gpu.state import Host, Machine
from tools.part import Part

_LSCPU = re.compile(r"^([A-Z][\w() -]+?):\s+(.*\S)\s*$")
_GOVERNOR = re.compile(
    r"governor[\"' ]+([a-z]+)[\"' ]*(?:may decide)?|scaling_governor[^\n]*?[:=]\s*([a-z]+)|^([a-z]+)$"
)
GOVERNORS = {"performance", "powersave", "ondemand", "conservative", "schedutil", "userspace"}
_NODES = re.compile(r"^available:\s*(\d+) nodes")
_BIND = re.compile(r"^(nodebind|cpubind|membind):\s*([\d ]+)$")
_PHYS = re.compile(r"^physcpubind:\s*([\d ]+)$")
_TASKSET = re.compile(r"current affinity list:\s*([\d,-]+)")
_STRACE = re.compile(r"^\s*([\d.]+)\s+([\d.]+)\s+(\d+)\s+(\d+)\s+(?:\d+\s+)?(\w+)\s*$")
_STRACE_WORDS = re.compile(
    r"strace[^\n]*?\(?(\d+(?:\.\d+)?)\s*s\)?[^\n]*?:\s*(\w+)\s+([\d,]+)\s+calls|(\w*poll\w*)\s+([\d,]+)\s+calls in\s+(\d+(?:\.\d+)?)\s*s",
    re.I,
)
_POLL = re.compile(r"p?poll|epoll_wait|select|futex", re.I)


def read_host(part: Part) -> tuple[Machine, list[Problem]]:
    """All of these in one file or one each; whatever is recognised is kept."""
    machine = Machine(ref=part.name, kind="host")
    host = Host()
    machine.host = host
    calls: list[tuple[str, float, int]] = []
    for number, line in part.lines(200_000):
        found = _LSCPU.match(line)
        if found:
            _lscpu(host, found[1], found[2], number)
        _governor(host, line.strip(), number)
        _numa(host, line, number)
        row = _STRACE.match(line)
        if row:
            calls.append((row[5], float(row[1]), int(row[4])))
            host.lines.setdefault("strace", number)
        words = _STRACE_WORDS.search(line)
        if words:
            seconds, count = float(words[1] or words[6]), float((words[3] or words[5]).replace(",", ""))
            if _POLL.search(words[2] or words[4]) and seconds > 0:
                host.poll_calls_per_s = count / seconds
                host.lines["strace"] = number
    if calls:
        host.syscall_shares = [
            f"{share:.1f} % {name} ({count} calls)" for name, share, count in sorted(calls, key=lambda c: -c[1])[:6]
        ]
    if not host.lines:
        return machine, [Problem(ref=part.name, what="nothing about the host that can be read", severity="error")]
    return machine, []


def _lscpu(host: Host, name: str, text: str, number: int) -> None:
    value = cell(text).value
    known = True
    if name == "Model name":
        host.model = text
    elif name in ("CPU MHz",) and value is not None:
        host.mhz = value
    elif name == "CPU max MHz" and value is not None:
        host.max_mhz = value
    elif name == "CPU(s)" and value is not None:
        host.cpus = int(value)
    elif name == "NUMA node(s)" and value is not None:
        host.numa_nodes = int(value)
    elif name == "Hypervisor vendor":
        host.virtualised, host.hypervisor = True, text
    elif name == "Virtualization type":
        host.virtualised = text.lower() in ("full", "para", "container") or bool(host.virtualised)
    elif name == "CPU(s) scaling MHz" and value is not None and host.max_mhz:
        host.mhz = host.max_mhz * value / 100.0
    else:
        known = False
    if known:
        host.lines.setdefault("lscpu", number)
        if host.virtualised is None and name == "Model name":
            host.virtualised = False


def _governor(host: Host, text: str, number: int) -> None:
    if "governor" not in text and text not in GOVERNORS and ":" not in text:
        return
    found = _GOVERNOR.search(text)
    word = next((g for g in found.groups() if g), "") if found else ""
    if word not in GOVERNORS:
        tail = re.search(r"scaling_governor:?\s*([a-z]+)\s*$", text)
        word = tail[1] if tail else ""
    if word in GOVERNORS and (not host.governor or host.governor == "performance"):
        host.governor = word
        host.lines["governor"] = number


def _numa(host: Host, line: str, number: int) -> None:
    nodes, bind, phys, taskset = _NODES.match(line), _BIND.match(line), _PHYS.match(line), _TASKSET.search(line)
    if nodes:
        host.numa_nodes = int(nodes[1])
    elif bind and bind[1] in ("nodebind", "cpubind"):
        host.bound_nodes = bind[2].split()
    elif phys:
        host.bound_cpus = ",".join(phys[1].split())
    elif taskset:
        host.bound_cpus = taskset[1]
    else:
        return
    host.lines.setdefault("numa", number)


def cpu_set(text: str) -> set[int]:
    """``0-3,8`` → {0, 1, 2, 3, 8}; parts that are no numbers are left out."""
    out: set[int] = set()
    for piece in text.split(","):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", piece.strip())
        if found:
            low, high = int(found[1]), int(found[2] or found[1])
            out.update(range(low, min(high, low + 4096) + 1))
    return out
