"""This site's own incidents, one line each, and the nearest of them to a new diagnosis.

The journal is JSONL: ``~/.local/share/inferdx/journal.jsonl`` (written here) and ``~/.config/inferdx/journal.jsonl`` (a
site's shared one, only read). Similarity is a weighted Jaccard over families, fired rules and facts; no model, no clock.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

from agent.diagnosis import Diagnosis, PastCase

MAX_BYTES = 32 << 20
_WEIGHT = {"family": 3.0, "rule": 1.0, "fact": 0.7, "outcome": 0.5}


class Entry(Struct, kw_only=True, omit_defaults=True):
    """One incident: ``line`` is *symptom – cause – change – effect*, ``features`` what it is found by."""

    id: str
    line: str
    outcome: str = "incident"
    families: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    when: str = ""
    case: str = ""


def data_home() -> Path:
    """Where this user's journal and drafts lie: ``$INFERDX_DATA``, else the XDG data folder."""
    named = os.environ.get("INFERDX_DATA")
    if named:
        return Path(named)
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "inferdx"


def own_journal() -> Path:
    """The file that :func:`append` writes."""
    return data_home() / "journal.jsonl"


def journals() -> list[Path]:
    """The journals that exist, this user's first."""
    base = os.environ.get("XDG_CONFIG_HOME")
    site = (Path(base) if base else Path.home() / ".config") / "inferdx" / "journal.jsonl"
    return [p for p in (own_journal(), site) if p.is_file()]


def read(paths: Iterable[Path] | None = None) -> tuple[list[Entry], list[str]]:
    """``(entries, problems)``. A broken line costs one problem, never the rest; a later entry replaces an earlier id."""
    found: dict[str, Entry] = {}
    problems: list[str] = []
    for path in journals() if paths is None else paths:
        try:
            with path.open("rb") as stream:
                body = stream.read(MAX_BYTES)
        except OSError as error:
            problems.append(f"{path.name}: cannot be read ({error.strerror})")
            continue
        for number, line in enumerate(body.split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                entry = msgspec.json.decode(line, type=Entry)
            except msgspec.DecodeError as error:
                problems.append(f"{path.name}:{number}: not a journal entry ({str(error)[:80]}); line skipped")
                continue
            found[entry.id] = entry
    return list(found.values()), problems


def append(entry: Entry, path: Path | None = None) -> Path:
    """Add an entry to the journal. Raises ``OSError``."""
    target = path or own_journal()
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("ab") as sink:
        sink.write(msgspec.json.encode(entry) + b"\n")
    return target


def features(diagnosis: Diagnosis) -> list[str]:
    """What a diagnosis is found by: outcome, families (leads too), fired rules, and the facts that are true or told."""
    out: dict[str, None] = {f"outcome:{diagnosis.outcome}": None}
    out.update(dict.fromkeys(f"family:{cause.family}" for cause in diagnosis.causes))
    out.update(dict.fromkeys(f"rule:{rule.id}" for rule in diagnosis.rules if rule.state == "fired"))
    cited = {i for rule in diagnosis.rules if rule.state == "fired" for i in rule.evidence}
    for item in diagnosis.evidence:
        if item.id in cited and item.value is not False and item.status == "ok":
            value = f"={item.value}" if isinstance(item.value, str) and len(item.value) < 40 else ""
            out[f"fact:{item.fact}{value}"] = None
    return list(out)


def entry_of(diagnosis: Diagnosis, id: str, line: str, when: str = "", families: Sequence[str] | None = None) -> Entry:
    """A journal entry from a diagnosis. ``families``: what a person confirmed, else the supported causes."""
    named = list(families) if families is not None else [c.family for c in diagnosis.causes if c.verdict == "supported"]
    found = [f for f in features(diagnosis) if not f.startswith("family:")] + [f"family:{f}" for f in named]
    return Entry(id=id, line=line, outcome=diagnosis.outcome, families=named, features=found, when=when)


def _weights(entries: Sequence[Entry]) -> dict[str, float]:
    """Feature → kind weight × inverse document frequency over the journal."""
    seen = Counter(f for entry in entries for f in set(entry.features))
    n = len(entries)
    return {f: _WEIGHT.get(f.partition(":")[0], 1.0) * (math.log((1 + n) / (1 + c)) + 0.5) for f, c in seen.items()}


def nearest(diagnosis: Diagnosis, entries: Sequence[Entry], k: int = 3, floor: float = 0.12) -> list[PastCase]:
    """The ``k`` most similar entries with a similarity of at least ``floor`` (0–1), best first; ties by id."""
    weights = _weights(entries)
    mine = set(features(diagnosis))
    scored: list[PastCase] = []
    for entry in entries:
        theirs = set(entry.features)
        both = sum(weights.get(f, 1.0) for f in mine & theirs)
        either = sum(weights.get(f, _WEIGHT.get(f.partition(":")[0], 1.0)) for f in mine | theirs)
        value = round(both / either, 4) if either else 0.0
        shared_cause = any(f.startswith(("family:", "rule:")) for f in mine & theirs)
        if value >= floor and shared_cause:
            scored.append(PastCase(id=entry.id, line=entry.line, similarity=value))
    return sorted(scored, key=lambda p: (-p.similarity, p.id))[:k]


def recall(diagnosis: Diagnosis, k: int = 3) -> Diagnosis:
    """Fill ``diagnosis.past`` from the journals; with none it stays empty. Never raises for a bad journal."""
    entries, _ = read()
    diagnosis.past = nearest(diagnosis, entries, k)
    return diagnosis
