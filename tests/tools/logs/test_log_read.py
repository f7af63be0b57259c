"""Exceptions, phases, endings, access lines, unknown warnings, and input that is no log."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from tests.tools.logs.test_log_series import read_text, v1, values
from tools.contract import Context
from tools.logs.read import read
from tools.logs.sniff import sniff
from tools.part import Part

START = "(APIServer pid=1) INFO 01-01 00:00:00 [api_server.py:1] vLLM API server version 0.12.0\n"
READY = "INFO:     Application startup complete.\n"
CORE = "(EngineCore_DP0 pid=7) ERROR 01-01 00:01:00 [core.py:586] "


def trace(prefix: str, function: str, error: str) -> str:
    return "".join(
        f"{prefix}{line}\n"
        for line in (
            "Traceback (most recent call last):",
            f'  File "/opt/vllm/worker.py", line 5, in {function}',
            "    run()",
            error,
        )
    )


def test_root_is_the_first_exception_that_does_not_follow_another() -> None:
    text = START + READY
    text += trace(
        "(APIServer pid=1) ", "serve", "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."
    )
    text += trace(CORE, "execute_model", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.")
    text += trace(
        "(APIServer pid=1) ", "serve", "RuntimeError: Engine core initialization failed. See root cause above."
    )
    got = values(read_text(text))
    assert got["log.first_exception"].startswith("torch.OutOfMemoryError")
    assert (got["log.first_exception_process"], got["log.followup_exceptions"]) == ("EngineCore_DP0", 2)
    assert got["log.first_exception_frame"] == "worker.py:execute_model"
    assert (got["log.oom"], got["log.oom_at"], got["log.oom_tried_gib"]) == (True, "serving", 1.5)
    assert got["log.engine_dead"] is True and got["log.ended_abruptly"] is True


def test_a_program_that_somebody_ended_raised_nothing() -> None:
    got = values_of(read([part(trace("", "serve", "KeyboardInterrupt: terminated").encode())], Context()))
    assert "log.first_exception" not in got and "log.exceptions" not in got


def test_interleaved_ranks_do_not_mix_their_tracebacks() -> None:
    one = trace("(Worker_TP0 pid=3) ", "forward", "ValueError: zero").splitlines()
    two = trace("(Worker_TP1 pid=4) ", "capture_model", "KeyError: 'one'").splitlines()
    mixed = "\n".join(line for pair in zip(one, two, strict=True) for line in pair)
    got = values(read_text(mixed))
    assert (got["log.first_exception"], got["log.exceptions"]) == ("ValueError: zero", 2)


def test_oom_at_startup_is_told_by_the_function_even_in_an_excerpt() -> None:
    got = values(read_text(trace(CORE, "capture_model", "torch.OutOfMemoryError: CUDA out of memory.")))
    assert got["log.oom_at"] == "startup"
    bare = values(read_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB."))
    assert bare["log.oom"] is True and "log.oom_at" not in bare and "log.ended_abruptly" not in bare


def test_phase_of_a_signature() -> None:
    jit = "(E pid=2) WARNING 01-01 00:00:0{} [jit.py:1] Triton kernel JIT compilation during inference: k{}. This causes\n"
    result = read_text(START + jit.format(1, "a") + READY + jit.format(2, "b") + jit.format(3, "c"))
    phases = {r.labels["phase"]: r.value for r in result.readings if r.fact == "log.jit_during_inference"}
    assert phases == {"startup": 1, "serving": 2}


def test_lives_and_endings() -> None:
    running = v1(0, 1.0, 5.0, 4, 0, 50.0) + "\n"
    idle = v1(10, 0.0, 0.0, 0, 0, 0.0) + "\n"
    got = values(read_text(START + READY + running))
    assert got["log.startup_completed"] is True and got["log.ends_mid_work"] is True and "log.ended_abruptly" not in got
    assert values(read_text(START + READY + running + idle))["log.ended_abruptly"] is False
    stopped = START + READY + running + "INFO:     Shutting down\n"
    assert values(read_text(stopped))["log.ended_abruptly"] is False
    got = values(read_text(START + "(APIServer pid=1) INFO 01-01 00:00:05 [x.py:1] Resolved architecture: L\n"))
    assert (got["log.startup_completed"], got["log.ended_abruptly"]) == (False, True)
    got = values(read_text((START + READY + running) * 3))
    assert got["log.restarts"] == 2


def test_access_lines_and_probes() -> None:
    line = 'INFO:     10.0.0.1:{} - "{} HTTP/1.1" {}\n'
    text = "".join(line.format(4000 + i, "POST /v1/chat/completions", "200 OK") for i in range(30))
    text += line.format(1, "POST /v1/completions", "503 Service Unavailable") * 4
    text += line.format(1, "POST /v1/completions", "400 Bad Request") + line.format(1, "GET /health", "503 X") * 2
    got = values(read_text(text))
    assert (got["http.2xx.count"], got["http.4xx.count"], got["http.5xx.count"]) == (30, 1, 4)
    assert got["log.health_check_failures"] == 2


def test_proxy_lines() -> None:
    text = '10.0.0.9 - - [01/Jan/2026:00:00:00 +0000] "POST /v1/completions HTTP/1.1" 499 0 "-" "py"\n' * 3
    text += '[2026-01-01T00:00:00.000Z] "POST /v1/completions HTTP/1.1" 504 UT 0 24 15000 - "-" "py" "id" "h" "10.0.0.2:8000"\n'
    got = values(read_text(text))
    assert got["log.proxy.client_closed"] == 3 and got["log.proxy.envoy_flags"] == ["UT"]


def test_unknown_warnings_are_counted_by_template() -> None:
    text = "".join(
        f"WARNING 01-01 00:00:{i:02d} [a.py:{i}] tenant 'x{i}' waits {i} ms for /var/data/{i}/b\n" for i in range(50)
    )
    text += "ERROR 01-01 00:01:00 [b.py:1] flux capacitor 12 is empty\n"
    got = values(read_text(text))
    assert got["log.warnings"] == ["50x tenant 'x0' waits 0 ms for /var/data/0/b (line 1)"]
    assert got["log.errors"] == ["1x flux capacitor 12 is empty (line 51)"]


def test_ranks_with_unequal_kv_memory() -> None:
    text = "".join(
        f"(Worker_TP{i} pid={i}) INFO 01-01 00:00:00 [gpu_worker.py:1] Available KV cache memory: {gib} GiB\n"
        for i, gib in enumerate((10.0, 10.0, 7.5, 10.0))
    )
    result = read_text(text)
    assert sorted(r.value for r in result.readings if r.fact == "log.kv_cache.available_gib") == [7.5, 10, 10, 10]
    assert values(result)["log.kv_cache.available_spread_gib"] == 2.5


NOTICE = (
    "(EngineCore_DP1 pid=2) INFO 03-17 15:{:02d}:44 [shm_broadcast.py:501] No available shared memory broadcast block "
    "found in 60 seconds. This typically happens when some processes are hanging.\n"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NOTICE.format(1) + v1(240, 400, 88.1, 3, 0, 0.4) + "\n", True),
        (NOTICE.format(1) + v1(240, 0, 0.0, 3, 0, 0.4) + "\n", False),
        # one of two engines stays silent with work
        (NOTICE.format(1) + v1(240, 400, 88.1, 3, 0, 0.4) + "\n" + v1(241, 0, 0.0, 4, 9, 0.4, engine=1) + "\n", False),
        (v1(30, 400, 88.1, 3, 0, 0.4) + "\n" + NOTICE.format(1), None),
        (v1(30, 400, 88.1, 3, 0, 0.4) + "\n", None),
    ],
)
def test_tokens_after_the_notice_of_the_message_ring(text: str, expected: bool | None) -> None:
    assert values(read_text(text)).get("log.tokens_after_stall_notice") is expected


def test_ranks_that_are_behind_in_collectives() -> None:
    line = "[rank{0}]:[E101 16:31:16.131931664 P.cpp:632] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={1}, OpType=B)\n"
    got = values(read_text(line.format(0, 5730) + line.format(3, 5729)))
    assert (got["log.nccl_timeout"], got["log.nccl_timeout_seq_spread"]) == (2, 1)


def test_a_traceback_whose_head_was_cut_is_followed() -> None:
    text = trace(CORE, "execute_model", "ValueError: x").split("\n", 1)[1]
    got = values(read_text(text))
    assert (got["log.first_exception"], got["log.first_exception_frame"]) == (
        "ValueError: x",
        "worker.py:execute_model",
    )


def test_a_line_of_a_newer_release_contradicts_the_version() -> None:
    jit = "(E pid=2) WARNING 01-01 00:00:01 [jit.py:1] Triton kernel JIT compilation during inference: k. This causes\n"
    reading = next(r for r in read_text(START + jit).readings if r.fact == "log.jit_during_inference")
    assert any("belongs to vllm >=0.21" in note for note in reading.caveats)
    assert values(read_text(START + jit))["log.engine_version_at_least"] == "0.21"


def test_configuration_lines_reach_the_configuration_reader() -> None:
    text = (
        START
        + "(APIServer pid=1) INFO 01-01 00:00:00 [utils.py:1] non-default args: {'model': 'm', 'max_num_seqs': 4}\n"
    )
    result = read_text(text)
    reading = next(r for r in result.readings if r.fact == "config.max_num_seqs")
    assert reading.value == 4 and reading.source.line == 2


def test_sources_point_at_the_line() -> None:
    text = "\n\nINFO 01-01 00:00:00 [vllm.py:1] Truncating max_cudagraph_capture_size to 4\n"
    reading = next(r for r in read_text(text).readings if r.fact == "log.cudagraph_truncated_to")
    assert reading.source.line == 3 and "Truncating max_cudagraph_capture_size to 4" in reading.source.span


def part(data: bytes, name: str = "server.log") -> Part:
    return Part(name=name, data=data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no lines"),
        (bytes(range(256)) * 40, "binary data"),
        (b"\n".join(b"nothing known %d" % i for i in range(500)), "none of 500 lines is known"),
    ],
)
def test_what_cannot_be_read_is_named(data: bytes, words: str) -> None:
    result = read([part(data)], Context())
    assert any(words in p.what and p.ref == "server.log" for p in result.problems)


def test_short_unknown_text_goes_on_to_the_reader_of_prose() -> None:
    result = read([part(b"Round 1: Prompt=100, Output=50, Cached=0\n", "turns.log")], Context())
    assert [n.kind for n in result.nested] == ["report"]
    again = read(result.nested, Context())
    assert again.nested == []


def test_cut_gzip_utf16_nuls_and_endless_lines_keep_the_rest() -> None:
    line = v1(0, 1.0, 5.0, 4, 0, 50.0) + "\n"
    packed = gzip.compress((line * 4000).encode())
    result = read([part(packed[: len(packed) // 2])], Context())
    assert any("ends early" in p.what for p in result.problems)
    assert values_of(read([part(line.encode("utf-16"))], Context()))["queue.running.max"] == 4
    assert values_of(read([part(b"\x00" * 5000 + line.encode())], Context()))["queue.running.max"] == 4
    result = read([part(b"x" * 300_000 + b"\n" + line.encode())], Context())
    assert values_of(result)["queue.running.max"] == 4 and values_of(result)["log.lines"] == 2
    assert any("64 KiB" in p.what for p in result.problems)


def values_of(result: Any) -> dict[str, Any]:
    return {r.fact: r.value for r in result.readings}


def test_sniff_tells_logs_from_reports() -> None:
    assert sniff("x.txt", v1(0, 1.0, 5.0, 4, 0, 50.0)) > 0.9
    assert sniff("startup_excerpt.log", "max_running_requests is capped to 9 by the mamba state cache") >= 0.5
    report = (
        "# Slow\n\nWe see this.\n" + "words and words\n" * 40 + "```\n" + START + "```\n" + "## More\n" + "text\n" * 40
    )
    assert sniff("report.md", report) < 0.5
    assert sniff("metrics.prom", "# HELP a b\n# TYPE a counter\na 1\n") == 0.0
