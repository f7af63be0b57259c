"""Probes that we can run ourselves on what is at hand. Nothing here touches the patient."""

from __future__ import annotations

from agent.state import Executable
from tools.view import Ledger


def executables(ledger: Ledger) -> list[Executable]:
    """Executable probes whose inputs are known."""
    del ledger
    return []
