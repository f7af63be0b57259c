"""One synthetic serving profile, written as every tool would write it: nsys SQLite, nsys stats (text, CSV, JSON) and a
torch.profiler trace. Decode steps with a prefill now and then, tensor parallel over some GPUs, most kernels replayed
from CUDA graphs. Deterministic for a seed; the same events whatever the format.
"""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

_LAYER = (
    ("std::enable_if<T2>(int)0&&vllm::_typeConvert<T1>::exists, void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16>", 2200),
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1_execute_segment_k_off_kernel", 14000),
    ("void vllm::rotary_embedding_kernel<c10::BFloat16, (bool)1>(const long *, T1 *, T1 *, const T1 *, int)", 1900),
    ("void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>", 1600),
    ("void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90>>>", 9000),
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, (int)2>(vllm::RankData *, vllm::RankSignals)", 4500),
    ("void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, (bool)1>(T1 *, const T1 *)", 2100),
    ("void vllm::dynamic_per_token_scaled_fp8_quant_kernel<c10::BFloat16>(__nv_fp8_e4m3 *, float *)", 1500),
)  # fmt: skip
_TAIL = (
    ("void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>", 12000),
    ("void at::native::elementwise_kernel<(int)128, (int)2, void at::native::direct_copy_kernel_cuda(at::TensorIterator)>", 1800),
)  # fmt: skip
_PREFILL = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize256x128x64_warpgroupsize2x1x1_execute_segment_k_off_kernel"
NAMES = [name for name, _ in _LAYER + _TAIL] + [_PREFILL]
LAYERS = 12
STEP_KERNELS = LAYERS * len(_LAYER) + len(_TAIL)


class Work(NamedTuple):
    """One kernel, copy or memset: ns since capture start. ``kind`` kernel, h2d or d2h; ``node`` 0 outside graphs."""

    start: int
    length: int
    device: int
    stream: int
    kind: str
    name: str
    corr: int
    node: int
    size: int


class Api(NamedTuple):
    """One API call."""

    start: int
    length: int
    name: str
    corr: int


class Mark(NamedTuple):
    """One step range as vLLM announces it."""

    start: int
    length: int
    name: str


class Step(NamedTuple):
    """Everything of one engine step."""

    work: list[Work]
    api: list[Api]
    mark: Mark


def steps(kernels: int, gpus: int = 2, seed: int = 7) -> Iterator[Step]:
    """Steps until about ``kernels`` kernels have been made; every 16th step is a prefill without a graph."""
    rnd = random.Random(seed)
    now, corr, made, number = 1_000_000_000, 1, 0, 0
    while made < kernels:
        prefill = number % 16 == 15
        work: list[Work] = []
        api: list[Api] = []
        begin, host = now, now - 60_000
        api.append(Api(host, 4_000, "cudaMemcpyAsync_v3020", corr))
        work += [Work(now, 1_500, g, 21, "h2d", "[CUDA memcpy Host-to-Device]", corr, 0, 4096) for g in range(gpus)]
        corr += 1
        ends = []
        graph = corr
        if not prefill:
            api.append(Api(host + 5_000, 9_000, "cudaGraphLaunch_v10000", graph))
            corr += 1
        for gpu in range(gpus):
            at = now + 3_000
            for index, (name, base) in enumerate(_LAYER * LAYERS + _TAIL):
                length = int(base * (9.0 if prefill else 1.0) * (1.0 + 0.08 * gpu) * rnd.uniform(0.9, 1.1))
                if prefill and "tilesize64x64" in name:
                    name = _PREFILL
                if prefill:
                    api.append(Api(host + 5_000 + index * 3_500, 3_000, "cudaLaunchKernel_v7000", corr))
                work.append(
                    Work(at, length, gpu, 7, "kernel", name, corr if prefill else graph, 0 if prefill else index + 1, 0)
                )
                corr += prefill
                at += length + (1_300 if prefill else 300)
                made += 1
            work.append(Work(at, 1_200, gpu, 21, "d2h", "[CUDA memcpy Device-to-Host]", corr, 0, 512))
            ends.append(at + 1_200)
        finish = max(ends)
        api.append(Api(finish - 20_000, 21_000, "cudaEventSynchronize_v3020", corr))
        corr += 1
        ctx = "1(2048)" if prefill else "0(0)"
        yield Step(work, api, Mark(begin, finish - begin, f"execute_context_{ctx}_generation_{24}({24})"))
        now = finish + rnd.choice((60_000, 90_000, 140_000, 400_000))
        number += 1


