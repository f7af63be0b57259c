"""Progress for reads that take longer than a second."""

from __future__ import annotations

import time

from tools.profile.model import Progress


class Ticker:
    """Calls ``progress(what, fraction)`` once a second, for the first time after one second."""

    def __init__(self, what: str, progress: Progress | None, total: float = 0.0) -> None:
        self.what = what
        self.progress = progress
        self.total = total
        self.done = 0.0
        self._next = time.monotonic() + 1.0

    def tick(self) -> None:
        """Cheap; safe to call often."""
        if self.progress is None:
            return
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 1.0
            self.progress(self.what, min(1.0, self.done / self.total) if self.total > 0 else 0.0)
