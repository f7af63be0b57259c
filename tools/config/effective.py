"""Puts the effective configuration together: values, defaults, what follows from them, and what contradicts."""

from __future__ import annotations

from typing import Any

from knowledge.versions import holds
from tools.config.data import Flag, Slows, load
from tools.config.launch import Given, Launch, Setting
from tools.config.resolve import ABSENT, UNKNOWN, Effective, Resolver, Value, default_method
from tools.config.values import Symbol, scalar
from tools.config.world import World

_OFF = {"0", "false", "no", "off", "none", ""}
_DTYPES = {"half": "float16", "float": "float32"}
_JSON_SWITCH = {"profiler-config", "kv-events-config", "ec-transfer-config"}


def effective(launch: Launch, world: World) -> Effective:
    """The effective configuration of one launch. Never raises on content."""
    resolver = Resolver(launch, world)
    resolver.version()
    resolver.device()
    _devices_from_env(resolver)
    resolver.generation()
    if not launch.observed:
        resolver.verdicts()
        _environment_verdicts(resolver)
    _given_values(resolver)
    _environment_values(resolver)
    if not launch.observed and not launch.elided and launch.role in ("server", "offline"):
        _default_values(resolver)
    _interplay(resolver)
    _derived(resolver)
    _conflicts(resolver)
    return resolver.out


def _put(out: Effective, value: Value) -> None:
    out.values[value.fact] = value


# ── given ────────────────────────────────────────────────────────────────────────────────────────────────────────────
def _given_values(r: Resolver) -> None:
    seen: dict[str, Given] = {}
    for item in r.launch.given:
        if item.name == "role":
            _put(r.out, Value("config.role", str(item.value), _origin(r), "role", f"stands in the section {item.value}", item.line, str(item.value)))
            continue
        flag = r.engine.flags.get(item.name)
        before = seen.get(item.name)
        if before is not None and not item.path and not before.path and not (flag and flag.repeat) and before.value != item.value:
            r.out.conflicts.append(f"--{item.name} is given twice: {before.value} (line {before.line}), then {item.value} (line {item.line}); the last one counts")
        seen[item.name] = item
        if flag is None:
            continue
        if item.unresolved and not isinstance(item.value, (dict, list)):
            r.out.undetermined.append(f"--{item.name}: its value {str(item.value)[:60]} is a variable or placeholder")
            continue
        if flag.nested and (isinstance(item.value, dict) or item.path):
            _nested(r, flag, item)
        if flag.fact and (not flag.nested or item.name in _JSON_SWITCH):
            _set_flag(r, flag, item)


def _origin(r: Resolver) -> str:
    return "log" if r.launch.observed else "given"


def _span(item: Given) -> str:
    if isinstance(item.value, bool):
        return item.typed
    text = str(item.value)
    return f"{item.typed} {text}"[:160]


def _method(r: Resolver, item: Given) -> str:
    where = {
        "command": "given on the command line",
        "fragment": "given in a piece of a command line",
        "yaml": "given in the deployment file",
        "python": "given as a keyword in Python",
        "text": "stated in words",
        "log": "read from the engine's start-up line",
        "json": "read from the running server's own report" if r.launch.observed else "given in JSON",
    }[r.launch.form]
    return f"{where} as {item.typed}" + (f"; {item.how}" if item.how else "")


def _set_flag(r: Resolver, flag: Flag, item: Given) -> None:
    value = item.value
    if flag.type == "count":
        value = _count(r, flag, value)
    elif flag.type == "json":
        value = True if isinstance(value, dict) else value
    elif flag.type == "int" and isinstance(value, float) and value == int(value):
        value = int(value)
    elif flag.type == "list" and not isinstance(value, list):
        value = [value]
    elif flag.type in ("int", "float") and not isinstance(value, (int, float)):
        _unreadable(r, flag, item)
        return
    elif flag.type == "bool" and not isinstance(value, bool):
        _unreadable(r, flag, item)
        return
    if value is None:
        return
    if flag.invert and isinstance(value, bool):
        value = not value
    if isinstance(value, str):
        value = _text(value, flag.lower)
    caveats = (flag.caveat,) if flag.caveat else ()
    if item.name in r.out.ignored:
        caveats += (f"ignored: {r.out.details.get(item.name, '')}",)
    if item.name in r.out.removed or item.name in r.out.too_new:
        caveats += (f"refused by this version: {r.out.details.get(item.name, '')}",)
    for fact in (flag.fact, *flag.also):
        _put(r.out, Value(fact, value, _origin(r), item.name, _method(r, item), item.line, _span(item), caveats))


def _unreadable(r: Resolver, flag: Flag, item: Given) -> None:
    if item.value in ("auto", -1) or item.value is None:
        r.out.undetermined.append(f"--{item.name} is {item.value}: the engine works the value out at start")
    else:
        r.out.conflicts.append(f"--{item.name} {str(item.value)[:40]!r} is no {flag.type}")


