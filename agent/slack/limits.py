"""Slack's documented limits, and the one function that makes a list of blocks fit them."""

from __future__ import annotations

from typing import Any

Block = dict[str, Any]

SECTION = 3000
HEADER = 150
BLOCKS = 50
BUDGET = 10_000  # characters of all blocks: messages fail near 13,200
BUTTON_TEXT = 75
VALUE = 2000
FALLBACK = 300  # top-level text, shown in notifications


def size(block: Block) -> int:
    """Characters of all texts of a block."""
    total = 0
    stack: list[Any] = [block]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            total += sum(len(v) for k, v in item.items() if isinstance(v, str) and k in ("text", "value", "alt_text"))
            stack.extend(v for v in item.values() if isinstance(v, (dict, list)))
        elif isinstance(item, list):
            stack.extend(item)
    return total


def fit(blocks: list[Block], keep_last: int = 0) -> list[Block]:
    """Blocks inside count and budget: whole blocks are dropped before the last ``keep_last`` (the buttons)."""
    tail = blocks[len(blocks) - keep_last :] if keep_last else []
    room = BUDGET - sum(size(b) for b in tail)
    out: list[Block] = []
    for block in blocks[: len(blocks) - keep_last]:
        need = size(block)
        if len(out) + len(tail) + 1 > BLOCKS - 1 or need > room - 100:
            out.append({"type": "context", "elements": [{"type": "mrkdwn", "text": "… the whole report is attached."}]})
            break
        out.append(block)
        room -= need
    return out + tail


def section(text: str) -> Block:
    """A section of already escaped mrkdwn; ``verbatim`` keeps Slack from linking names and addresses in it."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": cut(text, SECTION), "verbatim": True}}


def context(text: str) -> Block:
    """Small print."""
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": cut(text, 2000), "verbatim": True}]}


def cut(text: str, cap: int) -> str:
    """At most ``cap`` characters, cut at a line end where one is near, never inside an escaped character."""
    if len(text) <= cap:
        return text
    head = text[: cap - 1]
    amp = head.rfind("&")
    if amp >= 0 and ";" not in head[amp:] and len(head) - amp < 6:
        head = head[:amp]
    line = head.rfind("\n")
    if line > cap * 0.7:
        head = head[:line]
    return head + "…" if head.count("`") % 2 == 0 else head + "`…"


def button(action: str, text: str, value: str, style: str = "") -> Block:
    """A button that carries an opaque id."""
    out: Block = {
        "type": "button",
        "action_id": action,
        "text": {"type": "plain_text", "text": text[:BUTTON_TEXT]},
        "value": value[:VALUE],
    }
    if style:
        out["style"] = style
    return out
