"""Mutated inputs of every form never raise, stay in the vocabulary, and cost time linear in their size."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.config.flags import flags_mentioned
from tools.config.logline import parse_config_line
from tools.config.read import parse
from tools.config.readings import launch_readings
from tools.config.shell import split
from tools.config.sniff import sniff
from tools.config.values import parse_call, structured
from tools.config.world import World
from tools.config.yamls import documents

SEEDS = (
    ("launch.txt", "VLLM_USE_V1=1 A=${B:-c} \\\n  vllm serve org/m --max-num-seqs 64 -tp=2 --no-enable-prefix-caching \\\n --speculative-config '{\"method\":\"mtp\",\"num_speculative_tokens\":1}' -O3 # tail\n"),
    ("launch.sh", "export X=1\nARGS=(--enforce-eager --seed 3)\nfor i in 1 2; do docker run -e A=b --gpus all --cpus 2 -m 3g vllm/vllm-openai:v0.9.1 --model \"a b\" \"${ARGS[@]}\" > l 2>&1 & done"),
    ("frag.txt", "--kv-cache-dtype=fp8 --max-model-len=262144 --cudagraph-capture-sizes 1 2 4 -cc.mode=3 --frob"),
    ("compose.yaml", "services:\n  s:\n    image: vllm/vllm-openai:v0.22.0\n    command: [--model, a/b, --max-num-seqs, \"${S:-4}\"]\n    environment: {NCCL_DEBUG: INFO}\n    shm_size: 16gb\n    deploy: {resources: {limits: {cpus: '2'}}}\n"),
    ("k8s.yaml", "kind: Deployment\nmetadata: {name: x}\nspec:\n  replicas: 2\n  template:\n    spec:\n      containers:\n      - image: lmsysorg/sglang:v0.5.9\n        command: [sh, -c]\n        args:\n        - |\n          python -m sglang.launch_server --tp 2\n        livenessProbe: {timeoutSeconds: 1}\n"),
    ("values.yaml", "servingEngineSpec:\n  modelSpec:\n  - name: a\n    repository: vllm/vllm-openai\n    tag: v0.9\n    vllmConfig: {maxModelLen: 4096, extraArgs: [--max-num-seqs, '4'], v1: 1}\n    lmcacheConfig: {enabled: true}\nrouterSpec: {routingLogic: session}\n"),
    ("serve.yaml", "applications:\n- args:\n    llm_configs:\n    - model_loading_config: {model_id: q}\n      engine_kwargs: {tensor_parallel_size: 2, max_num_seqs: 64}\n"),
    ("info.json", '{"server_info": {"tp_size": 4, "max_running_requests": 32, "mem_fraction_static": 0.8, "cuda_graph_bs": [1, 2, NaN], "version": "0.5.9"}}'),
    ("inspect.json", '[{"Config": {"Image": "vllm/vllm-openai:v0.20.0", "Cmd": ["--model", "a/b"], "Env": ["A=b"]}, "HostConfig": {"NanoCpus": 2000000000}}]'),
    ("llm.py", 'llm = LLM(model="a/b", tensor_parallel_size=N, speculative_config={"method": "ngram", "num_speculative_tokens": 5}, **kw)'),
    ("config.txt", "gpu: 1x A100 80GB, TP=1\nmax_num_seqs: 64\nspeculative: ngram, num_speculative_tokens 5\ncuda graphs: on\nvLLM 0.22.0, 2 replicas"),
    ("server.log", "INFO Initializing a V1 LLM engine (v0.32.0) with config: model='m', speculative_config=SpeculativeConfig(method='x', n=1), compilation_config={'mode': <M.NONE: 0>, 's': [1, 2]}, kernel_config=K(a=['b'])"),
    ("server.log", "non-default args: {'model': 'a', 'max_num_seqs': 32, 'speculative_config': {'model': 'd', 'num_speculative_tokens': 15}}"),
    ("server.log", "server_args=ServerArgs(model_path='a/b', tp_size=8, mem_fraction_static=0.83, max_running_requests=None, lora_paths=[], page_size=1)"),
)  # fmt: skip
_NOISE = st.sampled_from(
    ["'", '"', "\\", "\n", "{", "}", "[", "]", "(", ")", "<", ">", "$", "${", "--", "-", "=", ":", ",", "#", "&", "*", "|", ";", "`",
     "\u201c", "\u2014", "\x00", "\ufeff", "...", "- ", "  ", "\t", "!!", "<<: *a", "nan", "1e999", "-1", "true", "null", "{{ x }}", "--max-num-seqs", "99999999999999999999", "\U0001f600"]
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, str]:
    name, text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.integers(0, 40)))
        kind = draw(st.integers(0, 3))
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:at] + draw(_NOISE) * draw(st.sampled_from([1, 1, 2, 70])) + text[at:]
        elif kind == 2:
            text = text[:end] + text[at:end] * 2 + text[end:]
        else:
            text = text[:at] + draw(st.text(max_size=6)) + text[at:]
    return name, text


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutated(), st.sampled_from(["", "0.8.2", "0.32.0", "0.5.9", "99", "junk"]))
def test_mutations_never_raise(sample: tuple[str, str], version: str) -> None:
    name, text = sample
    assert 0.0 <= sniff(name, text) <= 1.0
    launches, notes = parse(name, text)
    assert all(isinstance(note, str) for note in notes)
    for launch in launches:
        for reading in launch_readings(launch, name, World(version=version)):
            assert reading.fact.split(".")[0] in ("config", "engine") and reading.value is not None


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=300))
def test_any_text_never_raises(text: str) -> None:
    for name in ("x.txt", "x.yaml", "x.json"):
        for launch in parse(name, text)[0]:
            launch_readings(launch, name, World())
    flags_mentioned(text)
    parse_config_line(text)
    split(text)


def _whole(text: str) -> None:
    for launch in parse("x.txt", text)[0]:
        launch_readings(launch, "x", World(version="0.32.0"))


@pytest.mark.parametrize(
    ("unit", "work"),
    [
        ("'", split),
        ('"\\"', split),
        ("a\\\n", split),
        ("<a ${b} $(c", split),
        ("--max-num-seqs 4 ", _whole),
        ("vllm serve a/b --seed 1\n", _whole),
        ("a=b, ", _whole),
        ("{'a':[", structured),
        ("a(b=", lambda text: parse_call(text, 0)),
        ("<E.", lambda text: parse_call(text, 0)),
        ("a:b,", lambda text: parse_call(text, 0)),
        ("- --a-b 1\n", documents),
        ("max-num-seqs-", flags_mentioned),
        ("--a", flags_mentioned),
        ("non-default args: {", parse_config_line),
        ("docker run vllm ", lambda text: sniff("x", text)),
        ("a=b ", lambda text: sniff("x", text)),
    ],
)
def test_time_is_linear(unit: str, work: Callable[[str], object]) -> None:
    def cost(size: int) -> float:
        text = unit * (size // len(unit))
        gc.disable()  # a full collection walks the heap of the whole suite: that is not the reader's time
        try:
            start = time.process_time()
            work(text)
            return time.process_time() - start
        finally:
            gc.enable()

    work(unit)
    small = min(cost(4_000) for _ in range(2))
    large = min(cost(32_000) for _ in range(1))
    assert large < 8 * 4 * small + 0.15, (unit, small, large)
