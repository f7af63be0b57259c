"""CPU samplers: shares per process, the lock's holder, polling and waiting told from work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tools.contract import Context, Reading
from tools.part import Part
from tools.profile import classify
from tools.profile.read import read

SHARED = Path(__file__).resolve().parents[4] / "shared" / "samples" / "perf"

RAW = """\
process 10:"VLLM::EngineCore";run_busy_loop (vllm/v1/engine/core.py:703);step (vllm/v1/engine/core.py:276);schedule (vllm/v1/core/sched/scheduler.py:380);get_computed_blocks (vllm/v1/core/kv_cache_manager.py:181) 60
process 10:"VLLM::EngineCore";run_busy_loop (vllm/v1/engine/core.py:703);step (vllm/v1/engine/core.py:276);fill_bitmask (vllm/v1/structured_output/__init__.py:90);fill_next_token_bitmask (xgrammar/matcher.py:40) 20
process 10:"VLLM::EngineCore";run_busy_loop (vllm/v1/engine/core.py:703);get_output (vllm/v1/worker/gpu_model_runner.py:1);synchronize (torch/cuda/streams.py:227) 20
process 11:"VLLM::Worker_TP0";worker_busy_loop (vllm/v1/executor/multiproc_executor.py:963);acquire_read (vllm/distributed/device_communicators/shm_broadcast.py:674);sched_yield (vllm/distributed/utils.py:50) 90
process 11:"VLLM::Worker_TP0";worker_busy_loop (vllm/v1/executor/multiproc_executor.py:963);_prepare_inputs (vllm/v1/worker/gpu_model_runner.py:612) 10
process 12:"vllm serve Qwen/Qwen3-8B";run (uvicorn/server.py:66);render (vllm/entrypoints/chat_utils.py:12);apply_chat_template (transformers/tokenization_utils_base.py:1) 30
process 12:"vllm serve Qwen/Qwen3-8B";run (uvicorn/server.py:66);_run_once (asyncio/base_events.py:1);select (selectors.py:468) 70
"""


def readings(name: str, text: str) -> list[Reading]:
    return read([Part(name=name, data=text.encode())], Context()).readings


def by(rows: list[Reading], fact: str) -> dict[str, Any]:
    return {r.labels.get("process", ""): r.value for r in rows if r.fact == fact}


def test_shares_per_process_role() -> None:
    rows = readings("stacks.txt", RAW)
    assert by(rows, "profile.cpu.share.schedule")["engine_core"] == pytest.approx(0.6)
    assert by(rows, "profile.cpu.share.grammar")["engine_core"] == pytest.approx(0.2)
    assert by(rows, "profile.cpu.share.wait_gpu")["engine_core"] == pytest.approx(0.2)
    assert by(rows, "profile.cpu.share.poll")["worker"] == pytest.approx(0.9)
    assert by(rows, "profile.cpu.share.tokenize")["api_server"] == 1.0, "a thread in select does not count as work"
    assert by(rows, "profile.cpu.samples") == {"engine_core": 100, "worker": 100, "api_server": 30}
    hot = by(rows, "profile.cpu.hot")["engine_core"]
    assert hot[0] == "60.0 % get_computed_blocks (vllm/v1/core/kv_cache_manager.py)"
    poll = next(r for r in rows if r.fact == "profile.cpu.share.poll")
    assert any("by design" in c for c in poll.caveats)


def test_a_flame_graph_gives_the_same_shares_as_its_stacks() -> None:
    stacks = [line.rsplit(" ", 1) for line in RAW.splitlines()]
    boxes, x = [], 0
    boxes.append((0, 300, 0, "all"))
    for stack, count in stacks:
        for depth, frame in enumerate(stack.split(";"), 1):
            boxes.append((x, int(count), depth * 16, frame))
        x += int(count)
    svg = "<svg><g id='frames'>" + "".join(
        f'<g><title>{name.replace("&", "&amp;").replace(chr(34), "&quot;")} ({w} samples, 1.00%)</title><rect x="1%" y="{y}" width="2%" fg:x="{at}" fg:w="{w}"/></g>'
        for at, w, y, name in boxes
    ) + "</g></svg>"  # fmt: skip
    flame, raw = readings("flamegraph.svg", svg), readings("stacks.txt", RAW)
    for fact in ("profile.cpu.share.schedule", "profile.cpu.share.poll", "profile.cpu.samples"):
        assert by(flame, fact) == pytest.approx(by(raw, fact))


def test_py_spy_top_screen() -> None:
    text = """Collecting samples from 'VLLM::Worker_TP1' (python v3.12.3)
Total Samples 900
GIL: 49.00%, Active: 100.00%, Threads: 5

  %Own   %Total  OwnTime  TotalTime  Function (filename)
 54.00%  54.00%    5.03s     5.03s   sched_yield (vllm/distributed/utils.py)
 14.00% 100.00%    1.09s     8.95s   acquire_read (vllm/distributed/device_communicators/shm_broadcast.py)
