from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("slack_sdk", reason="slack-sdk is not installed (pip install 'inferdx[slack]')")
pytest.importorskip("slack_bolt", reason="slack-bolt is not installed (pip install 'inferdx[slack]')")

from agent.investigate import site_knowledge
from agent.slack.app import build, web_client
from agent.slack.evidence import Collector
from agent.slack.handlers import Handlers, Site
from agent.slack.poster import Poster
from agent.slack.service import warm
from agent.slack.store import Store
from agent.slack.targets import Targets
from agent.slack.thread import saver_for
from agent.slack.worker import Worker
from tests.agent.slack.slackd import BOT, SECRET, TOKEN, Slack


@pytest.fixture(scope="session")
def known() -> Any:
    found = site_knowledge()
    warm(found)
    return found


@pytest.fixture
def slack() -> Iterator[Slack]:
    server = Slack()
    yield server
    server.close()
    assert not server.broken, server.broken


class Bench:
    """One site under test: a store on disk, any number of workers over it, an app in front."""

    def __init__(
        self, slack: Slack, folder: Path, known: Any, target: str = "", targets: Targets | None = None
    ) -> None:
        self.slack = slack
        self.folder = folder
        self.known = known
        self.target = target or str(folder / "store.sqlite")
        self.targets = targets or Targets()
        self.stores: list[Store] = []
        self.http: Any = None

    def handlers(self, stale_s: float = 0.0) -> Handlers:
        """A fresh set of parts, as a new process would have them."""
        store = Store(self.target)
        self.stores.append(store)
        client = web_client(TOKEN, self.slack.url)
        poster = Poster(client, store, every_s=0.0, stale_s=stale_s)
        collector = Collector(
            poster,
            store,
            self.targets,
            bot=BOT,
            token=TOKEN,
            base_url=self.slack.base,
            first_look_s=0.3,
            long_look_s=0.6,
        )
        site = Site(
            home=self.folder / "home", journal=self.folder / "journal", known=self.known, saver=saver_for(self.target),
            update_every_s=0.05,
        )  # fmt: skip
        return Handlers(site, store, poster, collector)

    def worker(self, **options: Any) -> Worker:
        handlers = self.handlers()
        return Worker(handlers.store, handlers, retry_s=0.01, **options)

    def app(self) -> Any:
        handlers = self.handlers(stale_s=5.0)
        return build(handlers.poster.client, handlers.store, handlers, secret=SECRET, bot=BOT)

    def open_http(self) -> str:
        import threading

        from agent.slack.httpd import PATH, server

        self.http = server(self.app(), "127.0.0.1", 0)
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()
        return f"http://127.0.0.1:{self.http.server_address[1]}{PATH}"

    def drain(self, worker: Worker | None = None) -> int:
        """Work off the queue; the number of events."""
        worker = worker or self.worker()
        done = 0
        while worker.once():
            done += 1
        return done

    def close(self) -> None:
        if self.http is not None:
            self.http.shutdown()
            self.http.server_close()
        for store in self.stores:
            store.close()


@pytest.fixture
def bench(slack: Slack, tmp_path: Path, known: Any) -> Iterator[Bench]:
    made = Bench(slack, tmp_path, known)
    yield made
    made.close()
