"""What follows from several settings together: speculation, graphs, GPU counts, switches without effect, conflicts."""

from __future__ import annotations

from typing import Any

from tools.config.launch import Setting
from tools.config.outcome import Effective, Value
from tools.config.resolve import Resolver, holds


def put(out: Effective, value: Value) -> None:
    """Enter a value under its fact."""
    out.values[value.fact] = value


def origin_of(r: Resolver) -> str:
    """``log`` for what a running engine reported, ``given`` for what somebody typed."""
    return "log" if r.launch.observed else "given"


def follow(r: Resolver) -> None:
    """Everything that needs the single values to be known first."""
    _interplay(r)
    _derived(r)
    _conflicts(r)


# ── what follows from several settings ───────────────────────────────────────────────────────────────────────────────
def _interplay(r: Resolver) -> None:
    out = r.out
    for name, item in r.given.items():
        flag = r.engine.flags.get(name)
        if flag is not None and flag.slows and item[-1].value not in (False, None, 0, "none"):
            out.slows.append(name)
            out.details.setdefault(name, flag.slows.why)
    profiler = r.launch.limits.get("profiler")
    if profiler is not None:
        out.slows.append(str(profiler.value))
        out.details[str(profiler.value)] = "the server runs under a profiler or tracer"
    mode = out.raw("config.performance_mode")
    both = r.last("max-num-seqs") is not None and r.last("max-num-batched-tokens") is not None
    if mode == "throughput" and both:
        out.ignored.append("performance-mode")
        out.details["performance-mode"] = "throughput only doubles the two batch defaults, and both are set explicitly"
    if out.device == "cpu" and out.raw("config.async_scheduling") and r.last("async-scheduling"):
        out.ignored.append("async-scheduling")
        out.details["async-scheduling"] = "the CPU platform switches it off"
    if out.raw("config.enforce_eager") is True:
        for name in (
            "cudagraph-capture-sizes",
            "max-cudagraph-capture-size",
            "cuda-graph-sizes",
            "cuda-graph-max-bs",
            "cuda-graph-max-bs-decode",
            "cuda-graph-bs",
            "cuda-graph-bs-decode",
        ):
            if name in r.given:
                out.ignored.append(name)
                out.details[name] = "eager mode: no graph is captured"


def _derived(r: Resolver) -> None:
    out = r.out
    if r.launch.role == "router":
        return
    if out.device and "config.device" not in out.values:
        put(
            out,
            Value(
                "config.device",
                out.device,
                origin_of(r),
                "",
                "told by the image, a variable or another source",
                r.launch.line,
            ),
        )
    if "config.kv_connector" in out.values and r.launch.engine == "sglang":
        mode = out.raw("config.disaggregation_mode")
        if mode in (None, "null"):
            del out.values["config.kv_connector"]
    _speculation(r)
    _graphs(r)
    _gpus(r)
    if out.raw("config.chunked_prefill_size") is not None:
        _compute(
            r,
            "config.enable_chunked_prefill",
            out.raw("config.chunked_prefill_size") != -1,
            "chunked-prefill-size is not -1",
            ["config.chunked_prefill_size"],
        )
        if out.raw("config.chunked_prefill_size") == -1:
            out.values.pop("config.max_num_batched_tokens", None)


def _compute(r: Resolver, fact: str, value: Any, method: str, inputs: list[str]) -> None:
    if fact in r.out.values and r.out.values[fact].origin != "default":
        return
    sources = [r.out.values[name] for name in inputs if name in r.out.values]
    origin = "given" if any(s.origin == "given" for s in sources) else sources[0].origin if sources else "default"
    caveats = tuple(dict.fromkeys(c for s in sources for c in s.caveats))
    first = next((s for s in sources if s.line), None)
    put(r.out, Value(fact, value, origin, "", method, first.line if first else 0, first.span if first else "", caveats))


def _speculation(r: Resolver) -> None:
    out = r.out
    if r.launch.observed and "config.spec.method" not in out.values:
        if any(item.name == "speculative-config" and item.value in (None, False) for item in r.launch.given):
            put(
                out,
                Value(
                    "config.spec.enabled",
                    False,
                    "log",
                    "speculative-config",
                    "the start-up line says speculative_config=None",
                    r.launch.line,
                ),
            )
        return
    method = r.speculation()
    if method is None:
        if not r.launch.elided and not r.launch.observed and r.launch.engine in ("vllm", "sglang"):
            put(out, Value("config.spec.enabled", False, "default", "", "no speculation flag is given"))
        return
    if method and "config.spec.method" not in out.values:
        _compute(
            r,
            "config.spec.method",
            method,
            "told by the speculation flags",
            ["config.spec.model", "config.spec.num_tokens"],
        )
    if out.raw("config.spec.model") == "[ngram]":
        del out.values["config.spec.model"]
    _compute(
        r,
        "config.spec.enabled",
        True,
        "a speculation flag is given",
        ["config.spec.method", "config.spec.num_tokens", "config.spec.model"],
    )
    if r.launch.engine == "vllm" and "speculative-config" in r.given and r.over(">=0.8.0,<0.10"):
        if method == "draft_model":
            out.forcing_v0.append("speculative-config")
            out.details["speculative-config"] = "draft-model speculation is not supported by V1 before 0.10"
        elif not method:
            out.undetermined.append(
                "whether speculation falls back to V0: V1 before 0.10 knows no separate draft model"
            )


