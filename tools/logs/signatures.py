"""The matching engine for text signatures (``knowledge/signatures``): literal pre-filter, then one pattern per hit.

Used on log lines, where the same kinds of line come again and again, and on prose. A needle is compared without its
digits on text without digits, so the pre-filter's verdict holds for all lines of one template.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from knowledge.schema import FactDef, Knowledge, Signature
from knowledge.versions import holds, parse_version
from tools.contract import Reading, Source
from tools.logs.dist import Dist
from tools.logs.stats import number

_DIGITS = str.maketrans("", "", "0123456789")
_ORDER = {"debug": 0, "info": 1, "warning": 2, "error": 3, "critical": 4}
_CLAUSE = re.compile(r"[.;,!?:()\n。；，！？：（）]|\b(?:but|although|though|however|while)\b|但|却|不过")
_NEGATION = re.compile(
    r"(?i)\b(?:no|not|never|without|none|neither|nor|isn't|wasn't|aren't|don't|doesn't|didn't|cannot|can't|zero|free of)\b"
    r"|没有|沒有|未|无|無|不|零"
)
_BOUND = re.compile(r">=\s*v?(\d[\d.]*)")
_WORD = re.compile(r"[a-z]{3,}")
MAX_WORDS = 20000
SPAN = 300
MAX_PROCESSES = 64
MAX_TEXTS = 20


def fold(text: str) -> str:
    """The form that needles are looked up in: lower case, no digits."""
    return text.lower().translate(_DIGITS)


class Hit(NamedTuple):
    """A signature found in a text: its value and where the words stand."""

    signature: Signature
    value: Any
    start: int
    end: int
    negated: bool = False


class _Item(NamedTuple):
    signature: Signature
    needles: tuple[str, ...]
    kind: str
    level: int


class Matcher:
    """Signatures of one kind of text. Patterns are compiled when first needed; ``problems``: those that cannot be.

    The pre-filter looks at the words of a text: a needle can only occur where its longest word is part of some word.
    Anchors are looked up by their first three letters, and what a word can mean is remembered.
    """

    def __init__(self, known: Knowledge, where: str = "log") -> None:
        self.problems: list[str] = []
        self.facts: dict[str, FactDef] = known.facts
        self._items: list[_Item] = []
        self._patterns: dict[int, re.Pattern[str] | None] = {}
        for signature in known.signatures.values():
            if where in signature.where:
                definition = known.facts.get(signature.fact)
                kind = definition.type if definition else "bool"
                needles = tuple(fold(needle) for needle in signature.need)
                level = _ORDER.get(signature.level, 0) if signature.level else 0
                self._items.append(_Item(signature, needles, kind, level))
        anchors: dict[str, list[int]] = {}
        free: list[int] = []
        for index, item in enumerate(self._items):
            words = [max(_WORD.findall(needle), key=len, default="") for needle in item.needles]
            if not words or not all(words):
                free.append(index)
            else:
                for word in words:
                    anchors.setdefault(word, []).append(index)
        self._free = tuple(free)
        self._starts: dict[str, list[tuple[str, list[int]]]] = {}
        for anchor, ids in anchors.items():
            self._starts.setdefault(anchor[:3], []).append((anchor, ids))
        self._words: dict[str, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return len(self._items)

    def _means(self, word: str) -> tuple[int, ...]:
        starts = self._starts
        found: set[int] = set()
        for at in range(len(word) - 2):
            for anchor, ids in starts.get(word[at : at + 3], ()):
                if word.startswith(anchor, at):
                    found.update(ids)
        means = tuple(found)
        if len(self._words) < MAX_WORDS:
            self._words[word] = means
        return means

    def candidates(self, folded: str) -> tuple[int, ...]:
        """Which signatures could match a text, by its :func:`fold`\\ ed form."""
        known = self._words
        found: set[int] = set()
        for word in set(_WORD.findall(folded)):
            means = known.get(word)
            if means is None:
                means = self._means(word)
            if means:
                found.update(means)
        if not found:
            return self._free
        items = self._items
        sure = {i for i in found if any(needle in folded for needle in items[i].needles)}
        return tuple(sorted(sure.union(self._free))) if sure else self._free

    def _pattern(self, index: int) -> re.Pattern[str] | None:
        if index not in self._patterns:
            signature = self._items[index].signature
            try:
                self._patterns[index] = re.compile(signature.pattern, 0 if signature.case else re.IGNORECASE)
            except re.error as error:
                self._patterns[index] = None
                self.problems.append(f"{signature.id}: {error}")
        return self._patterns[index]

    def hits(self, text: str, candidates: Iterable[int], *, level: str = "") -> Iterator[Hit]:
        """First match of each candidate in one line."""
        rank = _ORDER.get(level, 9) if level else 9
        for index in candidates:
            item = self._items[index]
            if rank < item.level:
                continue
            pattern = self._pattern(index)
            found = pattern.search(text) if pattern else None
            if found:
                value = captured(item.signature, item.kind, found)
                if value is not None:
                    yield Hit(item.signature, value, found.start(), found.end())

    def scan(self, text: str) -> list[Hit]:
        """All matches in prose, in order; a negation in the same clause flips a ``negatable`` signature."""
        out: list[Hit] = []
        for index in self.candidates(fold(text)):
            item = self._items[index]
            pattern = self._pattern(index)
            for found in pattern.finditer(text) if pattern else ():
                value = captured(item.signature, item.kind, found)
                if value is None:
                    continue
                negated = item.signature.negatable and negation(text, found.start(), found.end())
                if negated:
                    value = not value if isinstance(value, bool) else None
                if value is not None:
                    out.append(Hit(item.signature, value, found.start(), found.end(), negated))
        return sorted(out, key=lambda hit: (hit.start, hit.signature.id))


def captured(signature: Signature, kind: str, found: re.Match[str]) -> Any:
    """The value of a match: what the signature's group holds, as the fact's type (``kind``); ``None`` when it says none."""
    if not signature.group:
        return signature.value
    try:
        raw = found[signature.group]
    except IndexError:
        return None
    if raw is None:
        return None if signature.value is True else signature.value  # what the group stands for is not printed
    raw = raw.strip()
    if kind == "number":
        value = number(raw)
        return None if value is None else value * signature.scale
    if kind == "list":
        parts = [part.strip(" '\"[](){}") for part in raw.split(",")]
        return [_plain(part) for part in parts if part][:64]
    if kind == "bool":
        return raw.lower() not in ("false", "disabled", "off", "no", "0", "none")
    return raw[:SPAN]


def _plain(word: str) -> str | int:
    return int(word) if word.isdigit() and len(word) < 10 else word


def negation(text: str, start: int, end: int) -> bool:
    """Whether a negation word stands in the clause around ``text[start:end]`` (at most 60 characters each way)."""
    left = max(0, start - 60)
    for found in _CLAUSE.finditer(text, left, start):
        left = found.end()
    stop = _CLAUSE.search(text, end, min(len(text), end + 30))
    right = stop.start() if stop else min(len(text), end + 30)
    return bool(_NEGATION.search(text, left, start) or _NEGATION.search(text, end, right))


class _Tally:
    """All hits of one signature in one phase."""

    __slots__ = ("count", "last_line", "line", "numbers", "processes", "signature", "span", "texts", "time")

    def __init__(self, signature: Signature, line: int, span: str, time: float | None) -> None:
        self.signature, self.line, self.span, self.time = signature, line, span, time
        self.count, self.last_line = 0, line
        self.processes: set[str] = set()
        self.numbers: dict[str, Dist] = {}
        self.texts: dict[str | int, tuple[int, int, str]] = {}


class Tallies:
    """Hits of a whole file in bounded memory, and the readings they give."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._by_key: dict[tuple[str, str], _Tally] = {}

    def add(self, hit: Hit, text: str, line: int, *, process: str, phase: str, time: float | None) -> None:
        """One hit on one line; ``process`` is the printed tag with its rank."""
        key = (hit.signature.id, phase)
        tally = self._by_key.get(key)
        if tally is None:
            span = text[max(0, hit.start - 40) : hit.end + 200][:SPAN].strip()
            tally = self._by_key[key] = _Tally(hit.signature, line, span, time)
        tally.count += 1
        tally.last_line = line
        if process and len(tally.processes) < MAX_PROCESSES:
            tally.processes.add(process)
        value = hit.value
        if isinstance(value, (int, float)) and not isinstance(value, bool) and hit.signature.group:
            if process in tally.numbers or len(tally.numbers) < MAX_PROCESSES:
                tally.numbers.setdefault(process, Dist()).add(float(value))
        elif isinstance(value, (str, list)):
            for item in [value] if isinstance(value, str) else value:
                seen = tally.texts.get(item)
                if seen:
                    tally.texts[item] = (seen[0] + 1, *seen[1:])
                elif len(tally.texts) < MAX_TEXTS:
                    tally.texts[item] = (1, line, text[max(0, hit.start - 40) : hit.end + 200][:SPAN].strip())

    def last_line(self, fact: str) -> int:
        """Last line that a signature of this fact matched, 0 for none."""
        return max((t.last_line for t in self._by_key.values() if t.signature.fact == fact), default=0)

    def signatures(self) -> set[str]:
        """Ids of the signatures that were hit."""
        return {key[0] for key in self._by_key}

    def numbers_of(self, fact: str) -> Iterator[tuple[str, dict[str, float], int]]:
        """Last number per process of a fact's signatures: signature id, values, first line."""
        for tally in self._by_key.values():
            if tally.signature.fact == fact and tally.numbers:
                yield tally.signature.id, {name: dist.last for name, dist in tally.numbers.items()}, tally.line

    def lower_bound(self, engine: str) -> tuple[str, int] | None:
        """The newest version that some line needs at least, with that line; ``None`` without a bounded signature."""
        best: tuple[tuple[int, ...], str, int] | None = None
        for tally in self._by_key.values():
            found = _BOUND.search(tally.signature.versions.get(engine, ""))
            parsed = parse_version(found[1]) if found else None
            if found and parsed and (best is None or parsed > best[0]):
                best = (parsed, found[1], tally.line)
        return (best[1], best[2]) if best else None

    def readings(self, ref: str, engine: str, version: str, origin: float | None) -> Iterator[Reading]:
        """One reading per signature and phase (per process for numbers). A version that contradicts is a caveat."""
        for (_, phase), tally in sorted(self._by_key.items(), key=lambda item: (item[1].line, item[0])):
            spec = tally.signature.versions.get(engine, "") if engine else ""
            caveats = self._caveats(tally.signature, engine, spec, version)
            labels = {"phase": phase} if phase else {}
            many = f"{len(tally.processes)} processes" if len(tally.processes) > 1 else ""
            how = f"signature {tally.signature.id}: {tally.count} line{'s' if tally.count > 1 else ''}"
            how += f" from {many}" if many else ""
            window = (
                (tally.time - origin, tally.time - origin) if tally.time is not None and origin is not None else None
            )
            source = Source(kind="file", ref=ref, line=tally.line, span=tally.span)
            yield from self._emit(tally, source, how, labels, caveats, window)

    def _emit(
        self,
        tally: _Tally,
        source: Source,
        how: str,
        labels: dict[str, str],
        caveats: tuple[str, ...],
        window: tuple[float, float] | None,
    ) -> Iterator[Reading]:
        fact = tally.signature.fact
        definition = self._matcher.facts.get(fact)
        kind = definition.type if definition else "bool"

        def make(value: Any, where: Source, method: str, **more: str) -> Reading:
            return Reading(
                fact=fact,
                value=value,
                source=where,
                method=method,
                labels={**labels, **more},
                caveats=caveats,
                window=window,
            )

        if tally.numbers:
            combine = definition.combine if definition else "max"
            for process, dist in tally.numbers.items():
                value = pick(dist, combine)
                spread = f"; {combine} of values {dist.min:g} to {dist.max:g}" if dist.min != dist.max else ""
                yield make(value, source, how + spread, **({"process": process} if process else {}))
        elif tally.texts and kind == "list":
            yield make(list(tally.texts), source, how)
        elif tally.texts:
            for text, (count, line, span) in list(tally.texts.items())[:8]:
                where = Source(kind="file", ref=source.ref, line=line, span=span)
                yield make(text, where, f"signature {tally.signature.id}: {count} lines")
        elif kind == "number" and isinstance(tally.signature.value, bool):
            yield make(tally.count, source, how)
        else:
            yield make(tally.signature.value, source, how)

    @staticmethod
    def _caveats(signature: Signature, engine: str, spec: str, version: str) -> tuple[str, ...]:
        notes: list[str] = []
        if signature.does_not_prove:
            notes.append(f"does not prove: {signature.does_not_prove}")
        if spec:
            fits = holds(spec, version or None)
            if fits is False:
                notes.append(f"this line belongs to {engine} {spec}, but the log names version {version}")
            elif fits is None:
                notes.append(f"known of {engine} {spec}; the version is not in this log")
        return tuple(notes)


def pick(dist: Dist, combine: str) -> float:
    """The one value of a fact within one process, by the vocabulary's ``combine``."""
    value = {"min": dist.min, "sum": dist.total, "mean": dist.mean if dist.n else 0.0, "max": dist.max}.get(
        combine, dist.last
    )
    return int(value) if value.is_integer() and abs(value) < 1e15 else round(value, 6)
