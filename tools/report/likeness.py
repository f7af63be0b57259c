"""How much a text reads like what is known of each family: TF-IDF over the knowledge cards and over ``knowledge/told``.

Nothing is learnt from cases. Tokens are word stems and runs of five letters (which forgive endings, compounds and
misspelling); the weight of a rare token is damped, so that one odd word does not decide. The share is a softmax whose
temperature is one of a plateau (evals/README.md, Not blind); the mean share of the first place is then 0.64 and it is right
in 0.56 (n 158 incidents of ``inc-*``, ``case-02*``, ``case-09[0-3]*`` and the even ids of ``case-10*``): a share is no
probability.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from itertools import islice
from pathlib import Path

from msgspec import Struct

from knowledge import load
from knowledge.cache import compiled, stamp
from knowledge.loader import ROOT, told, yaml_files

TEMPERATURE = 0.01
BENIGN = "benign:"
DAMPED = 0.7
RUN = 5
_WORD = re.compile(r"[a-z][a-z0-9_\-]{2,}|[\u4e00-\u9fff]{2,}")
_END = re.compile(r"(?:ing|ed|es|s)$")


class Index(Struct):
    """``vectors``: family → token → weight, each of length one; ``rarity``: token → inverse document frequency."""

    vectors: dict[str, dict[str, float]]
    rarity: dict[str, float]


def tokens(text: str) -> list[str]:
    """Lower-case word stems, parts of compound names, runs of five letters (marked ``#``), pairs of CJK characters."""
    out: list[str] = []
    for word in _WORD.findall(text.lower()):
        if "\u4e00" <= word[0] <= "\u9fff":
            out.extend(word[i : i + 2] for i in range(len(word) - 1))
            continue
        plain = word.replace("-", "_")
        out.append(_END.sub("", plain))
        if "_" in plain:
            out.extend(piece for piece in plain.split("_") if len(piece) > 2)
        held = f"_{plain}_"
        out.extend("#" + held[i : i + RUN] for i in range(max(1, len(held) - RUN + 1)))
    return out


def _texts() -> dict[str, list[str]]:
    known = load()
    texts: dict[str, list[str]] = {cause.id: [cause.means] * 2 for cause in known.causes.values()}
    for family, card in known.families.items():
        mine = texts.setdefault(family, [])
        mine += [card.title.en, card.title.zh, card.explain.en, card.explain.zh] * 2
        if card.told is not None:
            mine += [card.told.en, card.told.zh] * 3
        for probe in card.probes:
            mine += [probe.ask.en, probe.ask.zh]
        for action in card.actions:
            mine += [action.do.en, action.do.zh, action.command]
    for rule in known.rules.values():
        if rule.family in texts:
            texts[rule.family] += [rule.title.en, rule.title.zh, rule.mechanism.en, rule.mechanism.zh]
        elif rule.outcome != "incident":
            # Benign explanations compete for the words, so that a report of nothing wrong resembles no cause.
            texts[f"{BENIGN}{rule.id}"] = [rule.title.en, rule.title.zh, rule.mechanism.en, rule.mechanism.zh]
    for name, phrases in told().items():
        texts.setdefault(name if name in texts else f"{BENIGN}{name}", []).extend(
            phrase for lang in sorted(phrases) for phrase in phrases[lang]
        )
    return texts


def _build() -> Index:
    counts = {family: Counter(tokens(" . ".join(lines))) for family, lines in _texts().items()}
    seen: Counter[str] = Counter(token for count in counts.values() for token in count)
    rarity = {token: math.log((len(counts) + 1) / (n + 0.5)) ** DAMPED for token, n in seen.items()}
    return Index({family: _unit(count, rarity) for family, count in counts.items()}, rarity)


@lru_cache(maxsize=1)
def index() -> Index:
    """The index of the shipped knowledge, from the cache when nothing changed."""
    kinds = ("rules", "families", "told")
    files = [ROOT / "causes.yaml", *(path for kind in kinds for path in yaml_files(ROOT, kind))]
    return compiled("likeness", stamp(files, [Path(__file__)]), Index, _build)


def _unit(count: Counter[str], rarity: dict[str, float]) -> dict[str, float]:
    vector = {token: (1 + math.log(n)) * rarity[token] for token, n in count.items() if token in rarity}
    size = math.sqrt(sum(x * x for x in vector.values())) or 1.0
    return {token: x / size for token, x in vector.items()}


def _dot(query: dict[str, float], vector: dict[str, float]) -> float:
    total, get = 0.0, vector.get
    for token, x in query.items():
        y = get(token)
        if y is not None:
            total += x * y
    return total


def shares(text: str) -> list[tuple[str, float]]:
    """``(family, share)`` of all families, best first; shares sum to one."""
    return list(_shares(text))


@lru_cache(maxsize=4)
def _shares(text: str) -> tuple[tuple[str, float], ...]:
    """Kept for the text at hand: a diagnosis reads it again when it checks its citations."""
    known = index()
    query = _unit(Counter(tokens(text)), known.rarity)
    scores = {family: _dot(query, vector) for family, vector in known.vectors.items()}
    top = max(scores.values(), default=0.0)
    weights = {family: math.exp((score - top) / TEMPERATURE) for family, score in scores.items()}
    total = sum(weights.values()) or 1.0
    return tuple(sorted(((f, w / total) for f, w in weights.items()), key=lambda row: (-row[1], row[0])))


def weight(line: str, family: str) -> float:
    """How much one line speaks for a family: the sum of the family's weights of its distinct tokens."""
    vector = index().vectors[family]
    # fsum: the order of a set differs between processes, and a last bit would pick another line.
    return math.fsum(vector.get(token, 0.0) for token in set(tokens(line)))


def words(text: str, most: int) -> int:
    """How many words a text has, counted up to ``most``."""
    return sum(1 for _ in islice(_WORD.finditer(text.lower()), most))
