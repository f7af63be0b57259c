"""What an incoming Slack payload means: which event it is, once, in which thread. Pure: no network, no state but the store's."""

from __future__ import annotations

from typing import Any

from agent.slack.store import Event, Store

_SUBTYPES = {"", "file_share", "thread_broadcast"}


def thread_id(team: str, channel: str, ts: str) -> str:
    """``team:channel:ts``: one thread, one investigation, one checkpoint thread. Never a user id."""
    return f"{team}:{channel}:{ts}"


def from_people(event: dict[str, Any]) -> bool:
    """Whether a person wrote it: other bots' words and our own are never requests."""
    return not event.get("bot_id") and bool(event.get("user")) and event.get("subtype", "") in _SUBTYPES


def message(store: Store, team: str, event: dict[str, Any], bot: str) -> Event | None:
    """Record a mention or a message of a thread of ours; the event when it is for us and new.

    A mention arrives twice (as ``app_mention`` and as ``message``) and Slack redelivers: the key is the message itself.
    """
    channel, ts = str(event.get("channel", "")), str(event.get("ts", ""))
    if not channel or not ts or not from_people(event):
        return None
    root = str(event.get("thread_ts") or ts)
    thread = thread_id(team, channel, root)
    mention = event.get("type") == "app_mention" or (bool(bot) and f"<@{bot}" in str(event.get("text", "")))
    direct = event.get("channel_type") == "im"
    if not (mention or direct or _wanted(store, thread, event)):
        return None
    key = f"msg:{team}:{channel}:{ts}"
    body = {
        "team": team,
        "channel": channel,
        "ts": ts,
        "root": root,
        "user": str(event.get("user", "")),
        "text": str(event.get("text", ""))[:40_000],
        "files": [_file(f) for f in event.get("files", [])[:20] if isinstance(f, dict)],
        "mention": mention or direct,
    }
    if store.enqueue(key, "message", thread, channel, body) is not True:
        return None
    return Event(id=key, kind="message", thread=thread, channel=channel, body=body)


def _wanted(store: Store, thread: str, event: dict[str, Any]) -> bool:
    """A reply without a mention counts when its thread is open here and it is followed, asked, or brings files."""
    found = store.thread(thread) if event.get("thread_ts") else None
    if found is None or found.status == "stopped":
        return False
    if found.watermark and str(event.get("ts", "")) <= found.watermark:
        return False  # already read with the thread
    return found.follow or found.status == "asked" or bool(event.get("files"))


def _file(item: dict[str, Any]) -> dict[str, Any]:
    keep = ("id", "name", "size", "mimetype", "mode", "url_private", "url_private_download")
    return {k: item[k] for k in keep if k in item}


def command(store: Store, payload: dict[str, Any]) -> bool:
    """A slash command opens a thread of its own in the channel; its trigger id is its identity."""
    team, channel = str(payload.get("team_id", "")), str(payload.get("channel_id", ""))
    key = f"cmd:{payload.get('trigger_id', '')}"
    body = {
        "team": team,
        "channel": channel,
        "user": str(payload.get("user_id", "")),
        "text": str(payload.get("text", ""))[:4000],
        "files": [],
        "mention": True,
    }
    return store.enqueue(key, "command", f"{team}:{channel}:{key}", channel, body) is True


def action(store: Store, name: str, thread: str, payload: dict[str, Any], number: int = 0) -> bool:
    """A button whose work takes longer than an acknowledgement may: once per button of a message, double clicks are one."""
    channel = str((payload.get("channel") or {}).get("id") or "")
    message_ts = str((payload.get("message") or {}).get("ts") or "")
    user = str((payload.get("user") or {}).get("id") or "")
    key = f"act:{name}:{thread}:{message_ts}"
    body = {"channel": channel, "user": user, "message": message_ts, "number": number}
    return store.enqueue(key, name, thread, channel, body) is True
