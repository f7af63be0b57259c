"""Full-text search over everything that is known, English and Chinese, by BM25. No index on disk, no dependency.

Latin words count whole and by their parts (``max_num_seqs`` also as ``max``, ``num``, ``seqs``); Chinese counts by pairs
of neighbouring characters, so no word list is needed.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct, field

from knowledge.logic import text_of
from knowledge.schema import Family, Knowledge, Rule, Text, both

_WORD = re.compile(r"[a-z0-9][a-z0-9_.:\-]*|[\u4e00-\u9fff]+")
_SPLIT = re.compile(r"[_.:\-]+")
_K1, _B = 1.2, 0.6
# An explanation is more often looked for than one reading.
_WEIGHT = {"page": 1.3, "cause": 1.3, "rule": 1.1, "fact": 0.8, "signature": 0.8}


class Document(NamedTuple):
    """One thing that can be found. ``head`` weighs more than ``body``."""

    kind: str
    id: str
    title: str
    head: str
    body: str


class Hit(NamedTuple):
    """A found document and its score; only the order of scores means something."""

    kind: str
    id: str
    title: str
    score: float


def words(text: str) -> Iterator[str]:
    """The tokens of a text."""
    for found in _WORD.findall(text.lower()):
        if "\u4e00" <= found[0] <= "\u9fff":
            if len(found) == 1:
                yield found
            yield from (found[at : at + 2] for at in range(len(found) - 1))
            continue
        word = found.strip("._:-")
        if not word:
            continue
        yield _stem(word)
        parts = [part for part in _SPLIT.split(word) if part]
        if len(parts) > 1:
            yield from map(_stem, parts)


def _stem(word: str) -> str:
    """Plural and ``-ing`` endings off, for words long enough to spare them."""
    if len(word) > 5 and word.endswith("ing"):
        return word[:-3]
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


class Index(Struct, kw_only=True):
    """Token counts of all documents."""

    documents: list[Document] = field(default_factory=list)
    counts: list[Counter[str]] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    spread: Counter[str] = field(default_factory=Counter)

    def add(self, document: Document) -> None:
        """Count one document; its head counts three times."""
        counts: Counter[str] = Counter(words(document.body))
        for word in words(f"{document.id} {document.head}"):
            counts[word] += 3
        self.documents.append(document)
        self.counts.append(counts)
        self.lengths.append(sum(counts.values()))
        self.spread.update(counts.keys())

    def search(self, query: str, limit: int = 10, kinds: Iterable[str] = ()) -> list[Hit]:
        """Best documents first; equal scores by kind and id. Empty when no word of the query is known."""
        wanted = Counter(words(query))
        mean = sum(self.lengths) / max(len(self.lengths), 1)
        allowed = set(kinds)
        hits: list[Hit] = []
        for document, counts, length in zip(self.documents, self.counts, self.lengths, strict=True):
            if allowed and document.kind not in allowed:
                continue
            score = sum(self._weight(word, counts[word], length / mean) for word in wanted if word in counts)
            if score > 0:
                covered = sum(1 for word in wanted if word in counts) / len(wanted)
                weight = _WEIGHT.get(document.kind, 1.0) * (0.5 + covered)
                hits.append(Hit(document.kind, document.id, document.title, score * weight))
        return sorted(hits, key=lambda hit: (-round(hit.score, 9), hit.kind, hit.id))[:limit]

    def _weight(self, word: str, count: int, relative: float) -> float:
        total = len(self.documents)
        rare = math.log(1 + (total - self.spread[word] + 0.5) / (self.spread[word] + 0.5))
        return rare * count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * relative))


def index(known: Knowledge, lang: str = "en", *, flags: bool = True) -> Index:
    """Index of causes, rules, facts, pages, signatures, metrics and flags; titles in ``lang``, text in both."""
    out = Index()
    for document in _documents(known, lang, flags):
        out.add(document)
    return out


def _texts(*items: Text | str | None) -> str:
    return " ".join(x if isinstance(x, str) else f"{x.en} {x.zh}" for x in items if x is not None)


def _documents(known: Knowledge, lang: str, flags: bool) -> Iterator[Document]:
    for key, cause in known.causes.items():
        card = known.families.get(key)
        title = both(card.title, lang) if card else cause.means
        yield Document("cause", key, title, _texts(card.title if card else ""), f"{cause.means} {_card(card)}")
    for key, rule in known.rules.items():
        yield Document("rule", key, both(rule.title, lang), _texts(rule.title), _rule(rule))
    for key, fact in known.facts.items():
        body = f"{fact.unit} {fact.cannot_tell} {fact.get.how if fact.get else ''}"
        yield Document("fact", key, both(fact.means, lang), _texts(fact.means), body)
    for key, page in known.pages.items():
        head = f"{_texts(page.title)} {' '.join(page.keywords)}"
        yield Document("page", key, both(page.title, lang), head, _texts(page.body))
    for key, signature in known.signatures.items():
        body = f"{signature.fact} {' '.join(signature.need)} {signature.does_not_prove}"
        yield Document("signature", key, signature.proves or signature.fact, signature.proves, body)
    yield from _metrics(lang)
    if flags:
        yield from _flags(lang)


def _card(card: Family | None) -> str:
    if card is None:
        return ""
    parts = [_texts(card.explain, card.told), *(_texts(twin.says) for twin in card.look_alikes)]
    parts += [_texts(r.says) for r in card.refuted_by]
    parts += [f"{_texts(a.do, a.gain, a.cost)} {a.flag} {a.command}" for a in card.actions]
    parts += [_texts(p.ask) for p in card.probes] + [_texts(x) for x in card.will_not_help]
    return " ".join(parts)


def _rule(rule: Rule) -> str:
    parts = [_texts(rule.mechanism), text_of(rule.when), rule.family]
    parts += [_texts(sign.says) for sign in (*rule.supports, *rule.against)]
    return " ".join(parts)


def _metrics(lang: str) -> Iterator[Document]:
    from knowledge.catalogue import catalogue

    for key, metric in catalogue().items():
        head = f"{_texts(metric.means)} {' '.join(metric.was)} {metric.now}"
        yield Document("metric", key, both(metric.means, lang), head, _texts(metric.cannot_tell, metric.needs))


def _flags(lang: str) -> Iterator[Document]:
    from tools.config.data import load

    for name, engine in load().engines.items():
        for key, flag in engine.flags.items():
            yield Document(
                "flag", f"{name}:{key}", both(flag.means, lang), _texts(flag.means), f"{flag.fact} {flag.instead}"
            )
