"""From words to flags: every form in which a launch is written."""

from __future__ import annotations

from typing import Any

import pytest

from tools.config.launch import Launch
from tools.config.read import parse


def one(text: str, name: str = "launch.txt") -> Launch:
    launches, _ = parse(name, text)
    assert len(launches) == 1, launches
    return launches[0]


def flags(launch: Launch) -> dict[str, Any]:
    return {item.name + (f".{item.path}" if item.path else ""): item.value for item in launch.given}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vllm serve org/m --max-num-seqs 4", {"model": "org/m", "max-num-seqs": 4}),
        ("vllm serve org/m --max_num_seqs=4 -tp=2 -dp 3", {"model": "org/m", "max-num-seqs": 4, "tensor-parallel-size": 2, "data-parallel-size": 3}),
        ("vllm serve --trust-remote-code org/m --enforce-eager", {"model": "org/m", "trust-remote-code": True, "enforce-eager": True}),
        ("vllm serve org/m --no-enable-prefix-caching", {"model": "org/m", "enable-prefix-caching": False}),
        ("vllm serve org/m --enable-chunked-prefill False", {"model": "org/m", "enable-chunked-prefill": False}),
        ("vllm serve org/m --max-model-len 25.6k", {"model": "org/m", "max-model-len": 25600}),
        ("vllm serve org/m --tensor-parallel 2", {"model": "org/m", "tensor-parallel-size": 2}),
        ("vllm serve org/m --served-model-name a b --port 1", {"model": "org/m", "served-model-name": ["a", "b"], "port": 1}),
        ("vllm serve org/m --cudagraph-capture-sizes 1 2 4", {"model": "org/m", "cudagraph-capture-sizes": [1, 2, 4]}),
        ("vllm serve org/m -O3", {"model": "org/m", "optimization-level": "O3"}),
        ("vllm serve org/m -cc.cudagraph_mode=PIECEWISE", {"model": "org/m", "compilation-config.cudagraph_mode": "PIECEWISE"}),
        ("vllm serve org/m -cc '{\"mode\": 3}'", {"model": "org/m", "compilation-config": {"mode": 3}}),
        ("vllm serve org/m --speculative-config.method ngram", {"model": "org/m", "speculative-config.method": "ngram"}),
        ("vllm serve org/m --speculative-config '{\"num_speculative_tokens\":3, ...}'", {"model": "org/m", "speculative-config": {"num_speculative_tokens": 3}}),
        ("vllm serve org/m --kv-transfer-config={'kv_connector':'NixlConnector'}", {"model": "org/m", "kv-transfer-config": {"kv_connector": "NixlConnector"}}),
        ("python3 -m vllm.entrypoints.openai.api_server --model org/m --gpu-memory-utilization 0.9", {"model": "org/m", "gpu-memory-utilization": 0.9}),
        ("python -m sglang.launch_server --model-path org/m --tp 16 --mem-fraction-static .8", {"model-path": "org/m", "tp-size": 16, "mem-fraction-static": 0.8}),
        ("text-generation-launcher --model-id org/m --num-shard 8", {"model-id": "org/m", "num-shard": 8}),
        ("nohup /opt/venv/bin/vllm serve org/m \u2014max-num-seqs 4 > log 2>&1 &", {"model": "org/m", "max-num-seqs": 4}),
        ("(base) u@h:~$ vllm serve org/m --seed 1", {"model": "org/m", "seed": 1}),
        ("bash -c 'vllm serve org/m --max-num-seqs 8'", {"model": "org/m", "max-num-seqs": 8}),
    ],
)  # fmt: skip
def test_command_forms(text: str, expected: dict[str, Any]) -> None:
    assert flags(one(text)) == expected


def test_environment_before_and_exported() -> None:
    launch = one("export NCCL_DEBUG=INFO\nVLLM_USE_V1=1 CUDA_VISIBLE_DEVICES=0,1 vllm serve org/m")
    assert {item.name: item.value for item in launch.env} == {
        "NCCL_DEBUG": "INFO",
        "VLLM_USE_V1": "1",
        "CUDA_VISIBLE_DEVICES": "0,1",
    }
    assert launch.context == "api_server" and launch.role == "server"


def test_variables_noted_behind_the_last_command_count_unless_something_runs_after_them() -> None:
    noted = one("vllm serve m --block-size 64\nUCX_TLS=tcp,self   # left over\n")
    assert [(item.name, item.value) for item in noted.env] == [("UCX_TLS", "tcp,self")]
    script = one("vllm serve org/m --port 1 &\nCLIENT_KEY=x\npython client.py\n")
    assert script.env == []


