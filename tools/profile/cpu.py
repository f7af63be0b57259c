"""Host time: stacks of samples → shares per process. Waiting is not work, and polling burns CPU by design."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tools.profile import classify
from tools.profile.model import CpuProcess, Profile

_LINE = re.compile(r":\d+\)$")
_MAX_DEPTH = 80
_MAX_FRAMES = 50_000


class Samples:
    """Collects weighted stacks. ``shares`` of a process are sums of weights until :meth:`into`."""

    def __init__(self) -> None:
        self.processes: dict[str, CpuProcess] = {}

    def process(self, title: str) -> CpuProcess:
        """The process of a title, made on first use."""
        if title not in self.processes:
            self.processes[title] = CpuProcess(title=title, role=classify.role_of(title))
        return self.processes[title]

    def add(self, title: str, leaf_first: Sequence[str], weight: float, *, idle: bool = False) -> str:
        """Take one stack; returns its share. ``idle`` stacks, and those that block, are not active."""
        if not leaf_first or weight <= 0:
            return ""
        process = self.process(title)
        process.samples += weight
        share = self.share(leaf_first)
        if not process.role:
            process.role = next((r for r in map(classify.frame_role, leaf_first[-12:]) if r), "")
        if idle or share == "wait":
            return "wait"
        process.active += weight
        share = share or "other"
        process.shares[share] = process.shares.get(share, 0.0) + weight
        own = _LINE.sub(")", leaf_first[0])
        if own in process.self_by_frame or len(process.self_by_frame) < _MAX_FRAMES:
            process.self_by_frame[own] = process.self_by_frame.get(own, 0.0) + weight
        for frame in {_LINE.sub(")", f) for f in leaf_first[:_MAX_DEPTH]}:
            if frame in process.total_by_frame or len(process.total_by_frame) < _MAX_FRAMES:
                process.total_by_frame[frame] = process.total_by_frame.get(frame, 0.0) + weight
        return share

    @staticmethod
    def share(leaf_first: Sequence[str]) -> str:
        """The first frame from the leaf that says what it works on decides."""
        return next((s for s in map(classify.frame_share, leaf_first[:_MAX_DEPTH]) if s), "")

    def into(self, profile: Profile, whole: float = 0.0) -> None:
        """Turn sums into shares of active time (0–1), or of ``whole`` where a report lists only its top rows."""
        for process in self.processes.values():
            process.active = whole if whole and process.active else process.active
            if process.active > 0:
                process.shares = {k: v / process.active for k, v in process.shares.items()}
        profile.cpu = sorted(self.processes.values(), key=lambda p: -p.active)


def hot(process: CpuProcess, top: int = 8) -> list[str]:
    """The functions that ran themselves most, with their share of active time."""
    if process.active <= 0:
        return []
    rows = sorted(process.self_by_frame.items(), key=lambda item: -item[1])[:top]
    return [f"{100 * weight / process.active:.1f} % {frame}" for frame, weight in rows]
