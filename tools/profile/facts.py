"""A :class:`Profile` → readings of the vocabulary in ``knowledge/facts/profile.yaml``."""

from __future__ import annotations

from tools.contract import Reading
from tools.profile.classify import CLASSES
from tools.profile.facts_host import host_facts
from tools.profile.maker import NAMES, SLOWED, Maker, quantile
from tools.profile.model import Profile, Span
from tools.profile.phase import guess

SHORT_NS = 5_000.0


def readings(profile: Profile) -> list[Reading]:
    """Everything a profile says. What it does not hold is not in the list."""
    make = Maker(profile)
    if profile.empty():
        return []
    make.add("profile.kind", profile.kind, f"recognised as {profile.kind}", at="kernels")
    _kernels(make, profile)
    _timeline(make, profile)
    _api(make, profile)
    _copies(make, profile)
    _steps(make, profile)
    host_facts(make, profile)
    for row in profile.ncu:
        for metric, value in sorted(row.metrics.items()):
            make.add(
                f"profile.ncu.{metric}",
                value,
                f"ncu on {row.kernel[:80]}",
                at="ncu",
                labels={"kernel": row.kernel[:80]},
            )
    if profile.tuned:
        gains = [default / tuned - 1.0 for _, default, tuned in profile.tuned]
        what = f"default over tuned kernel time − 1 at {len(gains)} shapes, from {min(gains):+.1%} to {max(gains):+.1%}"
        make.add("profile.tuned_kernel_gain", quantile(gains, 0.5), f"median of {what}")
        make.add("profile.tuned_kernel_gain_max", max(gains), f"largest of {what}")
    if profile.truncated:
        make.add("profile.truncated", True, "the file ends in the middle")
    if profile.device_name:
        make.add("profile.gpu_name", profile.device_name, "device named in the profile")
    return make.out


def _kernels(make: Maker, profile: Profile) -> None:
    whole = profile.kernel_total
    if not profile.kernels or whole <= 0:
        return
    total = f"{whole / 1e9:.4g} s of kernel time in {NAMES.get(profile.kind, profile.kind)}"
    partial = profile.listed is not None and profile.listed < 0.98
    caveats: tuple[str, ...] = (f"only {profile.listed:.0%} of the kernel time is listed",) if partial else ()
    shares = profile.class_share
    for cls in CLASSES:
        if cls in shares or not partial:
            what = f"kernels of class {cls} over {total}"
            extra = ("kernel time of collectives includes waiting for the slowest rank",) if cls == "allreduce" else ()
            make.add(f"profile.kernel_share.{cls}", shares.get(cls, 0.0), what, caveats=caveats + extra)
    make.add(
        "profile.kernel_time_s",
        whole / 1e9,
        "sum of kernel durations (kernels that overlap count twice)",
        caveats=caveats,
    )
    count = profile.kernel_count
    make.add("profile.kernel_count", count, "launches in the rows listed", caveats=caveats)
    listed = sum(k.total for k in profile.kernels)
    make.add(
        "profile.kernel_us.mean", listed / count / 1e3, f"{listed / 1e3:.6g} us over {count} launches", caveats=caveats
    )
    short = sum(k.count for k in profile.kernels if k.mean < SHORT_NS)
    what = f"{short} of {count} launches are of kernels with a mean below {SHORT_NS / 1e3:g} us"
    make.add("profile.kernels_short_share", short / count, what, caveats=caveats)
    top = profile.kernels[0]
    make.add("profile.top_kernel", top.name[:160], f"{top.total / whole:.1%} of {total}", at="kernels")
    make.add("profile.top_kernel_share", top.total / whole, f"{top.name[:80]} over {total}")
    comm = [k for k in profile.kernels if k.cls == "allreduce" and k.longest and k.median]
    if comm:
        worst = max(comm, key=lambda k: (k.longest or 0) / (k.median or 1))
        ratio = (worst.longest or 0) / (worst.median or 1)
        make.add("profile.comm_max_over_median", ratio, f"longest over median of {worst.name[:80]}")
    phase = guess(profile)
    if phase.name != "unknown":
        doubt = () if phase.sure >= 0.9 else ("a guess from kernel names",)
        make.add("profile.phase_guess", phase.name, phase.why, caveats=doubt)
        make.add("profile.phase_confidence", phase.sure, phase.why)
    if profile.graph_share is not None:
        what = "kernels launched from CUDA graphs over all kernels (by node id, else launches without a launch call)"
        make.add("profile.graph_launched_share", profile.graph_share, what)


