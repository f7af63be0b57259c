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
    """Thread folders, newest first."""
    root = home() / "threads"
    return sorted((p for p in root.iterdir() if p.is_dir()), key=lambda p: -p.stat().st_mtime) if root.is_dir() else []


def new_thread(name: str = "") -> Path:
    """A new thread folder; its name holds no user id."""
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "-", name)[:60] or time.strftime("%Y%m%d-%H%M%S")
    path = home() / "threads" / safe
    number = 1
    while path.exists():
        number += 1
        path = home() / "threads" / f"{safe}-{number}"
    path.mkdir(parents=True)
    return path


class Inbox:
    """Append-only record of inputs. ``done`` marks how many have reached the checkpoint."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "inbox.jsonl"

    def add(self, kind: str, **content: Any) -> int:
        """Write one entry through to disk and return its number (from 1)."""
        number = len(self.entries()) + 1
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"n": number, "kind": kind, **content}, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return number

    def entries(self) -> list[dict[str, Any]]:
        """All whole entries; a line cut by a crash is left out."""
        if not self.path.exists():
            return []
        out = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                out.append(json.loads(line))
            except ValueError:
                continue
        return out
