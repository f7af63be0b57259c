"""Busy time as the union of intervals, in one pass over blocks sorted by start.

Kernels on several streams overlap, so summed durations are no busy time. Communication that nothing hides is
``union(all kernels) − union(kernels that do not communicate)``: no interval has to be intersected with another.
"""

from __future__ import annotations

from typing import Any

from tools.profile.model import Gaps, Span

LAUNCH_NS = 10_000.0
STALL_NS = 1_000_000.0
_KEEP = 200


class Union:
    """Union of intervals fed in order of start. With ``gaps`` the idle intervals in between are kept."""

    def __init__(self, *, gaps: bool = False) -> None:
        self.busy = 0.0
        self.first: float | None = None
        self.end: float = 0.0
        self._gaps: list[Any] | None = [] if gaps else None
        self._longest: list[tuple[float, float]] = []

    def feed(self, starts: Any, ends: Any) -> None:
        """Two numpy arrays of equal length, ``starts`` ascending and not before any start fed earlier."""
        import numpy as np

        if not len(starts):
            return
        if self.first is None:
            self.first = float(starts[0])
            self.end = float(starts[0])
        reach = np.maximum(np.maximum.accumulate(ends), ends.dtype.type(self.end))
        before = np.empty_like(reach)
        before[0] = self.end
        before[1:] = reach[:-1]
        self.busy += float(np.maximum(ends - np.maximum(starts, before), 0).sum())
        if self._gaps is not None:
            idle = starts - before
            where = np.flatnonzero(idle > 0)
            if len(where):
                lengths = idle[where].astype(np.float64)
                self._gaps.append(lengths)
                top = np.argsort(lengths)[-_KEEP:]
                self._longest += [(float(lengths[i]), float(starts[where[i]])) for i in top]
                self._longest = sorted(self._longest)[-_KEEP:]
        self.end = float(reach[-1])

    @property
    def window(self) -> float:
        """From the first start to the last end."""
        return self.end - self.first if self.first is not None else 0.0

    @property
    def longest(self) -> list[tuple[float, float]]:
        """The longest gaps: (length, start of the work that ended it), shortest first."""
        return self._longest

    def gaps(self) -> Gaps:
        """Distribution of the idle intervals."""
        import numpy as np

        if not self._gaps:
            return Gaps()
        all_gaps = np.concatenate(self._gaps)
        p50, p99 = np.percentile(all_gaps, (50, 99))
        short = all_gaps < LAUNCH_NS
        long = all_gaps >= STALL_NS
        return Gaps(
            count=len(all_gaps),
            total=float(all_gaps.sum()),
            p50=float(p50),
            p99=float(p99),
            longest=float(all_gaps.max()),
            launch=float(all_gaps[short].sum()),
            step=float(all_gaps[~short & ~long].sum()),
            stall=float(all_gaps[long].sum()),
        )


class Timeline:
    """One device: unions of everything, of kernels, of compute and of communication."""

    def __init__(self) -> None:
        self.everything = Union(gaps=True)
        self.kernels = Union()
        self.compute = Union()
        self.comm = Union()
        self.count = 0
        self.compute_sum = 0.0

    def feed(self, starts: Any, ends: Any, is_kernel: Any, is_comm: Any) -> None:
        """One block sorted by start; the masks say which rows are kernels and which of those communicate."""
        self.everything.feed(starts, ends)
        if is_kernel.all():
            kernel_starts, kernel_ends, comm = starts, ends, is_comm
        else:
            kernel_starts, kernel_ends, comm = starts[is_kernel], ends[is_kernel], is_comm[is_kernel]
        self.count += len(kernel_starts)
        self.kernels.feed(kernel_starts, kernel_ends)
        if comm.any():
            rest = ~comm
            self.comm.feed(kernel_starts[comm], kernel_ends[comm])
            kernel_starts, kernel_ends = kernel_starts[rest], kernel_ends[rest]
        self.compute_sum += float((kernel_ends - kernel_starts).sum())
        self.compute.feed(kernel_starts, kernel_ends)

    def span(self, device: str) -> Span:
        """The finished timeline."""
        return Span(
            device=device,
            window=self.everything.window,
            busy=self.everything.busy,
            kernel_busy=self.kernels.busy,
            compute=self.compute.busy,
            comm=self.comm.busy,
            exposed=max(0.0, self.kernels.busy - self.compute.busy),
            gaps=self.everything.gaps(),
            kernels=self.count,
            compute_sum=self.compute_sum,
        )