def _timeline(make: Maker, profile: Profile) -> None:
    if profile.graph_opaque is not None:
        what = "time in graphs that were traced as a whole, over all GPU time"
        make.add(
            "profile.graph_opaque_share",
            profile.graph_opaque,
            what,
            caveats=("kernels inside such graphs are not seen",),
        )
    for span in profile.spans:
        if span.window > 0:
            _span(make, profile, span)
    skew = [s for s in profile.spans if s.compute_sum > 0]
    if len(skew) > 1:
        _skew(make, [(s.device, s.compute_sum) for s in skew], "device")


def _skew(make: Maker, rows: list[tuple[str, float]], what: str) -> None:
    values = [value for _, value in rows]
    mean = sum(values) / len(values)
    slow = max(rows, key=lambda r: r[1])[0]
    text = (
        f"most over mean of compute time (kernels that do not communicate) on {len(rows)} {what}s; most: {what} {slow}"
    )
    make.add("profile.rank_skew", max(values) / mean, text, at="trace")


def _span(make: Maker, profile: Profile, span: Span) -> None:
    labels = {"device": span.device}
    window = span.window
    text = f"{window / 1e9:.4g} s from first to last GPU work on device {span.device}"
    pause = (
        (f"one pause of {span.gaps.longest / 1e9:.3g} s is in the window",) if span.gaps.longest > 0.2 * window else ()
    )
    slowed = (*pause, SLOWED)
    busy = min(1.0, span.busy / window)
    make.add(
        "profile.gpu_busy_share",
        busy,
        f"union of kernels, copies and memsets over {text}",
        at="trace",
        labels=labels,
        caveats=slowed,
    )
    make.add("profile.idle_share", 1.0 - busy, f"1 − union over {text}", at="trace", labels=labels, caveats=slowed)
    if span.kernel_busy > 0:
        what = f"communication with no other kernel beside it over {text}"
        make.add("profile.comm_exposed_share", span.exposed / window, what, at="trace", labels=labels)
        if span.comm > 0:
            hidden = max(0.0, span.comm - span.exposed) / span.comm
            make.add(
                "profile.comm_overlap_share",
                hidden,
                "communication time hidden behind other kernels",
                at="trace",
                labels=labels,
            )
    gaps = span.gaps
    if not gaps.count:
        return
    n = f"{gaps.count} idle gaps on device {span.device}"
    make.add("profile.launch_gap_us.p50", gaps.p50 / 1e3, f"median of {n}", at="trace", labels=labels, caveats=slowed)
    make.add(
        "profile.launch_gap_us.p99",
        gaps.p99 / 1e3,
        f"99th percentile of {n}",
        at="trace",
        labels=labels,
        caveats=slowed,
    )
    make.add("profile.longest_gap_ms", gaps.longest / 1e6, f"longest of {n}", at="trace", labels=labels, caveats=slowed)
    for name, value, band in (
        ("launch", gaps.launch, "< 10 us"),
        ("step", gaps.step, "10 us–1 ms"),
        ("stall", gaps.stall, "≥ 1 ms"),
    ):
        make.add(
            f"profile.gap_share.{name}",
            value / window,
            f"gaps of {band} over {text}",
            at="trace",
            labels=labels,
            caveats=slowed,
        )
    if gaps.host_late is not None:
        what = f"of the {gaps.host_late_n} longest gaps, time share whose next launch was called after the GPU ran dry"
        make.add("profile.gap_host_late_share", gaps.host_late, what, at="trace", labels=labels, caveats=slowed)