def _text(value: str, lower: bool) -> str:
    text = str(value).strip()
    if text.startswith("torch."):
        text = text[6:]
    text = _DTYPES.get(text, text)
    return text.lower() if lower else text


def _count(r: Resolver, flag: Flag, value: Any) -> int:
    if flag.repeat:
        total = 0
        for item in r.given.get(flag.name, []):
            total += len(item.value) if isinstance(item.value, list) else 1
        return total
    if isinstance(value, (list, dict)):
        return len(value)
    return 1


def _nested(r: Resolver, flag: Flag, item: Given) -> None:
    """Keys of a JSON-valued flag (or its dotted form) as facts of their own."""
    pairs = {item.path: item.value} if item.path else item.value
    for key, value in pairs.items():
        fact = flag.nested.get(str(key).replace("-", "_").rsplit(".", 1)[-1], "")
        if not fact or value is None or isinstance(value, dict):
            continue
        if isinstance(value, str) and "$" in value:
            r.out.undetermined.append(f"--{item.name}.{key}: its value is a variable")
            continue
        if isinstance(value, str) and not isinstance(value, Symbol):
            read = scalar(value) if item.path else value
            value = read if not isinstance(read, str) else _text(read, fact == "config.spec.method")
        elif isinstance(value, str):
            value = _text(str(value), fact == "config.spec.method")
        if fact == "config.cudagraph_mode" and isinstance(value, str):
            value = value.rsplit(".", 1)[-1].upper()
        if fact == "config.cudagraph.capture_sizes" and not isinstance(value, list):
            continue
        typed = f"{item.typed}.{key}" if not item.path else item.typed
        _put(r.out, Value(fact, value, _origin(r), flag.name, _method(r, item), item.line, f"{typed} {value}"[:160]))


# ── environment ──────────────────────────────────────────────────────────────────────────────────────────────────────
def _devices_from_env(r: Resolver) -> None:
    known = load().env
    for item in r.launch.env:
        var = known.get(item.name)
        if var is not None and var.device and not r.out.device and not (var.device == "rocm" and _is_off(item.value)):
            r.out.device = var.device


def _is_off(value: Any) -> bool:
    return str(value).strip().lower() in _OFF


def _environment_verdicts(r: Resolver) -> None:
    """Variables the engine does not know are silently ignored (a warning since vLLM 0.17)."""
    history = r.engine.env_history
    if r.launch.engine != "vllm" or not history:
        return
    for item in r.launch.env:
        name = item.name
        if not name.startswith("VLLM_") or name.startswith(("VLLM_ASCEND_", "VLLM_PLUGIN_", "VLLM_IMAGE", "VLLM_VERSION")):
            continue
        mask = history.get(name, 0)
        if not mask:
            r.out.env_unknown.append(name)
            r.out.details[name] = "no compared release of vLLM knows this variable: it is ignored"
        elif r.out.version and len(r.candidates) == 1:
            labels = r.engine.releases
            index = _label_index(r, r.candidates[0])
            if index is not None and not mask >> index & 1:
                last = mask.bit_length() - 1
                old = index > last
                (r.out.env_removed if old else r.out.env_unknown).append(name)
                r.out.details[name] = f"known in vLLM {labels[(mask & -mask).bit_length() - 1]}–{labels[last]}, ignored by {r.out.version}"


def _label_index(r: Resolver, version: str) -> int | None:
    from tools.config.data import standing

    mask = standing(r.engine, version)
    return mask.bit_length() - 1 if mask and mask & (mask - 1) == 0 else None


def _environment_values(r: Resolver) -> None:
    known = load().env
    for item in r.launch.env:
        var = known.get(item.name)
        if var is None or not var.fact:
            continue
        text = str(item.value).strip()
        if not text or "$" in text:
            continue
        value: Any = text
        if var.type == "bool":
            value = not _is_off(text)
        elif var.type in ("int", "float"):
            value = scalar(text)
            if not isinstance(value, (int, float)) or isinstance(value, bool):
                continue
        caveats = (r.out.details[item.name],) if item.name in r.out.env_removed else ()
        method = "set in the environment"
        _put(r.out, Value(var.fact, value, _origin(r), item.name, method, item.line, f"{item.name}={text}"[:160], caveats))
        if var.slows and _slows(var.slows, text):
            r.out.slows.append(item.name)
            r.out.details[item.name] = var.slows.why
        if item.name == "VLLM_ATTENTION_BACKEND" and item.name not in r.out.env_removed:
            _put(r.out, Value("config.attention_backend", text, _origin(r), item.name, method, item.line, f"{item.name}={text}"))
        if item.name == "VLLM_ALL2ALL_BACKEND" and item.name not in r.out.env_removed:
            _put(r.out, Value("config.all2all_backend", text, _origin(r), item.name, method, item.line, f"{item.name}={text}"))


