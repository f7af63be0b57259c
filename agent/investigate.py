"""One investigation from sources to diagnosis: builds the env, runs the light driver or the graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from agent.diagnosis import Diagnosis
from agent.sources import Sources, gatherer, words_of
from agent.state import Env, State
from agent.steps import drive
from knowledge import Knowledge, load
from tools.contract import Context
from tools.derive.derive import derive
from tools.view import Ledger


def site_knowledge(extra: list[Path] | None = None) -> Knowledge:
    """Shipped knowledge plus ``--knowledge`` folders and ``~/.config/inferdx/knowledge`` when present.

    Their ``site.yaml`` files set limits, thresholds and silenced rules. Raises :class:`knowledge.loader.KnowledgeError`.
    """
    from knowledge.site import apply, read_site

    roots = list(extra or [])
    home = Path.home() / ".config" / "inferdx" / "knowledge"
    if home.is_dir() and home not in roots:
        roots.insert(0, home)
    return apply(load(roots), read_site(roots))


def baseline_ledger(known: Knowledge, paths: list[Path], context: Context) -> Ledger:
    """Facts of a baseline recording, for ratios now ÷ then."""
    ledger = Ledger(known)
    readings, _, _ = gatherer(Sources(paths=paths), context)()
    ledger.extend(readings)
    derive(ledger, context)
    return ledger


def make_env(
    sources: Sources,
    *,
    known: Knowledge | None = None,
    context: Context | None = None,
    baseline: list[Path] | None = None,
    lang: str = "en",
    **options: Any,
) -> Env:
    """The env of one investigation. ``options`` are further fields of :class:`~agent.state.Env`."""
    from agent.executables import executables

    known = known or site_knowledge()
    context = context or Context()
    if known.slo:
        context = msgspec.structs.replace(context, slo={**known.slo, **context.slo})
    options.setdefault("words", lambda: words_of(sources))
    env = Env(
        known=known,
        context=context,
        lang=lang,
        gather=gatherer(sources, context),
        executables=executables,
        **options,
    )
    if baseline:
        env.baseline = baseline_ledger(known, baseline, context)
    return env


def investigate(env: Env, state: State | None = None, *, graph: bool = False) -> tuple[Diagnosis, State]:
    """Run to the end. ``graph`` uses the LangGraph wiring instead of the light driver; both give the same answer."""
    if graph:
        from agent.graph import run_graph

        final = run_graph(env, state)
    else:
        final = drive(env, state)
    return msgspec.convert(final["answer"], Diagnosis), final
