"""Which words of a command start an inference engine, and what role and usage context that means."""

from __future__ import annotations

import re
from typing import NamedTuple

from tools.config.launch import Role, is_flag, undash
from tools.config.shell import Token

_MODULES: tuple[tuple[str, str, Role, str], ...] = (
    (r"vllm\.entrypoints\.(?:openai\.)?api_server", "vllm", "server", "api_server"),
    (r"vllm\.entrypoints\.openai\.run_batch", "vllm", "offline", "other"),
    (r"vllm\.benchmarks?\..*serve", "vllm", "client", ""),
    (r"dynamo\.vllm(?:\..*)?", "vllm", "server", "other"),
    (r"dynamo\.sglang(?:\..*)?", "sglang", "server", ""),
    (r"dynamo\.trtllm(?:\..*)?", "tensorrt_llm", "server", ""),
    (r"dynamo\.frontend", "router", "router", ""),
    (r"sglang_router\.launch_\w+|sglang\.launch_router", "router", "router", ""),
    (r"sglang\.bench_(?:serving|one_batch_server)", "sglang", "client", ""),
    (r"sglang\.bench_(?:one_batch|offline_throughput|latency)", "sglang", "offline", "llm_class"),
    (r"sglang\.launch_server|sglang\.srt\..*", "sglang", "server", "api_server"),
    (r"tensorrt_llm\.commands\.serve", "tensorrt_llm", "server", ""),
)
_PROGRAMS: dict[str, tuple[str, Role, str]] = {
    "text-generation-launcher": ("tgi", "server", ""),
    "trtllm-serve": ("tensorrt_llm", "server", ""),
    "trtllm-llmapi-launch": ("tensorrt_llm", "server", ""),
    "tritonserver": ("tensorrt_llm", "server", ""),
    "llama-server": ("llama_cpp", "server", ""),
    "vllm-router": ("router", "router", ""),
    "sglang-router": ("router", "router", ""),
    "sgl-router": ("router", "router", ""),
    "benchmark_latency.py": ("vllm", "offline", "llm_class"),
    "benchmark_throughput.py": ("vllm", "offline", "llm_class"),
    "benchmark_serving.py": ("vllm", "client", ""),
    "bench_serving.py": ("sglang", "client", ""),
}


class Anchor(NamedTuple):
    """Where the flags of an engine start inside a command."""

    at: int
    engine: str
    role: Role
    context: str
    bench: bool = False


def find_anchor(words: list[str]) -> Anchor | None:
    """The engine's program among the words of a command."""
    for index, word in enumerate(words):
        base = word.rsplit("/", 1)[-1]
        after = words[index + 1] if index + 1 < len(words) else ""
        if base == "vllm" and after in ("serve", "launch"):
            return Anchor(index + 2, "vllm", "server", "api_server")
        if base == "vllm" and after == "bench":
            kind = words[index + 2] if index + 2 < len(words) else ""
            role: Role = "client" if kind == "serve" else "offline"
            return Anchor(index + 3, "vllm", role, "llm_class" if role == "offline" else "", True)
        if base == "vllm" and after in ("chat", "complete"):
            return Anchor(index + 2, "vllm", "client", "")
        if base == "vllm" and after == "run-batch":
            return Anchor(index + 2, "vllm", "offline", "other")
        if base == "sglang" and after == "serve":
            return Anchor(index + 2, "sglang", "server", "api_server")
        if word == "-m" and after:
            for pattern, engine, role_, context in _MODULES:
                if re.fullmatch(pattern, after):
                    return Anchor(index + 2, engine, role_, context)
        if base == "api_server.py" and "vllm" in word:
            return Anchor(index + 1, "vllm", "server", "api_server")
        if base == "launch_server.py" and "sglang" in word:
            return Anchor(index + 1, "sglang", "server", "api_server")
        if base in _PROGRAMS:
            engine, role_, context = _PROGRAMS[base]
            return Anchor(index + 1, engine, role_, context, base.startswith("bench"))
    return None


def is_prose(rest: list[Token], before: list[str]) -> bool:
    """``plain vllm serve is slower``, a table row ``vllm serve 16.9 / 21.2``: no command.

    A command has a flag or exactly one model-like word, and only words of a command line in front.
    """
    words = [token.text for token in rest]
    if any(is_flag(undash(word)) for word in words):
        return sum(1 for word in before if re.fullmatch(r"[a-z]+,?", word) and word not in _FRONT) > 4
    if not words:
        return not before or any(word not in _FRONT and re.fullmatch(r"[A-Za-z]+", word) for word in before[:-2])
    return len(words) > 2 or not re.search(r"[A-Za-z]", words[0]) or not re.search(r"[/$<{._\d-]", words[0])


_FRONT = {
    "python",
    "exec",
    "sudo",
    "nohup",
    "time",
    "env",
    "serve",
    "vllm",
    "sglang",
    "bench",
    "uv",
    "run",
    "poetry",
    "srun",
    "mpirun",
    "numactl",
    "taskset",
    "nsys",
    "profile",
    "launch",
}
