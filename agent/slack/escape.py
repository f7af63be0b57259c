"""Text on its way to Slack and back: no log line can mention anybody, link, or break out of a code span."""

from __future__ import annotations

import html
import re

from agent.untrusted import clean
from tools.mask import Masker

_KEEP_SECRET = ("<key-", "<email-", "<id-")
_EDGE = re.compile(r"(?<![A-Za-z0-9])[*_~`]|[*_~`](?![A-Za-z0-9])")
_AT = re.compile(r"@(?=[A-Za-z])")
_LINK = re.compile(r"<(?:[^<>|]{1,3000})(?:\|([^<>]{0,3000}))?>")


def safe(text: str, cap: int = 3000) -> str:
    """Cleaned and with keys, e-mail addresses and device ids masked; replica names and addresses stay: people need them."""
    masker = Masker()
    masked = masker.mask(clean(text, cap))
    shown = Masker({k: v for k, v in masker.table.items() if not k.startswith(_KEEP_SECRET)})
    return shown.unmask(masked)


def mrkdwn(text: str, cap: int = 2900) -> str:
    """One piece of untrusted text for a ``mrkdwn`` field: control characters of Slack escaped, formatting inert.

    ``cap`` counts characters after escaping: what is cut is cut whole, never inside an entity.
    """
    flat = _EDGE.sub(lambda m: m.group(0) + "\u200b", safe(text)).replace("`", "ʼ")
    flat = _AT.sub("@\u200b", flat).replace("://", ":\u200b//")
    out: list[str] = []
    size = 0
    for char in flat:
        piece = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}.get(char, char)
        if size + len(piece) > cap - 1:
            return "".join(out) + "…"
        out.append(piece)
        size += len(piece)
    return "".join(out)


def code(text: str, cap: int = 1000) -> str:
    """Inline code on one line, impossible to leave. Slack still reads ``<!…>`` inside code, so it is escaped too."""
    flat = " ".join(safe(text, cap).split()).replace("`", "ʼ")
    body = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"`{body or ' '}`"


def plain(text: str, cap: int = 250) -> str:
    """Text for ``plain_text`` fields (headers, options): Slack does not parse them; only cleaned and cut."""
    flat = " ".join(safe(text, cap * 4).split())
    return flat if len(flat) <= cap else flat[: cap - 1] + "…"


def unslack(text: str, bot: str = "") -> str:
    """What a person typed, as plain text: mentions of the bot removed, links and entities undone."""
    if bot:
        text = re.sub(rf"<@{re.escape(bot)}(?:\|[^<>]{{0,80}})?>", " ", text)
    text = _LINK.sub(lambda m: m.group(1) or m.group(0)[1:-1].split("|")[0], text)
    return html.unescape(text).strip()
