"""Tables as people paste them: which line is the header, what a column or row is, and what a cell says."""

from __future__ import annotations

import time

import pytest

from tests.tools.report.test_report_read import of, run, values


def pairs(text: str, fact: str) -> list[tuple[str, object]]:
    return [(item.labels["difference"], item.value) for item in of(run(text), fact)]


def labelled(text: str, fact: str, label: str) -> list[tuple[object, str]]:
    return [(item.value, item.labels.get(label, "")) for item in of(run(text), fact)]


@pytest.mark.parametrize(
    ("text", "fact", "expected"),
    [
        # A list of names and values has no header: its first line counts.
        ("running      17\nwaiting      3\n", "said.running", [17]),
        ("queue time p99    2.5 s\nprefill time p99  0.3 s\n", "said.queue_s", [2.5]),
        ("output      88 tok/s   (flat)\nper stream  11 tok/s\n", "said.user_tps", [11]),
        ("| Requests sent | 90 |\n| Concurrency | 30 |\n", "said.concurrency", [30]),
        ("kv_cache_usage_perc   0.4\nnum_requests_running  12\n", "said.kv_usage", [0.4]),
        # A range of requests is its upper end.
        ("num_requests_running   between 3 and 9\nnum_requests_waiting   0\n", "said.running", [9]),
        # A line that names no metric is of something else than the line above it.
        ("first token       1.5 s\nafter which done  9.5 s\n", "said.ttft_s", [1.5]),
        # Words in a cell that name their own metric.
        ("| fleet | effect |\n|---|---|\n| blue | median TTFT 3 s all the evening |\n", "said.ttft_s", [3]),
    ],
)
def test_lists_and_cells_of_words(text: str, fact: str, expected: list[object]) -> None:
    assert values(text, fact) == expected


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        # Columns "… C" and "… W" are names, not Celsius or watts.
        ("           pod A   pod B   pod C\npreempts     4       5       9\n", "said.temperature_c"),
        ("           site U   site W\npreempts      4        9\n", "said.power_w"),
        # A phase names a rate only with a unit.
        ("| hour | prefill batches | decode batches |\n|---|---|---|\n| noon | 900 | 30 |\n", "said.prompt_tps"),
        ("| decode node | TTFT p50 |\n|---|---|\n| tp 4 | 2 s |\n| tp 2 | 3 s |\n", "said.generation_tps"),
        ("| `--chunked-prefill-size` | TTFT |\n|---|---|\n| 2048 | 2 s |\n| 4096 | 3 s |\n", "said.prompt_tps"),
        # The request rate of a scenario is no result.
        (
            "scenario           mean    E2EL\n---------------------------------\n5 req/s, capped    300 ms  310 ms\n",
            "said.requests_per_s",
        ),
        # A share counted against a bound is no time that was measured.
        ("| fleet | effect |\n|---|---|\n| blue | 7 % of requests over 40 s TTFT |\n", "said.ttft_s"),
        # The bandwidth of a memory is none of a link.
        ("| part | rate |\n|---|---|\n| main memory | 273 GB/s |\n", "said.bus_bandwidth_gbps"),
        # An index ``n+1`` is no run number.
        ("turn  TTFT\nn     2 s\nn+1   3 s\n", "pair.difference"),
        ("key  tok/s per W\na    0.07\nb    0.06\n", "said.power_w"),
    ],
)
def test_what_a_table_does_not_say(text: str, fact: str) -> None:
    assert not values(text, fact)


def test_a_unit_letter_behind_its_metric_is_a_unit() -> None:
    assert values("| host | temp C |\n|---|---|\n| a | 71 |\n| b | 62 |\n", "said.temperature_c") == [71, 62]


def test_a_rate_without_a_unit_takes_it_from_the_caption() -> None:
    text = "Throughput in tok/s:\n\n| build | prefill | decode |\n|---|---|---|\n| a | 900 | 40 |\n| b | 800 | 30 |\n"
    assert values(text, "said.prompt_tps") == [900, 800]
    assert values(text, "said.generation_tps") == [40, 30]


def test_a_load_axis_in_the_first_row_gives_each_column_its_load() -> None:
    for text in (
        "| concurrency | 1 | 4 | 16 |\n|---|---|---|---|\n| tok/s | 30 | 100 | 300 |\n| TTFT p50 | 1 s | 1 s | 2 s |\n",
        "concurrency     1      4      16\ntok/s           30     100    300\nTTFT p50 (ms)   1000   1000   2000\n",
    ):
        assert values(text, "sweep.throughput.ratio") == [10]
        assert values(text, "sweep.ttft.ratio") == [2]


def test_numbers_of_devices_are_no_axis() -> None:
    assert not of(run("GPU        0    1    2    3\ntemp (C)   61   62   63   64\n"), "sweep.temperature.ratio")


