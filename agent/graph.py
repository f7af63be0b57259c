"""The LangGraph wiring of the steps: checkpoints, interrupts, streaming. The only logic here is wiring.

State is plain JSON (checkpoints outlive code); everything live is in the env. Tracing of transitive packages is off.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent import steps
from agent.chat.supersede import recollect
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
        special = {"collect": _collect, "ask": _ask if checkpointer is not None else None}.get(name)
        graph.add_node(name, special(env) if special else _node(env, step))
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
        graph.add_edge("wait", "collect")
    graph.add_edge("write", END)
    compiled: CompiledStateGraph[Any, Any, Any, Any] = graph.compile(checkpointer=checkpointer)
    return compiled


def _node(env: Env, step: Callable[[Env, State], State]) -> Callable[[State], State]:
    def run(state: State) -> State:
        return step(env, state)

    return run


def _collect(env: Env) -> Callable[[State], State]:
    """Reading inputs and marking them as read are one checkpoint: a crash can neither lose nor double them."""

    def run(state: State) -> State:
        read = int(env.cache.get("inbox", state.get("inbox_done", 0)))
        return State(**{**recollect(env, state), "inbox_done": read})

    return run


def _ask(env: Env) -> Callable[[State], State]:
    """The question and what can be said so far, in one checkpoint: a thread that waits for hours has its answer."""

    def run(state: State) -> State:
        asked = steps.ask(env, state)
        told = steps.write(env, State(**{**state, **asked}))
        return State(**{**asked, **told})

    return run


def _wait(env: Env) -> Callable[[State], State]:
    """Interrupt in a node of its own: it re-runs from its first line on resume, so nothing happens before it.

    What the person gave is in the inbox and reaches the ledger through ``collect``; the value only says to go on.
    """

    def run(state: State) -> State:
        from langgraph.types import interrupt

        interrupt(state.get("question", {}))
        done = [*state.get("steps", []), "wait: answered"]
        return State(next="", probes_run=[], started=env.clock(), question={}, steps=done)

    return run


def run_graph(env: Env, state: State | None = None) -> State:
    """One-shot run through the graph without checkpoints; gives what the light driver gives."""
    compiled = build(env)
    final: Any = compiled.invoke(dict(state or {}), {"recursion_limit": RECURSION + 4 * env.max_probes})
    return final  # type: ignore[no-any-return]


def stream(compiled: Any, given: Any, thread: str) -> Iterator[tuple[str, Any]]:
    """``(step name, update)`` pairs of one checkpointed run; an interrupt arrives as ``("interrupt", question)``.

    Each step's checkpoint is on disk before the next step begins.
    """
    config = {"configurable": {"thread_id": thread}, "recursion_limit": RECURSION}
    for chunk in compiled.stream(given, config, stream_mode="updates", durability="sync"):
        for name, update in chunk.items():
            if name == "__interrupt__":
                yield "interrupt", update[0].value
            else:
                yield name, update


def answer_with(entries: list[int]) -> Any:
    """The command that resumes an interrupted thread; the numbers name inbox entries."""
    from langgraph.types import Command

    return Command(resume={"inbox": entries})


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