def _graphs(r: Resolver) -> None:
    out = r.out
    eager = out.raw("config.enforce_eager") is True
    sizes = out.raw("config.cudagraph.capture_sizes")
    if isinstance(sizes, list):
        numbers = [int(size) for size in sizes if isinstance(size, (int, float)) and not isinstance(size, bool)]
        out.values["config.cudagraph.capture_sizes"].value = numbers
        if numbers:
            _compute(
                r,
                "config.cudagraph.capture_max",
                max(numbers),
                f"largest of {len(numbers)} capture sizes",
                ["config.cudagraph.capture_sizes"],
            )
        else:
            del out.values["config.cudagraph.capture_sizes"]
    if out.device == "cpu" or (eager and not r.launch.observed):
        for fact in ("config.cudagraph.capture_max", "config.cudagraph.capture_sizes"):
            if fact in out.values and (out.device == "cpu" or out.values[fact].origin == "default"):
                del out.values[fact]
    if eager and r.launch.engine == "vllm" and out.device != "cpu":
        _compute(r, "config.cudagraph_mode", "NONE", "enforce-eager switches graphs off", ["config.enforce_eager"])
    none = out.raw("config.cudagraph_mode") == "NONE"
    most = out.values.get("config.cudagraph.capture_max")
    if none and most is not None and most.origin == "default":
        del out.values["config.cudagraph.capture_max"]
    if eager or out.device == "cpu" or none:
        return
    seqs = out.num("config.max_num_seqs")
    if seqs is None or r.launch.engine not in ("vllm", "sglang"):
        return
    draft = r.draft_tokens() if r.launch.engine == "vllm" else None
    if r.launch.engine == "vllm" and r.speculation() is not None and draft is None:
        return
    ranks = out.num("config.data_parallel_size") or 1
    if r.launch.engine == "sglang" and out.raw("config.enable_dp_attention") is True and ranks > 1:
        seqs = seqs // ranks
    per = 1 + (draft or 0)
    text = (
        f"max_num_seqs {seqs:g} × (1 + {draft or 0} draft tokens)"
        if r.launch.engine == "vllm"
        else f"{seqs:g} requests per rank; SGLang captures by request count"
    )
    _compute(
        r, "config.cudagraph.capture_needed", int(seqs * per), text, ["config.max_num_seqs", "config.spec.num_tokens"]
    )


def _gpus(r: Resolver) -> None:
    out = r.out
    sizes = [out.num(f"config.{name}_parallel_size") for name in ("tensor", "pipeline", "data")]
    if sizes[0] is None and sizes[1] is None and sizes[2] is None:
        return
    if r.launch.elided and sizes[0] is None:
        return
    tensor, pipe, data = (size or 1.0 for size in sizes)
    inside = r.launch.engine == "sglang" and out.raw("config.enable_dp_attention") is True
    total = tensor * pipe * (1.0 if inside else data)
    text = f"tensor {tensor:g} × pipeline {pipe:g}" + (
        " (DP attention runs inside the TP group)" if inside else f" × data {data:g}"
    )
    if out.device != "cpu":
        _compute(
            r,
            "config.total_gpus",
            int(total),
            text,
            ["config.tensor_parallel_size", "config.pipeline_parallel_size", "config.data_parallel_size"],
        )


# ── contradictions ───────────────────────────────────────────────────────────────────────────────────────────────────
def _conflicts(r: Resolver) -> None:
    out = r.out
    if r.launch.engine != "vllm" or r.launch.observed:
        _gpu_limit(r)
        return
    seqs, tokens, length = (
        out.num(f"config.{name}") for name in ("max_num_seqs", "max_num_batched_tokens", "max_model_len")
    )
    if (
        seqs is not None
        and tokens is not None
        and tokens < seqs
        and "given" in _origins(out, "config.max_num_seqs", "config.max_num_batched_tokens")
    ):
        out.conflicts.append(
            f"max_num_batched_tokens {tokens:g} is smaller than max_num_seqs {seqs:g}: the engine refuses to start"
        )
    if (
        out.raw("config.enable_chunked_prefill") is False
        and tokens is not None
        and length is not None
        and tokens < length
        and out.values["config.max_num_batched_tokens"].origin == "given"
    ):
        out.conflicts.append(
            f"chunked prefill is off and max_num_batched_tokens {tokens:g} is below max_model_len {length:g}: the engine refuses to start"
        )
    methods = out.raw("config.spec.method")
    if methods == "draft_model" and out.version and holds("==0.10", out.version):
        out.conflicts.append("draft-model speculation raises NotImplementedError in 0.10")
    _gpu_limit(r)


def _origins(out: Effective, *facts: str) -> set[str]:
    return {out.values[fact].origin for fact in facts if fact in out.values}


def _gpu_limit(r: Resolver) -> None:
    limit = r.launch.limits.get("gpu_limit")
    total = r.out.num("config.total_gpus")
    nodes = r.out.num("config.nnodes") or 1
    if (
        isinstance(limit, Setting)
        and isinstance(limit.value, int)
        and total is not None
        and total > limit.value * nodes
    ):
        r.out.conflicts.append(
            f"tensor × pipeline × data parallel needs {total:g} GPUs, the container may use {limit.value}"
        )
