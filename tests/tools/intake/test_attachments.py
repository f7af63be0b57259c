"""A report that points to a file nobody gave: one line says so, and words alone name no cause."""

from __future__ import annotations

import time

import pytest

from agent.api import diagnose
from tools.intake.attachments import missing
from tools.part import Part


def named(text: str, *given: str) -> list[str]:
    report = Part(name="report.md", data=text.encode())
    readings, problems = missing([report], [report, *(Part(name=name, data=b"x") for name in given)])
    assert len(readings) == len(problems)
    for reading in readings:
        assert reading.source.span in text and reading.source.line >= 1
    return [str(r.value) for r in readings]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The last lines are in router.log.", ["router.log"]),
        ("See `bench.txt` and attached metrics.json", ["bench.txt", "metrics.json"]),
        ("报错贴在 server.log 里。", ["server.log"]),
        ("vllm serve m --config in settings.json", []),
        ("```\nsee notes.txt\n```", []),
        ("as set in config.json of the model", []),
        ("we got 12.5 in version 0.8.5 of it", []),
        ("", []),
    ],
)
def test_what_is_pointed_to(text: str, names: list[str]) -> None:
    assert named(text) == names


def test_a_file_that_was_given_is_not_missing_whatever_its_folder_case_or_packing() -> None:
    text = "Numbers are in Bench.txt, the page is in metrics-000.prom, the log in server.log."
    assert named(text, "run/bench.txt", "metrics-000.prom.gz") == ["server.log"]


def test_many_names_take_linear_time_and_few_lines() -> None:
    text = "see " * 50_000 + "\n".join(f"see file{n}.log" for n in range(5000))
    begin = time.process_time()
    assert len(named(text)) == 8
    assert time.process_time() - begin < 2.0


def test_words_alone_name_no_cause_while_a_file_they_point_to_is_missing() -> None:
    words = (
        "Since the upgrade the KV cache usage sits at 100 %, requests are preempted and recomputed all the time, "
        "throughput collapses and TPOT p99 is terrible. We run out of KV blocks under load."
    )
    whole = diagnose(text=words)
    assert whole.outcome == "incident"
    found = diagnose(text=f"{words} The figures are in bench.txt.")
    assert found.outcome == "undecidable"
    assert found.causes[0].family == whole.causes[0].family
    assert found.probes[0].id == "missing-files" and "bench.txt" in found.probes[0].ask
    assert any("bench.txt" in p.what for p in found.problems)
