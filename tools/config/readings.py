"""Effective configurations as readings of ``knowledge/facts/config.yaml``, and the check of what was set against what
the running engine reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tools.config.data import is_newer
from tools.config.effective import effective
from tools.config.launch import Launch
from tools.config.outcome import Effective
from tools.config.world import World
from tools.contract import Reading, Source

_LISTS = (
    ("config.flags_removed", "removed", "refused by the version: the server does not start"),
    ("config.flags_unknown", "unknown", "not known in any compared release"),
    ("config.flags_too_new", "too_new", "came in a later version: the server does not start"),
    ("config.flags_renamed", "renamed", "old names"),
    ("config.flags_ignored", "ignored", "accepted without effect"),
    ("config.flags_forcing_v0", "forcing_v0", "not supported by V1"),
    ("config.flags_failing", "failing", "stop the start"),
    ("config.env_unknown", "env_unknown", "ignored by the engine"),
    ("config.env_removed", "env_removed", "no longer read by this version"),
    ("config.debug_settings", "slows", "slow serving by themselves"),
)
_LIMITS = {
    "cpu_limit": "config.cpu_limit_cores",
    "cpu_request": "config.cpu_request_cores",
    "cpuset": "config.cpu_limit_cores",
    "profiler": "",
}
# Facts of the log reader that state the same as a fact of ours.
_TWINS = {
    "log.max_num_batched_tokens": "config.max_num_batched_tokens",
    "log.max_model_len": "config.max_model_len",
    "log.api_server_count": "config.api_server_count",
    "log.attention_backend": "config.attention_backend",
}


def launch_readings(launch: Launch, ref: str = "", world: World | None = None, variant: str = "") -> list[Reading]:
    """Readings of one launch (or one start-up line) from file ``ref``. Order: observed and given before defaults."""
    return readings_of(effective(launch, world or World()), ref, variant)


def readings_of(result: Effective, ref: str, variant: str = "") -> list[Reading]:
    """All readings of one effective configuration."""
    out: list[Reading] = []
    launch = result.launch
    labels = {"variant": variant} if variant else {}

    def add(
        fact: str,
        value: Any,
        method: str,
        line: int = 0,
        span: str = "",
        origin: str = "given",
        caveats: tuple[str, ...] = (),
    ) -> None:
        out.append(
            Reading(
                fact=fact,
                value=value,
                source=Source(kind="file", ref=ref, line=line or launch.line, span=span),
                method=method,
                labels={"origin": origin, **labels},
                caveats=caveats,
            )
        )

    origin = "log" if launch.observed else "given"
    if launch.engine and launch.engine != "router":
        add("engine.name", launch.engine, "recognised by program, image or flags", span=launch.span, origin=origin)
    _identity(result, add, origin)
    for value in sorted(result.values.values(), key=lambda item: item.origin == "default"):
        add(value.fact, value.value, value.method, value.line, value.span, value.origin, value.caveats)
    _limits(launch, add)
    for fact, field, text in _LISTS:
        names = list(dict.fromkeys(getattr(result, field)))
        if names:
            details = "; ".join(f"{name}: {result.details[name]}" for name in names if name in result.details)
            add(fact, names, f"{text}. {details}"[:1500])
    _verdicts(result, add)
    return out


def _identity(result: Effective, add: Any, origin: str) -> None:
    launch = result.launch
    if result.version and launch.version:
        add("engine.version", result.version, result.version_how, span=launch.image or launch.span[:120], origin=origin)
    if result.version_range:
        add(
            "engine.version_range",
            result.version_range,
            "compared releases that know every given flag",
            caveats=("only if the server accepted the command",),
        )
    if result.generation:
        add(
            "engine.generation",
            result.generation,
            result.generation_how,
            origin=origin if launch.generation else "default",
        )
    if launch.context and launch.engine == "vllm":
        add("config.usage_context", launch.context, "told by the program", span=launch.span)
    if launch.image:
        add("config.image", launch.image, "image name", span=launch.image)
    names = [item.name for item in launch.given if item.name != "role"]
    if names and not launch.observed:
        add("config.flags_given", list(dict.fromkeys(names)), "flags in the order given", span=launch.span)


def _limits(launch: Launch, add: Any) -> None:
    limits = launch.limits
    for name, setting in limits.items():
        if launch.role == "router" and name not in ("replicas", "router_replicas"):
            continue
        fact = _LIMITS.get(name, f"config.{name}")
        if not fact or (name == "cpuset" and "cpu_limit" in limits):
            continue
        add(
            fact,
            setting.value,
            "cores of the CPU set" if name == "cpuset" else "container or process limit",
            setting.line,
            f"{name}: {setting.value}",
        )
    for kind in ("readiness", "liveness", "startup") if launch.role != "router" else ():
        parts = [limits.get(f"probe.{kind}.{field}") for field in ("initial_delay", "period", "failure_threshold")]
        if all(part is not None for part in parts):
            delay, period, tries = (float(part.value) for part in parts if part is not None)
            text = f"initial delay {delay:g} s + period {period:g} s × {tries:g} failed tries"
            add(f"config.probe.{kind}.budget", delay + period * tries, text, parts[2].line if parts[2] else 0)


def _verdicts(result: Effective, add: Any) -> None:
    rejected = [*result.removed, *result.unknown, *result.too_new, *result.failing]
    launch = result.launch
    certain = bool(rejected) or not is_newer(result.engine, result.version)
    if launch.strict and result.version and certain and not launch.observed and result.engine.history:
        text = (
            f"refused by {result.engine.name} {result.version}: {', '.join(rejected)}"
            if rejected
            else "every given flag exists in this version"
        )
        add("config.startup_rejected", bool(rejected), text, span=launch.span)
    needed, most = result.num("config.cudagraph.capture_needed"), result.num("config.cudagraph.capture_max")
    if needed is not None and most is not None:
        origins = {result.values[f"config.cudagraph.{name}"].origin for name in ("capture_needed", "capture_max")}
        origin = "default" if origins == {"default"} else "given" if "given" in origins else "log"
        add(
            "config.cudagraph.capture_short",
            needed > most,
            f"largest decode batch needs {needed:g}, captured up to {most:g}",
            origin=origin,
        )
    if result.conflicts:
        add("config.conflicts", list(dict.fromkeys(result.conflicts)), "settings compared with each other")
    if result.undetermined:
        add(
            "config.undetermined",
            list(dict.fromkeys(result.undetermined)),
            "what the value or verdict depends on is not known",
        )


def reconcile(readings: Iterable[Reading]) -> list[Reading]:
    """Contradictions between what was set and what the running engine reports, as ``config.conflicts`` readings.

    Call it once, with the readings of all readers. Values under different ``variant`` labels are not compared when
    several variants exist.
    """
    observed: dict[str, Reading] = {}
    typed: dict[str, list[Reading]] = {}
    variants: set[str] = set()
    for reading in readings:
        if reading.status != "ok":
            continue
        fact = _TWINS.get(reading.fact, reading.fact)
        origin = "log" if reading.fact in _TWINS else reading.labels.get("origin", "")
        if not fact.startswith("config.") and fact not in ("engine.version", "engine.generation"):
            continue
        if origin == "log":
            observed.setdefault(fact, reading)
        elif origin in ("given", "default"):
            typed.setdefault(fact, []).append(reading)
            variants.add(reading.labels.get("variant", ""))
    if len(variants - {""}) > 1:
        return []
    found = [
        text
        for fact, seen in observed.items()
        for item in typed.get(fact, ())
        if (text := _contradiction(fact, item, seen))
    ]
    if not found:
        return []
    inputs = tuple(sorted({fact for fact in observed if fact in typed}))
    return [
        Reading(
            fact="config.conflicts",
            value=list(dict.fromkeys(found)),
            source=Source(kind="computed", inputs=inputs),
            method=f"{len(inputs)} settings compared between the command and the running engine",
            labels={"origin": "log"},
        )
    ]


def _contradiction(fact: str, typed: Reading, seen: Reading) -> str:
    name = fact.removeprefix("config.")
    left, right = typed.value, seen.value
    if (
        left == right
        or _loose(left) == _loose(right)
        or _loose(left) == "auto"
        or name in ("model", "cudagraph.capture_sizes", "cudagraph.capture_needed")
    ):
        return ""
    if isinstance(left, list) or isinstance(right, list) or (name.startswith("env.")):
        return ""
    if typed.labels.get("origin") == "default" and isinstance(left, str):
        return ""
    how = "by default" if typed.labels.get("origin") == "default" else "as given"
    return f"{name}: {left} {how}, but the engine runs with {right}"


def _loose(value: Any) -> Any:
    if isinstance(value, str):
        return value.lower().replace("_", "-").removeprefix("torch.").removesuffix("-backend")
    return value


def variants_of(launches: Sequence[Launch]) -> list[str]:
    """A label for each launch of a file, empty when there is only one."""
    if len(launches) < 2:
        return ["" for _ in launches]
    out: list[str] = []
    for number, launch in enumerate(launches, 1):
        name = launch.label or (launch.engine if launch.role == "router" else str(number))
        while name in out:
            name = f"{name} {number}"
        out.append(name)
    return out
