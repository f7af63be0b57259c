"""Workers: take the next event under a lease, keep the lease alive, hand back what failed, give up visibly."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable

from agent.slack import blocks
from agent.slack.handlers import KINDS, Handlers
from agent.slack.poster import Refused
from agent.slack.store import MAX_TRIES, Event, Lost, Store

log = logging.getLogger("inferdx.slack")
LEASE_S = 60.0
MAX_DEATHS = 12  # an event that took so many workers with it is not given to another


class Worker:
    """One investigation at a time. Several may run, in threads, processes or hosts, over one store."""

    def __init__(
        self,
        store: Store,
        handlers: Handlers,
        *,
        kinds: tuple[str, ...] = KINDS,
        lease_s: float = LEASE_S,
        name: str = "",
        retry_s: float = 2.0,
    ) -> None:
        self.store = store
        self.handlers = handlers
        self.kinds = kinds
        self.lease_s = lease_s
        self.name = name or f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
        self.retry_s = retry_s
        self.stopping = threading.Event()

    def once(self) -> bool:
        """Work on one event; ``False`` when there was none to take."""
        event = self.store.claim(self.name, self.lease_s, self.kinds)
        if event is None:
            return False
        lost = threading.Event()
        done = threading.Event()

        def beat() -> None:
            while not done.wait(self.lease_s / 3):
                try:
                    self.store.renew(event, self.name, self.lease_s)
                except Exception:
                    lost.set()
                    return

        def alive() -> None:
            if lost.is_set():
                raise Lost(event.id)

        heart = threading.Thread(target=beat, daemon=True)
        heart.start()
        try:
            self._work(event, alive)
        finally:
            done.set()
            heart.join()
        return True

    def _work(self, event: Event, alive: Callable[[], None]) -> None:
        if event.tries > MAX_DEATHS:
            log.error("%s: given up, %d workers ended while at it", event.id, event.tries - 1)
            self._give_up(event, "it ended the worker each time")
            return
        try:
            self.handlers.handle(event, alive)
            self.store.finish(event, self.name)
        except Lost:
            log.warning("%s: lease lost, another worker has it", event.id)
        except Refused as error:
            log.error("%s: %s", event.id, error)
            self._give_up(event, str(error))
        except Exception as error:
            log.warning("%s: try %d failed: %s: %s", event.id, event.tries, type(error).__name__, error)
            if event.tries < MAX_TRIES:
                self.store.release(event, self.name, self.retry_s * 2 ** (event.tries - 1))
            else:
                log.exception("%s: given up", event.id)
                self._give_up(event, f"{type(error).__name__} after {event.tries} tries")

    def _give_up(self, event: Event, why: str) -> None:
        """Tell the thread (when Slack lets us) and close the event."""
        root = str(event.body.get("root", ""))
        thread = self.store.thread(event.thread)
        try:
            ts = thread.ts if thread else root
            if ts:
                content = blocks.error(why, self.handlers.site.lang)
                self.handlers.poster.post(f"{event.id}:error", event.channel, ts, content)
        except (Refused, ConnectionError) as error:
            log.error("%s: could not tell the thread: %s", event.id, error)
        finally:
            self.store.finish(event, self.name, "dead")

    def forever(self, idle_s: float = 0.3) -> None:
        """Until :attr:`stopping` is set; the event in hand is finished first. Database trouble is waited out."""
        while not self.stopping.is_set():
            try:
                busy = self.once()
            except Lost:
                busy = True
            except Exception as error:
                log.error("storage: %s: %s", type(error).__name__, error)
                self.stopping.wait(5.0)
                continue
            if not busy:
                self.stopping.wait(idle_s)

    def start(self) -> threading.Thread:
        """:meth:`forever` in a thread."""
        thread = threading.Thread(target=self.forever, name=self.name, daemon=True)
        thread.start()
        return thread
