"""What a tool of this door is, what it may touch, and how it fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agent.mcp.roots import Roots
from agent.mcp.runs import Runs
from agent.mcp.trouble import Trouble
from agent.mcp.urls import Addresses
from knowledge.schema import LAYERS, Knowledge

__all__ = [
    "BOOL",
    "COUNT",
    "INT",
    "LANG",
    "LAYER",
    "LIST",
    "NUM",
    "TEXT",
    "Answer",
    "Desk",
    "ToolDef",
    "Trouble",
    "many",
    "obj",
    "one_of",
    "rows",
]

TEXT: dict[str, Any] = {"type": "string"}
LIST: dict[str, Any] = {"type": "array"}
NUM: dict[str, Any] = {"type": "number"}
INT: dict[str, Any] = {"type": "integer", "minimum": 0}
COUNT: dict[str, Any] = {"type": "integer"}
BOOL: dict[str, Any] = {"type": "boolean"}


def one_of(*values: str) -> dict[str, Any]:
    """A closed list of words."""
    return {"enum": list(values)}


def many(item: dict[str, Any]) -> dict[str, Any]:
    """A list."""
    return {"type": "array", "items": item}


def rows(required: str) -> dict[str, Any]:
    """A list of objects that have at least the names given. Compact: the whole tool list is read by a model."""
    return {"type": "array", "items": {"type": "object", "required": required.split()}}


def obj(required: str = "", **properties: dict[str, Any]) -> dict[str, Any]:
    """An object; ``required`` holds the names that must be there, separated by blanks."""
    out: dict[str, Any] = {"type": "object"}
    if properties:
        out["properties"] = properties
    if required:
        out["required"] = required.split()
    return out


LANG = one_of("en", "zh")
LAYER = one_of(*LAYERS)


class Answer(Struct, kw_only=True):
    """A tool's result: structured ``data``, a short ``text`` for clients that ignore structure, links to resources.

    ``budget``: tokens that text and data may take together.
    """

    data: dict[str, Any]
    text: str
    links: list[tuple[str, str]] = []
    budget: int = 2000


class Desk(Struct, kw_only=True):
    """What the tools work with. The runs are a cache of recent answers, shared by all callers; nothing is per session."""

    roots: Roots
    addresses: Addresses
    knowledge: list[Path] = field(default_factory=list)
    runs: Runs = field(default_factory=Runs)
    held: list[Knowledge] = field(default_factory=list)

    def known(self) -> Knowledge:
        """The knowledge, read on first use."""
        if not self.held:
            from agent.investigate import site_knowledge

            self.held.append(site_knowledge(self.knowledge))
        return self.held[0]


class ToolDef(Struct, kw_only=True, frozen=True):
    """One tool. Its description is a constant: no text that was read may reach it. ``live``: may fetch an address."""

    name: str
    description: str
    arguments: dict[str, Any]
    output: dict[str, Any]
    call: Callable[[Desk, dict[str, Any]], Answer]
    live: bool = False
