"""Wrappers around a line come off in any order, and what they tell is kept."""

from __future__ import annotations

import pytest

from tools.logs.prefix import clock_of, parse

CASES = [
    (
        "(EngineCore_DP0 pid=42) INFO 11-28 15:27:27 [core.py:93] Hello",
        "EngineCore_DP0",
        "info",
        "core.py:93",
        "",
        "Hello",
    ),
    (
        "\x1b[1;36m(APIServer pid=1)\x1b[0;0m WARNING 11-28 15:27:15 [utils.py:2] x",
        "APIServer",
        "warning",
        "utils.py:2",
        "",
        "x",
    ),
    (
        "(APIServer pid=32) (EngineCore_0 pid=29) (VllmWorker rank=1 pid=30) INFO 11-05 12:03:01 [a.py:9] x",
        "VllmWorker rank=1",
        "info",
        "a.py:9",
        "",
        "x",
    ),
    ("INFO 11-05 12:03:01 metrics.py:349] Avg", "", "info", "metrics.py:349", "", "Avg"),
    ("(task, pid=17433) INFO 03-28 04:32:50 metrics.py:218] Avg", "task", "info", "metrics.py:218", "", "Avg"),
    ("0: INFO 05-03 00:53:42 metrics.py:229] Avg", "", "info", "metrics.py:229", "rank0", "Avg"),
    ("    INFO 01-27 19:04:12 metrics.py:467] Avg", "", "info", "metrics.py:467", "", "Avg"),
    (
        "(RayWorkerWrapper pid=593, ip=10.0.0.2) INFO 07-20 17:27:20 utils.py:737] F",
        "RayWorkerWrapper",
        "info",
        "utils.py:737",
        "",
        "F",
    ),
    ("INFO 08-22 03:02:11 engine.py: Started", "", "info", "engine.py", "", "Started"),
    ("[2026-08-01 21:40:26 DP1 TP1 EP1] Decode batch", "", "", "", "DP1 TP1 EP1", "Decode batch"),
    (
        "2024-06-04T15:32:07.873399Z  INFO text_generation_launcher: took",
        "",
        "info",
        "text_generation_launcher",
        "",
        "took",
    ),
    (
        'INFO:     10.0.0.1:3 - "GET / HTTP/1.1" 200 OK',
        "",
        "info",
        "uvicorn",
        "",
        '10.0.0.1:3 - "GET / HTTP/1.1" 200 OK',
    ),
    (
        "(E pid=1) [rank0]:W0801 17:49:10.593000 175 torch/x.py:1731] Not",
        "E",
        "warning",
        "torch/x.py:1731",
        "rank0",
        "Not",
    ),
    ("[rank3]:[E1129 16:35:26.351850364 P.cpp:607] Watchdog", "", "error", "P.cpp:607", "rank3", "Watchdog"),
    ("vllm-1  | INFO 11-28 15:27:27 [core.py:93] Hello", "vllm-1", "info", "core.py:93", "", "Hello"),
    (
        "[pod/vllm-abc/vllm] 2025-05-28T21:32:44.357Z INFO 05-28 21:32:44 [core.py:9] Hi",
        "vllm-abc/vllm",
        "info",
        "core.py:9",
        "",
        "Hi",
    ),
    (
        "2025-05-28T21:32:44.357123456Z stderr F ERROR 05-28 21:32:44 [core.py:9] Bad",
        "",
        "error",
        "core.py:9",
        "",
        "Bad",
    ),
    (
        '{"log":"INFO 11-28 15:27:27 [core.py:93] Hello\\n","stream":"stderr","time":"2025-05-28T21:32:44Z"}',
        "",
        "info",
        "core.py:93",
        "",
        "Hello",
    ),
    (
        '{"timestamp":"2026-01-01T00:00:00Z","level":"WARNING","logger":"vllm.x","message":"hot"}',
        "",
        "warning",
        "vllm.x",
        "",
        "hot",
    ),
    ("Nov 29 18:11:02 node3 kernel: NVRM: Xid", "kernel", "", "", "", "NVRM: Xid"),
    ("[ 1234.567890] NVRM: Xid", "", "", "kernel", "", "NVRM: Xid"),
    ("2024/01/01 12:00:00 [error] 123#0: *1 upstream", "", "error", "nginx", "", "upstream"),
    ("2025-01-01 12:00:00,123 - name.x - ERROR - msg", "", "error", "name.x", "", "msg"),
    ('  File "/x.py", line 1', "", "", "", "", '  File "/x.py", line 1'),
    ("| 1 | 2 |", "", "", "", "", "| 1 | 2 |"),
    (
        "Loading shards: 0% Completed | 0/4 [00:00<?, ?it/s]",
        "",
        "",
        "",
        "",
        "Loading shards: 0% Completed | 0/4 [00:00<?, ?it/s]",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_wrappers(case: tuple[str, str, str, str, str, str]) -> None:
    line = parse(case[0])
    assert (line.process, line.level, line.place, line.rank, line.text) == case[1:]


def test_clocks_of_both_ways_agree() -> None:
    assert parse("INFO 02-03 04:05:06 [a.py:1] x").time == clock_of("02-03 04:05:06", "md")
    zoned = parse("2026-01-01T02:00:00+02:00 INFO a: x")
    assert (zoned.clock, zoned.time) == ("iso", clock_of("2026-01-01 00:00:00", "iso"))
    assert clock_of("no time", "md") is None


def test_impossible_dates_give_no_time() -> None:
    assert parse("[2026-13-45 10:00:00] x").time is None
    assert parse('{"message": 5}').text == '{"message": 5}'
