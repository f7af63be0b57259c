"""The runner: random copies, resume after a crash, red runs, the gate."""

from __future__ import annotations

from pathlib import Path

import pytest

from evals import gate, work
from evals.arms import ARMS, Answer, Arm, Task, expand
from evals.arms.base import plain
from evals.rows import read_rows
from evals.run import Plan, RedRun, load_run, run
from evals.schema import load_cases
from evals.summary import compare, summarise
from tests.evals.conftest import Writer, make_label


@pytest.fixture
def three(small_set: Writer) -> tuple[Path, Path]:
    return small_set(
        [make_label("case-0001"), make_label("case-0002", split="holdout"), make_label("case-0003", outcome="healthy")]
    )


def plan(three: tuple[Path, Path], folder: Path, *arms: str, **more: object) -> Plan:
    return Plan(arms=list(arms), jobs=1, cases=three[0], labels=three[1], folder=folder, quiet=True, **more)  # type: ignore[arg-type]


def test_an_arm_sees_a_copy_in_a_place_that_says_nothing(
    three: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Task] = []

    def look(task: Task) -> Answer:
        seen.append(task)
        assert sorted(p.name for p in task.world.parent.rglob("*")) == ["server.log", "w"]
        (task.world / "server.log").unlink()
        return Answer(diagnosis=plain(task.known, "undecidable"))

    monkeypatch.setitem(ARMS, "look", Arm(name="look", says="", answer=look))
    run(plan(three, tmp_path / "r", "look"))
    assert len(seen) == 3
    assert not any("case-0" in str(t.world) for t in seen)
    assert all(t.label is None and t.case == "" and not t.labels for t in seen)
    assert all((c.world / "server.log").is_file() for c in load_cases(*three))


def test_resume_goes_on_where_a_crash_left_it(
    three: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    real = work.work

    def crash(shared: work.Bench, job: work.Job) -> object:
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(job.case)
        return real(shared, job)

    monkeypatch.setattr(work, "work", crash)
    folder = tmp_path / "r"
    with pytest.raises(KeyboardInterrupt):
        run(plan(three, folder, "oracle"))
    with (folder / "rows.jsonl").open("ab") as sink:
        sink.write(b'{"case": "case-00')
    assert len(read_rows(folder / "rows.jsonl")) == 2
    monkeypatch.setattr(work, "work", real)
    done = run(plan(three, folder, "oracle", resume=True))
    assert sorted(r.case for r in done.rows) == ["case-0001", "case-0002", "case-0003"]
    assert len(load_run(folder, done.cases).rows) == 3


def test_resume_refuses_another_set(three: tuple[Path, Path], tmp_path: Path) -> None:
    run(plan(three, tmp_path / "r", "oracle"))
    (three[0] / "case-0001" / "world" / "server.log").write_text("changed")
    with pytest.raises(RedRun, match="changed since"):
        run(plan(three, tmp_path / "r", "oracle", resume=True))


def test_no_cases_is_red(small_set: Writer, tmp_path: Path) -> None:
    cases, labels = small_set([])
    with pytest.raises(RedRun, match="nothing was measured"):
        run(plan((cases, labels), tmp_path / "r", "oracle"))


def test_a_pattern_that_matches_nothing_is_red(three: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(RedRun, match="case-99"):
        run(plan(three, tmp_path / "r", "oracle", only=["case-99*"]))


def test_a_missing_answer_is_red(three: tuple[Path, Path], tmp_path: Path) -> None:
    folder = tmp_path / "r"
    done = run(plan(three, folder, "oracle"))
    lines = (folder / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "rows.jsonl").write_bytes(b"".join(lines[:-1]))
    with pytest.raises(RedRun, match="missing"):
        load_run(folder, done.cases)


def test_an_arm_that_cannot_run_is_red_and_one_that_fails_scores_0(
    three: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RedRun, match=r"agent\.llm"):
        monkeypatch.setattr("evals.arms.model.SEAM", "agent.llm_that_is_not_there")
        run(plan(three, tmp_path / "a", "bare-model"))

    def boom(task: Task) -> Answer:
        raise ZeroDivisionError("secret words")

    monkeypatch.setitem(ARMS, "boom", Arm(name="boom", says="", answer=boom))
    done = run(plan(three, tmp_path / "b", "boom"))
    assert {r.case: r.error for r in done.rows}["case-0001"] == "ZeroDivisionError: secret words"
    assert {r.case: r.error for r in done.rows}["case-0002"] == "ZeroDivisionError"
    summary = summarise(done, "boom")
    assert summary.right == {"case-0001": False, "case-0002": False, "case-0003": False}


def test_gate_fails_on_a_drop_and_on_a_lost_case(three: tuple[Path, Path], tmp_path: Path) -> None:
    good = run(plan(three, tmp_path / "a", "oracle"))
    baseline = gate.take(good, summarise(good, "oracle"))
    path = tmp_path / "baseline.json"
    gate.save(baseline, path)
    assert gate.load(path) == baseline
    assert gate.judge(good, summarise(good, "oracle"), baseline).holds
    bad = run(plan(three, tmp_path / "b", "always-abstain"))
    verdict = gate.judge(bad, summarise(bad, "always-abstain"), baseline)
    assert not verdict.holds
    assert any(line.startswith("FAIL family top-1, all:") for line in verdict.lines)
    baseline.right["case-0009"] = 1
    assert any("gone from the set" in line for line in gate.judge(good, summarise(good, "oracle"), baseline).lines)
    with pytest.raises(ValueError, match="write-baseline"):
        gate.load(tmp_path / "nothing.json")


def test_arms_are_compared_on_the_same_cases(three: tuple[Path, Path], tmp_path: Path) -> None:
    done = run(plan(three, tmp_path / "r", "oracle", "constant"))
    found = compare(done, "oracle", "constant")
    assert (found.n, found.only_one, found.only_two, found.difference) == (2, 2, 0, -1.0)


def test_arm_names() -> None:
    assert len(expand(["one-layer-off"])) == 7
    assert [a.name for a in expand(["rules-only", "baselines", "rules-only"])].count("rules-only") == 1
    with pytest.raises(ValueError, match="oracle"):
        expand(["orakel"])


def test_derived_arms_read_a_world_once_and_say_the_same(
    three: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Path] = []
    real = work.gatherer

    def count(sources, context):  # type: ignore[no-untyped-def]
        reads.extend(sources.paths)
        return real(sources, context)

    monkeypatch.setattr(work, "gatherer", count)
    done = run(plan(three, tmp_path / "r", "rules-only", "scripted", "no-verify", repeat=2))
    assert len(reads) == 3
    assert done.meta.repeats == {"rules-only": 2, "scripted": 1, "no-verify": 1}
    by_arm = {arm: {r.case: r.digest for r in done.rows if r.arm == arm} for arm in done.meta.arms}
    assert by_arm["rules-only"] == by_arm["scripted"]
    again = [r for r in done.rows if r.arm == "rules-only" and r.repeat == 1]
    assert {r.case: r.digest for r in again} == by_arm["rules-only"]
    assert all(r.claims == 0 for r in again)
