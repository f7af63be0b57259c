"""Golden effective configurations: what each flag amounts to in the version at hand."""

from __future__ import annotations

from typing import Any

import pytest

from tools.config.effective import effective
from tools.config.outcome import Effective
from tools.config.read import parse
from tools.config.world import World, gpu_in, memory_of, options_from, world_from

LAB = (
    "VLLM_CPU_KVCACHE_SPACE=2 VLLM_CPU_OMP_THREADS_BIND=0 HF_HUB_OFFLINE=1 \\\n  vllm serve /models/tiny --host 127.0.0.1 "
    "--port 8100 --max-model-len 4096 --enforce-eager --max-num-seqs 64 --num-gpu-blocks-override 34"
)
H100 = World(version="0.32.0", gpu_name="h100", gpu_gib=80.0)


def resolve(text: str, world: World | None = None, **known: Any) -> Effective:
    launches, _ = parse("launch.txt", text)
    assert len(launches) == 1
    return effective(launches[0], world or World(**known))


def origins(result: Effective, *facts: str) -> dict[str, tuple[Any, str]]:
    return {fact: (result.values[f"config.{fact}"].value, result.values[f"config.{fact}"].origin) for fact in facts}


def test_lab_server_on_a_cpu() -> None:
    result = resolve(LAB, version="0.32.0")
    assert (result.device, result.generation) == ("cpu", "V1")
    assert origins(
        result, "max_num_seqs", "max_num_batched_tokens", "async_scheduling", "cudagraph_mode", "block_size"
    ) == {
        "max_num_seqs": (64, "given"),
        "max_num_batched_tokens": (2048, "default"),
        "async_scheduling": (False, "default"),
        "cudagraph_mode": ("NONE", "default"),
        "block_size": (128, "default"),
    }
    assert "config.cudagraph.capture_needed" not in result.values  # an eager flag on a CPU build loses no graph
    assert result.removed == result.unknown == result.conflicts == []
    assert result.values["config.env.vllm_cpu_kvcache_space"].value == 2


@pytest.mark.parametrize(
    ("version", "gpu", "gib", "context", "seqs", "tokens"),
    [
        ("0.32.0", "h100", 80.0, "serve", 1024, 8192),
        ("0.32.0", "h100", 80.0, "LLM", 1024, 16384),
        ("0.32.0", "a100", 80.0, "serve", 256, 2048),
        ("0.32.0", "l40s", 48.0, "serve", 256, 2048),
        ("0.32.0", "l40s", 48.0, "LLM", 256, 8192),
        ("0.32.0", "b200", 180.0, "serve", 1024, 16384),
        ("0.27.0", "b200", 180.0, "serve", 1024, 8192),
        ("0.8.5", "a100", 80.0, "serve", 1024, 8192),
        ("0.8.3", "a100", 80.0, "serve", 1024, 2048),
        ("0.8.3", "l40s", 48.0, "serve", 1024, 2048),
        ("0.33.0", "gb10", 119.0, "serve", 256, 2048),
        ("0.32.0", "gb10", 119.0, "serve", 1024, 8192),
    ],
)
def test_batch_defaults_by_gpu_context_and_version(
    version: str, gpu: str, gib: float, context: str, seqs: int, tokens: int
) -> None:
    text = "vllm serve a/b" if context == "serve" else "from vllm import LLM\nLLM(model='a/b', seed=1)"
    result = resolve(text, version=version, gpu_name=gpu, gpu_gib=gib)
    assert result.raw("config.max_num_seqs") == seqs
    assert result.raw("config.max_num_batched_tokens") == tokens


