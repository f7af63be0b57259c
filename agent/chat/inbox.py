"""Everything a person gives is written down before it is worked on: a crash at any step loses no evidence.

One folder per thread: ``inbox.jsonl`` (what was said, in order) and ``state.sqlite`` (checkpoints of the graph).
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any


def home() -> Path:
    """``$INFERDX_DATA``, else the XDG data directory."""
    base = os.environ.get("INFERDX_DATA") or os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "inferdx"


def threads() -> list[Path]:
    """Thread folders, the one last spoken in first."""
    root = home() / "threads"

    def spoken(path: Path) -> float:
        inbox = path / "inbox.jsonl"
        return inbox.stat().st_mtime if inbox.exists() else path.stat().st_mtime

    return sorted((p for p in root.iterdir() if p.is_dir()), key=spoken, reverse=True) if root.is_dir() else []


def new_thread(name: str = "") -> Path:
    """A new thread folder; its name holds no user id."""
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "-", name)[:60] or time.strftime("%Y%m%d-%H%M%S")
    path = home() / "threads" / safe
    number = 1
    while path.exists():
        number += 1
        path = home() / "threads" / f"{safe}-{number}"
    path.mkdir(parents=True, mode=0o700)
    return path


class Inbox:
    """Append-only record of inputs, one JSON object a line, written through to disk before anything else happens."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "inbox.jsonl"

    def add(self, kind: str, **content: Any) -> int:
        """Write one entry through to disk and return its number (from 1)."""
        number = max((int(e["n"]) for e in self.entries()), default=0) + 1
        # ASCII escapes keep every separator that Unicode knows, and lone surrogates, inside the one line.
        line = json.dumps({"n": number, "kind": kind, **content}) + "\n"
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(size - 1)
                line = line if file.read(1) == b"\n" else "\n" + line
            file.seek(0, os.SEEK_END)
            file.write(line.encode("ascii"))
            file.flush()
            os.fsync(file.fileno())
        return number

    def entries(self) -> list[dict[str, Any]]:
        """All whole entries; a line cut by a crash is left out."""
        if not self.path.exists():
            return []
        out = []
        for line in self.path.read_bytes().split(b"\n"):
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and isinstance(entry.get("n"), int) and "kind" in entry:
                out.append(entry)
        return out
