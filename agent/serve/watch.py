"""Investigations of alerts where no Slack is connected: the answer is kept and can be read over HTTP."""

from __future__ import annotations

from collections.abc import Callable

from agent.slack.evidence import Collector
from agent.slack.handlers import Site
from agent.slack.store import Event, Store
from agent.slack.thread import SlackSession


class Watch:
    """Works on ``watch`` events; the same evidence and session as an alert in Slack, without a message."""

    def __init__(self, site: Site, store: Store, collector: Collector) -> None:
        self.site = site
        self.store = store
        self.collector = collector

    def handle(self, event: Event, alive: Callable[[], None]) -> None:
        """First look, then a longer one when the first cannot tell."""
        site = self.site
        thread = self.store.open_thread(event.thread, event.channel, "")
        session = SlackSession(
            self.store, thread.id, site.home, site.known, saver=site.saver, lang=site.lang, context=site.context,
            attach=site.attach,
        )  # fmt: skip
        try:
            for window in (self.collector.first_look_s, self.collector.long_look_s):
                self.collector.alert(event, thread, window)
                for _ in session.recover():
                    alive()
                d = session.diagnosis
                if d is not None and d.outcome != "undecidable" and d.confidence >= 0.6:
                    break
            if session.diagnosis is not None:
                self.store.db.run(
                    "UPDATE alerts SET answer = ? WHERE fingerprint = ?",
                    session.diagnosis.to_json().decode(),
                    str(event.body["fingerprint"]),
                )
        finally:
            session.close()
