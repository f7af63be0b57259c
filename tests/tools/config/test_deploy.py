"""Deployment files of every kind."""

from __future__ import annotations

from typing import Any

from tools.config.launch import Launch
from tools.config.read import parse
from tools.config.yamls import documents


def read(text: str, name: str = "deploy.yaml") -> tuple[list[Launch], list[str]]:
    return parse(name, text)


def flags(launch: Launch) -> dict[str, Any]:
    return {item.name: item.value for item in launch.given}


def limits(launch: Launch) -> dict[str, Any]:
    return {name: setting.value for name, setting in launch.limits.items()}


def test_kubernetes_deployment_with_limits_and_probes() -> None:
    launches, notes = read(
        """
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  replicas: 3
  template:
    spec:
      terminationGracePeriodSeconds: 30
      volumes:
        - name: shm
          emptyDir: {medium: Memory, sizeLimit: 8Gi}
      containers:
        - name: server
          image: vllm/vllm-openai:v0.10.2
          args:
            - --model
            - org/m
            - --tensor-parallel-size=4
            - "--max-num-seqs 128"
          env:
            - {name: OMP_NUM_THREADS, value: "1"}
            - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hf, key: t}}}
          resources:
            requests: {cpu: 500m}
            limits: {cpu: "2", memory: 64Gi, nvidia.com/gpu: 2}
          livenessProbe:
            httpGet: {path: /health, port: 8000}
            initialDelaySeconds: 60
            failureThreshold: 5
          volumeMounts: [{name: shm, mountPath: /dev/shm}]
"""
    )
    assert notes == [] and len(launches) == 1
    launch = launches[0]
    assert (launch.engine, launch.version, launch.label, launch.form) == ("vllm", "0.10.2", "chat", "yaml")
    assert flags(launch) == {"model": "org/m", "tensor-parallel-size": 4, "max-num-seqs": 128}
    assert {item.name: item.line for item in launch.given} == {
        "model": 17,
        "tensor-parallel-size": 19,
        "max-num-seqs": 20,
    }
    assert {item.name for item in launch.env} == {"OMP_NUM_THREADS"}
    assert limits(launch) == {
        "cpu_request": 0.5, "cpu_limit": 2.0, "memory_limit": 64.0, "gpu_limit": 2, "shm_size": 8.0, "replicas": 3,
        "termination_grace": 30.0, "probe.liveness.initial_delay": 60.0, "probe.liveness.timeout": 1.0,
        "probe.liveness.period": 10.0, "probe.liveness.failure_threshold": 5.0,
    }  # fmt: skip


def test_kubernetes_shell_command_and_list() -> None:
    text = """
kind: List
items:
  - kind: Pod
    metadata: {name: p}
    spec:
      containers:
        - name: c
          image: lmsysorg/sglang:v0.5.9
          command: [/bin/sh, -c]
          args:
            - |
              export NCCL_DEBUG=TRACE
              python3 -m sglang.launch_server --model-path a/b --tp 2 \\
                --disable-radix-cache
"""
    launches, _ = read(text)
    assert flags(launches[0]) == {"model-path": "a/b", "tp-size": 2, "disable-radix-cache": True}
    assert launches[0].version == "0.5.9" and launches[0].given[2].line == 15
    assert launches[0].env[-1].value == "TRACE"


def test_compose_with_environment_and_list_command() -> None:
    launches, _ = read(
        """
services:
  web: {image: nginx}
  llm:
    image: ${IMG:-vllm/vllm-openai:v0.20.1}
    command: ["--model", "a/b", "--max-num-seqs", "${SEQS:-8}", "--speculative-config", '{"method":"mtp","num_speculative_tokens":2}']
    environment: [NCCL_P2P_DISABLE=1, PASSED]
    shm_size: "16gb"
    ipc: host
    cpus: 3.5
    deploy: {replicas: 2}
"""
    )
    launch = launches[0]
    assert (launch.label, launch.version) == ("llm", "0.20.1")
    assert flags(launch)["max-num-seqs"] == 8 and flags(launch)["speculative-config"]["num_speculative_tokens"] == 2
    assert limits(launch) == {"cpu_limit": 3.5, "shm_size": 16.0, "ipc_host": True, "replicas": 2}
    assert [(item.name, item.value) for item in launch.env] == [("NCCL_P2P_DISABLE", "1")]


def test_compose_script_passes_the_command_as_arguments_and_names_the_choice() -> None:
    launches, _ = read(
        """
services:
  s:
    image: vllm/vllm-openai:v0.22.0
    entrypoint:
      - /bin/bash
      - -c
      - |
        if [ "$${X:-0}" = 1 ]; then
          exec vllm serve "$$@"
        else
          exec vllm serve --disable-custom-all-reduce "$$@"
        fi
      - --
    command: [--model, a/b, --max-num-seqs, "4"]
"""
    )
    assert [flags(launch) for launch in launches] == [
        {"model": "a/b", "max-num-seqs": 4},
        {"disable-custom-all-reduce": True, "model": "a/b", "max-num-seqs": 4},
    ]
    assert "depends on a condition" in launches[0].notes[-1]


