"""The arms: what the product is compared with, and the product with parts taken out."""

from __future__ import annotations

from evals.arms import informed, model, product, scripted, simple
from evals.arms.base import Answer, Arm, ArmError, Task

__all__ = ["ARMS", "GROUPS", "Answer", "Arm", "ArmError", "Task", "expand"]

ARMS: dict[str, Arm] = {
    arm.name: arm for arm in (*simple.ARMS, *product.ARMS, *informed.ARMS, *scripted.ARMS, *model.ARMS)
}
GROUPS: dict[str, list[str]] = {
    "one-layer-off": [name for name in ARMS if name.startswith("without:")],
    "baselines": ["constant", "majority", "loudest-metric", "closed-book"],
    "ablations": ["no-verify", "no-knowledge", *(name for name in ARMS if name.startswith("without:"))],
}


def expand(names: list[str]) -> list[Arm]:
    """Arms by name or group name, each once. Raises ``ValueError`` that lists the names."""
    out: dict[str, Arm] = {}
    for name in names:
        for one in GROUPS.get(name, [name]):
            if one not in ARMS:
                raise ValueError(f"no arm {one!r}; there are: {', '.join([*ARMS, *GROUPS])}")
            out[one] = ARMS[one]
    return list(out.values())
