"""Sending to Slack: each keyed message goes out once, one post a second in a channel, ``Retry-After`` obeyed by all workers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent.slack.blocks import Message, plain_buttons
from agent.slack.download import client
from agent.slack.store import Store

if TYPE_CHECKING:
    from slack_sdk import WebClient

META = "inferdx_message"
_GIVE_UP = {"channel_not_found", "not_in_channel", "is_archived", "missing_scope", "invalid_auth", "account_inactive",
            "token_revoked", "restricted_action", "thread_not_found", "message_not_found", "cant_update_message"}  # fmt: skip
WAIT_MAX = 120.0


class Refused(RuntimeError):
    """Slack will not take it, however often it is tried. The message says what a person can do."""


_DO = {
    "missing_scope": "the app lacks the scope {needed}: reinstall it with the shipped manifest",
    "not_in_channel": "invite the app to the channel: /invite @inferdx",
    "channel_not_found": "invite the app to the channel: /invite @inferdx",
    "invalid_auth": "the bot token is wrong or revoked: check SLACK_BOT_TOKEN",
    "token_revoked": "the bot token is wrong or revoked: check SLACK_BOT_TOKEN",
}


class Poster:
    """Sends for one worker. ``every_s``: seconds between posts in one channel. ``stale_s``: how long a send may hang."""

    def __init__(
        self,
        client: WebClient,
        store: Store,
        *,
        every_s: float = 1.0,
        stale_s: float = 20.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.client = client
        self.store = store
        self.every_s = every_s
        self.stale_s = stale_s
        self.sleep = sleep

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────
    def call(self, method: str, gate: str = "", every_s: float = 0.0, **arguments: Any) -> dict[str, Any]:
        """One Web API call behind a gate; rate limits are waited out. Raises :class:`Refused`, ``ConnectionError``."""
        from slack_sdk.errors import SlackApiError

        gate = gate or method
        started = time.monotonic()
        while True:
            wait = self.store.reserve(gate, every_s)
            if wait > 0:
                self.sleep(min(wait, WAIT_MAX))
            try:
                given = {k: v for k, v in arguments.items() if v is not None}
                if method.startswith("conversations."):  # reading methods take no JSON
                    words = {k: str(v).lower() if isinstance(v, bool) else v for k, v in given.items()}
                    answer = self.client.api_call(method, http_verb="GET", params=words)
                else:
                    answer = self.client.api_call(method, json=given)
                return dict(answer.data) if isinstance(answer.data, dict) else {}
            except SlackApiError as error:
                response: Any = error.response
                if response.status_code == 429 or response.get("error") == "ratelimited":
                    pause = float(response.headers.get("Retry-After", response.headers.get("retry-after", 1)))
                    self.store.hold(gate, pause)
                    if time.monotonic() - started > WAIT_MAX:
                        raise ConnectionError(f"{method}: rate limited for {WAIT_MAX:.0f} s") from None
                    continue
                code = str(response.get("error", "unknown_error"))
                if response.status_code >= 500 or code in ("internal_error", "fatal_error", "service_unavailable"):
                    raise ConnectionError(f"{method}: Slack answered {response.status_code} {code}") from None
                text = _DO.get(code, "see the app's permissions in Slack").format(needed=response.get("needed", ""))
                raise Refused(f"{method}: {code}; {text}") from None
            except OSError as error:  # URLError, timeouts, resets: it may or may not have arrived
                raise ConnectionError(f"{method}: {type(error).__name__}") from None

    def post(self, key: str, channel: str, thread_ts: str, content: Message) -> str:
        """Post once per ``key``; the time stamp. An earlier try that may have gone out is looked up first."""
        return self._once(
            key,
            channel,
            lambda: self._post(key, channel, thread_ts, content),
            lambda: self._find(key, channel, thread_ts),
        )

    def _once(self, key: str, channel: str, send: Callable[[], str], find: Callable[[], str]) -> str:
        while True:
            state, ts = self.store.sending(key, channel, self.stale_s)
            if state == "sent":
                return ts
            if state != "busy":
                break
            self.sleep(min(0.2, self.stale_s))
        ts = find() if state == "check" else ""
        if not ts:
            try:
                ts = send()
            except Refused:
                self.store.not_sent(key)
                raise
        self.store.sent(key, ts)
        return ts

    def _post(self, key: str, channel: str, thread_ts: str, content: Message) -> str:
        arguments = {
            "channel": channel,
            "thread_ts": thread_ts or None,
            "unfurl_links": False,
            "unfurl_media": False,
            "parse": "none",
            "link_names": False,
            "metadata": {"event_type": META, "event_payload": {"key": key}},
        }
        return str(self._with_blocks("chat.postMessage", channel, self.every_s, content, arguments)["ts"])

    def _with_blocks(
        self, method: str, channel: str, every_s: float, content: Message, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """Older workspaces refuse newer blocks: once more with ordinary buttons, then with the text alone."""
        gate = f"{method}:{channel}"
        ladder = [content["blocks"], plain_buttons(content["blocks"]), None]
        for number, blocks in enumerate(ladder):
            try:
                return self.call(method, gate, every_s, text=content["text"], blocks=blocks, **arguments)
            except Refused as error:
                if "invalid_blocks" not in str(error) or number == len(ladder) - 1:
                    raise
        raise Refused("invalid_blocks")

    def update(self, channel: str, ts: str, content: Message) -> None:
        """Change a message in place (idempotent by nature). A message that is gone is let go."""
        arguments = {"channel": channel, "ts": ts, "parse": "none", "link_names": False}
        try:
            self._with_blocks("chat.update", channel, self.every_s, content, arguments)
        except Refused as error:
            if "message_not_found" not in str(error) and "cant_update_message" not in str(error):
                raise

    def free(self, channel: str) -> bool:
        """Whether an update would go out at once: progress is skipped rather than queued."""
        rows = self.store.db.run("SELECT free_at FROM gates WHERE name = ?", f"chat.update:{channel}")
        return not rows or float(rows[0][0]) <= self.store.clock()

    def ephemeral(self, channel: str, user: str, thread_ts: str, content: Message) -> None:
        """For what concerns one person only."""
        self.call(
            "chat.postEphemeral", f"chat.postMessage:{channel}", self.every_s, channel=channel, user=user,
            thread_ts=thread_ts or None, text=content["text"], blocks=content["blocks"],
        )  # fmt: skip

    def _find(self, key: str, channel: str, thread_ts: str) -> str:
        """A message of ours with this key in its metadata; empty when it never arrived."""
        if thread_ts:
            found = self.replies(channel, thread_ts, metadata=True)
        else:
            found = self.call(
                "conversations.history", channel=channel, limit=100, include_all_metadata=True
            ).get("messages", [])  # fmt: skip
        for item in found:
            meta = item.get("metadata") or {}
            if meta.get("event_type") == META and (meta.get("event_payload") or {}).get("key") == key:
                return str(item["ts"])
        return ""

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────
    def replies(self, channel: str, thread_ts: str, *, metadata: bool = False, pages: int = 10) -> list[dict[str, Any]]:
        """The messages of a thread, oldest first, at most ``pages`` × 200."""
        out: list[dict[str, Any]] = []
        cursor = ""
        for _ in range(pages):
            answer = self.call(
                "conversations.replies", channel=channel, ts=thread_ts, limit=200, cursor=cursor or None,
                include_all_metadata=metadata or None,
            )  # fmt: skip
            out += answer.get("messages", [])
            cursor = (answer.get("response_metadata") or {}).get("next_cursor", "")
            if not cursor:
                break
        return out

    # ── files ────────────────────────────────────────────────────────────────────────────────────────────────
    def upload(self, key: str, channel: str, thread_ts: str, files: list[tuple[str, bytes]], comment: str) -> str:
        """Attach files to the thread in one message, once per ``key``; an id. Names must be unique in the thread."""
        first = files[0][0]

        def send() -> str:
            ids = []
            for name, data in files:
                slot = self._form("files.getUploadURLExternal", filename=name, length=len(data))
                self._put(str(slot["upload_url"]), name, data)
                ids.append({"id": slot["file_id"], "title": name})
            done = self.call(
                "files.completeUploadExternal", f"chat.postMessage:{channel}", self.every_s, files=ids,
                channel_id=channel, thread_ts=thread_ts, initial_comment=comment or None,
            )  # fmt: skip
            return str((done.get("files") or [{"id": "file"}])[0].get("id", "file"))

        def find() -> str:
            for item in self.replies(channel, thread_ts):
                for held in item.get("files", []):
                    if held.get("title") == first or held.get("name") == first:
                        return str(held.get("id", "file"))
            return ""

        return self._once(key, channel, send, find)

    def _form(self, method: str, **arguments: Any) -> dict[str, Any]:
        """This one method takes form fields only."""
        from slack_sdk.errors import SlackApiError

        try:
            answer = self.client.api_call(method, params=arguments)
            return dict(answer.data) if isinstance(answer.data, dict) else {}
        except SlackApiError as error:
            response: Any = error.response
            raise Refused(f"{method}: {response.get('error')}; {_DO.get(str(response.get('error')), '')}") from None
        except OSError as error:
            raise ConnectionError(f"{method}: {type(error).__name__}") from None

    def _put(self, url: str, name: str, data: bytes) -> None:
        import httpx

        try:
            answer = client().post(url, content=data, headers={"Content-Type": "application/octet-stream"})
        except httpx.HTTPError as error:
            raise ConnectionError(f"upload of {name}: {type(error).__name__}") from None
        if answer.status_code != 200:
            raise ConnectionError(f"upload of {name}: HTTP {answer.status_code}")