def test_shell_variables_resolve_and_unknown_ones_stay_unknown() -> None:
    launch = one("MODEL=org/m\nvllm serve $MODEL --max-num-seqs ${SEQS:-16} --max-model-len $LEN")
    assert flags(launch)["model"] == "org/m" and flags(launch)["max-num-seqs"] == 16
    assert next(item for item in launch.given if item.name == "max-model-len").unresolved


def test_docker_run_gives_image_limits_and_flags() -> None:
    launch = one(
        "docker run --gpus '\"device=0,1\"' -e VLLM_USE_V1=1 --cpus 4 -m 32g --shm-size=16g --ipc=host -p 1:2 \\\n"
        " vllm/vllm-openai:v0.9.1 --model org/m --quantization awq"
    )
    assert (launch.engine, launch.version, launch.context) == ("vllm", "0.9.1", "api_server")
    assert flags(launch) == {"model": "org/m", "quantization": "awq"}
    assert {name: item.value for name, item in launch.limits.items()} == {
        "gpu_limit": 2, "cpu_limit": 4.0, "memory_limit": 32.0, "shm_size": 16.0, "ipc_host": True,
    }  # fmt: skip
    assert launch.env[0].name == "VLLM_USE_V1"


def test_latest_and_foreign_image_tags_give_no_version() -> None:
    assert one("docker run vllm/vllm-openai:latest --model a/b").version == ""
    assert one("docker run lmcache/vllm-openai:2025-05-27-v1 --model a/b").version == ""
    assert one("docker run lmsysorg/sglang:v0.5.17-cu130 python3 -m sglang.launch_server --tp 2").version == "0.5.17"


def test_fragments_belong_to_the_engine_that_knows_the_flags() -> None:
    vllm = one("--max-num-seqs 6 --max-cudagraph-capture-size 6")
    assert (vllm.engine, vllm.form, vllm.elided) == ("vllm", "fragment", True)
    lines = one("--model /m\n--tensor-parallel-size 1\n--disable-log-requests\n")
    assert flags(lines) == {"model": "/m", "tensor-parallel-size": 1, "disable-log-requests": True}
    assert one("--max-running-requests 8 --chunked-prefill-size 4096").engine == "sglang"
    assert parse("x.txt", "--frobnicate 1 --hurl 2")[0] == []


def test_dots_mean_that_something_is_left_out() -> None:
    launch = one("vllm serve ... --enable-expert-parallel")
    assert launch.elided and flags(launch) == {"enable-expert-parallel": True}


def test_variants_keep_their_comments_and_the_router_is_apart() -> None:
    launches, _ = parse("l.txt", "# with\nvllm serve a/b --enable-lora\n# without\nvllm serve a/b\n")
    assert [launch.label for launch in launches] == ["with", "without"]
    router, _ = parse(
        "l.txt",
        "vllm-router --prefill http://a:1 --prefill http://b:1 --policy power_of_two\n# back ends: vllm serve ... --enable-eplb",
    )
    assert [launch.engine for launch in router] == ["router", "vllm"]
    assert any("comment" in note for note in router[1].notes)


@pytest.mark.parametrize(
    "text",
    [
        "About 48 ms more TTFT behind Ray than with plain vllm serve",
        "vllm serve                 16.9 / 21.2    35.0 / 45.4",
        "vllm bench serve --model a/b --num-prompts 100",
        "-------- Time to First Token --------\nMean TTFT (ms): 3\n",
        "we use vllm serve and it is fine",
    ],
)
def test_prose_tables_and_clients_are_no_launch(text: str) -> None:
    assert parse("notes.txt", text)[0] == []


def test_wrappers_in_front_of_the_server() -> None:
    launch = one("numactl --cpunodebind=0 --membind=0 taskset -c 0-7 nsys profile -o x vllm serve a/b")
    assert launch.limits["cpuset"].value == 8
    assert launch.limits["numactl"].value == "--cpunodebind=0 --membind=0"
    assert launch.limits["profiler"].value == "nsys"


def test_offline_benchmark_is_the_llm_class() -> None:
    launch = one("python3 benchmark_latency.py --model llama --input-len 1 -tp 2   # changed from 0.90 to 1.0")
    assert (launch.role, launch.context, launch.strict) == ("offline", "llm_class", False)
    assert flags(launch)["tensor-parallel-size"] == 2


def test_script_arrays_and_arguments() -> None:
    text = 'N="${SPEC_N:-3}"\nARGS=(--speculative-config "{\\"method\\":\\"mtp\\",\\"num_speculative_tokens\\":$N}")\nexec vllm serve a/b "${ARGS[@]}"\n'
    assert flags(one(text))["speculative-config"] == {"method": "mtp", "num_speculative_tokens": 3}
