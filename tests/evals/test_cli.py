"""The command line of evals: actions, exit statuses, messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.cli import run
from evals import actions, gate
from tests.evals.conftest import LOG, Writer, make_label

LINE = "60 wait at 2 % KV – cap of four – raise it – nobody waits"


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERDX_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("INFERDX_RUNS", str(tmp_path / "runs"))


@pytest.fixture
def where(small_set: Writer) -> list[str]:
    labels = [
        make_label("case-0001"),
        make_label("case-0002", outcome="healthy"),
        make_label("case-0003", split="holdout"),
    ]
    cases, tree = small_set(labels)
    return ["--cases", str(cases), "--labels", str(tree)]


def test_run_writes_rows_report_and_page(where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "r"
    assert run(["eval", "run", "--arm", "oracle", "--arm", "constant", "-j", "1", "--out", str(out), *where]) == 0
    shown = capsys.readouterr().out
    assert "oracle: 3 cases" in shown
    assert "McNemar" in shown
    assert {p.name for p in out.iterdir()} == {"rows.jsonl", "run.json", "report.md", "report.html"}
    rows = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    assert len(rows) == 6
    assert run(["eval", "report", str(out), *where]) == 0
    assert "oracle: family top-1 1.00" in capsys.readouterr().out


def test_gate_and_results_decide_the_status(
    where: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gate, "BASELINE", tmp_path / "baseline.json")
    monkeypatch.setattr(gate.save, "__defaults__", (tmp_path / "baseline.json",))
    monkeypatch.setattr(gate.load, "__defaults__", (tmp_path / "baseline.json",))
    monkeypatch.setattr(actions, "RESULTS", tmp_path / "RESULTS.md")
    base = ["eval", "run", "-j", "1", "--quiet", "--out", str(tmp_path / "r"), *where]
    assert run([*base, "--arm", "oracle", "--write-baseline", "--write-results"]) == 0
    assert run([*base, "--arm", "oracle", "--gate", "--check-results"]) == 0
    capsys.readouterr()
    assert run([*base, "--arm", "always-abstain", "--gate"]) == 1
    assert "FAIL family top-1" in capsys.readouterr().out
    assert run([*base, "--arm", "constant", "--check-results"]) == 1


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["eval", "run", "--arm", "orakel"], "no arm 'orakel'"),
        (["eval", "run", "case-77*"], "no case matches"),
        (["eval", "run", "--resume"], "no run to resume"),
        (["eval", "run", "--prereg", "gone.yaml"], "cannot be read"),
        (["eval", "report", "/nowhere"], "not a run"),
        (["eval"], "required: ACTION"),
    ],
)
def test_misuse_is_one_line_and_status_3(
    args: list[str], told: str, where: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    more = where if len(args) > 1 else []
    try:
        status = run([*args, *more])
    except SystemExit as stop:
        status = int(stop.code or 0)
    err = capsys.readouterr().err
    assert status == 3
    assert told in err
    assert "Traceback" not in err


def test_a_broken_label_is_named(where: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(where[3]) / "case-0001.yaml"
    path.write_text(path.read_text().replace("quality:", "qualty:"))
    assert run(["eval", "lint", *where]) == 3
    assert "case-0001.yaml" in capsys.readouterr().err


def test_lint_new_record_and_journal(where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["journal"]) == 0
    assert "no incidents yet" in capsys.readouterr().out
    world = tmp_path / "incident"
    world.mkdir()
    (world / "server.log").write_text(LOG)
    (world / "launch.txt").write_text("vllm serve m --max-num-seqs 4 --api-key sk-abcdefgh1234\n")
    args = ["eval", "record", str(world), "--line", LINE, "--family", "sequence_limit", "--symptom", "ttft", *where]
    assert run(args) == 0
    assert "1 secrets or addresses masked" in capsys.readouterr().out
    assert run(["eval", "new", *where]) == 0
    assert run(["eval", "lint", *where]) == 0
    capsys.readouterr()
    assert run(["journal"]) == 0
    assert LINE in capsys.readouterr().out
    assert run(["journal", str(world)]) == 0
    assert LINE in capsys.readouterr().out
    for form in ([], ["--md"], ["--json"]):
        run(["diagnose", str(world), *form])
        assert "nobody waits" in capsys.readouterr().out
    assert run(["journal", "--grep", "nothing like it", "--json"]) == 0
    assert capsys.readouterr().out == ""


def test_compare_and_arms(where: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", "compare", "oracle", "constant", "-j", "1", *where]) == 0
    assert "exact McNemar p" in capsys.readouterr().out
    assert run(["eval", "arms"]) == 0
    assert "rules-only" in capsys.readouterr().out
