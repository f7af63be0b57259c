"""Bolt wiring: every payload is recorded before it is acknowledged; the work happens in workers."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

from agent.slack import blocks, intake
from agent.slack.feedback import CALLBACK, modal, read_modal
from agent.slack.handlers import Handlers
from agent.slack.poster import Refused
from agent.slack.store import Event, Store

if TYPE_CHECKING:
    from slack_bolt import App
    from slack_sdk import WebClient

log = logging.getLogger("inferdx.slack")
BUTTONS = ("skip", "case", "follow", "stop")


def web_client(token: str, base_url: str) -> WebClient:
    """A client that never repeats a call by itself: a repeated post is a doubled message; the poster looks first."""
    from slack_sdk import WebClient

    return WebClient(token=token, base_url=base_url, timeout=30, retry_handlers=[])


def build(client: WebClient, store: Store, handlers: Handlers, *, secret: str, bot: str) -> App:
    """The Bolt app. ``secret``: signing secret (HTTP; Socket Mode needs none); ``bot``: our own user id."""
    from slack_bolt import App, BoltResponse

    app = App(client=client, signing_secret=secret or "socket-mode", token_verification_enabled=False,
              request_verification_enabled=bool(secret), logger=log)  # fmt: skip
    door = _Door(client, store, handlers, bot)

    @app.middleware
    def record(body: dict[str, Any], context: Any, next: Any) -> None:
        """Before the acknowledgement: what cannot be written down is not acknowledged, and Slack sends it again."""
        event = body.get("event")
        if body.get("type") == "event_callback" and isinstance(event, dict):
            context["event"] = intake.message(store, str(body.get("team_id", "")), event, bot)
        elif body.get("command"):
            context["fresh"] = intake.command(store, body)
        next()

    @app.event("app_mention")
    def mention(context: Any) -> None:
        door.hello(context.get("event"))

    @app.event("message")
    def said(context: Any) -> None:
        door.hello(context.get("event"))

    @app.command(re.compile(r"^/inferdx"))
    def slash(ack: Any) -> None:
        ack()

    for name in BUTTONS:
        app.action(name)(door.pressed(name))
    app.action(re.compile(r"^feedback"))(door.thumb)
    app.action(re.compile(r".*"))(door.unknown)
    app.view(CALLBACK)(door.corrected)

    @app.error
    def failed(error: Exception, body: Any) -> BoltResponse:
        """Not acknowledged: Slack delivers it again."""
        log.error("%s: %s (%s)", type(error).__name__, error, body.get("type") if isinstance(body, dict) else "")
        return BoltResponse(status=500)

    return app


class _Door:
    """What listeners do at once, because it must not wait in the queue: the first word, modals, expired buttons."""

    def __init__(self, client: WebClient, store: Store, handlers: Handlers, bot: str) -> None:
        self.client = client
        self.store = store
        self.handlers = handlers
        self.bot = bot

    def hello(self, event: Event | None) -> None:
        """The visible acknowledgement, before any worker is free. Failing here is no harm: the worker says it."""
        if event is None:
            return
        if not event.body["files"] and self.store.thread(event.thread) is not None:
            return  # perhaps only a question: the worker answers it without a "looking"
        try:
            self.handlers.ack(event)
        except (Refused, ConnectionError) as error:
            log.warning("%s: acknowledgement not posted: %s", event.id, error)

    def pressed(self, name: str) -> Any:
        """A listener of one button."""

        def listener(ack: Any, body: dict[str, Any]) -> None:
            thread, number = self.store.redeem(_value(body), name)
            if thread:
                intake.action(self.store, name, thread, body, number)
                ack()
            else:
                ack()
                self.expired(body)

        return listener

    def thumb(self, ack: Any, body: dict[str, Any]) -> None:
        """Thumbs: the last click counts; down opens the correction at once (its trigger lives three seconds)."""
        ack()
        verdict, _, token = _value(body).partition(".")
        thread, _ = self.store.redeem(token, "feedback")
        if not thread or verdict not in ("up", "down"):
            self.expired(body)
            return
        user = str(body["user"]["id"])
        self.store.feedback(thread, user, verdict=verdict)
        site = self.handlers.site
        if verdict == "down":
            self.client.views_open(trigger_id=body["trigger_id"], view=modal(site.known, token, site.lang))
        else:
            self.tell(body, blocks.notice("thanks", site.lang))

    def corrected(self, ack: Any, body: dict[str, Any]) -> None:
        """The submitted modal."""
        view = body.get("view", {})
        token = str(view.get("private_metadata", ""))
        thread, _ = self.store.redeem(token, "feedback")
        lang = self.handlers.site.lang
        if not thread:
            ack(response_action="errors", errors={"reason": blocks.notice("expired", lang)["text"]})
            return
        said = read_modal(view, self.handlers.site.known)
        self.store.feedback(thread, str(body["user"]["id"]), verdict="down", **said)
        ack()

    def unknown(self, ack: Any, body: dict[str, Any]) -> None:
        """A button of an older version of this app."""
        ack()
        self.expired(body)

    def expired(self, body: dict[str, Any]) -> None:
        """Never nothing: say that it has expired, to the person who clicked."""
        self.tell(body, blocks.notice("expired", self.handlers.site.lang))

    def tell(self, body: dict[str, Any], content: blocks.Message) -> None:
        """One person, where they clicked."""
        channel = str((body.get("channel") or {}).get("id") or "")
        holder = body.get("message") or {}
        root = str(holder.get("thread_ts") or holder.get("ts") or "")
        if not channel:
            return
        try:
            self.handlers.poster.ephemeral(channel, str(body["user"]["id"]), root, content)
        except (Refused, ConnectionError) as error:
            log.warning("could not tell %s: %s", channel, error)


def _value(body: dict[str, Any]) -> str:
    actions = body.get("actions") or [{}]
    return str(actions[0].get("value") or "")
