"""Recent runs, so that evidence can be asked for after the answer. The only thing the server remembers."""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from threading import Lock

from msgspec import Struct

from agent.diagnosis import Diagnosis
from agent.mcp.trouble import Trouble
from tools.view import Evidence

KEEP = 16


class Run(Struct, kw_only=True):
    """One answer: its evidence, and the diagnosis when it was one."""

    id: str
    evidence: list[Evidence]
    diagnosis: Diagnosis | None = None


class Runs:
    """The last :data:`KEEP` runs, oldest forgotten first. Safe to use from several threads."""

    def __init__(self, keep: int = KEEP) -> None:
        self._keep, self._lock = keep, Lock()
        self._held: OrderedDict[str, Run] = OrderedDict()

    def add(self, evidence: list[Evidence], diagnosis: Diagnosis | None = None) -> Run:
        """Keep it under an id made from its content: the same input gives the same id."""
        import msgspec

        stable = diagnosis.to_json(stable=True) if diagnosis else msgspec.json.encode(evidence)
        run = Run(id="r" + hashlib.sha256(stable).hexdigest()[:12], evidence=evidence, diagnosis=diagnosis)
        with self._lock:
            self._held[run.id] = run
            self._held.move_to_end(run.id)
            while len(self._held) > self._keep:
                self._held.popitem(last=False)
        return run

    def get(self, run_id: str) -> Run:
        """Raises :class:`Trouble` for a run that is not, or no longer, held."""
        with self._lock:
            run = self._held.get(run_id)
        if run is None:
            shown = run_id if re.fullmatch(r"[\w-]{1,40}", run_id) else "that id"
            what = f"{shown}: no such run among the last {self._keep}"
            raise Trouble(
                "unknown_run", what, "call diagnose, fetch_metrics or read_config again and use the new run id"
            )
        return run

    def latest(self) -> list[Run]:
        """Newest first."""
        with self._lock:
            return list(reversed(self._held.values()))

    def __len__(self) -> int:
        return len(self._held)
