"""Freezing an incident: masked, strict, with its line in the journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent import past
from agent.sources import Sources
from evals.record import Draft, check_line, next_id, record, scaffold
from evals.schema import LabelError, load_cases, load_label

LINE = "60 wait at 2 % KV – cap of four – raise it – nobody waits"


@pytest.fixture
def place(tmp_path: Path) -> dict[str, Path]:
    return {"cases": tmp_path / "cases", "labels": tmp_path / "labels"}


def _world(tmp_path: Path) -> Path:
    world = tmp_path / "incident"
    world.mkdir()
    (world / "server.log").write_text("INFO 10-12 client 10.4.5.6 with key sk-abcdefgh12345678\n")
    (world / "trace.sqlite").write_bytes(b"SQLite format 3\x00" + bytes(64))
    return world


def test_record_masks_and_writes_a_valid_case(tmp_path: Path, place: dict[str, Path]) -> None:
    journal = tmp_path / "journal.jsonl"
    draft = Draft(line=LINE, families=["sequence_limit"], symptom="ttft")
    made = record(Sources(paths=[_world(tmp_path)]), draft, journal=journal, **place)
    text = (made.world / "server.log").read_text()
    assert "10.4.5.6" not in text
    assert "sk-abc" not in text
    assert made.masked == 2
    assert [p.ref for p in made.problems] == ["trace.sqlite"]
    assert not (made.world / "trace.sqlite").exists()
    label = load_cases(**place)[0].label
    assert (label.main(), label.layer, label.line) == ("sequence_limit", "scheduling", LINE)
    entries, problems = past.read([journal])
    assert problems == []
    assert (entries[0].id, entries[0].line, entries[0].families) == (made.id, LINE, ["sequence_limit"])


@pytest.mark.parametrize(
    ("draft", "told"),
    [
        (Draft(line="too short"), "symptom – cause – change – effect"),
        (Draft(line=LINE), "needs --family"),
        (Draft(line=LINE, families=["gremlins"]), "closed list"),
    ],
)
def test_a_bad_draft_leaves_nothing_behind(tmp_path: Path, place: dict[str, Path], draft: Draft, told: str) -> None:
    with pytest.raises(LabelError, match=told):
        record(Sources(paths=[_world(tmp_path)]), draft, journal=tmp_path / "j", **place)
    assert not place["cases"].exists() or not list(place["cases"].iterdir())
    assert not (tmp_path / "j").exists()


def test_nothing_to_record_is_said(tmp_path: Path, place: dict[str, Path]) -> None:
    draft = Draft(line=LINE, families=["sequence_limit"])
    with pytest.raises(LabelError, match="no such file"):
        record(Sources(paths=[tmp_path / "gone"]), draft, journal=tmp_path / "j", **place)


def test_dashes_of_a_keyboard_are_taken() -> None:
    assert check_line("slow - cap -- raise it — fast") == "slow – cap – raise it – fast"


def test_scaffold_is_a_case_that_loads(place: dict[str, Path]) -> None:
    world, label = scaffold(**place)
    assert load_label(label).id == world.parent.name == "case-9000"
    assert next_id(place["cases"]) == "case-9001"
    with pytest.raises(LabelError, match="exists"):
        scaffold("case-9000", **place)
