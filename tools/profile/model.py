"""What a profile says, whatever tool wrote it. Times are nanoseconds unless a name says otherwise."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field

from tools.contract import Problem

Progress = Callable[[str, float], None]
"""Called at most once a second, first after one second: what is being read, and the fraction done (0–1)."""


class Kernel(Struct):
    """All launches of one kernel name on one device. ``device`` is empty when the report does not say."""

    name: str
    cls: str
    count: int
    total: float
    device: str = ""
    median: float | None = None
    longest: float | None = None
    line: int = 0

    @property
    def mean(self) -> float:
        """Mean duration in ns."""
        return self.total / self.count if self.count else 0.0


class Call(Struct):
    """All calls of one API function; ``kind`` as in ``knowledge/kernels/apis.yaml``."""

    name: str
    kind: str
    count: int
    total: float


class Copy(Struct):
    """Copies of one direction: h2d, d2h, d2d, p2p, h2h or set. ``size`` in bytes, ``None`` when not reported."""

    kind: str
    count: int
    total: float
    size: float | None = None
    pageable: int | None = None


class Range(Struct):
    """A named range (NVTX, record_function)."""

    name: str
    count: int
    total: float


class Gaps(Struct):
    """Idle intervals between GPU work on one device, by length: < 10 µs, 10 µs–1 ms, ≥ 1 ms."""

    count: int = 0
    total: float = 0.0
    p50: float = 0.0
    p99: float = 0.0
    longest: float = 0.0
    launch: float = 0.0
    step: float = 0.0
    stall: float = 0.0
    host_late: float | None = None
    host_late_n: int = 0


class Span(Struct):
    """The timeline of one device. ``busy``: union of all GPU work; ``compute``: union of kernels that do not
    communicate; ``comm``: union of those that do; ``exposed``: communication with no compute beside it."""

    device: str
    window: float
    busy: float
    kernel_busy: float
    compute: float
    comm: float
    exposed: float
    gaps: Gaps
    rank: str = ""
    kernels: int = 0
    compute_sum: float = 0.0


class Steps(Struct):
    """Steps seen as ranges: durations and start-to-start periods in ns; requests and tokens where named."""

    periods: list[float] = field(default_factory=list)
    durations: list[float] = field(default_factory=list)
    decode_only: int = 0
    prefill: int = 0
    decode_time: float = 0.0
    prefill_time: float = 0.0
    batch: list[int] = field(default_factory=list)
    prefill_tokens: list[int] = field(default_factory=list)


class Phase(Struct):
    """``decode``, ``prefill``, ``mixed`` or ``unknown``, how sure (0–1), and why in words."""

    name: str = "unknown"
    sure: float = 0.0
    why: str = ""


class CpuProcess(Struct):
    """Samples of one process (or of all, when the file does not tell them apart)."""

    title: str
    role: str
    samples: float = 0.0
    active: float = 0.0
    shares: dict[str, float] = field(default_factory=dict)
    self_by_frame: dict[str, float] = field(default_factory=dict)
    total_by_frame: dict[str, float] = field(default_factory=dict)
    threads: list[str] = field(default_factory=list)
    gil_holder: str = ""
    gil_pct: float | None = None


class Ncu(Struct):
    """Hardware counters of one kernel from Nsight Compute, in percent of peak."""

    kernel: str
    metrics: dict[str, float] = field(default_factory=dict)


class Profile(Struct):
    """One profile file. ``kind``: nsys-sqlite, nsys-stats, torch-trace, key-averages, stacks, perf-report,
    pyspy-dump, pyspy-top, speedscope, ncu, tuning. ``listed`` < 1 means rows are missing from the tables (an excerpt)."""

    ref: str
    kind: str
    kernels: list[Kernel] = field(default_factory=list)
    kernel_total: float = 0.0
    listed: float | None = None
    calls: list[Call] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    ranges: list[Range] = field(default_factory=list)
    os_calls: list[Call] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    graph_share: float | None = None
    graph_opaque: float | None = None
    steps: Steps = field(default_factory=Steps)
    phase: Phase = field(default_factory=Phase)
    cpu: list[CpuProcess] = field(default_factory=list)
    ops: list[Kernel] = field(default_factory=list)
    op_total: float = 0.0
    row_overlap: float | None = None
    ncu: list[Ncu] = field(default_factory=list)
    tuned: list[tuple[str, float, float]] = field(default_factory=list)
    overhead: float = 0.0
    device_name: str = ""
    rank: str = ""
    world_size: int = 0
    truncated: bool = False
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @property
    def class_share(self) -> dict[str, float]:
        """Share of kernel time by class (0–1), of the whole and not only of the rows listed."""
        sums: dict[str, float] = {}
        for kernel in self.kernels:
            sums[kernel.cls] = sums.get(kernel.cls, 0.0) + kernel.total
        return {cls: value / self.kernel_total for cls, value in sums.items()} if self.kernel_total > 0 else {}

    @property
    def kernel_count(self) -> int:
        """Kernel launches in the rows listed."""
        return sum(k.count for k in self.kernels)

    def empty(self) -> bool:
        """Whether nothing at all was read."""
        return not (self.kernels or self.calls or self.copies or self.cpu or self.ops or self.ranges or self.ncu
                    or self.spans or self.os_calls or self.tuned)  # fmt: skip
