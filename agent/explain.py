"""What ``inferdx explain`` says: find a thing by name, say it in plain text or as data."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from agent.readable import condition, lines_of_action, wrap
from knowledge.catalogue import Metric, catalogue, find
from knowledge.effective import effective, rules_of
from knowledge.schema import Family, Knowledge, Page, Rule, both

KINDS = ("cause", "rule", "fact", "page", "metric", "flag", "signature")
ALIASES = {
    "family": "cause", "causes": "cause", "families": "cause", "rules": "rule", "facts": "fact", "pages": "page",
    "metrics": "metric", "flags": "flag", "signatures": "signature",
}  # fmt: skip


_HAS: dict[bool, dict[bool | None, str]] = {
    False: {True: "has it", False: "does not have it", None: "cannot be judged"},
    True: {True: "有", False: "没有", None: "无法判断"},
}


class Entry(NamedTuple):
    """One explained thing: its kind and id, its text, and its data for ``--json``."""

    kind: str
    id: str
    text: str
    data: Any


def explain(known: Knowledge, words: list[str], lang: str = "en", version: str = "") -> list[Entry]:
    """All things of that name. ``words`` may begin with a kind. Empty when nothing has the name."""
    if words and words[0] == "tradeoffs":
        return tradeoffs(known, "_".join(words[1:]), lang)
    kinds: Iterable[str] = KINDS
    if len(words) > 1 and (ALIASES.get(words[0], words[0])) in KINDS:
        kinds, words = (ALIASES.get(words[0], words[0]),), words[1:]
    name = " ".join(words).strip()
    found = [_FIND[kind](known, name, lang, version) for kind in kinds]
    return [entry for entry in found if entry is not None]


def names(known: Knowledge) -> list[str]:
    """Every name that can be explained."""
    from tools.config.data import load

    flags = {name for engine in load().engines.values() for name in engine.flags}
    tables: list[Iterable[str]] = [
        known.causes, known.rules, known.facts, known.pages, known.signatures, catalogue(), flags,
    ]  # fmt: skip
    return sorted({name for table in tables for name in table})


def suggestions(known: Knowledge, words: list[str], limit: int = 4) -> list[str]:
    """Names that look like the words: by spelling, then by holding all the words."""
    wanted = [w.lower() for w in words if ALIASES.get(w, w) not in KINDS and w != "tradeoffs"]
    name = "_".join(wanted)
    pool = names(known)
    near = difflib.get_close_matches(name, pool, n=limit, cutoff=0.6)
    near += [x for x in pool if x not in near and wanted and all(w in x.lower() for w in wanted)]
    return near[:limit]


def tradeoffs(known: Knowledge, name: str, lang: str) -> list[Entry]:
    """The trade-off pages that name a setting, and the actions of all cards that pull it."""
    plain = name.strip("-").replace("-", "_")
    pages = [p for key, p in known.pages.items() if key.startswith("tradeoffs")]
    chosen = [p for p in pages if not plain or p.id == f"tradeoffs.{plain}" or plain in p.keywords]
    if not plain:
        chosen = [p for p in pages if p.id == "tradeoffs"]
    out = [_page_entry(page, lang) for page in chosen]
    pulls = [
        (card, action) for card in known.families.values() for action in card.actions
        if plain and action.flag.strip("-").replace("-", "_") == plain
    ]  # fmt: skip
    if pulls:
        lines = [f"{card.id}: {line[2:]}" for card, action in pulls for line in lines_of_action(action, lang)[:1]]
        text = ("各原因卡片中涉及它的动作：" if lang == "zh" else "Actions on it, by cause:") + "\n" + wrap(lines, "- ")
        data = [{"cause": card.id, "action": msgspec.to_builtins(action)} for card, action in pulls]
        out.append(Entry("actions", plain, text, data))
    return out


def _cause(known: Knowledge, name: str, lang: str, version: str) -> Entry | None:
    key = name.lower().replace("-", "_").replace(" ", "_")
    cause = known.causes.get(key)
    if cause is None:
        return None
    card = known.families.get(key)
    rules = rules_of(known, key)
    lines = [f"# {both(card.title, lang) if card else key}  ({key}, {cause.layer})", ""]
    if lang == "en" or card is None:
        lines += [cause.means, ""]
    if card:
        lines += _card_lines(card, known, lang)
    lines += ["", "## " + ("规则" if lang == "zh" else "Rules"), ""]
    lines += [f"- {rule.id}: {both(rule.title, lang)}" for rule in rules]
    return Entry("cause", key, "\n".join(lines), {"cause": cause, "card": card, "rules": [r.id for r in rules]})


def _card_lines(card: Family, known: Knowledge, lang: str) -> list[str]:
    zh = lang == "zh"
    out = [both(card.explain, lang), ""]
    if card.driven_by:
        out.append(("上游：" if zh else "Driven by: ") + ", ".join(card.driven_by))
    if card.leads_to:
        out.append(("导致：" if zh else "Leads to: ") + ", ".join(card.leads_to))
    out += ["", "## " + ("相似原因" if zh else "Looks like"), ""]
    out += [f"- {t.family}: {both(t.says, lang)} [{condition(t.cond)}]" for t in card.look_alikes]
    if card.refuted_by:
        out += ["", "## " + ("可否定的证据" if zh else "Refuted by"), ""]
        out += [f"- {both(r.says, lang)} [{condition(r.cond)}]" for r in card.refuted_by]
    out += ["", "## " + ("动作" if zh else "Actions"), ""]
    out += ["\n".join(lines_of_action(action, lang)) for action in card.actions]
    out += ["", "## " + ("探测" if zh else "Probes"), ""]
    for probe in card.probes:
        out.append(f"- {probe.id} ({probe.kind}): {both(probe.ask, lang)}\n    {probe.command}")
    if card.will_not_help:
        out += ["", "## " + ("无济于事" if zh else "Will not help"), ""]
        out += [f"- {both(text, lang)}" for text in card.will_not_help]
    out += ["", ("来源：" if zh else "Sources: ") + "; ".join(card.cites)]
    return out


def _rule(known: Knowledge, name: str, lang: str, version: str) -> Entry | None:
    by_lower = {key.lower(): key for key in known.rules}
    key = by_lower.get(name.lower())
    if key is None:
        return None
    rule = known.rules[key]
    return Entry("rule", key, rule_text(known, rule, lang), msgspec.to_builtins(rule))


def rule_text(known: Knowledge, rule: Rule, lang: str) -> str:
    """A rule with everything that its card adds."""
    zh = lang == "zh"
    whole = effective(known, rule)
    out = [f"# {rule.id}: {both(rule.title, lang)}", "", both(rule.mechanism, lang), ""]
    if rule.family:
        out.append(("原因：" if zh else "Cause: ") + f"{rule.family} ({rule.layer})")
    out.append(("强度：" if zh else "Strength: ") + f"{rule.strength}; {rule.outcome}")
    if rule.versions:
        out.append(("版本：" if zh else "Versions: ") + ", ".join(f"{e} {s}" for e, s in rule.versions.items()))
    if rule.applies is not None:
        out.append(("适用条件：" if zh else "Applies when: ") + condition(rule.applies))
    out.append(("触发条件：" if zh else "Fires when: ") + condition(rule.when))
    for word, signs in (("支持" if zh else "For", rule.supports), ("反对" if zh else "Against", rule.against)):
        out += [f"- {word} ({s.strength}): {both(s.says, lang)} [{condition(s.cond)}]" for s in signs]
    out += [
        ("- 可否定：" if zh else "- Refuted by: ") + f"{both(r.says, lang)} [{condition(r.cond)}]"
        for r in whole.refuted_by
    ]
    out += [
        ("- 相似：" if zh else "- Looks like ") + f"{t.family}: {both(t.says, lang)} [{condition(t.cond)}]"
        for t in whole.look_alikes
    ]
    out.append(("来源：" if zh else "Sources: ") + "; ".join(whole.cites))
    return "\n".join(out)


def _fact(known: Knowledge, name: str, lang: str, version: str) -> Entry | None:
    fact = known.facts.get(name.lower())
    if fact is None:
        return None
    zh = lang == "zh"
    out = [f"# {fact.name}" + (f" [{fact.unit}]" if fact.unit else ""), "", both(fact.means, lang), ""]
    out.append(("类型：" if zh else "Type: ") + f"{fact.type}; " + ("合并：" if zh else "combined by ") + fact.combine)
    if fact.source:
        out.append(("由此读出：" if zh else "Read by: ") + fact.source)
    if fact.get:
        out.append(("如何取得：" if zh else "How to get it: ") + fact.get.how)
        out.append(
            ("代价：" if zh else "Cost: ") + f"{fact.get.cost}; " + ("风险：" if zh else "risk: ") + fact.get.risk
        )
    if fact.cannot_tell:
        out.append(("它不能说明：" if zh else "Cannot tell: ") + fact.cannot_tell)
    users = _users(known).get(fact.name, [])
    if users:
        out.append(("使用它的规则：" if zh else "Rules that read it: ") + ", ".join(users))
    return Entry("fact", fact.name, "\n".join(out), {"fact": fact, "rules": users})


_USERS: dict[str, dict[str, list[str]]] = {}


def _users(known: Knowledge) -> dict[str, list[str]]:
    """Fact → rules that read it, once per version of the knowledge."""
    if known.version not in _USERS:
        from knowledge.lint_conditions import facts_of_rule

        table: dict[str, list[str]] = {}
        for key, rule in sorted(known.rules.items()):
            for name in facts_of_rule(rule):
                table.setdefault(name, []).append(key)
        _USERS.clear()
        _USERS[known.version] = table
    return _USERS[known.version]


def _page_entry(page: Page, lang: str) -> Entry:
    text = f"# {both(page.title, lang)}\n\n{both(page.body, lang).strip()}\n\n" + "; ".join(page.cites)
    return Entry("page", page.id, text, msgspec.to_builtins(page))


def _page(known: Knowledge, name: str, lang: str, version: str) -> Entry | None:
    key = name.lower().replace(" ", "-")
    page = known.pages.get(key) or known.pages.get(key.replace("_", "-"))
    return _page_entry(page, lang) if page else None


def _metric(known: Knowledge, name: str, lang: str, version: str) -> Entry | None:
    metric = find(name)
    if metric is None:
        return None
    return Entry("metric", metric.name, metric_text(metric, lang, version), msgspec.to_builtins(metric))


def metric_text(metric: Metric, lang: str, version: str = "") -> str:
    """One metric family: meaning, life, names before and after, traps."""
    from knowledge.catalogue import exists, names_in

    zh = lang == "zh"
    out = [
        f"# {metric.name} ({metric.kind}{', ' + metric.unit if metric.unit else ''})",
        "",
        both(metric.means, lang),
        "",
    ]
    if metric.never:
        out.append("任何版本都不存在此名称。" if zh else "No release has ever had this name.")
    life = _life(metric, zh)
    if life:
        out.append(("版本：" if zh else "Life: ") + life)
    if metric.now:
        out.append(("现用名：" if zh else "Use instead: ") + metric.now)
    if metric.was:
        out.append(("旧名：" if zh else "Was: ") + ", ".join(metric.was))
    if version:
        there = exists(metric, version)
        line = f"{metric.engine} {version}: {_HAS[zh][there]}"
        out.append(
            line
            if there
            else f"{line}; {'该版本名称' if zh else 'there'}: {', '.join(names_in(metric, version)) or '–'}"
        )
    if metric.labels:
        out.append(("标签：" if zh else "Labels: ") + ", ".join(metric.labels))
    if metric.needs:
        out.append(("前提：" if zh else "Needs: ") + metric.needs)
    if metric.cannot_tell:
        out.append(("它不能说明：" if zh else "Cannot tell: ") + both(metric.cannot_tell, lang))
    if metric.facts:
        out.append(("给出事实：" if zh else "Gives facts: ") + ", ".join(metric.facts))
    return "\n".join(out)


def _life(metric: Metric, zh: bool) -> str:
    parts = []
    if metric.since:
        parts.append(f"自 {metric.since}" if zh else f"since {metric.since}")
    if metric.gone:
        parts.append(f"{metric.gone} 起移除" if zh else f"gone in {metric.gone}")
    if metric.hidden:
        switch = "--show-hidden-metrics-for-version"
        parts.append(f"{metric.hidden} 中隐藏（{switch}）" if zh else f"hidden in {metric.hidden} ({switch})")
    return ", ".join(parts)


def _flag(known: Knowledge, name: str, lang: str, version: str) -> Entry | None:
    from tools.config.flags import describe_flag, flag_exists

    engine, _, rest = name.partition(":")
    info = describe_flag(rest, engine) if rest else describe_flag(name)
    if info is None:
        return _variable(name, lang)
    zh = lang == "zh"
    out = [f"# --{info.name} ({info.engine})", "", (info.means_zh if zh and info.means_zh else info.means_en), ""]
    if info.fact:
        out.append(("给出事实：" if zh else "Sets fact: ") + info.fact)
    if info.aliases:
        out.append(("别名：" if zh else "Also written: ") + ", ".join(f"--{a}" for a in info.aliases))
    if info.history:
        out.append(("存在于：" if zh else "Releases: ") + info.history)
    if info.since or info.gone:
        life = [f"since {info.since}" if info.since else "", f"gone in {info.gone}" if info.gone else ""]
        out.append(("变迁：" if zh else "Life: ") + ", ".join(x for x in life if x))
    out += [("默认值：" if zh else "Default ") + text for text in info.defaults]
    out += [("注意：" if zh else "Note: ") + text for text in info.notes]
    if info.successor:
        out.append(("后继：" if zh else "Now: ") + f"--{info.successor}")
    if info.instead:
        out.append(("改用：" if zh else "Instead: ") + info.instead)
    if version:
        there = flag_exists(info.name, info.engine, version)
        out.append(f"{info.engine} {version}: {_HAS[zh][there]}")
    pulls = tradeoffs(known, info.name, lang)
    text = "\n".join(out) + "".join(f"\n\n{entry.text}" for entry in pulls if entry.kind == "actions")
    return Entry("flag", info.name, text, msgspec.to_builtins(info))


def _variable(name: str, lang: str) -> Entry | None:
    from tools.config.data import engine_data, load
    from tools.config.flags import spans_text

    item = load().env.get(name.upper())
    data = engine_data("vllm")
    mask = data.env_history.get(name.upper(), 0)
    if item is None and not mask:
        return None
    out = [f"# {name.upper()}", "", both(item.means, lang) if item else "", ""]
    if mask:
        out.append(("存在于 vLLM：" if lang == "zh" else "vLLM releases: ") + spans_text(data, mask))
    if item and item.slows:
        out.append(("会拖慢服务：" if lang == "zh" else "Slows serving: ") + item.slows.why)
    return Entry("flag", name.upper(), "\n".join(out), msgspec.to_builtins(item) if item else {"name": name.upper()})


def _signature(known: Knowledge, name: str, lang: str, version: str) -> Entry | None:
    item = known.signatures.get(name.lower())
    if item is None:
        return None
    zh = lang == "zh"
    out = [
        f"# {item.id}",
        "",
        ("给出事实：" if zh else "Yields: ") + item.fact,
        ("模式：" if zh else "Pattern: ") + item.pattern,
    ]
    if item.proves:
        out.append(("能证明：" if zh else "Proves: ") + item.proves)
    if item.does_not_prove:
        out.append(("不能证明：" if zh else "Does not prove: ") + item.does_not_prove)
    out.append(("来源：" if zh else "Sources: ") + "; ".join(item.cites))
    return Entry("signature", item.id, "\n".join(out), msgspec.to_builtins(item))


_FIND: dict[str, Callable[[Knowledge, str, str, str], Entry | None]] = {
    "cause": _cause, "rule": _rule, "fact": _fact, "page": _page, "metric": _metric, "flag": _flag,
    "signature": _signature,
}  # fmt: skip
