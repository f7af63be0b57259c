"""How to think: the loop, belief, planning, verification, the renderers and the doors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.api import Diagnosis, diagnose, diagnose_async

__all__ = ["Diagnosis", "diagnose", "diagnose_async"]


def __getattr__(name: str) -> Any:
    """Load the public API on first use, so that ``import agent`` stays cheap."""
    if name in __all__:
        from agent import api

        return getattr(api, name)
    raise AttributeError(name)
