"""Start-up lines, server reports, Python keywords, docker inspect, cache_config_info and notes."""

from __future__ import annotations

import json
from typing import Any

from tools.config.forms import (
    cache_config_launch,
    json_launches,
    read_json,
    read_notes,
    read_python,
    server_info_launch,
)
from tools.config.launch import Launch
from tools.config.logline import parse_config_line, parse_engine_config_line, parse_non_default_args, parse_server_args
from tools.config.readings import launch_readings
from tools.config.values import cores, cpu_list, gibibytes, number, scalar, seconds, structured

ENGINE_LINE = (
    "(EngineCore pid=9) INFO 11-29 15:58:41 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: "
    "model='/m', speculative_config=SpeculativeConfig(method='dflash', model='d', num_spec_tokens=15), tokenizer='/m', "
    "dtype=torch.bfloat16, max_seq_len=4096, tensor_parallel_size=2, pipeline_parallel_size=1, quantization=None, "
    "enforce_eager=False, kv_cache_dtype=auto, device_config=cpu, structured_outputs_config=StructuredOutputsConfig("
    "backend='auto', reasoning_parser=''), enable_prefix_caching=True, enable_chunked_prefill=True, "
    "compilation_config={'mode': <CompilationMode.VLLM_COMPILE: 3>, 'custom_ops': ['none'], 'cudagraph_mode': "
    "<CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>, 'cudagraph_capture_sizes': [1, 2, 4, 8], 'max_cudagraph_capture_size': 8}, "
    "kernel_config=KernelConfig(moe_backend='auto', linear_backend='auto')"
)


def facts(launch: Launch | None) -> dict[str, Any]:
    assert launch is not None
    return {reading.fact: reading.value for reading in launch_readings(launch)}


def test_engine_line_is_observed_truth() -> None:
    launch = parse_engine_config_line(ENGINE_LINE)
    values = facts(launch)
    assert launch is not None and launch.observed and (launch.version, launch.generation) == ("0.32.0", "V1")
    assert values["config.max_model_len"] == 4096 and values["config.dtype"] == "bfloat16"
    assert (
        values["config.cudagraph_mode"] == "FULL_AND_PIECEWISE" and values["config.compilation_mode"] == "VLLM_COMPILE"
    )
    assert (values["config.spec.method"], values["config.spec.num_tokens"]) == ("dflash", 15)
    assert values["config.device"] == "cpu" and values["config.structured_outputs_backend"] == "auto"
    assert "config.quantization" not in values and "config.max_num_seqs" not in values
    labels = {reading.labels["origin"] for reading in launch_readings(launch) if reading.fact == "config.dtype"}
    assert labels == {"log"}


def test_old_engine_lines_and_absence_of_speculation() -> None:
    old = parse_engine_config_line(
        "INFO 01-01 Initializing an LLM engine (v0.6.3.post1) with config: model='m', speculative_config=None, use_v2_block_manager=True, chunked_prefill_enabled=False)"
    )
    assert old is not None and (old.version, old.generation) == ("0.6.3.post1", "V0")
    values = facts(old)
    assert values["config.enable_chunked_prefill"] is False and values["config.spec.enabled"] is False


def test_non_default_args_make_every_absent_flag_default() -> None:
    text = "INFO 11-29 [api_utils.py:286] non-default args: {'model_tag': 'a/b', 'model': 'a/b', 'max_num_seqs': 32, 'speculative_config': {'model': 'd', 'num_speculative_tokens': 3}}"
    launch = parse_non_default_args(text)
    values = facts(launch)
    assert (
        values["config.max_num_seqs"] == 32
        and values["config.spec.model"] == "d"
        and values["config.cpu_offload_gb"] == 0
    )
    assert "config.spec.method" not in values  # the engine recognises it from the draft checkpoint
    spaced = parse_config_line(
        "INFO args: Namespace(subparser='serve', model='a/b', max_num_seqs=256, enforce_eager=False)"
    )
    assert spaced is not None and facts(spaced)["config.max_num_seqs"] == 256
    assert parse_non_default_args("nothing here") is None


def test_sglang_server_args() -> None:
    launch = parse_server_args(
        "[2025-01-01 00:00:00] server_args=ServerArgs(model_path='a/b', tp_size=8, dp_size=8, enable_dp_attention=True, mem_fraction_static=0.83, max_running_requests=2048, chunked_prefill_size=8192, disable_radix_cache=True, cuda_graph_max_bs=128, disaggregation_transfer_backend='mooncake', disaggregation_mode='null')"
    )
    values = facts(launch)
    assert values["config.enable_prefix_caching"] is False and values["config.total_gpus"] == 8
    assert values["config.cudagraph.capture_needed"] == 256 and values["config.cudagraph.capture_short"] is True
    assert values["config.gpu_memory_utilization"] == values["config.mem_fraction_static"] == 0.83
    assert "config.kv_connector" not in values
    assert parse_server_args("ServerArgs()") is None


