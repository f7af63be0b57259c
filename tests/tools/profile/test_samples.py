"""Every sample of these kinds is read, or refused by name of what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from knowledge.loader import load
from tools.contract import Context
from tools.part import Part
from tools.profile.read import read
from tools.profile.sniff import sniff

SHARED = Path(__file__).resolve().parents[4] / "shared" / "samples"
FILES = (
    sorted(p for kind in ("nsys", "torch-trace", "perf") for p in (SHARED / kind).glob("*")) if SHARED.is_dir() else []
)
REFUSED = {
    "nvtx-sum-box.txt": "hold no rows",
    "perf-report-two-events.txt": "sched:sched_process_exec",
}
PARTIAL = {
    "traceevent-simple-partial.json": "ends in the middle",
    "traceevent-simple-partial-trailing-comma.json": "ends in the middle",
    "speedscope-unclosed-frame.json": "never closed",
    "collapsed-simple-with-invalids.txt": "1 of 6 lines",
    "traceevent-zero-duration-events.json": "1 of 7 events",
    "key_averages-vllm-v0.txt": "37%",
}


@pytest.mark.skipif(not FILES, reason="the sample files beside the project are absent")
def test_each_sample_is_read_or_refused_by_name() -> None:
    known = load().facts
    assert len(FILES) >= 38
    for path in FILES:
        part = Part(name=path.name, path=path)
        head = part.head().decode(part.encoding().removesuffix("-le"), "replace")
        assert sniff(path.name, head) >= 0.8, path.name
        result = read([part], Context())
        problems = " ".join(p.line() for p in result.problems)
        if path.name in REFUSED:
            assert REFUSED[path.name] in problems
            assert result.readings == []
            continue
        assert len(result.readings) >= 2, path.name
        assert PARTIAL.get(path.name, "") in problems
        assert {r.fact for r in result.readings} <= known.keys()
        assert all(r.source.ref == path.name and r.method for r in result.readings)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the sample files beside the project are absent")
def test_other_kinds_are_not_taken_for_profiles() -> None:
    for path in SHARED.rglob("*"):
        if path.is_file() and path.parent.name not in ("nsys", "torch-trace", "perf"):
            part = Part(name=path.name, path=path)
            head = part.head().decode(part.encoding().removesuffix("-le"), "replace")
            assert sniff(path.name, head) == 0.0, path


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("report1.nsys-rep", b"\x00\x01\x02binary" * 20, "only nsys reads"),
        ("old.qdrep", b"\x00\x01\x02binary" * 20, "only nsys reads"),
        ("a.ncu-rep", b"NVR\x00", "ncu's own format"),
        ("perf.data", b"PERFILE2" + b"\0" * 100, "perf.data"),
        ("x.json", b"", "empty"),
        ("x.json", b'{"schemaVersion": 1, "deviceProperties": []}', 'no "traceEvents" array'),
        ("x.json", b'{"schemaVersion": 1, "traceEv', "cut before the first event"),
        ("x.json", b'{"traceEvents": []}', "no GPU events"),
        ("x.json.gz", b"\x1f\x8b\x08\x00corrupt", ""),
        ("x.sqlite", b"SQLite format 3\x00" + b"\xff" * 5000, "database"),
        ("x.txt", b"hello, this is prose", "no table, trace or stacks"),
        ("e.json", b'{"Type": 1, "CudaEvent": {}}\n', "JSON lines"),
    ],
)
def test_refusals_say_what_is_wrong(name: str, data: bytes, words: str) -> None:
    result = read([Part(name=name, data=data)], Context())
    assert result.problems, name
    assert words in " ".join(p.line() for p in result.problems)
    assert [r for r in result.readings if r.fact.startswith("profile.kernel")] == []
