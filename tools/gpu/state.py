"""The state of GPUs and links as read from any tool, before it becomes readings.

Fields are optional throughout: what a tool did not print, or printed as ``[N/A]``, stays ``None``.
"""

from __future__ import annotations

from msgspec import Struct, field

THROTTLE_BITS = {
    0x1: "idle", 0x2: "applications_clocks", 0x4: "sw_power_cap", 0x8: "hw_slowdown", 0x10: "sync_boost",
    0x20: "sw_thermal", 0x40: "hw_thermal", 0x80: "hw_power_brake", 0x100: "display_clocks",
}  # fmt: skip
ACTIVE = 10.0


class Process(Struct):
    """A process on a GPU: type C, G or C+G; memory in MiB."""

    pid: str
    name: str
    kind: str = ""
    memory: float | None = None


class Gpu(Struct):
    """One GPU. Units: %, W, MHz, °C, MiB, GB/s; ``line`` is where its block starts."""

    key: str
    line: int = 0
    name: str = ""
    index: str = ""
    uuid: str = ""
    bus: str = ""
    values: dict[str, float] = field(default_factory=dict)
    lists: dict[str, list[float]] = field(default_factory=dict)
    throttle: list[str] = field(default_factory=list)
    throttle_known: bool = False
    errors: list[str] = field(default_factory=list)
    xid: list[int] = field(default_factory=list)
    reset: bool | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    mig: bool | None = None
    mig_devices: int = 0
    mig_sms: list[float] = field(default_factory=list)
    pstate: str = ""
    virtualization: str = ""
    links_down: int | None = None
    links_up: int | None = None
    processes: list[Process] = field(default_factory=list)
    processes_known: bool = False
    numa: str = ""
    cpus: str = ""
    recovery: str = ""
    absent: list[str] = field(default_factory=list)
    fabric: str = ""

    def put(self, key: str, value: float | None) -> None:
        """Keep a number; with several samples in one file the list keeps all, the value the last."""
        if value is None:
            return
        self.values[key] = value
        self.lists.setdefault(key, []).append(value)

    def add_throttle(self, reason: str) -> None:
        """Note an active reason once."""
        self.throttle_known = True
        if reason not in self.throttle:
            self.throttle.append(reason)

    def loaded(self) -> bool | None:
        """Whether the GPU worked when it was read; ``None`` when nothing tells."""
        for key in ("util", "sm_active"):
            if key in self.values:
                limit = ACTIVE if key == "util" else ACTIVE / 100.0
                return max(self.lists.get(key, [self.values[key]])) >= limit
        if self.throttle_known and "idle" in self.throttle:
            return False
        return None


def bits_of(gpu: Gpu, mask: int) -> None:
    """A throttle-reason bit mask as NVML defines it (nvml.h, nvmlClocksEventReason*)."""
    gpu.throttle_known = True
    for bit, reason in THROTTLE_BITS.items():
        if mask & bit:
            gpu.add_throttle(reason)


class Link(Struct):
    """A PCIe device of ``lspci -vv``. Speeds in GT/s, widths in lanes."""

    slot: str
    name: str = ""
    line: int = 0
    cap_speed: float | None = None
    cap_width: int | None = None
    speed: float | None = None
    width: int | None = None
    downgraded: bool = False
    acs_redirect: bool | None = None


class Topology(Struct):
    """``nvidia-smi topo -m``: device pairs → link word (NV18, PIX, PXB, PHB, NODE, SYS)."""

    pairs: dict[tuple[str, str], str] = field(default_factory=dict)
    line: int = 0
    p2p: dict[tuple[str, str], str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)


class Host(Struct):
    """CPU facts: lscpu, numactl, governor, strace."""

    model: str = ""
    mhz: float | None = None
    max_mhz: float | None = None
    governor: str = ""
    virtualised: bool | None = None
    hypervisor: str = ""
    cpus: int | None = None
    numa_nodes: int | None = None
    bound_nodes: list[str] = field(default_factory=list)
    bound_cpus: str = ""
    syscalls_per_s: float | None = None
    syscall_shares: list[str] = field(default_factory=list)
    poll_calls_per_s: float | None = None
    lines: dict[str, int] = field(default_factory=dict)


class Machine(Struct):
    """Everything read from one part."""

    ref: str
    kind: str = ""
    gpus: dict[str, Gpu] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    topology: Topology | None = None
    host: Host | None = None
    driver: str = ""
    cuda: str = ""
    attached: int | None = None
    no_nvlink: int = 0
    errors: list[str] = field(default_factory=list)
    processes_listed: bool = False

    def gpu(self, key: str, line: int = 0) -> Gpu:
        """The GPU of a key (index, bus id or UUID), made on first use."""
        if key not in self.gpus:
            self.gpus[key] = Gpu(key=key, line=line)
        return self.gpus[key]
