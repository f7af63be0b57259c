"""Containers of Kubernetes manifests and compose files: image, arguments, environment, limits and probes."""

from __future__ import annotations

from typing import Any

from tools.config.command import Reader
from tools.config.docker import DockerRun
from tools.config.launch import Launch, Setting, is_flag, undash
from tools.config.shell import Command, Token, expand, split
from tools.config.values import cores, gibibytes, seconds
from tools.config.yamls import line_of

_GPU_KEYS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "google.com/tpu")
_PROBES = {"readinessProbe": "readiness", "livenessProbe": "liveness", "startupProbe": "startup"}
# Kubernetes' own defaults, core/v1 Probe.
_PROBE_FIELDS: dict[str, tuple[str, float]] = {
    "initialDelaySeconds": ("initial_delay", 0.0),
    "timeoutSeconds": ("timeout", 1.0),
    "periodSeconds": ("period", 10.0),
    "failureThreshold": ("failure_threshold", 3.0),
}


def to_tokens(value: Any, line: int) -> list[Token]:
    """Arguments as words: a list keeps its items whole, a string is split as a shell would."""
    if isinstance(value, str):
        return [token for command in split(value, line)[0] for token in command.tokens]
    out: list[Token] = []
    if isinstance(value, dict):
        value = [f"--{key}={item}" if item is not None else f"--{key}" for key, item in value.items()]
    if not isinstance(value, list):
        return out
    for index, item in enumerate(value):
        if item is None or isinstance(item, (dict, list)):
            continue
        text = str(item).lower() if isinstance(item, bool) else str(item)
        where = line_of(value, index) or line
        if is_flag(undash(text)) and " " in text.strip() and "=" not in text.split(" ")[0] and "\n" not in text:
            out += to_tokens(text, where)
        else:
            out.append(Token(text, where, False))
    return out


def environment(value: Any, line: int = 0) -> list[Setting]:
    """``[{name, value}]``, ``["A=b"]`` and ``{A: b}``. A name without a value is passed through and unknown."""
    out: list[Setting] = []
    if isinstance(value, dict):
        for name, item in value.items():
            if not isinstance(item, (dict, list)) and item is not None:
                out.append(Setting(str(name), str(item), line_of(value, name) or line))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            where = line_of(value, index) or line
            if isinstance(item, str) and "=" in item:
                name, _, text = item.partition("=")
                out.append(Setting(name.strip(), text, where))
            elif isinstance(item, dict) and isinstance(item.get("name"), str) and item.get("value") is not None:
                out.append(Setting(item["name"], str(item["value"]), where))
    known = {item.name: str(item.value) for item in out}
    for item in out:
        if "$" in str(item.value):
            item.value = expand(str(item.value), {k: v for k, v in known.items() if k != item.name})[0]
    return [item for item in out if item.value != ""]


def put(limits: dict[str, Setting], name: str, value: Any, line: int) -> None:
    """Note a limit when it has a value."""
    if value is not None:
        limits[name] = Setting(name, value, line)


def resources(spec: Any, limits: dict[str, Setting]) -> None:
    """``resources: {limits, requests}`` of Kubernetes."""
    if not isinstance(spec, dict):
        return
    for part in ("limits", "requests"):
        block = spec.get(part)
        if not isinstance(block, dict):
            continue
        for key, value in block.items():
            line = line_of(block, key)
            if key == "cpu":
                put(limits, "cpu_limit" if part == "limits" else "cpu_request", cores(value), line)
            elif key == "memory":
                put(limits, "memory_limit" if part == "limits" else "memory_request", gibibytes(value), line)
            elif key in _GPU_KEYS:
                count = cores(value)
                put(limits, "gpu_limit", int(count) if count is not None else None, line)


def probes(container: dict[Any, Any], limits: dict[str, Setting]) -> None:
    """Probe timings in seconds; a field that is left out takes Kubernetes' default."""
    for key, kind in _PROBES.items():
        spec = container.get(key)
        if not isinstance(spec, dict):
            continue
        for field, (name, default) in _PROBE_FIELDS.items():
            value = seconds(spec.get(field))
            line = line_of(spec, field) or line_of(container, key)
            put(limits, f"probe.{kind}.{name}", default if value is None else value, line)


def shared_memory(pod: dict[Any, Any], container: dict[Any, Any], limits: dict[str, Setting]) -> None:
    """A memory-backed volume mounted on ``/dev/shm``."""
    mounted = {
        mount.get("name")
        for mount in container.get("volumeMounts") or []
        if isinstance(mount, dict) and mount.get("mountPath") == "/dev/shm"
    }
    for volume in pod.get("volumes") or []:
        if isinstance(volume, dict) and volume.get("name") in mounted and isinstance(volume.get("emptyDir"), dict):
            empty = volume["emptyDir"]
            put(limits, "shm_size", gibibytes(empty.get("sizeLimit")), line_of(empty, "sizeLimit"))


def launches(
    image: str,
    program: list[Token],
    arguments: list[Token],
    env: list[Setting],
    limits: dict[str, Setting],
    line: int,
) -> list[Launch]:
    """Launches of one container: a script, a program with flags, or flags for the image's entrypoint."""
    reader = Reader(arguments=arguments)
    reader.names = {item.name: str(item.value) for item in env}
    tokens = [*program, *arguments]
    text_image, _ = expand(image, reader.names)
    docker = DockerRun(text_image, tokens, list(env), dict(limits))
    script = next((i for i, token in enumerate(tokens) if "\n" in token.text), -1)
    if script >= 0 or any(token.text in ("-c", "-lc", "-ec") for token in tokens):
        body = tokens[script] if script >= 0 else None
        if body is not None and not any(token.text in ("-c", "-lc", "-ec") for token in tokens[:script]):
            reader.text(body.text, body.line)
        else:
            reader.command(Command(tokens, line), 0)
        for launch in reader.launches:
            reader.inside(launch, docker)
        return reader.launches
    docker.rest = reader.expanded(tokens)
    command = Command(docker.rest or [Token(text_image, line)], line)
    reader.container(command, docker, [])
    return reader.launches
