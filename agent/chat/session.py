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
from agent.graph import answer_with, build, sqlite_saver, stream
from agent.investigate import make_env, site_knowledge
from agent.sources import Sources, words_of
from agent.state import Env, State
from knowledge.schema import Knowledge
from tools.contract import Context
from tools.intake.collect import parts_of
from tools.part import Part
from tools.view import Evidence


class Session:
    """A thread. ``events`` of a turn are ``("progress", text)``, ``("diagnosis", Diagnosis)``, ``("ask", ProbeAdvice)``.

    ``interactive``: an undecided turn ends in an interrupt that waits for what only a person can give.
    ``sentence``: called with each checked sentence of a model's narrative as it streams in.
    """

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
        interactive: bool = False,
        sentence: Callable[[str], None] | None = None,
    ) -> None:
        self.folder = folder or new_thread()
        self.known = known or site_knowledge()
        self.lang = lang
        self.context = context or Context()
        self.inbox = Inbox(self.folder)
        self.thread = thread or self.folder.name
        self.interactive = interactive
        self.sentence = sentence
        self.damaged = ""
        self._attach = attach
        self.env: Env | None = None
        self.before: Diagnosis | None = None
        self.diagnosis: Diagnosis | None = None
        self.saver = saver if saver is not None else self._open()
        if saver is not None:
            self.diagnosis = _answer(self.values())

    # ── state ────────────────────────────────────────────────────────────────────────────────────────────────
    def _open(self) -> Any:
        """The thread's own checkpoint file. One that does not decode is set aside: the inbox can be read again."""
        path = self.folder / "state.sqlite"
        saver = None
        try:
            saver = sqlite_saver(path)
            self.saver = saver
            found = self.values()
            msgspec.convert(found.get("evidence", []), list[Evidence])
            self.diagnosis = _answer(found)
            return saver
        except Exception as error:
            if saver is not None:
                saver.conn.close()
            number = len(list(self.folder.glob("state.sqlite.bad-*"))) + 1
            for tail in ("", "-wal", "-shm"):
                old = path.with_name(path.name + tail)
                if old.exists():
                    old.rename(path.with_name(f"{path.name}.bad-{number}{tail}"))
            self.damaged = f"the saved state could not be read ({type(error).__name__}); reading what you gave again"
            return sqlite_saver(path)

    def _config(self) -> Any:
        return {"configurable": {"thread_id": self.thread}}

    def values(self) -> State:
        """The checkpointed state; empty for a new thread."""
        found = self.saver.get(self._config())
        return dict(found["channel_values"]) if found else {}  # type: ignore[return-value]

    def unfinished(self) -> list[dict[str, Any]]:
        """Inbox entries that are not in the evidence yet: a crash came between."""
        done = int(self.values().get("inbox_done", 0))
        return [e for e in self.inbox.entries() if int(e["n"]) > done and e["kind"] != "settings"]

    def waiting(self) -> tuple[str, ...]:
        """Names of the steps that would run next: empty after a whole turn, ``("wait",)`` when a person is asked."""
        return tuple(build(self._env(Sources()), self.saver).get_state(self._config()).next)

    def recover(self) -> Iterator[tuple[str, Any]]:
        """Work off what a crash or Ctrl-C left behind: entries not read, or a turn that did not reach its end."""
        left = self.unfinished()
        if left or self.waiting() not in ((), ("wait",)):
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

    def again(self) -> Iterator[tuple[str, Any]]:
        """The same inputs once more, for example in another language. Nothing new is read but what changed on disk."""
        yield from self._turn(self.unfinished())

    def _sources(self, entries: list[dict[str, Any]]) -> Sources:
        sources = Sources()
        taken: set[str] = set()
        for entry in entries:
            if entry["kind"] == "text":
                sources.texts[f"said-{entry['n']}.md"] = str(entry["text"]).encode("utf-8", "replace")
            elif entry["kind"] == "file":
                sources.parts.append(Part(name=str(entry["name"]), path=Path(entry["path"])))
            elif entry["kind"] == "attach":
                for path in entry.get("paths", []):
                    _add_path(sources, Path(path), int(entry["n"]), taken)
                sources.urls.extend(entry.get("urls", []))
                sources.window_s = max(sources.window_s, float(entry.get("window_s", 0.0)))
        return sources

    def _env(self, sources: Sources) -> Env:
        return make_env(sources, known=self.known, context=self.context, lang=self.lang, interactive=self.interactive)

    def _earlier(self, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        new = {int(e["n"]) for e in entries}
        old = [e for e in self.inbox.entries() if int(e["n"]) not in new]
        return [{**e, "urls": [], "window_s": 0.0} for e in old if e["kind"] in ("text", "file", "attach")]

    def _turn(self, entries: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
        """One pass of the graph. Files and words of earlier turns are read again beside the new ones, live addresses are
        not; the step that reads also marks as read."""
        earlier = self._earlier(entries)
        sources = self._sources([*earlier, *entries])
        env = self.env = self._env(sources)
        env.words = lambda: _new_words(sources, self._sources(earlier))
        if self._attach is not None:
            self._attach(env)
        if self.sentence is not None and hasattr(env.assistant, "on_sentence"):
            env.assistant.on_sentence = self.sentence  # type: ignore[union-attr]
        if entries:
            env.cache["inbox"] = max(int(e["n"]) for e in entries)
        self.before = self.diagnosis
        compiled = build(env, self.saver)
        waits = compiled.get_state(self._config()).next == ("wait",)
        fresh: Any = {"next": "", "probes_run": [], "started": env.clock()}
        given = answer_with([int(e["n"]) for e in entries]) if waits and entries else fresh
        for name, update in stream(compiled, given, self.thread):
            if name == "interrupt":
                if update:
                    yield "ask", msgspec.convert(update, ProbeAdvice)
                continue
            if update and update.get("steps"):
                yield "progress", update["steps"][-1]
            if update and update.get("answer"):
                self.diagnosis = msgspec.convert(update["answer"], Diagnosis)
        if self.diagnosis is not None:
            yield "diagnosis", self.diagnosis

    def close(self) -> None:
        """Close the checkpoint database."""
        conn = getattr(self.saver, "conn", None)
        if conn is not None:
            conn.close()


def _new_words(sources: Sources, earlier: Sources) -> dict[str, str]:
    old = words_of(earlier)
    return {name: text for name, text in words_of(sources).items() if name not in old}


def _answer(state: State) -> Diagnosis | None:
    answer = state.get("answer")
    return msgspec.convert(answer, Diagnosis) if answer else None


def _add_path(sources: Sources, path: Path, number: int, taken: set[str]) -> None:
    """Files under their own names; one whose name an earlier input has is told apart by the entry's number."""
    parts, problems = parts_of([path])
    if problems:
        sources.paths.append(path)
        return
    for part in parts:
        if any(part.path == other.path for other in sources.parts):
            continue
        if part.name in taken:
            part.name = f"input-{number}/{part.name}"
        taken.add(part.name)
        sources.parts.append(part)


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
    added = sum(e.status == "ok" for e in now.evidence) - sum(e.status == "ok" for e in before.evidence)
    if added > 0:
        out.append(f"{added} new readings")
    return out