"""
    rows = readings("top.txt", text)
    assert by(rows, "profile.cpu.gil_share") == {"worker": 0.49}
    assert by(rows, "profile.cpu.share.poll") == {"worker": 1.0}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the sample files beside the project are absent")
def test_dumps_name_the_lock_holder_and_collectives() -> None:
    rows = readings("dump.txt", (SHARED / "pyspy-dump-sglang-decode.txt").read_text())
    holders = [r.value for r in rows if r.fact == "profile.cpu.gil_holder"]
    assert holders == ["engine_core/MainThread: recv_pyobj (zmq/sugar/socket.py:989)"]
    threads = by(rows, "profile.cpu.threads")
    assert len(threads["scheduler"]) == 4, "a process header without a blank line before it starts a process"
    assert "[wait_gpu]" in threads["scheduler"][0]
    stuck = readings("dump.txt", (SHARED / "pyspy-dump-broadcast.txt").read_text())
    assert [r.value for r in stuck if r.fact == "profile.cpu.in_collective"] == [True]


def test_a_faulthandler_dump() -> None:
    text = 'Fatal Python error: Aborted\n\nThread 0x7f1 (most recent call first):\n  File "/x/torch/distributed/distributed_c10d.py", line 9 in all_reduce\n  File "/x/a.py", line 3 in run\n'
    assert by(readings("dump.txt", text), "profile.cpu.in_collective") == {"": True}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the sample files beside the project are absent")
def test_perf_script_counts_every_sample_once() -> None:
    text = (SHARED / "perf-script-forks.txt").read_text()
    headers = [line for line in text.splitlines() if line and not line[0].isspace()]
    busy = [line for line in headers if not line.startswith("swapper")]
    assert by(readings("s.txt", text), "profile.cpu.samples") == {"forks": len(busy)}


def test_perf_report_shares_are_of_all_samples() -> None:
    text = (
        "# Samples: 60K of event 'cycles'\n# Overhead  Command          Shared Object  Symbol\n# ....\n"
        "    40.00%  VLLM::EngineCor  libxgrammar.so  [.] xgrammar::FillBitmask\n     5.00%  python  libc.so.6  [.] malloc\n"
    )
    rows = readings("report.txt", text)
    assert by(rows, "profile.cpu.share.grammar")["engine_core"] == pytest.approx(0.40)


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<(int)128>>", "attention"),
        ("void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<x>>>", "attention"),
        ("void vllm::reshape_and_cache_flash_kernel<unsigned short>", "attention"),
        ("fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalP32Q8Kv128PersistentSwapsAbForGen", "attention"),
        ("kernel_unified_attention_2d", "attention"),
        ("triton_red_fused__to_copy_add_marlin_gemm_mean_mul_pow_rsqrt_2", "elementwise"),
        ("void marlin::Marlin<(long)1125899906910725>", "gemm"),
        ("void marlin_moe_wna16::Marlin<(long)112>", "moe"),
        ("nvjet_tst_64x8_64x16_4x2_v_bz_TNT", "gemm"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64", "gemm"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_MT128x128x64", "gemm"),
        ("std::enable_if<!T7, void>::type internal::gemvx::kernel<int>", "gemm"),
        ("void deep_gemm::sm90_fp8_gemm_1d2d_impl<x>", "gemm"),
        ("fused_moe_kernel", "moe"),
        ("void vllm::moe::topkGatingSoftmax<4, 128>", "moe"),
        ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cutlass::gemm::GroupProblemShape<x>>>", "moe"),
        ("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096>)", "allreduce"),
        ("void vllm::cross_device_reduce_1stage<__half, (int)2>", "allreduce"),
        ("void deep_ep::internode_ll::dispatch<true, 9, 3, 7168>", "allreduce"),
        ("void vllm::dynamic_per_token_scaled_fp8_quant_kernel<c10::BFloat16>", "quant"),
        ("per_token_group_quant_8bit_kernel", "quant"),
        ("void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel>", "elementwise"),
        ("void at::native::vectorized_elementwise_kernel<(int)4, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase &)>", "copy"),
        ("void at::native::<unnamed>::CatArrayBatchedCopy<x>", "copy"),
        ("void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>>>", "sampling"),
        ("void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024>", "sampling"),
        ("chunk_gated_delta_rule_fwd_kernel_h_blockdim64", "ssm"),
        ("_causal_conv1d_update_kernel", "ssm"),
        ("my_unheard_of_kernel_42", "other"),
    ],
)  # fmt: skip
def test_kernel_classes(name: str, cls: str) -> None:
    assert classify.kernel_class(name) == cls
