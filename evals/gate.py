"""The score gate: family top-1 may not fall by more than 0.02 on the cases of the committed baseline."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct, field

from evals.run import Finished
from evals.schema import ROOT
from evals.scorers import m01_family
from evals.scorers.base import per_case
from evals.stats import mcnemar, wilson
from evals.summary import GROUPS, Summary, of

BASELINE = ROOT / "baseline.json"
DROP = 0.02


class Baseline(Struct, kw_only=True):
    """Committed scores of one arm: case → right (1) or wrong (0) on M1, so that a review sees each flip."""

    arm: str
    knowledge: str
    set_hash: str
    top1: dict[str, float]
    right: dict[str, int]
    numbers: dict[str, float] = field(default_factory=dict)


class Verdict(Struct, kw_only=True):
    """Whether the gate holds, and the lines that say why."""

    holds: bool
    lines: list[str]


def take(finished: Finished, summary: Summary) -> Baseline:
    """The baseline of a run."""
    right = {c: int(v >= 1.0) for c, (v, _) in per_case(finished.pairs(summary.arm), m01_family.score).items()}
    numbers = {m.id: round(m.value, 4) for m in summary.groups["all"] if m.n and not m.id.startswith("M10")}
    return Baseline(
        arm=summary.arm, knowledge=finished.meta.knowledge, set_hash=finished.meta.set_hash, right=right, numbers=numbers,
        top1={name: round(of(ms, "M1").value, 4) for name, ms in summary.groups.items()},
    )  # fmt: skip


def save(baseline: Baseline, path: Path = BASELINE) -> None:
    """Write the file, one case a line."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(baseline), indent=1) + b"\n")


def load(path: Path = BASELINE) -> Baseline:
    """Read the file. Raises ``ValueError`` with what to do."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Baseline)
    except (OSError, msgspec.DecodeError) as error:
        raise ValueError(f"{path.name}: {error}; write it with inferdx eval run --write-baseline") from None


def judge(finished: Finished, summary: Summary, baseline: Baseline) -> Verdict:
    """Compare on the cases that both know; every citation must hold, every case must have been answered."""
    now = {c: int(v >= 1.0) for c, (v, _) in per_case(finished.pairs(summary.arm), m01_family.score).items()}
    lines: list[str] = []
    holds = True
    labels = {c: finished.cases[c].label for c in now}
    for name, (_, wanted) in GROUPS.items():
        if name not in ("all", "all dev", "all held out"):
            continue
        both = [c for c in now if c in baseline.right and wanted(labels[c])]
        if not both:
            continue
        was, is_ = sum(baseline.right[c] for c in both) / len(both), sum(now[c] for c in both) / len(both)
        gone, new, p = mcnemar([bool(baseline.right[c]) for c in both], [bool(now[c]) for c in both])
        low, high = wilson(is_ * len(both), len(both))
        fine = is_ >= was - DROP - 1e-9
        holds = holds and fine
        lines.append(
            f"{'ok  ' if fine else 'FAIL'} family top-1, {name}: {was:.3f} → {is_:.3f} [{low:.2f}–{high:.2f}] n {len(both)}, "
            f"lost {gone}, won {new}, McNemar p {p:.2g}"
        )
    if not lines:
        return Verdict(holds=False, lines=["FAIL the baseline shares no case with this run"])
    gone_cases = sorted(c for c in baseline.right if c not in finished.cases)
    unrun = [c for c in baseline.right if c in finished.cases and c not in now]
    if gone_cases:
        holds = False
        lines.append(f"FAIL cases of the baseline are gone from the set: {' '.join(gone_cases[:8])}")
    if unrun:
        lines.append(f"note {len(unrun)} cases of the baseline were not run, or are no incidents any more")
    cited = of(summary.groups["all"], "M5")
    if cited.n and cited.value < 1.0:
        holds = False
        lines.append(f"FAIL citation validity {cited.value:.4f}, must be 1 (n {cited.n} claims)")
    broken = [r.case for r in finished.rows if r.error]
    if broken:
        holds = False
        lines.append(f"FAIL {len(broken)} answers failed: {' '.join(sorted(set(broken))[:8])}")
    fresh = sorted(c for c in now if c not in baseline.right)
    if fresh:
        lines.append(f"note {len(fresh)} incidents are new since the baseline")
    return Verdict(holds=holds, lines=lines)
