"""Putting the Slack app together: credentials from the environment, storage, workers, Socket Mode or HTTP."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path
from typing import Any

from msgspec import Struct

from agent.chat.inbox import home
from agent.slack.app import build, web_client
from agent.slack.evidence import Collector
from agent.slack.handlers import Handlers, Site
from agent.slack.poster import Poster
from agent.slack.store import Store
from agent.slack.targets import Targets
from agent.slack.thread import saver_for
from agent.slack.worker import Worker

log = logging.getLogger("inferdx.slack")
API = "https://slack.com/api/"


class SetupError(ValueError):
    """Something the operator must set first; the message says what and where to find it."""


class Credentials(Struct, kw_only=True):
    """From ``SLACK_BOT_TOKEN``, ``SLACK_APP_TOKEN`` (Socket Mode) and ``SLACK_SIGNING_SECRET`` (HTTP)."""

    bot: str = ""
    app: str = ""
    secret: str = ""


def credentials() -> Credentials:
    """Read the environment; nothing is read from the command line, where other users could see it."""
    env = os.environ
    return Credentials(
        bot=env.get("SLACK_BOT_TOKEN", ""),
        app=env.get("SLACK_APP_TOKEN", ""),
        secret=env.get("SLACK_SIGNING_SECRET", ""),
    )


def default_store() -> str:
    """``$INFERDX_STORE`` (a path or ``postgresql://…``), else a SQLite file in the data directory."""
    return os.environ.get("INFERDX_STORE", "") or str(home() / "slack" / "slack.sqlite")


def make_site(known: Any, store: str, **options: Any) -> Site:
    """The site's shared settings; checkpoints live beside the store."""
    return Site(home=home() / "slack", journal=home() / "journal", known=known, saver=saver_for(store), **options)


class Crew(Struct, kw_only=True):
    """The running parts of one process."""

    app: Any
    stores: list[Store]
    workers: list[Worker]
    threads: list[threading.Thread]

    def stop(self, wait_s: float = 30.0) -> None:
        """Finish the events in hand, then close."""
        for worker in self.workers:
            worker.stopping.set()
        for thread in self.threads:
            thread.join(wait_s)
        for store in self.stores:
            store.close()


def assemble(
    given: Credentials,
    target: str,
    sites: list[Site],
    targets: Targets,
    *,
    base_url: str = API,
    every_s: float = 1.0,
) -> Crew:
    """Client, app and one worker per site. Raises :class:`SetupError`."""
    from slack_sdk.errors import SlackApiError

    if not given.bot:
        raise SetupError("SLACK_BOT_TOKEN is not set (Slack app page → OAuth & Permissions → Bot User OAuth Token)")
    client = web_client(given.bot, base_url)
    try:
        me = client.auth_test()
    except SlackApiError as error:
        raise SetupError(f"Slack refused SLACK_BOT_TOKEN: {error.response.get('error')}") from None
    except OSError as error:
        raise SetupError(f"Slack cannot be reached at {base_url} ({type(error).__name__})") from None
    bot = str(me.get("user_id", ""))
    stores: list[Store] = []

    def hands(site: Site) -> Handlers:
        store = Store(target)
        stores.append(store)
        poster = Poster(client, store, every_s=every_s)
        collector = Collector(poster, store, targets, bot=bot, token=given.bot, base_url=base_url)
        return Handlers(site, store, poster, collector)

    front = hands(sites[0])
    app = build(client, front.store, front, secret="" if given.app else given.secret, bot=bot)
    workers = []
    for site in sites:
        handlers = hands(site)
        workers.append(Worker(handlers.store, handlers))
    front.store.prune()
    return Crew(app=app, stores=stores, workers=workers, threads=[w.start() for w in workers])


def serve(given: Credentials, crew: Crew, listen: tuple[str, int] | None) -> None:
    """Run until interrupted: Socket Mode when there is an app token and no ``listen`` address, HTTP otherwise."""
    try:
        if listen is None:
            from slack_bolt.adapter.socket_mode.builtin import SocketModeHandler

            log.info("Socket Mode; mention the app in a channel")
            SocketModeHandler(crew.app, given.app).start()  # type: ignore[no-untyped-call]
            return
        from agent.slack.httpd import PATH, server

        door = server(crew.app, *listen)
        log.info("listening on http://%s:%d%s", listen[0], door.server_address[1], PATH)
        door.serve_forever()
    finally:
        crew.stop()


def warm(known: Any) -> None:
    """Load now what the first investigation would otherwise wait for: imports of seconds, tables of knowledge."""
    from agent.graph import build as build_graph
    from agent.investigate import make_env
    from agent.sources import Sources
    from agent.steps import drive

    env = make_env(Sources(texts={"warm.md": b"nothing yet"}), known=known)
    drive(env)
    build_graph(env)


def ensure_private(path: Path) -> None:
    """The data directory is for its owner only: it holds logs that people attached."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
