"""Every form gives the same facts; traps become facts and problems, never numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from knowledge.loader import read_yaml
from tools.bench.read import read, rows
from tools.bench.sniff import sniff
from tools.contract import Context, ReadResult
from tools.part import Part

FACTS = {record["name"] for record in read_yaml(Path(__file__).parents[3] / "knowledge" / "facts" / "bench.yaml")}
SERVE = {
    "backend": "vllm",
    "model_id": "m",
    "num_prompts": 100,
    "request_rate": "inf",
    "max_concurrency": 8,
    "duration": 20.0,
    "completed": 100,
    "failed": 0,
    "total_input_tokens": 12800,
    "total_output_tokens": 6400,
    "request_throughput": 5.0,
    "output_throughput": 320.0,
    "mean_ttft_ms": 80.0,
    "median_ttft_ms": 75.0,
    "p99_ttft_ms": 300.0,
    "mean_tpot_ms": 20.0,
    "mean_itl_ms": 20.0,
    "mean_e2el_ms": 1400.0,
}


def run(body: Any, name: str = "bench.json") -> ReadResult:
    data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    result = read([Part(name=name, data=data)], Context())
    assert {r.fact for r in result.readings if r.fact.startswith("bench.")} <= FACTS
    return result


def values(result: ReadResult, which: str | None = None) -> dict[str, Any]:
    chosen = [r for r in result.readings if which is None or r.labels.get("run") == which]
    return {r.fact.removeprefix("bench."): r.value for r in chosen}


def test_vllm_serve_json() -> None:
    result = run(SERVE)
    got = values(result)
    assert (got["ttft.mean_ms"], got["ttft.p50_ms"], got["ttft.p99_ms"], got["tpot.mean_ms"]) == (80, 75, 300, 20)
    assert (got["output_tokens_per_s"], got["requests_per_s"], got["concurrency"]) == (320, 5, 8)
    assert (got["input_tokens"], got["output_tokens"]) == (128, 64)
    assert got["rate_is_inf"] is True and "request_rate" not in got and got["failed_share"] == 0
    assert got["mean_concurrency"] == pytest.approx(7.0) and got["ttft_tail_ratio"] == 4
    reading = next(r for r in result.readings if r.fact == "bench.ttft.mean_ms")
    assert reading.labels["run"] == "bench.json" and reading.labels["request_rate"] == "inf"
    assert not result.problems


def test_all_failed_gives_no_latencies_and_a_problem() -> None:
    zeros = {key: 0.0 for key in SERVE if key.endswith("_ms") or "throughput" in key}
    result = run({**SERVE, **zeros, "completed": 0, "failed": 8, "total_output_tokens": 0, "total_input_tokens": 0})
    got = values(result)
    assert got["all_failed"] is True and (got["completed"], got["failed"], got["failed_share"]) == (0, 8, 1)
    assert not [name for name in got if name.endswith(("_ms", "per_s"))]
    assert any("0 of 8 requests completed" in p.what for p in result.problems)


def test_zero_latencies_of_a_good_run_are_left_out() -> None:
    result = run({**SERVE, "mean_itl_ms": 0.0})
    assert "itl.mean_ms" not in values(result)
    assert any("0 ms" in note for r in result.readings for note in r.caveats)


def test_nan_and_infinity_are_named() -> None:
    text = json.dumps({**SERVE, "request_rate": float("inf"), "mean_tpot_ms": float("nan")})
    got = values(run(text))
    assert got["rate_is_inf"] is True and "tpot.mean_ms" not in got
    assert got["not_a_number"] == ["tpot.mean_ms: nan"]


def test_seconds_and_milliseconds() -> None:
    got = values(
        run(
            {"max_concurrency": 32, "completed": 10, "request_throughput": 0.7, "median_ttft": 15.2, "median_tpot": 0.2}
        )
    )
    assert (got["ttft.p50_ms"], got["tpot.p50_ms"], got["tool"]) == (15200, 200, "InferenceX")
    odd = run({**SERVE, "mean_ttft_ms": 5000.0})
    assert any("units may differ" in p.what for p in odd.problems)
    wrong = values(run({**SERVE, "request_throughput": 50.0}))
    assert "is not 100 requests" in wrong["inconsistent"][0]


def test_details_warmup_and_unequal_outputs() -> None:
    body = {
        **SERVE,
        "ttfts": [3.0, *[0.1] * 30],
        "itls": [[0.02] * 9] * 31,
        "output_lens": [5, *[60] * 30],
        "errors": ["", "Timeout: x"],
    }
    got = values(run(body))
    assert got["first_request_ratio"] == 30 and got["warmup_in_sample"] is True
    assert got["output_tokens_spread"] == pytest.approx(55 / 60, abs=1e-3)
    assert got["itl.p99_ms"] == 20 and got["errors"] == ["1x Timeout: x"] and got["ttft.max_ms"] == 3000


def test_jsonl_sweep_list_and_several_files_are_several_runs() -> None:
    lines = "\n".join(
        json.dumps({**SERVE, "request_rate": rate, "mean_ttft_ms": 80.0 * rate}) for rate in (1.0, 2.0, 4.0)
    )
    result = run(lines + "\n{broken", "sweep.jsonl")
    assert [r.value for r in result.readings if r.fact == "bench.ttft.mean_ms"] == [80, 160, 320]
    assert any("1 of 4 lines" in p.what for p in result.problems)
    assert values(run([SERVE, {**SERVE, "total_output_tokens": 3200}]))["unequal_outputs"] is True
    parts = [Part(name=f"c{n}.json", data=json.dumps({**SERVE, "max_concurrency": n}).encode()) for n in (1, 8)]
    two = read(parts, Context())
    assert {r.labels["run"]: r.value for r in two.readings if r.fact == "bench.concurrency"} == {
        "c1.json": 1,
        "c8.json": 8,
    }
    assert next(r.value for r in two.readings if r.fact == "bench.runs") == 2


def test_rows_are_comparable() -> None:
    parts = [Part(name=f"c{n}.json", data=json.dumps({**SERVE, "max_concurrency": n}).encode()) for n in (1, 8)]
    got = [row for row in rows(parts) if row.metric == "bench.ttft.mean_ms"]
    assert [(row.run, row.value, row.unit, row.conditions["concurrency"]) for row in got] == [
        ("c1.json", 80.0, "ms", "1"),
        ("c8.json", 80.0, "ms", "8"),
    ]
    assert got[0].conditions["request_rate"] == "inf" and got[0].source.ref == "c1.json"


def compared(parts: list[Part]) -> dict[str, list[Any]]:
    found = [r for r in read(parts, Context()).readings if r.fact.partition(".")[0] in ("pair", "sweep", "shape")]
    assert all(r.source.kind == "file" and r.source.ref in {p.name for p in parts} for r in found)
    out: dict[str, list[Any]] = {}
    for reading in found:
        out.setdefault(reading.fact, []).append(reading.value)
    return out


def part(name: str, **change: Any) -> Part:
    return Part(name=name, data=json.dumps({**SERVE, **change}).encode())


def test_runs_of_several_files_are_compared() -> None:
    loads = [part(f"c{n}.json", max_concurrency=n, mean_ttft_ms=80.0 if n < 32 else 8000.0) for n in (1, 8, 32)]
    got = compared(loads)
    assert 100 in got["sweep.ttft.ratio"] and got["shape.cliff_at_concurrency"]
    got = compared([part("bench_fast.json"), part("bench_slow.json", duration=40.0, output_throughput=160.0)])
    assert got["pair.duration.ratio"] == [2] and 0.5 in got["pair.throughput.ratio"]
    got = compared([part("run1.json", mean_ttft_ms=900.0), part("run2.json"), part("run3.json")])
    assert got["shape.first_run_slow"]


def test_runs_that_nothing_tells_apart_or_that_differ_in_rate_make_no_pair() -> None:
    assert compared([part("a.json"), part("b.json", mean_ttft_ms=900.0)]) == {}
    assert compared([part("bench_fast.json"), part("bench_slow.json", request_rate=1.0, mean_ttft_ms=900.0)]) == {}


def test_tables_go_to_the_report_reader_too() -> None:
    result = run(TABLES[0][0], "bench.txt")
    assert [(n.kind, n.parent) for n in result.nested] == [("report", "bench.txt")]


def test_server_info_goes_to_the_configuration_reader() -> None:
    result = run({**SERVE, "server_info": {"tp_size": 2}})
    assert [(n.kind, json.loads(n.data or b"")) for n in result.nested] == [("config", {"tp_size": 2})]


PRINTED = """$ /opt/venv/bin/vllm bench serve --model m --random-input-len 128 --random-output-len 64 --max-concurrency 8
Traffic request rate: inf
============ Serving Benchmark Result ============
Successful requests:                     100
Failed requests:                         3
Benchmark duration (s):                  20.00
Total input tokens:                      12800
Total generated tokens:                  6400
Request throughput (req/s):              5.00
Output token throughput (tok/s):         320.00
---------------Time to First Token----------------
Mean TTFT (ms):                          80.00
P99 TTFT (ms):                           300.00
==================================================
"""


def test_printed_block() -> None:
    result = run(PRINTED, "bench.txt")
    got = values(result)
    assert (got["completed"], got["failed"], got["concurrency"], got["ttft.mean_ms"]) == (100, 3, 8, 80)
    assert got["rate_is_inf"] is True and got["output_tokens"] == 64
    reading = next(r for r in result.readings if r.fact == "bench.ttft.mean_ms")
    assert reading.source.line == 12 and reading.labels["input_len"] == "128"


def test_two_printed_blocks_are_two_runs() -> None:
    result = run(PRINTED + PRINTED.replace("80.00", "160.00"), "bench.txt")
    assert [r.value for r in result.readings if r.fact == "bench.ttft.mean_ms"] == [80, 160]


SUMMARY = """evalscope perf --parallel 24 --url http://127.0.0.1:9/v1/chat/completions --model m
Benchmarking summary:
+-----------------------------------+---------+
| Key                               | Value   |
+===================================+=========+
| Time taken for tests (s)          | 41.250  |
| Number of concurrency             | 24      |
| Total requests                    | 96      |
| Succeed requests                  | 95      |
| Average latency (s)               | 9.6     |
| Average time to first token (s)   | 1.125   |
+-----------------------------------+---------+

