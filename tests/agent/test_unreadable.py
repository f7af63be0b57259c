"""Metrics pages that were given and cannot be read: a lead and the pages asked again, never a verdict or "healthy"."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agent.api import diagnose

CASES = Path(__file__).parents[2] / "evals" / "cases"
# recorded incidents and controls, with logs, client results and host readings beside the pages
WORLDS = ("lab-001", "lab-003", "lab-005", "lab-007", "lab-013", "lab-014", "lab-015", "lab-018", "lab-020")


@pytest.mark.parametrize("case", WORLDS)
@pytest.mark.parametrize("page", ["", "<html><body>502 Bad Gateway</body></html>\n"])
def test_emptied_pages_turn_the_verdict_undecidable_and_ask_for_pages_first(
    case: str, page: str, tmp_path: Path
) -> None:
    world = tmp_path / "world"
    shutil.copytree(CASES / case / "world", world)
    emptied = sorted(world.glob("metrics*.prom*"))
    assert emptied
    for old in emptied:
        old.unlink()
        world.joinpath(old.name.removesuffix(".gz")).write_text(page)
    found = diagnose(world)
    assert found.outcome == "undecidable"
    assert found.probes[0].id == "vital-signs"
    assert {p.ref for p in found.problems} >= {old.name.removesuffix(".gz") for old in emptied}
