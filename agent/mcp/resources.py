"""Resources: evidence of recent runs, whole reports, and the knowledge."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from agent.mcp.bound import dumps, without_keys
from agent.mcp.evidence import whole
from agent.mcp.tool import Desk, Trouble

MAX_CHARS = 40_000
TEMPLATES = (
    (
        "evidence",
        "inferdx://evidence/{run}/{id}",
        "One reading of a run: value, source, method, caveats",
        "application/json",
    ),
    ("report", "inferdx://report/{run}", "The whole report of a run", "text/markdown"),
    ("knowledge", "inferdx://knowledge/{kind}/{id}", "A cause, rule, fact or page in full", "text/markdown"),
)
SCHEMA_URI = "inferdx://schema/diagnosis"
LAYERS_URI = "inferdx://knowledge/causes"


def read(desk: Desk, uri: str) -> tuple[str, str]:
    """``(mime type, text)`` of a resource. Raises :class:`Trouble`."""
    parts = urlsplit(uri)
    path = [unquote(p) for p in parts.path.split("/") if p]
    if parts.scheme != "inferdx" or len(path) > 2:
        raise _unknown()
    if parts.netloc == "evidence" and len(path) == 2:
        item = next((e for e in desk.runs.get(path[0]).evidence if e.id == path[1]), None)
        if item is None:
            raise Trouble("unknown_evidence", "no such evidence in this run", "get_evidence lists a run's ids")
        return "application/json", dumps(whole(item))
    if parts.netloc == "report" and len(path) == 1:
        from agent.render.markdown import render

        run = desk.runs.get(path[0])
        if run.diagnosis is None:
            raise Trouble("no_report", "that run read facts only", "read its evidence, or call diagnose")
        return "text/markdown", without_keys(render(run.diagnosis))[:MAX_CHARS]
    if parts.netloc == "schema" and path == ["diagnosis"]:
        from agent.diagnosis import schema

        return "application/schema+json", dumps(schema())
    if parts.netloc == "knowledge":
        return "text/markdown", _knowledge(desk, path)
    raise _unknown()


def _knowledge(desk: Desk, path: list[str]) -> str:
    from agent.explain import explain

    known = desk.known()
    if path == ["causes"]:
        return "".join(f"- `{c.id}` ({c.layer}): {c.means}\n" for c in known.causes.values())
    entries = explain(known, path) if len(path) == 2 else []
    if not entries:
        raise Trouble("unknown_name", "nothing has that name", "the explain tool searches by words")
    return "\n\n".join(e.text for e in entries)[:MAX_CHARS]


def _unknown() -> Trouble:
    return Trouble("unknown_resource", "no such resource", "list the resource templates")
