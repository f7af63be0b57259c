"""``list_rules`` and ``explain``: what is known, apart from any incident."""

from __future__ import annotations

from typing import Any

from agent.mcp.bound import short
from agent.mcp.tool import COUNT, INT, LANG, LAYER, TEXT, Answer, Desk, ToolDef, Trouble, obj, rows


def list_rules(desk: Desk, given: dict[str, Any]) -> Answer:
    """Rules by layer, family or words."""
    known = desk.known()
    layer, family, words = given.get("layer", ""), given.get("family", ""), given.get("query", "").lower().split()
    if family and family not in known.causes:
        raise Trouble("unknown_family", "no such cause family", "call explain with search to find its name")
    found = [
        rule for _, rule in sorted(known.rules.items())
        if layer in ("", rule.layer) and family in ("", rule.family)
        and all(w in f"{rule.id} {rule.family} {rule.title.en} {rule.title.zh} {rule.mechanism.en}".lower() for w in words)
    ]  # fmt: skip
    offset, limit = given.get("offset", 0), min(given.get("limit", 20), 40)
    page = found[offset : offset + limit]
    found_rows = [
        {"id": r.id, "family": r.family or r.outcome, "layer": r.layer, "strength": r.strength, "title": r.title.en}
        for r in page
    ]  # fmt: skip
    data: dict[str, Any] = {"total": len(found), "rules": found_rows}
    if offset + limit < len(found):
        data["next_offset"] = offset + limit
    return Answer(data=data, text=f"{len(page)} of {len(found)} rules: " + ", ".join(r.id for r in page[:12]))


def explain(desk: Desk, given: dict[str, Any]) -> Answer:
    """By name, or by words when ``search`` is given."""
    from agent.explain import explain as entries_of
    from agent.explain import suggestions

    known, lang = desk.known(), given.get("lang", "en")
    if given.get("search"):
        from agent.search import index

        hits = index(known, lang).search(given["search"][:400], limit=min(given.get("limit", 10), 30))
        found_rows = [{"kind": h.kind, "id": h.id, "text": short(h.title, 160)} for h in hits]
        return Answer(data={"entries": found_rows}, text="; ".join(f"{h.kind} {h.id}" for h in hits) or "nothing found")
    name = given.get("name", "").split()
    if not name:
        raise Trouble("bad_argument", "give name or search", "name: a cause, rule, fact, metric, flag or page")
    entries = entries_of(known, name[:8], lang, given.get("engine_version", ""))
    if not entries:
        near = suggestions(known, name[:8])
        raise Trouble(
            "unknown_name",
            "nothing has that name",
            f"did you mean {', '.join(near)}" if near else "call explain with search",
        )
    found_rows = [{"kind": e.kind, "id": e.id, "text": e.text} for e in entries]
    links = [
        (f"inferdx://knowledge/{e.kind}/{e.id}", e.id)
        for e in entries[:2]
        if e.kind in ("cause", "rule", "fact", "page")
    ]
    return Answer(data={"entries": found_rows}, text="; ".join(f"{e.kind} {e.id}" for e in entries), links=links)


RULES = ToolDef(
    name="list_rules",
    description="Rules the diagnosis runs, by layer, cause family or words.",
    arguments=obj(layer=LAYER, family=TEXT, query=TEXT, offset=INT, limit=INT),
    output=obj("total rules", total=COUNT, rules=rows("id family title"), next_offset=COUNT),
    call=list_rules,
)
EXPLAIN = ToolDef(
    name="explain",
    description="Explain a cause, rule, fact, metric, flag (for an engine_version) or trade-off by name, or search by words. "
    "General knowledge, not evidence of an incident.",
    arguments=obj(name=TEXT, search=TEXT, engine_version=TEXT, lang=LANG, limit=INT),
    output=obj("entries", entries=rows("kind id text")),
    call=explain,
)
