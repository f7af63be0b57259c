"""From what a person brings to readings: kinds of real files, names, one broken reader, arbitrary bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge import load
from tools.contract import Context, ReadResult
from tools.intake import collect, registry
from tools.intake.collect import MAX_FILES, parts_of, read_all
from tools.intake.registry import CERTAIN, KINDS, classify, sniffer
from tools.part import Part

SAMPLES = Path(__file__).parents[3].parent / "shared" / "samples"
LAB = Path(__file__).parents[3] / "evals" / "cases" / "lab-001" / "world"
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the sample files beside the project are absent")
# Below this size each: kinds are told by the first 64 KiB, and large traces cost only time.
SMALL = 400_000
FOLDERS = {
    "bench": "bench",
    "deploy": "config",
    "gpu-smi": "gpu",
    "hf-config": "hf_config",
    "logs": "log",
    "nsys": "profile",
    "perf": "profile",
    "torch-trace": "profile",
}
LOG = "INFO 01-02 03:04:05 [core.py:1] Initializing a V1 LLM engine (v0.11.0) with config: model='m'\n" * 5


def part(text: str | bytes, name: str = "x.txt") -> Part:
    return Part(name=name, data=text.encode() if isinstance(text, str) else text)


@needs_samples
@pytest.mark.parametrize("folder", FOLDERS)
def test_real_files_are_taken_for_their_kind(folder: str) -> None:
    files = [p for p in sorted((SAMPLES / folder).iterdir()) if p.is_file() and p.stat().st_size < SMALL]
    assert len(files) >= 8
    kinds = {p.name: classify(Part(name=p.name, path=p)) for p in files}
    assert {name: kind for name, kind in kinds.items() if kind != FOLDERS[folder]} == {}


@needs_samples
def test_scrapes_of_engines_are_metrics_and_of_exporters_gpu() -> None:
    kinds = {p.name: classify(Part(name=p.name, path=p)) for p in sorted((SAMPLES / "metrics").glob("*.prom"))}
    assert len(kinds) >= 7
    for name, kind in kinds.items():
        assert kind == ("gpu" if name.startswith(("dcgm", "nvidia_gpu")) else "metrics"), name


def test_process_tables_and_prose_have_their_kinds() -> None:
    assert classify(Part(name="system.txt", path=LAB / "system.txt")) == "host"
    assert classify(part("Since Monday our answers are slow. We changed nothing.", "mail.md")) == "report"


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.txt", b"", "empty"),
        ("a.prom", b"", "metrics"),
        ("a.bin", b"\x00\x01\x02\x03" * 50, "binary"),
        ("a.txt", "Es ist langsam.".encode("utf-16"), "report"),
        ("a.log", LOG.encode("utf-16"), "log"),
    ],
)
def test_empty_binary_and_wide_text(name: str, data: bytes, kind: str) -> None:
    assert classify(part(data, name)) == kind


def test_every_kind_has_a_sniffer_that_scores_within_its_range() -> None:
    for kind in KINDS:
        for name, head in (("a.txt", ""), ("a.txt", "hello"), ("server.log", LOG), ("a.json", '{"a": 1}')):
            assert 0.0 <= sniffer(kind)(name, head) <= 1.0


@pytest.mark.parametrize(("sure", "asked"), [(CERTAIN, ["metrics"]), (CERTAIN - 0.01, ["metrics", "log"])])
def test_once_one_is_certain_no_other_is_asked(monkeypatch: pytest.MonkeyPatch, sure: float, asked: list[str]) -> None:
    seen: list[str] = []

    def fake(kind: str) -> Any:
        def sniff(name: str, head: str) -> float:
            seen.append(kind)
            return {"metrics": sure, "log": 1.0}.get(kind, 0.0)

        return sniff

    monkeypatch.setattr(registry, "sniffer", fake)
    assert classify(part("hello")) == asked[-1]
    assert seen == asked


def test_names_are_relative_sorted_and_skip_what_is_no_input(tmp_path: Path) -> None:
    for name in ("b/x.log", "a.txt", ".git/config", "b/__pycache__/c.pyc", ".DS_Store"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")
    parts, problems = parts_of([tmp_path])
    assert ([p.name for p in parts], problems) == (["a.txt", "b/x.log"], [])


def test_files_of_one_name_get_names_of_their_own(tmp_path: Path) -> None:
    paths = []
    for folder, name in (("a", "x"), ("b", "x"), ("c", "x#2"), ("d", "x")):
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / name)
        paths[-1].write_text(folder, encoding="utf-8")
    parts, problems = parts_of(paths)
    assert problems == []
    assert [p.name for p in parts] == ["x", "x#3", "x#2", "x#4"]
    assert [p.text() for p in parts] == ["a", "b", "c", "d"]


def test_missing_and_empty_places_are_one_problem_each_and_the_rest_is_kept(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")
    parts, problems = parts_of([tmp_path / "gone", tmp_path / "empty", tmp_path / "a.txt"])
    assert [p.name for p in parts] == ["a.txt"]
    assert [(p.what, p.severity) for p in problems] == [
        ("no such file or folder", "error"),
        ("folder without files", "error"),
    ]


def test_too_many_files_are_cut_aloud(tmp_path: Path) -> None:
    for n in range(MAX_FILES + 3):
        (tmp_path / f"{n:04}.txt").write_bytes(b"x")
    parts, problems = parts_of([tmp_path])
    assert len(parts) == MAX_FILES
    assert parts[-1].name == f"{MAX_FILES - 1:04}.txt"
    assert [p.what for p in problems] == [f"{MAX_FILES + 3} files, only the first {MAX_FILES} are read"]


def test_a_reader_that_breaks_is_named_once_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    real = registry.reader

    def broken(parts: list[Part], context: Context) -> ReadResult:
        raise RuntimeError("boom " * 100)

    monkeypatch.setattr(collect, "reader", lambda kind: broken if kind == "log" else real(kind))
    given_parts = [part(LOG, "a.log"), part(LOG, "b.log"), Part(name="system.txt", path=LAB / "system.txt")]
    readings, problems, kinds = read_all(given_parts, Context())
    failed = [r for r in readings if r.fact == "tool.failed"]
    assert [(r.value, r.status, r.source.ref) for r in failed] == [("log", "error", "a.log")]
    assert "RuntimeError" in failed[0].method
    assert [(p.ref, p.severity) for p in problems] == [("a.log, b.log", "error")]
    assert len(problems[0].what) < 250
    assert any(r.fact == "host.cpu_idle" and r.via == "host" for r in readings)
    assert kinds == {"a.log": "log", "b.log": "log", "system.txt": "host"}


def test_unusable_parts_are_one_problem_each(tmp_path: Path) -> None:
    parts = [part(b"", "empty.txt"), part(b"\x00\x01" * 99, "a.bin"), Part(name="gone.txt", path=tmp_path / "gone")]
    readings, problems, kinds = read_all(parts, Context())
    assert readings == []
    assert kinds == {}
    assert [p.ref for p in problems] == ["empty.txt", "a.bin", "gone.txt"]
    assert all(p.do and p.severity == "error" for p in problems)


NAMES = st.one_of(
    st.sampled_from(
        [
            "a.prom",
            "a.prom.gz",
            "server.log",
            "config.json",
            "a.csv",
            "trace.json.gz",
            "a.sqlite",
            "report.md",
            "a.yaml",
        ]
    ),
    st.text(max_size=20),
)
PIECES = st.sampled_from(
    [
        b"\x1f\x8b\x08\x00",
        b"\xff\xfe",
        b"SQLite format 3\x00",
        b'{"traceEvents": [{"ph": "X", "ts": 1e999, "dur": -1}',
        b'{"model_type": "llama", "hidden_size": "x", "num_hidden_layers": null}',
        b'# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{a="b"} NaN\n',
        b"INFO 01-02 03:04:05 [core.py:1] GPU KV cache size: 9 tokens\n",
        b"vllm serve m --max-num-seqs 0 --tensor-parallel-size x\n",
        b"services:\n  a: &a [*a]\n",
        b"process %CPU cpus\nVLLM::Worker nan 0-9\n",
        b"```\n",
        b"index, utilization.gpu [%]\n0, [N/A]\n",
        b"Mean TTFT (ms): inf\n",
        b"\n",
    ]
)
BYTES = st.lists(st.one_of(PIECES, st.binary(max_size=30)), max_size=8).map(b"".join)


@given(st.lists(st.tuples(NAMES, BYTES), max_size=3))
@settings(max_examples=50, deadline=None)
def test_no_bytes_under_any_name_break_a_reader(files: list[tuple[str, bytes]]) -> None:
    parts = [Part(name=f"{n}{name}", data=data) for n, (name, data) in enumerate(files)]
    readings, problems, kinds = read_all(parts, Context())
    assert [r.method for r in readings if r.fact == "tool.failed"] == []
    assert {r.fact for r in readings} <= set(load().facts)
    assert all(p.line() for p in problems)
    assert set(kinds.values()) <= set(KINDS)


@given(st.sampled_from(sorted(KINDS)), BYTES)
@settings(max_examples=50, deadline=None)
def test_no_reader_breaks_on_bytes_that_are_not_its_own(kind: str, data: bytes) -> None:
    readings, _, _ = read_all([Part(name="a", data=data, kind=kind)], Context())
    assert [r.method for r in readings if r.fact == "tool.failed"] == []


def test_a_complaint_around_a_launch_line_is_read_by_both_readers() -> None:
    text = "$ vllm serve m --max-num-seqs 8\nIt came up fine on the other box last week. Here it exits at once.\n"
    readings, _, _ = read_all([part(text, "note.txt")], Context())
    assert {"config.max_num_seqs", "symptom.crash"} <= {r.fact for r in readings}


SMI = (
    "==============NVSMI LOG==============\nAttached GPUs : 1\n    Performance State : P2\n    SW Power Cap : Active\n"
)
BENCH = "============ Serving Benchmark Result ============\nSuccessful requests: 10\nBenchmark duration (s): 20.0\nOutput token throughput (tok/s): 33.0\n"


@pytest.mark.parametrize("printed", [LOG, SMI, BENCH])
def test_what_a_person_writes_around_a_print_out_is_not_lost(printed: str) -> None:
    first = f"I see this with every prompt since the last update.\n\n```\n{printed}```\n"
    assert classify(part(first, "report.md")) == "report", "a sentence may begin with I"
    text = f"# Decode is slow on our new card\n\nIt got slower this morning and nobody changed a flag.\n\n```\n{printed}```\n"
    assert classify(part(text, "report.md")) == "report"
    assert classify(part(text, "note.txt")) == "report"
    assert classify(part(printed, "report.md")) != "report", "nobody wrote anything here"
    assert classify(part(text, "server.log")) == classify(part(printed, "server.log"))
    readings, _, _ = read_all([part(text, "report.md")], Context())
    assert {"report"} < {r.via for r in readings}, "both the words and the print-out are read"
