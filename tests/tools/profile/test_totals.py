"""Totals agree with the report's own; numbers in any locale; excerpts are known as such."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tools.contract import Context
from tools.part import Part
from tools.profile.numbers import decimal_sign, duration_ns, number
from tools.profile.read import profiles_of, read, summarize

SHARED = Path(__file__).resolve().parents[4] / "shared" / "samples"
needs_samples = pytest.mark.skipif(not SHARED.is_dir(), reason="the sample files beside the project are absent")


def facts(name: str, text: str) -> dict[str, Any]:
    return {r.fact: r.value for r in read([Part(name=name, data=text.encode())], Context()).readings}


@needs_samples
@pytest.mark.parametrize("name", ["dsocr-all-cuda_gpu_kern_sum.csv", "dsocr-decode-cuda_gpu_kern_sum.csv"])
def test_kernel_sums_agree_with_the_file(name: str) -> None:
    path = SHARED / "nsys" / name
    rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))[1:]
    profile = summarize(path)
    assert profile.kernel_total == sum(float(row[1]) for row in rows)
    assert profile.kernel_count == sum(int(row[2]) for row in rows)
    for kernel, row in zip(profile.kernels, rows[:3], strict=False):
        assert kernel.total / profile.kernel_total == pytest.approx(float(row[0]) / 100, abs=6e-4)
    assert sum(profile.class_share.values()) == pytest.approx(1.0)


@needs_samples
def test_trace_totals_agree_with_an_independent_count() -> None:
    path = SHARED / "torch-trace" / "sampled_rank-0.json.gz"
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    profile = summarize(path)
    assert profile.kernel_count == len(kernels)
    assert profile.kernel_total == pytest.approx(sum(e["dur"] for e in kernels) * 1e3)
    work = sorted(
        (e["ts"], e["ts"] + e["dur"]) for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    )
    busy, end = 0.0, work[0][0]
    for start, stop in work:
        busy += max(0.0, stop - max(start, end))
        end = max(end, stop)
    assert profile.spans[0].busy == pytest.approx(busy * 1e3)
    assert profile.spans[0].window == pytest.approx((end - work[0][0]) * 1e3)
    assert len({e["args"]["stream"] for e in kernels}) > 1, "several streams, or the union is not tested"
    assert profile.spans[0].busy < profile.kernel_total + sum(c.total for c in profile.copies)


@needs_samples
def test_key_averages_count_device_time_once() -> None:
    linear = summarize(SHARED / "torch-trace" / "key_averages-linear.txt")
    assert linear.kernel_total + sum(c.total for c in linear.copies) == pytest.approx(688.483e3)
    assert linear.op_total == pytest.approx(3.134e6)
    assert linear.overhead == pytest.approx(2.193e6)
    vllm = summarize(SHARED / "torch-trace" / "key_averages-vllm-v0.txt")
    assert vllm.kernel_total == pytest.approx(10.769e9)
    assert [(k.name, k.cls) for k in vllm.kernels] == [("fused_moe_kernel", "moe")]
    assert vllm.class_share["moe"] == pytest.approx(0.3730, abs=1e-4)
    assert len(vllm.steps.durations) == 265
    assert set(vllm.steps.batch) == {4}


def test_python_frames_in_a_table_are_no_operators() -> None:
    text = """\
----------------------------------------------  ----------  ----------  -----------  ---------  ------------  ----------
                                          Name  Self CPU %    Self CPU  CPU total %  CPU total  CPU time avg  # of Calls
----------------------------------------------  ----------  ----------  -----------  ---------  ------------  ----------
     multiprocessing/connection.py(395): _recv      33.33%     12.730s       33.33%    12.730s       12.730s           1
<built-in method acquire of _thread.lock object      20.30%      7.754s       20.30%     7.754s        1.938s           4
                                      aten::mm      19.59%      7.482s       19.60%     7.485s       1.731ms        4323
                                   aten::copy_       0.29%   111.356ms        0.29%  111.356ms       7.262us       15333
