"""Compose files and Kubernetes manifests."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tools.config import container as box
from tools.config.command import Reader
from tools.config.launch import Launch, Setting
from tools.config.shell import expand
from tools.config.values import cores, cpu_list, gibibytes, seconds
from tools.config.yamls import line_of

MAX_STEPS = 40_000


class Found(NamedTuple):
    """Launches of a document and why nothing, or not all, was read."""

    launches: list[Launch]
    notes: list[str]


# ── compose ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def read_compose(doc: dict[Any, Any]) -> Found:
    """Services that run an inference engine; without one, the note names the services."""
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
        pairs = (
            ("interval", "period"),
            ("timeout", "timeout"),
            ("retries", "failure_threshold"),
            ("start_period", "initial_delay"),
        )
        for key, name in pairs:
            box.put(limits, f"probe.readiness.{name}", seconds(check.get(key)), line_of(check, key))


# ── Kubernetes ───────────────────────────────────────────────────────────────────────────────────────────────────────
def read_kubernetes(doc: dict[Any, Any]) -> list[Launch]:
    """Containers of a manifest, each with the replicas and probes that apply to it; scripts of a ConfigMap."""
    out: list[Launch] = []
    kind = str(doc.get("kind"))
    meta = doc.get("metadata")
    name = str(meta.get("name") or kind) if isinstance(meta, dict) else kind
    if kind == "ConfigMap" and isinstance(doc.get("data"), dict):
        for key, value in doc["data"].items():
            if isinstance(value, str) and re.search(r"vllm|sglang", value):
                reader = Reader()
                reader.text(value, line_of(doc["data"], key))
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
        for key, name in (
            ("minReplicas", "min_replicas"),
            ("maxReplicas", "max_replicas"),
            ("minReplicaCount", "min_replicas"),
            ("maxReplicaCount", "max_replicas"),
        ):
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
            stack += [
                (child, replicas, line) for child in reversed(list(node.values())) if isinstance(child, (dict, list))
            ]
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
        box.put(
            limits,
            "termination_grace",
            float(grace) if isinstance(grace, (int, float)) else None,
            line_of(pod, "terminationGracePeriodSeconds"),
        )
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
