"""Readings of one profile with its source, labels and standing caveats."""

from __future__ import annotations

from typing import Any

from tools.contract import Reading, Source
from tools.profile.model import Profile

SLOWED = "a profiler was attached, which slows the host side: launches, gaps and API times are longer than in service"
NAMES = {"nsys-sqlite": "nsys export", "nsys-stats": "nsys stats", "torch-trace": "torch.profiler trace",
          "key-averages": "torch.profiler table"}  # fmt: skip


class Maker:
    """Collects readings of one profile with its source and labels."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.out: list[Reading] = []
        self.labels = {"rank": profile.rank} if profile.rank else {}
        self.base: tuple[str, ...] = (
            ("the profile is cut; what is missing is not counted",) if profile.truncated else ()
        )

    def add(
        self,
        fact: str,
        value: Any,
        method: str,
        *,
        at: str = "kernels",
        labels: dict[str, str] | None = None,
        caveats: tuple[str, ...] = (),
    ) -> None:
        """One reading; ``at`` names the table whose first line is the source."""
        if value is None:
            return
        if isinstance(value, float):
            value = float(f"{value:.6g}")
        source = Source(kind="file", ref=self.profile.ref.split("#")[0], line=self.profile.lines.get(at, 0))
        self.out.append(
            Reading(
                fact=fact,
                value=value,
                source=source,
                method=method,
                labels={**self.labels, **(labels or {})},
                caveats=self.base + caveats,
            )
        )


def quantile(values: list[float], q: float) -> float:
    """Linear interpolation between order statistics."""
    rows = sorted(values)
    at = q * (len(rows) - 1)
    low = int(at)
    high = min(low + 1, len(rows) - 1)
    return rows[low] + (rows[high] - rows[low]) * (at - low)