----------------------------------------------  ----------  ----------  -----------  ---------  ------------  ----------
Self CPU time total: 38.190s
"""
    got = facts("out.txt", text)
    assert got["profile.op_share.gemm"] == pytest.approx(7.482 / (7.482 + 0.111356), rel=1e-3)
    assert got["profile.op_hot"][0].endswith("aten::mm")


@needs_samples
def test_sizes_and_times_of_copies() -> None:
    profile = summarize(SHARED / "nsys" / "text-2023plus-stats.txt")
    h2d = next(c for c in profile.copies if c.kind == "h2d")
    assert (h2d.count, h2d.total, h2d.size) == (4, 2_726_042.0, pytest.approx(25.297e6))
    assert sum(c.total for c in profile.calls) == 233_303_426 + 12_455_332 + 3_022_126 + 180_337
    assert profile.os_calls[0].name == "poll"


@needs_samples
@pytest.mark.parametrize(("name", "total"), [("text-locale-ch.txt", 15456.0), ("text-locale-es.txt", 33024.0)])
def test_locales(name: str, total: float) -> None:
    profile = summarize(SHARED / "nsys" / name)
    assert (profile.kernel_total, profile.kernels[0].count) == (total, 1)


@needs_samples
def test_grids_inside_a_column_do_not_shift_the_name() -> None:
    profile = summarize(SHARED / "nsys" / "text-2022-gpukernsum.txt")
    assert profile.kernels[2].name == "void dot_kernel<double>(const T1 *, const T1 *, T1 *, int)"
    assert profile.kernels[2].count == 100
    assert profile.listed == pytest.approx(0.837, abs=2e-3)
    assert any("excerpt" in p.what for p in profile.problems)


def test_decimal_signs() -> None:
    assert decimal_sign(["33.024", "33.024,0", "100,0"]) == ","
    assert decimal_sign(["1,234", "1,234,567", "99.5"]) == "."
    assert decimal_sign(["15’456.0"]) == "."
    assert number("1 234,5", ",") == 1234.5
    assert number("1\u202f234,5", ",") == 1234.5
    assert number("1 2") is None
    assert number("N/A") is None
    assert number("nan") is None
    assert number("inf") is None
    assert number("1e999") is None
    assert duration_ns("2.193ms") == pytest.approx(2_193_000)
    assert duration_ns("265") is None


TEXT = """\
 Time (%)  Total Time (ns)  Instances  Name
 --------  ---------------  ---------  ------------------------
     60.0            6,000          3  ncclDevKernel_AllReduce
     20.0            2,000          4  flash_fwd_kernel
"""


def test_an_excerpt_keeps_the_share_of_the_whole() -> None:
    got = facts("a.txt", TEXT)
    assert got["profile.kernel_share.allreduce"] == pytest.approx(0.6)
    assert "profile.kernel_share.moe" not in got, "rows that are not listed may be of any class"


def test_rows_that_do_not_line_up_are_read_token_by_token() -> None:
    lines = TEXT.splitlines()
    shifted = "\n".join([lines[0], lines[1], *(line.strip() for line in lines[2:])])
    assert facts("a.txt", shifted)["profile.kernel_share.allreduce"] == pytest.approx(0.6)


def test_markdown_and_old_column_names() -> None:
    text = "| Time(%) | Total Time | Calls | Average | Name |\n|---|---|---|---|---|\n| 75.0 | 300 | 3 | 100 | cudaLaunchKernel |\n| 25.0 | 100 | 1 | 100 | cudaDeviceSynchronize |\n"
    got = facts("a.md", text)
    assert got["profile.api_launch_share"] == pytest.approx(0.75)
    assert got["profile.api_sync_share"] == pytest.approx(0.25)


def test_console_of_2020() -> None:
    text = """\
Generating CUDA API Statistics...
CUDA API Statistics (nanoseconds)

Time(%)      Total Time       Calls         Average         Minimum         Maximum  Name
-------  --------------  ----------  --------------  --------------  --------------  ----------------
   75.0             300           3           100.0             100             100  cudaLaunchKernel
   25.0             100           1           100.0             100             100  cudaFree

Generating CUDA Kernel Statistics...
CUDA Kernel Statistics (nanoseconds)

Time(%)      Total Time   Instances         Average         Minimum         Maximum  Name
-------  --------------  ----------  --------------  --------------  --------------  ----------------
  100.0            5000           3          1666.7            1000            2000  my_gemm_kernel

Generating CUDA Memory Operation Statistics...
CUDA Memory Operation Statistics (nanoseconds)

Time(%)      Total Time  Operations         Average         Minimum         Maximum  Name
-------  --------------  ----------  --------------  --------------  --------------  ----------------
  100.0            2000           4           500.0             500             500  [CUDA memcpy HtoD]
"""
    got = facts("old.txt", text)
    assert got["profile.kernel_share.gemm"] == 1.0
    assert got["profile.api_launch_share"] == pytest.approx(0.75)
    assert got["profile.memcpy.h2d_share"] == pytest.approx(2 / 7)


def test_units_in_headers() -> None:
    text = "Time (%),Total Time (ms),Instances,Avg (us),Name\n100.0,2.5,5,500.0,gemm_kernel\n"
    profile = profiles_of(Part(name="a.csv", data=text.encode()))[0]
    assert profile.kernel_total == pytest.approx(2.5e6)


def test_semicolons_and_decimal_commas_of_a_spreadsheet() -> None:
    text = (
        'Time (%);Total Time (ns);Instances;Avg (ns);Name\n60,5;605;5;121,0;"gemm_kernel"\n39,5;395;5;79,0;"my_other"\n'
    )
    got = facts("kern.csv", text)
    assert got["profile.kernel_share.gemm"] == pytest.approx(0.605)


def test_no_kernel_table_is_no_zero() -> None:
    got = facts("a.csv", "Time (%),Total Time (ns),Num Calls,Name\n100.0,5,1,cudaMalloc\n")
    assert got["profile.startup_in_sample"] is True
    assert not any(fact.startswith(("profile.kernel", "profile.gpu_busy", "profile.idle")) for fact in got)
