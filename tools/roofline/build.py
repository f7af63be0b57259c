"""A :class:`~tools.roofline.request.Request` from loose figures: names, strings and numbers as people give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from tools.contract import Reading, Source
from tools.roofline.hardware import hardware_from_text, with_memory
from tools.roofline.model import model_from_config, model_from_name, with_weights
from tools.roofline.precision import canonical, kv_bytes
from tools.roofline.request import Request, layout_of
from tools.roofline.shape import ModelShape, Refusal

# What a configuration calls a thing → what it is called here.
ALIASES: dict[str, str] = {
    "model_name": "model",
    "served_model_name": "model",
    "device": "gpu",
    "gpu_name": "gpu",
    "tensor_parallel_size": "tp",
    "tp_size": "tp",
    "tensor_parallel": "tp",
    "pipeline_parallel_size": "pp",
    "pp_size": "pp",
    "data_parallel_size": "dp",
    "dp_size": "dp",
    "expert_parallel_size": "ep",
    "ep_size": "ep",
    "enable_expert_parallel": "ep_on",
    "decode_context_parallel_size": "dcp",
    "gpu_count": "gpus",
    "num_gpus": "gpus",
    "n_gpus": "gpus",
    "kv_cache_dtype": "kv",
    "quantization": "weights",
    "dtype": "weights",
    "precision": "weights",
    "gpu_memory_utilization": "memory_util",
    "mem_fraction_static": "memory_util",
    "max_num_batched_tokens": "max_batched_tokens",
    "chunked_prefill_size": "max_batched_tokens",
    "max_running_requests": "max_num_seqs",
    "max_batch_size": "max_num_seqs",
    "context_length": "max_model_len",
    "input_len": "isl",
    "prompt": "isl",
    "prompt_tokens": "isl",
    "output_len": "osl",
    "output": "osl",
    "output_tokens": "osl",
    "max_concurrency": "concurrency",
    "enforce_eager": "eager",
    "num_speculative_tokens": "draft_tokens",
    "block_size": "block",
    "gpu_memory_bytes": "memory_bytes",
}
NUMBERS = (
    "batch", "concurrency", "context", "isl", "osl", "low", "mean", "cached", "memory_util", "acceptance",
)  # fmt: skip
COUNTS = ("max_num_seqs", "max_model_len", "max_batched_tokens", "block", "draft_tokens")
LAYOUT = ("tp", "pp", "dp", "ep", "gpus", "replicas", "dcp")
KEYS = frozenset((*NUMBERS, *COUNTS, *LAYOUT, "model", "config", "gpu", "weights", "kv", "engine", "eager", "ep_on",
                  "memory_bytes", "quant", "prefix_hit_rate"))  # fmt: skip


def key_of(name: str) -> str | None:
    """The calculator's word for a setting, ``None`` when it does not bear on it."""
    word = name.strip().lower().lstrip("-").replace("-", "_")
    word = ALIASES.get(word, word)
    return word if word in KEYS else None


def _float(name: str, value: Any) -> float | Refusal:
    if isinstance(value, str):
        text = value.strip().lower().replace(",", "").replace("_", "")
        scale = 1.0
        if text.endswith("k") and text[:-1].replace(".", "", 1).isdigit():
            scale, text = 1024.0 if name in ("context", "isl", "osl", "max_model_len") else 1000.0, text[:-1]
        try:
            value = float(text) * scale
        except ValueError:
            return Refusal(field=name, why=f"{value!r} is not a number")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= float(value) < 1e12:
        return Refusal(field=name, why=f"{value!r} is not a usable number")
    return float(value)


def truthy(value: Any) -> bool:
    """Switches as flags, YAML or people spell them."""
    return str(value).strip().lower() in ("1", "true", "yes", "on")


