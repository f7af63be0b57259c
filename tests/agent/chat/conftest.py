"""Fixtures of the chat tests: an environment of their own, and terminals that are closed at the end."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.agent.chat.terminal import ROOT, Terminal


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("INFERDX_", "LANG", "LC_"))}
    return {**keep, "INFERDX_DATA": str(tmp_path), "PYTHONPATH": str(ROOT), "TERM": "xterm", "LC_ALL": "C.UTF-8",
            "COLUMNS": "100", "XDG_CONFIG_HOME": str(tmp_path)}  # fmt: skip


@pytest.fixture
def terminals(env: dict[str, str]) -> Iterator[list[Terminal]]:
    made: list[Terminal] = []
    yield made
    for terminal in made:
        terminal.end()


@pytest.fixture
def page() -> Iterator[str]:
    """Address of a metrics page that always says the same."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'vllm:num_requests_running{model_name="m"} 4.0\n')

        def log_message(self, *args: object) -> None:
            del args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/metrics"
    server.shutdown()
    server.server_close()
