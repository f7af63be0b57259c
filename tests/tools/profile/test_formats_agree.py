"""The same synthetic capture as SQLite, text, box, CSV, JSON and trace says the same."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from evals.bench import synth_profiles as synth
from tools.contract import Context
from tools.part import Part
from tools.profile.read import profiles_of, read

KERNELS, GPUS = 3_600, 2
# what a form cannot hold, or holds only rounded; everything else must be there in all of them and be equal
ONLY_SQLITE = {
    "profile.gap_host_late_share", "profile.step_interval_ms.p50", "profile.memcpy.pageable_share", "profile.step_ms.p50",
    "profile.step_ms.p99", "profile.comm_max_over_median", "profile.gpu_name", "profile.kind", "profile.top_kernel",
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Part]:
    folder = tmp_path_factory.mktemp("synth")
    parts = {"sqlite": Part(name="capture.sqlite", path=folder / "capture.sqlite")}
    synth.write_sqlite(folder / "capture.sqlite", KERNELS, GPUS)
    reports = synth.reports(KERNELS, GPUS)
    for form in ("text", "box", "csv", "json"):
        out = io.StringIO()
        synth.write_reports(out, reports, form)
        parts[form] = Part(name=f"stats-{form}.txt", data=out.getvalue().encode())
    synth.write_trace(folder / "trace.json", KERNELS, GPUS)
    parts["trace"] = Part(name="trace.json", path=folder / "trace.json")
    return parts


_SEEN: dict[int, dict[tuple[str, str], Any]] = {}


def values(part: Part) -> dict[tuple[str, str], Any]:
    if id(part) in _SEEN:
        return _SEEN[id(part)]
    result = read([part], Context())
    assert [p for p in result.problems if p.severity != "note"] == []
    _SEEN[id(part)] = {(r.fact, r.labels.get("device", "")): r.value for r in result.readings}
    return _SEEN[id(part)]


@pytest.mark.parametrize("form", ["text", "box", "csv", "json"])
def test_stats_in_any_form_equal_the_sqlite(made: dict[str, Part], form: str) -> None:
    exact = values(made["sqlite"])
    stats = values(made[form])
    shared = {key: value for key, value in exact.items() if key[0] not in ONLY_SQLITE}
    assert len(shared) > 40
    missing = set(shared) - set(stats)
    assert missing == set()
    for key, value in shared.items():
        if isinstance(value, float):
            # nsys prints sizes to a thousandth of a MB
            loose = {"rel": 0.03, "abs": 1e-3} if key[0].endswith(("_mb", "_gbs")) else {"rel": 2e-3, "abs": 2e-4}
            assert stats[key] == pytest.approx(value, **loose), key
        else:
            assert stats[key] == value, key


def test_a_trace_says_the_same_of_kernels_gaps_and_graphs(made: dict[str, Part]) -> None:
    exact, trace = values(made["sqlite"]), values(made["trace"])
    wanted = [
        key for key in exact
        if key[0].startswith(("profile.kernel_share", "profile.gap_share", "profile.launch_gap", "profile.gpu_busy", "profile.idle",
                              "profile.comm_", "profile.graph_", "profile.api_", "profile.memcpy.h2d", "profile.step_", "profile.rank_"))
        and key[0] != "profile.memcpy.pageable_share"
    ]  # fmt: skip
    assert len(wanted) > 30
    for key in wanted:
        assert trace[key] == pytest.approx(exact[key], rel=2e-3, abs=2e-4), key


def test_every_form_knows_the_phase_and_the_step(made: dict[str, Part]) -> None:
    for part in made.values():
        got = values(part)
        assert got[("profile.phase_guess", "")] == "mixed"
        assert got[("profile.step_decode_share", "")] == pytest.approx(0.95, abs=0.02)
        assert got[("profile.step_batch.p50", "")] == 24
        assert got[("profile.step_prefill_tokens.p50", "")] == 2048


def test_a_report_printed_twice_is_two_profiles_and_their_difference() -> None:
    out = io.StringIO()
    synth.write_reports(out, [synth.reports(600, 1, trace=False)[1]], "text")
    slow = synth.reports(600, 1, trace=False)[1]
    for row in slow.rows:
        if "FlashAttn" in str(row[-1]):
            row[1] = int(float(str(row[1])) * 3)
    total = sum(float(str(row[1])) for row in slow.rows)
    for row in slow.rows:
        row[0] = round(100 * float(str(row[1])) / total, 1)
    synth.write_reports(out, [slow], "text")
    part = Part(name="both.txt", data=out.getvalue().encode())
    assert len(profiles_of(part)) == 2
    facts = {r.fact: r for r in read([part], Context()).readings}
    assert facts["profile.diff.kernel_time_ratio"].value > 1.3
    assert "FlashAttn" in facts["profile.diff.top_changes"].value[0]
    assert "x3.0" in facts["profile.diff.top_changes"].value[0]


def test_reports_exported_to_separate_files_are_one_profile() -> None:
    parts = []
    for report in synth.reports(600, 1, trace=False):
        out = io.StringIO()
        synth.write_reports(out, [report], "csv")
        body = "\n".join(line for line in out.getvalue().splitlines() if not line.startswith("Processing") and line)
        parts.append(Part(name=f"run1_{report.name}.csv", data=body.encode()))
    facts = {r.fact: r.value for r in read(parts, Context()).readings}
    assert facts["profile.graph_launched_share"] > 0.9
    assert facts["profile.memcpy.h2d_gbs"] > 0


def test_one_line_json_is_streamed() -> None:
    import json

    report = synth.reports(3_000, 1)[-1]
    rows = [dict(zip(report.columns, row, strict=True)) for row in report.rows]
    part = Part(name="gputrace.json", data=json.dumps(rows).encode())
    facts = {r.fact: r.value for r in read([part], Context()).readings}
    assert 0.5 < facts["profile.gpu_busy_share"] < 1.0


def test_paths_are_not_needed(tmp_path: Path) -> None:
    synth.write_sqlite(tmp_path / "a.sqlite", 500, 1)
    inside = Part(name="a.sqlite", data=(tmp_path / "a.sqlite").read_bytes())
    beside = Part(name="a.sqlite", path=tmp_path / "a.sqlite")
    assert values(inside) == values(beside)
