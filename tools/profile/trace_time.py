"""The time axis of a trace: unions and gaps per device, and self time of operators on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tools.profile import classify
from tools.profile.intervals import Timeline
from tools.profile.model import Kernel, Profile, Span

if TYPE_CHECKING:
    from tools.profile.trace import Collect, Gpu


def finish_spans(found: Collect, profile: Profile, names: list[str]) -> None:
    """One :class:`Span` per device, with the share of gap time that a late launch explains."""
    import numpy as np

    if not found.gpus:
        return
    comm_name = np.array([classify.kernel_class(name) == "allreduce" for name in names], dtype=bool)
    launches = _launches(found)
    for device, gpu in sorted(found.gpus.items(), key=lambda item: (len(item[0]), item[0])):
        start = np.array(gpu.start) * 1e3
        end = start + np.array(gpu.length) * 1e3
        order = np.argsort(start, kind="stable")
        kernel = np.array(gpu.kind)[order] == 0
        comm = kernel & comm_name[np.array(gpu.name)[order]]
        line = Timeline()
        line.feed(start[order], end[order], kernel, comm)
        span = line.span(device)
        span.rank = profile.rank
        _late(span, line, gpu, start, launches)
        profile.spans.append(span)


def _launches(found: Collect) -> tuple[Any, Any]:
    import numpy as np

    corr, at = np.array(found.launch_corr, dtype=np.int64), np.array(found.launch_start) * 1e3
    order = np.argsort(corr, kind="stable")
    return corr[order], at[order]


def _late(span: Span, line: Timeline, gpu: Gpu, start: Any, launches: tuple[Any, Any]) -> None:
    import numpy as np

    corr, at = launches
    if not len(corr):
        return
    by_start = np.argsort(start, kind="stable")
    late = total = 0.0
    found = 0
    for length, end in line.everything.longest:
        if length >= 1e9:
            continue
        index = int(np.searchsorted(start[by_start], end))
        if index >= len(by_start):
            continue
        wanted = gpu.corr[int(by_start[index])]
        place = int(np.searchsorted(corr, wanted))
        if wanted < 0 or place >= len(corr) or corr[place] != wanted:
            continue
        found += 1
        total += length
        if at[place] >= end - length:
            late += length
    if found >= 3 and total > 0:
        span.gaps.host_late, span.gaps.host_late_n = late / total, found


def finish_ops(found: Collect, profile: Profile, names: list[str]) -> None:
    """Self time per operator: its own duration without the operators nested in it, thread by thread."""
    import numpy as np

    if not found.op_name:
        return
    start, length = np.array(found.op_start), np.array(found.op_length)
    thread, name = np.array(found.op_thread), np.array(found.op_name)
    own = length.copy()
    order = np.lexsort((-length, start, thread))
    stack: list[tuple[float, int]] = []
    last = -1
    ends = start + length
    for i in order.tolist():
        if thread[i] != last:
            stack, last = [], thread[i]
        while stack and stack[-1][0] <= start[i]:
            stack.pop()
        if stack and ends[i] <= stack[-1][0] + 1e-3:
            own[stack[-1][1]] -= length[i]
        stack.append((float(ends[i]), i))
    counts = np.bincount(name, minlength=len(names))
    sums = np.bincount(name, weights=np.maximum(own, 0.0), minlength=len(names))
    rows = [
        Kernel(names[i], classify.kernel_class(names[i]), int(counts[i]), float(sums[i]) * 1e3)
        for i in np.flatnonzero(counts).tolist()
    ]
    profile.ops = sorted(rows, key=lambda k: -k.total)
    profile.op_total = float(sum(row.total for row in rows))
