"""A loopback stand-in for Slack's Web API that holds every call against Slack's documented limits.

It keeps channels, threads and files in memory, answers like Slack (errors with HTTP 200, rate limits with 429), and
signs the requests it sends to the app. ``faults`` lets a test fail chosen calls.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

TOKEN = "xoxb-test-token"
SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
BOT = "UBOT00001"
TEAM = "T0000001"
PLAIN_MAX = {"header": 150, "button": 75}


def check_text(item: Any, where: str, cap: int, kinds: tuple[str, ...] = ("plain_text", "mrkdwn")) -> list[str]:
    if not isinstance(item, dict) or item.get("type") not in kinds:
        return [f"{where}: not a text object of {kinds}: {item!r}"[:200]]
    text = item.get("text")
    if not isinstance(text, str) or not 1 <= len(text) <= cap:
        return [f"{where}: text of {len(text or '')} characters (1–{cap})"]
    out = []
    if item["type"] == "mrkdwn":
        for bad in ("<!", "<@", "<#", "<http", "@channel", "@here", "@everyone"):
            if bad in text:
                out.append(f"{where}: {bad} would mention or link")
        # a paste-ready command stays intact in a code span; Slack links nothing in there
        if "://" in re.sub(r"`[^`]*`", "", text):
            out.append(f"{where}: a bare link")
        if item.get("verbatim") is not True and "://" in text:
            out.append(f"{where}: links would be made")
    return out


def check_button(item: dict[str, Any], where: str) -> list[str]:
    out = check_text(item.get("text"), where, 75, ("plain_text",))
    if not 1 <= len(item.get("value", "")) <= 2000:
        out.append(f"{where}: value")
    if not item.get("action_id") or len(item["action_id"]) > 255:
        out.append(f"{where}: action_id")
    if item.get("style", "primary") not in ("primary", "danger"):
        out.append(f"{where}: style")
    return out


def check_block(block: dict[str, Any], where: str) -> list[str]:
    """Slack's rules for one block of the kinds that are used here; any other kind is refused."""
    kind = block.get("type")
    out: list[str] = []
    if kind == "section":
        out += check_text(block.get("text"), where, 3000)
        if len(block.get("fields", [])) > 10:
            out.append(f"{where}: fields")
    elif kind == "context":
        elements = block.get("elements", [])
        if not 1 <= len(elements) <= 10:
            out.append(f"{where}: context elements")
        for item in elements:
            out += check_text(item, where, 3000)
    elif kind == "actions":
        elements = block.get("elements", [])
        if not 1 <= len(elements) <= 25:
            out.append(f"{where}: actions elements")
        ids = [e.get("action_id") for e in elements]
        if len(set(ids)) != len(ids):
            out.append(f"{where}: repeated action_id")
        for item in elements:
            out += check_button(item, where) if item.get("type") == "button" else [f"{where}: {item.get('type')}"]
    elif kind == "context_actions":
        elements = block.get("elements", [])
        if not 1 <= len(elements) <= 5:
            out.append(f"{where}: context_actions elements")
        for item in elements:
            if item.get("type") != "feedback_buttons":
                out.append(f"{where}: {item.get('type')}")
                continue
            for side in ("positive_button", "negative_button"):
                out += check_text(item[side].get("text"), where, 75, ("plain_text",))
                if not 1 <= len(item[side].get("value", "")) <= 2000:
                    out.append(f"{where}: value")
    else:
        out.append(f"{where}: block type {kind!r}")
    return out


def check_blocks(blocks: Any) -> list[str]:
    if not isinstance(blocks, list) or not 1 <= len(blocks) <= 50:
        return [f"{len(blocks) if isinstance(blocks, list) else blocks!r} blocks (1–50)"]
    out = [line for n, b in enumerate(blocks) for line in check_block(b, f"block {n}")]
    total = len(json.dumps(blocks, ensure_ascii=False))
    if sum(len(t) for t in texts_of(blocks)) > 13_200:
        out.append(f"message of {total} characters")
    return out


def texts_of(item: Any) -> list[str]:
    if isinstance(item, dict):
        own = [item["text"]] if isinstance(item.get("text"), str) else []
        return own + [t for v in item.values() if isinstance(v, (dict, list)) for t in texts_of(v)]
    return [t for v in item for t in texts_of(v)] if isinstance(item, list) else []


