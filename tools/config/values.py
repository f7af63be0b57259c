"""Values as people and programs write them: numbers with suffixes, JSON, Python reprs. Nothing is ever evaluated."""

from __future__ import annotations

import json
import math
import re
from typing import Any

_NUMBER = re.compile(r"^[+-]?(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$")
_HUMAN = re.compile(r"^([+-]?\d+(?:\.\d+)?)\s*([kKmMgGtT])(i?)[bB]?$")
_SIZE = re.compile(r"^\s*([\d.]+)\s*([kmgtpKMGTP]?)(i?)[bB]?\s*$")
_ENUM = re.compile(r"<[\w.]*?\.?(\w+): ")
_BODY = {"'": re.compile(r"(?:[^'\\]++|\\.)*+", re.DOTALL), '"': re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_STOP = frozenset(",)]}")
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
MAX_DEPTH = 40
LARGEST = 1e18
MISSING = object()


class Symbol(str):
    """A bare word of a repr that is neither text nor number: a variable, an enum member, a class name."""

    __slots__ = ()


def scalar(text: str) -> Any:
    """``true``, ``None``, numbers and ``25.6k`` become values; everything else stays text."""
    body = text.strip()
    low = body.lower()
    if low in ("true", "yes", "on"):
        return True
    if low in ("false", "no", "off"):
        return False
    if low in ("none", "null", "~", ""):
        return None
    return number(body) if number(body) is not None else body


def number(text: str) -> int | float | None:
    """A plain or suffixed number (``k`` = 1000, ``Ki``/``K`` = 1024, as vLLM reads them); ``None`` when it is none.

    Infinities and figures beyond 10^18 are no settings, hence no numbers here.
    """
    body = text.strip()
    if len(body) > 40:
        return None
    if _NUMBER.match(body):
        value = float(body)
        if not math.isfinite(value) or abs(value) > LARGEST:
            return None
        return int(body) if re.fullmatch(r"[+-]?\d+(?:_\d+)*", body) else value
    found = _HUMAN.match(body)
    if not found:
        return None
    unit = found[2]
    base = 1024 if found[3] or unit.isupper() else 1000
    value = float(found[1]) * base ** _POWER[unit.lower()]
    if abs(value) > LARGEST:
        return None
    return int(value) if value == int(value) else value


def gibibytes(text: Any) -> float | None:
    """Memory sizes of containers (``16Gi``, ``32g``, ``1024m``, bytes) in GiB.

    Kubernetes' ``G`` is 10^9 and ``Gi`` 2^30; Docker's ``g`` is 2^30.
    """
    if isinstance(text, bool) or text is None:
        return None
    if isinstance(text, (int, float)):
        return float(text) / 2**30 if math.isfinite(text) else None
    found = _SIZE.match(str(text))
    if not found:
        return None
    try:
        value = float(found[1])
    except ValueError:
        return None
    unit = found[2]
    base = 1000 if unit.isupper() and not found[3] else 1024
    size = float(value * base ** _POWER[unit.lower()] / 2**30)
    return size if math.isfinite(size) and size < LARGEST else None


def cores(text: Any) -> float | None:
    """CPU quantities: ``500m`` = 0.5, ``4``, ``3.5``."""
    if isinstance(text, bool) or text is None:
        return None
    body = str(text).strip()
    milli = body.endswith("m")
    try:
        value = float(body[:-1] if milli else body)
    except ValueError:
        return None
    return (value / 1000 if milli else value) if math.isfinite(value) else None


def seconds(text: Any) -> float | None:
    """Durations of probes: ``30``, ``30s``, ``5m``, ``1m30s``, ``1h``."""
    if isinstance(text, bool) or text is None:
        return None
    body = str(text).strip().lower()
    if _NUMBER.match(body) and len(body) < 20:
        return float(body)
    if not re.fullmatch(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+", body) or len(body) > 40:
        return None
    scale = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    return sum(float(n) * scale[u] for n, u in re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)", body))


def cpu_list(text: str) -> int | None:
    """Number of cores in ``0-7,16-23``; ``None`` when it is no such list."""
    total = 0
    for part in text.strip().split(","):
        found = re.fullmatch(r"\s*(\d{1,5})(?:\s*-\s*(\d{1,5}))?\s*", part)
        if not found:
            return None
        first = int(found[1])
        last = int(found[2]) if found[2] else first
        if last < first:
            return None
        total += last - first + 1
    return total or None


def load_json(text: str) -> Any:
    """Strict JSON, except that NaN, Infinity and absurd figures stay text. Raises ``ValueError``, ``RecursionError``."""

    def figure(word: str) -> Any:
        value = number(word)
        return word if value is None else value

    return json.loads(text, parse_constant=str, parse_float=figure, parse_int=figure)


def structured(text: str) -> Any:
    """A JSON or Python-like object in text; :data:`MISSING` when it holds none.

    Accepts what people paste: single quotes, ``True``/``None``, trailing commas and ``...`` for parts left out.
    """
    body = text.strip()
    if not body.startswith(("{", "[", "(")):
        return MISSING
    try:
        return load_json(body)
    except (ValueError, RecursionError):
        pass
    value, end = parse_repr(body, 0)
    return value if end > 1 and isinstance(value, (dict, list)) else MISSING


def parse_repr(text: str, at: int, depth: int = 0) -> tuple[Any, int]:
    """Read one Python- or JSON-like value from ``text[at:]``; returns it and the offset after it. Never raises.

    ``Name(a=1)`` becomes a dict with key ``""`` holding the name; deeper than 40 levels the rest is skipped as text.
    """
    at = _space(text, at)
    if at >= len(text):
        return None, at
    char = text[at]
    if char in "\"'":
        return _string(text, at)
    if depth >= MAX_DEPTH:
        return _skip(text, at)
    if char == "{":
        return _braces(text, at + 1, depth)
    if char in "[(":
        return _items(text, at + 1, "]" if char == "[" else ")", depth)
    if char == "<":
        return _angle(text, at)
    return _word(text, at, depth)


def _space(text: str, at: int) -> int:
    size = len(text)
    while at < size and text[at] in " \t\r\n":
        at += 1
    return at


def _string(text: str, at: int) -> tuple[str, int]:
    quote = text[at]
    found = _BODY[quote].match(text, at + 1)
    end = found.end() if found else at + 1
    body = text[at + 1 : end]
    if "\\" in body:
        body = _ESCAPE.sub(lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), body)
    return body, min(end + 1, len(text))


def _skip(text: str, at: int) -> tuple[Symbol, int]:
    """Over a value too deep to read: to the comma or bracket that ends it."""
    start, level, size = at, 0, len(text)
    while at < size:
        char = text[at]
        if char in "[({":
            level += 1
        elif char in ")]}":
            if level == 0:
                break
            level -= 1
        elif char == "," and level == 0:
            break
        at += 1
    return Symbol(text[start : min(at, start + 80)]), at


def _angle(text: str, at: int) -> tuple[Any, int]:
    """``<CUDAGraphMode.NONE: 0>`` → its member name."""
    end = text.find(">", at, at + 400)
    if end < 0:
        return _word_plain(text, at)
    found = _ENUM.match(text[at : end + 1])
    return Symbol(found[1] if found else text[at + 1 : end]), end + 1


def _items(text: str, at: int, close: str, depth: int) -> tuple[list[Any], int]:
    out: list[Any] = []
    size = len(text)
    while True:
        at = _space(text, at)
        if at >= size:
            return out, at
        if text[at] == close:
            return out, at + 1
        if text[at] == "," or text[at] in _STOP:
            at += 1
            continue
        value, end = parse_repr(text, at, depth + 1)
        at = end if end > at else at + 1
        if value != "...":
            out.append(value)


def _braces(text: str, at: int, depth: int) -> tuple[Any, int]:
    out: dict[Any, Any] = {}
    loose: list[Any] = []
    size = len(text)
    while True:
        at = _space(text, at)
        if at >= size or text[at] == "}":
            break
        if text[at] == "," or text[at] in _STOP:
            at += 1
            continue
        key, end = parse_repr(text, at, depth + 1)
        at = _space(text, end if end > at else at + 1)
        if at < size and text[at] in ":=":
            value, end = parse_repr(text, at + 1, depth + 1)
            at = max(end, at + 1)
            if isinstance(key, (str, int, float, bool)) or key is None:
                out[key] = value
        elif key != "...":
            loose.append(key)
    return (out if out or not loose else loose), min(at + 1, size)


def _word_plain(text: str, at: int) -> tuple[Symbol, int]:
    start, size = at, len(text)
    while at < size and text[at] not in _STOP and text[at] not in ":=\n(":
        at += 1
    if at == start:
        at += 1
    return Symbol(text[start:at].strip()), at


def _word(text: str, at: int, depth: int) -> tuple[Any, int]:
    """A number, a constant, a bare word, or a call ``Name(…)``."""
    word, end = _word_plain(text, at)
    if end < len(text) and text[end] == "(" and word and re.fullmatch(r"[A-Za-z_][\w.]*", word):
        body, end = parse_call(text, end + 1, depth + 1)
        if str(word) == "dict":
            return body, end
        return {"": str(word), **body}, end
    if end < len(text) and text[end] == ":" and text[end : end + 3] == "://":
        while end < len(text) and text[end] not in _STOP and not text[end].isspace():
            end += 1
        return Symbol(text[at:end]), end
    low = word.lower()
    if low in ("true", "false"):
        return low == "true", end
    if low in ("none", "null"):
        return None, end
    found = number(word)
    return (found if found is not None else word), end


def parse_call(text: str, at: int, depth: int = 0) -> tuple[dict[str, Any], int]:
    """Keyword arguments up to the closing parenthesis (or the end); positional values get keys ``0``, ``1`` …"""
    out: dict[str, Any] = {}
    size, place = len(text), 0
    while True:
        at = _space(text, at)
        if at >= size:
            return out, at
        if text[at] == ")":
            return out, at + 1
        if text[at] == "," or text[at] in _STOP:
            at += 1
            continue
        if text[at] == "#":
            stop = text.find("\n", at)
            at = size if stop < 0 else stop
            continue
        found = _KEY.match(text, at)
        if found:
            value, end = parse_repr(text, found.end(), depth + 1)
            out[found[1]] = value
            at = max(end, found.end())
            continue
        value, end = parse_repr(text, at, depth + 1)
        out[str(place)] = value
        place += 1
        at = end if end > at else at + 1


_KEY = re.compile(r"([A-Za-z_]\w{0,80})\s{0,8}=(?!=)")