def _slows(rule: Slows, text: str) -> bool:
    low = text.lower()
    if rule.positive:
        value = scalar(text)
        return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
    return low in rule.values if rule.values else low not in _OFF


# ── defaults ─────────────────────────────────────────────────────────────────────────────────────────────────────────
def _default_values(r: Resolver) -> None:
    out = r.out
    version = out.version or (r.candidates[0] if len(r.candidates) == 1 else "")
    for flag in r.engine.flags.values():
        if not flag.defaults or not flag.fact or flag.fact in out.values or r.given.get(flag.name):
            continue
        options = r.options(flag)
        if not options:
            continue
        value, entry = options[0]
        known = [item for item, _ in options if item not in (UNKNOWN, ABSENT)]
        if len(options) > 1 and known == [value] and value in (0, 1) and all(i is not UNKNOWN for i, _ in options):
            options = options[:1]
        if len(options) > 1 or value in (UNKNOWN, ABSENT):
            _undetermined(r, flag, known)
            continue
        value = r.batch_default(flag.name) if flag.name in ("max-num-seqs", "max-num-batched-tokens") else value
        method = default_method(r.engine.name, version, entry)
        if value != entry.value and flag.name in ("max-num-seqs", "max-num-batched-tokens") and not entry.per:
            method += "; doubled by performance-mode throughput"
        if flag.invert and isinstance(value, bool):
            value = not value
        caveats = (flag.caveat,) if flag.caveat else ()
        if entry.device == "gpu" and not out.device:
            caveats += ("a GPU is assumed",)
        for fact in (flag.fact, *flag.also):
            if fact not in out.values:
                _put(out, Value(fact, value, "default", flag.name, method, 0, "", caveats))


def _undetermined(r: Resolver, flag: Flag, known: list[Any]) -> None:
    if not known or not flag.core:
        return
    reasons = []
    if len(r.candidates) > 1:
        reasons.append("the version")
    if any(e.gpu_gib or e.gpu for e in flag.defaults) and r.world.gpu_gib is None and r.out.device != "cpu":
        reasons.append("the GPU's memory and name")
    if any(e.context for e in flag.defaults) and not (r.launch.context or r.world.context):
        reasons.append("whether it is an API server or the LLM class")
    values = " or ".join(str(v) for v in known[:4])
    r.out.undetermined.append(f"{flag.fact}: {values}, depends on {' and '.join(reasons) or 'settings not given'}")


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
        for name in ("cudagraph-capture-sizes", "max-cudagraph-capture-size", "cuda-graph-sizes", "cuda-graph-max-bs", "cuda-graph-max-bs-decode", "cuda-graph-bs", "cuda-graph-bs-decode"):
            if name in r.given:
                out.ignored.append(name)
                out.details[name] = "eager mode: no graph is captured"


def _derived(r: Resolver) -> None:
    out = r.out
    if r.launch.role == "router":
        return
    if out.device and "config.device" not in out.values:
        _put(out, Value("config.device", out.device, _origin(r), "", "told by the image, a variable or another source", r.launch.line))
    if "config.kv_connector" in out.values and r.launch.engine == "sglang":
        mode = out.raw("config.disaggregation_mode")
        if mode in (None, "null") and out.values["config.kv_connector"].origin == "default":
            del out.values["config.kv_connector"]
    _speculation(r)
    _graphs(r)
    _gpus(r)
    if out.raw("config.chunked_prefill_size") is not None:
        _compute(r, "config.enable_chunked_prefill", out.raw("config.chunked_prefill_size") != -1, "chunked-prefill-size is not -1", ["config.chunked_prefill_size"])
        if out.raw("config.chunked_prefill_size") == -1:
            out.values.pop("config.max_num_batched_tokens", None)


def _compute(r: Resolver, fact: str, value: Any, method: str, inputs: list[str]) -> None:
    if fact in r.out.values and r.out.values[fact].origin != "default":
        return
    sources = [r.out.values[name] for name in inputs if name in r.out.values]
    origin = "given" if any(s.origin == "given" for s in sources) else sources[0].origin if sources else "default"
    caveats = tuple(dict.fromkeys(c for s in sources for c in s.caveats))
    first = next((s for s in sources if s.line), None)
    _put(r.out, Value(fact, value, origin, "", method, first.line if first else 0, first.span if first else "", caveats))


