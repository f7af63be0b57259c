"""From a reader's result to bounded rows with ids: shared by the tools that read one kind of thing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent.mcp.bound import short
from agent.mcp.diagnose import evidence_row
from agent.mcp.tool import COUNT, LIST, TEXT, Answer, Desk, obj, rows
from tools.contract import Problem, Reading
from tools.view import Evidence, Ledger

# Output of every tool that reads: facts with ids, and what could not be read.
FACTS = rows("id fact value where")


def output(**more: dict[str, Any]) -> dict[str, Any]:
    """The output schema, with a tool's own fields."""
    return obj("run facts problems", run=TEXT, facts=FACTS, facts_total=COUNT, problems=LIST, **more)


def keep(desk: Desk, readings: Iterable[Reading], problems: Iterable[Problem]) -> tuple[list[Evidence], dict[str, Any]]:
    """The readings under ids in a new run, and the rows that show them."""
    ledger = Ledger(desk.known())
    ledger.extend(readings)
    items = list(ledger)
    run = desk.runs.add(items)
    data: dict[str, Any] = {
        "run": run.id,
        "facts": [evidence_row(item) for item in items],
        "facts_total": len(items),
        "problems": [short(p.line()) for p in problems],
    }
    return items, data


def answer(what: str, items: list[Evidence], data: dict[str, Any]) -> Answer:
    """Rows first in importance; the text names the first few."""
    from agent.render.terminal import value_text

    head = "; ".join(f"{e.fact} = {short(value_text(e.value, e.unit), 60)} [{e.id}]" for e in items[:6])
    text = f"{what}: {len(items)} facts in run {data['run']}. {head}"
    if data["problems"]:
        text += f"\nProblems: {data['problems'][0]}"
    return Answer(data=data, text=text, links=[(f"inferdx://evidence/{data['run']}/{e.id}", e.fact) for e in items[:1]])
