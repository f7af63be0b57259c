"""Inputs of a chat from a terminal or a pipe: one line, or a whole paste."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

MAX_PASTE = 8 << 20


class Inputs:
    """``read()`` gives one input at a time. History is kept in ``history`` (mode 0600) when a terminal is there."""

    def __init__(self, history: Path | None = None, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdin
        self.tty = self.stream.isatty()
        self._held: list[str] = []
        if hasattr(self.stream, "reconfigure"):
            self.stream.reconfigure(errors="replace")
        if self.tty and history is not None:
            _line_editing(history)

    def read(self) -> str | None:
        """A line; a paste (lines already waiting behind it, bracketed or not); lines up to a closing fence or after a
        trailing backslash. From a pipe: a command, or a block up to the next blank line or command. ``None`` at the end.
        """
        first = self._line()
        if first is None:
            return None
        lines = [first]
        fenced = _opens(first)
        while sum(map(len, lines)) < MAX_PASTE:
            going = lines[-1].rstrip().endswith("\\") or (fenced and not (len(lines) > 1 and _closes(lines[-1])))
            if not going and not (self._waiting() if self.tty else self._block_goes_on(first)):
                break
            more = self._line()
            if more is None:
                break
            lines.append(more)
        return "\n".join(lines)

    def _line(self) -> str | None:
        if self._held:
            return self._held.pop()
        if self.tty:
            try:
                return input("> ")
            except EOFError:
                return None
        line = self.stream.readline()
        return line.rstrip("\r\n") if line else None

    def _waiting(self) -> bool:
        import select

        return bool(select.select([self.stream], [], [], 0.05)[0])

    def _block_goes_on(self, first: str) -> bool:
        if not first.strip() or first.lstrip().startswith("/"):
            return False
        following = self._line()
        if following is None:
            return False
        self._held.append(following)
        return bool(following.strip()) and not following.startswith("/")


def _opens(line: str) -> bool:
    return line.lstrip().startswith("```") and line.count("```") == 1


def _closes(line: str) -> bool:
    return line.strip() == "```"


def _line_editing(history: Path) -> None:
    """Arrow keys, history over sessions, and bracketed paste where the line editor has it."""
    try:
        import readline
    except ImportError:
        return
    import atexit

    readline.parse_and_bind("set enable-bracketed-paste on")
    readline.set_history_length(1000)
    try:
        history.parent.mkdir(parents=True, exist_ok=True)
        history.touch(mode=0o600)
        readline.read_history_file(str(history))
    except OSError:
        return
    atexit.register(_keep, str(history))


def _keep(path: str) -> None:
    import readline

    try:
        readline.write_history_file(path)
    except OSError:
        return
