"""Actions for the verdict: valid for the running version, free of contradictions, safest first."""

from __future__ import annotations

from agent.belief import Hypothesis
from agent.diagnosis import ActionAdvice
from agent.screen import tree, version_applies
from knowledge.logic import ConditionError, evaluate
from knowledge.schema import Action, Knowledge, Text, both
from tools.view import Ledger

_OPPOSITE = {"raise": "lower", "lower": "raise", "on": "off", "off": "on"}
_SAFETY = {"none": 0, "client": 1, "online": 1, "restart": 2, "hardware": 3}


def advise(
    known: Knowledge, ledger: Ledger, ordered: list[Hypothesis], roles: dict[str, str], lang: str
) -> tuple[list[ActionAdvice], list[str]]:
    """Actions of roots first, then of contributing causes; and what will *not* help.

    Never both directions of one flag: the higher-ranked cause wins, the other action is left out.
    """
    taken: dict[str, str] = {}
    out: list[ActionAdvice] = []
    futile: list[str] = []
    for h in ordered:
        if roles.get(h.family) == "symptom" and any(roles.get(o.family) == "root" for o in ordered):
            continue
        card = known.families.get(h.family)
        actions = [a for rule in h.rules for a in rule.actions] + (card.actions if card else [])
        for action in actions:
            if not _valid(action, ledger):
                continue
            if action.flag and action.direction:
                if taken.get(action.flag) == _OPPOSITE.get(action.direction, "?"):
                    continue
                taken.setdefault(action.flag, action.direction)
            advice = _advice(action, h, lang)
            if all(advice.do != other.do for other in out):
                out.append(advice)
        for text in card.will_not_help if card else []:
            line = both(text, lang)
            if line not in futile:
                futile.append(line)
    return out[:8], futile[:6]


def _valid(action: Action, ledger: Ledger) -> bool:
    """False when the running version lacks the flag, or the action's own condition is not met."""
    engine = str(ledger.value("engine.name") or "")
    version = ledger.value("engine.version")
    if version_applies(action.versions, engine, str(version) if version is not None else None) is False:
        return False
    if action.when is None:
        return True
    try:
        return evaluate(tree(action.when), ledger).truth is not False
    except ConditionError:
        return False


_UNDO = {
    "restart": Text(en="restart with the previous value", zh="以原值重启"),
    "online": Text(en="undo the change", zh="撤销改动"),
    "client": Text(en="undo in the client", zh="在客户端撤销"),
    "hardware": Text(en="return to the previous machine", zh="换回原机器"),
    "none": Text(en="nothing to undo", zh="无需回退"),
}


def _advice(action: Action, h: Hypothesis, lang: str) -> ActionAdvice:
    rollback = action.rollback or both(_UNDO[action.how], lang)
    return ActionAdvice(
        do=both(action.do, lang), gain=both(action.gain, lang), cost=both(action.cost, lang), risk=both(action.risk, lang),
        how=action.how, family=h.family, command=action.command, rollback=rollback, expect=action.expect,
        direction=action.direction, flag=action.flag,
    )  # fmt: skip


def contradictions(actions: list[ActionAdvice]) -> list[tuple[str, str]]:
    """Pairs of advice that pull one flag both ways. Empty by construction; evals check it again."""
    bad = []
    for i, one in enumerate(actions):
        for two in actions[i + 1 :]:
            if one.flag and one.flag == two.flag and _OPPOSITE.get(one.direction) == two.direction:
                bad.append((one.do, two.do))
    return bad