def _speculation(r: Resolver) -> None:
    out = r.out
    if r.launch.observed and "config.spec.method" not in out.values:
        if any(item.name == "speculative-config" and item.value in (None, False) for item in r.launch.given):
            _put(out, Value("config.spec.enabled", False, "log", "speculative-config", "the start-up line says speculative_config=None", r.launch.line))
        return
    method = r.speculation()
    if method is None:
        if not r.launch.elided and not r.launch.observed and r.launch.engine in ("vllm", "sglang"):
            _put(out, Value("config.spec.enabled", False, "default", "", "no speculation flag is given"))
        return
    if "config.spec.method" not in out.values or r.last("speculative-model"):
        model = out.raw("config.spec.model")
        known = method != "draft_model" or model is not None
        if known and not (r.launch.elided and method == "draft_model"):
            _compute(r, "config.spec.method", method, "the method is not named; a draft model alone means draft_model unless the engine recognises the checkpoint" if method == "draft_model" else "told by the speculation flags", ["config.spec.model"])
    if out.raw("config.spec.model") == "[ngram]":
        del out.values["config.spec.model"]
    _compute(r, "config.spec.enabled", True, "a speculation flag is given", ["config.spec.method", "config.spec.num_tokens", "config.spec.model"])
    if method in ("draft_model", "draft") and r.launch.engine == "vllm" and r.over(">=0.8.0,<0.10") and "speculative-config" in r.given and out.raw("config.spec.method") == "draft_model":
        out.forcing_v0.append("speculative-config")
        out.details["speculative-config"] = "draft-model speculation is not supported by V1 before 0.10"


def _graphs(r: Resolver) -> None:
    out = r.out
    eager = out.raw("config.enforce_eager") is True
    sizes = out.raw("config.cudagraph.capture_sizes")
    if isinstance(sizes, list):
        numbers = [int(size) for size in sizes if isinstance(size, (int, float)) and not isinstance(size, bool)]
        out.values["config.cudagraph.capture_sizes"].value = numbers
        if numbers:
            _compute(r, "config.cudagraph.capture_max", max(numbers), f"largest of {len(numbers)} capture sizes", ["config.cudagraph.capture_sizes"])
        else:
            del out.values["config.cudagraph.capture_sizes"]
    if out.device == "cpu" or (eager and not r.launch.observed):
        for fact in ("config.cudagraph.capture_max", "config.cudagraph.capture_sizes"):
            if fact in out.values and (out.device == "cpu" or out.values[fact].origin == "default"):
                del out.values[fact]
    if eager and r.launch.engine == "vllm" and out.device != "cpu":
        _compute(r, "config.cudagraph_mode", "NONE", "enforce-eager switches graphs off", ["config.enforce_eager"])
    if eager or out.device == "cpu" or out.raw("config.cudagraph_mode") == "NONE":
        return
    seqs = out.num("config.max_num_seqs")
    if seqs is None or r.launch.engine not in ("vllm", "sglang"):
        return
    draft = r.draft_tokens() if r.launch.engine == "vllm" else None
    if r.launch.engine == "vllm" and r.speculation() is not None and draft is None:
        return
    per = 1 + (draft or 0)
    text = f"max_num_seqs {seqs:g} × (1 + {draft or 0} draft tokens)" if r.launch.engine == "vllm" else f"max_num_seqs {seqs:g}; SGLang captures by request count"
    _compute(r, "config.cudagraph.capture_needed", int(seqs * per), text, ["config.max_num_seqs", "config.spec.num_tokens"])


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
    text = f"tensor {tensor:g} × pipeline {pipe:g}" + (" (DP attention runs inside the TP group)" if inside else f" × data {data:g}")
    if out.device != "cpu":
        _compute(r, "config.total_gpus", int(total), text, ["config.tensor_parallel_size", "config.pipeline_parallel_size", "config.data_parallel_size"])


# ── contradictions ───────────────────────────────────────────────────────────────────────────────────────────────────
def _conflicts(r: Resolver) -> None:
    out = r.out
    if r.launch.engine != "vllm" or r.launch.observed:
        _gpu_limit(r)
        return
    seqs, tokens, length = (out.num(f"config.{name}") for name in ("max_num_seqs", "max_num_batched_tokens", "max_model_len"))
    if seqs is not None and tokens is not None and tokens < seqs and "given" in _origins(out, "config.max_num_seqs", "config.max_num_batched_tokens"):
        out.conflicts.append(f"max_num_batched_tokens {tokens:g} is smaller than max_num_seqs {seqs:g}: the engine refuses to start")
    if out.raw("config.enable_chunked_prefill") is False and tokens is not None and length is not None and tokens < length and out.values["config.max_num_batched_tokens"].origin == "given":
        out.conflicts.append(f"chunked prefill is off and max_num_batched_tokens {tokens:g} is below max_model_len {length:g}: the engine refuses to start")
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
    if isinstance(limit, Setting) and isinstance(limit.value, int) and total is not None and total > limit.value * nodes:
        r.out.conflicts.append(f"tensor × pipeline × data parallel needs {total:g} GPUs, the container may use {limit.value}")
