"""One chat thread: evidence in, diagnosis out, questions answered. No terminal and no Slack in here.

The graph with a SQLite checkpointer holds the state; the inbox holds what was said. With no model it is still a useful
dialogue: paste, read, ask, explain. A model only orders, narrates and words answers, behind the same checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from agent.chat.inbox import Inbox, new_thread
from agent.diagnosis import Diagnosis, ProbeAdvice
from agent.graph import build, sqlite_saver, stream
from agent.investigate import make_env, site_knowledge
from agent.sources import Sources
from agent.state import Env, State
from knowledge.schema import Knowledge
from tools.contract import Context
from tools.part import Part

Note = Callable[[str], None]


class Session:
    """A thread. ``events`` of a turn are ``("progress", text)``, ``("diagnosis", Diagnosis)``, ``("ask", ProbeAdvice)``."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        known: Knowledge | None = None,
        lang: str = "en",
        context: Context | None = None,
        attach: Callable[[Env], Any] | None = None,
        saver: Any = None,
        thread: str = "",
    ) -> None:
        self.folder = folder or new_thread()
        self.known = known or site_knowledge()
        self.lang = lang
        self.context = context or Context()
        self.inbox = Inbox(self.folder)
        self.saver = saver or sqlite_saver(self.folder / "state.sqlite")
        self.thread = thread or self.folder.name
        self._attach = attach
        self.env: Env | None = None
        self.before: Diagnosis | None = None
        self.diagnosis: Diagnosis | None = self._restore()

    # ── state ────────────────────────────────────────────────────────────────────────────────────────────────
    def _config(self) -> dict[str, Any]:
        return {"configurable": {"thread_id": self.thread}}

    def values(self) -> State:
        """The checkpointed state; empty for a new thread."""
        found = self.saver.get(self._config())
        return dict(found["channel_values"]) if found else {}  # type: ignore[return-value]

    def _restore(self) -> Diagnosis | None:
        answer = self.values().get("answer")
        return msgspec.convert(answer, Diagnosis) if answer else None

    def unfinished(self) -> list[dict[str, Any]]:
        """Inbox entries that never reached a finished turn: a crash came between."""
        done = int(self.values().get("inbox_done", 0))
        return [e for e in self.inbox.entries() if int(e["n"]) > done]

    def recover(self) -> Iterator[tuple[str, Any]]:
        """Work off what a crash left behind."""
        left = self.unfinished()
        if left:
            yield from self._turn(left)

    # ── turns ────────────────────────────────────────────────────────────────────────────────────────────────
    def attach(
        self, paths: list[str], urls: list[str] | None = None, window_s: float = 0.0
    ) -> Iterator[tuple[str, Any]]:
        """Add files, folders or live addresses."""
        self.inbox.add("attach", paths=paths, urls=urls or [], window_s=window_s)
        yield from self._turn(self.unfinished())

    def say(self, text: str) -> Iterator[tuple[str, Any]]:
        """Add pasted text or a statement as evidence."""
        self.inbox.add("text", text=text)
        yield from self._turn(self.unfinished())

    def _sources(self, entries: list[dict[str, Any]]) -> Sources:
        sources = Sources()
        for entry in entries:
            if entry["kind"] == "text":
                sources.texts[f"said-{entry['n']}.md"] = str(entry["text"]).encode()
            elif entry["kind"] == "file":
                sources.parts.append(Part(name=str(entry["name"]), path=Path(entry["path"])))
            elif entry["kind"] == "attach":
                sources.paths.extend(Path(p) for p in entry.get("paths", []))
                sources.urls.extend(entry.get("urls", []))
                sources.window_s = max(sources.window_s, float(entry.get("window_s", 0.0)))
        return sources

    def _turn(self, entries: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
        """One pass of the graph over new inputs; the checkpoint is marked only when the pass is through."""
        sources = self._sources(entries)
        self.env = make_env(sources, known=self.known, context=self.context, lang=self.lang)
        if self._attach is not None:
            self._attach(self.env)
        self.before = self.diagnosis
        compiled = build(self.env, self.saver)
        last = max((int(e["n"]) for e in entries), default=0)
        given = {"next": "", "probes_run": [], "started": self.env.clock()}
        for name, update in stream(compiled, given, self.thread):
            if name == "ask":
                yield "ask", msgspec.convert(update, ProbeAdvice)
            elif update and "steps" in update and update["steps"]:
                yield "progress", update["steps"][-1]
            if name == "write":
                self.diagnosis = msgspec.convert(update["answer"], Diagnosis)
        compiled.update_state(self._config(), {"inbox_done": last}, as_node="write")
        if self.diagnosis is not None:
            yield "diagnosis", self.diagnosis

    def close(self) -> None:
        """Close the checkpoint database."""
        conn = getattr(self.saver, "conn", None)
        if conn is not None:
            conn.close()


def changed(before: Diagnosis | None, now: Diagnosis) -> list[str]:
    """What new evidence changed: outcome, leading cause, confidence. Empty at the first diagnosis or when nothing did."""
    if before is None:
        return []
    out: list[str] = []
    if before.outcome != now.outcome:
        out.append(f"outcome: {before.outcome} → {now.outcome}")
    old = before.causes[0] if before.causes else None
    new = now.causes[0] if now.causes else None
    if (old.family if old else "") != (new.family if new else ""):
        out.append(f"leading cause: {old.title if old else 'none'} → {new.title if new else 'none'}")
    elif old and new and abs(old.confidence - new.confidence) >= 0.02:
        out.append(f"{new.title}: {old.confidence:.0%} → {new.confidence:.0%}")
    added = len(now.evidence) - len(before.evidence)
    if added > 0:
        out.append(f"{added} new readings")
    return out
