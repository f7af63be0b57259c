"""A knowledge base of three families, small enough to know every answer by hand."""

from __future__ import annotations

from typing import Any

from agent.belief import Hypothesis, hypotheses
from agent.fixtures import ledger_of
from agent.screen import screen
from knowledge.schema import CauseDef, FactDef, Family, Knowledge, LookAlike, Refuter, Rule, Sign, Strength, Text
from tools.contract import Reading, Source
from tools.view import Ledger

FLAGS = [f"flag.n{i}" for i in range(12)]
STRENGTHS: tuple[Strength, ...] = ("decisive", "strong", "moderate", "weak")
NOTE = Text(en="so", zh="是")


def sign(fact: str, strength: Strength = "moderate") -> Sign:
    """A sign that stands on one flag."""
    return Sign(cond=fact, says=NOTE, strength=strength)


def refuter(fact: str) -> Refuter:
    """A refuter that stands on one flag."""
    return Refuter(cond=fact, says=NOTE)


def twin(fact: str, family: str = "other") -> LookAlike:
    """A look-alike that one flag separates."""
    return LookAlike(family=family, says=NOTE, cond=fact)


def rule(**fields: Any) -> Rule:
    """A rule of the family ``cause`` that fires on ``flag.n0`` unless told otherwise."""
    base: dict[str, Any] = {"id": "R-1", "family": "cause", "title": NOTE, "mechanism": NOTE, "when": "flag.n0"}
    return Rule(**{**base, "layer": "memory", **fields})


def knowledge(*rules: Rule, **cards: dict[str, Any]) -> Knowledge:
    """Rules and, by family, fields of its card."""
    facts = {name: FactDef(name=name, unit="", type="bool", means=NOTE) for name in FLAGS}
    facts["rate.since_start"] = FactDef(name="rate.since_start", unit="per s", means=NOTE)
    facts["words.resemble"] = FactDef(name="words.resemble", unit="fraction", means=NOTE, combine="first")
    names = {"cause", "other", "third", *cards}
    layers = dict.fromkeys(names, "memory")
    return Knowledge(
        version="test", facts=facts, signatures={}, pages={}, rules={r.id: r for r in rules},
        families={n: Family(id=n, title=NOTE, explain=NOTE, layer="memory", **cards.get(n, {})) for n in names},
        causes={n: CauseDef(id=n, layer=layers[n], means=n) for n in names},
    )  # fmt: skip


def believe(known: Knowledge, facts: dict[str, Any], *, alike: float = 0.0) -> dict[str, Hypothesis]:
    """Hypotheses by key. ``alike``: share of the likeness of the words to ``cause``."""
    ledger = ledger_of(known, facts)
    if alike:
        ledger.add(
            Reading(
                fact="words.resemble", value=alike, labels={"family": "cause"}, source=Source(kind="file", ref="r.md")
            )
        )
    return from_ledger(known, ledger)


def from_ledger(known: Knowledge, ledger: Ledger) -> dict[str, Hypothesis]:
    """Hypotheses by key."""
    return {h.key: h for h in hypotheses(known, ledger, screen(known, ledger))}
