"""A tuning benchmark of one kernel: time with the default and with the tuned configuration, a row a shape."""

from __future__ import annotations

from tools.cells import cells as cells_of
from tools.contract import Problem
from tools.part import Part
from tools.profile.model import Profile
from tools.profile.numbers import number


def read_tuning(part: Part) -> Profile:
    """CSV with the columns shape, default, tuned (any unit, the same in both)."""
    profile = Profile(ref=part.name, kind="tuning")
    header = False
    for number_, line in part.lines(20_000):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = cells_of(line)
        if not header:
            header = True
            profile.lines["kernels"] = number_
            continue
        default, tuned = (number(cells[i]) if i < len(cells) else None for i in (1, 2))
        if default and tuned and default > 0 and tuned > 0:
            profile.tuned.append((cells[0].strip(), default, tuned))
    if not profile.tuned:
        profile.problems.append(
            Problem(ref=part.name, what="a tuning table without rows of two times", severity="error")
        )
    return profile