def model_of(values: Mapping[str, Any]) -> ModelShape | Refusal:
    """The model of loose figures: ``config`` (a parsed ``config.json``) before ``model`` (a name)."""
    config, name = values.get("config"), str(values.get("model") or "")
    if isinstance(config, dict):
        quant = values.get("quant")
        shape = model_from_config(config, quant=quant if isinstance(quant, dict) else None, name=name)
    elif name:
        shape = model_from_name(name)
    else:
        return Refusal(field="model", why="not given", do="give --model NAME or --config config.json")
    word = str(values.get("weights") or "").strip().lower()
    if isinstance(shape, Refusal) or word in ("", "auto", "none"):
        return shape
    if canonical(word) is None:
        return Refusal(field="weights", why=f"precision {word!r} is not known")
    # A plain dtype does not undo a checkpoint's own quantisation.
    if canonical(word) == "bf16" and shape.weights != "bf16":
        return shape.with_caveat(f"dtype {word} kept as compute type: the checkpoint is {shape.weights}")
    return with_weights(shape, word) if canonical(word) != shape.weights else shape


def request_from(values: Mapping[str, Any]) -> Request | Refusal:
    """A request from loose figures (keys as in ``KEYS`` or their aliases); the first field that is unusable refuses."""
    known: dict[str, Any] = {}
    for name, value in values.items():
        key = key_of(name)
        if key is None:
            return Refusal(
                field=name, why="not a setting that the calculator knows", do=f"use {', '.join(sorted(KEYS))}"
            )
        if value is not None and value != "":
            known[key] = value
    model = model_of(known)
    if isinstance(model, Refusal):
        return model
    text = str(known.get("gpu") or "")
    if not text:
        return Refusal(field="gpu", why="not given", do="give the name that nvidia-smi prints (--gpu)")
    gpu = hardware_from_text(text)
    if isinstance(gpu, Refusal):
        return gpu
    numbers: dict[str, float] = {}
    for name in (*NUMBERS, *COUNTS, *LAYOUT, "memory_bytes"):
        if name in known:
            number = _float(name, known[name])
            if isinstance(number, Refusal):
                return number
            numbers[name] = number
    if numbers.get("memory_bytes"):
        gpu = with_memory(gpu, numbers["memory_bytes"])
    counts = {name: int(numbers[name]) for name in LAYOUT if name in numbers}
    if gpu.count and "gpus" not in counts and "tp" not in counts:
        counts["gpus"] = gpu.count
    if truthy(known.get("ep_on")) and "ep" not in counts:
        counts["ep"] = counts.get("tp", 1) * counts.get("dp", 1)
    layout = layout_of(**counts)
    if isinstance(layout, Refusal):
        return layout
    kv = str(known.get("kv") or "auto")
    if kv.strip().lower() not in ("auto", "") and kv_bytes(kv) is None:
        return Refusal(field="kv_cache_dtype", why=f"{kv!r} is not known")
    util = numbers.get("memory_util", 0.9)
    if not 0.05 <= util <= 1.0:
        return Refusal(field="memory_util", why=f"{util:g} is not a share of memory between 0.05 and 1")
    request = Request(model=model, gpu=gpu, layout=layout, engine=str(known.get("engine") or "vllm"), kv=kv)
    request = structs.replace(
        request,
        eager=truthy(known.get("eager", False)),
        **{name: numbers[name] for name in NUMBERS if name in numbers},
        **{name: int(numbers[name]) for name in COUNTS if name in numbers},
    )
    return structs.replace(request, block=max(1, request.block), cached=min(request.cached, max(0.0, request.isl - 1)))


def missing_inputs(values: Mapping[str, Any], *, timing: bool = True) -> list[str]:
    """What is still needed for a floor: ``model``, ``gpu`` and, with ``timing``, a measured time. Empty when complete.

    A loop asks for the first of these; everything else has a default that is said.
    """
    given = {key_of(name) for name, value in values.items() if value not in (None, "")}
    out = [] if given & {"model", "config"} else ["model"]
    if "gpu" not in given:
        out.append("gpu")
    if timing and not any(name.startswith("measured") and value is not None for name, value in values.items()):
        out.append("measured time per token or time to first token")
    return out


def missing_reading(values: Mapping[str, Any]) -> Reading | None:
    """The reading ``roofline.missing_input`` when no floor can be computed yet."""
    names = missing_inputs(values, timing=False)
    if not names:
        return None
    source = Source(kind="computed", ref="tools.roofline", inputs=tuple(sorted(str(name) for name in values)))
    return Reading(fact="roofline.missing_input", value=names, source=source, method="needed for any floor")
