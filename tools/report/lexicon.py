"""The word lists of ``knowledge/lexicon`` as typed records and compiled patterns, read once per process."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from knowledge.loader import ROOT, read_yaml

CJK = "\u3400-\u9fff\uff00-\uffef"


class Unit(Struct, forbid_unknown_fields=True, kw_only=True):
    """Spellings of one unit; a value times ``scale`` is in ``unit``."""

    dim: str
    unit: str
    scale: float
    words: list[str]
    case: bool = False


class Metric(Struct, forbid_unknown_fields=True, kw_only=True):
    """One quantity people name. ``facts``: statistic → fact name; ``any`` when the statistic does not matter."""

    id: str
    name: dict[str, str]
    dims: list[str]
    better: str
    said: str
    words: list[str]
    facts: dict[str, str] = {}
    symptom: str = ""


class Named(Struct, forbid_unknown_fields=True, kw_only=True):
    """A canonical name and its spellings; ``bare`` names need a count or article in front."""

    name: str
    words: list[str]
    bare: bool = False


class Noun(Struct, forbid_unknown_fields=True, kw_only=True):
    """Nouns that turn a number into a count of ``kind``."""

    kind: str
    words: list[str]


class Names(Struct, forbid_unknown_fields=True, kw_only=True):
    """Everything of ``names.yaml``."""

    gpus: list[Named]
    engines: list[Named]
    frameworks: list[Named]
    packages: list[str]
    models: list[str]
    settings: list[Named]
    nouns: list[Noun]
    numbers: dict[str, float]
    numbers_zh: dict[str, float]


class Alternative(Struct, forbid_unknown_fields=True, kw_only=True):
    """Values of one choice (``alternatives.yaml``)."""

    kind: str
    words: list[str]


class Shapes(Struct, forbid_unknown_fields=True, kw_only=True):
    """Thresholds of shape facts (``shapes.yaml``)."""

    worse: float
    trigger: float
    better: float
    same: float
    grows: float
    flat: float
    fallen: float
    flat_span: float
    cliff: float
    cliff_share: float
    first_run: float
    constant_spread: float
    constant_min_s: float
    decay: float
    tools: float
    no_gain: float
    superlinear: float
    slower: float
    lengths: float


def _read(name: str) -> Any:
    return read_yaml(ROOT / "lexicon" / f"{name}.yaml")


@lru_cache(maxsize=1)
def alternatives() -> list[tuple[str, re.Pattern[str]]]:
    """Kind of choice and the pattern of its values, in the order of the file."""
    rows = msgspec.convert(_read("alternatives"), list[Alternative])
    return [(row.kind, re.compile("|".join(row.words), re.IGNORECASE)) for row in rows]


@lru_cache(maxsize=1)
def units() -> list[Unit]:
    """All units, in matching order."""
    return msgspec.convert(_read("units"), list[Unit])


@lru_cache(maxsize=1)
def metrics() -> dict[str, Metric]:
    """All metrics by id, most specific first."""
    return {item.id: item for item in msgspec.convert(_read("metrics"), list[Metric])}


@lru_cache(maxsize=1)
def names() -> Names:
    """Names of GPUs, engines, models, settings and countable things."""
    return msgspec.convert(_read("names"), Names)


@lru_cache(maxsize=1)
def shapes() -> Shapes:
    """Thresholds for shape facts."""
    return msgspec.convert(_read("shapes"), Shapes)


@lru_cache(maxsize=1)
def words() -> dict[str, str]:
    """Word classes of signature patterns: name → alternation without the outer group."""
    raw: dict[str, list[str]] = _read("words")
    return {name: "|".join(items) for name, items in raw.items()}


@lru_cache(maxsize=1)
def _cues() -> dict[str, Any]:
    data: dict[str, Any] = _read("cues")
    return data


@lru_cache(maxsize=64)
def cue(path: str) -> re.Pattern[str]:
    """Compiled alternation of the cue list at a dotted path of ``cues.yaml`` (``negation.forward``)."""
    node: Any = _cues()
    for key in path.split("."):
        node = node[key]
    items = [node] if isinstance(node, str) else node
    return re.compile("|".join(f"(?:{item})" for item in items), re.IGNORECASE)


@lru_cache(maxsize=1)
def metric_pattern() -> re.Pattern[str]:
    """One alternation over all metrics; the group name is ``m`` plus the index of the metric."""
    parts = []
    for index, metric in enumerate(metrics().values()):
        body = "|".join(f"(?:{_edge(word)})" for word in metric.words)
        parts.append(f"(?P<m{index}>{body})")
    return re.compile("|".join(parts), re.IGNORECASE)


@lru_cache(maxsize=1)
def metric_ids() -> list[str]:
    """Metric ids in the order of :func:`metric_pattern`."""
    return list(metrics())


def _edge(word: str) -> str:
    """Word boundary in front and behind where the pattern starts or ends with a Latin letter or digit."""
    first = re.match(r"^(?:\(\?:|\(\?<!\S*?\)|\\b|\W)*", word)
    start = word[first.end() : first.end() + 1] if first else word[:1]
    left = r"(?<![A-Za-z0-9])" if start.isascii() and start.isalnum() else ""
    right = r"(?![A-Za-z])" if re.search(r"[A-Za-z0-9?)]$", word) and not re.search(f"[{CJK}]", word) else ""
    return f"{left}(?:{word}){right}"


@lru_cache(maxsize=1)
def noun_pattern() -> re.Pattern[str]:
    """Countable nouns right behind a number; the group name is the kind."""
    parts = [f"(?P<{noun.kind}>{'|'.join(noun.words)})" for noun in names().nouns]
    return re.compile(rf"(?:{'|'.join(parts)})(?![A-Za-z])", re.IGNORECASE)
