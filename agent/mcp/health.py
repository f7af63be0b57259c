"""``health``: what this server may read and whether it answers. Servers list their tools even when nothing works."""

from __future__ import annotations

import os
from typing import Any

from agent.mcp.bound import short
from agent.mcp.tool import BOOL, LIST, TEXT, Answer, Desk, ToolDef, Trouble, obj, rows
from agent.version import VERSION

MAX_PROBED = 8
TIMEOUT_S = 3.0


def call(desk: Desk, given: dict[str, Any]) -> Answer:
    """Roots readable, listed addresses answering (unless ``probe`` is false), knowledge loaded."""
    from knowledge.loader import KnowledgeError

    problems: list[str] = []
    version, rules = "", 0
    try:
        known = desk.known()
        version, rules = known.version, len(known.rules)
    except KnowledgeError as error:
        problems.append(short(f"knowledge cannot be read: {error}"))
    roots = [{"root": str(r), "readable": os.access(r, os.R_OK | os.X_OK)} for r in desk.roots.folders]
    problems += [f"{row['root']} cannot be read" for row in roots if not row["readable"]]
    if not roots:
        problems.append("no root is allowed: files are refused (start with --allow-root), pasted text works")
    urls = [
        {
            "url": item.text(),
            "status": _status(desk, item.text()) if given.get("probe", True) and i < MAX_PROBED else "not probed",
        }
        for i, item in enumerate(desk.addresses.listed)
    ]
    problems += [f"{row['url']}: {row['status']}" for row in urls if row["status"].startswith(("no answer", "refused"))]
    data = {
        "ok": not problems, "version": f"inferdx {VERSION}, knowledge {version or 'none'}, {rules} rules", "roots": roots, "urls": urls,
        "runs": [run.id for run in desk.runs.latest()], "problems": problems,
    }  # fmt: skip
    lines = [f"inferdx {VERSION}, {rules} rules, {len(roots)} roots, {len(urls)} addresses", *problems[:4]]
    return Answer(data=data, text="\n".join(lines))


def _status(desk: Desk, url: str) -> str:
    import httpx

    from tools.metrics.live import Refused, fetch

    try:
        status, _, _ = fetch(desk.addresses.check(url), timeout=TIMEOUT_S)
    except (Refused, Trouble) as error:
        return short(f"refused ({error})", 160)
    except httpx.HTTPError as error:
        return f"no answer ({type(error).__name__})"
    return f"HTTP {status}"


TOOL = ToolDef(
    name="health",
    description="Version, allowed roots and addresses, whether they answer (probe), run ids held.",
    arguments=obj(probe=BOOL),
    output=obj(
        "ok version roots urls problems",
        ok=BOOL,
        version=TEXT,
        roots=rows("root readable"),
        urls=rows("url status"),
        runs=LIST,
        problems=LIST,
    ),
    call=call,
    live=True,
)
