"""A rule as it works: its own signs, separators, refuters, actions and probes together with its family card's."""

from __future__ import annotations

from msgspec import Struct

from knowledge.schema import Action, Family, Knowledge, LookAlike, Probe, Refuter, Rule


class Effective(Struct, frozen=True, kw_only=True):
    """The merged view; the rule's own entries come first. Rules without a family have an empty card."""

    rule: Rule
    card: Family | None
    look_alikes: tuple[LookAlike, ...]
    refuted_by: tuple[Refuter, ...]
    actions: tuple[Action, ...]
    probes: tuple[Probe, ...]
    driven_by: tuple[str, ...]
    leads_to: tuple[str, ...]
    cites: tuple[str, ...]


def effective(known: Knowledge, rule: Rule) -> Effective:
    """Merge one rule with its card."""
    card = known.families.get(rule.family) if rule.family else None
    return Effective(
        rule=rule,
        card=card,
        look_alikes=(*rule.look_alikes, *(card.look_alikes if card else ())),
        refuted_by=(*rule.refuted_by, *(card.refuted_by if card else ())),
        actions=(*rule.actions, *(card.actions if card else ())),
        probes=(*rule.probes, *(card.probes if card else ())),
        driven_by=tuple(dict.fromkeys([*rule.driven_by, *(card.driven_by if card else ())])),
        leads_to=tuple(dict.fromkeys([*rule.leads_to, *(card.leads_to if card else ())])),
        cites=tuple(dict.fromkeys([*rule.cites, *(card.cites if card else ())])),
    )


def rules_of(known: Knowledge, family: str) -> list[Rule]:
    """Rules of a family in the order of their ids; outcome rules (healthy, limit) have none."""
    return [rule for _, rule in sorted(known.rules.items()) if rule.family == family]
