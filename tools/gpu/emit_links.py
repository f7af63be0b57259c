"""Topology, PCI links and host basics → readings."""

from __future__ import annotations

from tools.contract import Reading
from tools.gpu.emit import Emit
from tools.gpu.host import cpu_set
from tools.gpu.links import ORDER, P2P_ORDER, link_word
from tools.gpu.state import Host, Link, Machine

_GT = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}
_BRIDGE = ("bridge", "switch", "root port")


def link_readings(machine: Machine) -> list[Reading]:
    """What a topology matrix, a P2P matrix or an lspci listing says."""
    emit = Emit(machine)
    _topology(emit, machine)
    if machine.links:
        _pci(emit, machine.links)
    if machine.no_nvlink and not (machine.topology and machine.topology.pairs):
        emit.add("gpu.nvlink.present", False, "stated in words", machine.no_nvlink)
    return emit.out


def _topology(emit: Emit, machine: Machine) -> None:
    topology = machine.topology
    if topology is None:
        return
    if topology.pairs:
        used = {pair: word for pair, word in topology.pairs.items() if set(pair) <= topology.used}
        pairs = used or topology.pairs
        worst = max(pairs.values(), key=lambda w: ORDER.index(link_word(w)))
        pair = next(p for p, w in pairs.items() if w == worst)
        text = f"worst of {len(pairs)} pairs of GPUs: {pair[0]}–{pair[1]} {worst}"
        whole = () if used else ("all GPUs listed count, also those not used",)
        emit.add(
            "gpu.topology",
            link_word(worst),
            text,
            topology.line,
            caveats=whole,
        )
        nvlink = any(link_word(w) == "NVL" for w in topology.pairs.values())
        emit.add(
            "gpu.nvlink.present",
            nvlink,
            f"{sum(link_word(w) == 'NVL' for w in topology.pairs.values())} pairs over NVLink",
            topology.line,
        )
    if topology.p2p:
        worst = max(topology.p2p.values(), key=P2P_ORDER.index)
        emit.add("gpu.p2p_status", worst, f"worst of {len(topology.p2p)} pairs", topology.line)
        emit.add("gpu.p2p_ok", worst == "OK", f"worst of {len(topology.p2p)} pairs is {worst}", topology.line)
    nodes = {g.numa for g in machine.gpus.values() if g.numa}
    if nodes:
        emit.add("numa.gpu_nodes", len(nodes), f"NUMA nodes of the GPUs: {', '.join(sorted(nodes))}", topology.line)


def _pci(emit: Emit, links: list[Link]) -> None:
    redirecting = [link for link in links if link.acs_redirect]
    acs = [link for link in links if link.acs_redirect is not None]
    if acs:
        where = ", ".join(link.slot for link in redirecting[:6])
        text = f"{len(redirecting)} of {len(acs)} devices with ACS control redirect peer traffic" + (
            f": {where}" if where else ""
        )
        emit.add("pci.acs_redirect_on", bool(redirecting), text, (redirecting or acs)[0].line)
    downgraded = []
    for link in links:
        if link.speed is None or link.width is None or any(word in link.name.lower() for word in _BRIDGE):
            continue
        gpu = any(
            word in link.name
            for word in (
                "NVIDIA",
                "Advanced Micro Devices",
                "AMD/ATI",
                "3D controller",
                "VGA",
                "Processing accelerators",
            )
        )
        network = any(word in link.name for word in ("Infiniband", "Mellanox", "Ethernet", "Network"))
        if not gpu and not network:
            continue
        if gpu and link.cap_width:
            _gpu_link(emit, link)
        if link.cap_width and link.width < link.cap_width:
            downgraded.append(f"{link.slot} x{link.width} of x{link.cap_width} ({link.name[:50]})")
    if downgraded:
        emit.add("pci.narrow_links", downgraded[:16], "LnkSta width below LnkCap width")


def _gpu_link(emit: Emit, link: Link) -> None:
    labels = {"gpu": link.slot}
    emit.add("gpu.link.width", link.width, "LnkSta", link.line, labels)
    emit.add("gpu.link.max_width", link.cap_width, "LnkCap", link.line, labels)
    idle = ("a lowered speed is normal on an idle GPU",) if link.speed != link.cap_speed else ()
    for speed, fact in ((link.speed, "gpu.link.gen"), (link.cap_speed, "gpu.link.max_gen")):
        generation = _GT.get(speed or 0.0)
        if generation:
            emit.add(fact, generation, f"{speed:g} GT/s", link.line, labels, idle if fact == "gpu.link.gen" else ())
    if link.width is not None and link.cap_width and link.width < link.cap_width:
        emit.add("gpu.link.degraded", True, f"x{link.width} of x{link.cap_width}", link.line, labels)
    elif link.speed == link.cap_speed:
        emit.add("gpu.link.degraded", False, "speed and width at their maximum", link.line, labels)


def host_readings(machine: Machine) -> list[Reading]:
    """CPU model and clocks, governor, virtualisation, polling."""
    emit = Emit(machine)
    host = machine.host
    if host is None:
        return []
    at = host.lines
    emit.add("host.cpu_model", host.model or None, "lscpu", at.get("lscpu", 0))
    emit.add("host.cpu_mhz", host.mhz, "lscpu", at.get("lscpu", 0))
    emit.add("host.cpu_max_mhz", host.max_mhz, "lscpu", at.get("lscpu", 0))
    emit.add("host.cpu_count", host.cpus, "lscpu", at.get("lscpu", 0))
    emit.add("host.governor", host.governor or None, "scaling governor (the slowest one listed)", at.get("governor", 0))
    emit.add("host.virtualised", host.virtualised, host.hypervisor or "lscpu names no hypervisor", at.get("lscpu", 0))
    emit.add("numa.nodes", host.numa_nodes, "NUMA nodes of the host", at.get("numa", at.get("lscpu", 0)))
    by_design = ("an idle engine polls by design; it costs a core, not latency",)
    emit.add("host.poll_calls_per_s", host.poll_calls_per_s, "strace", at.get("strace", 0), caveats=by_design)
    emit.add("host.syscalls_top", host.syscall_shares or None, "strace -c", at.get("strace", 0), caveats=by_design)
    return emit.out


def mismatch(machines: list[Machine]) -> list[Reading]:
    """Whether the process is bound to CPUs that no GPU it might use is near to; needs both sides."""
    hosts = [m for m in machines if m.host and (m.host.bound_cpus or m.host.bound_nodes)]
    wired = [m for m in machines if any(g.cpus for g in m.gpus.values())]
    if not hosts or not wired:
        return []
    emit = Emit(hosts[0])
    host: Host = hosts[0].host or Host()
    far = []
    for gpu in wired[0].gpus.values():
        near = cpu_set(gpu.cpus)
        bound = cpu_set(host.bound_cpus)
        off = bool(bound and near and not bound & near)
        if not bound and host.bound_nodes and gpu.numa:
            off = gpu.numa not in host.bound_nodes
        if off:
            far.append(f"GPU {gpu.index} (CPUs {gpu.cpus})")
    bound_to = host.bound_cpus or "nodes " + " ".join(host.bound_nodes)
    text = f"bound to {bound_to}; far from {', '.join(far) or 'no GPU'}"
    emit.add("numa.gpu_cpu_mismatch", bool(far), text[:300], host.lines.get("numa", 0))
    return emit.out
