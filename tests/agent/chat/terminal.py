"""A chat on a pseudo-terminal, as its tests drive it."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[3]
WORLD = ROOT / "evals" / "cases" / "case-0200" / "world"
# A terminal of its own, so that Ctrl-C typed there arrives as a signal.
OWN = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
MAIN = "import sys; from agent.cli import run; sys.exit(run(sys.argv[1:]))"


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
