"""Process tables of recorded lab runs: shares by hand from two samples, foreign work on an engine's CPUs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge import load
from tools.contract import Context
from tools.host.read import read, role_of, samples
from tools.host.sniff import sniff
from tools.part import Part

CASES = Path(__file__).parents[3] / "evals" / "cases"
LABS = sorted(CASES.glob("lab-*/world/system.txt"))


def first_samples(lab: str, count: int) -> Part:
    """The head and the first samples of a recorded table, as they stand."""
    text = (CASES / lab / "world" / "system.txt").read_text(encoding="utf-8")
    pieces = text.split("# t=")
    return Part(name="system.txt", data="# t=".join(pieces[: count + 1]).encode())


def facts(part: Part) -> dict[str, float]:
    result = read([part], Context())
    assert result.problems == []
    return {r.fact: r.value for r in result.readings}


def test_shares_by_hand_from_two_samples() -> None:
    got = facts(first_samples("lab-001", 2))
    assert got == pytest.approx(
        {
            "host.worker.cpu_cores": (33.1 + 67.3) / 2 / 100,
            "host.worker.nvcsw_per_s": (103 + 220) / 2,
            "host.worker.foreign_share": 0.0,
            "host.engine_core.cpu_cores": (1.9 + 4.2) / 2 / 100,
            "host.engine_core.nvcsw_per_s": (94 + 194) / 2,
            "host.engine_core.foreign_share": 0.0,
            "host.api_server.cpu_cores": (1.0 + 1.2) / 2 / 100,
            "host.api_server.nvcsw_per_s": (5 + 6) / 2,
            "host.api_server.foreign_share": 0.0,
            "host.rss_growth_ratio": (653 + 3287 + 745) / (652 + 3300 + 744),
            "host.cpu_idle": 0.0,
            "host.cpu_steal": (0.2 + 0.0 + 0.0 + 0.2) / 4 / 100,
            "host.other_cores": (159.3 + 126.9) / 2 / 100,
        },
        abs=1e-4,
    )


def test_a_foreign_process_on_the_worker_s_cpu_is_named_and_measured() -> None:
    result = read([first_samples("lab-005", 2)], Context())
    found = {r.fact: r for r in result.readings}
    # Three processes pinned to CPU 0, the only one the worker may use; the engine core may use two.
    first, second = 22.9 + 22.9 + 22.7, 16.7 + 16.7 + 16.9
    worker = found["host.worker.foreign_share"]
    assert worker.value == pytest.approx((first + second) / 2 / 100, abs=1e-4)
    assert found["host.engine_core.foreign_share"].value == pytest.approx((first + second) / 2 / 200, abs=1e-4)
    assert "(python3)" in worker.method
    line = (CASES / "lab-005" / "world" / "system.txt").read_text(encoding="utf-8").splitlines()[worker.source.line - 1]
    assert line.startswith("python3 ")
    assert worker.window == (5.0, 10.0)


@pytest.mark.parametrize("path", LABS, ids=lambda p: p.parents[1].name)
def test_every_recorded_table_is_read_whole(path: Path) -> None:
    part = Part(name=path.name, path=path)
    lines = dict(part.lines())
    steps = sum(line.startswith("# t=") for line in lines.values())
    rows = list(samples(part))
    assert len(rows) == steps > 1
    assert all(len(s.idle) == 2 and s.rest is not None and len(s.rows) >= 5 and s.load for s in rows)
    result = read([part], Context())
    assert result.problems == []
    known = load().facts
    for reading in result.readings:
        assert reading.fact in known
        assert reading.source.line in lines
    values = {r.fact: r.value for r in result.readings}
    assert 0 <= values["host.worker.cpu_cores"] <= 2
    assert 0 <= values["host.cpu_idle"] <= 1
    assert all(0 <= v <= 1.01 for fact, v in values.items() if fact.endswith("foreign_share"))
    assert sniff(path.name, "\n".join(lines.values())[:65536]) >= 0.85


def test_lab_tables_are_present() -> None:
    assert len(LABS) >= 20


TABLE = """\
# t=5s interval=5s
process %CPU RSS_MiB nvcsw/s cpus
VLLM::Worker 80.0 1000 10 0-3
{rows}
"""


def foreign(*rows: str) -> float:
    return facts(Part(name="t.txt", data=TABLE.format(rows="\n".join(rows)).encode()))["host.worker.foreign_share"]


def test_foreign_work_counts_only_where_it_is_pinned_to_the_engine_s_cpus() -> None:
    assert foreign("backup 100.0 10 0 1-2") == 0.25
    assert foreign("backup 100.0 10 0 2", "scan 60.0 10 0 0,3") == 0.4
    assert foreign("backup 100.0 10 0 4-5") == 0.0
    assert foreign("backup 100.0 10 0 3-4") == 0.0
    assert foreign("load-client 100.0 10 0 1", "VLLM::EngineCore 90.0 10 0 1") == 0.0


def test_the_summary_above_tops_processes_tells_idle_and_steal() -> None:
    text = (
        "top - 09:10:11 up 3 days,  load average: 5.50, 5.10, 4.90\n"
        "%Cpu(s): 30.5 us,  2.5 sy,  0.0 ni, 60.0 id,  0.0 wa,  0.0 hi,  0.0 si,  7.0 st\n"
        "    PID USER  %CPU COMMAND\n      7 me    88.0 VLLM::EngineCore\n"
    )
    got = facts(Part(name="top.txt", data=text.encode()))
    assert got["host.cpu_idle"] == pytest.approx(0.6) and got["host.cpu_steal"] == pytest.approx(0.07)
    assert got["host.engine_core.cpu_cores"] == pytest.approx(0.88)


def test_without_cpu_lists_no_share_is_claimed() -> None:
    text = "top - 10:00:00 up 1 day\n  PID USER %CPU COMMAND\n  7 root 50.0 VLLM::Worker\n  8 root 99.0 backup\n"
    got = facts(Part(name="top.txt", data=text.encode()))
    assert got == {"host.worker.cpu_cores": 0.5}


def test_names_with_spaces_and_half_lines_keep_the_good_rows() -> None:
    rows = "my other job 7.0 3 1 0\nhalf 12.0\nbroken x.y 1 1 0\n\n"
    part = Part(name="t.txt", data=TABLE.format(rows=rows).encode())
    (sample,) = samples(part)
    assert [(r.name, r.cpu) for r in sample.rows] == [("VLLM::Worker", 80.0), ("my other job", 7.0)]


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("VLLM::Worker_TP0", "worker"),
        ("sglang::scheduler_TP1", "worker"),
        ("VLLM::EngineCore", "engine_core"),
        ("vllm-APIServer", "api_server"),
        ("sglang::detokenizer", "api_server"),
        ("python3", ""),
        ("stress-ng", ""),
    ],
)
def test_roles(name: str, role: str) -> None:
    assert role_of(name) == role


def test_no_table_is_one_problem_and_other_parts_are_read() -> None:
    bad = Part(name="bad.txt", data=b"no table here\n")
    result = read([bad, first_samples("lab-001", 1)], Context())
    assert [p.ref for p in result.problems] == ["bad.txt"]
    assert {r.source.ref for r in result.readings} == {"system.txt"}
    assert sniff("bad.txt", "no table here\n") == 0.0


def test_a_cpu_list_that_no_machine_has_is_no_list() -> None:
    text = TABLE.format(rows="backup 50.0 10 0 0-99999999999").replace("0-3", "0-3,²,x")
    got = facts(Part(name="t.txt", data=text.encode()))
    assert got["host.worker.foreign_share"] == 0.0


def test_what_is_no_number_is_left_out() -> None:
    text = TABLE.format(
        rows="VLLM::Worker nan 1000 10 0-3\nVLLM::Worker inf 1000 10 0-3\nVLLM::Worker 40.0 inf nan 0-3"
    )
    text += "cpu0 usr=1.2.3% sys=0.0% idle=..%\n(rest of machine) 1.2.3\n"
    got = facts(Part(name="t.txt", data=text.encode()))
    assert got == {
        "host.worker.cpu_cores": 0.6,
        "host.worker.nvcsw_per_s": 10.0,
        "host.worker.foreign_share": 0.0,
    }


WORDS = st.sampled_from(
    [
        "# t=5s",
        "top - ",
        "process",
        "%CPU",
        "RSS_MiB",
        "nvcsw/s",
        "cpus",
        "VLLM::Worker",
        "backup",
        "nan",
        "inf",
        "1e400",
        "0-",
        "-3",
        "0-99999999999",
        "²",
        "7.5",
        "cpu0 usr=1.2.3% sys=.% idle=..%",
        "(rest of machine) 1.2.3",
        "# t=1s loadavg=.",
        "\n",
        " ",
    ]
)


@given(st.lists(WORDS, max_size=40))
@settings(max_examples=150, deadline=None)
def test_no_table_however_broken_raises(words: list[str]) -> None:
    result = read([Part(name="t.txt", data=" ".join(words).encode())], Context())
    assert all(r.value == r.value and abs(r.value) != float("inf") for r in result.readings)
