"""``read_config``: what a launch command or manifest really sets for its engine version."""

from __future__ import annotations

from typing import Any

from agent.mcp.readings import answer, keep, output
from agent.mcp.tool import TEXT, Answer, Desk, ToolDef, Trouble, obj
from tools.part import Part


def call(desk: Desk, given: dict[str, Any]) -> Answer:
    """Explicit settings, version-aware defaults and verdicts; ``origin`` labels stay in the evidence."""
    from tools.config.read import read
    from tools.contract import Context

    if bool(given.get("path")) == bool(given.get("text")):
        raise Trouble("bad_argument", "give path or text", "the start command, a manifest or the start-up log lines")
    if given.get("path"):
        part = desk.roots.file(given["path"])
    else:
        part = Part(name="pasted.txt", data=given["text"].encode("utf-8", "replace"))
    names = {"engine": "engine.name", "engine_version": "engine.version", "gpu": "gpu.name"}
    options = {fact: given[name] for name, fact in names.items() if given.get(name)}
    result = read([part], Context(options=options))
    items, data = keep(desk, result.readings, result.problems)
    return answer("configuration", items, data)


TOOL = ToolDef(
    name="read_config",
    description="Effective settings of a vLLM/SGLang launch command, manifest or start-up log: set values, version-aware "
    "defaults, flags ignored, renamed or in conflict.",
    arguments=obj(path=TEXT, text=TEXT, engine=TEXT, engine_version=TEXT, gpu=TEXT),
    output=output(),
    call=call,
)
