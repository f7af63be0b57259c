"""Which knowledge cards speak of what these words speak of: a lead for ordering, never a proof.

TF-IDF over the family cards alone (titles, explanations, what people say, probes, actions, rule mechanisms); nothing is
learnt from cases. The share is a softmax whose temperature was set so that the mean share of the first place equals how
often it is right (``knowledge/calibration.yaml`` states on which set).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise

from knowledge import load
from tools.contract import Reading, Source
from tools.part import Part

TEMPERATURE = 0.013
BENIGN = "benign:"
MAX_CHARS = 6000
MAX_PARTS = 24
TOP = 6
# A line of complaint resembles many cards by accident; below this many words a share counts in proportion.
ENOUGH = 30
_WORD = re.compile(r"[a-z][a-z_\-]{2,}|[\u4e00-\u9fff]{2,}")
_END = re.compile(r"(?:ing|ed|es|s)$")


def tokens(text: str) -> list[str]:
    """Lower-case word stems, parts of compound names, pairs of CJK characters, and pairs of neighbours."""
    out: list[str] = []
    for word in _WORD.findall(text.lower()):
        if "\u4e00" <= word[0] <= "\u9fff":
            out.extend(word[i : i + 2] for i in range(len(word) - 1))
            continue
        plain = word.replace("-", "_")
        out.append(_END.sub("", plain))
        if "_" in plain:
            out.extend(piece for piece in plain.split("_") if len(piece) > 2)
    return out + [f"{a} {b}" for a, b in pairwise(out)]


@lru_cache(maxsize=1)
def index() -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    """``(family → unit vector, token → inverse document frequency)`` of the shipped cards."""
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
    counts = {family: Counter(tokens(" ".join(lines))) for family, lines in texts.items()}
    seen: Counter[str] = Counter(token for count in counts.values() for token in count)
    rarity = {token: math.log((len(counts) + 1) / (n + 0.5)) for token, n in seen.items()}
    return {family: _unit(count, rarity) for family, count in counts.items()}, rarity


def _unit(count: Counter[str], rarity: dict[str, float]) -> dict[str, float]:
    vector = {token: (1 + math.log(n)) * rarity[token] for token, n in count.items() if token in rarity}
    size = math.sqrt(sum(x * x for x in vector.values())) or 1.0
    return {token: x / size for token, x in vector.items()}


def shares(text: str) -> list[tuple[str, float]]:
    """``(family, share)`` of all families, best first; shares sum to one."""
    vectors, rarity = index()
    query = _unit(Counter(tokens(text)), rarity)
    scores = {family: sum(x * vector.get(t, 0.0) for t, x in query.items()) for family, vector in vectors.items()}
    top = max(scores.values(), default=0.0)
    weights = {family: math.exp((score - top) / TEMPERATURE) for family, score in scores.items()}
    total = sum(weights.values()) or 1.0
    return sorted(((f, w / total) for f, w in weights.items()), key=lambda row: (-row[1], row[0]))


def readings(parts: list[Part]) -> list[Reading]:
    """The best families for the words of all text parts together, each with the line that speaks for it most."""
    lines: list[tuple[str, int, str]] = []
    texts: list[str] = []
    for part in parts[:MAX_PARTS]:
        left = MAX_CHARS
        for number, line in part.lines(limit=400):
            left -= len(line)
            if left < 0:
                break
            lines.append((part.name, number, line[:600]))
            texts.append(line[:600])
    words = "\n".join(texts)
    count = len(_WORD.findall(words.lower()))
    if count < 8:
        return []
    trust = min(1.0, count / ENOUGH)
    vectors, _ = index()
    out: list[Reading] = []
    found = [row for row in shares(words) if not row[0].startswith(BENIGN)]
    for rank, (family, share) in enumerate(found[:TOP], 1):
        ref, number, span = max(lines, key=lambda row: (_weight(row[2], vectors[family]), -len(row[2])))
        out.append(
            Reading(
                fact="words.resemble",
                value=round(share * trust, 4),
                source=Source(kind="words", ref=ref, line=number, span=span.strip()[:200]),
                method=f"share of the likeness to the knowledge card of {family}, place {rank}",
                labels={"family": family, "rank": str(rank)},
                caveats=("likeness of words is a lead, not evidence of a cause",),
            )
        )
    return out


def _weight(line: str, vector: dict[str, float]) -> float:
    # fsum: the order of a set differs between processes, and a last bit would pick another line.
    return math.fsum(vector.get(token, 0.0) for token in set(tokens(line)))
