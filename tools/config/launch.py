"""What a launch said, before anything is concluded from it: flags as given, variables, container limits, version."""

from __future__ import annotations

import re
from typing import Any, Literal

from msgspec import Struct, field

from knowledge.versions import parse_version
from tools.config.data import Engine, engine_data
from tools.config.flags import abbreviation, canonical, plain
from tools.config.shell import Token
from tools.config.values import MISSING, scalar, structured

Form = Literal["command", "fragment", "yaml", "python", "text", "log", "json"]
Role = Literal["server", "client", "router", "offline"]

_IMAGE_TAG = re.compile(r":(?:v|V|release-?)?(\d+\.\d+(?:\.\d+)?(?:\.?(?:post|rc|dev)\d*)?)")
_IMAGES = (
    ("sglang", re.compile(r"(?:^|[/_-])sglang", re.IGNORECASE)),
    ("vllm", re.compile(r"vllm", re.IGNORECASE)),
    ("tgi", re.compile(r"text-generation-inference", re.IGNORECASE)),
    ("tensorrt_llm", re.compile(r"tensorrt-?llm|tritonserver", re.IGNORECASE)),
    ("llama_cpp", re.compile(r"llama\.cpp|llama-cpp", re.IGNORECASE)),
)
_SHORT = re.compile(r"^-[A-Za-z]")
_LONG = re.compile(r"^--[A-Za-z](?!.*---)")
_ELLIPSIS = {"...", "…", "[...]", "<...>", "…\\"}


class Given(Struct):
    """One flag as given. ``name`` is canonical for the engine, ``typed`` what stood there, ``value`` converted.

    ``unresolved``: the value is a shell variable or placeholder and is not known.
    """

    name: str
    value: Any
    typed: str
    line: int
    negated: bool = False
    unresolved: bool = False
    path: str = ""
    how: str = ""


class Setting(Struct):
    """One environment variable or container limit as given."""

    name: str
    value: Any
    line: int


class Launch(Struct):
    """One way a server was started. ``label`` tells variants in one file apart (a comment, a service, a role).

    ``elided``: parts of the command are left out (``...``), so nothing may be concluded from a missing flag.
    ``observed``: values were read from the running server, not from what somebody typed.
    """

    engine: str = ""
    role: Role = "server"
    form: Form = "command"
    context: str = ""
    version: str = ""
    version_how: str = ""
    generation: str = ""
    label: str = ""
    line: int = 0
    span: str = ""
    image: str = ""
    device: str = ""
    elided: bool = False
    observed: bool = False
    strict: bool = True
    given: list[Given] = field(default_factory=list)
    env: list[Setting] = field(default_factory=list)
    limits: dict[str, Setting] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def first(self, name: str) -> Given | None:
        """The last occurrence of a flag, which is the one that counts."""
        for item in reversed(self.given):
            if item.name == name and not item.path:
                return item
        return None


def engine_of_image(image: str) -> str:
    """Engine by image name; empty when it is none of ours."""
    name = image.rsplit("@", 1)[0]
    if "vllm-router" in name or "lmstack-router" in name or "sgl-router" in name:
        return "router"
    for engine, pattern in _IMAGES:
        if pattern.search(name):
            return engine
    return ""


def version_of_image(image: str) -> str:
    """Version from an image tag (``:v0.6.3.post1`` → ``0.6.3.post1``); empty for ``latest`` and digests.

    Only tags of the engines' own images count: a vendor's image numbers itself differently.
    """
    name = image.rsplit("@", 1)[0]
    own = re.search(
        r"vllm/vllm-openai|vllm-openai-|lmsysorg/sglang|huggingface/text-generation-inference|vllm-cpu", name
    )
    found = _IMAGE_TAG.search(name) if own else None
    return found[1] if found and parse_version(found[1]) else ""