def test_defaults_that_depend_on_the_unknown_are_not_asserted() -> None:
    result = resolve("vllm serve a/b --quantization awq")
    assert "config.max_num_seqs" not in result.values and "config.gpu_memory_utilization" not in result.values
    text = " ".join(result.undetermined)
    assert "config.max_num_seqs: 256 or 1024" in text and "the version" in text and "GPU" in text
    known = resolve("vllm serve a/b", version="0.32.0")
    assert known.raw("config.gpu_memory_utilization") == 0.92
    assert any("1024 or 256" in line and "GPU" in line for line in known.undetermined)
    assert resolve("vllm serve a/b", version="0.19.1").raw("config.gpu_memory_utilization") == 0.9


def test_a_fragment_concludes_nothing_from_absence() -> None:
    result = resolve("--enable-chunked-prefill --max-num-batched-tokens 512", H100)
    assert set(result.values) == {"config.enable_chunked_prefill", "config.max_num_batched_tokens"}
    assert all(value.origin == "given" for value in result.values.values())


def test_removed_unknown_too_new_and_renamed() -> None:
    result = resolve("vllm serve a/b --swap-space 8 --disable-log-requests --watchdog-config {} --frob 1", H100)
    assert result.removed == ["swap-space", "disable-log-requests"]
    assert (result.unknown, result.too_new, result.renamed) == (["frob"], ["watchdog-config"], ["disable-log-requests"])
    assert "gone since 0.18.0" in result.details["swap-space"] and "kv-offloading-size" in result.details["swap-space"]
    assert "refused by this version" in result.values["config.swap_space"].caveats[0]


def test_ignored_without_effect() -> None:
    both = resolve("vllm serve a/b --kv-cache-memory-bytes 1G --gpu-memory-utilization 0.9", H100)
    assert both.ignored == ["gpu-memory-utilization"]
    v1 = resolve("vllm serve a/b --swap-space 8", version="0.12.0")
    assert v1.ignored == ["swap-space"] and v1.removed == []
    mode = resolve("vllm serve a/b --performance-mode throughput --max-num-seqs 8 --max-num-batched-tokens 4096", H100)
    assert mode.ignored == ["performance-mode"]
    eager = resolve("vllm serve a/b --enforce-eager --cudagraph-capture-sizes 1 2", H100)
    assert eager.ignored == ["cudagraph-capture-sizes"] and eager.raw("config.cudagraph_mode") == "NONE"


def test_flags_that_force_v0_or_stop_the_start() -> None:
    old = resolve("vllm serve a/b --preemption-mode swap --num-scheduler-steps 8", version="0.9.2")
    assert old.generation == "V0" and old.forcing_v0 == ["preemption-mode", "num-scheduler-steps"]
    assert old.raw("config.max_num_seqs") == 256 and old.raw("config.enable_chunked_prefill") is False
    harmless = resolve("vllm serve a/b --num-scheduler-steps 1", version="0.9.2")
    assert harmless.forcing_v0 == [] and harmless.generation == "V1"
    partial = resolve("vllm serve a/b --max-num-partial-prefills 4", version="0.20.0")
    assert partial.failing == ["max-num-partial-prefills"]
    assert resolve("vllm serve a/b --max-num-partial-prefills 1", version="0.20.0").failing == []
    draft = resolve(
        'vllm serve a/b --speculative-config \'{"method":"draft_model","model":"d","num_speculative_tokens":2}\'',
        version="0.9.0",
    )
    assert draft.forcing_v0 == ["speculative-config"]
    unknown = resolve("vllm serve a/b --preemption-mode swap")
    assert unknown.forcing_v0 == []
    assert any("--preemption-mode makes the V0 engine run" in text for text in unknown.undetermined)


def test_generation_over_versions() -> None:
    assert resolve("vllm serve a/b", version="0.7.3").generation == "V0"
    assert resolve("VLLM_USE_V1=1 vllm serve a/b", version="0.7.3").generation == "V1"
    assert resolve("VLLM_USE_V1=0 vllm serve a/b", version="0.10.0").generation == "V0"
    assert resolve("VLLM_USE_V1=0 vllm serve a/b", version="0.12.0").generation == "V1"
    assert resolve("vllm serve a/b").generation == ""


