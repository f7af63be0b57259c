"""Free questions: looked up in knowledge and the diagnosis; a model, when there is one, picks the tool and words the rest.

Every tool is deterministic and read-only. A model's part is the name of the tool, its argument, and sentences that pass
the same checks as the narrative.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent.chat import replies
from agent.chat.intents import settings_in
from agent.render.terminal import value_text, where
from knowledge.schema import Knowledge

if TYPE_CHECKING:
    from agent.chat.session import Session
    from agent.diagnosis import Diagnosis

MAX_LINES = 24
_QUESTION = re.compile(
    r"\b(?:what|which|why|how|when|where|who|is|are|was|were|do|does|did|can|could|should|would|the|a|an|of|in|on|to|for|my|"
    r"our|it|this|that|there|please|tell|me|about|show)\b|[?？,，。]|什么|为什么|怎么|多少|如何|吗|呢|请|的",
    re.I,
)


def explain(session: Session, term: str) -> list[str]:
    """Knowledge about a term by name; else what a full-text search finds, first hit in full."""
    from agent.explain import explain as by_name

    words = term.lower().strip().split()
    if not words:
        return ["/explain TERM"]
    entries = by_name(session.known, words, session.lang) or by_name(session.known, [_family(session.known, term)])
    if entries:
        return _cut(entries[0].text)
    table = _index(session.known, session.lang)
    hits = table.search(term, 4, ("cause", "page", "metric", "flag", "fact")) or table.search(term, 4)
    if not hits:
        return [f"{term}: nothing in the knowledge base"]
    first = by_name(session.known, [hits[0].kind, hits[0].id], session.lang)
    more = [f"· {hit.kind} {hit.id}: {hit.title}" for hit in hits[1:]]
    return [*(_cut(first[0].text, 12) if first else [f"{hits[0].kind} {hits[0].id}: {hits[0].title}"]), *more]


def _cut(text: str, limit: int = MAX_LINES) -> list[str]:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines if len(lines) <= limit else [*lines[:limit], "…"]


def _family(known: Knowledge, term: str) -> str:
    low = term.lower().strip()
    titles = {card.title.en.lower(): f for f, card in known.families.items()}
    titles |= {card.title.zh: f for f, card in known.families.items() if card.title.zh}
    return titles.get(low, low)


_INDEXES: dict[tuple[str, str], Any] = {}


def _index(known: Knowledge, lang: str) -> Any:
    """The search index, built once per knowledge and language."""
    from agent.search import index

    key = (known.version, lang)
    if key not in _INDEXES:
        _INDEXES[key] = index(known, lang, flags=False)
    return _INDEXES[key]


def whatif(session: Session, changes: dict[str, str]) -> list[str]:
    """Predicted effect of settings from the roofline, with what is missing when it cannot be computed."""
    if not changes:
        return ["/whatif max_num_seqs=64 kv_cache_dtype=fp8 …"]
    from agent.predict import predict

    return predict(session.known, session.diagnosis, changes, session.lang)


def readings(d: Diagnosis, words: str, prefix: str = "") -> list[str]:
    """Readings whose fact name or method holds words of a question, cited ones first."""
    wanted = set(re.findall(r"[a-z0-9]{2,}", _QUESTION.sub(" ", words.lower())))
    cited = {i for c in d.causes for i in c.evidence}
    scored = []
    for e in d.evidence:
        if e.status != "ok" or not e.fact.startswith(prefix):
            continue
        hits = len(wanted & set(re.findall(r"[a-z0-9]{2,}", e.fact.lower())))
        if hits or (prefix and not wanted):
            scored.append((-hits, e.id not in cited, int(e.id[1:]), e))
    best = min((row[0] for row in scored), default=0)
    rows = [row for row in sorted(scored, key=lambda r: r[:3]) if row[0] <= best][:8]
    return [f"{e.id} {e.fact} = {value_text(e.value, e.unit)} — {where(e)}" for *_, e in rows]


def _probe(session: Session, d: Diagnosis, argument: str) -> list[str]:
    """Run a probe that only reads what is at hand; one that touches a server is told, never run."""
    from agent.executables import executables

    env = session.env
    if env is not None:
        ledger = env.ledger(session.values())
        for probe in executables(ledger):
            if probe.id == argument.strip():
                found = probe.run(ledger)
                return [f"{r.fact} = {value_text(r.value, r.unit)} — {r.method}" for r in found[:8]]
    chosen = next((p for p in d.probes if p.id == argument.strip()), None)
    return [chosen.ask, f"  $ {chosen.command}"] if chosen else replies.next_probe(d)


Tool = Callable[["Session", "Diagnosis", str], list[str]]
# name → (what a model is told, the function). The argument is free text and treated as such.
TOOLS: dict[str, tuple[str, Tool]] = {
    "get_evidence": ("one reading by id, e.g. E7", lambda s, d, a: replies.evidence(d, a.strip()[:8])),
    "query_metrics": ("readings by words, e.g. kv usage, ttft", lambda s, d, a: readings(d, a)),
    "explain": ("what a term, cause, metric or flag means", lambda s, d, a: explain(s, a[:60])),
    "roofline": ("how fast it could be", lambda s, d, a: readings(d, a, "roofline.") or readings(d, "", "roofline.")),
    "whatif": ("effect of a setting, e.g. max_num_seqs=64", lambda s, d, a: whatif(s, settings_in(a))),
    "run_probe": ("what to measure next", _probe),
    "why": ("grounds of the verdict", lambda s, d, a: replies.why(d)),
    "ruled_out": ("what it is not", lambda s, d, a: replies.ruled_out(d)),
    "actions": ("how to fix it", lambda s, d, a: replies.actions(d)),
}


def answer(session: Session, question: str, config: Any) -> list[str]:
    """A cited answer. Without a model: the ids named, a cause named, readings that match, else knowledge search."""
    d = session.diagnosis
    if d is None:
        return [replies.none_yet(session.lang)]
    named = re.findall(r"\bE\d{1,6}\b", question)
    if named:
        return [line for i in named[:4] for line in replies.evidence(d, i)]
    if settings_in(question):
        return whatif(session, settings_in(question))
    if config is not None and (said := _with_model(session, d, question, config)):
        return said
    about = [c for c in d.causes if _mentions(question, c.family, c.title)]
    out = [r for r in d.ruled_out if _mentions(question, r.family, r.title)]
    if about:
        return (
            replies.why(d) if about[0] is d.causes[0] else [about[0].title, *about[0].says[:3], *about[0].against[:2]]
        )
    if out:
        return [f"{out[0].title}: {out[0].because} {''.join(f'[{i}]' for i in out[0].evidence)}".rstrip()]
    return (
        _state_of(session, d, question)
        or readings(d, question)
        or explain(session, " ".join(_QUESTION.sub(" ", question).split()) or question)
    )


def _state_of(session: Session, d: Diagnosis, question: str) -> list[str]:
    """A cause that is neither led nor listed: what its rules say, with the evidence that cleared them."""
    from knowledge.schema import both

    out: list[str] = []
    for family, card in session.known.families.items():
        title = both(card.title, session.lang)
        if _mentions(question, family, title):
            rows = [r for r in d.rules if r.family == family]
            counts = {state: sum(r.state == state for r in rows) for state in ("fired", "clear", "missing_input")}
            ids = dict.fromkeys(i for r in rows if r.state == "clear" for i in r.evidence)
            told = ", ".join(f"{n} {state}" for state, n in counts.items() if n)
            out.append(f"{title}: {told or 'no rule applies'} {''.join(f'[{i}]' for i in list(ids)[:4])}".rstrip())
            need = dict.fromkeys(f for r in rows if r.state == "missing_input" for f in r.missing)
            out += [f"  missing: {', '.join(list(need)[:5])}"] if need else []
    return out[:6]


def _mentions(question: str, family: str, title: str) -> bool:
    low = question.lower()
    words = [w for w in family.split("_") if len(w) > 3]
    near = [w for w in words if difflib.get_close_matches(w, re.findall(r"[a-z]{3,}", low), 1, 0.85)]
    return title.lower() in low or (len(words) > 1 and len(near) == len(words))


def tool_schema() -> dict[str, Any]:
    """The form of a tool choice."""
    fields = {"tool": {"type": "string", "enum": list(TOOLS)}, "argument": {"type": "string", "maxLength": 60}}
    return {"type": "object", "additionalProperties": False, "required": list(fields), "properties": fields}


def tool_prompt(question: str) -> str:
    """The request for a tool choice."""
    from agent.untrusted import fence

    menu = "\n".join(f"{name}: {says}" for name, (says, _) in TOOLS.items())
    return f"Tools:\n{menu}\n\n{fence(question, 'question', 400)}\nWhich tool answers it, with which argument?"


def _with_model(session: Session, d: Diagnosis, question: str, config: Any) -> list[str]:
    """Tool choice by schema, the tool's deterministic output, then checked sentences over it. Two calls."""
    from agent.assistant import SYSTEM, check_sentence, form
    from agent.llm import Model, ModelError
    from agent.untrusted import fence

    model = Model(config)
    lines: list[str] = []
    checked: list[str] = []
    try:
        choice = model.data(SYSTEM, tool_prompt(question), tool_schema(), 60)
        tool = TOOLS.get(str(choice.get("tool")))
        lines = tool[1](session, d, str(choice.get("argument", ""))[:200]) if tool else []
        ids = dict.fromkeys(re.findall(r"\bE\d{1,6}\b", " ".join(lines)))
        table = {e.id: e for e in d.evidence if e.status == "ok"}
        menu = "\n".join(
            f"{i} = {table[i].fact}: {value_text(table[i].value, table[i].unit)}" for i in ids if i in table
        )
        if menu:
            first = next(i for i in ids if i in table)
            ask = (
                f"{fence(question, 'question', 400)}\n{fence(menu, 'readings', 1500)}\nAnswer in one or two short "
                f"{'Chinese' if session.lang == 'zh' else 'English'} sentences; write each value as its id in braces, like "
                f"{{{first}}}; no digits of your own."
            )
            said = model.data(SYSTEM, ask, form("sentences", 2, {"type": "string", "maxLength": 300}), 160)
            found = said.get("sentences", [])
            rows = found[:2] if isinstance(found, list) else []
            checked = [c for s in rows if (c := check_sentence(session.known, d, str(s)))]
    except ModelError:
        checked = []
    if not lines:
        return []
    used = model.used
    cost = (
        f"(model: {used.calls} calls, {used.tokens_in + used.tokens_out} tokens, {used.seconds:.1f} s, ${used.usd:.4f})"
    )
    return [*checked, *lines[:MAX_LINES], cost]
