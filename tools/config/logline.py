"""Start-up lines that state the configuration: vLLM's engine line and non-default args, SGLang's ``server_args``.

The log reader hands such lines over. Each function finds its line anywhere in a text and returns ``None`` when it is
not there; none of them raises. ``Launch.line`` is the line inside the text handed over: set it to the line of the log.
"""

from __future__ import annotations

import re
from typing import Any

from tools.config.data import engine_data
from tools.config.flags import canonical
from tools.config.launch import Given, Launch
from tools.config.values import Symbol, parse_call, parse_repr

_ENGINE = re.compile(
    r"(?:Initializing (?:a|an)(?: (V\d))? LLM engine|input data for (V\d) LLM engine) \(v?([^)\s]{1,60})\) with config: ?"
)
_NON_DEFAULT = re.compile(r"non-default args: (?=\{)")
_NAMESPACE = re.compile(r"\bargs: Namespace\(")
_SERVER_ARGS = re.compile(r"server_args=ServerArgs\(|\bServerArgs\(")
_API_VERSION = re.compile(r"vLLM API server version (\d[\w.+]*)")
# Keys of the engine line that are named otherwise than the flag.
_KEYS = {
    "max-seq-len": "max-model-len",
    "device-config": "device",
    "chunked-prefill-enabled": "enable-chunked-prefill",
    "distributed-executor-backend": "distributed-executor-backend",
    "disable-async-output-proc": "",
    "use-async-output-proc": "",
    "served-model-name": "",
    "tokenizer": "",
    "seed": "",
    "decoding-config": "",
}
MAX_LINE = 200_000


def parse_engine_config_line(text: str) -> Launch | None:
    """vLLM's ``Initializing a V1 LLM engine (v…) with config: …`` as an observed launch.

    Scheduler sizes and memory utilisation are not in this line, so their absence says nothing.
    """
    found = _ENGINE.search(text[:MAX_LINE])
    if not found:
        return None
    values, _ = parse_call(text[found.end() : MAX_LINE], 0)
    generation = found[1] or found[2] or "V0"
    launch = _launch("vllm", found[3], text, found.start())
    launch.version_how = "engine start-up line"
    launch.generation = generation
    for key, value in values.items():
        name = _KEYS.get(key.replace("_", "-"), key.replace("_", "-"))
        if name:
            _take(launch, name, key, value)
    return launch


def parse_non_default_args(text: str) -> Launch | None:
    """vLLM's ``non-default args: {…}`` (or ``args: Namespace(…)`` of older releases): what the user set.

    With the first form every flag that is absent has its default.
    """
    head = text[:MAX_LINE]
    found = _NON_DEFAULT.search(head)
    if found:
        values, _ = parse_repr(head, found.end())
    else:
        found = _NAMESPACE.search(head)
        if not found:
            return None
        values, _ = parse_call(head, found.end())
    if not isinstance(values, dict) or not values:
        return None
    launch = _launch("vllm", "", text, found.start())
    launch.observed = False
    launch.context = "api_server"
    launch.elided = found.re is _NAMESPACE
    version = _API_VERSION.search(head)
    if version:
        launch.version, launch.version_how = version[1], "API server start-up line"
    for key, value in values.items():
        if isinstance(key, str) and key not in ("model_tag", "subparser", "dispatch_function"):
            _take(launch, key.replace("_", "-"), key, value)
    return launch


def parse_server_args(text: str) -> Launch | None:
    """SGLang's ``server_args=ServerArgs(…)``: every argument after resolution."""
    found = _SERVER_ARGS.search(text[:MAX_LINE])
    if not found:
        return None
    values, _ = parse_call(text[found.end() : MAX_LINE], 0)
    if len(values) < 5:
        return None
    launch = _launch("sglang", "", text, found.start())
    for key, value in values.items():
        _take(launch, key.replace("_", "-"), key, value)
    return launch


def parse_config_line(text: str) -> Launch | None:
    """Whichever of the three lines stands in the text."""
    return parse_engine_config_line(text) or parse_non_default_args(text) or parse_server_args(text)


def _launch(engine: str, version: str, text: str, start: int) -> Launch:
    line = text.count("\n", 0, start) + 1
    return Launch(
        engine=engine,
        form="log",
        version=version,
        observed=True,
        strict=False,
        line=line,
        span=text[start : start + 120],
    )


def _take(launch: Launch, name: str, key: str, value: Any) -> None:
    data = engine_data(launch.engine)
    canon = canonical(data, name)
    flag = data.flags.get(canon)
    if value is None:
        if canon == "speculative-config" and launch.observed:
            launch.given.append(Given(canon, None, key, 0))
        return
    if isinstance(value, dict):
        if canon == "device":
            value = value.get("device_type") or value.get("device") or ""
        else:
            value = {k: _plain(v) for k, v in value.items() if k != ""}
    elif isinstance(value, list):
        value = [_plain(item) for item in value]
    else:
        value = _plain(value)
    if value == "" or (flag is None and canon not in data.history):
        return
    if isinstance(value, dict) and flag is not None and not flag.nested and flag.type != "json":
        return
    launch.given.append(Given(canon, value, key, 0))


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Symbol) else value
