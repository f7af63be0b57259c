"""The steps of the loop and its router as plain functions: ``(env, state) → partial state``. No langgraph, no model.

``collect → screen → hypothesise → probe → verify → challenge → (probe again | ask | conclude | abstain) → write``
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from agent import write as writing
from agent.belief import Hypothesis, calibration, hypotheses
from agent.diagnosis import RuleResult
from agent.plan import enumerate_probes
from agent.predict import attach
from agent.screen import screen as run_rules
from agent.state import Env, Executable, State
from agent.verify import bad_evidence
from tools.derive.derive import against_baseline, derive

Step = Callable[[Env, State], State]


def _log(state: State, line: str) -> list[str]:
    return [*state.get("steps", []), line]


def collect(env: Env, state: State) -> State:
    """Read the inputs once; evidence already in the state (a resumed thread) is kept and added to."""
    ledger = env.ledger(state)
    problems = list(state.get("problems", []))
    kinds = dict(state.get("kinds", {}))
    if env.gather is not None:
        readings, found, more = env.gather()
        ledger.extend(readings)
        problems.extend(p for p in found if p not in problems)
        kinds.update(more)
    if env.assistant is not None and env.words is not None:
        for name, text in env.words().items():
            ledger.extend(env.assistant.propose(name, text, ledger.facts()))
    derive(ledger, env.context)
    if env.baseline is not None:
        ledger.extend(against_baseline(ledger, env.baseline))
    return State(
        evidence=env.keep(ledger),
        problems=problems,
        kinds=kinds,
        started=state.get("started", env.clock()),
        steps=_log(state, f"collect: {len(ledger)} readings from {len(kinds)} inputs"),
    )


def screen(env: Env, state: State) -> State:
    """All rules, five-way."""
    results = run_rules(env.known, env.ledger(state))
    counts: dict[str, int] = {}
    for result in results:
        counts[result.state] = counts.get(result.state, 0) + 1
    env.cache["results"] = results
    line = "screen: " + ", ".join(f"{counts[k]} {k}" for k in sorted(counts))
    return State(results=[msgspec.to_builtins(r) for r in results], steps=_log(state, line))


def results_of(env: Env, state: State) -> list[RuleResult]:
    """Typed rule results of a state."""
    held = env.cache.get("results")
    if held is None or len(held) != len(state.get("results", [])):
        held = msgspec.convert(state.get("results", []), list[RuleResult])
        env.cache["results"] = held
    return list(held)


def beliefs(env: Env, state: State) -> list[Hypothesis]:
    """Hypotheses of a state; recomputed from evidence, never trusted from a checkpoint."""
    return hypotheses(env.known, env.ledger(state), results_of(env, state), env.lang)


def hypothesise(env: Env, state: State) -> State:
    """Rank what the fired rules support."""
    found = beliefs(env, state)
    leads = [{"family": h.family, "key": h.key, "confidence": h.confidence, "refuted": h.refuted} for h in found[:8]]
    line = "hypothesise: " + (", ".join(f"{x['key']} {x['confidence']:.2f}" for x in leads[:3]) or "none")
    return State(leads=leads, steps=_log(state, line))


def candidates(env: Env, state: State) -> list[Executable]:
    """Probes that we can run ourselves, not run yet, with positive expected value; best first."""
    if env.executables is None:
        return []
    ledger = env.ledger(state)
    done = set(state.get("probes_run", []))
    results = results_of(env, state)
    wanted: dict[str, float] = {}
    for result in results:
        if result.state == "missing_input":
            weight = calibration().strengths[env.known.rules[result.id].strength]
            for fact in result.missing:
                wanted[fact] = wanted.get(fact, 0.0) + weight / len(result.missing)
    scored = []
    for probe in env.executables(ledger):
        gain = sum(wanted.get(fact, 0.0) for fact in probe.yields if ledger.value(fact) is None)
        if probe.id not in done and gain > 0:
            scored.append((-gain / (probe.cost + 0.1), probe.id, probe))
    ordered = [probe for _, _, probe in sorted(scored, key=lambda row: row[:2])]
    orderer = env.orderer or env.assistant
    if orderer is not None and len(ordered) > 1:
        ids = orderer.order([p.id for p in ordered], state.get("leads", []))
        if sorted(ids) == sorted(p.id for p in ordered):
            ordered = sorted(ordered, key=lambda p: ids.index(p.id))
    return ordered


def probe(env: Env, state: State) -> State:
    """Run the best executable probe. One that fails yields no evidence and is not run again."""
    todo = candidates(env, state)
    if not todo:
        return State(steps=_log(state, "probe: none with positive expected value"))
    best = todo[0]
    ledger = env.ledger(state)
    before = len(ledger)
    problems = list(state.get("problems", []))
    try:
        ledger.extend(best.run(ledger))
        derive(ledger, env.context)
        line = f"probe {best.id}: {len(ledger) - before} readings"
    except Exception as error:
        problems.append(
            {
                "ref": best.id,
                "what": f"probe failed ({type(error).__name__}: {str(error)[:100]})",
                "do": "",
                "severity": "warning",
            }
        )
        line = f"probe {best.id}: failed"
    return State(
        evidence=env.keep(ledger),
        problems=problems,
        probes_run=[*state.get("probes_run", []), best.id],
        steps=_log(state, line),
    )


def verify(env: Env, state: State) -> State:
    """Recheck evidence that can be rechecked here; screen again so that the rules see all probes."""
    ledger = env.ledger(state)
    dropped = bad_evidence(ledger)
    env.cache.pop("results", None)
    again = screen(env, State(**{**state, "steps": []}))
    again["dropped"] = dropped
    again["steps"] = _log(state, f"verify: {len(ledger) - len(dropped)} of {len(ledger)} readings hold")
    return again


def challenge(env: Env, state: State) -> State:
    """Try to refute the lead and decide where to go: probe again, ask, or end."""
    found = beliefs(env, state)
    leads = [{"family": h.family, "key": h.key, "confidence": h.confidence, "refuted": h.refuted} for h in found[:8]]
    live = [h for h in found if not h.refuted]
    top = live[0] if live else None
    used = len(state.get("probes_run", []))
    spent = env.clock() - state.get("started", env.clock())
    if used < env.max_probes and spent < env.max_seconds and candidates(env, state):
        where = "probe"
    elif top is not None and top.confidence >= calibration().incident_at:
        where = "conclude"
    elif (
        env.interactive
        and state.get("next") != "asked"
        and enumerate_probes(env.known, env.ledger(state), found, results_of(env, state), env.lang)
    ):
        where = "ask"
    else:
        where = "abstain"
    passed = len(top.passed) if top else 0
    line = f"challenge: {top.key if top else 'nothing'} ({passed} refuters passed) → {where}"
    return State(leads=leads, next=where, steps=_log(state, line))


def route(state: State) -> str:
    """Where the graph goes after ``challenge``. Anything unknown ends the loop: a router must have a fallback edge."""
    where = state.get("next", "abstain")
    return {"probe": "probe", "ask": "ask"}.get(where, "write")


def ask(env: Env, state: State) -> State:
    """The question for what only a person can give. The graph interrupts before this node's effect."""
    probes = enumerate_probes(env.known, env.ledger(state), beliefs(env, state), results_of(env, state), env.lang)
    best = probes[0] if probes else None
    question: dict[str, Any] = msgspec.to_builtins(best) if best else {}
    return State(question=question, next="asked", steps=_log(state, f"ask: {question.get('id', 'nothing')}"))