def test_version_range_from_the_flags_themselves() -> None:
    old = resolve("vllm serve a/b --speculative-model [ngram] --num-speculative-tokens 8 --use-v2-block-manager")
    assert old.version == "" and old.version_range == "0.4.3–0.8.0"
    assert old.raw("config.spec.method") == "ngram" and "config.spec.model" not in old.values
    new = resolve("vllm serve a/b --max-cudagraph-capture-size 6")
    assert new.version_range == "0.11.1+" and new.generation == "V1"
    none = resolve("vllm serve a/b --max-cudagraph-capture-size 6 --num-scheduler-steps 4")
    assert "no compared release accepts all of" in none.conflicts[0] and "0.11.1+" in none.conflicts[0]


def test_captured_sizes_against_the_largest_batch() -> None:
    small = resolve(
        "--max-num-seqs 6 --max-cudagraph-capture-size 6 --speculative-config '{\"num_speculative_tokens\":3, ...}'"
    )
    assert (small.raw("config.cudagraph.capture_needed"), small.raw("config.cudagraph.capture_max")) == (24, 6)
    default = resolve("vllm serve a/b", H100)
    assert (default.raw("config.cudagraph.capture_needed"), default.raw("config.cudagraph.capture_max")) == (1024, 512)
    drafted = resolve(
        'vllm serve a/b --max-num-seqs 24 --speculative-config \'{"method":"dflash","num_speculative_tokens":6}\'', H100
    )
    assert (drafted.raw("config.cudagraph.capture_needed"), drafted.raw("config.cudagraph.capture_max")) == (168, 336)
    sizes = resolve("vllm serve a/b --cudagraph-capture-sizes 1 2 4", H100)
    assert sizes.raw("config.cudagraph.capture_max") == 4


def test_async_scheduling_follows_the_speculation_method() -> None:
    def on(method: str) -> Any:
        return resolve(
            f"vllm serve a/b --speculative-config.method {method} --speculative-config.num_speculative_tokens 2", H100
        ).raw("config.async_scheduling")

    assert on("eagle3") is True and on("ngram") is False and on("deepseek_mtp") is True
    assert resolve("vllm serve a/b", version="0.13.0").raw("config.async_scheduling") is False
    unknown = resolve('vllm serve a/b --speculative-config \'{"model":"d","num_speculative_tokens":2}\'', H100)
    assert "config.async_scheduling" not in unknown.values


def test_token_budget_without_chunking_and_with_throughput_mode() -> None:
    off = resolve("vllm serve a/b --no-enable-chunked-prefill --max-model-len 32768", H100)
    assert off.raw("config.max_num_batched_tokens") == 32768
    doubled = resolve("vllm serve a/b --performance-mode throughput", H100)
    assert (doubled.raw("config.max_num_seqs"), doubled.raw("config.max_num_batched_tokens")) == (2048, 16384)
    assert "doubled" in doubled.values["config.max_num_seqs"].method
    tiny = resolve("vllm serve a/b --max-model-len 128 --max-num-seqs 4", H100)
    assert tiny.raw("config.max_num_batched_tokens") == 512


def test_contradictions_inside_one_launch() -> None:
    twice = resolve("vllm serve a/b --max-num-seqs 4 --max-num-seqs 8", H100)
    assert twice.raw("config.max_num_seqs") == 8 and "given twice" in twice.conflicts[0]
    small = resolve("vllm serve a/b --max-num-seqs 4096 --max-num-batched-tokens 2048", H100)
    assert "refuses to start" in small.conflicts[0]
    gpus = resolve("docker run --gpus 2 vllm/vllm-openai:v0.20.0 --model a/b -tp 4")
    assert "needs 4 GPUs" in gpus.conflicts[0]
    word = resolve("vllm serve a/b --max-num-seqs many", H100)
    assert "is no int" in word.conflicts[0] and "config.max_num_seqs" not in word.values