def check_view(view: dict[str, Any]) -> list[str]:
    out = [] if view.get("type") == "modal" else ["view type"]
    for key in ("title", "submit", "close"):
        out += check_text(view.get(key), key, 24, ("plain_text",))
    if len(view.get("private_metadata", "")) > 3000 or len(view.get("callback_id", "")) > 255:
        out.append("metadata")
    if not 1 <= len(view.get("blocks", [])) <= 100:
        out.append("blocks")
    for n, block in enumerate(view.get("blocks", [])):
        if block.get("type") != "input":
            out.append(f"block {n}: {block.get('type')}")
            continue
        out += check_text(block.get("label"), f"label {n}", 2000, ("plain_text",))
        element = block["element"]
        options = [*element.get("options", []), *[o for g in element.get("option_groups", []) for o in g["options"]]]
        for group in element.get("option_groups", []):
            out += check_text(group["label"], "group", 75, ("plain_text",))
            if not 1 <= len(group["options"]) <= 100:
                out.append("options of a group")
        if element["type"] == "radio_buttons" and not 1 <= len(options) <= 10:
            out.append("radio options")
        if len(element.get("option_groups", [])) > 100:
            out.append("groups")
        for option in options:
            out += check_text(option["text"], "option", 75, ("plain_text",))
            if len(option["value"]) > 150:
                out.append("option value")
    return out


