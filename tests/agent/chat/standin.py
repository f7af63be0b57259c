"""A loopback OpenAI-compatible server that answers as a script says, and keeps every request body it saw."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# What one reply is: ("text", str) | ("status", int) | ("raw", bytes, content type) | ("stall", seconds) | ("drip", seconds)
# | ("cut", str) a stream that breaks off after these words | ("empty",) no choices | ("error200",)
Reply = tuple[Any, ...]
Script = Callable[[int, dict[str, Any]], Reply]


class StandIn:
    """``bodies``: request bodies in order; ``headers``: their headers; ``url``: the base URL."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.raw: list[bytes] = []
        self.url = ""


def _completion(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 4, "total_tokens": 24},
    }  # fmt: skip


def _handler(stand: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            del args

        def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            listing = {"object": "list", "data": [{"id": "m", "object": "model", "max_model_len": 8192}]}
            self._send(200 if self.path.endswith("/models") else 404, json.dumps(listing).encode())

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.loads(raw)
            stand.raw.append(raw)
            stand.headers.append(dict(self.headers.items()))
            stand.bodies.append(body)
            try:
                self._reply(stand.script(len(stand.bodies) - 1, body), bool(body.get("stream")))
            except (BrokenPipeError, ConnectionResetError):
                return

        def _reply(self, reply: Reply, streamed: bool) -> None:
            kind = reply[0]
            if kind == "status":
                self._send(reply[1], b'{"error": {"message": "no"}}')
            elif kind == "raw":
                self._send(200, reply[1], reply[2])
            elif kind == "stall":
                time.sleep(reply[1])
                self.close_connection = True
            elif kind == "error200":
                self._send(200, b'{"error": {"message": "overloaded"}}')
            elif kind == "empty" and not streamed:
                self._send(200, json.dumps({**_completion(""), "choices": []}).encode())
            elif kind == "drip":
                self._chunks([b" "] * 400, reply[1])
            elif streamed:
                words = [] if kind == "empty" else reply[1].split(" ")
                events = [_event(word if i == 0 else " " + word) for i, word in enumerate(words)]
                self._chunks(events if kind == "cut" else [*events, b"data: [DONE]\n\n"], 0.0, cut=kind == "cut")
            else:
                self._send(200, json.dumps(_completion(reply[1])).encode())

        def _chunks(self, pieces: list[bytes], pause: float, cut: bool = False) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in pieces:
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.wfile.flush()
                time.sleep(pause)
            if not cut:
                self.wfile.write(b"0\r\n\r\n")
            self.close_connection = True

    return Handler


def _event(text: str) -> bytes:
    data = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}  # fmt: skip
    return b"data: " + json.dumps(data).encode() + b"\n\n"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, address: Any) -> None:
        del request, address


@contextmanager
def serving(script: Script) -> Iterator[StandIn]:
    """Serve on a free loopback port until the block ends."""
    stand = StandIn(script)
    server = _Server(("127.0.0.1", 0), _handler(stand))
    server.block_on_close = False
    stand.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield stand
    finally:
        server.shutdown()
        server.server_close()


def text_of(body: dict[str, Any]) -> str:
    """All words of a request's messages."""
    return "\n".join(str(m.get("content")) for m in body["messages"])


def good(number: int, body: dict[str, Any]) -> Reply:
    """A fair model: fills any schema with its first allowed values, and writes one sound sentence."""
    del number
    form = body.get("response_format", {}).get("json_schema", {}).get("schema")
    if body.get("tools"):
        return ("status", 400)
    if form is None:
        ids = [w.split(" ")[0] for w in text_of(body).splitlines() if w.startswith("E")]
        return ("text", f"The value {{{ids[0] if ids else 'E1'}}} stands out here.\n")
    return ("text", json.dumps(_filled(form)))


def _filled(form: dict[str, Any]) -> Any:
    if "enum" in form:
        return form["enum"][0]
    if form.get("type") == "object":
        return {key: _filled(value) for key, value in form["properties"].items()}
    return [] if form.get("type") == "array" else ""
