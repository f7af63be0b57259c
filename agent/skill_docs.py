"""The skill's references, written from the data: one page per layer, one on healthy and limits, one on what to collect."""

from __future__ import annotations

from pathlib import Path

from agent.readable import condition
from knowledge.effective import rules_of
from knowledge.schema import LAYERS, FactDef, Family, Knowledge, Rule, both

FOLDER = "skills/inferdx/references"
NOTE = "<!-- Written by `inferdx docs` from knowledge/. Edit the data, not this file. -->\n\n"
COLLECT_ROWS = 40


def generate(known: Knowledge | None = None) -> dict[str, str]:
    """Path below the repository → text, for every generated file of the skill."""
    if known is None:
        from knowledge import load

        known = load()
    out = {f"{FOLDER}/{layer}.md": _layer(known, layer) for layer in LAYERS}
    out[f"{FOLDER}/limits.md"] = _limits(known)
    out[f"{FOLDER}/collect.md"] = _collect(known)
    return out


def stale(root: Path, known: Knowledge | None = None) -> list[str]:
    """Generated files below ``root`` that are missing, differ from the data, or have no data any more."""
    texts = generate(known)
    out = [
        name for name, text in texts.items()
        if not (root / name).is_file() or (root / name).read_text(encoding="utf-8") != text
    ]  # fmt: skip
    there = {path.relative_to(root).as_posix() for path in (root / FOLDER).glob("*.md")}
    return out + sorted(there - set(texts))


def write(root: Path, known: Knowledge | None = None) -> list[str]:
    """Write what is stale below ``root``; returns the names."""
    texts = generate(known)
    changed = [name for name in stale(root, known) if name in texts]
    for name in changed:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[name], encoding="utf-8")
    return changed


def _layer(known: Knowledge, layer: str) -> str:
    causes = [cause for cause in known.causes.values() if cause.layer == layer]
    out = [NOTE, f"# Causes in the {layer} layer\n\n"]
    out.append("".join(f"- `{cause.id}`: {cause.means}\n" for cause in causes))
    for cause in causes:
        card = known.families.get(cause.id)
        out.append(f"\n## {cause.id}\n\n")
        if card:
            out.append(_card(card))
        # Rules over a person's words say nothing that the card does not: readings only.
        rules = [rule for rule in rules_of(known, cause.id) if "-told-" not in rule.id]
        if rules:
            out.append("**Fires when** " + "; ".join(f"{r.id}: `{condition(r.when)}`" for r in rules) + "\n\n")
    return "".join(out).rstrip() + "\n"


def _card(card: Family) -> str:
    out = [f"{both(card.explain)}\n\n"]
    if card.driven_by:
        out.append(f"**Look upstream first** {', '.join(card.driven_by)}\n\n")
    if card.look_alikes:
        rows = [f"{t.family} if {both(t.says)} (`{condition(t.cond)}`)" for t in card.look_alikes]
        out.append(f"**Looks like** {'; '.join(rows)}\n\n")
    if card.refuted_by:
        out.append("**Refuted by** " + "; ".join(f"`{condition(r.cond)}`" for r in card.refuted_by) + "\n\n")
    for action in card.actions[:2]:
        command = f" `{action.command}`" if action.command else ""
        out.append(f"- Do ({action.how}): {both(action.do)}.{command} Cost: {both(action.cost)}.\n")
    for probe in card.probes[:2]:
        out.append(f"- Probe: {both(probe.ask)}. `{probe.command}`\n")
    if card.will_not_help:
        out.append(f"- Will not help: {'; '.join(both(text) for text in card.will_not_help)}\n")
    return "".join(out) + "\n"


def _limits(known: Knowledge) -> str:
    out = [NOTE, "# Not faults: healthy, and at a physical limit\n\n"]
    out.append("Say these plainly, with the evidence. They are answers, not failures to find something.\n")
    for outcome, title in (("theoretical_limit", "At a limit"), ("healthy", "Healthy, though it looks odd")):
        out.append(f"\n## {title}\n\n")
        rules: list[Rule] = [rule for _, rule in sorted(known.rules.items()) if rule.outcome == outcome]
        out += [f"- **{r.id}** {both(r.title)}. {both(r.mechanism)} `{condition(r.when)}`\n" for r in rules]
    return "".join(out)


def _collect(known: Knowledge) -> str:
    from knowledge.lint_conditions import rule_conditions
    from knowledge.logic import facts_of

    users: dict[str, set[str]] = {}
    for rule in known.rules.values():
        for _, cond in rule_conditions(rule):
            for name in facts_of(cond):
                users.setdefault(name, set()).add(rule.id)
    ways: dict[str, tuple[FactDef, set[str], set[str]]] = {}
    for name, rules in users.items():
        fact = known.facts.get(name)
        if fact and fact.get:
            held = ways.setdefault(fact.get.how, (fact, set(), set()))
            held[1].add(name)
            held[2].update(rules)
    rows = sorted(ways.items(), key=lambda item: (-len(item[1][2]), item[0]))[:COLLECT_ROWS]
    out = [
        NOTE,
        "# What to collect, most useful first\n\nEach way, how many rules it feeds, what it costs the server.\n\n",
    ]
    for how, (fact, names, rules) in rows:
        cost = f"cost {fact.get.cost}, risk {fact.get.risk}" if fact.get else ""
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        out.append(f"- `{how}` — {len(rules)} rules; {cost}; gives {', '.join(sorted(names)[:4])}{more}\n")
    return "".join(out)
