"""Deployment files: compose, Kubernetes manifests, Helm values, Ray Serve LLM, recipes and plain ``--config`` YAML."""

from __future__ import annotations

from typing import Any, NamedTuple

from knowledge.versions import parse_version
from tools.config import container as box
from tools.config.command import MAX_LAUNCHES, Reader
from tools.config.data import engine_data
from tools.config.flags import canonical
from tools.config.helm import read_helm
from tools.config.launch import Given, Launch, Setting, engine_of_image, from_mapping, kebab, version_of_image
from tools.config.manifests import MAX_STEPS, Found, read_compose, read_kubernetes
from tools.config.programs import find_anchor
from tools.config.values import MISSING
from tools.config.yamls import line_of

_ARG_MAPS = {
    "engine_kwargs": "", "engine_args": "", "vllm_config": "vllm", "vllmconfig": "vllm", "vllm_args": "vllm",
    "sglang_config": "sglang", "sglang_args": "sglang", "trtllm_config": "tensorrt_llm", "server_args": "",
    "extra_engine_args": "",
}  # fmt: skip
_ARG_LISTS = ("args", "extraargs", "extra_args", "command", "vllmargs", "server_args", "engine_args")
_ROLES = ("prefill", "decode", "agg", "aggregated", "worker", "both", "encode")


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
        return read_compose(doc)
    if "kind" in doc and ("spec" in doc or "items" in doc or "data" in doc):
        return Found(_manifest(doc), [])
    if "servingEngineSpec" in doc or "routerSpec" in doc:
        return Found(read_helm(doc), [])
    out = _walk(doc)
    if not out:
        out = _plain(doc)
    return Found(out, [])


def _manifest(doc: dict[Any, Any]) -> list[Launch]:
    """One manifest, or the items of a ``List``."""
    items = doc.get("items")
    if not isinstance(items, list):
        return read_kubernetes(doc)
    out: list[Launch] = []
    for item in items[:100]:
        if isinstance(item, dict) and "items" not in item:
            out += read_kubernetes(item)
    return out


def _command(tokens: list[Any]) -> Any:
    from tools.config.shell import Command

    return Command(tokens, tokens[0].line if tokens else 1)


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
        stack += [
            (v, (*path, str(k)))
            for k, v in reversed(list(node.items()))
            if isinstance(v, (dict, list)) and k not in taken
        ]
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


def _arg_map(
    holder: dict[Any, Any], value: dict[Any, Any], path: tuple[str, ...], engine: str, hints: _Hints
) -> list[Launch]:
    out: list[Launch] = []
    for role, mapping in _variants(value):
        name = engine or hints.engine or _engine_by_keys(mapping)
        if not name or not any(kebab(str(key)) for key in mapping):
            continue
        data = engine_data(name)
        lines = dict(getattr(mapping, "lines", {}))
        launch = Launch(
            engine=name, form="yaml", label=role or _path_label(path), line=line_of(holder, path[-1]), strict=False
        )
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
        for key, name in (
            ("num_replicas", "replicas"),
            ("max_ongoing_requests", "max_ongoing_requests"),
            ("max_queued_requests", "max_queued_requests"),
        ):
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
            launch.given.insert(
                0, Given("model", model, "model_loading_config", line_of(holder, "model_loading_config"))
            )
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
    known = [
        key for key in keys if canonical(data, kebab(key)) in data.flags or canonical(data, kebab(key)) in data.history
    ]
    dashed = [key for key in known if "-" in kebab(key)]
    if not dashed or len(known) * 2 < len(keys):
        return []
    values = {key: value for key, value in doc.items() if value is not MISSING}
    launch = Launch(engine=engine, form="yaml", context="api_server", line=1, span=f"{len(known)} settings")
    launch.given = from_mapping(data, values, dict(getattr(doc, "lines", {})))
    return [launch]
