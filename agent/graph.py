"""The LangGraph wiring of the steps: checkpoints, interrupts, streaming. The only logic here is wiring.

State is plain JSON (checkpoints outlive code); everything live is in the env. Tracing of transitive packages is off.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent import steps
from agent.state import Env, State

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

RECURSION = 64
_TRACING = ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2")


def quiet() -> None:
    """Switch off every tracing variable an operator's shell may have inherited: incident data stays in the house."""
    for name in _TRACING:
        os.environ[name] = "false"
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")


def build(env: Env, checkpointer: Any = None) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile the graph for one env. With a ``checkpointer`` the ``ask`` node interrupts for a person's answer."""
    quiet()
    from langgraph.graph import END, START, StateGraph

    graph: Any = StateGraph(State)
    for name, step in steps.STEPS.items():
        if name != "ask":
            graph.add_node(name, _node(env, step))
    graph.add_node("ask", _node(env, steps.ask))
    graph.add_edge(START, "collect")
    for here, there in steps.NEXT.items():
        if here != "ask":
            graph.add_edge(here, there)
    graph.add_conditional_edges("challenge", steps.route, {"probe": "probe", "ask": "ask", "write": "write"})
    if checkpointer is None:
        graph.add_edge("ask", "write")
    else:
        graph.add_node("wait", _wait(env))
        graph.add_edge("ask", "wait")
        graph.add_edge("wait", "screen")
    graph.add_edge("write", END)
    return graph.compile(checkpointer=checkpointer)


def _node(env: Env, step: Callable[[Env, State], State]) -> Callable[[State], State]:
    def run(state: State) -> State:
        return step(env, state)

    return run


def _wait(env: Env) -> Callable[[State], State]:
    """Interrupt in a node of its own: it re-runs from its first line on resume, so nothing happens before it."""

    def run(state: State) -> State:
        from langgraph.types import interrupt

        given = interrupt(state.get("question", {}))
        return absorb(env, state, given if isinstance(given, dict) else {"text": str(given)})

    return run


def absorb(env: Env, state: State, given: dict[str, Any]) -> State:
    """New evidence of a resumed thread: ``{"text": …}`` or ``{"paths": […]}``; appended, never replacing."""
    import msgspec

    from tools.derive.derive import derive
    from tools.intake.collect import parts_of, read_all
    from tools.part import Part

    parts, problems = parts_of([Path(p) for p in given.get("paths", [])])
    if given.get("text"):
        number = len(state.get("pasted", [])) + 1
        parts.append(Part(name=f"said-{number}.md", data=str(given["text"]).encode()))
    readings, bad, kinds = read_all(parts, env.context)
    ledger = env.ledger(state)
    before = len(ledger)
    ledger.extend(readings)
    derive(ledger, env.context)
    pasted = (
        [*state.get("pasted", []), {"text": str(given.get("text", ""))[:20000]}]
        if given.get("text")
        else state.get("pasted", [])
    )
    return State(
        evidence=env.keep(ledger),
        problems=[*state.get("problems", []), *[msgspec.to_builtins(p) for p in [*problems, *bad]]],
        kinds={**state.get("kinds", {}), **kinds},
        pasted=pasted,
        next="",
        steps=[*state.get("steps", []), f"answer: {len(ledger) - before} new readings"],
    )


def run_graph(env: Env, state: State | None = None) -> State:
    """One-shot run through the graph without checkpoints; gives what the light driver gives."""
    compiled = build(env)
    final: Any = compiled.invoke(dict(state or {}), {"recursion_limit": RECURSION + 4 * env.max_probes})
    return final  # type: ignore[no-any-return]


def stream(compiled: Any, given: Any, thread: str) -> Iterator[tuple[str, Any]]:
    """``(step name, update)`` pairs of one checkpointed run; an interrupt arrives as ``("ask", question)``."""
    config = {"configurable": {"thread_id": thread}, "recursion_limit": RECURSION}
    for chunk in compiled.stream(given, config, stream_mode="updates"):
        for name, update in chunk.items():
            if name == "__interrupt__":
                yield "ask", update[0].value
            else:
                yield name, update


def sqlite_saver(path: Path) -> Any:
    """A SQLite checkpointer with strict decoding. The caller closes ``saver.conn``."""
    quiet()
    import sqlite3

    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
    from langgraph.checkpoint.sqlite import SqliteSaver

    path.parent.mkdir(parents=True, exist_ok=True)
    conn = sqlite3.connect(str(path), check_same_thread=False)
    conn.execute("PRAGMA journal_mode=WAL")
    conn.execute("PRAGMA busy_timeout=5000")
    return SqliteSaver(conn, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