def test_shares_of_a_feature_in_the_first_row() -> None:
    text = "share with a JSON schema   0     50 %   100 %\nreq/s                      100   80     60\n"
    assert pairs(text, "pair.throughput.ratio") == [("feature_on_off", 0.8), ("feature_on_off", 0.6)]


@pytest.mark.parametrize("head", ["max-num-seqs", "`--max-num-seqs`", "max_num_seqs"])
def test_a_flag_heads_a_column_of_settings(head: str) -> None:
    text = f"| {head} | TPOT |\n|---|---|\n| 8 | 10 ms |\n| 16 | 12 ms |\n"
    assert pairs(text, "pair.tpot.ratio") == [("config_value", 1.2)]


def test_a_metric_behind_a_word_for_a_setting_is_the_metric() -> None:
    text = "| case | draft acceptance | step time |\n|---|---|---|\n| prose | 12 % | 20 ms |\n| code | 80 % | 21 ms |\n"
    assert values(text, "said.acceptance_rate") == [0.12, 0.8]
    assert values(text, "said.step_s") == [0.02, 0.021]


def test_releases_as_columns_are_an_upgrade_within_each_row() -> None:
    text = (
        "Total token throughput, tok/s\n\n        previous release   this release\n"
        "-tp 2   1000               800\n-tp 4   2000               2000\n"
    )
    found = pairs(text, "pair.throughput.ratio")
    assert [value for kind, value in found if kind == "version_upgrade"] == [0.8, 1.0]
    assert sorted(value for kind, value in found if kind == "gpu_count") == [2.0, 2.5]  # type: ignore[type-var]
    assert values(text, "said.total_tps") == [1000, 800, 2000, 2000]


def test_two_points_in_time_are_sides_and_a_load_beside_is_none() -> None:
    text = "            last month   now\nTTFT p50    1 s          2 s\n"
    assert [value for _, value in pairs(text, "pair.ttft.ratio")] == [2]
    text = "            while the backup runs   after\nTTFT p50    9 s                     1 s\n"
    assert not pairs(text, "pair.ttft.ratio")


def test_a_phase_as_a_row_names_its_own_metric() -> None:
    text = (
        "context   prefill throughput, 0.9.2 relative to 0.9.1\n8K        -5 %\n64K       -9 %\ndecode    unchanged\n"
    )
    assert 1.0 in values(text, "pair.throughput.ratio")
    assert 1.0 not in values(text, "pair.prompt_throughput.ratio")


def test_a_relative_column_without_a_metric_is_of_the_captions() -> None:
    text = (
        "Output throughput against the server without MTP:\n\n| input | accepted length | MTP vs. no MTP |\n|---|---|---|\n"
        "| 2K | 3.5 | +40 % |\n| 60K | 3.4 | -20 % |\n"
    )
    assert values(text, "pair.throughput.ratio") == [1.4, 0.8]
    assert not values(text, "pair.acceptance.ratio")


def test_signed_figures_are_differences() -> None:
    text = 'ms relative to "off"\n\nbudget   TTFT    decode\n10 GiB   +20     +30\n20 GiB   -15     +4\n'
    assert values(text, "said.extra_s") == [0.02, -0.015]
    assert not values(text, "said.ttft_s")
    assert not values(text, "said.generation_tps")


def test_the_metric_may_stand_in_another_column_and_a_change_in_words() -> None:
    text = (
        "| case | metric | before | now | change |\n|---|---|---|---|---|\n"
        "| c=8, n=99 | token_throughput | 50 | 40 | -20 % |\n| c=8, n=99 | median_ttft_ms | 200 | 250 | 25 % worse |\n"
    )
    assert values(text, "pair.throughput.ratio") == [0.8, 0.8]
    assert values(text, "pair.ttft.ratio") == [1.25, 1.25]
    assert labelled(text, "said.ttft_s", "concurrency") == [(0.2, "8"), (0.25, "8")]


def test_a_formula_counts_by_its_result_and_a_ceiling_is_a_reference() -> None:
    text = "measured decode    40 tok/s\nour sheet          ceiling = 270 / 10 = 27 tok/s\n"
    assert values(text, "said.generation_tps") == [40]
    assert values(text, "said.reference") == [27]


def test_a_count_of_samples_beside_classes_is_no_load() -> None:
    text = "class,n,ttft_p50_s\nshort,100,0.2\nmedium,300,0.4\nlong,200,0.9\n"
    assert values(text, "said.ttft_s") == [0.2, 0.4, 0.9]
    assert not labelled(text, "said.concurrency", "metric")
    assert not values(text, "sweep.ttft.ratio")
    # Without classes the column is the load.
    assert values("n,ttft_p50_s\n1,0.2\n3,0.4\n9,0.8\n", "sweep.ttft.ratio") == [4]


def test_two_loads_whose_product_counts_are_no_axis() -> None:
    text = "| batch_size | concurrent_batches | req/s |\n|---|---|---|\n| 1 | 16 | 9 |\n| 4 | 4 | 8 |\n| 16 | 1 | 5 |\n"
    assert not of(run(text), "sweep.throughput.ratio")
    assert not of(run(text), "pair.throughput.ratio")


