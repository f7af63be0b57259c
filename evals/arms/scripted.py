"""A scripted adversary in the model's place: wrong orders, unknown ids, repeats, nothing, exceptions. The verdict must
be the one of the rules."""

from __future__ import annotations

from typing import Any

from agent.state import Env
from evals.arms.base import Answer, Arm, Task
from evals.arms.product import solve, sources_of


class Adversary:
    """An :class:`~agent.state.Orderer` that misbehaves in a fixed sequence."""

    def __init__(self) -> None:
        self.calls = 0

    def order(self, ids: list[str], leads: list[dict[str, Any]]) -> list[str]:
        """Reversed, doubled, unknown, empty, or an exception, in turn; it also scribbles over what it was given."""
        del leads
        self.calls += 1
        given = list(ids)
        ids.clear()
        match self.calls % 5:
            case 1:
                return given[::-1]
            case 2:
                return given + given
            case 3:
                return ["E999", "rm -rf /", *given[1:]]
            case 4:
                return []
        raise TimeoutError("the model stalls")


def scripted(task: Task) -> Answer:
    """The product with the adversary as its model."""

    def attach(env: Env) -> None:
        env.orderer = Adversary()

    return solve(task, task.known, sources_of(task.world), attach)


ARMS = [Arm(name="scripted", says="the product with a scripted adversary as its model", answer=scripted, derived=True)]
