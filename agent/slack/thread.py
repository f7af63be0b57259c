"""A chat session whose inbox and files live in the store, so that any worker on any host can take the thread up."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.chat.inbox import Inbox
from agent.chat.session import Session
from agent.slack.store import Store
from agent.sources import Sources, moment
from agent.state import Env
from knowledge.schema import Knowledge
from tools.contract import Context
from tools.part import Part

_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


def folder_name(thread: str) -> str:
    """A file name for a thread id; it holds no user id."""
    return _NAME.sub("-", thread)[:80]


class StoreInbox(Inbox):
    """Inbox of one thread in the store."""

    def __init__(self, store: Store, thread: str) -> None:
        self.store = store
        self.thread = thread

    def add(self, kind: str, **content: Any) -> int:
        """Append under a key of its own number; events use :meth:`Store.inbox_add` with their own keys."""
        number = len(self.entries()) + 1
        return self.store.inbox_add(self.thread, f"n{number}", kind, content)

    def entries(self) -> list[dict[str, Any]]:
        """All entries in order."""
        return self.store.inbox(self.thread)


class SlackSession(Session):
    """One thread. Checkpoints: a SQLite file of the thread, or the shared ``saver``."""

    def __init__(
        self,
        store: Store,
        thread: str,
        home: Path,
        known: Knowledge,
        *,
        saver: Any = None,
        lang: str = "en",
        context: Context | None = None,
        attach: Callable[[Env], Any] | None = None,
    ) -> None:
        folder = home / "threads" / folder_name(thread)
        folder.mkdir(parents=True, exist_ok=True)
        self.shared = saver is not None
        self.store = store
        self._scratch = tempfile.TemporaryDirectory(prefix="inferdx-")
        super().__init__(folder, known=known, lang=lang, context=context, attach=attach, saver=saver, thread=thread)
        self.inbox = StoreInbox(store, thread)

    def _sources(self, entries: list[dict[str, Any]]) -> Sources:
        """Files come out of the store into a scratch folder; Prometheus ranges are those of the entry's own time."""
        sources = super()._sources([e for e in entries if e["kind"] != "file"])
        for entry in entries:
            if entry["kind"] == "file":
                path = Path(self._scratch.name) / f"{entry['n']}-{_NAME.sub('-', str(entry['name']))[-80:]}"
                path.write_bytes(self.store.file(str(entry["sha"])))
                sources.parts.append(Part(name=str(entry["name"]), path=path, time=entry.get("time")))
            elif entry["kind"] == "prometheus":
                sources.prometheus, sources.match = str(entry["url"]), str(entry.get("match", ""))
                sources.start, sources.end = (
                    moment(str(entry.get("start", "-30m"))),
                    moment(str(entry.get("end", "now"))),
                )
        return sources

    def finding(self) -> tuple[str, float]:
        """Leading cause after the rules ran, while the turn still runs: title, confidence 0–1; empty when none."""
        from agent.belief import hypotheses
        from knowledge.schema import both

        env = self.env
        if env is None or "results" not in env.cache or "ledger" not in env.cache:
            return "", 0.0
        found = hypotheses(env.known, env.cache["ledger"], env.cache["results"], env.lang)
        live = [h for h in found if not h.refuted]
        if not live or live[0].confidence < 0.3:
            return "", 0.0
        card = self.known.families.get(live[0].family)
        return (both(card.title, self.lang) if card else live[0].key), live[0].confidence

    def close(self) -> None:
        """Remove the scratch files; close the checkpoint file unless it is shared."""
        self._scratch.cleanup()
        if not self.shared:
            super().close()


def saver_for(target: str) -> Any:
    """A PostgreSQL checkpointer with strict decoding for ``postgresql://…``; ``None`` for SQLite (one file a thread)."""
    if not target.startswith(("postgresql://", "postgres://")):
        return None
    from agent.graph import quiet

    quiet()
    import psycopg
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
    from psycopg.rows import dict_row

    conn = psycopg.connect(target, autocommit=True, prepare_threshold=0, row_factory=dict_row)
    saver = PostgresSaver(conn, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
    saver.setup()
    return saver