def write(env: Env, state: State) -> State:
    """The diagnosis object from evidence and rule results."""
    answer = writing.compose(env, state, beliefs(env, state), results_of(env, state))
    attach(env.ledger(state), answer.actions)
    if env.assistant is not None:
        answer.narrative = env.assistant.narrate(answer)
        used = env.assistant.usage()
        answer.provenance.model = str(used.get("name", ""))
        answer.provenance.model_calls = int(used.get("calls", 0))
        answer.provenance.model_tokens = int(used.get("tokens", 0))
        answer.provenance.seconds["model"] = float(used.get("seconds", 0.0))
    return State(answer=msgspec.to_builtins(answer), steps=_log(state, f"write: {answer.outcome}"))


STEPS: dict[str, Step] = {
    "collect": collect,
    "screen": screen,
    "hypothesise": hypothesise,
    "probe": probe,
    "verify": verify,
    "challenge": challenge,
    "ask": ask,
    "write": write,
}
NEXT: dict[str, str] = {
    "collect": "screen",
    "screen": "hypothesise",
    "hypothesise": "probe",
    "probe": "verify",
    "verify": "challenge",
    "ask": "write",
}


def drive(env: Env, state: State | None = None) -> State:
    """The light driver: the same steps with the same router, without langgraph. Ends within the probe budget."""
    now: State = dict(state or {})  # type: ignore[assignment]
    here = "collect"
    for _ in range(6 + 4 * (env.max_probes + 2)):
        now = {**now, **STEPS[here](env, now)}
        if here == "write":
            return now
        here = route(now) if here == "challenge" else NEXT[here]
    return {**now, **write(env, now)}
