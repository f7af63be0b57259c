"""The HTTP door of the Slack app: one path, bounded bodies, one thread a request. TLS belongs to the proxy before it."""

from __future__ import annotations

import logging
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slack_bolt import App

log = logging.getLogger("inferdx.slack")
PATH = "/slack/events"
MAX_BODY = 1 << 20


def server(app: App, host: str, port: int) -> ThreadingHTTPServer:
    """A server for Slack's requests (events, commands, interactions on one path); the caller serves and closes it."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 15

        def do_GET(self) -> None:
            self._send(200 if self.path == "/healthz" else 404, b"ok\n" if self.path == "/healthz" else b"", {})

        def do_POST(self) -> None:
            from slack_bolt import BoltRequest

            length = int(self.headers.get("Content-Length") or 0) if self._digits() else -1
            if self.path.split("?")[0] != PATH or not 0 <= length <= MAX_BODY:
                self._send(413 if length > MAX_BODY else 404, b"", {})
                return
            body = self.rfile.read(length).decode("utf-8", "replace")
            headers: Any = dict(self.headers.items())
            answer = app.dispatch(BoltRequest(body=body, query=self.path.partition("?")[2], headers=headers))
            first = {k: v[0] for k, v in answer.headers.items() if v}
            self._send(answer.status, (answer.body or "").encode(), first)

        def _digits(self) -> bool:
            return (self.headers.get("Content-Length") or "").isdigit()

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() != "content-length":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            log.debug(format, *args)

    return ThreadingHTTPServer((host, port), Handler)
