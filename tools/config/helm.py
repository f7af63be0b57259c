"""Helm values of the vLLM production stack: engines with camelCase settings, and the router."""

from __future__ import annotations

from typing import Any

from tools.config import container as box
from tools.config.data import engine_data
from tools.config.launch import Given, Launch, Setting, from_mapping, kebab, read_flags, version_of_image
from tools.config.values import cores, gibibytes
from tools.config.yamls import line_of

_LIMITS = {
    "requestCPU": ("cpu_request", cores),
    "limitCPU": ("cpu_limit", cores),
    "requestMemory": ("memory_request", gibibytes),
    "limitMemory": ("memory_limit", gibibytes),
    "shmSize": ("shm_size", gibibytes),
}


def read_helm(doc: dict[Any, Any]) -> list[Launch]:
    """One launch per model of ``servingEngineSpec`` and one for the router."""
    out: list[Launch] = []
    spec = doc.get("servingEngineSpec")
    if isinstance(spec, dict):
        models = spec.get("modelSpec")
        for model in models[:50] if isinstance(models, list) else []:
            if isinstance(model, dict):
                out.append(_model(spec, model))
    router = doc.get("routerSpec")
    if isinstance(router, dict):
        out.append(_router(router))
    return out


def _model(spec: dict[Any, Any], model: dict[Any, Any]) -> Launch:
    image = f"{model.get('repository') or ''}:{model.get('tag') or ''}"
    line = line_of(model, "name")
    launch = Launch(
        engine="vllm", form="yaml", context="api_server", label=str(model.get("name") or ""), line=line, image=image
    )
    launch.span = f"modelSpec {launch.label}"
    version = version_of_image(image)
    if version:
        launch.version, launch.version_how = version, f"image tag {image}"
    data = engine_data("vllm")
    url = model.get("modelURL")
    if isinstance(url, str):
        launch.given.append(Given("model", url, "modelURL", line_of(model, "modelURL")))
    config = model.get("vllmConfig")
    if isinstance(config, dict):
        _settings(launch, config)
        extra = config.get("extraArgs")
        if isinstance(extra, list):
            launch.given += read_flags(data, box.to_tokens(extra, line_of(config, "extraArgs")))[0]
    _lmcache(launch, model)
    launch.env += box.environment(model.get("env"), line_of(model, "env"))
    for key, (name, read) in _LIMITS.items():
        box.put(launch.limits, name, read(model.get(key)), line_of(model, key))
    for key, name in (("requestGPU", "gpu_limit"), ("replicaCount", "replicas")):
        if isinstance(model.get(key), int):
            box.put(launch.limits, name, model[key], line_of(model, key))
    box.probes({**spec, **model}, launch.limits)
    return launch


def _squashed() -> dict[str, str]:
    data = engine_data("vllm")
    return {name.replace("-", ""): name for name in (*data.history, *data.flags)}


def _settings(launch: Launch, config: dict[Any, Any]) -> None:
    names = _squashed()
    mapping: dict[Any, Any] = {}
    lines: dict[Any, int] = {}
    typed: dict[str, str] = {}
    for key, value in config.items():
        line = line_of(config, key)
        if key in ("v1", "v0"):
            if isinstance(value, (int, str)):
                launch.env.append(Setting("VLLM_USE_V1", str(value) if key == "v1" else "0", line))
            continue
        if key == "extraArgs" or isinstance(value, list):
            continue
        name = names.get(kebab(str(key)).replace("-", ""), kebab(str(key)))
        mapping[name], lines[name], typed[name] = value, line, str(key)
    found = from_mapping(engine_data("vllm"), mapping, lines)
    for item in found:
        item.typed = typed.get(item.typed, item.typed)
    launch.given += found


def _lmcache(launch: Launch, model: dict[Any, Any]) -> None:
    """The chart turns ``lmcacheConfig.enabled`` into a KV transfer config."""
    config = model.get("lmcacheConfig")
    if not isinstance(config, dict) or config.get("enabled") not in (True, "true"):
        return
    value = {"kv_connector": "LMCacheConnectorV1", "kv_role": str(config.get("kvRole") or "kv_both")}
    line = line_of(model, "lmcacheConfig")
    launch.given.append(Given("kv-transfer-config", value, "lmcacheConfig", line, how="set by the chart"))
    role = {"kv_producer": "prefill", "kv_consumer": "decode"}.get(str(config.get("kvRole")))
    if role and config.get("enablePD"):
        launch.given.append(Given("role", role, "kvRole", line_of(config, "kvRole"), how="section"))


def _router(spec: dict[Any, Any]) -> Launch:
    launch = Launch(engine="router", role="router", form="yaml", label="router", span="routerSpec")
    logic = spec.get("routingLogic")
    launch.line = line_of(spec, "routingLogic")
    if isinstance(logic, str):
        launch.given.append(Given("policy", logic, "routingLogic", launch.line))
    if isinstance(spec.get("replicaCount"), int):
        box.put(launch.limits, "router_replicas", spec["replicaCount"], line_of(spec, "replicaCount"))
    box.resources(spec.get("resources"), launch.limits)
    box.probes(spec, launch.limits)
    return launch
