"""How sure a text is a launch command, a deployment file or a configuration report. Only ``re``: start-up counts."""

from __future__ import annotations

import re

_NAME = re.compile(
    r"(?:^|/)(?:launch|start|serve|run|cmd|command|config|server_info|get_server_info|values|compose|docker-compose"
    r"|deployment|deploy|vllm|sglang|args|engine_args)[\w.-]*\.(?:txt|sh|bash|ya?ml|json|conf|cfg|env|py|service)$",
    re.IGNORECASE,
)
_PROGRAM = re.compile(
    r"\bvllm\s+(?:serve|bench\s+(?:throughput|latency)|launch|run-batch)\s+\S*[A-Za-z$<{-]|-m\s+(?:vllm\.entrypoints|sglang\.|sglang_router|dynamo\.)"
    r"|\bsglang\s+serve\b|\btext-generation-launcher\b|\btrtllm-serve\b|\bllama-server\b|\b(?:vllm|sglang|sgl)-router\b"
    r"|\bdocker\s+run\b(?:(?!\n\s*\n).){0,4000}?(?:vllm|sglang)|vllm/entrypoints/|\bbenchmark_(?:latency|throughput)\.py",
    re.DOTALL,
)
_START = re.compile(
    r"^[ \t>$#%`]*(?:(?:sudo|nohup|exec|time|export|env|\w+=\S*)[ \t]+){0,40}(?:\S*/)?(?:vllm[ \t]+(?:serve|bench|launch|run-batch)|python3?[\d.]*[ \t]+(?:-\w[ \t]+)?(?:vllm|sglang|\S*api_server|benchmark_)"
    r"|sglang[ \t]+serve|text-generation-launcher|trtllm-serve|llama-server|(?:vllm|sglang|sgl)-router|docker[ \t]|podman[ \t])",
    re.MULTILINE,
)
_FLAG_LINE = re.compile(r"^[ \t]*(?:-[ \t]+['\"]?)?--[a-z][a-z0-9_-]{2,60}(?:[ =]|$)", re.MULTILINE)
_KUBE = re.compile(
    r"^[ ]*(?:containers|servingEngineSpec|llm_configs|engine_kwargs|vllm_config|sglang_config|trtllm_config):",
    re.MULTILINE,
)
_SERVICES = re.compile(r"^services:\s*$", re.MULTILINE)
_IMAGE = re.compile(r"(?:image|repository):\s*\S*(?:vllm|sglang|text-generation-inference|tensorrt)", re.IGNORECASE)
_KIND = re.compile(r"^kind:\s*\w+", re.MULTILINE)
_PAIR = re.compile(
    r"\b(?:max_num_seqs|max_num_batched_tokens|gpu_memory_utilization|enable_prefix_caching|max_model_len|enforce_eager"
    r"|tensor_parallel_size|mem_fraction_static|max_running_requests|chunked_prefill_size|kv_cache_dtype|tp_size"
    r"|enable_chunked_prefill|cuda_graph_max_bs|num_speculative_tokens)\b[\"']?\s{0,3}[:=]"
)
_CALL = re.compile(r"\b(?:LLM|AsyncEngineArgs|EngineArgs|LLMConfig)\s*\(\s*\w*\s*=?|\bsgl\.Engine\s*\(")
_INSPECT = re.compile(r'"HostConfig"\s*:')
_SERVER_INFO = re.compile(
    r'"(?:mem_fraction_static|max_running_requests|vllm_config|internal_states|chunked_prefill_size)"\s*:'
)
_ENGINE = re.compile(r"\b(?:vllm|sglang)\b", re.IGNORECASE)
_LOG = re.compile(r"\b(?:INFO|WARNING|ERROR)\b.{0,40}\[?\w+\.py:\d+|^\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d", re.MULTILINE)
_BENCH = re.compile(r'"(?:request_throughput|mean_ttft_ms|median_ttft_ms|request_rate|output_throughput)"\s*:')
_HF = re.compile(r'"(?:architectures|hidden_size|num_hidden_layers|model_type)"\s*:')


def sniff(name: str, head: str) -> float:
    """0..1, content first, file name second."""
    text = head[:65536]
    if not text.strip():
        return 0.0
    score = 0.0
    if text.lstrip()[:1] in "{[" and not text.lstrip().startswith("[20"):
        score = _json(text)
    elif _PROGRAM.search(text):
        score = 0.9 if _START.search(text) or "\n" not in text.strip() else 0.5
    elif _KUBE.search(text) or (_SERVICES.search(text) and _IMAGE.search(text)):
        score = 0.9
    elif _SERVICES.search(text) or (_KIND.search(text) and _IMAGE.search(text)):
        score = 0.7
    elif _CALL.search(text) and _PAIR.search(text):
        score = 0.75
    else:
        lines = max(sum(1 for line in text.splitlines() if line.strip()), 1)
        flags = len(_FLAG_LINE.findall(text))
        pairs = len(_PAIR.findall(text))
        score = max(
            min(0.85, 0.45 + 0.5 * flags / lines) if flags else 0.0,
            min(0.8, 0.35 + 0.4 * pairs / lines) if pairs else 0.0,
        )
        if _NAME.search(name) and _ENGINE.search(text):
            score = max(score, 0.45)
    if _NAME.search(name):
        score = score + 0.1 if score >= 0.3 else max(score, 0.25 if text.lstrip()[:1] not in "{[" else 0.0)
    if _LOG.search(text) and not text.lstrip().startswith("#"):
        score = min(score, 0.3)
    elif len(text) > 300 and name.endswith(".md"):
        score = min(score, 0.4)
    return min(score, 1.0)


def _json(text: str) -> float:
    if _HF.search(text) and not _SERVER_INFO.search(text):
        return 0.0
    if _BENCH.search(text[:4000]):
        return 0.2
    if _SERVER_INFO.search(text) or _INSPECT.search(text):
        return 0.85
    return 0.6 if len(_PAIR.findall(text)) >= 2 else 0.0