def write_sqlite(path: Path, kernels: int, gpus: int = 2) -> int:
    """An nsys export with the columns of nsys 2024; returns the number of kernels."""
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous = OFF")
    db.executescript(_SCHEMA)
    strings: dict[str, int] = {}
    node = {"h2d": 1, "d2h": 2}
    count = 0

    def string(text: str) -> int:
        return strings.setdefault(text, len(strings) + 1)

    for step in steps(kernels, gpus):
        rows, copies = [], []
        for w in sorted(step.work):
            if w.kind == "kernel":
                key = string(w.name)
                rows.append(
                    (w.start, w.start + w.length, w.device, 1, w.stream, w.corr, 1 << 24, key, key, 64, w.node or None)
                )
            else:
                copies.append((w.start, w.start + w.length, w.device, w.stream, w.corr, w.size, node[w.kind], 1, 2))
        count += len(rows)
        db.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,NULL,?,?,?,?,?,0,0,32,?,1,1,128,1,1,0,0,0,0,0,0,?,0)",
            rows,
        )
        db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,?,?,?,?,?,?,?)", copies)
        calls = [(a.start, a.start + a.length, 0, 1 << 24, a.corr, string(a.name), 0) for a in step.api]
        db.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,?,?,?)", calls)
        mark = step.mark
        db.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,59,?,NULL)", (mark.start, mark.start + mark.length, mark.name))
    db.executemany("INSERT INTO StringIds VALUES (?,?)", [(i, text) for text, i in strings.items()])
    db.executemany("INSERT INTO TARGET_INFO_GPU VALUES (?,'NVIDIA H100 80GB HBM3')", [(g,) for g in range(gpus)])
    db.commit()
    db.close()
    return count


_SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
 contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
 demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, launchType INTEGER, cacheConfig INTEGER,
 registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,
 blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
 dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL,
 gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
 streamId INTEGER NOT NULL, correlationId INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER,
 dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
 globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, textId INTEGER);
