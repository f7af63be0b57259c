"""``inferdx chat`` in a real terminal (a pseudo-terminal) and from a pipe."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WORLD = ROOT / "evals" / "cases" / "case-0200" / "world"
# A terminal of its own, so that Ctrl-C typed there arrives as a signal.
OWN = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
MAIN = "import sys; from agent.cli import run; sys.exit(run(sys.argv[1:]))"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("INFERDX_", "LANG", "LC_"))}
    return {**keep, "INFERDX_DATA": str(tmp_path), "PYTHONPATH": str(ROOT), "TERM": "xterm", "LC_ALL": "C.UTF-8",
            "COLUMNS": "100", "XDG_CONFIG_HOME": str(tmp_path)}  # fmt: skip


class Terminal:
    """A chat on a pseudo-terminal."""

    def __init__(self, env: dict[str, str], *args: str) -> None:
        self.master, slave = pty.openpty()
        self.child = subprocess.Popen(
            [sys.executable, "-c", OWN + MAIN, "chat", *args], cwd=ROOT, env=env, stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.seen = ""

    def send(self, text: str) -> None:
        os.write(self.master, text.encode())

    def until(self, pattern: str, limit: float = 90.0) -> str:
        """What appears up to a pattern."""
        end = time.monotonic() + limit
        start = len(self.seen)
        while time.monotonic() < end:
            if re.search(pattern, self.seen[start:]):
                return self.seen[start:]
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.master, 65536).decode("utf-8", "replace")
                except OSError:
                    break
        assert re.search(pattern, self.seen[start:]), f"no {pattern!r} in {self.seen[start:][-1500:]!r}"
        return self.seen[start:]

    def interrupt(self, pattern: str) -> None:
        """Ctrl-C, pressed again while nothing is said: the interpreter's line editor can lose one that comes between
        its prompt and its wait (it looks at signals only after the wait is interrupted)."""
        start = len(self.seen)
        for _ in range(20):
            os.kill(self.child.pid, signal.SIGINT)
            end = time.monotonic() + 3
            while time.monotonic() < end and not re.search(pattern, self.seen[start:]):
                if select.select([self.master], [], [], 0.2)[0]:
                    self.seen += os.read(self.master, 65536).decode("utf-8", "replace")
            if re.search(pattern, self.seen[start:]):
                return
        raise AssertionError(f"no {pattern!r} in {self.seen[start:][-1500:]!r}")

    def end(self) -> None:
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait(10)
        os.close(self.master)


@pytest.fixture
def terminals(env: dict[str, str]) -> Iterator[list[Terminal]]:
    made: list[Terminal] = []
    yield made
    for terminal in made:
        terminal.end()


def test_a_dialogue_on_a_terminal(env: dict[str, str], terminals: list[Terminal], tmp_path: Path) -> None:
    chat = Terminal(env, "--no-model", str(WORLD))
    terminals.append(chat)
    assert "no model" in chat.until(r"Evidence[\s\S]*> ")
    chat.send("/why\r")
    chat.until(r"\+ [\s\S]*> $")
    chat.send("/evidence E1\r")
    chat.until(r"E1 \S+ = [\s\S]*> $")
    chat.send("\x1b[200~first pasted line\nTTFT p99 is 24 s\nlast pasted line\x1b[201~\r")
    chat.until(r"write: [\s\S]*> $")
    chat.interrupt("thread is kept")
    chat.send("/attach /no/such/file\r")
    chat.until(r"write: [\s\S]*> $")
    chat.send("/wyh\r")
    chat.until("did you mean /why")
    chat.send(f"/save {tmp_path}/a.json\r")
    chat.until("written")
    chat.send(f"/export {tmp_path}/a.md\r")
    chat.until("written")
    os.kill(chat.child.pid, signal.SIGKILL)
    chat.child.wait(10)
    entries = [
        json.loads(line) for line in next((tmp_path / "inferdx/threads").iterdir()).joinpath("inbox.jsonl").open()
    ]
    assert [e["kind"] for e in entries] == ["attach", "text", "attach"]
    assert entries[1]["text"] == "first pasted line\nTTFT p99 is 24 s\nlast pasted line"
    data = json.loads((tmp_path / "a.json").read_text())
    assert data["outcome"] == "incident" and (tmp_path / "a.md").read_text().startswith("## ")
    again = Terminal(env, "--no-model", "--resume")
    terminals.append(again)
    said = again.until(r"Evidence[\s\S]*> ")
    assert data["headline"].split("—")[0].strip() in said
    again.send("\x04")
    assert again.child.wait(20) == 1


def test_ctrl_c_stops_a_scrape_and_keeps_the_thread(env: dict[str, str], terminals: list[Terminal]) -> None:
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'vllm:num_requests_running{model_name="m"} 4.0\n')

        def log_message(self, *args: object) -> None:
            del args

    server = HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    chat = Terminal(env, "--no-model")
    terminals.append(chat)
    chat.until(r"/attach[\s\S]*> ")
    chat.send(f"/attach http://127.0.0.1:{server.server_address[1]}/metrics\r")
    time.sleep(3)
    begin = time.monotonic()
    chat.send("\x03")
    chat.until("thread is kept")
    assert time.monotonic() - begin < 15
    chat.send("/thread\r")
    chat.until("resume with")
    server.shutdown()
    server.server_close()


def test_from_a_pipe_blocks_are_inputs_and_commands_are_commands(env: dict[str, str]) -> None:
    talk = "\n".join([
        "/why", "", "what is wrong?", "", (WORLD / "report.md").read_text().replace("\n\n", "\n"), "",
        "/attach " + str(WORLD / "launch.txt") + " " + str(WORLD / "server.log"), "why", "为什么", "下一步", "怎么解决",
        "/lang zh", "结论", "/quit",
    ])  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "chat", "--no-model"], input=talk, cwd=ROOT, env=env, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "Nothing to go on yet" in done.stdout and "write: incident" in done.stdout
    assert "\x1b" not in done.stdout and ("调度层" in done.stdout or "内核层" in done.stdout)
    assert "Traceback" not in done.stderr


def test_a_thread_is_open_in_one_terminal_only(env: dict[str, str], tmp_path: Path) -> None:
    import fcntl

    folder = tmp_path / "inferdx" / "threads" / "one"
    folder.mkdir(parents=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = subprocess.run(
            [sys.executable, "-c", MAIN, "chat", "--resume", "one"], cwd=ROOT, env=env, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 3 and "open in another terminal" in done.stderr
