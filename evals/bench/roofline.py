"""Errors of the typical estimate and violations of the floors on the shipped public points.

Run: ``python -m evals.bench.roofline`` (no network, no GPU). ``unseen`` points were found after the constants were
set; the other two groups are halves by a hash of the id.
"""

from __future__ import annotations

import hashlib
import statistics
from pathlib import Path
from typing import Any

from msgspec import Struct

from knowledge.loader import read_yaml
from tools.roofline.points import evaluate

FOLDER = Path(__file__).parent / "roofline_points"


class Score(Struct, frozen=True, kw_only=True):
    """Errors are absolute shares of the measurement; violations list point ids."""

    half: str
    count: int
    median: float
    mean: float
    hard: tuple[str, ...]
    expected: tuple[str, ...]


def load() -> list[dict[str, Any]]:
    """All shipped points with the file they stand in."""
    out: list[dict[str, Any]] = []
    for path in sorted(FOLDER.glob("*.yaml")):
        out.extend({**row, "file": path.name} for row in read_yaml(path))
    return out


def half_of(row: dict[str, Any]) -> str:
    """``calibrate``, ``validate`` or ``unseen``."""
    if row["file"] == "unseen.yaml":
        return "unseen"
    return "validate" if int(hashlib.sha256(row["id"].encode()).hexdigest(), 16) % 2 else "calibrate"


def score(rows: list[dict[str, Any]]) -> list[Score]:
    """One score per group. Points with identical prompts count for the hard floor only."""
    out = []
    for half in ("calibrate", "validate", "unseen"):
        errors: list[float] = []
        hard: list[str] = []
        expected: list[str] = []
        for row in rows:
            if half_of(row) != half:
                continue
            result = evaluate(row, {})
            seen = row["measured_ms"]
            if result["hard_ms"] > seen:
                hard.append(row["id"])
            if row.get("routing"):
                continue
            if result["expected_ms"] > seen:
                expected.append(row["id"])
            errors.append(abs(result["typical_ms"] / seen - 1.0))
        out.append(
            Score(
                half=half,
                count=len(errors),
                median=statistics.median(errors),
                mean=statistics.fmean(errors),
                hard=tuple(hard),
                expected=tuple(expected),
            )
        )
    return out


def main() -> None:
    """Print all groups."""
    for one in score(load()):
        print(
            f"{one.half}: n {one.count}, median error {one.median:.3f}, mean {one.mean:.3f}, "
            f"hard floor violated {len(one.hard)}, expected {len(one.expected)}"
        )


if __name__ == "__main__":
    main()
