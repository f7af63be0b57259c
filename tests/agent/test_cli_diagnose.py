"""``inferdx diagnose`` at the command line: exit status, and bad input in one clear line that costs nothing else."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.cli import run

ROOT = Path(__file__).parents[2]
CASES = ROOT / "evals" / "cases"
SICK, HEALTHY = CASES / "lab-001" / "world", CASES / "lab-002" / "world"
LOG = CASES / "inc-001" / "world" / "server.log"
HTML = b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body><h1>502</h1></body></html>\n"
NOISE = bytes((i * 197 + (i >> 3) * 31) % 256 for i in range(4096))
FAILED = b"# SCRAPE FAILED: connection refused\n"

Answer = tuple[int, dict[str, Any], str]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Answer]:
    """Run the real command line: exit status, JSON answer, standard error. An escaped exception fails the test."""
    monkeypatch.setenv("INFERDX_DEBUG", "1")

    def call(*args: str | Path) -> Answer:
        status = run(["diagnose", "--json", *map(str, args)])
        said = capsys.readouterr()
        return status, json.loads(said.out) if said.out.strip() else {}, said.err

    return call


def cut_gz(whole: bytes, share: float) -> bytes:
    packed = gzip.compress(whole, mtime=0)
    return packed[: int(len(packed) * share)]


BAD: dict[str, tuple[str, bytes, str]] = {
    "empty log": ("server.log", b"", "empty file"),
    "blank log": ("server.log", b"\n \n\t\n", "empty file"),
    "empty page": ("metrics-000.prom", b"", "empty page"),
    "gzip of nothing": ("server.log.gz", gzip.compress(b"", mtime=0), "empty file"),
    "binary": ("dump.bin", NOISE, "binary data"),
    "binary as metrics": ("metrics-000.prom", NOISE, "binary data"),
    "gzip cut in its header": ("server.log.gz", cut_gz(LOG.read_bytes(), 0.03), "cut or damaged"),
    "page cut in its header": ("metrics-000.prom.gz", cut_gz(FAILED * 99, 0.2), "cut or damaged"),
    "no gzip at all": ("server.log.gz", b"\x1f\x8bnothing of the kind", "cut or damaged"),
    "page of a proxy": ("metrics-000.prom", HTML, "HTML page"),
    "page of a proxy as text": ("metrics.txt", HTML, "HTML page"),
    "failed scrape": ("metrics-000.prom", FAILED, "SCRAPE FAILED: connection refused"),
    "failed scrape as text": ("note.txt", FAILED, "SCRAPE FAILED: connection refused"),
    "other exporter": ("metrics-000.prom", b"node_load1 0.5\nnode_load5 0.4\n", "no vLLM or SGLang series"),
}


@pytest.mark.parametrize(("name", "data", "what"), BAD.values(), ids=BAD.keys())
def test_bad_input_alone_is_one_line_and_status_3(
    name: str, data: bytes, what: str, tmp_path: Path, ask: Callable[..., Answer]
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    status, answer, said = ask(path)
    assert status == 3
    assert answer["outcome"] == "undecidable"
    (line,) = said.splitlines()
    assert line.startswith(f"inferdx: {name}: ")
    assert what in line
    assert "; " in line, "it says what to do"
    assert [p["ref"] for p in answer["problems"]] == [name]


def test_bad_files_do_not_keep_good_ones_from_being_read(tmp_path: Path, ask: Callable[..., Answer]) -> None:
    folder = tmp_path / "world"
    folder.mkdir()
    for number, (name, data, _) in enumerate(BAD.values()):
        (folder / f"{number:02}-{name}").write_bytes(data)
    (folder / "good.log").write_bytes(LOG.read_bytes())
    good = {(e["fact"], str(e["value"])) for e in ask(folder / "good.log")[1]["evidence"]}
    status, answer, _ = ask(folder, tmp_path / "absent.log")
    read = {(e["fact"], str(e["value"])) for e in answer["evidence"] if e["source"].get("ref") == "good.log"}
    assert read
    assert {pair for pair in good if pair[0].startswith("log.")} <= read | {
        (e["fact"], str(e["value"])) for e in answer["evidence"]
    }
    assert status in (1, 2)
    named = {p["ref"] for p in answer["problems"]}
    assert len([n for n in named if n[:2].isdigit()]) == len(BAD)
    assert str(tmp_path / "absent.log") in named
    assert "good.log" not in named


def test_a_missing_file(tmp_path: Path, ask: Callable[..., Answer]) -> None:
    status, _, said = ask(tmp_path / "absent.log")
    assert status == 3
    assert said == f"inferdx: {tmp_path}/absent.log: no such file or folder; check the path\n"


def test_a_folder_without_files(tmp_path: Path, ask: Callable[..., Answer]) -> None:
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    status, _, said = ask(tmp_path)
    assert status == 3
    assert said == f"inferdx: {tmp_path}: folder without files; give files\n"


def test_what_is_no_regular_file(tmp_path: Path, ask: Callable[..., Answer]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert ask(tmp_path / "pipe")[0] == 3
    status, _, said = ask(tmp_path / "pipe", LOG)
    assert (status, said) == (1, "")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "latin-1"])
def test_other_encodings_read_the_same(encoding: str, tmp_path: Path, ask: Callable[..., Answer]) -> None:
    text = LOG.read_text("utf-8") + "WARNING 06-23 10:27:31 [x.py:1] r\u00e9seau d\u00e9grad\u00e9\n"
    if encoding == "utf-16-be":
        text = "\ufeff" + text
    facts = []
    for name in ("utf-8", encoding):
        path = tmp_path / name / "server.log"
        path.parent.mkdir()
        path.write_text(text, encoding=name)
        status, answer, said = ask(path)
        assert (status, said) == (1, "")
        rows = ((e["fact"], str(e["value"]).replace("\ufffd", "\u00e9")) for e in answer["evidence"])
        facts.append([row for row in rows if row[0].startswith("log.")])
    assert facts[0] == facts[1]
    assert len(facts[0]) > 3


def test_a_cut_log_keeps_what_came_before(tmp_path: Path, ask: Callable[..., Answer]) -> None:
    path = tmp_path / "server.log.gz"
    path.write_bytes(cut_gz((HEALTHY / "server.log").read_bytes(), 0.6))
    _, answer, _ = ask(path)
    assert answer["provenance"]["inputs"] == {"server.log.gz": "log"}
    assert len(answer["evidence"]) > 20
    (problem,) = answer["problems"]
    assert "ends early" in problem["what"]
    assert problem["do"]


def test_a_cut_page_keeps_its_good_lines(tmp_path: Path, ask: Callable[..., Answer]) -> None:
    page = gzip.decompress((HEALTHY / "metrics-004.prom.gz").read_bytes())
    path = tmp_path / "metrics-004.prom.gz"
    path.write_bytes(cut_gz(page, 0.6))
    _, answer, _ = ask(path)
    (problem,) = answer["problems"]
    assert "cut or damaged" in problem["what"]
    assert any(e["fact"] == "engine.name" and e["value"] == "vllm" for e in answer["evidence"])


def test_a_cut_report_is_named(tmp_path: Path, ask: Callable[..., Answer]) -> None:
    path = tmp_path / "report.md.gz"
    path.write_bytes(cut_gz(b"".join(b"Request %d waits for its first token.\n" % (i * i) for i in range(400)), 0.5))
    (problem,) = ask(path)[1]["problems"]
    assert "cut or damaged" in problem["what"]
    assert "copy it again" in problem["do"]


def test_a_saved_web_page_is_read_as_words_and_says_so(tmp_path: Path, ask: Callable[..., Answer]) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(HTML)
    (problem,) = ask(path)[1]["problems"]
    assert "HTML page" in problem["what"]
    assert "/metrics" in problem["do"]


@pytest.mark.parametrize(("world", "outcome", "status"), [(HEALTHY, "healthy", 0), (SICK, "incident", 1)])
def test_status_of_a_verdict(world: Path, outcome: str, status: int, ask: Callable[..., Answer]) -> None:
    got, answer, said = ask(world)
    assert (got, answer["outcome"], said) == (status, outcome, "")


def test_status_of_too_little_evidence(ask: Callable[..., Answer]) -> None:
    got, answer, _ = ask(HEALTHY / "launch.txt")
    assert (got, answer["outcome"]) == (2, "undecidable")


@pytest.mark.parametrize(
    ("args", "word"),
    [
        ([], "nothing to diagnose"),
        (["--slo", "ttft_p99", LOG], "write ttft_p99=2s"),
        (["--slo", "ttft_p99=soon", LOG], "soon"),
        (["--for", "ever", LOG], "ever"),
        (["--prometheus", "http://127.0.0.1:9", "--from", "yesterday"], "yesterday"),
        (["--baseline", "/absent/folder", LOG], "/absent/folder: no such file or folder; check the path"),
        (["--knowledge", "/absent/folder", LOG], "/absent/folder: no such folder; check the path"),
    ],
)
def test_usage_errors(args: list[str | Path], word: str, ask: Callable[..., Answer]) -> None:
    status, answer, said = ask(*args)
    assert (status, answer) == (3, {})
    assert word in said
    assert len(said.splitlines()) == 1


def test_a_baseline_without_files_is_not_silently_left_out(tmp_path: Path, ask: Callable[..., Answer]) -> None:
    status, _, said = ask("--baseline", tmp_path, LOG)
    assert status == 3
    assert "folder without files" in said


def test_an_unknown_option(ask: Callable[..., Answer], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        ask("--sideways")
    assert ended.value.code == 3
    assert "--sideways" in capsys.readouterr().err


def test_the_installed_program_on_standard_input(tmp_path: Path) -> None:
    """A process of its own, as people call it: status, no traceback, good and bad input together."""
    done = subprocess.run(
        [sys.executable, "-m", "agent.main", "diagnose", "-", str(tmp_path / "absent.log")],
        input=LOG.read_bytes(), capture_output=True, cwd=ROOT, timeout=60, check=False,
        env={**os.environ, "COLUMNS": "80", "INFERDX_DEBUG": ""},
    )  # fmt: skip
    out = done.stdout.decode()
    assert done.returncode == 1
    assert done.stderr == b""
    assert "no such file or folder; check the path" in " ".join(out.split())
    assert "Traceback" not in out
