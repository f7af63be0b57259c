"""Facts of the host side: CPU samples, thread dumps, operators of a CPU-only trace, the profiler's own share."""

from __future__ import annotations

from tools.profile.classify import CLASSES
from tools.profile.cpu import hot
from tools.profile.maker import NAMES, SLOWED, Maker
from tools.profile.model import CpuProcess, Profile

CPU_SHARES = ("tokenize", "detokenize", "grammar", "serialize", "schedule", "poll", "sampling", "image", "prepare",
              "compile", "launch", "compute", "http", "wait_gpu", "collective", "other")  # fmt: skip


def host_facts(make: Maker, profile: Profile) -> None:
    """Everything a profile says about the CPU."""
    _host(make, profile)
    _ops(make, profile)
    if profile.row_overlap is not None:
        what = "device time summed over all rows of the table, over the total that it prints"
        make.add("profile.table_overlap", profile.row_overlap, what)
    if profile.os_calls:
        whole = sum(c.total for c in profile.os_calls)
        rows = [f"{100 * c.total / whole:.1f} % {c.name} ({c.count} calls)" for c in profile.os_calls[:6] if whole > 0]
        make.add(
            "profile.osrt_top",
            rows,
            "operating-system calls by time, all threads",
            at="osrt",
            caveats=("poll, futex and select are threads that wait, which is by design",),
        )


def _host(make: Maker, profile: Profile) -> None:
    snapshot = profile.kind == "pyspy-dump"
    for process in profile.cpu:
        labels = {"process": process.role or process.title[:60]} if process.role or process.title else {}
        if process.gil_holder:
            make.add("profile.cpu.gil_holder", process.gil_holder, "thread marked active+gil", at="cpu", labels=labels)
        if process.gil_pct is not None:
            make.add(
                "profile.cpu.gil_share", process.gil_pct / 100.0, "GIL line of py-spy top", at="cpu", labels=labels
            )
        if process.threads and snapshot:
            make.add(
                "profile.cpu.threads",
                process.threads[:40],
                "state and leaf of each thread, one moment",
                at="cpu",
                labels=labels,
            )
            still = all("(idle)" in t for t in process.threads)
            make.add("profile.cpu.all_idle", still, "every thread of the dump is idle", at="cpu", labels=labels)
            stuck = any(t.endswith("[collective]") for t in process.threads)
            make.add("profile.cpu.in_collective", stuck, "a thread stands in a collective", at="cpu", labels=labels,
                     caveats=("one moment: only the same stack again a minute later means stuck",))  # fmt: skip
        if process.active > 0 and not snapshot:
            _shares(make, profile, process, labels)


def _shares(make: Maker, profile: Profile, process: CpuProcess, labels: dict[str, str]) -> None:
    text = f"{process.active:.6g} active samples of {process.role or process.title[:40] or 'all processes'}"
    if profile.kind == "perf-report":
        text = "all CPU samples of the report"
    make.add("profile.cpu.samples", process.active, f"weight of {text}", at="cpu", labels=labels)
    make.add("profile.cpu.hot", hot(process), f"functions by own time, {text}", at="cpu", labels=labels)
    for share in CPU_SHARES:
        caveats = ("polling is by design; it burns a core and delays nothing",) if share == "poll" else ()
        make.add(f"profile.cpu.share.{share}", process.shares.get(share, 0.0), f"stacks at work on {share} over {text}",
                 at="cpu", labels=labels, caveats=caveats)  # fmt: skip


def _ops(make: Maker, profile: Profile) -> None:
    if profile.overhead > 0:
        whole = profile.op_total or sum(c.total for c in profile.calls) or profile.overhead
        make.add(
            "profile.overhead_share",
            min(1.0, profile.overhead / whole),
            f"profiler's own {profile.overhead / 1e6:.4g} ms",
            at="kernels",
        )
    make.add("profile.caveat_overhead", profile.kind in NAMES, SLOWED)
    if profile.kernels or not profile.ops or profile.op_total <= 0:
        return
    sums: dict[str, float] = {}
    for op in profile.ops:
        sums[op.cls] = sums.get(op.cls, 0.0) + op.total
    for cls in CLASSES:
        what = f"own time of operators of class {cls} over {profile.op_total / 1e6:.4g} ms on the CPU"
        make.add(f"profile.op_share.{cls}", sums.get(cls, 0.0) / profile.op_total, what)
    top = [f"{100 * op.total / profile.op_total:.1f} % {op.name[:80]}" for op in profile.ops[:8]]
    make.add("profile.op_hot", top, "operators by own time on the CPU")
