"""nsys SQLite: several GPUs and processes, missing tables, damage; the user's file is never touched."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest

from evals.bench import synth_profiles as synth
from tools.contract import Context
from tools.part import Part
from tools.profile import nsys_sqlite
from tools.profile.read import read, summarize

KERNEL = (
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, globalPid INTEGER, "
    "correlationId INTEGER, demangledName INTEGER, graphNodeId INTEGER)"
)
STRINGS = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)"
RUNTIME = "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, correlationId INTEGER, nameId INTEGER)"


def database(
    path: Path, *statements: str, kernels: list[tuple[object, ...]] | None = None, names: dict[int, str] | None = None
) -> Path:
    db = sqlite3.connect(path)
    for statement in (STRINGS, KERNEL, *statements):
        db.execute(statement)
    db.executemany(
        "INSERT INTO StringIds VALUES (?,?)", (names or {1: "gemm_kernel", 2: "ncclDevKernel_AllReduce"}).items()
    )
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,?,?,?)", kernels or [])
    db.commit()
    db.close()
    return path


def test_the_file_does_not_change(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    synth.write_sqlite(path, 2_000)
    before = (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
    path.chmod(0o444)
    summarize(path)
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.sqlite"], "no journal, no index file"


def test_union_exposed_communication_and_gaps(tmp_path: Path) -> None:
    # compute 0–100 and 150–200; communication 50–170 beside it; then idle until 1000
    rows = [
        (0, 100, 0, 1, 1, 1, None),
        (50, 170, 0, 1, 2, 2, None),
        (150, 200, 0, 1, 3, 1, None),
        (1000, 1100, 0, 1, 4, 1, 7),
    ]
    span = summarize(database(tmp_path / "a.sqlite", kernels=rows)).spans[0]
    assert (span.window, span.busy, span.compute, span.comm) == (1100, 300, 250, 120)
    assert span.exposed == 50, "only 100–150 has no compute beside it"
    assert (span.gaps.count, span.gaps.total, span.gaps.longest) == (1, 800, 800)


def test_processes_that_both_call_their_gpu_zero_are_told_apart(tmp_path: Path) -> None:
    pid_a, pid_b = 100, 200
    rows = [(0, 100, 0, pid_a << 24, 1, 1, None), (0, 300, 0, pid_b << 24, 1, 1, None)]
    table = "CREATE TABLE TARGET_INFO_CUDA_DEVICE (pid INTEGER, cudaId INTEGER, gpuId INTEGER)"
    fill = f"INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES ({pid_a}, 0, 3), ({pid_b}, 0, 5)"
    profile = summarize(database(tmp_path / "a.sqlite", table, fill, kernels=rows))
    assert {s.device: s.busy for s in profile.spans} == {"3": 100, "5": 300}
    facts = {r.fact: r.value for r in read([Part(name="a.sqlite", path=tmp_path / "a.sqlite")], Context()).readings}
    assert facts["profile.rank_skew"] == pytest.approx(1.5)


def test_string_ids_of_any_size(tmp_path: Path) -> None:
    big = (1 << 40) + 5
    rows = [(0, 10, 0, 1, 1, big, None), (20, 50, 0, 1, 2, 1, None)]
    profile = summarize(database(tmp_path / "a.sqlite", kernels=rows, names={big: "flash_fwd_kernel", 1: "gemm"}))
    assert {k.name: (k.cls, k.total) for k in profile.kernels} == {
        "flash_fwd_kernel": ("attention", 10),
        "gemm": ("gemm", 30),
    }


def test_more_rows_than_are_sorted_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.sqlite"
    synth.write_sqlite(path, 3_000)
    whole = summarize(path)
    monkeypatch.setattr(nsys_sqlite, "SORT_ROWS", 100)
    monkeypatch.setattr(nsys_sqlite, "BLOCK", 256)
    streamed = summarize(path)
    assert streamed.kernels == whole.kernels
    assert [(s.device, s.busy, s.exposed, s.gaps.total, s.gaps.p99) for s in streamed.spans] == [
        (s.device, s.busy, s.exposed, s.gaps.total, s.gaps.p99) for s in whole.spans
    ]


def test_whole_graphs_are_busy_but_opaque(tmp_path: Path) -> None:
    graph = (
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, graphId INTEGER)"
    )
    fill = "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (0, 900, 0, 1)"
    path = database(tmp_path / "a.sqlite", graph, fill, kernels=[(900, 1000, 0, 1, 1, 1, None)])
    facts = {r.fact: r for r in read([Part(name="a.sqlite", path=path)], Context()).readings}
    assert facts["profile.gpu_busy_share"].value == 1.0
    assert facts["profile.graph_opaque_share"].value == pytest.approx(0.9)
    assert "profile.graph_launched_share" not in facts, "unknown is not zero"


def test_late_launches_explain_gaps(tmp_path: Path) -> None:
    kernels, calls = [], []
    for i in range(20):
        start = i * 1_000_000
        kernels.append((start, start + 100_000, 0, 1, i, 1, None))
        calls.append((start - (10_000 if i % 2 else 950_000), start - 5_000, i, 3))
    path = database(tmp_path / "a.sqlite", RUNTIME, kernels=kernels, names={1: "gemm", 3: "cudaLaunchKernel_v7000"})
    db = sqlite3.connect(path)
    db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?)", sorted(calls))
    db.commit()
    db.close()
    gaps = summarize(path).spans[0].gaps
    assert gaps.host_late == pytest.approx(10 / 19), "gaps 900 us; launches came 10 us or 950 us before the next kernel"


def test_missing_tables_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE other (a)")
    db.commit()
    db.close()
    problem = summarize(path).problems[0]
    assert "without any CUDA tables (other)" in problem.what
    db = sqlite3.connect(path)
    db.execute(RUNTIME)
    db.commit()
    db.close()
    assert "no kernel table" in " ".join(p.what for p in summarize(path).problems)


def test_odd_types_and_damage_keep_what_is_good(tmp_path: Path) -> None:
    rows: list[tuple[object, ...]] = [
        (0, 10, 0, 1, 1, 1, None),
        ("x", None, 0, 1, 2, 1, None),
        (20, 40, 0, 1, 3, 1, None),
    ]
    profile = summarize(database(tmp_path / "a.sqlite", kernels=rows))
    assert profile.kernel_total == 30
    assert any("1 rows hold no numbers" in p.what for p in profile.problems)
    path = tmp_path / "b.sqlite"
    synth.write_sqlite(path, 30_000)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    damaged = summarize(path)
    assert damaged.problems
    assert all(p.do for p in damaged.problems if p.severity != "note")


def test_progress_is_told_after_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tools.profile import clock

    path = tmp_path / "a.sqlite"
    synth.write_sqlite(path, 2_000)
    told: list[tuple[str, float]] = []
    summarize(path, lambda what, done: told.append((what, done)))
    assert told == [], "quick reads stay silent"
    now = iter(float(i) for i in range(10_000))
    monkeypatch.setattr(clock.time, "monotonic", lambda: next(now))
    summarize(path, lambda what, done: told.append((what, done)))
    assert told
    assert all(what == "a.sqlite" and 0 <= done <= 1 for what, done in told)
