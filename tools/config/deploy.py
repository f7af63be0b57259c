"""Deployment files: compose, Kubernetes manifests, Helm values, Ray Serve LLM, recipes and plain ``--config`` YAML."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from knowledge.versions import parse_version
from tools.config import container as box
from tools.config.command import Reader, find_anchor
from tools.config.data import engine_data
from tools.config.flags import canonical
from tools.config.helm import read_helm
from tools.config.launch import Given, Launch, Setting, engine_of_image, from_mapping, kebab, version_of_image
from tools.config.values import MISSING
from tools.config.yamls import line_of

MAX_LAUNCHES = 24
MAX_STEPS = 40_000
_ARG_MAPS = {
    "engine_kwargs": "", "engine_args": "", "vllm_config": "vllm", "vllmconfig": "vllm", "vllm_args": "vllm",
    "sglang_config": "sglang", "sglang_args": "sglang", "trtllm_config": "tensorrt_llm", "server_args": "",
    "extra_engine_args": "",
}  # fmt: skip
_ARG_LISTS = ("args", "extraargs", "extra_args", "command", "vllmargs", "server_args", "engine_args")
_ROLES = ("prefill", "decode", "agg", "aggregated", "worker", "both", "encode")


class Found(NamedTuple):
    """Launches of a document and why nothing, or not all, was read."""

    launches: list[Launch]
    notes: list[str]


def read_documents(docs: list[Any]) -> Found:
    """All launches in all documents of one file."""
    found: list[Launch] = []
    notes: list[str] = []
    for doc in docs:
        if isinstance(doc, dict):
            part = read_document(doc)
            found += part.launches
            notes += part.notes
        elif isinstance(doc, list):
            tokens = box.to_tokens(doc, 1)
            if any(token.text.startswith("-") for token in tokens):
                reader = Reader()
                reader.command(_command(tokens), 0)
                found += reader.launches
    if len(found) > MAX_LAUNCHES:
        notes.append(f"{len(found) - MAX_LAUNCHES} further launch configurations were not read")
    return Found(found[:MAX_LAUNCHES], notes)


def read_document(doc: dict[Any, Any]) -> Found:
    """One document, by its shape."""
    if isinstance(doc.get("tests"), list) and any(isinstance(t, dict) and "asserts" in t for t in doc["tests"]):
        return Found([], ["a helm unit-test suite, not a deployment: its values are test inputs"])
    if isinstance(doc.get("services"), dict):
        return _compose(doc)
    if "kind" in doc and ("spec" in doc or "items" in doc or "data" in doc):
        return Found(_kubernetes(doc), [])
    if "servingEngineSpec" in doc or "routerSpec" in doc:
        return Found(read_helm(doc), [])
    out = _walk(doc)
    if not out:
        out = _plain(doc)
    return Found(out, [])


def _command(tokens: list[Any]) -> Any:
    from tools.config.shell import Command

    return Command(tokens, tokens[0].line if tokens else 1)


# ── compose ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def _compose(doc: dict[Any, Any]) -> Found:
    out: list[Launch] = []
    others: list[str] = []
    for name, service in doc["services"].items():
        if not isinstance(service, dict):
            continue
        line = line_of(doc["services"], name)
        limits: dict[str, Setting] = {}
        _compose_limits(service, limits)
        env = box.environment(service.get("environment"), line)
        program = box.to_tokens(service.get("entrypoint"), line_of(service, "entrypoint") or line)
        arguments = box.to_tokens(service.get("command"), line_of(service, "command") or line)
        found = box.launches(str(service.get("image") or ""), program, arguments, env, limits, line)
        found = [launch for launch in found if launch.role != "client"]
        for launch in found:
            launch.label = str(name)
            launch.form = "yaml"
        if len(found) > 1:
            for number, launch in enumerate(found, 1):
                launch.label = f"{name} {number}"
            found[0].notes.append(f"{len(found)} launch commands in one script; which one runs depends on a condition")
        if not found:
            others.append(str(name))
        out += found
    if not out:
        return Found([], [f"a compose file with no inference engine ({', '.join(others[:6])})"])
    return Found(out, [])


def _compose_limits(service: dict[Any, Any], limits: dict[str, Setting]) -> None:
    from tools.config.shell import expand
    from tools.config.values import cores, cpu_list, gibibytes, seconds

    def text(key: str, holder: dict[Any, Any] = service) -> Any:
        value = holder.get(key)
        return expand(value, {})[0] if isinstance(value, str) else value

    box.put(limits, "cpu_limit", cores(text("cpus")), line_of(service, "cpus"))
    if service.get("cpuset") is not None:
        box.put(limits, "cpuset", cpu_list(str(text("cpuset"))), line_of(service, "cpuset"))
    box.put(limits, "memory_limit", gibibytes(text("mem_limit")), line_of(service, "mem_limit"))
    box.put(limits, "shm_size", gibibytes(text("shm_size")), line_of(service, "shm_size"))
    if service.get("ipc") is not None:
        box.put(limits, "ipc_host", text("ipc") == "host", line_of(service, "ipc"))
    deploy = service.get("deploy")
    if isinstance(deploy, dict):
        box.put(limits, "replicas", deploy.get("replicas"), line_of(deploy, "replicas"))
        spec = deploy.get("resources")
        block = spec.get("limits") if isinstance(spec, dict) else None
        if isinstance(block, dict):
            box.put(limits, "cpu_limit", cores(text("cpus", block)), line_of(block, "cpus"))
            box.put(limits, "memory_limit", gibibytes(text("memory", block)), line_of(block, "memory"))
    check = service.get("healthcheck")
    if isinstance(check, dict):
        pairs = (("interval", "period"), ("timeout", "timeout"), ("retries", "failure_threshold"), ("start_period", "initial_delay"))
        for key, name in pairs:
            box.put(limits, f"probe.readiness.{name}", seconds(check.get(key)), line_of(check, key))


# ── Kubernetes ───────────────────────────────────────────────────────────────────────────────────────────────────────
def _kubernetes(doc: dict[Any, Any]) -> list[Launch]:
    out: list[Launch] = []
    kind = str(doc.get("kind"))
    meta = doc.get("metadata")
    name = str(meta.get("name") or kind) if isinstance(meta, dict) else kind
    if isinstance(doc.get("items"), list):
        for item in doc["items"][:100]:
            if isinstance(item, dict) and item is not doc:
                out += read_document(item).launches
        return out
    if kind == "ConfigMap" and isinstance(doc.get("data"), dict):
        for key, value in doc["data"].items():
            if isinstance(value, str) and re.search(r"vllm|sglang", value):
                reader = Reader()
                reader.text(value, line_of(doc["data"], key) + 1)
                out += reader.launches
        return out
    scaling = _autoscaling(kind, doc.get("spec"))
    if scaling:
        return [Launch(form="yaml", label=name, limits=scaling, strict=False)]
    for pod, replicas, line in _pods(doc):
        out += _pod(pod, name, replicas, line)
    return out


def _autoscaling(kind: str, spec: Any) -> dict[str, Setting]:
    limits: dict[str, Setting] = {}
    if kind in ("HorizontalPodAutoscaler", "ScaledObject") and isinstance(spec, dict):
        for key, name in (("minReplicas", "min_replicas"), ("maxReplicas", "max_replicas"), ("minReplicaCount", "min_replicas"), ("maxReplicaCount", "max_replicas")):
            box.put(limits, name, spec.get(key), line_of(spec, key))
    return limits


def _pods(doc: dict[Any, Any]) -> list[tuple[dict[Any, Any], Any, int]]:
    """Mappings with a ``containers`` list, each with the nearest ``replicas`` above it."""
    out: list[tuple[dict[Any, Any], Any, int]] = []
    stack: list[tuple[Any, Any, int]] = [(doc, None, 0)]
    seen: set[int] = set()
    while stack and len(seen) < MAX_STEPS:
        node, replicas, line = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, dict):
            if isinstance(node.get("replicas"), int):
                replicas, line = node["replicas"], line_of(node, "replicas")
            if isinstance(node.get("containers"), list):
                out.append((node, replicas, line))
            stack += [(child, replicas, line) for child in reversed(list(node.values())) if isinstance(child, (dict, list))]
        elif isinstance(node, list):
            stack += [(child, replicas, line) for child in reversed(node) if isinstance(child, (dict, list))]
    return out


def _pod(pod: dict[Any, Any], name: str, replicas: Any, replicas_line: int) -> list[Launch]:
    out: list[Launch] = []
    containers = [c for c in pod["containers"] if isinstance(c, dict)]
    for spec in containers:
        limits: dict[str, Setting] = {}
        box.resources(spec.get("resources"), limits)
        box.probes(spec, limits)
        box.shared_memory(pod, spec, limits)
        box.put(limits, "replicas", replicas, replicas_line)
        grace = pod.get("terminationGracePeriodSeconds")
        box.put(limits, "termination_grace", float(grace) if isinstance(grace, (int, float)) else None, line_of(pod, "terminationGracePeriodSeconds"))
        if pod.get("hostIPC") is True:
            box.put(limits, "ipc_host", True, line_of(pod, "hostIPC"))
        line = line_of(spec, "image") or line_of(spec, "name")
        found = box.launches(
            str(spec.get("image") or ""),
            box.to_tokens(spec.get("command"), line_of(spec, "command")),
            box.to_tokens(spec.get("args"), line_of(spec, "args")),
            box.environment(spec.get("env"), line_of(spec, "env")),
            limits,
            line,
        )
        for launch in found:
            launch.form = "yaml"
            launch.label = name if len(containers) == 1 else f"{name}/{spec.get('name') or ''}".rstrip("/")
        out += [launch for launch in found if launch.role != "client"]
    return out


# ── mappings of flags ────────────────────────────────────────────────────────────────────────────────────────────────
def _walk(doc: dict[Any, Any]) -> list[Launch]:
    """Argument mappings and argument lists anywhere in a document, labelled by where they stand."""
    out: list[Launch] = []
    stack: list[tuple[Any, tuple[str, ...]]] = [(doc, ())]
    seen: set[int] = set()
    hints = _hints(doc)
    while stack and len(seen) < MAX_STEPS and len(out) <= MAX_LAUNCHES:
        node, path = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, list):
            stack += [(child, path) for child in reversed(node) if isinstance(child, (dict, list))]
            continue
        if not isinstance(node, dict):
            continue
        taken: set[Any] = set()
        for key, value in node.items():
            low = str(key).lower()
            if low in _ARG_MAPS and isinstance(value, dict):
                found = _arg_map(node, value, (*path, str(key)), _ARG_MAPS[low], hints)
                out += found
                taken |= {key} if found else set()
            elif low in _ARG_LISTS and isinstance(value, (list, str)):
                found = _arg_list(node, key, value, path, hints)
                out += found
                taken |= {key} if found else set()
        stack += [(v, (*path, str(k))) for k, v in reversed(list(node.items())) if isinstance(v, (dict, list)) and k not in taken]
    return out


class _Hints(NamedTuple):
    engine: str
    versions: dict[str, tuple[str, str]]
    image: str


def _hints(doc: dict[Any, Any]) -> _Hints:
    """Engine, versions and image named anywhere in a document."""
    engine, image = "", ""
    versions: dict[str, tuple[str, str]] = {}
    stack: list[Any] = [doc]
    seen: set[int] = set()
    while stack and len(seen) < MAX_STEPS:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(value, (dict, list)):
                stack.append(value)
            elif isinstance(value, (str, float)):
                text = str(value)
                if key in ("vllm", "sglang") and parse_version(text):
                    versions.setdefault(str(key), (text, f"{key}: {text}"))
                if key == "type" and text in ("vllm", "sglang", "trtllm"):
                    engine = engine or {"trtllm": "tensorrt_llm"}.get(text, text)
                if key in ("image", "container") and engine_of_image(text):
                    image = image or text
                    found = version_of_image(text)
                    if found:
                        versions.setdefault(engine_of_image(text), (found, f"image tag {text}"))
    return _Hints(engine or engine_of_image(image), versions, image)


def _variants(value: dict[Any, Any]) -> list[tuple[str, dict[Any, Any]]]:
    roles = [(str(k), v) for k, v in value.items() if str(k).lower() in _ROLES and isinstance(v, dict)]
    return roles or [("", value)]


def _arg_map(holder: dict[Any, Any], value: dict[Any, Any], path: tuple[str, ...], engine: str, hints: _Hints) -> list[Launch]:
    out: list[Launch] = []
    for role, mapping in _variants(value):
        name = engine or hints.engine or _engine_by_keys(mapping)
        if not name or not any(kebab(str(key)) for key in mapping):
            continue
        data = engine_data(name)
        lines = dict(getattr(mapping, "lines", {}))
        launch = Launch(engine=name, form="yaml", label=role or _path_label(path), line=line_of(holder, path[-1]), strict=False)
        launch.given = from_mapping(data, dict(mapping), lines)
        launch.span = f"{path[-1]}: {len(mapping)} settings"
        launch.image = hints.image
        if name in hints.versions:
            launch.version, launch.version_how = hints.versions[name]
        env_key = f"{role}_environment" if role else ""
        launch.env = box.environment(holder.get(env_key) or holder.get("environment") or holder.get("env"), launch.line)
        _ray(holder, launch)
        _workers(role, launch, path, holder)
        out.append(launch)
    return out


def _path_label(path: tuple[str, ...]) -> str:
    return "/".join(part for part in path[:-1][-2:] if part not in ("args", "spec", "backend"))


def _workers(role: str, launch: Launch, path: tuple[str, ...], holder: dict[Any, Any]) -> None:
    if role in ("prefill", "decode"):
        launch.given.append(Given("role", role, path[-1], launch.line, how="section"))


def _ray(holder: dict[Any, Any], launch: Launch) -> None:
    """Ray Serve LLM: replicas, scaling and the model name stand beside ``engine_kwargs``."""
    deployment = holder.get("deployment_config")
    if isinstance(deployment, dict):
        for key, name in (("num_replicas", "replicas"), ("max_ongoing_requests", "max_ongoing_requests"), ("max_queued_requests", "max_queued_requests")):
            if isinstance(deployment.get(key), int):
                box.put(launch.limits, name, deployment[key], line_of(deployment, key))
        scaling = deployment.get("autoscaling_config")
        if isinstance(scaling, dict):
            for key in ("min_replicas", "max_replicas", "target_ongoing_requests"):
                if isinstance(scaling.get(key), (int, float)):
                    box.put(launch.limits, key, scaling[key], line_of(scaling, key))
    loading = holder.get("model_loading_config")
    if isinstance(loading, dict) and not launch.first("model"):
        model = loading.get("model_source") or loading.get("model_id")
        if isinstance(model, str):
            launch.given.insert(0, Given("model", model, "model_loading_config", line_of(holder, "model_loading_config")))
        launch.engine = launch.engine or "vllm"
        launch.label = str(loading.get("model_id") or launch.label)
    runtime = holder.get("runtime_env")
    if isinstance(runtime, dict):
        launch.env += box.environment(runtime.get("env_vars"), line_of(holder, "runtime_env"))


def _engine_by_keys(mapping: dict[Any, Any]) -> str:
    from tools.config.launch import guess_engine

    return guess_engine([kebab(str(key)) for key in mapping if isinstance(key, str)])


def _arg_list(holder: dict[Any, Any], key: Any, value: Any, path: tuple[str, ...], hints: _Hints) -> list[Launch]:
    tokens = box.to_tokens(value, line_of(holder, key))
    words = [token.text for token in tokens]
    if not find_anchor(words) and not any(word.startswith("--") for word in words) and "\n" not in "".join(words):
        return []
    limits: dict[str, Setting] = {}
    box.resources(holder.get("resources"), limits)
    box.probes(holder, limits)
    image = holder.get("image")
    if isinstance(image, dict):
        image = f"{image.get('repository') or ''}:{image.get('tag') or ''}"
    env = box.environment(holder.get("env") or holder.get("environment"))
    found = box.launches(str(image or hints.image or ""), [], tokens, env, limits, line_of(holder, key))
    if not found and any(word.startswith("--") for word in words):
        reader = Reader(fragment_engine=hints.engine)
        reader.command(_command(tokens), 0)
        found = reader.launches
    for launch in found:
        launch.label = launch.label or "/".join(path[-2:])
        launch.form = "yaml"
        replicas = holder.get("replicaCount", holder.get("replicas"))
        if isinstance(replicas, int):
            box.put(launch.limits, "replicas", replicas, line_of(holder, "replicaCount"))
    return [launch for launch in found if launch.given or launch.role == "router"]


def _plain(doc: dict[Any, Any]) -> list[Launch]:
    """A ``--config`` file: flags as keys at the top."""
    keys = [key for key in doc if isinstance(key, str)]
    engine = _engine_by_keys(doc)
    if not engine:
        return []
    data = engine_data(engine)
    known = [key for key in keys if canonical(data, kebab(key)) in data.flags or canonical(data, kebab(key)) in data.history]
    dashed = [key for key in known if "-" in kebab(key)]
    if not dashed or len(known) * 2 < len(keys):
        return []
    values = {key: value for key, value in doc.items() if value is not MISSING}
    launch = Launch(engine=engine, form="yaml", context="api_server", line=1, span=f"{len(known)} settings")
    launch.given = from_mapping(data, values, dict(getattr(doc, "lines", {})))
    return [launch]
