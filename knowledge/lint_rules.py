"""Rules and family cards: complete, connected, free of contradictions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from knowledge.effective import effective, rules_of
from knowledge.lint_base import Book, close
from knowledge.schema import Action, Family, Knowledge, Probe, Rule
from knowledge.versions import holds

# Ends of a chain besides families; the agent's chain gives them titles (a test holds both lists together).
SYMPTOMS = frozenset({"ttft", "tpot", "throughput", "errors", "crash", "hang", "startup"})
ENGINES = frozenset({"vllm", "sglang", "tgi", "tensorrt_llm"})
PREFIX = {
    "hardware": "HW-", "kernel": "KER-", "memory": "MEM-", "scheduling": "SCH-", "parallelism": "PAR-",
    "speculative": "SPEC-", "application": "APP-",
}  # fmt: skip
OUTCOME_PREFIX = {"healthy": "OK-", "theoretical_limit": "LIM-"}
OPPOSITE = {"raise": "lower", "lower": "raise", "on": "off", "off": "on"}
FACT_LIKE = re.compile(r"(?<![\w.\-/])[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+(?![\w/])")


def check(book: Book) -> None:
    """Findings for rules, cards, causes and the chain between them."""
    known = book.knowledge()
    for rule in book.rules.values():
        _rule(book, known, rule)
    for card in book.families.values():
        _card(book, card)
    for cause in book.causes:
        _cause(book, known, cause)
    _cycles(book)


def _rule(book: Book, known: Knowledge, rule: Rule) -> None:
    _place(book, rule)
    if rule.outcome == "incident" and not rule.family:
        book.add("rules", rule.id, "an incident rule names no cause family", "give family: one id of causes.yaml")
    if rule.family and rule.family not in book.causes:
        book.add("rules", rule.id, f"unknown cause {rule.family}", close(rule.family, book.causes))
    if not rule.cites:
        book.add("rules", rule.id, "no citation", "cite the essay section, engine source or docs with version")
    for name in rule.explains_away:
        if name not in book.causes:
            book.add("rules", rule.id, f"explains_away: unknown cause {name}", close(name, book.causes))
    whole = effective(known, rule)
    if rule.outcome == "incident" and not whole.look_alikes:
        book.add("rules", rule.id, "no look-alike, neither here nor on the card", "name one and what separates it")
    if rule.outcome == "incident" and not whole.refuted_by:
        book.add("rules", rule.id, "nothing would refute it, neither here nor on the card", "add refuted_by")
    _edges(book, "rules", rule.id, rule.family, rule)
    probes = {probe.id for probe in whole.probes}
    for refuter in whole.refuted_by:
        if refuter.probe and refuter.probe not in probes:
            book.add("rules", rule.id, f"refuter names unknown probe {refuter.probe}", close(refuter.probe, probes))
    _versions(book, "rules", rule.id, "versions", rule.versions)
    _actions(book, "rules", rule.id, rule.actions)
    _probes(book, "rules", rule.id, rule.probes)
    for refuter in rule.refuted_by:
        if refuter.cond == rule.when:
            book.add("rules", rule.id, "a refuter is the rule's own condition", "state what would be false of it")


def _place(book: Book, rule: Rule) -> None:
    """Ids carry their layer or outcome, and a rule stands in the file of its name."""
    cause = book.causes.get(rule.family)
    layer = rule.layer or (cause.layer if cause else "")
    wanted = OUTCOME_PREFIX.get(rule.outcome) or PREFIX.get(layer, "")
    if wanted and not rule.id.startswith(wanted):
        book.add("rules", rule.id, f"the id does not begin with {wanted}", "name rules after their layer or outcome")
    file = book.file_of("rules", rule.id)
    if not file.endswith(f"/{rule.id}.yaml"):
        book.add("rules", rule.id, "the file has another name", f"move it to {rule.id}.yaml")


def _edges(book: Book, kind: str, key: str, own: str, record: Rule | Family) -> None:
    for twin in record.look_alikes:
        if twin.family not in book.causes:
            book.add(kind, key, f"look-alike: unknown cause {twin.family}", close(twin.family, book.causes))
        if twin.family == own:
            book.add(kind, key, "the look-alike is its own family", "name another family or drop it")
    for name in record.driven_by:
        if name not in book.causes:
            book.add(kind, key, f"driven_by: unknown cause {name}", close(name, book.causes))
    for name in record.leads_to:
        if name not in book.causes and name not in SYMPTOMS:
            pool = [*book.causes, *SYMPTOMS]
            book.add(kind, key, f"leads_to: {name} is no cause and no symptom", close(name, pool))
    if own and own in (*record.driven_by, *record.leads_to):
        book.add(kind, key, "the chain leads from the family to itself", "drop that edge")


def _versions(book: Book, kind: str, key: str, place: str, versions: dict[str, str]) -> None:
    for engine, spec in versions.items():
        if engine not in ENGINES:
            book.add(kind, key, f"{place}: unknown engine {engine}", close(engine, ENGINES))
        try:
            holds(spec, "1.0")
        except ValueError as error:
            book.add(kind, key, f"{place}: {error}", "write it like '>=0.8,<0.11'")


def _card(book: Book, card: Family) -> None:
    if card.id not in book.causes:
        book.add("families", card.id, "a card for no cause of causes.yaml", close(card.id, book.causes))
    _edges(book, "families", card.id, card.id, card)
    _actions(book, "families", card.id, card.actions)
    _probes(book, "families", card.id, card.probes)
    _contradictions(book, card)
    if not card.look_alikes:
        book.add("families", card.id, "no look-alike", "name one family with the same symptom and what separates it")
    if not card.cites:
        book.add("families", card.id, "no citation", "cite the essay section, engine source or docs with version")
    if not any(effect in SYMPTOMS or effect in book.causes for effect in card.leads_to):
        book.add("families", card.id, "leads nowhere", "give leads_to: a family or a symptom")


def _cause(book: Book, known: Knowledge, cause: str) -> None:
    """What every family of the closed list must have."""
    card = book.families.get(cause)
    if card is None:
        book.add("causes", cause, "no family card", f"write families/{book.causes[cause].layer}/{cause}.yaml")
        return
    rules = rules_of(known, cause)
    if not rules:
        book.add("families", cause, "no rule fires for it", "write at least one: inferdx lint-knowledge --new-rule")
    if not card.refuted_by and not any(rule.refuted_by for rule in rules):
        book.add("families", cause, "nothing would refute it", "add refuted_by to the card or its rules")
    actions = [*card.actions, *(action for rule in rules for action in rule.actions)]
    if len(actions) < 2:
        book.add("families", cause, f"{len(actions)} action(s)", "give at least two, with gain, cost and risk")
    runs = [p for p in [*card.probes, *(p for rule in rules for p in rule.probes)] if p.kind == "control_run"]
    if not runs:
        book.add("families", cause, "no control run", "add a probe of kind control_run: what to change, keep, read")


def _actions(book: Book, kind: str, key: str, actions: list[Action]) -> None:
    for number, action in enumerate(actions, 1):
        place = f"action {number}"
        names = FACT_LIKE.findall(action.expect)
        if not names:
            book.add(
                kind, key, f"{place}: expect names no fact", "say which fact changes and how: 'kv.usage.max falls'"
            )
        for name in names:
            if name not in book.facts:
                book.add(kind, key, f"{place}: expect names unknown fact {name}", close(name, book.facts))
        if bool(action.flag) != bool(action.direction):
            book.add(kind, key, f"{place}: flag and direction go together", "give both or neither")
        _versions(book, kind, key, place, action.versions)


def _probes(book: Book, kind: str, key: str, probes: list[Probe]) -> None:
    seen: set[str] = set()
    for probe in probes:
        place = f"probe {probe.id}"
        if probe.id in seen:
            book.add(kind, key, f"{place}: the id stands twice", "rename one")
        seen.add(probe.id)
        for name in probe.yields:
            if name not in book.facts:
                book.add(kind, key, f"{place}: yields unknown fact {name}", close(name, book.facts))
        for name in FACT_LIKE.findall(probe.read):
            if name not in book.facts:
                book.add(kind, key, f"{place}: reads unknown fact {name}", close(name, book.facts))
        if probe.kind == "control_run":
            gaps = [name for name in ("change", "keep", "read", "if_true", "if_false") if not getattr(probe, name)]
            if gaps:
                book.add(kind, key, f"{place}: a control run without {', '.join(gaps)}", "fill them in")
        if not probe.command.strip():
            book.add(kind, key, f"{place}: no command", "give the exact command, or the words to ask")


def _contradictions(book: Book, card: Family) -> None:
    """Two actions of one card that pull one flag both ways under conditions that can hold together."""
    for i, one in enumerate(card.actions):
        for two in card.actions[i + 1 :]:
            against = OPPOSITE.get(one.direction) == two.direction and one.flag == two.flag and one.flag
            if against and (one.when is None or two.when is None or one.when == two.when):
                book.add(
                    "families", card.id, f"advice to {one.direction} and to {two.direction} {one.flag}",
                    "give both actions a when that excludes the other",
                )  # fmt: skip


def _cycles(book: Book) -> None:
    """Pairs of families that are each other's root."""
    edges: set[tuple[str, str]] = set()
    records: Iterable[tuple[str, Rule | Family]] = [
        *((card.id, card) for card in book.families.values()),
        *((rule.family, rule) for rule in book.rules.values() if rule.family),
    ]
    for own, record in records:
        edges.update((root, own) for root in record.driven_by)
        edges.update((own, effect) for effect in record.leads_to if effect in book.causes)
    for root, effect in sorted(edges):
        if root < effect and (effect, root) in edges:
            book.add(
                "families", root, f"{root} drives {effect} and {effect} drives {root}",
                "keep the edge from the root; a victim is not blamed for its driver",
            )  # fmt: skip
