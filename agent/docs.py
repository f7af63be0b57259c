"""The manual, written from the data: one function per file under ``docs/``. Nothing in those files is edited by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from agent.readable import condition, lines_of_action, markdown_table
from knowledge.effective import effective, rules_of
from knowledge.lint_conditions import facts_of_rule
from knowledge.schema import LAYERS, FactDef, Family, Knowledge, Rule, both

NOTE = "<!-- Written by `inferdx docs` from knowledge/. Edit the data, not this file. -->\n\n"
SYMPTOM_NAMES = {
    "ttft": ("late first tokens", "首 token 慢"), "tpot": ("slow or uneven tokens", "token 间隔慢或不匀"),
    "throughput": ("low throughput", "吞吐低"), "errors": ("failing requests", "请求失败"),
    "crash": ("the server dies", "服务崩溃"), "hang": ("no progress", "无进展"),
    "startup": ("slow or failing start", "启动慢或失败"),
}  # fmt: skip


def symptoms_of(known: Knowledge, family: str) -> list[str]:
    """Symptoms that a family ends in, nearest first, along ``leads_to``."""
    out: list[str] = []
    seen: set[str] = set()
    ring = [family]
    while ring:
        following: list[str] = []
        for name in ring:
            seen.add(name)
            card = known.families.get(name)
            for effect in card.leads_to if card else []:
                if effect in SYMPTOM_NAMES:
                    if effect not in out:
                        out.append(effect)
                elif effect not in seen and effect not in following:
                    following.append(effect)
        ring = following
    return out


def decision_rows(known: Knowledge, lang: str = "en", depth: int = 2) -> Iterator[list[str]]:
    """Rows of the table: symptom, evidence, cause, what separates it from look-alikes, first action.

    A rule stands under the ``depth`` nearest symptoms of its family.
    """
    for symptom, names in SYMPTOM_NAMES.items():
        for rule in known.rules.values():
            if rule.outcome != "incident" or symptom not in symptoms_of(known, rule.family)[:depth]:
                continue
            whole = effective(known, rule)
            apart = "; ".join(f"{t.family} ⇐ {condition(t.cond)}" for t in whole.look_alikes[:2])
            first = both(whole.actions[0].do, lang) if whole.actions else ""
            yield [
                names[1] if lang == "zh" else names[0], condition(rule.when), f"{rule.family} ({rule.id})", apart, first,
            ]  # fmt: skip


def decision_table(known: Knowledge, lang: str = "en", symptom: str = "", depth: int = 2) -> str:
    """The whole table as Markdown; ``symptom`` keeps one."""
    head = (
        ["症状", "证据（全部成立）", "原因", "若如此则是别的原因", "首先"] if lang == "zh"
        else ["symptom", "evidence (all of it)", "cause", "it is another cause if", "do first"]
    )  # fmt: skip
    wanted = SYMPTOM_NAMES.get(symptom, ("", ""))[lang == "zh"] if symptom else ""
    rows = [row for row in decision_rows(known, lang, depth) if not wanted or row[0] == wanted]
    return markdown_table(head, rows)


def _rules(known: Knowledge) -> str:
    out = [NOTE, "# Rules\n"]
    out.append(
        f"\n{len(known.rules)} rules over {len(known.facts)} facts. A rule ends as *fired*, *clear*, *missing input*, "
        "*not applicable* or *error*; missing is never clear. What stands on the family card holds for each of its rules.\n"
    )
    groups = [*LAYERS, ""]
    for layer in groups:
        rules = [r for _, r in sorted(known.rules.items()) if _layer(r) == layer]
        if rules:
            out.append(f"\n## {layer or 'healthy and limits'}\n")
            out.extend(_rule(known, rule) for rule in rules)
    return "".join(out)


def _layer(rule: Rule) -> str:
    return rule.layer if rule.outcome == "incident" else ""


def _rule(known: Knowledge, rule: Rule) -> str:
    whole = effective(known, rule)
    out = [f"\n### {rule.id}\n\n**{rule.title.en}** · {rule.title.zh}\n\n{rule.mechanism.en}\n\n"]
    if rule.family:
        out.append(f"- cause: [{rule.family}](families/{rule.layer}.md#{rule.family})\n")
    out.append(f"- says: {rule.outcome}, {rule.strength}\n")
    if rule.versions:
        out.append(f"- versions: {', '.join(f'{e} {s}' for e, s in rule.versions.items())}\n")
    if rule.applies is not None:
        out.append(f"- applies when `{condition(rule.applies)}`\n")
    out.append(f"- fires when `{condition(rule.when)}`\n")
    out.extend(f"- for ({s.strength}): {both(s.says)} `{condition(s.cond)}`\n" for s in rule.supports)
    out.extend(f"- against ({s.strength}): {both(s.says)} `{condition(s.cond)}`\n" for s in rule.against)
    out.extend(f"- refuted by: {both(r.says)} `{condition(r.cond)}`\n" for r in whole.refuted_by)
    out.extend(f"- looks like {t.family}: {both(t.says)} `{condition(t.cond)}`\n" for t in rule.look_alikes)
    if rule.explains_away:
        out.append(f"- explains away: {', '.join(rule.explains_away)}\n")
    out.append(f"- sources: {'; '.join(rule.cites)}\n")
    return "".join(out)


def _facts(known: Knowledge) -> str:
    users: dict[str, int] = {}
    for rule in known.rules.values():
        for name in facts_of_rule(rule):
            users[name] = users.get(name, 0) + 1
    out = [NOTE, "# Facts\n\nThe vocabulary: every name that evidence and rules may use. "]
    out.append("*Rules*: how many read it. *Get it*: the number of the command above the table.\n")
    areas: dict[str, list[FactDef]] = {}
    for _, fact in sorted(known.facts.items()):
        areas.setdefault(fact.name.split(".")[0], []).append(fact)
    for area, facts in areas.items():
        ways = list(dict.fromkeys(f.get.how for f in facts if f.get))
        out.append(f"\n## {area}\n\n")
        out.extend(f"{number}. `{' '.join(way.split())}`\n" for number, way in enumerate(ways, 1))
        rows = [
            [f"`{f.name}`", f.unit, f.means.en, f.means.zh, f.source, str(users.get(f.name, "")), f.cannot_tell,
             str(ways.index(f.get.how) + 1) if f.get else ""]
            for f in facts
        ]  # fmt: skip
        head = ["fact", "unit", "means", "含义", "read by", "rules", "cannot tell", "get it"]
        out.append("\n" * bool(ways) + markdown_table(head, rows))
    return "".join(out)


def _decision(known: Knowledge) -> str:
    head = "# Decision table\n\nSymptom × evidence × cause. Each rule stands under its nearest symptom.\n\n"
    return NOTE + head + decision_table(known, depth=1)


def _decision_zh(known: Knowledge) -> str:
    head = "# 诊断决策表\n\n症状 × 证据 × 原因；每条规则列在其最近的症状下。\n\n"
    return NOTE + head + decision_table(known, "zh", depth=1)


def _family_page(known: Knowledge, layer: str) -> str:
    out = [NOTE, f"# Causes: {layer}\n"]
    for key, cause in known.causes.items():
        if cause.layer != layer:
            continue
        card = known.families.get(key)
        out.append(f'\n<a id="{key}"></a>\n\n## {card.title.en if card else key} · {card.title.zh if card else ""}\n\n')
        out.append(f"`{key}` — {cause.means}\n\n")
        if card:
            out.append(_card(card))
        rules = rules_of(known, key)
        if rules:
            out.append("\nRules: " + ", ".join(f"[{r.id}](../rules.md#{r.id.lower()})" for r in rules) + "\n")
    return "".join(out)


def _card(card: Family) -> str:
    out = [f"{card.explain.en}\n\n{card.explain.zh}\n\n"]
    if card.driven_by:
        out.append(f"Driven by: {', '.join(card.driven_by)}. ")
    if card.leads_to:
        out.append(f"Leads to: {', '.join(card.leads_to)}.\n")
    out.append("\n**Looks like**\n\n")
    out += [f"- {t.family}: {both(t.says)} `{condition(t.cond)}`\n" for t in card.look_alikes]
    if card.refuted_by:
        out.append("\n**Refuted by**\n\n")
        out += [f"- {both(r.says)} `{condition(r.cond)}`\n" for r in card.refuted_by]
    out.append("\n**Actions**\n\n")
    for action in card.actions:
        lines = lines_of_action(action, "en")
        out.append(lines[0] + "\n" + (f"  `{action.command}`\n" if action.command else ""))
    out.append("\n**Probes**\n\n")
    for probe in card.probes:
        out.append(f"- *{probe.kind.replace('_', ' ')}*: {probe.ask.en} `{probe.command}`\n")
    if card.will_not_help:
        out.append("\n**Will not help**\n\n" + "".join(f"- {both(text)}\n" for text in card.will_not_help))
    out.append(f"\nSources: {'; '.join(card.cites)}\n")
    return "".join(out)


def _metrics(known: Knowledge) -> str:
    from knowledge.catalogue import catalogue

    out = [NOTE, "# Metric families\n\nWhat each family means, since when, what it was called, what it cannot tell.\n"]
    for engine in ("vllm", "sglang", "http"):
        rows = []
        for metric in catalogue().values():
            if metric.engine != engine:
                continue
            life = f"{metric.since or ''}{'–' if metric.gone else '+' if metric.since else ''}{metric.gone}"
            names = "; ".join(
                x
                for x in (
                    f"was {', '.join(metric.was)}" if metric.was else "",
                    f"now {metric.now}" if metric.now else "",
                )
                if x
            )
            trap = both(metric.cannot_tell) if metric.cannot_tell else ""
            rows.append(
                [f"`{metric.name}`", metric.kind, metric.unit, "never existed" if metric.never else life, metric.means.en,
                 metric.means.zh, names, "; ".join(x for x in (metric.needs, trap) if x)]
            )  # fmt: skip
        out.append(f"\n## {engine}\n\n")
        out.append(
            markdown_table(["name", "type", "unit", "releases", "means", "含义", "names", "needs; cannot tell"], rows)
        )
    return "".join(out)


def _handbook(known: Knowledge) -> str:
    out = [NOTE, "# Handbook\n"]
    for _, page in sorted(known.pages.items()):
        out.append(f'\n<a id="{page.id}"></a>\n\n## {page.title.en} · {page.title.zh}\n\n')
        out.append(f"{page.body.en.strip()}\n\n{page.body.zh.strip()}\n\nSources: {'; '.join(page.cites)}\n")
    return "".join(out)


def _schema(known: Knowledge) -> str:
    from agent.diagnosis import schema

    return json.dumps(schema(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def pages(known: Knowledge) -> dict[str, str]:
    """File name under ``docs/`` → content."""
    makers: dict[str, Callable[[Knowledge], str]] = {
        "rules.md": _rules, "facts.md": _facts, "decision-table.md": _decision,
        "decision-table.zh.md": _decision_zh, "metrics.md": _metrics,
        "handbook.md": _handbook, "diagnosis.schema.json": _schema,
    }  # fmt: skip
    out = {name: make(known) for name, make in makers.items()}
    for layer in LAYERS:
        out[f"families/{layer}.md"] = _family_page(known, layer)
    return out


def stale(known: Knowledge, folder: Path) -> list[str]:
    """Files that are missing or differ from the data."""
    out: list[str] = []
    for name, text in pages(known).items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            out.append(name)
    return out


def write(known: Knowledge, folder: Path) -> list[str]:
    """Write what is stale and return its names."""
    changed = stale(known, folder)
    texts = pages(known)
    for name in changed:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[name], encoding="utf-8")
    return changed
