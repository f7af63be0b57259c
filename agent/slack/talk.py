"""Questions in a thread, answered by the same deterministic answerer as the terminal chat. Nothing here writes or runs."""

from __future__ import annotations

import re
from typing import Any

from agent.chat import replies
from agent.chat.answer import answer, explain, whatif
from agent.chat.intents import intent, is_question, settings_in
from agent.chat.session import Session

_STOP = re.compile(r"^(?:stop(?: listening)?|停止(?:监听)?)[.!。！]?$", re.I)


def talk(session: Session, text: str, model: Any) -> list[str]:
    """The reply to a question about the diagnosis at hand; empty when the text is evidence or there is no diagnosis."""
    line = text.strip()
    d = session.diagnosis
    if not line or len(line) > 300:
        return []
    found = intent(line)
    if found == "help":
        return replies.HELP[session.lang].splitlines()
    if found == "explain":
        term = re.sub(
            r"^(?:what (?:is|does|are)|explain|define|什么是|解释)\s*|\s*(?:mean|是什么)?[?？]?$", "", line, flags=re.I
        )
        return explain(session, term)
    if d is None:
        return []
    if found == "whatif":
        return whatif(session, settings_in(line))
    if found == "evidence":
        named = re.findall(r"\bE\d+\b", line)
        return [row for i in named[:5] for row in replies.evidence(d, i)] or replies.evidence(d)
    table = {
        "why": replies.why,
        "ruled-out": replies.ruled_out,
        "next": replies.next_probe,
        "actions": replies.actions,
        "layers": replies.layers,
    }
    if found in table:
        return table[found](d)
    if found == "status":
        return [d.headline, *d.summary[:3]]
    return answer(session, line, model) if is_question(line) else []


def stops(text: str) -> bool:
    """Whether a mention asks us to stop listening."""
    return bool(_STOP.match(text.strip()))
