"""``fetch_metrics``: a live ``/metrics`` page or a Prometheus range as facts."""

from __future__ import annotations

from typing import Any

from agent.mcp.bound import short
from agent.mcp.diagnose import window
from agent.mcp.readings import answer, keep, output
from agent.mcp.tool import NUM, TEXT, Answer, Desk, ToolDef, Trouble, obj


def call(desk: Desk, given: dict[str, Any]) -> Answer:
    """Fetch only what the allow-list names; no redirects."""
    from agent.sources import Sources, gatherer, moment
    from tools.contract import Context, Problem

    if bool(given.get("url")) == bool(given.get("prometheus")):
        raise Trouble("bad_argument", "give url or prometheus", "url for one engine's /metrics, prometheus for a range")
    sources = Sources(window_s=window(given))
    if given.get("url"):
        sources.urls = [desk.addresses.check(given["url"])]
    else:
        sources.prometheus = desk.addresses.check(given["prometheus"])
        sources.match = given.get("match", "")
        try:
            sources.start, sources.end = moment(given.get("start", "-30m")), moment(given.get("end", "now"))
        except ValueError as error:
            raise Trouble("bad_argument", short(str(error)), "write it as the message says") from None
    readings, problems, _ = gatherer(sources, Context())()
    wanted = given.get("fact", "").lower()
    rows = [r for r in readings if wanted in r.fact]
    items, data = keep(desk, rows, [Problem(**p) for p in problems])
    return answer("metrics", items, data)


TOOL = ToolDef(
    name="fetch_metrics",
    description="Read an engine's /metrics page (window_s up to 50 for rates) or a Prometheus range as named facts "
    "with units. Only addresses that health lists.",
    arguments=obj(url=TEXT, window_s=NUM, prometheus=TEXT, match=TEXT, start=TEXT, end=TEXT,
                  fact=TEXT),
    output=output(),
    call=call,
    live=True,
)  # fmt: skip