def test_headers_alike_but_for_a_number_are_values_of_a_setting() -> None:
    text = "| model | dataset | Acclen: base 100 | Acclen: base 200 |\n|---|---|---|---|\n| m | chat | 2.0 | 2.2 |\n| m | code | 3.0 | 3.6 |\n"
    assert pairs(text, "pair.acceptance.ratio") == [("config_value", 1.1), ("config_value", 1.2)]
    text = "| host | rank 0 tok/s | rank 1 tok/s |\n|---|---|---|\n| m | 20 | 22 |\n"
    assert not pairs(text, "pair.throughput.ratio")


def test_constants_as_columns_and_a_row_in_multiples_of_the_first() -> None:
    text = "| | KEEP_ALL | TAKE_MOST |\n|---|---|---|\n| output tok/s | 100 | 60 |\n| TPOT p99 | 1x | 4x |\n"
    assert pairs(text, "pair.throughput.ratio") == [("config_value", 0.6)]
    assert 4.0 in values(text, "pair.tpot.ratio")


def test_two_figures_of_two_named_variants_in_a_cell() -> None:
    text = "| | mine | theirs |\n|---|---|---|\n| decode, prose / code, tok/s | 40 / 60 | 50 / 80 |\n"
    assert pairs(text, "pair.throughput.ratio") == [("reference", 0.8), ("reference", 0.75)]
    assert values(text, "said.reference") == [50, 80]


def test_memory_by_process_is_of_the_host_unless_the_caption_says_otherwise() -> None:
    rows = "\n\n                   12:00    15:00    18:00\nVLLM::Worker_TP0   9.1 GiB  17.8 GiB  26.5 GiB\n"
    text = "GPU memory is flat. The worker is what grows:" + rows
    assert values(text, "said.host_memory_gib") == [9.1, 17.8, 26.5]
    assert not values(text, "said.gpu_memory_gib")
    assert values("GPU memory by process:" + rows, "said.gpu_memory_gib") == [9.1, 17.8, 26.5]


def test_statements_behind_a_table_are_read_as_sentences() -> None:
    text = (
        "run        r1     r2\nplain      12.1   12.3\n"
        "second run:  mean TTFT 71.5 ms   mean TPOT 9.5 ms\nthird run:  mean TTFT 61.5 ms   mean TPOT 8.5 ms\n"
    )
    assert values(text, "said.ttft_s") == pytest.approx([0.0715, 0.0615])
    assert values(text, "said.tpot_s") == pytest.approx([0.0095, 0.0085])


def test_repeated_keys_are_a_table() -> None:
    text = "".join(
        f"[done] cap={cap}W temp={temp} sm_mhz={clock} note=ok\n"
        for cap, temp, clock in ((200, 50, 1500), (250, 55, 1600), (300, 60, 1650))
    )
    assert labelled(text, "said.clock_sm_mhz", "power_cap") == [(1500, "200"), (1600, "250"), (1650, "300")]
    assert values(text, "said.power_limit_w") == [200, 250, 300]
    # Lines of a log with keys are a log.
    log = "".join(f"2026-01-01 10:00:0{second} INFO a={second} temp=5{second} c=3\n" for second in range(3))
    assert not values(log, "said.temperature_c")


@pytest.mark.parametrize(
    "text",
    [
        "| | |\n|---|---|\n| model | Qwen3-8B |\n| GPU | 2x H100 |\n| vllm | 0.9.2 |\n| load | 700 in / 90 out |\n",
        "| item | value |\n|---|---|\n| model | Qwen3-8B |\n| GPU | 2x H100 |\n| vllm | 0.9.2 |\n| load | 700 in / 90 out |\n",
    ],
)
def test_a_table_of_the_set_up_names_it(text: str) -> None:
    assert values(text, "said.gpu.name") == ["H100"]
    assert values(text, "said.gpu.count") == [2]
    assert values(text, "said.model") == ["Qwen3-8B"]
    assert values(text, "said.versions") == [["0.9.2"]]
    assert values(text, "said.prompt_tokens") == [700]
    assert values(text, "said.output_tokens") == [90]


def test_names_in_a_table_of_results_are_not_the_set_up() -> None:
    text = "| GPU | tok/s |\n|---|---|\n| H100 | 90 |\n| A100 | 50 |\n"
    assert not values(text, "said.gpu.name")


@pytest.mark.parametrize("unit", ["a=1 b=2 c=3\n", "running   64, does not move\n", "x  1  2 %  3\n", "a (a (a  1\n"])
def test_layouts_take_linear_time(unit: str) -> None:
    run(unit * 50)
    begin = time.perf_counter()
    run(unit * 300)
    short = time.perf_counter() - begin
    begin = time.perf_counter()
    run(unit * 1200)
    assert time.perf_counter() - begin < 12 * short + 0.5