def convert(engine: Engine, name: str, raw: Any) -> Any:
    """Text of a flag to its type. What does not fit the type stays as it is."""
    if not isinstance(raw, str):
        return raw
    flag = engine.flags.get(name)
    kind = flag.type if flag else ""
    if kind == "json" or (not kind and raw.lstrip()[:1] in ("{", "[")):
        value = structured(raw)
        return raw if value is MISSING else value
    if kind in ("int", "float"):
        value = scalar(raw)
        return value if isinstance(value, (int, float)) or value is None else raw
    if kind == "bool":
        value = scalar(raw)
        return bool(value) if isinstance(value, (bool, int)) else raw
    if kind in ("text", ""):
        return raw
    return raw


def is_flag(token: str) -> bool:
    """``--x``, ``-tp``, ``-O3``; not ``-1``, ``-`` or a ruled line."""
    return bool(_LONG.match(token[:200]) or _SHORT.match(token))


def undash(text: str) -> str:
    """A typographic dash at the start becomes ``--`` (or ``-``); other text is unchanged."""
    if text[:1] in "\u2013\u2014\u2212\u2012\u2015" and len(text) > 1:
        rest = text.lstrip("-\u2013\u2014\u2212\u2012\u2015")
        if rest[:1].isalpha():
            return "--" + rest
    return text


def _bool_word(text: str) -> bool:
    return text.lower() in ("true", "false", "1", "0", "yes", "no")


def read_flags(engine: Engine, tokens: list[Token]) -> tuple[list[Given], list[Token], bool]:
    """Flags, words that belong to no flag, and whether ``...`` stood among them."""
    given: list[Given] = []
    loose: list[Token] = []
    elided = False
    at = 0
    while at < len(tokens):
        token = tokens[at]
        text = undash(token.text)
        at += 1
        if text in _ELLIPSIS:
            elided = True
            continue
        if (token.quoted and not text.startswith("-")) or not is_flag(text):
            if text.strip() not in ("", "\\", "--"):
                loose.append(token)
            continue
        at = _one_flag(engine, tokens, at, text, token.line, given)
    return given, loose, elided


def _split_short(engine: Engine, name: str) -> tuple[str, str | None]:
    """``-O3`` → ``O`` and ``3``; ``-tp8`` → ``tp`` and ``8``."""
    if name in engine.alias or name in engine.flags or name in engine.history:
        return name, None
    found = re.match(r"^(O|tp|pp|dp|dcp|q)=?(\w[\w.]*)$", name)
    return (found[1], found[2]) if found and found[1] in engine.alias else (name, None)


def _one_flag(engine: Engine, tokens: list[Token], at: int, text: str, line: int, out: list[Given]) -> int:
    head, equals, inline = text.partition("=")
    short = not text.startswith("--")
    name = head.lstrip("-") if short else plain(head)
    value: str | None = inline if equals else None
    if short:
        base, dot, path = name.partition(".")
        base, stuck = _split_short(engine, base.replace("_", "-"))
        value = stuck if stuck is not None and value is None else value
    else:
        base, dot, path = name.partition(".")
        path = head.partition(".")[2] if dot else path
    canon = canonical(engine, base)
    if not short and canon not in engine.history and canon not in engine.flags:
        canon = base = abbreviation(engine, canon) or canon
    negated = (
        canon != base and base.startswith("no-") and base not in engine.alias and canon == canonical(engine, base[3:])
    )
    if value is None:
        values, at = _values(engine, tokens, at, base, canon, bool(dot))
    else:
        values = [value]
    out.append(_given(engine, canon, path.replace("-", "_"), values, negated, text.partition("=")[0], line))
    return at


