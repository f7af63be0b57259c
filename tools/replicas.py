"""Ranks or engines of one deployment beside each other, whether a log or a metrics page tells of them."""

from __future__ import annotations

# KV use up to which an engine has room, as a share of its pool; waiting requests from which it queues.
ROOM = 0.5
QUEUES = 1.0


def waiting_beside_free(queues: dict[str, float], usage: dict[str, float]) -> tuple[bool, str]:
    """Whether the one that queues most does so while another has none waiting and room, and how that was seen.

    ``queues``: mean waiting requests by name; ``usage``: mean KV use as a fraction, for those that tell it.
    """
    crowded = max(queues, key=lambda name: queues[name])
    free = [n for n, kv in usage.items() if n != crowded and kv <= ROOM and queues.get(n, QUEUES) < QUEUES]
    if queues[crowded] >= QUEUES and free:
        return (
            True,
            f"{crowded}: {queues[crowded]:.3g} wait on average; {len(free)} others have none and KV at most {ROOM:.0%}",
        )
    return False, f"none queues while another has none waiting and at most {ROOM:.0%} of its KV in use"