def test_helm_values_of_the_production_stack() -> None:
    launches, _ = read(
        """
servingEngineSpec:
  modelSpec:
    - name: m
      repository: vllm/vllm-openai
      tag: v0.9.2
      modelURL: a/b
      replicaCount: 4
      requestCPU: 8
      limitMemory: "32Gi"
      vllmConfig: {enablePrefixCaching: false, maxModelLen: 4096, tensorParallelSize: 2, extraArgs: ["--max-num-seqs", "16"], v1: 1}
      lmcacheConfig: {enabled: true, kvRole: kv_producer}
routerSpec: {routingLogic: session, replicaCount: 1}
""",
        "values.yaml",
    )
    engine, router = launches
    assert flags(engine) == {
        "model": "a/b", "enable-prefix-caching": False, "max-model-len": 4096, "tensor-parallel-size": 2,
        "max-num-seqs": 16, "kv-transfer-config": {"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_producer"},
    }  # fmt: skip
    assert engine.version == "0.9.2" and limits(engine) == {"cpu_request": 8.0, "memory_limit": 32.0, "replicas": 4}
    assert engine.env[0].value == "1" and flags(router) == {"policy": "session"}


def test_ray_serve_llm_and_recipe_sections() -> None:
    ray, _ = read(
        """
applications:
  - name: llm
    import_path: ray.serve.llm:build_openai_app
    args:
      llm_configs:
        - model_loading_config: {model_id: q, model_source: a/b}
          deployment_config: {autoscaling_config: {min_replicas: 1, max_replicas: 4}, max_ongoing_requests: 64}
          engine_kwargs: {tensor_parallel_size: 2, max_num_seqs: 64}
"""
    )
    assert flags(ray[0]) == {"model": "a/b", "tensor-parallel-size": 2, "max-num-seqs": 64}
    assert limits(ray[0]) == {"max_ongoing_requests": 64, "min_replicas": 1, "max_replicas": 4}
    recipe, _ = read(
        """
backend:
  type: sglang
  prefill_environment: {NCCL_DEBUG: INFO}
  sglang_config:
    prefill: {tensor-parallel-size: 4, disable-cuda-graph: true}
    decode: {tensor-parallel-size: 8, no-such-thing: 1}
identity: {frameworks: {sglang: 0.5.17}}
"""
    )
    assert [(launch.label, launch.version) for launch in recipe] == [("prefill", "0.5.17"), ("decode", "0.5.17")]
    assert flags(recipe[0])["tp-size"] == 4 and recipe[0].env[0].name == "NCCL_DEBUG" and recipe[1].env == []


def test_plain_config_file_and_autoscaler() -> None:
    launches, _ = read(
        "model: a/b\nmax-num-seqs: 32\nno-enable-prefix-caching: true\ntensor-parallel-size: 2\n", "config.yaml"
    )
    assert flags(launches[0]) == {
        "model": "a/b",
        "max-num-seqs": 32,
        "enable-prefix-caching": False,
        "tensor-parallel-size": 2,
    }
    scaler, _ = read("kind: HorizontalPodAutoscaler\nmetadata: {name: h}\nspec: {minReplicas: 1, maxReplicas: 9}\n")
    assert limits(scaler[0]) == {"min_replicas": 1, "max_replicas": 9}


def test_what_is_no_deployment_of_an_engine_is_refused_by_name() -> None:
    assert read("services: {db: {image: postgres}}")[1] == ["a compose file with no inference engine (db)"]
    assert "unit-test" in read("suite: x\ntests:\n  - it: y\n    set: {a: 1}\n    asserts: []\n")[1][0]
    assert read("a: 1\nb: [2]\n")[1] == ["YAML with no inference engine in it"]


def test_broken_templates_still_give_their_flags() -> None:
    text = "spec:\n  {{- if .Values.x }}\n  args:\n    - --model=a/b\n    - --max-num-seqs=8\n  {{- end }}\n"
    launches, notes = read(text)
    assert flags(launches[0]) == {"model": "a/b", "max-num-seqs": 8}
    assert notes[0].startswith("YAML read in part only") and "list lines" in notes[1]


def test_bombs_and_deep_nesting_end_at_once() -> None:
    chain = "a: &a {x: 1}\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(20)
    )
    assert read(chain)[0] == []
    merges = "a: &a {x: 1}\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)}\n  <<: [{','.join(['*' + chr(97 + i)] * 10)}]\n  k{i}: 1\n" for i in range(20)
    )
    assert len(documents(merges)[0]) == 1
    assert documents("[" * 100_000)[1] == "nested too deeply to be a configuration"
    assert documents("- " * 5_000)[1] == "nested too deeply to be a configuration"
    assert read("a: &a [*a]\n")[0] == []