Percentile results:
+------------+----------+-------------+
| Percentile | TTFT (s) | Latency (s) |
+------------+----------+-------------+
|    50%     |  0.875   |    9.0      |
|    99%     |  3.25    |    14.5     |
+------------+----------+-------------+
"""


def test_a_summary_of_two_columns_and_its_percentiles_are_one_run() -> None:
    assert sniff("out.txt", SUMMARY) > 0.7
    got = values(run(SUMMARY, "out.txt"))
    assert (got["duration_s"], got["concurrency"], got["requested"], got["completed"]) == (41.25, 24, 96, 95)
    assert (got["ttft.mean_ms"], got["ttft.p50_ms"], got["ttft.p99_ms"], got["e2e.p99_ms"]) == (1125, 875, 3250, 14500)
    assert got["runs"] == 1


def test_rows_of_two_columns_without_a_unit_are_left_to_their_head() -> None:
    got = run("| phase | ms |\n|---|---|\n| prefill | 120 |\n| decode | 31 |\n| TTFT p50 (ms) | 95 |\n", "bench.txt")
    assert [(r.fact, r.value) for r in got.readings if r.fact.endswith(("_ms", "per_s"))] == [("bench.ttft.p50_ms", 95)]


BLOCKS = "TP 4, 2 requests in flight\nMean TTFT (ms): 61.0\nMean ITL (ms): 17.5\n\n"


def test_blocks_below_headings_of_their_own_are_runs_with_their_load() -> None:
    result = run(BLOCKS + BLOCKS.replace("2 requests", "48 requests").replace("17.5", "44.0"), "bench.txt")
    found = [(r.value, r.labels["concurrency"]) for r in result.readings if r.fact == "bench.itl.mean_ms"]
    assert found == [(17.5, "2"), (44, "48")]
    # without a heading between them, the second figure corrects the first
    plain = run("Mean ITL (ms): 17.5\nMean ITL (ms): 44.0\n", "bench.txt")
    assert [r.value for r in plain.readings if r.fact == "bench.itl.mean_ms"] == [44]


def test_columns_of_differences_are_no_amounts() -> None:
    text = "cache size  TTFT (ms)  ITL (ms)  tok/s\n16 GiB      -12.5      +3.0      410\n8 GiB       +40.0      +7.5      395\n"
    got = run(text, "bench.txt")
    assert {r.fact for r in got.readings if "ttft" in r.fact or "itl" in r.fact} == set()
    assert [r.value for r in got.readings if r.fact == "bench.output_tokens_per_s"] == [410, 395]


def test_the_time_of_a_phase_is_no_rate() -> None:
    text = "kind,n,wait_p50_s,prefill_p50_s,ttft_p50_s\nchat,40,0.5,0.25,0.75\ncode,60,0.5,1.25,1.75\n"
    result = run(text, "phases.csv")
    assert [r.value for r in result.readings if r.fact == "bench.ttft.p50_ms"] == [750, 1750]
    assert not [r for r in result.readings if r.fact in ("bench.prefill_tokens_per_s", "bench.concurrency")]


def test_offline_tools_and_accuracy_runs() -> None:
    got = values(run("Throughput: 7.15 requests/s, 4656.00 total tokens/s, 1072.15 output tokens/s\n", "t.txt"))
    assert (got["requests_per_s"], got["total_tokens_per_s"], got["output_tokens_per_s"]) == (7.15, 4656, 1072.15)
    got = values(
        run(
            "Avg latency: 1.50 seconds\n10% percentile latency: 1.2 seconds\n99% percentile latency: 2.0 seconds\n",
            "l.txt",
        )
    )
    assert (got["e2e.mean_ms"], got["e2e.p99_ms"]) == (1500, 2000)
    got = values(
        run("Accuracy: 0.954\nInvalid: 0.000\nLatency: 223.933 s\nOutput throughput: 606.448 token/s\n", "g.txt")
    )
    assert (got["accuracy"], got["duration_s"], got["output_tokens_per_s"]) == (0.954, 223.933, 606.448)
    assert "e2e.mean_ms" not in got


def test_home_made_lines_and_rows() -> None:
    text = "prose  c=1  ttft=0.333s  decode=19.1 tok/s  total=18 tok/s\nprose  c=4  ttft=0.549s  decode=18.3 tok/s  total=67 tok/s\n"
    result = run(text, "bench.log")
    assert [r.value for r in result.readings if r.fact == "bench.ttft.mean_ms"] == [333, 549]
    body = {
        "engine": "vllm",
        "runs": [{"concurrency": c, "ttft_s_median": 0.3 * c, "decode_tps_median": 9.0} for c in (1, 2)],
    }
    result = run(body)
    assert [(r.labels["concurrency"], r.value) for r in result.readings if r.fact == "bench.ttft.p50_ms"] == [
        ("1", 300),
        ("2", 600),
    ]


AIPERF = """┏━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┓
┃                   Metric ┃      avg ┃      p99 ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━┩
│ Time to First Token (ms) │    50.04 │    59.53 │
│     Request Latency (ms) │ 3,651.23 │ 5,707.95 │
│ Output Token Throughput  │   287.44 │      N/A │
│             (tokens/sec) │          │          │
│ Request Count (requests) │    20.00 │      N/A │
└──────────────────────────┴──────────┴──────────┘
"""


def test_statistics_across() -> None:
    got = values(run(AIPERF, "aiperf.txt"))
    assert (got["ttft.mean_ms"], got["ttft.p99_ms"], got["e2e.p99_ms"]) == (50.04, 59.53, 5707.95)
    assert (got["output_tokens_per_s"], got["completed"], got["few_requests"]) == (287.44, 20, True)
    csv = 'Metric,avg,p99\nTime To First Token (ms),"1,146.31","3,457.97"\n\nMetric,Value\nRequest Throughput (per sec),1.50\n'
    result = run(csv, "profile_genai_perf.csv")
    assert values(result)["ttft.p99_ms"] == 3457.97 and values(result)["requests_per_s"] == 1.5


def test_aiperf_json_and_records() -> None:
    body = {
        "time_to_first_token": {"unit": "ms", "avg": 50.0, "p99": 60.0},
        "request_throughput": {"unit": "requests/sec", "avg": 2.0},
    }
    assert values(run(body))["ttft.p99_ms"] == 60
    good = {
        "metadata": {"request_start_ns": 0, "request_end_ns": 10**9},
        "metrics": {"time_to_first_token": {"value": 0.25, "unit": "s"}},
        "error": None,
    }
    bad = {"metadata": {"was_cancelled": True}, "metrics": {}, "error": {"type": "Cancelled"}}
    got = values(run("\n".join(json.dumps(item) for item in (good, good, bad)), "profile_export.jsonl"))
    assert (got["completed"], got["failed"], got["ttft.mean_ms"], got["errors"]) == (2, 1, 250, ["1x Cancelled"])


def test_guidellm() -> None:
    body = {
        "benchmarks": [
            {
                "config": {"strategy": {"type_": "concurrent", "streams": 8}},
                "duration": 30.0,
                "metrics": {
                    "time_to_first_token_ms": {
                        "successful": {"mean": 60.0, "median": 55.0, "percentiles": {"p99": 90.0}}
                    },
                    "request_latency": {"successful": {"mean": 2.5}},
                    "requests_per_second": {"successful": {"mean": 3.0}},
                    "request_totals": {"successful": 95, "errored": 5, "incomplete": 2, "total": 102},
                },
            }
        ]
    }
    result = run(body)
    got = values(result)
    assert (got["ttft.mean_ms"], got["ttft.p99_ms"], got["e2e.mean_ms"]) == (60, 90, 2500)
    assert (got["concurrency"], got["completed"], got["failed"]) == (8, 95, 5)
    assert any("cut by the end" in note for r in result.readings for note in r.caveats)
    console = """Benchmarks Stats:
=====================================================================
Metadata     | Request Stats         || Out Tok/sec| TTFT (ms)     ||
    Benchmark| Per Second| Concurrency|        mean| mean| median| p99
-------------|-----------|------------|------------|-----|-------|-----
  synchronous|       0.23|        1.00|        58.7| 59.8|   59.1| 63.1
   throughput|       3.89|       29.65|       996.1|817.7|  784.0| 1387.9
"""
    result = run(console, "guidellm.txt")
    assert [r.value for r in result.readings if r.fact == "bench.ttft.p99_ms"] == [63.1, 1387.9]


def test_inference_perf_tells_a_late_client() -> None:
    body = {
        "load_summary": {
            "count": 100,
            "schedule_delay": {"mean": 19.9, "p99": 42.0},
            "requested_rate": 183.0,
            "achieved_rate": 106.0,
        },
        "successes": {
            "count": 100,
            "latency": {"time_to_first_token": {"mean": 2.9, "p99": 3.3}},
            "throughput": {"requests_per_sec": 103.0},
        },
        "failures": {"count": 0},
    }
    got = values(run(body))
    assert (got["ttft.mean_ms"], got["client_late"]) == (2900, True)
    assert got["achieved_rate_share"] == pytest.approx(0.579, abs=1e-3) and got["schedule_delay.mean_ms"] == 19900


def test_per_request_record_by_stream() -> None:
    def one(stream: str, at: float, ttft: float, status: int = 200) -> dict[str, Any]:
        return {
            "stream": stream,
            "arrival": at,
            "status": status,
            "ttft": ttft,
            "e2e": 2.0,
            "completion_tokens": 10,
            "prompt_tokens": 50,
            "error": None,
            "attempt": 0,
        }

    body = {
        "wall_s": 10.0,
        "summary": {},
        "requests": [*[one("a", i * 1.0, 0.1) for i in range(6)], one("b", 3.0, 1.0), one("b", 4.0, 1.0, 503)],
    }
    result = run(body, "client.json")
    got = values(result, "client.json")
    assert (got["completed"], got["failed"], got["peak_concurrency"]) == (7, 1, 4)
    assert got["errors"] == ["1x HTTP 503"]
    assert values(result, "client.json#b")["ttft.mean_ms"] == 1000


TABLES = [
    (
        "context   output tok/s   mean TTFT (ms)\n8K        494            3226\n50K       44             134173\n",
        "ttft.mean_ms",
        [3226, 134173],
        {"context": "8K"},
    ),
    (
        "TTFT p50 / p95 (ms)   c=1           c=8\nplain                 16.9 / 21.2   35.0 / 45.4\nproxy                 64.8 / 67.6   66.2 / 78.7\n",
        "ttft.p95_ms",
        [21.2, 45.4, 67.6, 78.7],
        {"variant": "plain", "concurrency": "1"},
    ),
    (
        "| Concurrency | Ours | README |\n|---|---|---|\n| x1 | 32.0 tok/s | 64.4 |\n| x2 | 61.0 | - |\n| x4 | 84.6 | - |\n",
        "output_tokens_per_s",
        [32, 61, 84.6, 64.4],
        {"variant": "Ours", "concurrency": "1"},
    ),
    (
        "concurrency   1x A tok/s   TTFT ms     2x A tok/s   TTFT ms\n1             ~52          ~3345       ~38          ~100\n5             ~12                      ~38          ~100\n",
        "ttft.mean_ms",
        [3345, 100, 100],
        {"variant": "1x A"},
    ),
    (
        "cap_w,prose_tps,code_tps\n180,48.37,47.88\n200,59.16,58.86\n",
        "output_tokens_per_s",
        [48.37, 47.88, 59.16, 58.86],
        {"cap_w": "180"},
    ),
    (
        "# warm; Total token throughput (tok/s)\npass 1: 1187\npass 2: 7653\n",
        "total_tokens_per_s",
        [1187, 7653],
        {"variant": "pass 1"},
    ),
    (
        "config     decode tok/s   acceptance\nplain      57.0           -\nMTP        40.6           87 %\n",
        "acceptance_rate",
        [0.87],
        {},
    ),
]


@pytest.mark.parametrize(("text", "fact", "want", "labels"), TABLES, ids=range(len(TABLES)))
def test_tables(text: str, fact: str, want: list[float], labels: dict[str, str]) -> None:
    found = [r for r in run(text, "bench.txt").readings if r.fact == f"bench.{fact}"]
    assert [r.value for r in found] == want
    assert labels.items() <= found[0].labels.items()


def test_approximate_figures_are_marked() -> None:
    found = [r for r in run(TABLES[3][0], "bench.txt").readings if r.fact == "bench.ttft.mean_ms"]
    assert all(any("approximate" in note for note in r.caveats) for r in found)


def test_network_tables_and_prose_are_not_taken() -> None:
    result = run(
        "| Size | Latency | Bus BW |\n|---|---|---|\n| 8 KB | 41 us | - |\n| 1 MB | 2,100 us | 0.45 GB/s |\n", "nccl.md"
    )
    assert not result.readings and [n.kind for n in result.nested] == ["report"]
    assert "no benchmark figures" in result.problems[0].what


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"[1,2]", b'{"a": 1}', b"\x00\x01" * 50, b"[" * 5000, b'{"benchmarks": [null, {}]}']
)
def test_other_input_is_refused_by_name(body: bytes) -> None:
    result = read([Part(name="x.json", data=body)], Context())
    assert not [r for r in result.readings if r.fact != "bench.runs"] and result.problems
    assert all(p.ref.startswith("x.json") for p in result.problems)


def test_sniff() -> None:
    assert sniff("x", json.dumps(SERVE)) > 0.7 and sniff("x", PRINTED) > 0.9 and sniff("x", AIPERF) > 0.7
    for text, *_ in TABLES[:6]:
        assert sniff("bench.txt", text) >= 0.5
    for text in (
        "hello world",
        "# HELP a b\n# TYPE a gauge\na 1\n",
        "services:\n  vllm:\n    image: x\n    # | a | tok/s |\n    # | 1 | 2 |\n",
        "",
    ):
        assert sniff("x.txt", text) < 0.5