def test_server_info_json_of_both_engines() -> None:
    sglang = server_info_launch(
        {"tp_size": 4, "max_running_requests": 32, "mem_fraction_static": 0.8, "enable_metrics": False}
    )
    assert facts(sglang)["config.max_num_seqs"] == 32
    vllm = server_info_launch(
        {
            "vllm_config": {
                "scheduler_config": {"max_num_seqs": 7, "policy": "priority"},
                "cache_config": {"block_size": 16},
                "speculative_config": {"method": "mtp", "num_speculative_tokens": 1},
            }
        }
    )
    values = facts(vllm)
    assert (values["config.max_num_seqs"], values["config.scheduling_policy"], values["config.spec.method"]) == (
        7,
        "priority",
        "mtp",
    )
    text = server_info_launch({"vllm_config": "model='m', tensor_parallel_size=2, enforce_eager=True"})
    assert facts(text)["config.tensor_parallel_size"] == 2
    assert json_launches({"architectures": ["X"], "hidden_size": 8}) == []
    nested = json_launches(
        {"request_rate": 1, "server_info": {"tp_size": 2, "max_running_requests": 9, "chunked_prefill_size": -1}}
    )
    assert facts(nested[0])["config.enable_chunked_prefill"] is False


def test_docker_inspect() -> None:
    data = [
        {
            "Config": {
                "Image": "vllm/vllm-openai:v0.20.0",
                "Env": ["OMP_NUM_THREADS=1"],
                "Cmd": ["--model", "a/b", "--max-num-seqs", "8"],
            },
            "HostConfig": {"NanoCpus": 2_000_000_000, "Memory": 0, "ShmSize": 67108864, "IpcMode": "private"},
        }
    ]
    launches, why = read_json(json.dumps(data))
    values = facts(launches[0])
    assert why == "" and values["config.max_num_seqs"] == 8 and values["config.cpu_limit_cores"] == 2.0
    assert (
        values["config.shm_size"] == 0.0625
        and "config.memory_limit" not in values
        and values["engine.version"] == "0.20.0"
    )


def test_cache_config_info_labels() -> None:
    launch = cache_config_launch(
        {
            "block_size": "128",
            "cache_dtype": "auto",
            "gpu_memory_utilization": "0.92",
            "enable_prefix_caching": "True",
            "num_gpu_blocks": "2730",
            "kv_cache_max_concurrency": "85.3",
            "sliding_window": "None",
        }
    )
    values = facts(launch)
    assert values["config.block_size"] == 128 and values["config.enable_prefix_caching"] is True
    assert values["config.num_gpu_blocks"] == 2730 and values["config.kv_max_concurrency"] == 85.3
    assert "config.sliding_window" not in values


def test_python_keywords_and_unknown_variables() -> None:
    launches = read_python(
        'from vllm import LLM\nllm = LLM(model="a/b", tensor_parallel_size=2, max_model_len=LIMIT,\n  speculative_config={"method": "ngram", "num_speculative_tokens": 5})\n'
    )
    launch = launches[0]
    assert (launch.context, launch.role, launch.engine) == ("llm_class", "offline", "vllm")
    values = facts(launch)
    assert values["config.tensor_parallel_size"] == 2 and values["config.spec.num_tokens"] == 5
    assert "config.max_model_len" not in values and any("LIMIT" in text for text in values["config.undetermined"])
    assert read_python("LLM(prompt)") == []


def test_notes_as_people_jot_them() -> None:
    first = read_notes("enable_prefix_caching=True, max_num_batched_tokens=16000, temperature=0, max_tokens=5")
    assert facts(first[0])["config.max_num_batched_tokens"] == 16000
    assert "max-tokens" not in [item.name for item in first[0].given]
    second = read_notes(
        "gpu: 1x A100 80GB, TP=1\nmodel: Gemma, bf16\nmax_num_seqs: 64\nspeculative: ngram, num_speculative_tokens 5\ncuda graphs: on\n"
    )
    values = facts(second[0])
    assert values["config.spec.method"] == "ngram" and values["config.enforce_eager"] is False
    assert values["config.cudagraph.capture_needed"] == 384 and values["config.tensor_parallel_size"] == 1
    assert "config.cpu_offload_gb" not in values  # a note leaves out what it leaves out
    third = read_notes("ray 2.56.0, vLLM 0.22.0, 1 replica, streaming")
    assert facts(third[0])["engine.version"] == "0.22.0" and facts(third[0])["config.replicas"] == 1
    assert read_notes("nothing to see, at all: ok") == []


def test_values() -> None:
    assert [number(text) for text in ("1_000", "25.6k", "1K", "4Mi", "1e3", "nan", "inf", "9" * 50)] == [
        1000,
        25600,
        1024,
        4 * 2**20,
        1000.0,
        None,
        None,
        None,
    ]
    assert [scalar(text) for text in ("true", "None", "0.5", "abc")] == [True, None, 0.5, "abc"]
    assert [gibibytes(text) for text in ("16Gi", "32g", "1024m", 2**30, "x", None)] == [
        16.0,
        32.0,
        1.0,
        1.0,
        None,
        None,
    ]
    assert [cores(text) for text in ("500m", 2, "x", True)] == [0.5, 2.0, None, None]
    assert [seconds(text) for text in ("1m30s", "250ms", 5, "soon")] == [90.0, 0.25, 5.0, None]
    assert [cpu_list(text) for text in ("0-7,16", "3", "x", "9-2")] == [9, 1, None, None]
    assert structured("{'a': True, b: [1, 2,], \"c\": f(x=1)}") == {"a": True, "b": [1, 2], "c": {"": "f", "x": 1}}