"""


def write_trace(path: Path, kernels: int, gpus: int = 1, *, ops: bool = True) -> int:
    """A kineto trace (gzip when the name says so), with the host operators and flows that make real ones large."""
    count = 0
    with _text(path) as out:
        head = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": gpus}}
        devices = [{"id": g, "name": "NVIDIA H100 80GB HBM3"} for g in range(gpus)]
        out.write(json.dumps({**head, "deviceProperties": devices})[:-1] + ', "traceEvents": [\n')
        first = True
        for step in steps(kernels, gpus):
            for text in _trace_step(step, ops):
                out.write(text if first else ",\n" + text)
                first = False
            count += sum(w.kind == "kernel" for w in step.work)
        out.write('\n], "traceName": "synthetic.pt.trace.json"}\n')
    return count


def _text(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "wt", compresslevel=1, encoding="utf-8")
    return path.open("w", encoding="utf-8")


def _trace_step(step: Step, ops: bool) -> Iterator[str]:
    def event(cat: str, name: str, start: int, length: int, pid: int, tid: int, args: dict[str, object]) -> str:
        body = {
            "ph": "X",
            "cat": cat,
            "name": name,
            "pid": pid,
            "tid": tid,
            "ts": start / 1e3,
            "dur": length / 1e3,
            "args": args,
        }
        return "  " + json.dumps(body)

    mark = step.mark
    yield event("user_annotation", mark.name, mark.start, mark.length, 4000, 4000, {"External id": 1})
    for a in step.api:
        name = a.name.split("_v")[0]
        yield event(
            "cuda_runtime",
            name,
            a.start,
            a.length,
            4000,
            4000,
            {"External id": a.corr, "cbid": 211, "correlation": a.corr},
        )
    cats = {"kernel": "kernel", "h2d": "gpu_memcpy", "d2h": "gpu_memcpy"}
    labels = {"h2d": "Memcpy HtoD (Pinned -> Device)", "d2h": "Memcpy DtoH (Device -> Pinned)"}
    for number, w in enumerate(step.work):
        args: dict[str, object] = {
            "External id": w.corr,
            "device": w.device,
            "context": 1,
            "stream": w.stream,
            "correlation": w.corr,
        }
        if w.kind == "kernel":
            args |= {"registers per thread": 64, "shared memory": 49152, "blocks per SM": 1.5, "warps per SM": 12.0,
                     "grid": [192, 1, 1], "block": [256, 1, 1], "est. achieved occupancy %": 38, "graph node id": w.node}  # fmt: skip
        else:
            args |= {"bytes": w.size, "memory bandwidth (GB/s)": 1.5}
        yield event(cats[w.kind], labels.get(w.kind, w.name), w.start, w.length, w.device, w.stream, args)
        if ops and w.kind == "kernel":
            dims = {"External id": w.corr, "Record function id": 0, "Sequence number": number, "Ev Idx": number,
                    "Input Dims": [[24, 4096], [4096, 4096]], "Input type": ["c10::BFloat16", "c10::BFloat16"],
                    "Input Strides": [[4096, 1], [1, 4096]], "Concrete Inputs": ["", ""]}  # fmt: skip
            yield event(
                "cpu_op",
                "vllm::unified_op" if number % 3 else "aten::linear",
                step.mark.start + number,
                1,
                4000,
                4000,
                dims,
            )


class Report(NamedTuple):
    """One ``nsys stats`` report: script name, title, columns, rows (numbers as numbers)."""

    name: str
    title: str
    columns: list[str]
    rows: list[list[str | float | int | None]]


def reports(kernels: int, gpus: int = 2, *, trace: bool = True) -> list[Report]:
    """The reports that ``nsys stats`` would make of the capture."""
    works: list[Work] = []
    apis: list[Api] = []
    marks: list[Mark] = []
    for step in steps(kernels, gpus):
        works += step.work
        apis += step.api
        marks.append(step.mark)
    stat = ["Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)"]
    kern = _sums({"kernel"}, works)
    mem = _sums({"h2d", "d2h"}, works)
    out = [
        Report("cuda_api_sum", "CUDA API Summary", ["Time (%)", "Total Time (ns)", "Num Calls", *stat, "Name"],
               _table([(a.name, a.length) for a in apis])),
        Report("cuda_gpu_kern_sum", "CUDA GPU Kernel Summary", ["Time (%)", "Total Time (ns)", "Instances", *stat, "Name"], _table(kern)),
        Report("cuda_gpu_mem_time_sum", "CUDA GPU MemOps Summary (by Time)", ["Time (%)", "Total Time (ns)", "Count", *stat, "Operation"], _table(mem)),
        Report("cuda_gpu_mem_size_sum", "CUDA GPU MemOps Summary (by Size)",
               ["Total (MB)", "Count", "Avg (MB)", "Med (MB)", "Min (MB)", "Max (MB)", "StdDev (MB)", "Operation"], _sizes(works)),
        Report("nvtx_sum", "NVTX Range Summary", ["Time (%)", "Total Time (ns)", "Instances", *stat, "Style", "Range"],
               [[*row[:-1], "PushPop", ":" + str(row[-1])] for row in _table([(m.name, m.length) for m in marks])]),
    ]  # fmt: skip
    if trace:
        columns = ["Start (ns)", "Duration (ns)", "CorrId", "GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ", "Reg/Trd", "StcSMem (MB)",
                   "DymSMem (MB)", "Bytes (MB)", "Throughput (MB/s)", "SrcMemKd", "DstMemKd", "Device", "Ctx", "GreenCtx", "Strm", "Name"]  # fmt: skip
        rows: list[list[str | float | int | None]] = []
        for w in sorted(works):
            shape = [64, 1, 1, 128, 1, 1, 32, 0.0, 0.0, None, None, None, None] if w.kind == "kernel" else (
                [None] * 9 + [w.size / 1e6, 1.0, "Pinned", "Device"])  # fmt: skip
            rows.append(
                [w.start, w.length, w.corr, *shape, f"NVIDIA H100 80GB HBM3 ({w.device})", 1, None, w.stream, w.name]
            )
        out.append(Report("cuda_gpu_trace", "CUDA GPU Trace", columns, rows))
    return out


def _sums(kinds: set[str], works: list[Work]) -> list[tuple[str, int]]:
    return [(w.name, w.length) for w in works if w.kind in kinds]


def _table(items: list[tuple[str, int]]) -> list[list[str | float | int | None]]:
    groups: dict[str, list[int]] = {}
    for name, length in items:
        groups.setdefault(name, []).append(length)
    whole = sum(length for _, length in items) or 1
    rows: list[list[str | float | int | None]] = []
    for name, lengths in sorted(groups.items(), key=lambda g: -sum(g[1])):
        lengths.sort()
        total, n = sum(lengths), len(lengths)
        spread = (sum((x - total / n) ** 2 for x in lengths) / n) ** 0.5
        rows.append(
            [
                round(100 * total / whole, 1),
                total,
                n,
                round(total / n, 1),
                float(lengths[n // 2]),
                lengths[0],
                lengths[-1],
                round(spread, 1),
                name,
            ]
        )
    return rows


def _sizes(works: list[Work]) -> list[list[str | float | int | None]]:
    rows: list[list[str | float | int | None]] = []
    for kind in ("h2d", "d2h"):
        sizes = [w.size / 1e6 for w in works if w.kind == kind]
        name = next((w.name for w in works if w.kind == kind), "")
        if sizes:
            rows.append([round(sum(sizes), 3), len(sizes), *(round(sizes[0], 3),) * 4, 0.0, name])
    return rows


def write_reports(out: TextIO, made: list[Report], form: str) -> None:
    """``form``: text, box, csv or json, as ``nsys stats`` prints several reports to one stream."""
    for report in made:
        out.write(f"Processing [r.sqlite] with [/opt/nsight/reports/{report.name}.py]... \n\n")
        if form == "csv":
            _csv(out, report)
        elif form == "json":
            rows = [json.dumps(dict(zip(report.columns, row, strict=True))) for row in report.rows]
            out.write("[\n" + ",\n".join(rows) + "\n]\n")
        else:
            out.write(f" ** {report.title} ({report.name}):\n\n")
            _aligned(out, report, box=form == "box")
        out.write("\n")


def _csv(out: TextIO, report: Report) -> None:
    import csv

    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(report.columns)
    writer.writerows(["" if cell is None else cell for cell in row] for row in report.rows)


def _cell(value: str | float | int | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value if len(value) <= 100 else value[:99] + "…"
    return f"{value:,}"


def _aligned(out: TextIO, report: Report, *, box: bool) -> None:
    cells = [[_cell(value) for value in row] for row in report.rows]
    widths = [max(len(c), *(len(row[i]) for row in cells)) if cells else len(c) for i, c in enumerate(report.columns)]
    numeric = [all(not isinstance(row[i], str) for row in report.rows) for i in range(len(widths))]
    line = [c.center(w) for c, w in zip(report.columns, widths, strict=True)]
    body = [[c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, numeric, strict=True)] for row in cells]
    if box:
        border = "+" + "+".join("-" * (w + 2) for w in widths) + "+\n"
        rows = ["| " + " | ".join(row) + " |\n" for row in body]
        out.write(border + "| " + " | ".join(line) + " |\n" + border + "".join(rows) + border)
        return
    out.write(" " + "  ".join(line) + "\n " + "  ".join("-" * w for w in widths) + "\n")
    out.writelines(" " + "  ".join(row) + "\n" for row in body)
