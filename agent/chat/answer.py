"""Free questions: looked up in knowledge and the diagnosis; a model, when there is one, words checked sentences."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agent.chat import replies
from knowledge.schema import both

if TYPE_CHECKING:
    from agent.chat.session import Session

TOOLS = ("get_evidence", "explain", "whatif", "why", "next", "none")


def explain(session: Session, term: str) -> list[str]:
    """Knowledge about a term: family, rule, fact or page, best match first."""
    from agent.search import search

    low = term.lower().strip()
    if not low:
        return ["/explain TERM"]
    for family, card in session.known.families.items():
        if low in (family, card.title.en.lower(), card.title.zh, family.replace("_", " ")):
            return [
                both(card.title, session.lang),
                both(card.explain, session.lang),
                *[f"[K: {c}]" for c in card.cites[:3]],
            ]
    fact = session.known.facts.get(low)
    if fact is not None:
        out = [f"{fact.name} [{fact.unit}]: {both(fact.means, session.lang)}"]
        out += [f"cannot tell: {fact.cannot_tell}"] if fact.cannot_tell else []
        return out + ([f"$ {fact.get.how}"] if fact.get else [])
    hits = search(session.known, term, session.lang, 3)
    return [f"{hit.kind} {hit.id}: {hit.text[:300]}" for hit in hits] or [f"{term}: nothing in the knowledge base"]


def whatif(session: Session, changes: dict[str, str]) -> list[str]:
    """Predicted effect of settings from the roofline, with what is missing when it cannot be computed."""
    if not changes:
        return ["/whatif max_num_seqs=64 kv_cache_dtype=fp8 …"]
    from agent.predict import predict

    return predict(session.known, session.diagnosis, changes, session.lang)


def answer(session: Session, question: str, config: Any) -> list[str]:
    """A cited answer. Without a model: the evidence ids named, else knowledge search, else what would help."""
    d = session.diagnosis
    named = re.findall(r"\bE\d+\b", question)
    if d is not None and named:
        return [line for i in named[:4] for line in replies.evidence(d, i)]
    if config is not None and d is not None:
        said = _with_model(session, question, config)
        if said:
            return said
    terms = re.sub(r"[?？]", "", question)
    found = explain(session, terms)
    if d is not None and found and found[0].endswith("nothing in the knowledge base"):
        return [*found, *replies.why(d)[:4]]
    return found


def _with_model(session: Session, question: str, config: Any) -> list[str]:
    """Tool choice by schema, the tool's deterministic output, then checked sentences over it."""
    from agent.assistant import SYSTEM, check_sentence
    from agent.llm import Model, ModelError
    from agent.untrusted import fence

    d = session.diagnosis
    if d is None:
        return []
    model = Model(config)
    schema = {
        "type": "object",
        "additionalProperties": False,
        "required": ["tool"],
        "properties": {"tool": {"type": "string", "enum": list(TOOLS)}},
    }
    try:
        tool = model.data(SYSTEM, f"{fence(question, 'question', 400)}\nWhich tool answers it?", schema, 40).get("tool")
    except ModelError:
        return []
    lines = {"get_evidence": replies.evidence, "why": replies.why, "next": replies.next_probe}.get(
        str(tool), lambda _: []
    )(d)
    if tool == "explain":
        lines = explain(session, question)
    items = [e for e in d.evidence if e.id in {i for c in d.causes[:2] for i in c.evidence}][:10]
    menu = "\n".join(f"{e.id} = {e.fact}" for e in items)
    ask = f"{fence(question, 'question', 400)}\n{fence(menu, 'evidence ids', 1500)}\nAnswer in one or two sentences; write values as {{E7}}; no digits of your own."
    form = {
        "type": "object",
        "additionalProperties": False,
        "required": ["sentences"],
        "properties": {"sentences": {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 300}}},
    }
    try:
        said = model.data(SYSTEM, ask, form, 200).get("sentences", [])
    except ModelError:
        said = []
    checked = [
        c for s in (said if isinstance(said, list) else [])[:3] if (c := check_sentence(session.known, d, str(s)))
    ]
    return [*checked, *lines[:8]]
