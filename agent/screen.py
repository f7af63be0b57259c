"""All rules over the ledger, five-way: fired, clear, missing_input, not_applicable, error. Pure and order-free."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from agent.diagnosis import RuleResult
from knowledge.logic import ConditionError, Leaf, Node, evaluate, parse
from knowledge.schema import Knowledge, Rule
from knowledge.versions import holds
from tools.view import Ledger


@lru_cache(maxsize=4096)
def _parse_key(key: str) -> Leaf | Node:
    import json

    return parse(json.loads(key))


def tree(cond: Any) -> Leaf | Node:
    """A parsed condition, parsed once per distinct text."""
    if isinstance(cond, str):
        return parse(cond)
    import json

    return _parse_key(json.dumps(cond, ensure_ascii=False))


def version_applies(versions: dict[str, str], engine: str, version: str | None) -> bool | None:
    """Whether a rule, action or signature holds for the running engine; ``None`` when that is not known.

    No ranges at all: holds everywhere. An engine that is not listed is out of range only when it is known.
    """
    if not versions:
        return True
    if not engine:
        return None
    if engine not in versions:
        return False
    return holds(versions[engine], version)


def screen(known: Knowledge, ledger: Ledger) -> list[RuleResult]:
    """Evaluate every rule. Order of the result is the order of rule ids."""
    engine = str(ledger.value("engine.name") or "")
    version = ledger.value("engine.version")
    text = str(version) if version is not None else None
    return [_one(rule, ledger, engine, text) for _, rule in sorted(known.rules.items())]


def _one(rule: Rule, ledger: Ledger, engine: str, version: str | None) -> RuleResult:
    result = RuleResult(id=rule.id, family=rule.family, layer=rule.layer, state="clear")
    try:
        if rule.lifecycle == "deprecated" or version_applies(rule.versions, engine, version) is False:
            result.state = "not_applicable"
            return result
        if rule.applies is not None:
            guard = evaluate(tree(rule.applies), ledger)
            if guard.truth is False:
                result.state, result.evidence = "not_applicable", list(guard.used)
                return result
            if guard.truth is None:
                result.state, result.missing = "missing_input", list(guard.missing)
                return result
        verdict = evaluate(tree(rule.when), ledger)
    except (ConditionError, TypeError, ValueError) as error:
        result.state, result.error = "error", str(error)[:200]
        return result
    result.evidence, result.missing, result.held = list(verdict.used), list(verdict.missing), list(verdict.held)
    result.state = {True: "fired", False: "clear", None: "missing_input"}[verdict.truth]  # type: ignore[assignment]
    return result
