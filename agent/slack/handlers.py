"""The work behind one queued event. Every step is keyed in the store: done again after a crash, it changes nothing."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agent.chat.session import changed
from agent.diagnosis import Diagnosis
from agent.slack import blocks
from agent.slack.draft import save
from agent.slack.evidence import Collector
from agent.slack.intake import thread_id
from agent.slack.poster import Poster, Refused
from agent.slack.store import Event, Store, Thread
from agent.slack.talk import stops, talk
from agent.slack.thread import SlackSession
from agent.slack.words import word
from knowledge.schema import Knowledge
from tools.contract import Context
from tools.part import Part

KINDS = ("message", "command", "alert", "skip", "case", "note", "follow", "stop")


class Site(Struct, kw_only=True):
    """What all investigations of this process share."""

    home: Path
    journal: Path
    known: Knowledge
    lang: str = "en"
    context: Context = msgspec.field(default_factory=Context)
    saver: Any = None
    attach: Callable[[Any], Any] | None = None
    model: Any = None
    targets: Any = None
    update_every_s: float = 1.2
    slow_s: float = 90.0


class Handlers:
    """Works on events for one worker. ``alive`` is called between steps and raises when the lease was lost."""

    def __init__(self, site: Site, store: Store, poster: Poster, collector: Collector) -> None:
        self.site = site
        self.store = store
        self.poster = poster
        self.collector = collector

    def handle(self, event: Event, alive: Callable[[], None]) -> None:
        """Dispatch. Raises ``ConnectionError`` for what may be tried again."""
        work = {
            "message": self._message,
            "command": self._command,
            "alert": self._alert,
            "skip": self._skip,
            "case": self._case,
            "note": self._note,
            "follow": self._listen,
            "stop": self._listen,
        }[event.kind]
        work(event, alive)

    # ── kinds of events ──────────────────────────────────────────────────────────────────────────────────────
    def ack(self, event: Event) -> str:
        """The visible acknowledgement, posted once, by whoever comes first: the listener or the worker."""
        body = event.body
        count = len(body.get("files", []))
        lang = self.site.lang
        what = word("ack.alert", lang) if event.kind == "alert" else word("ack.nothing", lang)
        if count:
            what = word("ack.files", lang, n=count)
        return self.poster.post(f"{event.id}:run", event.channel, str(body["root"]), blocks.ack(what, lang))

    def _message(self, event: Event, alive: Callable[[], None]) -> None:
        body = event.body
        thread = self.store.open_thread(event.thread, event.channel, str(body["root"]), str(body.get("user", "")))
        if stops(self.collector.words(body)) and not body.get("files"):
            self._listen(event, alive)
            return
        if thread.status == "stopped":
            self.store.set_thread(thread.id, status="open")
        session = self._session(thread)
        try:
            said = talk(session, self.collector.words(body), self.site.model)
            if said and not body.get("files"):
                self.poster.post(f"{event.id}:reply", event.channel, thread.ts, blocks.lines(said))
                return
            self.ack(event)
            alive()
            problems = self.collector.message(event, thread)
            alive()
            self._run(event, thread, session, alive, problems)
        finally:
            session.close()

    def _root(self, event: Event, content: blocks.Message) -> Thread:
        """The thread of an event that has none yet: its root message, posted once."""
        ts = self.poster.post(f"{event.id}:root", event.channel, "", content)
        key = thread_id(str(event.body.get("team", "")), event.channel, ts)
        self.store.rekey(event, key)
        event.body["root"] = ts
        return self.store.open_thread(key, event.channel, ts, str(event.body.get("user", "")))

    def _command(self, event: Event, alive: Callable[[], None]) -> None:
        text = str(event.body.get("text", ""))
        thread = self._root(event, blocks.lines([text or "inferdx"]))
        self.ack(event)
        alive()
        session = self._session(thread)
        try:
            problems = self.collector.message(event, thread)
            self._run(event, thread, session, alive, problems)
        finally:
            session.close()

    def _alert(self, event: Event, alive: Callable[[], None]) -> None:
        body = event.body
        if body.get("root"):  # an annotation named the alert's own thread
            key = thread_id(str(body.get("team", "")), event.channel, str(body["root"]))
            self.store.rekey(event, key)
            thread = self.store.open_thread(key, event.channel, str(body["root"]))
        else:
            thread = self._root(event, blocks.alert(body["name"], body["labels"], body["summary"], lang=self.site.lang))
        self.store.db.run("UPDATE alerts SET thread = ? WHERE fingerprint = ?", thread.id, body["fingerprint"])
        self.ack(event)
        alive()
        session = self._session(thread)
        try:
            for window in (self.collector.first_look_s, self.collector.long_look_s):
                problems = self.collector.alert(event, thread, window)
                alive()
                final = window == self.collector.long_look_s
                sure = self._run(event, thread, session, alive, problems, final=final)
                if sure:
                    break
            if session.diagnosis is not None:
                self.store.db.run(
                    "UPDATE alerts SET answer = ? WHERE fingerprint = ?",
                    session.diagnosis.to_json().decode(),
                    body["fingerprint"],
                )
        finally:
            session.close()

    def _note(self, event: Event, alive: Callable[[], None]) -> None:
        """A repeat or the end of an alert, told in its thread."""
        del alive
        thread = self.store.thread(event.thread)
        if thread is None:
            return
        content = blocks.notice(str(event.body["word"]), self.site.lang, **event.body["values"])
        self.poster.post(f"{event.id}:note", event.channel, thread.ts, content)

    def _skip(self, event: Event, alive: Callable[[], None]) -> None:
        """The person cannot get that reading: the next question, or the end of questions."""
        del alive
        thread = self.store.thread(event.thread)
        if thread is None:
            return
        session = self._session(thread)
        try:
            d = session.diagnosis
        finally:
            session.close()
        key, number = f"{event.id}:next", int(event.body.get("number", 0)) + 1
        if d is None or number >= len(d.probes):
            self.poster.post(key, event.channel, thread.ts, blocks.notice("no_more", self.site.lang))
            self.store.set_thread(thread.id, status="open")
            return
        token = self.store.token(thread.id, f"skip.{number}")
        self.poster.post(key, event.channel, thread.ts, blocks.ask(d.probes[number], token, self.site.lang))
        self.store.set_thread(thread.id, asked=number, status="asked")

    def _listen(self, event: Event, alive: Callable[[], None]) -> None:
        """Follow a thread, or stop listening in it; said in the thread, so that everybody knows."""
        del alive
        thread = self.store.thread(event.thread)
        if thread is None:
            return
        follow = event.kind == "follow"
        self.store.set_thread(thread.id, follow=follow, status="open" if follow else "stopped")
        content = blocks.notice("following" if follow else "stopped", self.site.lang)
        if follow:
            content["blocks"] += blocks.buttons({"stop": self.store.token(thread.id, "stop")}, self.site.lang)
        self.poster.post(f"{event.id}:listen", event.channel, thread.ts, content)

    def _case(self, event: Event, alive: Callable[[], None]) -> None:
        del alive
        thread = self.store.thread(event.thread)
        if thread is None:
            return
        session = self._session(thread)
        try:
            d = session.diagnosis
        finally:
            session.close()
        name, count, _ = save(self.store, thread.id, d, self.site.journal)
        content = blocks.notice("case" if count else "case.empty", self.site.lang, name=name, n=count)
        self.poster.post(f"{event.id}:case", event.channel, thread.ts, content)

    # ── one investigation ────────────────────────────────────────────────────────────────────────────────────
    def _session(self, thread: Thread) -> SlackSession:
        site = self.site
        return SlackSession(
            self.store,
            thread.id,
            site.home,
            site.known,
            saver=site.saver,
            lang=site.lang,
            context=site.context,
            attach=site.attach,
        )

    def _run(
        self,
        event: Event,
        thread: Thread,
        session: SlackSession,
        alive: Callable[[], None],
        problems: list[str],
        *,
        final: bool = True,
    ) -> bool:
        """First finding, progress, answer. Returns whether an answer was given (not final: only a sure one is)."""
        run_ts = self.store.sent_ts(f"{event.id}:run")
        started = time.monotonic()
        before = session.diagnosis
        self._follow(event, session, run_ts, alive)
        d = session.diagnosis
        refused = [str(e["line"]) for e in session.inbox.entries() if e["kind"] == "refused"]
        if d is None or len(session.inbox.entries()) == len(refused):
            text = "; ".join([*refused, *problems]) or "nothing to read was given"
            do = "attach a log, a metrics page or the launch command to this thread"
            self.poster.post(f"{event.id}:answer", event.channel, thread.ts, blocks.error(text, self.site.lang, do))
            return True
        if not final and (d.outcome == "undecidable" or d.confidence < 0.6):
            return False
        news = changed(before, d) if event.kind == "message" else []
        self._answer(event, thread, d, news, refused)
        if run_ts:
            seconds = time.monotonic() - started
            self.poster.update(event.channel, run_ts, blocks.done(d.headline, seconds, self.site.lang))
        return True

    def _follow(self, event: Event, session: SlackSession, run_ts: str, alive: Callable[[], None]) -> None:
        """Play the turn into the one running message: the first finding at once, the rest as the gate allows."""
        title, sure, told = "", "", False
        steps: list[str] = []
        last = 0.0
        lang = self.site.lang

        def late() -> None:
            """Reading may take long between two steps: say what is pending, from a timer."""
            with contextlib.suppress(ConnectionError, Refused):
                self.poster.update(
                    event.channel, run_ts, blocks.progress(title, sure, [*steps] or ["collect"], lang, self.site.slow_s)
                )

        timer = threading.Timer(self.site.slow_s, late)
        timer.daemon = True
        if run_ts:
            timer.start()
        try:
            for kind, content in session.recover():
                alive()
                if kind != "progress":
                    continue
                steps.append(str(content))
                if not told and steps[-1].startswith("hypothesise"):
                    title, confidence = session.finding()
                    sure, told = f"{confidence:.0%}" if title else "", True
                    if run_ts:
                        self.poster.update(event.channel, run_ts, blocks.finding(title, sure, lang))
                    last = time.monotonic()
                elif run_ts and told and time.monotonic() - last > self.site.update_every_s:
                    if self.poster.free(event.channel):
                        self.poster.update(event.channel, run_ts, blocks.progress(title, sure, steps, lang))
                    last = time.monotonic()
        finally:
            timer.cancel()

    def _answer(self, event: Event, thread: Thread, d: Diagnosis, news: list[str], refused: list[str]) -> None:
        asks = d.outcome == "undecidable" and bool(d.probes)
        token = {p: self.store.token(thread.id, p) for p in ("feedback", "case", "stop" if thread.follow else "follow")}
        if asks:
            token["skip"] = self.store.token(thread.id, "skip.0")
        ts = self.poster.post(f"{event.id}:answer", event.channel, thread.ts, blocks.answer(d, token, news, refused))
        self.store.set_thread(thread.id, status="asked" if asks else "open", asked=0)
        from agent.slack.images import picture

        tag = ts.replace(".", "")
        files = [(f"inferdx-{tag}.json", d.to_json())]
        png = picture(d, self._parts(thread))
        if png:
            files.append((f"inferdx-{tag}.png", png))
        self.poster.upload(f"{event.id}:files", event.channel, thread.ts, files, "")

    def _parts(self, thread: Thread) -> list[Part]:
        return [
            Part(name=str(e["name"]), data=self.store.file(str(e["sha"])), time=e.get("time"))
            for e in self.store.inbox(thread.id)
            if e["kind"] == "file" and e.get("time") is not None
        ]
