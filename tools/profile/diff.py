"""What changed between two profiles: per class and per kernel, in total and per launch."""

from __future__ import annotations

from msgspec import Struct, field

from tools.profile import classify
from tools.profile.model import Profile
from tools.profile.phase import guess


class Change(Struct):
    """One kernel name or class before and after; times in ns, ``None`` where it did not occur.

    ``gain`` is the change of its time per unit of work (step, else launch of the whole), in ns: positive = slower.
    """

    name: str
    cls: str
    before: float | None
    after: float | None
    count_before: int
    count_after: int
    gain: float

    @property
    def mean_ratio(self) -> float | None:
        """Mean duration after / before."""
        if not self.before or not self.after or not self.count_before or not self.count_after:
            return None
        return (self.after / self.count_after) / (self.before / self.count_before)

    def line(self) -> str:
        """One line for people."""
        if self.before is None:
            return f"new: {self.name[:90]} ({(self.after or 0) / 1e6:.2f} ms, {self.count_after} launches)"
        if self.after is None:
            return f"gone: {self.name[:90]} ({self.before / 1e6:.2f} ms, {self.count_before} launches)"
        ratio = self.mean_ratio
        mean = f", mean x{ratio:.2f}" if ratio is not None else ""
        return (
            f"{self.name[:90]}: {self.before / 1e6:.2f} → {self.after / 1e6:.2f} ms, "
            f"{self.count_before} → {self.count_after} launches{mean}"
        )


class Diff(Struct):
    """Changes, largest first, and what makes the two hard to compare. ``unit``: step, or capture."""

    unit: str
    time_ratio: float | None
    classes: list[Change] = field(default_factory=list)
    kernels: list[Change] = field(default_factory=list)
    caveats: list[str] = field(default_factory=list)


def compare(before: Profile, after: Profile, top: int = 20) -> Diff:
    """Compare kernel times. Per step when both profiles know their steps, otherwise capture by capture."""
    steps = (len(before.steps.durations), len(after.steps.durations))
    per_step = all(steps)
    scale = (1.0 / steps[0], 1.0 / steps[1]) if per_step else (1.0, 1.0)
    ratio = None
    if before.kernel_total > 0 and after.kernel_total > 0:
        ratio = (after.kernel_total * scale[1]) / (before.kernel_total * scale[0])
    out = Diff("step" if per_step else "capture", ratio)
    tables = [_sums(p) for p in (before, after)]
    out.kernels = _changes(tables[0], tables[1], scale)[:top]
    out.classes = _changes(_classes(tables[0]), _classes(tables[1]), scale)
    out.caveats = _caveats(before, after, per_step)
    return out


def _sums(profile: Profile) -> dict[str, tuple[str, int, float]]:
    out: dict[str, tuple[str, int, float]] = {}
    for kernel in profile.kernels or profile.ops:
        name = kernel.name.rstrip("…. ")[:96]
        _, count, total = out.get(name, ("", 0, 0.0))
        out[name] = (kernel.cls, count + kernel.count, total + kernel.total)
    return out


def _classes(rows: dict[str, tuple[str, int, float]]) -> dict[str, tuple[str, int, float]]:
    out: dict[str, tuple[str, int, float]] = {}
    for cls, count, total in rows.values():
        _, n, t = out.get(cls, ("", 0, 0.0))
        out[cls] = (cls, n + count, t + total)
    return out


def _changes(
    before: dict[str, tuple[str, int, float]], after: dict[str, tuple[str, int, float]], scale: tuple[float, float]
) -> list[Change]:
    out = []
    for name in before.keys() | after.keys():
        old, new = before.get(name), after.get(name)
        gain = (new[2] if new else 0.0) * scale[1] - (old[2] if old else 0.0) * scale[0]
        out.append(
            Change(
                name=name,
                cls=(new or old or ("other",))[0],
                before=old[2] if old else None,
                after=new[2] if new else None,
                count_before=old[1] if old else 0,
                count_after=new[1] if new else 0,
                gain=gain,
            )
        )
    return sorted(out, key=lambda c: (-abs(c.gain), c.name))


def _caveats(before: Profile, after: Profile, per_step: bool) -> list[str]:
    out = []
    phases = [guess(p).name for p in (before, after)]
    if phases[0] != phases[1] and "unknown" not in phases:
        out.append(
            f"the first looks like {phases[0]}, the second like {phases[1]}: the work differs, not only its speed"
        )
    if not per_step:
        a, b = before.kernel_count, after.kernel_count
        if a and b and not 0.8 <= b / a <= 1.25:
            out.append(f"{a} against {b} launches and no steps named: totals compare captures of unequal length")
    for profile in (before, after):
        if profile.listed is not None and profile.listed < 0.98:
            out.append(f"{profile.ref} lists {profile.listed:.0%} of its kernel time")
        if profile.truncated:
            out.append(f"{profile.ref} is cut")
    if before.device_name and after.device_name and before.device_name != after.device_name:
        out.append(f"different GPUs: {before.device_name} and {after.device_name}")
    return out


def api_changes(before: Profile, after: Profile) -> list[str]:
    """API kinds whose share of API time moved by more than ten points, in words."""
    shares = []
    for profile in (before, after):
        whole = sum(c.total for c in profile.calls) or 1.0
        sums: dict[str, float] = {}
        for call in profile.calls:
            kind = classify.api_kind(call.name)
            sums[kind] = sums.get(kind, 0.0) + call.total / whole
        shares.append(sums)
    if not before.calls or not after.calls:
        return []
    kinds = sorted(shares[0].keys() | shares[1].keys())
    moved = [(k, shares[0].get(k, 0.0), shares[1].get(k, 0.0)) for k in kinds]
    return [f"{k}: {a:.0%} → {b:.0%} of API time" for k, a, b in moved if abs(a - b) > 0.10]
