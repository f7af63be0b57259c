"""What is known about the flags and environment variables of the engines: typed, indexed, cached.

The source is ``knowledge/config/*.yaml``. Parsing it takes about 70 ms, so a compiled copy is kept in the user's cache
(see :func:`knowledge.cache.cache_dir`) under a stamp of the files; reading that takes about 2 ms.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

import knowledge
from knowledge.cache import compiled, stamp
from knowledge.loader import KnowledgeError, read_yaml
from knowledge.schema import Strict, Text
from knowledge.versions import parse_version

ROOT = Path(knowledge.__file__).parent / "config"
Kind = Literal["int", "float", "bool", "text", "list", "json", "count"]
_HISTORY = re.compile(r"^(\S+?)([?*]?) (\S+)$")


class Default(Strict):
    """One default value and the conditions under which the engine picks it.

    ``gpu_gib`` and ``tp`` hold a range such as ``>=70``; ``gpu`` and ``gpu_not`` are regular expressions on the GPU
    name; ``per`` multiplies the value by tensor- or pipeline-parallel size; ``expr`` names a computed default.
    """

    value: Any = None
    expr: str = ""
    versions: str = ""
    context: str = ""
    device: str = ""
    generation: str = ""
    gpu_gib: str = ""
    gpu: str = ""
    gpu_not: str = ""
    tp: str = ""
    given: dict[str, Any] = field(default_factory=dict)
    per: list[str] = field(default_factory=list)
    why: str = ""
    source: str = ""


class Ignored(Strict):
    """The engine accepts the flag and does nothing with it."""

    why: str
    versions: str = ""
    generation: str = ""
    when_given: str = ""


class Outcome(Strict):
    """Setting the flag to anything but one of ``unless`` has this effect in ``versions``."""

    versions: str
    unless: list[Any] = field(default_factory=list)
    why: str = ""


class Slows(Strict):
    """The setting itself makes serving slower. ``values``: only these; otherwise any but 0, false, none, off."""

    why: str
    values: list[str] = field(default_factory=list)
    positive: bool = False


class Flag(Strict):
    """One flag of one engine. ``fact`` is the vocabulary name it sets; empty when only its existence matters.

    ``invert``: the fact is the opposite of the flag. ``nested``: keys of a JSON-valued flag and their facts.
    ``core``: say so when its default cannot be determined. ``since`` and ``gone`` are exact releases; the compared releases stand in the history file.
    """

    name: str
    means: Text
    fact: str = ""
    also: list[str] = field(default_factory=list)
    type: Kind = "text"
    aliases: list[str] = field(default_factory=list)
    invert: bool = False
    lower: bool = False
    repeat: bool = False
    core: bool = False
    never: bool = False
    nested: dict[str, str] = field(default_factory=dict)
    since: str = ""
    gone: str = ""
    successor: str = ""
    instead: str = ""
    caveat: str = ""
    defaults: list[Default] = field(default_factory=list)
    ignored: list[Ignored] = field(default_factory=list)
    forces_v0: list[Outcome] = field(default_factory=list)
    errors: list[Outcome] = field(default_factory=list)
    slows: Slows | None = None


class EnvVar(Strict):
    """One environment variable. ``device``: the hardware that setting it gives away."""

    name: str
    means: Text
    fact: str = ""
    type: Kind = "text"
    device: str = ""
    slows: Slows | None = None


class _FlagFile(Strict):
    engine: str
    flags: list[Flag]


class _HistoryFile(Strict):
    engine: str
    releases: list[str]
    flags: str
    env: str = ""


class Engine(Struct):
    """All flags of one engine. ``history`` maps a name to a bit mask over ``releases`` (bit 0 = oldest)."""

    name: str
    releases: list[str] = field(default_factory=list)
    flags: dict[str, Flag] = field(default_factory=dict)
    alias: dict[str, str] = field(default_factory=dict)
    history: dict[str, int] = field(default_factory=dict)
    novalue: set[str] = set()
    many: set[str] = set()
    env_history: dict[str, int] = field(default_factory=dict)


class ConfigData(Struct):
    """Engines by name and environment variables by name."""

    engines: dict[str, Engine]
    env: dict[str, EnvVar]


def _mask(spans: str, releases: list[str], where: str) -> int:
    out = 0
    for span in spans.split(","):
        try:
            if span.endswith("+"):
                first, last = releases.index(span[:-1]), len(releases) - 1
            elif ".." in span:
                first, last = (releases.index(end) for end in span.split(".."))
            else:
                first = last = releases.index(span)
        except ValueError:
            raise KnowledgeError(f"config: {where}: {span!r} names a release that is not compared") from None
        out |= ((1 << (last + 1)) - 1) & ~((1 << first) - 1)
    return out


def _history(text: str, releases: list[str]) -> tuple[dict[str, int], set[str], set[str]]:
    masks: dict[str, int] = {}
    novalue: set[str] = set()
    many: set[str] = set()
    for line in text.splitlines():
        found = _HISTORY.match(line.strip())
        if not found:
            raise KnowledgeError(f"config: cannot read history line {line!r}")
        name, mark, spans = found.groups()
        masks[name] = _mask(spans, releases, name)
        if mark:
            (novalue if mark == "?" else many).add(name)
    return masks, novalue, many


def _add_flags(engine: Engine, flags: list[Flag]) -> None:
    for flag in flags:
        if flag.name in engine.flags:
            raise KnowledgeError(f"config: {engine.name}: {flag.name} is described twice")
        engine.flags[flag.name] = flag
        for other in flag.aliases:
            engine.alias[other] = flag.name
        names = {flag.name, *flag.aliases}
        if flag.type == "bool":
            engine.novalue |= names
        else:
            engine.novalue -= names
        if flag.type in ("list", "count"):
            engine.many |= names
        elif flag.type != "json":
            engine.many -= names


def _convert(path: Path, data: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise KnowledgeError(f"config/{path.name}: {error}") from None


def read(root: Path = ROOT) -> ConfigData:
    """Parse the YAML files. Raises :class:`knowledge.loader.KnowledgeError` naming the file and the record."""
    engines: dict[str, Engine] = {}
    for path in sorted(root.glob("*_history.yaml")):
        file: _HistoryFile = _convert(path, read_yaml(path), _HistoryFile)
        masks, novalue, many = _history(file.flags, file.releases)
        env = _history(file.env, file.releases)[0] if file.env else {}
        engines[file.engine] = Engine(file.engine, file.releases, {}, {}, masks, novalue, many, env)
    for path in sorted(root.glob("*_flags.yaml")):
        data = read_yaml(path)
        parts: list[_FlagFile] = _convert(path, data if isinstance(data, list) else [data], list[_FlagFile])
        for part in parts:
            _add_flags(engines.setdefault(part.engine, Engine(part.engine)), part.flags)
    env_path = root / "env.yaml"
    known: list[EnvVar] = _convert(env_path, read_yaml(env_path), list[EnvVar])
    return ConfigData(engines, {var.name: var for var in known})


@lru_cache(maxsize=1)
def load() -> ConfigData:
    """The shipped data, from the cache when no file changed."""
    return compiled("config", stamp(sorted(ROOT.glob("*.yaml")), [Path(__file__)]), ConfigData, read)


def engine_data(engine: str) -> Engine:
    """Data of one engine; an empty record for one that is not described."""
    return load().engines.get(engine) or Engine(engine)


def standing(engine: Engine, version: str) -> int:
    """Mask of the compared releases that a version stands for.

    One bit when the version itself was compared (or is a later patch of the last compared one of its minor), two
    bits when it lies between two compared releases, 0 when it is unknown or newer than all of them.
    """
    parsed = parse_version(version) if version else None
    if parsed is None or not engine.releases:
        return 0
    labels = [parse_version(label) or () for label in engine.releases]
    floor = -1
    for index, label in enumerate(labels):
        cut = (parsed + (0,) * len(label))[: len(label)]
        if cut == label:
            return 1 << index
        if cut > label:
            floor = index
    if floor < 0:
        return 1
    if labels[floor][:2] == parsed[:2] and (floor + 1 == len(labels) or labels[floor + 1][:2] != parsed[:2]):
        return 1 << floor
    if floor + 1 == len(labels):
        return 0
    return (1 << floor) | (1 << (floor + 1))


def is_newer(engine: Engine, version: str) -> bool:
    """Whether the version is newer than every compared release."""
    parsed = parse_version(version) if version else None
    if parsed is None or not engine.releases:
        return False
    newest = parse_version(engine.releases[-1]) or ()
    return parsed[: len(newest)] > newest
