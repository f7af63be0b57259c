"""Questions about one flag: does this version have it, what does it do, may it be recommended, is it mentioned here."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from knowledge.versions import holds, parse_version
from tools.config.data import Default, Engine, Flag, engine_data, load, standing

_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2212"
_MENTION = re.compile(
    rf"(?<![\w.\-/])(?:[{_DASHES}]{{1,2}}[A-Za-z][A-Za-z0-9_.\-]*"
    r"|(?:VLLM|SGLANG|NCCL|CUDA|OMP|TORCH|GLOO)_[A-Z0-9_]+"
    r"|[a-z][a-z0-9]*(?:[-_][a-z0-9]+)+)"
)
_NOT_FLAGS = {"e-g", "i-e"}


class Mention(NamedTuple):
    """A flag or variable named in prose. ``span`` is verbatim, ``start`` its offset in the text."""

    flag: str
    span: str
    start: int
    engine: str


class FlagInfo(Struct, omit_defaults=True, kw_only=True):
    """Everything known about one flag of one engine, for ``inferdx explain flag``."""

    name: str
    engine: str
    fact: str = ""
    aliases: list[str] = []
    means_en: str = ""
    means_zh: str = ""
    since: str = ""
    gone: str = ""
    history: str = ""
    defaults: list[str] = []
    notes: list[str] = []
    successor: str = ""
    instead: str = ""


def plain(flag: str) -> str:
    """``--Max_Num-Seqs`` or ``—max-num-seqs`` → ``max-num-seqs``. Short options keep their case (``-O``)."""
    name = flag.strip().lstrip(_DASHES).replace("_", "-")
    return name if len(name) <= 2 else name.lower()


def canonical(engine: Engine, flag: str) -> str:
    """The name under which the flag is described: aliases and ``no-`` forms resolved, dotted parts cut."""
    name = plain(flag)
    head, dot, _ = name.partition(".")
    if dot:
        name = head
    if name in engine.alias:
        return engine.alias[name]
    if name in engine.flags or name in engine.history:
        return name
    if name.startswith("no-"):
        rest = name[3:]
        rest = engine.alias.get(rest, rest)
        if rest in engine.flags or rest in engine.history:
            return rest
    return name


def abbreviation(engine: Engine, name: str) -> str:
    """The one flag that starts with ``name``, as argparse accepts it on a command line; empty when none or several."""
    if len(name) < 5:
        return ""
    hits = {canonical(engine, other) for other in engine.history if other.startswith(name)}
    return hits.pop() if len(hits) == 1 else ""


def mask_of(engine: Engine, name: str) -> int:
    """Compared releases that have the flag under its own name or an alias; 0 when none has."""
    mask = engine.history.get(name, 0)
    flag = engine.flags.get(name)
    for other in flag.aliases if flag else ():
        mask |= engine.history.get(other, 0)
    return mask


def exists_in(engine: Engine, name: str, version: str, mask: int | None = None) -> bool | None:
    """Whether a canonical flag exists in a version; ``None`` when the data cannot tell."""
    flag = engine.flags.get(name)
    if flag and flag.never:
        return False
    have = mask_of(engine, name) if mask is None else mask
    if not engine.history:
        return True if flag else None
    if not have:
        return False
    parsed = parse_version(version) if version else None
    if parsed is None:
        return True if have == (1 << len(engine.releases)) - 1 else None
    if flag:
        if flag.gone and parsed >= (parse_version(flag.gone) or ()):
            return False
        if flag.since and parsed < (parse_version(flag.since) or ()):
            return False
    at = standing(engine, version)
    if at == 0:
        return False if not (have >> (len(engine.releases) - 1)) & 1 else None
    if have & at == at:
        return True
    if have & at == 0:
        return False
    return _between(flag, parsed)


def _between(flag: Flag | None, parsed: tuple[int, ...]) -> bool | None:
    """The version lies between a release with the flag and one without: only exact bounds can tell."""
    if flag is None:
        return None
    if flag.since and flag.gone:
        return True
    if flag.since and parsed >= (parse_version(flag.since) or ()):
        return True
    if flag.gone and parsed < (parse_version(flag.gone) or ()):
        return True
    return None


def flag_exists(flag: str, engine: str, version: str = "") -> bool | None:
    """Whether ``flag`` exists in ``engine`` at ``version``; ``None`` when it depends on an unknown version."""
    data = engine_data(engine)
    return exists_in(data, canonical(data, flag), version)


def advice_valid(flag: str, engine: str, version: str = "") -> bool | None:
    """Whether recommending ``flag`` makes sense: it exists, is not ignored and does not stop the start.

    ``None`` when the version is unknown or newer than the data, and the answer depends on it.
    """
    data = engine_data(engine)
    name = canonical(data, flag)
    exists = exists_in(data, name, version)
    known = data.flags.get(name)
    if exists is False or known is None:
        return exists
    worst: bool | None = exists
    for item in known.ignored:
        if item.when_given:
            continue
        state = holds(item.versions, version or None)
        if state and not item.generation:
            return False
        if state and item.generation == "V1" and holds(">=0.11", version or None):
            return False
        if state is None or (state and item.generation):
            worst = None
    for problem in known.errors:
        state = holds(problem.versions, version or None)
        if state:
            return False
        if state is None:
            worst = None
    return worst


def spans_text(engine: Engine, mask: int) -> str:
    """``0.7.3–0.26, 0.30`` for a mask; an open end means: up to the newest compared release."""
    out: list[str] = []
    index, size = 0, len(engine.releases)
    while index < size:
        if not mask >> index & 1:
            index += 1
            continue
        last = index
        while last + 1 < size and mask >> (last + 1) & 1:
            last += 1
        first = engine.releases[index]
        out.append(f"{first}+" if last == size - 1 else first if last == index else f"{first}–{engine.releases[last]}")
        index = last + 1
    return ", ".join(out)


def conditions_text(default: Default) -> str:
    """The conditions of a default as one phrase."""
    parts = [
        f"{engine_word} {value}"
        for engine_word, value in (
            ("versions", default.versions),
            ("context", default.context),
            ("device", default.device),
            ("engine", default.generation),
            ("GPU memory GiB", default.gpu_gib),
            ("GPU name", default.gpu.replace("|", " or ")),
            ("GPU other than", default.gpu_not.replace("|", " or ")),
            ("tensor parallel", default.tp),
        )
        if value
    ]
    parts += [f"with {name}={value}" for name, value in default.given.items()]
    if default.per:
        parts.append("times " + "×".join(default.per))
    return ", ".join(parts) or "always"


def _info(engine: Engine, name: str) -> FlagInfo:
    flag = engine.flags.get(name)
    mask = mask_of(engine, name)
    info = FlagInfo(name=name, engine=engine.name, history=spans_text(engine, mask))
    if mask and not mask & 1:
        info.since = engine.releases[(mask & -mask).bit_length() - 1]
    if mask and not mask >> (len(engine.releases) - 1) & 1:
        info.gone = engine.releases[mask.bit_length()]
    if flag is None:
        return info
    info.fact, info.aliases, info.successor, info.instead = flag.fact, flag.aliases, flag.successor, flag.instead
    info.means_en, info.means_zh = flag.means.en, flag.means.zh
    info.since, info.gone = flag.since or info.since, flag.gone or info.gone
    for item in flag.defaults:
        value = item.expr.replace("_", " ") if item.expr else item.value
        source = f" [{item.source}]" if item.source else ""
        info.defaults.append(f"{value}: {conditions_text(item)}{f' ({item.why})' if item.why else ''}{source}")
    notes = [
        f"ignored in {i.versions or 'all versions'}{f' ({i.generation})' if i.generation else ''}: {i.why}"
        for i in flag.ignored
    ]
    notes += [f"falls back to V0 in {o.versions}" for o in flag.forces_v0]
    notes += [f"stops the start in {o.versions}: {o.why}" for o in flag.errors]
    if flag.slows:
        notes.append(f"slows serving: {flag.slows.why}")
    if flag.caveat:
        notes.append(flag.caveat)
    if flag.never:
        notes.append("never existed")
    info.notes = notes
    return info


def describe_flag(flag: str, engine: str = "") -> FlagInfo | None:
    """All that is known of a flag; without ``engine`` the first of vLLM, SGLang and the others that knows it."""
    names = [engine] if engine else ["vllm", "sglang", *sorted(set(load().engines) - {"vllm", "sglang"})]
    for candidate in names:
        data = engine_data(candidate)
        name = canonical(data, flag)
        if name in data.flags or name in data.history:
            return _info(data, name)
    return None


def similar_flags(flag: str, engine: str, limit: int = 3) -> list[str]:
    """Known flags whose names look like ``flag``, best first."""
    import difflib

    data = engine_data(engine)
    return difflib.get_close_matches(plain(flag)[:64], {*data.flags, *data.history}, n=limit, cutoff=0.72)


@lru_cache(maxsize=1)
def _known_names() -> dict[str, str]:
    out: dict[str, str] = {}
    for engine in ("router", "llama_cpp", "tensorrt_llm", "tgi", "sglang", "vllm"):
        data = engine_data(engine)
        for name in (*data.history, *data.flags, *data.alias):
            out[name] = engine
    return out


def engine_of(flag: str) -> str:
    """The engine that knows a flag (vLLM first); empty when none does."""
    name = plain(flag).partition(".")[0]
    known = _known_names()
    return known.get(name) or (known.get(name[3:], "") if name.startswith("no-") else "")


def flags_mentioned(text: str) -> list[Mention]:
    """Flags and engine variables named in prose, in order; linear in the text.

    A word counts with its dashes (``--max-num-seqs``), or bare when it has at least two parts and an engine knows it
    (``max_num_partial_prefills``). Nothing is said about whether the flag is set: only that it is talked about.
    """
    out: list[Mention] = []
    known = _known_names()
    variables = load().env
    history = engine_data("vllm").env_history
    for found in _MENTION.finditer(text):
        span = found[0].rstrip(".-_")
        if span[:1].isupper():
            if span in variables or span in history:
                out.append(Mention(span, span, found.start(), "vllm" if span.startswith("VLLM_") else ""))
            continue
        dashed = span[0] in _DASHES
        name = plain(span).partition(".")[0]
        base = name if name in known else name[3:] if name.startswith("no-") and name[3:] in known else ""
        if base and (dashed or ("-" in base and base not in _NOT_FLAGS)):
            data = engine_data(known[base])
            out.append(Mention(canonical(data, base), span, found.start(), known[base]))
        elif len(name) > 3 and (span.startswith("--") or (span[0] in "\u2013\u2014" and "-" in name)):
            out.append(Mention(name, span, found.start(), ""))
    return out
