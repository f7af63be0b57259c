"""Putting the webhook together: its HTTP server, its workers, and Slack when there is a token for it."""

from __future__ import annotations

import threading
from typing import Any

from agent.serve.alerts import Desk
from agent.serve.app import build
from agent.serve.watch import Watch
from agent.slack.evidence import Collector
from agent.slack.handlers import KINDS, Handlers, Site
from agent.slack.store import Store
from agent.slack.targets import Targets
from agent.slack.worker import Worker


class Station:
    """Stores, workers and threads of one process; ``app`` is the ASGI application."""

    def __init__(
        self,
        token: str,
        target: str,
        sites: list[Site],
        targets: Targets,
        *,
        queue: int,
        slack: Any = None,
        base_url: str = "",
        every_s: float = 1.0,
        looks_s: tuple[float, float] = (4.0, 30.0),
    ) -> None:
        self.stores = [Store(target)]
        team, bot = targets.team, ""
        client: Any = None
        if slack is not None and slack.bot:
            from agent.slack.app import web_client

            client = web_client(slack.bot, base_url)
            me = client.auth_test()
            team, bot = team or str(me.get("team_id", "")), str(me.get("user_id", ""))
        self.desk = Desk(self.stores[0], targets, limit=queue, slack=client is not None, team=team)
        self.app = build(self.desk, token)
        self.workers: list[Worker] = []
        for site in sites:
            store = Store(target)
            self.stores.append(store)
            poster = None
            if client is not None:
                from agent.slack.poster import Poster

                poster = Poster(client, store, every_s=every_s)
            collector = Collector(
                poster, store, targets, bot=bot, token=slack.bot if client else "", base_url=base_url,
                first_look_s=looks_s[0], long_look_s=looks_s[1],
            )  # fmt: skip
            kinds = ("watch", *KINDS) if poster is not None else ("watch",)
            self.workers.append(Worker(store, _Both(site, store, poster, collector), kinds=kinds))
        self.threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the workers."""
        self.stores[0].prune()
        self.threads = [worker.start() for worker in self.workers]

    def stop(self, wait_s: float = 30.0) -> None:
        """Finish the events in hand, then close."""
        for worker in self.workers:
            worker.stopping.set()
        for thread in self.threads:
            thread.join(wait_s)
        for store in self.stores:
            store.close()


class _Both(Handlers):
    """Slack's handlers plus ``watch``; without a poster only ``watch`` events are claimed."""

    def __init__(self, site: Site, store: Store, poster: Any, collector: Collector) -> None:
        super().__init__(site, store, poster, collector)
        self.watch = Watch(site, store, collector)

    def handle(self, event: Any, alive: Any) -> None:
        if event.kind == "watch":
            self.watch.handle(event, alive)
        else:
            super().handle(event, alive)


def serve(
    listen: tuple[str, int],
    token: str,
    target: str,
    sites: list[Site],
    targets: Targets,
    slack: Any,
    *,
    queue: int,
    base_url: str,
) -> None:
    """Run until interrupted."""
    import uvicorn

    station = Station(token, target, sites, targets, queue=queue, slack=slack, base_url=base_url)
    station.start()
    try:
        uvicorn.run(station.app, host=listen[0], port=listen[1], log_level="warning", access_log=False)
    finally:
        station.stop()
