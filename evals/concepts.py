"""Matches free text without a judge: probes by what they read, actions by what they change (``concepts.yaml``)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from evals.schema import ROOT
from knowledge.loader import read_yaml

_WORD = re.compile(r"[a-z][a-z0-9_]{3,}")


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[str, re.Pattern[str]], dict[str, re.Pattern[str]], frozenset[str], frozenset[str]]:
    data: dict[str, Any] = read_yaml(ROOT / "concepts.yaml")
    probes = {name: re.compile(text, re.IGNORECASE) for name, text in data["probes"].items()}
    changes = {name: re.compile(text, re.IGNORECASE) for name, text in data["changes"].items()}
    return probes, changes, frozenset(data["broad"]), frozenset(data["plain"].split())


@lru_cache(maxsize=1)
def _any_flag() -> tuple[re.Pattern[str], re.Pattern[str]]:
    data: dict[str, str] = read_yaml(ROOT / "concepts.yaml")["any_flag"]
    return re.compile(data["forbidden"], re.IGNORECASE), re.compile(data["action"], re.IGNORECASE)


@lru_cache(maxsize=1)
def _conditional() -> re.Pattern[str]:
    return re.compile(read_yaml(ROOT / "concepts.yaml")["conditional"], re.IGNORECASE)


@lru_cache(maxsize=4096)
def reads(text: str) -> frozenset[str]:
    """Concepts of reading in a probe's text."""
    return frozenset(name for name, pattern in _tables()[0].items() if pattern.search(text))


@lru_cache(maxsize=4096)
def changes(text: str) -> frozenset[str]:
    """Concepts of change in an action's text."""
    return frozenset(name for name, pattern in _tables()[1].items() if pattern.search(text))


@lru_cache(maxsize=4096)
def words(text: str) -> frozenset[str]:
    """Content words, lower case, plural s removed."""
    plain = _tables()[3]
    return frozenset(w.rstrip("s") for w in _WORD.findall(text.lower().replace("-", "_")) if w not in plain)


def probe_matches(said: str, accepted: str) -> bool:
    """Whether a named probe is the accepted one: a common specific concept, a broad one with a common content word, the
    same option, or three common content words."""
    common = reads(said) & reads(accepted)
    shared = words(said) & words(accepted)
    option = any(word.count("_") >= 2 for word in shared)
    return bool(common - _tables()[2]) or (bool(common) and bool(shared)) or option or len(shared) >= 3


def action_matches(said: str, forbidden: str) -> bool:
    """Whether a proposed action makes the forbidden change."""
    forbids, names = _any_flag()
    if _conditional().search(forbidden):
        return False
    return bool(changes(said) & changes(forbidden)) or bool(forbids.search(forbidden) and names.search(said))


def changeable(forbidden: str) -> bool:
    """Whether a forbidden text maps to a change that an action could make."""
    if _conditional().search(forbidden):
        return False
    return bool(changes(forbidden)) or bool(_any_flag()[0].search(forbidden))