def _values(engine: Engine, tokens: list[Token], at: int, base: str, canon: str, dotted: bool) -> tuple[list[str], int]:
    """Words that belong to the flag before them."""
    known = canon in engine.flags or canon in engine.history
    names = {base, canon}
    novalue = not dotted and bool(names & engine.novalue)
    many = not dotted and bool(names & engine.many)
    values: list[str] = []
    while at < len(tokens):
        token = tokens[at]
        text = undash(token.text)
        if (is_flag(text) and not token.quoted) or text in _ELLIPSIS:
            break
        if text in ("\\", ""):
            at += 1
            if token.quoted:
                values.append("")
                break
            continue
        if novalue and not _bool_word(text):
            break
        values.append(text)
        at += 1
        if not many and (known or dotted or novalue or len(values) == 1):
            break
    return values, at


def _given(engine: Engine, canon: str, path: str, values: list[str], negated: bool, typed: str, line: int) -> Given:
    flag = engine.flags.get(canon)
    unresolved = any(unknown_value(value) for value in values)
    value: Any
    if not values:
        value = True
    elif path:
        whole = structured(values[0])
        value = scalar(values[0]) if whole is MISSING else whole
    elif canon in engine.many or len(values) > 1:
        value = [scalar(item) for item in values]
        if len(values) == 1:
            whole = structured(values[0])
            value = whole if isinstance(whole, list) else [whole] if isinstance(whole, dict) else value
            if len(value) == 1 and isinstance(value[0], str) and "," in value[0]:
                value = [scalar(item) for item in value[0].split(",") if item.strip()]
    else:
        value = convert(engine, canon, values[0])
        if flag is None and isinstance(value, str):
            value = scalar(value)
    if negated:
        value = not value if isinstance(value, bool) else False
    if canon == "optimization-level" and not path and str(value).isdigit():
        value = f"O{value}"
    return Given(canon, value, typed, line, negated, unresolved, path)


def unknown_value(text: str) -> bool:
    """A variable or placeholder that stands for a value nobody gave."""
    return bool(re.search(r"\$\{?\w|\$\(|^<[^>]*>$|\{\{", text)) or text.strip() in ("...", "…", "xxx", "XXX")


def from_mapping(engine: Engine, mapping: dict[Any, Any], line_of: dict[Any, int] | None = None) -> list[Given]:
    """Flags written as keys: ``--config`` files, ``engine_kwargs``, Helm values (camelCase), Python keywords."""
    out: list[Given] = []
    lines = line_of or {}
    for key, raw in mapping.items():
        if not isinstance(key, str) or not key or raw is MISSING:
            continue
        typed = key
        dashed = kebab(key)
        canon = canonical(engine, dashed)
        negated = dashed.startswith("no-") and canon == canonical(engine, dashed[3:]) and canon != dashed
        path = dashed.partition(".")[2].replace("-", "_")
        value = convert(engine, canon, raw) if not path else scalar(raw) if isinstance(raw, str) else raw
        if canon in engine.many and isinstance(value, str):
            value = [value]
        unresolved = isinstance(raw, str) and unknown_value(raw)
        if negated:
            value = not value if isinstance(value, bool) else False
        out.append(Given(canon, value, typed, lines.get(key, 0), negated, unresolved, path))
    return out


def kebab(key: str) -> str:
    """``maxModelLen`` and ``max_model_len`` → ``max-model-len``."""
    if "_" not in key and "-" not in key and not key.isupper() and key[:1].islower():
        key = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda m: "-" + m[1].lower(), key)
    return plain(key)


def guess_engine(names: list[str]) -> str:
    """The engine whose flags these are: the one that knows most of them and alone; empty when none does."""
    best, score = "", 0.0
    for engine in ("vllm", "sglang", "tgi", "tensorrt_llm", "llama_cpp", "router"):
        data = engine_data(engine)
        hits = 0.0
        for name in names:
            canon = canonical(data, name)
            if canon in data.flags:
                hits += 1.0 if "-" in plain(name) else 0.25
            elif canon in data.history:
                hits += 0.6 if "-" in plain(name) else 0.2
        if hits > score + 0.01:
            best, score = engine, hits
    return best if score >= 0.5 else ""
