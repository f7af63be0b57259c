"""Conditions, actions and tables as people read them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

from agent.phrases import say
from knowledge.logic import Leaf, Node, parse
from knowledge.schema import Action, both

# Words that knowledge leaves in English since they are the same for every record.
_ZH = {"none": "无", "low": "低", "medium": "中", "moderate": "中", "high": "高"}
_SIGNS = {">=": "≥", "<=": "≤", "!=": "≠", "==": "="}


def condition(cond: Any) -> str:
    """A condition as one line, with brackets where they are needed: ``a ≥ 1 and (b or not c)``."""
    return _node(parse(cond), top=True)


def _node(tree: Leaf | Node, *, top: bool = False) -> str:
    if isinstance(tree, Leaf):
        return _leaf(tree)
    if tree.kind == "not":
        inner = _node(tree.parts[0])
        return f"not {inner}"
    glue = {"all": " and ", "any": " or "}.get(tree.kind, ", ")
    text = glue.join(_node(part) for part in tree.parts)
    if tree.kind == "atleast":
        return f"at least {tree.n} of ({text})"
    return text if top or len(tree.parts) == 1 else f"({text})"


def _leaf(leaf: Leaf) -> str:
    if leaf.kind != "cmp":
        return leaf.text.strip()
    if leaf.rhs is True and leaf.op == "==":
        return leaf.fact
    if leaf.rhs is False and leaf.op == "==":
        return f"not {leaf.fact}"
    body = leaf.text.strip()[len(leaf.fact) :].strip()
    for plain, sign in _SIGNS.items():
        if body.startswith(plain):
            body = sign + body[len(plain) :]
            break
    return f"{leaf.fact} {body}"


def lines_of_action(action: Action, lang: str) -> list[str]:
    """An action as one line, and its command below when it has one."""
    how = say(f"how.{action.how}", lang)
    risk = both(action.risk, lang)
    risk = _ZH.get(risk, risk) if lang == "zh" else risk
    parts = [
        f"{say('word.gain', lang)}: {both(action.gain, lang)}",
        f"{say('word.cost', lang)}: {both(action.cost, lang)}",
    ]
    parts += [f"{say('word.risk', lang)}: {risk}", action.expect]
    out = [f"- {both(action.do, lang)} ({how}) — " + "; ".join(part for part in parts if part)]
    if action.command:
        out.append(f"    {action.command}")
    return out


def wrap(lines: Iterable[str], mark: str = "", width: int = 110) -> str:
    """Lines folded at ``width`` with a mark in front and the rest indented below it."""
    return "\n".join(
        textwrap.fill(
            line, width, initial_indent=mark, subsequent_indent=" " * len(mark), break_long_words=False,
            break_on_hyphens=False,
        )
        for line in lines
    )  # fmt: skip


def cell(text: str) -> str:
    """Text fit for a Markdown table cell."""
    return " ".join(text.split()).replace("|", "\\|")


def markdown_table(head: list[str], rows: Iterable[list[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell(text) for text in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
