"""Puts the effective configuration together: values, defaults, what follows from them, and what contradicts."""

from __future__ import annotations

from typing import Any

from tools.config.data import Flag, Slows, load, standing
from tools.config.follow import follow, origin_of, put
from tools.config.launch import Given, Launch
from tools.config.outcome import Effective, Value
from tools.config.resolve import ABSENT, UNKNOWN, Resolver, default_method
from tools.config.values import Symbol, scalar
from tools.config.verdicts import verdicts
from tools.config.world import World

_OFF = {"0", "false", "no", "off", "none", ""}
_DTYPES = {"half": "float16", "float": "float32"}
_JSON_SWITCH = {"profiler-config", "kv-events-config", "ec-transfer-config"}


def effective(launch: Launch, world: World) -> Effective:
    """The effective configuration of one launch. Never raises on content."""
    resolver = Resolver(launch, world)
    resolver.version()
    resolver.old_optimization()
    resolver.device()
    _devices_from_env(resolver)
    resolver.generation()
    if not launch.observed:
        verdicts(resolver)
        _environment_verdicts(resolver)
    _given_values(resolver)
    _environment_values(resolver)
    if not launch.observed and not launch.elided and launch.role in ("server", "offline"):
        _default_values(resolver)
    follow(resolver)
    return resolver.out


# ── given ────────────────────────────────────────────────────────────────────────────────────────────────────────────
def _given_values(r: Resolver) -> None:
    seen: dict[str, Given] = {}
    for item in r.launch.given:
        if item.name == "role":
            put(
                r.out,
                Value(
                    "config.role",
                    str(item.value),
                    origin_of(r),
                    "role",
                    f"stands in the section {item.value}",
                    item.line,
                    str(item.value),
                ),
            )
            continue
        flag = r.engine.flags.get(item.name)
        before = seen.get(item.name)
        if (
            before is not None
            and not item.path
            and not before.path
            and not (flag and flag.repeat)
            and before.value != item.value
        ):
            r.out.conflicts.append(
                f"--{item.name} is given twice: {before.value} (line {before.line}), then {item.value} (line {item.line}); the last one counts"
            )
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


def _span(item: Given) -> str:
    if isinstance(item.value, (bool, dict)) or not item.line:
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
    elif not _fits(flag, value):
        _unreadable(r, flag, item)
        return
    if value is None:
        return
    if flag.invert and isinstance(value, bool):
        value = not value
    if isinstance(value, str):
        value = _text(value, flag.lower)
    caveats: tuple[str, ...] = (flag.caveat,) if flag.caveat else ()
    if item.name in r.out.ignored:
        caveats += (f"ignored: {r.out.details.get(item.name, '')}",)
    if item.name in r.out.removed or item.name in r.out.too_new:
        caveats += (f"refused by this version: {r.out.details.get(item.name, '')}",)
    for fact in (flag.fact, *flag.also):
        put(r.out, Value(fact, value, origin_of(r), item.name, _method(r, item), item.line, _span(item), caveats))


def _fits(flag: Flag, value: Any) -> bool:
    if flag.type in ("int", "float"):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return flag.type != "bool" or isinstance(value, bool)


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
        put(r.out, Value(fact, value, origin_of(r), flag.name, _method(r, item), item.line, f"{typed} {value}"[:160]))


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
        if not name.startswith("VLLM_") or name.startswith(
            ("VLLM_ASCEND_", "VLLM_PLUGIN_", "VLLM_IMAGE", "VLLM_VERSION")
        ):
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
                r.out.details[name] = (
                    f"known in vLLM {labels[(mask & -mask).bit_length() - 1]}–{labels[last]}, ignored by {r.out.version}"
                )


def _label_index(r: Resolver, version: str) -> int | None:
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
        put(
            r.out,
            Value(var.fact, value, origin_of(r), item.name, method, item.line, f"{item.name}={text}"[:160], caveats),
        )
        if var.slows and _slows(var.slows, text):
            r.out.slows.append(item.name)
            r.out.details[item.name] = var.slows.why
        if item.name == "VLLM_ATTENTION_BACKEND" and item.name not in r.out.env_removed:
            put(
                r.out,
                Value(
                    "config.attention_backend", text, origin_of(r), item.name, method, item.line, f"{item.name}={text}"
                ),
            )
        if item.name == "VLLM_ALL2ALL_BACKEND" and item.name not in r.out.env_removed:
            put(
                r.out,
                Value(
                    "config.all2all_backend", text, origin_of(r), item.name, method, item.line, f"{item.name}={text}"
                ),
            )


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
        if (
            len(options) > 1
            and known == [value]
            and value is not True
            and value in (0, 1)
            and all(i is not UNKNOWN for i, _ in options)
        ):
            options = options[:1]
        if len(options) > 1 or value in (UNKNOWN, ABSENT):
            _undetermined(r, flag, known)
            continue
        method = default_method(r.engine.name, version, entry)
        if flag.name in ("max-num-seqs", "max-num-batched-tokens"):
            value, how = r.batch_default(flag.name)
            method += f"; {how}" if how else ""
            if value is UNKNOWN:
                _undetermined(r, flag, known)
                continue
        if flag.invert and isinstance(value, bool):
            value = not value
        caveats: tuple[str, ...] = (flag.caveat,) if flag.caveat else ()
        if entry.device == "gpu" and not out.device:
            caveats += ("a GPU is assumed",)
        for fact in (flag.fact, *flag.also):
            if fact not in out.values:
                put(out, Value(fact, value, "default", flag.name, method, 0, "", caveats))


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
