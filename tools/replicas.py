"""Ranks or engines of one deployment beside each other, whether a log, a metrics page or a person's table tells of them."""

from __future__ import annotations

from collections.abc import Iterator

# KV use up to which an engine has room, as a share of its pool; waiting requests from which it queues.
ROOM = 0.5
QUEUES = 1.0


def compared(
    running: dict[str, float], waiting: dict[str, float], usage: dict[str, float]
) -> Iterator[tuple[str, float | bool, str]]:
    """``(fact, value, how)`` of ``replicas.*`` from requests by name and KV use as a fraction, for those that tell it."""
    loads = {name: running.get(name, 0.0) + waiting.get(name, 0.0) for name in running.keys() | waiting.keys()}
    mean = sum(loads.values()) / len(loads) if loads else 0.0
    if mean > 0:
        yield (
            "replicas.load_max_over_mean",
            round(max(loads.values()) / mean, 4),
            "mean (running + waiting): most loaded ÷ average",
        )
    if len(usage) > 1:
        yield "replicas.kv_gap", round(max(usage.values()) - min(usage.values()), 4), "highest − lowest mean KV use"


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
