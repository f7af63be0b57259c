"""The Python API: ``from agent import diagnose``. Typed, no printing, no global state."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from agent.diagnosis import Diagnosis
from agent.investigate import investigate, make_env, site_knowledge
from agent.sources import Sources, moment, parse_slo, split_args
from tools.contract import Context

__all__ = ["Diagnosis", "diagnose", "diagnose_async"]

P = ParamSpec("P")
R = TypeVar("R")


def diagnose(
    *sources: str | Path,
    text: str | None = None,
    slo: dict[str, float] | None = None,
    baseline: str | Path | None = None,
    prometheus: str = "",
    match: str = "",
    start: str = "-30m",
    end: str = "now",
    window_s: float = 0.0,
    lang: str = "en",
    knowledge: list[Path] | None = None,
) -> Diagnosis:
    """Diagnose files, folders, ``/metrics`` addresses, pasted ``text`` or a Prometheus range.

    ``slo``: limits in seconds, e.g. ``{"ttft_p99": 2.0}``. ``window_s``: how long live addresses are scraped.
    Returns a :class:`Diagnosis` (it renders itself in a notebook). Raises ``ValueError`` for malformed or no
    arguments only; unreadable input is listed in ``problems``.
    """
    paths, urls, _ = split_args([str(s) for s in sources])
    wanted = Sources(paths=paths, urls=urls, window_s=window_s, prometheus=prometheus, match=match)
    if prometheus:
        wanted.start, wanted.end = moment(start), moment(end)
    if text is not None:
        wanted.texts["pasted.md"] = text.encode("utf-8", "replace")
    if wanted.empty():
        raise ValueError("nothing to diagnose: give files, folders, addresses, text or prometheus")
    env = make_env(
        wanted,
        known=site_knowledge(knowledge),
        context=Context(slo=dict(slo or {})),
        baseline=[Path(baseline)] if baseline else None,
        lang=lang,
    )
    return investigate(env)[0]


def _in_thread(work: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """The same call in a worker thread, with the same parameters for type checkers and editors."""

    @wraps(work)
    async def call(*args: P.args, **options: P.kwargs) -> R:
        import asyncio

        return await asyncio.to_thread(work, *args, **options)

    return call


diagnose_async = _in_thread(diagnose)
"""For event loops: :func:`diagnose` in a worker thread, awaited. Same parameters, same answer."""


def slo_from_text(items: list[str]) -> dict[str, float]:
    """``["ttft_p99=2s"]`` → limits in seconds."""
    return parse_slo(items)
