"""Configurations that are no command: Python keywords, JSON reports of a running server, ``key=value`` notes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from knowledge.versions import parse_version
from tools.config.container import environment, put
from tools.config.data import engine_data
from tools.config.docker import DockerRun
from tools.config.flags import canonical, plain
from tools.config.launch import Given, Launch, Setting, from_mapping, guess_engine, kebab
from tools.config.logline import parse_engine_config_line
from tools.config.shell import Token
from tools.config.values import MISSING, Symbol, cpu_list, load_json, parse_call, scalar, structured

_CALL = re.compile(
    r"(?<![\w.])(?:(?:vllm|sgl|sglang|engine)\.)?(AsyncLLM|LLM|LLMEngine|AsyncLLMEngine|AsyncEngineArgs|EngineArgs|Engine|ServerArgs|LLMConfig|VllmConfig)\s{0,4}\("
)
_CONTEXTS = {"LLM": "llm_class", "LLMEngine": "llm_class"}
_PIECE = re.compile(r"^\s{0,8}[-*]?\s{0,8}([A-Za-z][\w .\-]{0,50}?)\s{0,4}[:=]\s{0,4}(\S.{0,300})$", re.DOTALL)
_SPACED = re.compile(r"^\s{0,8}([a-z]\w*_\w+)\s+(-?[\w.]+)\s*$")
_VERSION = re.compile(r"\b(vllm|sglang)\b(?:[ =:]{1,3}|\s+version\s+|==)v?(\d+\.\d+(?:\.\w+)*)", re.IGNORECASE)
_PARALLEL = re.compile(r"^\s*(TP|PP|DP|EP)\s*=?\s*(\d{1,4})\s*$", re.IGNORECASE)
_REPLICAS = re.compile(r"^\s*(\d{1,4})\s+replicas?\s*$", re.IGNORECASE)
# What people write for a flag, in words.
_WORDS = {
    "cuda graphs": ("enforce-eager", True),
    "cuda graph": ("enforce-eager", True),
    "prefix caching": ("enable-prefix-caching", False),
    "prefix cache": ("enable-prefix-caching", False),
    "chunked prefill": ("enable-chunked-prefill", False),
    "tp": ("tensor-parallel-size", False),
    "pp": ("pipeline-parallel-size", False),
    "dp": ("data-parallel-size", False),
}
_SPECULATIVE = {"speculative", "speculation", "speculative decoding", "spec decode", "spec"}


# ── Python ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def read_python(text: str) -> list[Launch]:
    """``LLM(model=…, tensor_parallel_size=2)`` and its relatives; variables stay unknown."""
    out: list[Launch] = []
    at = 0
    while len(out) < 8 and (found := _CALL.search(text, at)):
        values, at = parse_call(text, found.end())
        at = max(at, found.end())
        name = found[1]
        line = text.count("\n", 0, found.start()) + 1
        extra = values.pop("engine_kwargs", None)
        if isinstance(extra, dict):
            values.update({k: v for k, v in extra.items() if k})
        loading = values.pop("model_loading_config", None)
        if isinstance(loading, dict):
            values["model"] = loading.get("model_source") or loading.get("model_id")
        if "model" not in values and isinstance(values.get("0"), str) and not isinstance(values["0"], Symbol):
            values["model"] = values["0"]
        named = {key: value for key, value in values.items() if key and not key.isdigit()}
        engine = (
            "sglang"
            if name in ("ServerArgs", "Engine") and "sgl" in found[0] + text[max(0, found.start() - 40) : found.start()]
            else "vllm"
        )
        if engine == "vllm" and guess_engine([kebab(key) for key in named]) == "sglang":
            engine = "sglang"
        data = engine_data(engine)
        known = {
            k: v
            for k, v in named.items()
            if canonical(data, kebab(k)) in data.flags or canonical(data, kebab(k)) in data.history
        }
        if not known:
            continue
        launch = Launch(
            engine=engine,
            role="offline",
            form="python",
            context=_CONTEXTS.get(name, "other" if engine == "vllm" else ""),
            line=line,
            span=text[found.start() : found.start() + 120],
        )
        launch.strict = False
        launch.given = from_mapping(data, known)
        for item in launch.given:
            item.line = _line_of(text, found.start(), at, item.typed)
            if (
                isinstance(item.value, str)
                and re.fullmatch(r"[A-Za-z_][\w.]*(?:\[\S+\])?", item.value)
                and _bare(text, found.start(), at, item.typed)
            ):
                item.unresolved = True
        launch.elided = "**" in text[found.start() : at] or "..." in text[found.start() : at]
        out.append(launch)
    return out


def _line_of(text: str, start: int, end: int, key: str) -> int:
    where = text.find(f"{key}", start, end)
    return text.count("\n", 0, where) + 1 if where >= 0 else 0


def _bare(text: str, start: int, end: int, key: str) -> bool:
    """Whether the value of a keyword is a variable, not a string."""
    found = re.compile(rf"\b{re.escape(key)}\s{{0,4}}=\s{{0,4}}(.)").search(text, start, end)
    return bool(found and found[1] not in "'\"")


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
def read_json(text: str) -> tuple[list[Launch], str]:
    """Server reports, ``docker inspect`` and JSON argument files; and why nothing was read."""
    try:
        data = load_json(text)
    except RecursionError:
        return [], "JSON nested too deeply"
    except ValueError as error:
        data = structured(text)
        if data is MISSING or not isinstance(data, (dict, list)):
            return [], f"not JSON ({str(error)[:60]})"
    return json_launches(data), ""


def json_launches(data: Any) -> list[Launch]:
    """Launches in decoded JSON."""
    if isinstance(data, list):
        out: list[Launch] = []
        for item in data[:16]:
            if isinstance(item, dict):
                out += inspect_launches(item) or json_launches(item)
        return out
    if not isinstance(data, dict):
        return []
    nested = data.get("server_info")
    if isinstance(nested, dict):
        return json_launches(nested)
    config = data.get("vllm_config")
    if config is not None:
        return _vllm_info(config, data)
    found = inspect_launches(data)
    return found or _flat(data)


def server_info_launch(data: Mapping[str, Any]) -> Launch | None:
    """SGLang's ``/get_server_info`` (or vLLM's ``/server_info``) as an observed launch."""
    found = json_launches(dict(data))
    return found[0] if found else None


def _vllm_info(config: Any, data: dict[str, Any]) -> list[Launch]:
    if isinstance(config, str):
        version = str(data.get("version") or "0")
        launch = parse_engine_config_line(f"Initializing a V1 LLM engine (v{version}) with config: {config}")
        if launch is None:
            return []
        if version == "0":
            launch.version, launch.version_how = "", ""
        launch.generation, launch.form, launch.span = "", "json", "vllm_config"
        return [launch]
    if not isinstance(config, dict):
        return []
    launch = Launch(engine="vllm", form="json", observed=True, strict=False, span="vllm_config")
    engine = engine_data("vllm")
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict) and key not in ("speculative_config", "compilation_config", "kv_transfer_config"):
            flat.update({k: v for k, v in value.items() if not isinstance(v, dict)})
        else:
            flat[key] = value
    if "policy" in flat:
        flat["scheduling_policy"] = flat.pop("policy")
    if "device_type" in flat:
        flat["device"] = flat.pop("device_type")
    launch.given = [item for item in from_mapping(engine, flat) if item.name in engine.flags and item.value is not None]
    environment_block = data.get("vllm_env")
    if isinstance(environment_block, dict):
        launch.env = [item for item in environment(environment_block) if item.value not in ("", "None")]
    return [launch] if launch.given else []


def _flat(data: dict[str, Any]) -> list[Launch]:
    keys = [key for key in data if isinstance(key, str)]
    names = [kebab(key) for key in keys]
    engine = guess_engine(names)
    if not engine:
        return []
    table = engine_data(engine)
    known = [
        key
        for key in keys
        if canonical(table, kebab(key)) in table.history or canonical(table, kebab(key)) in table.flags
    ]
    if not any("-" in kebab(key) for key in known) or len(known) < min(3, len(keys)) or len(known) * 3 < len(keys):
        return []
    full = len(known) > 40
    launch = Launch(
        engine=engine,
        form="json",
        observed=engine == "sglang",
        strict=False,
        elided=True,
        span=f"{len(known)} settings",
    )
    launch.given = [item for item in from_mapping(table, data) if item.value is not None]
    version = data.get("version")
    if isinstance(version, str) and (parse_version(version) or ())[:2] > (0, 0) and full:
        launch.version, launch.version_how = version, "server's own report"
    return [launch]


def inspect_launches(data: dict[str, Any]) -> list[Launch]:
    """``docker inspect`` output: image, command, environment and limits of one container."""
    from tools.config import container as box

    config, host = data.get("Config"), data.get("HostConfig")
    if not isinstance(config, dict) or "Image" not in config:
        return []
    limits: dict[str, Setting] = {}
    if isinstance(host, dict):
        nano, memory, shm, cpus = (host.get(key) for key in ("NanoCpus", "Memory", "ShmSize", "CpusetCpus"))
        if isinstance(nano, int) and nano > 0:
            put(limits, "cpu_limit", nano / 1e9, 0)
        if isinstance(memory, int) and memory > 0:
            put(limits, "memory_limit", memory / 2**30, 0)
        if isinstance(shm, int) and shm > 0:
            put(limits, "shm_size", shm / 2**30, 0)
        if isinstance(cpus, str) and cpus:
            put(limits, "cpuset", cpu_list(cpus), 0)
        put(limits, "ipc_host", host.get("IpcMode") == "host", 0)
    program = [Token(str(word), 0) for word in config.get("Entrypoint") or [] if isinstance(word, str)]
    words = config.get("Cmd") or data.get("Args") or []
    arguments = [Token(str(word), 0) for word in words if isinstance(word, str)]
    docker = DockerRun(str(config["Image"]), [], environment(config.get("Env")), limits)
    return box.launches(docker.image, program, arguments, docker.env, limits, 0)


# ── cache_config_info ────────────────────────────────────────────────────────────────────────────────────────────────
def cache_config_launch(labels: Mapping[str, str], version: str = "") -> Launch:
    """Labels of ``vllm:cache_config_info`` as an observed launch: block size, KV type, utilisation, prefix caching."""
    engine = engine_data("vllm")
    launch = Launch(
        engine="vllm", form="json", observed=True, strict=False, version=version, span="vllm:cache_config_info"
    )
    names = {
        "cache_dtype": "kv-cache-dtype",
        "num_gpu_blocks": "",
        "num_cpu_blocks": "",
        "engine": "",
        "model_name": "",
        "sliding_window": "",
    }
    for key, text in labels.items():
        name = names.get(key, kebab(key))
        canon = canonical(engine, name) if name else ""
        flag = engine.flags.get(canon)
        value = scalar(str(text))
        if flag is None or not flag.fact or value is None or value == "None":
            continue
        launch.given.append(Given(canon, value if flag.type != "text" else str(text), key, 0))
    for key, limit in (
        ("num_gpu_blocks", "num_gpu_blocks"),
        ("kv_cache_size_tokens", "kv_cache_size_tokens"),
        ("kv_cache_max_concurrency", "kv_max_concurrency"),
    ):
        value = scalar(str(labels.get(key, "")))
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            launch.limits[limit] = Setting(limit, value, 0)
    return launch


# ── notes ────────────────────────────────────────────────────────────────────────────────────────────────────────────
def read_notes(text: str) -> list[Launch]:
    """``key=value, key=value`` and ``key: value`` lines as people jot them down. Nothing absent is concluded."""
    versions = {found[1].lower(): found[2] for found in _VERSION.finditer(text[:50_000])}
    given: list[Given] = []
    limits: dict[str, Setting] = {}
    first = 0
    for line, piece in _pieces(text):
        found = _piece(piece, line, limits)
        given += found
        first = first or (line if found else 0)
    if not given and not limits:
        return []
    engine = next(iter(versions)) if len(versions) == 1 else guess_engine([item.typed for item in given])
    if (
        engine != "sglang"
        and not versions
        and re.search(r"sglang", text, re.IGNORECASE)
        and not re.search(r"vllm", text, re.IGNORECASE)
    ):
        engine = "sglang"
    data = engine_data(engine)
    for item in given:
        item.name = canonical(data, item.name)
    given = [item for item in given if item.name in data.flags or item.name in data.history]
    launch = Launch(
        engine=engine, form="text", elided=True, strict=False, given=given, limits=limits, line=first or 1, span=""
    )
    if engine in versions:
        launch.version, launch.version_how = versions[engine], "named in the notes"
    return [launch] if given or limits else []


def _pieces(text: str) -> list[tuple[int, str]]:
    """Parts between newlines, commas and semicolons that are not inside brackets or quotes."""
    out: list[tuple[int, str]] = []
    line, level, quote, start = 1, 0, "", 0
    for at, char in enumerate(text):
        if quote:
            if char == quote or char == "\n":
                quote = ""
        elif char in "\"'" and (at == 0 or not text[at - 1].isalnum()):
            quote = char
        elif char in "[{(":
            level += 1
        elif char in ")]}":
            level = max(level - 1, 0)
        if char == "\n" or (char in ",;" and not quote and level == 0):
            if at > start:
                out.append((line, text[start:at]))
            start = at + 1
        if char == "\n":
            line += 1
            level = 0
    if start < len(text):
        out.append((line, text[start:]))
    return out[:2000]


def _piece(piece: str, line: int, limits: dict[str, Setting]) -> list[Given]:
    found = _PARALLEL.match(piece)
    if found:
        name = {"tp": "tensor-parallel-size", "pp": "pipeline-parallel-size", "dp": "data-parallel-size", "ep": ""}[
            found[1].lower()
        ]
        return [Given(name, int(found[2]), found[1], line)] if name else []
    found = _REPLICAS.match(piece)
    if found:
        limits["replicas"] = Setting("replicas", int(found[1]), line)
        return []
    found = _SPACED.match(piece)
    if found:
        return _note(found[1], found[2], line)
    found = _PIECE.match(piece)
    return _note(found[1].strip(), found[2].strip(), line) if found else []


def _note(key: str, text: str, line: int) -> list[Given]:
    low = key.lower()
    value: Any = scalar(text.strip("'\"`"))
    if low in _SPECULATIVE:
        if isinstance(value, str) and re.fullmatch(r"[\w-]{2,24}", value):
            return [Given("speculative-config", {"method": value.lower()}, key, line)]
        return []
    if low == "num_speculative_tokens":
        return [Given("speculative-config", value, key, line, path="num_speculative_tokens")]
    if low in _WORDS:
        name, invert = _WORDS[low]
        if name.startswith("en") and not isinstance(value, bool):
            return []
        return [Given(name, not value if invert else value, key, line)]
    name = plain(key)
    for engine in ("vllm", "sglang"):
        data = engine_data(engine)
        canon = canonical(data, name)
        flag = data.flags.get(canon)
        if canon not in data.history and flag is None:
            continue
        if " " in key or ("-" not in canon and canon not in ("model", "quantization", "dtype")):
            return []
        if (flag is not None and flag.type == "json") or text[:1] in "{[":
            shaped = structured(text)
            value = value if shaped is MISSING else shaped
        return [Given(name, value, key, line)]
    return []
