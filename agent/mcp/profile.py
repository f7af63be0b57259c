"""``summarize_profile``: where the time of an nsys, torch, py-spy or perf profile goes."""

from __future__ import annotations

from typing import Any

from agent.mcp.bound import short
from agent.mcp.readings import answer, keep, output
from agent.mcp.tool import LIST, TEXT, Answer, Desk, ToolDef, obj, rows


def call(desk: Desk, given: dict[str, Any]) -> Answer:
    """One profile; with ``before`` also what changed."""
    from tools.contract import Context, Problem
    from tools.profile.facts import readings
    from tools.profile.read import profiles_of, read

    part = desk.roots.file(given["path"])
    profiles = profiles_of(part)
    first = profiles[0]
    changes: list[str] = []
    problems: list[Problem] = [p for profile in profiles for p in profile.problems]
    if given.get("before"):
        from tools.profile.diff import compare

        earlier = profiles_of(desk.roots.file(given["before"]))[0]
        problems += earlier.problems
        changes = [short(change.line(), 160) for change in compare(earlier, first).kernels[:8]]
    rows = (
        [r for profile in profiles for r in readings(profile)]
        if len(profiles) == 1
        else read([part], Context()).readings
    )
    items, data = keep(desk, rows, problems)
    total = first.kernel_total or 0.0
    data["kind"], data["phase"] = first.kind, first.phase.name
    data["class_share"] = {
        name: round(share, 4) for name, share in sorted(first.class_share.items(), key=lambda x: -x[1])
    }
    data["kernels"] = [
        {"name": short(k.name, 90), "class": k.cls, "count": k.count, "total_ms": round(k.total / 1e6, 3),
         "share": round(k.total / total, 4) if total else 0.0}
        for k in sorted(first.kernels, key=lambda k: -k.total)[:10]
    ]  # fmt: skip
    data["changes"] = changes
    return answer(f"{first.kind} profile", items, data)


TOOL = ToolDef(
    name="summarize_profile",
    description="Where time goes in an nsys (.sqlite, stats), torch trace, py-spy or perf profile: kernel classes, top "
    "kernels, idle gaps, host facts. before: an earlier profile to compare with.",
    arguments=obj("path", path=TEXT, before=TEXT),
    output=output(kind=TEXT, phase=TEXT, class_share=obj(), kernels=rows("name total_ms share"), changes=LIST),
    call=call,
)