class Slack:
    """The stand-in. ``messages``: every posted message in order; ``broken``: limits that were broken (must stay empty)."""

    def __init__(self, every_s: float = 0.0) -> None:
        self.lock = threading.RLock()
        self.messages: list[dict[str, Any]] = []
        self.updates: list[dict[str, Any]] = []
        self.ephemerals: list[dict[str, Any]] = []
        self.views: list[dict[str, Any]] = []
        self.files: dict[str, dict[str, Any]] = {}
        self.calls: list[tuple[float, str, dict[str, Any]]] = []
        self.broken: list[str] = []
        self.faults: Callable[[str, dict[str, Any], int], Any] | None = None
        self.every_s = every_s
        self._last: dict[str, float] = {}
        self._clock = 1_700_000_000
        self._count = 0
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                owner._serve(self, b"")

            def do_POST(self) -> None:
                owner._serve(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))

            def log_message(self, *args: Any) -> None:
                del args

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.url = f"{self.base}/api/"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    # ── what Slack does ──────────────────────────────────────────────────────────────────────────────────────
    def stamp(self) -> str:
        with self.lock:
            self._clock += 1
            return f"{self._clock}.000100"

    def person_says(self, channel: str, text: str, thread: str = "", files: list[str] | None = None) -> dict[str, Any]:
        """A person's message, kept in the channel; the event that Slack would deliver."""
        item: dict[str, Any] = {
            "type": "message",
            "user": "U0HUMAN01",
            "text": text,
            "ts": self.stamp(),
            "channel": channel,
        }
        if thread:
            item["thread_ts"] = thread
        if files:
            item["subtype"] = "file_share"
            item["files"] = [self.files[f] for f in files]
        with self.lock:
            self.messages.append(item)
        return dict(item)

    def add_file(self, name: str, data: bytes, mimetype: str = "text/plain") -> str:
        with self.lock:
            key = f"F{len(self.files):08d}"
            url = f"{self.base}/files/{key}"
            self.files[key] = {
                "id": key, "name": name, "size": len(data), "mimetype": mimetype, "url_private_download": url,
                "data": data,
            }  # fmt: skip
        return key

    def thread(self, channel: str, ts: str) -> list[dict[str, Any]]:
        with self.lock:
            return [m for m in self.messages if m["channel"] == channel and ts in (m.get("thread_ts"), m["ts"])]

    def ours(self, channel: str = "", ts: str = "") -> list[dict[str, Any]]:
        with self.lock:
            return [
                m for m in self.messages
                if m.get("bot_id") and (not channel or m["channel"] == channel) and (not ts or m.get("thread_ts") == ts)
            ]  # fmt: skip

    # ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────
    def _serve(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        url = urlsplit(handler.path)
        if url.path.startswith("/files/"):
            self._download(handler, url.path.rsplit("/", 1)[-1])
            return
        if url.path.startswith("/upload/"):
            with self.lock:
                self.files[url.path.rsplit("/", 1)[-1]]["data"] = body
            _send(handler, 200, b"OK", {})
            return
        method = url.path.removeprefix("/api/")
        if "json" in handler.headers.get("Content-Type", ""):
            given = json.loads(body or b"{}")
        else:
            given = {k: v[0] for k, v in parse_qs(url.query + "&" + body.decode()).items()}
        if handler.headers.get("Authorization") != f"Bearer {TOKEN}":
            _json(handler, {"ok": False, "error": "invalid_auth"})
            return
        with self.lock:
            self._count += 1
            count = self._count
            self.calls.append((time.monotonic(), method, given))
        fault = self.faults(method, given, count) if self.faults else None
        if isinstance(fault, tuple):
            _send(handler, fault[0], json.dumps(fault[1]).encode(), fault[2])
            return
        if fault == "drop":
            handler.close_connection = True
            return
        with self.lock:
            answer = self._call(method, given)
        if fault == "drop after":
            handler.close_connection = True
            return
        if "retry" in answer:
            _send(handler, 429, b'{"ok":false,"error":"ratelimited"}', {"Retry-After": str(answer["retry"])})
        else:
            _json(handler, answer)

    def _download(self, handler: BaseHTTPRequestHandler, key: str) -> None:
        if handler.headers.get("Authorization") != f"Bearer {TOKEN}":
            _send(handler, 200, b"<html>sign in</html>", {"Content-Type": "text/html"})
            return
        found = self.files.get(key)
        _send(
            handler,
            200 if found else 404,
            found["data"] if found else b"",
            {"Content-Type": "application/octet-stream"},
        )

    def _call(self, method: str, given: dict[str, Any]) -> dict[str, Any]:
        name = method.replace(".", "_")
        act = getattr(self, f"do_{name}", None)
        return act(given) if act else {"ok": False, "error": "unknown_method"}

    def _check(self, problems: list[str], method: str) -> dict[str, Any] | None:
        if problems:
            self.broken += [f"{method}: {p}" for p in problems]
            return {"ok": False, "error": "invalid_blocks"}
        return None

    def do_auth_test(self, given: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True, "user_id": BOT, "team_id": TEAM, "bot_id": "B0000001", "team": "test", "user": "inferdx"}

    def do_chat_postMessage(self, given: dict[str, Any]) -> dict[str, Any]:
        channel = given["channel"]
        now = time.monotonic()
        if self.every_s and now - self._last.get(channel, -9) < self.every_s * 0.95:
            return {"retry": 1}
        self._last[channel] = now
        problems = check_blocks(given["blocks"]) if given.get("blocks") else []
        if not given.get("text") or len(given["text"]) > 4000:
            problems.append("text")
        if given.get("unfurl_links") is not False or given.get("unfurl_media") is not False:
            problems.append("previews are on")
        if (no := self._check(problems, "chat.postMessage")) is not None:
            return no
        item = {k: given[k] for k in ("channel", "text", "blocks", "thread_ts", "metadata") if given.get(k)}
        item |= {"ts": self.stamp(), "bot_id": "B0000001", "user": BOT, "type": "message"}
        self.messages.append(item)
        return {"ok": True, "ts": item["ts"], "channel": channel}

    def do_chat_update(self, given: dict[str, Any]) -> dict[str, Any]:
        found = [m for m in self.messages if m["ts"] == given["ts"] and m["channel"] == given["channel"]]
        if not found:
            return {"ok": False, "error": "message_not_found"}
        if (no := self._check(check_blocks(given["blocks"]), "chat.update")) is not None:
            return no
        found[0] |= {"text": given["text"], "blocks": given["blocks"]}
        self.updates.append({"at": time.monotonic(), **given})
        return {"ok": True, "ts": given["ts"]}

    def do_chat_postEphemeral(self, given: dict[str, Any]) -> dict[str, Any]:
        if (no := self._check(check_blocks(given["blocks"]), "chat.postEphemeral")) is not None:
            return no
        self.ephemerals.append(given)
        return {"ok": True, "message_ts": self.stamp()}

    def do_conversations_replies(self, given: dict[str, Any]) -> dict[str, Any]:
        found = self.thread(given["channel"], given["ts"])
        rows = [{k: v for k, v in m.items() if k != "metadata" or given.get("include_all_metadata")} for m in found]
        return {"ok": True, "messages": [_public(m) for m in rows], "response_metadata": {"next_cursor": ""}}

    def do_conversations_history(self, given: dict[str, Any]) -> dict[str, Any]:
        rows = [m for m in self.messages if m["channel"] == given["channel"] and not m.get("thread_ts")]
        return {"ok": True, "messages": [_public(m) for m in rows[::-1][: int(given.get("limit", 100))]]}

    def do_files_getUploadURLExternal(self, given: dict[str, Any]) -> dict[str, Any]:
        if int(given["length"]) < 1:
            return {"ok": False, "error": "invalid_arguments"}
        key = self.add_file(given["filename"], b"")
        return {"ok": True, "upload_url": f"{self.base}/upload/{key}", "file_id": key}

    def do_files_completeUploadExternal(self, given: dict[str, Any]) -> dict[str, Any]:
        files = [self.files[f["id"]] | {"title": f["title"]} for f in given["files"]]
        self.messages.append(
            {"channel": given["channel_id"], "thread_ts": given["thread_ts"], "ts": self.stamp(), "bot_id": "B0000001",
             "user": BOT, "text": given.get("initial_comment", ""), "files": files, "type": "message"}
        )  # fmt: skip
        return {"ok": True, "files": [_public(f) for f in files]}

    def do_views_open(self, given: dict[str, Any]) -> dict[str, Any]:
        if (no := self._check(check_view(given["view"]), "views.open")) is not None:
            return no
        self.views.append(given["view"])
        return {"ok": True, "view": given["view"]}


def _public(item: dict[str, Any]) -> dict[str, Any]:
    out = {k: v for k, v in item.items() if k != "data"}
    if "files" in out:
        out["files"] = [_public(f) for f in out["files"]]
    return out


def _json(handler: BaseHTTPRequestHandler, data: dict[str, Any]) -> None:
    _send(handler, 200, json.dumps(data).encode(), {"Content-Type": "application/json"})


def _send(handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def signed(body: str, secret: str = SECRET, at: float | None = None) -> dict[str, str]:
    """Slack's request signature, version 0."""
    stamp = str(int(time.time() if at is None else at))
    mac = hmac.new(secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={mac}"}


def event_body(event: dict[str, Any], event_id: str = "Ev1", kind: str = "") -> str:
    clean = dict(event)
    if kind:
        clean["type"] = kind
    if "files" in clean:
        clean["files"] = [_public(f) for f in clean["files"]]
    return json.dumps(
        {"type": "event_callback", "team_id": TEAM, "event_id": event_id, "event": clean, "api_app_id": "A1"}
    )


def action_body(name: str, value: str, message: dict[str, Any], user: str = "U0HUMAN01") -> str:
    data = {
        "type": "block_actions", "team": {"id": TEAM}, "user": {"id": user}, "trigger_id": f"tr.{name}.{time.time()}",
        "channel": {"id": message["channel"]}, "message": {"ts": message["ts"], "thread_ts": message.get("thread_ts", "")},
        "actions": [{"action_id": name, "block_id": "b", "value": value, "type": "button", "action_ts": "1.1"}],
    }  # fmt: skip
    return urlencode({"payload": json.dumps(data)})


def deliver(url: str, body: str, secret: str = SECRET, at: float | None = None) -> int:
    """Send a signed request to the app; the HTTP status."""
    kind = "application/json" if body.startswith("{") else "application/x-www-form-urlencoded"
    request = urllib.request.Request(url, body.encode(), {"Content-Type": kind, **signed(body, secret, at)})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return int(error.code)


def button_value(message: dict[str, Any], name: str) -> str:
    """The value that a button of a message carries; ``feedback+``/``feedback-`` for the thumbs."""
    for block in message.get("blocks", []):
        for element in block.get("elements", []):
            if name in ("feedback+", "feedback-") and element.get("type") == "feedback_buttons":
                return str(element["positive_button" if name.endswith("+") else "negative_button"]["value"])
            if element.get("action_id") == name:
                return str(element["value"])
    raise AssertionError(f"no button {name} in {message.get('text')!r}")
