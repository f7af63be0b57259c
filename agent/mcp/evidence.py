"""``get_evidence``: what stands behind an id, in full."""

from __future__ import annotations

from typing import Any

from agent.mcp.bound import tidy
from agent.mcp.tool import COUNT, INT, TEXT, Answer, Desk, ToolDef, Trouble, many, obj, rows
from tools.view import Evidence


def whole(item: Evidence) -> dict[str, Any]:
    """Everything of one item, strings cleaned and bounded, keys masked."""
    import msgspec

    row: dict[str, Any] = tidy(msgspec.to_builtins(item), 1000)
    return {"unit": "", "method": "", **row}


def call(desk: Desk, given: dict[str, Any]) -> Answer:
    """Items of a run by id or by a part of the fact's name."""
    run = desk.runs.get(given["run"])
    wanted = set(given.get("ids", []))
    fact = given.get("fact", "").lower()
    found = [e for e in run.evidence if (not wanted or e.id in wanted) and fact in e.fact]
    if wanted and not found:
        first = f"E1 to E{len(run.evidence)}" if run.evidence else "none"
        raise Trouble("unknown_evidence", "no such evidence in this run", f"ids of this run: {first}")
    offset, limit = given.get("offset", 0), min(given.get("limit", 8), 40)
    page = found[offset : offset + limit]
    data: dict[str, Any] = {"run": run.id, "total": len(found), "items": [whole(e) for e in page]}
    if offset + limit < len(found):
        data["next_offset"] = offset + limit
    text = f"{len(page)} of {len(found)} evidence items of run {run.id}: {', '.join(e.id for e in page)}"
    return Answer(data=data, text=text, links=[(f"inferdx://evidence/{run.id}/{e.id}", e.fact) for e in page[:2]])


TOOL = ToolDef(
    name="get_evidence",
    description="Readings behind a run's ids: value, source line or query, method, window, caveats. fact: part of a name.",
    arguments=obj("run", run=TEXT, ids=many(TEXT), fact=TEXT,
                  offset=INT, limit=INT),
    output=obj("run total items", run=TEXT, total=COUNT, items=rows("id fact value source method"), next_offset=COUNT),
    call=call,
)  # fmt: skip