def test_environment_verdicts_and_slow_settings() -> None:
    result = resolve(
        "VLLM_ATTENTION_BACKEND=FLASHINFER VLLM_FOO=1 CUDA_LAUNCH_BLOCKING=1 NCCL_DEBUG=INFO VLLM_TRACE_FUNCTION=0 vllm serve a/b --enable-log-outputs",
        H100,
    )
    assert (result.env_removed, result.env_unknown) == (["VLLM_ATTENTION_BACKEND"], ["VLLM_FOO"])
    assert result.slows == ["CUDA_LAUNCH_BLOCKING", "enable-log-outputs"]
    assert "config.attention_backend" not in result.values
    old = resolve("VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve a/b", version="0.10.0")
    assert old.raw("config.attention_backend") == "FLASHINFER" and old.env_removed == []


def test_sglang_names_become_the_common_ones() -> None:
    result = resolve(
        "python -m sglang.launch_server --model-path a/b --tp 16 --nnodes 2 --mem-fraction-static 0.8 --show-time-cost --disable-radix-cache "
        "--speculative-algorithm EAGLE --speculative-num-draft-tokens 4 --disable-overlap-schedule",
        version="0.5.9", gpu_name="h200", gpu_gib=141.0,
    )  # fmt: skip
    assert origins(
        result, "tensor_parallel_size", "enable_prefix_caching", "async_scheduling", "max_num_batched_tokens"
    ) == {
        "tensor_parallel_size": (16, "given"),
        "enable_prefix_caching": (False, "given"),
        "async_scheduling": (False, "given"),
        "max_num_batched_tokens": (8192, "default"),
    }
    assert result.raw("config.spec.method") == "eagle" and result.slows == ["show-time-cost"]
    assert result.raw("config.cudagraph.capture_max") == 512 and result.raw("config.total_gpus") == 16
    assert "weights and KV pool only" in result.values["config.gpu_memory_utilization"].caveats[0]
    assert "config.kv_connector" not in result.values


def test_router_counts_its_back_ends() -> None:
    result = resolve("vllm-router --prefill http://a:1 --prefill http://b:1 --decode http://c:1 --policy power_of_two")
    assert {fact: value.value for fact, value in result.values.items()} == {
        "config.prefill_replicas": 2, "config.decode_replicas": 1, "config.router_policy": "power_of_two",
    }  # fmt: skip
    assert result.conflicts == []


def test_a_version_newer_than_the_data_says_so_once() -> None:
    result = resolve("vllm serve a/b --max-num-seqs 4 --swap-space 1", version="9.1.0")
    assert result.undetermined[0] == "version 9.1.0 is newer than the data, which ends at 0.33"
    assert not any("--max-num-seqs" in line for line in result.undetermined)


def test_o_level_changed_its_meaning() -> None:
    assert resolve("vllm serve a/b -O3", version="0.10.0").raw("config.compilation_mode") == 3
    assert resolve("vllm serve a/b -O3", version="0.20.0").raw("config.optimization_level") == "O3"
    off = resolve("vllm serve a/b -O0", H100)
    assert off.raw("config.cudagraph_mode") == "NONE" and "config.cudagraph.capture_max" not in off.values


def test_gpu_names_and_options() -> None:
    assert gpu_in("16 x NVIDIA H200, TP16") == ("h200", 140.0)
    assert gpu_in("gpu: 1x A100 80GB") == ("a100", 80.0)
    assert gpu_in("gpu: A100") == ("a100", None) and gpu_in("no card here") == ("", None)
    assert memory_of("NVIDIA A100-SXM4-40GB") == 40.0
    known = {"log.engine_version": "0.20.0", "gpu.name": "NVIDIA H100 80GB HBM3"}
    options = options_from(known.get)
    world = world_from(options)
    assert (world.version, world.gpu_gib) == ("0.20.0", 80.0)