def _api(make: Maker, profile: Profile) -> None:
    whole = sum(c.total for c in profile.calls)
    if whole <= 0:
        return
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    for call in profile.calls:
        sums[call.kind] = sums.get(call.kind, 0.0) + call.total
        counts[call.kind] = counts.get(call.kind, 0) + call.count
    text = f"{whole / 1e9:.4g} s in GPU API calls (all threads)"

    def share(fact: str, *kinds: str, caveats: tuple[str, ...] = ()) -> None:
        value = sum(sums.get(k, 0.0) for k in kinds)
        n = sum(counts.get(k, 0) for k in kinds)
        make.add(
            fact,
            value / whole,
            f"{n} calls of kind {', '.join(kinds)} over {text}",
            at="api",
            caveats=(SLOWED, *caveats),
        )

    waiting = ("a host that waits for the GPU is normal when the GPU is the limit",)
    share("profile.api_sync_share", "sync", caveats=waiting)
    share("profile.api_launch_share", "launch", "graph_launch")
    share("profile.api_memcpy_share", "memcpy", "memcpy_async", caveats=waiting)
    share("profile.api_alloc_share", "alloc")
    share("profile.api_module_load_share", "module_load")
    started = sum(sums.get(k, 0.0) for k in ("alloc", "module_load", "context")) / whole
    make.add(
        "profile.startup_in_sample",
        started > 0.3,
        f"allocation, context and module loading take {started:.0%} of {text}",
        at="api",
    )
    launches = counts.get("launch", 0)
    if launches:
        mean = sums["launch"] / launches / 1e3
        make.add("profile.api_launch_us.mean", mean, f"mean of {launches} launch calls", at="api", caveats=(SLOWED,))
        steps = len(profile.steps.durations)
        if steps and profile.kind != "key-averages":
            what = f"{launches} launch calls over {steps} steps"
            make.add("profile.launches_per_step", launches / steps, what, at="api")


def _copies(make: Maker, profile: Profile) -> None:
    if not profile.copies:
        return
    copied = sum(c.total for c in profile.copies)
    whole = copied + profile.kernel_total
    for copy in profile.copies:
        if copy.kind not in ("h2d", "d2h", "d2d", "p2p", "set"):
            continue
        text = f"{copy.count} operations, {copy.total / 1e6:.4g} ms of {whole / 1e6:.4g} ms GPU time"
        if profile.kernel_total > 0 and copy.count:
            make.add(f"profile.memcpy.{copy.kind}_share", copy.total / whole, text, at="mem_time")
        if copy.size is not None:
            make.add(
                f"profile.memcpy.{copy.kind}_mb",
                copy.size / 1e6,
                f"bytes of {copy.count or 'the'} operations",
                at="mem_size",
            )
            if copy.total > 0 and copy.kind in ("h2d", "d2h", "p2p"):
                rate = f"{copy.size / 1e6:.4g} MB in {copy.total / 1e6:.4g} ms of copying"
                make.add(f"profile.memcpy.{copy.kind}_gbs", copy.size / copy.total, rate, at="mem_size")
    crossing = [c for c in profile.copies if c.kind in ("h2d", "d2h") and c.pageable is not None]
    count = sum(c.count for c in crossing)
    if count:
        pageable = sum(c.pageable or 0 for c in crossing)
        what = f"{pageable} of {count} copies between host and device use memory that is not pinned"
        make.add("profile.memcpy.pageable_share", pageable / count, what, at="mem_time")


def _steps(make: Maker, profile: Profile) -> None:
    steps = profile.steps
    if not steps.durations:
        return
    n = f"{len(steps.durations)} step ranges"
    make.add("profile.step_count", len(steps.durations), n, at="nvtx")
    make.add(
        "profile.step_ms.p50", quantile(steps.durations, 0.5) / 1e6, f"median of {n}", at="nvtx", caveats=(SLOWED,)
    )
    make.add(
        "profile.step_ms.p99",
        quantile(steps.durations, 0.99) / 1e6,
        f"99th percentile of {n}",
        at="nvtx",
        caveats=(SLOWED,),
    )
    if steps.periods:
        what = f"median start-to-start of {n}"
        make.add("profile.step_interval_ms.p50", quantile(steps.periods, 0.5) / 1e6, what, at="nvtx", caveats=(SLOWED,))
    told = steps.decode_only + steps.prefill
    if told:
        make.add(
            "profile.step_decode_share",
            steps.decode_only / told,
            f"{steps.decode_only} of {told} steps are decode only",
            at="nvtx",
        )
    if steps.batch:
        make.add(
            "profile.step_batch.p50",
            quantile([float(b) for b in steps.batch], 0.5),
            f"decode requests a step, {n}",
            at="nvtx",
        )
    if steps.prefill_tokens:
        what = f"prefill tokens a step that has any, {len(steps.prefill_tokens)} steps"
        make.add(
            "profile.step_prefill_tokens.p50", quantile([float(t) for t in steps.prefill_tokens], 0.5), what, at="nvtx"
        )
