"""Freezing an incident: masked, strict, with its line in the journal."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from agent import past
from agent.sources import Sources
from evals.record import Draft, check_line, next_id, record, scaffold
from evals.schema import LabelError, load_cases, load_label
from tests.agent.services import free_port
from tests.tools.metrics.test_live import prometheus, server
from tools.contract import Context
from tools.intake.collect import parts_of, read_all
from tools.metrics import live

__all__ = ["server"]  # a fixture

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


def test_a_live_address_keeps_the_time_of_its_pages(tmp_path: Path, place: dict[str, Path], server: str) -> None:
    draft = Draft(line=LINE, families=["sequence_limit"], symptom="ttft")
    sources = Sources(urls=[f"{server}/metrics"], window_s=2.0)
    made = record(sources, draft, journal=tmp_path / "j", **place)
    assert made.problems == []
    assert sorted(p.name for p in made.world.iterdir()) == ["metrics-000.prom", "metrics-001.prom", "scrapes.json"]
    parts, _ = parts_of([made.world])
    readings, problems, _ = read_all(parts, Context())
    facts = {r.fact: r.value for r in readings}
    assert problems == []
    assert facts["throughput.generation_tokens_per_s.mean"] == pytest.approx(100, rel=0.15)


def test_a_dead_address_leaves_no_case(tmp_path: Path, place: dict[str, Path]) -> None:
    draft = Draft(line=LINE, families=["sequence_limit"])
    gone = f"http://127.0.0.1:{free_port()}"
    for sources in (Sources(urls=[f"{gone}/metrics"]), Sources(prometheus=gone, start=1.0, end=2.0)):
        with pytest.raises(LabelError, match=r"no answer|did not answer"):
            record(sources, draft, journal=tmp_path / "j", **place)
    assert not place["cases"].exists() or not list(place["cases"].iterdir())


@pytest.mark.real
def test_a_range_of_a_real_prometheus(tmp_path: Path, place: dict[str, Path], server: str) -> None:
    with prometheus(tmp_path, server) as base:
        until = time.time() + 40
        rate = None
        while time.time() < until and rate is None:
            time.sleep(2)
            result = live.prometheus(base, 'model_name="m"', time.time() - 60, time.time())
            rate = next((r for r in result.readings if r.fact == "throughput.generation_tokens_per_s.mean"), None)
        draft = Draft(line=LINE, families=["sequence_limit"], symptom="ttft")
        sources = Sources(prometheus=base, match='model_name="m"', start=time.time() - 60, end=time.time())
        made = record(sources, draft, journal=tmp_path / "j", **place)
        with pytest.raises(LabelError, match="no vLLM or SGLang series"):
            record(
                Sources(prometheus=base, match='model_name="x"', start=time.time() - 60, end=time.time()),
                draft, journal=tmp_path / "j", **place,
            )  # fmt: skip
    assert [p.name for p in made.world.iterdir()] == ["prometheus.json"]
    facts = {r.fact: r.value for r in read_all(parts_of([made.world])[0], Context())[0]}
    assert facts["queue.running.max"] == 4
    assert facts["throughput.generation_tokens_per_s.mean"] == pytest.approx(100, rel=0.35)
