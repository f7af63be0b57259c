"""Arms that are given labels: they check the bench, not the product."""

from __future__ import annotations

import random

from evals.arms.base import Answer, Arm, ArmError, Task, plain
from evals.schema import Label
from evals.stats import SEED
from knowledge.schema import Knowledge


def _tell(known: Knowledge, label: Label, withheld: bool) -> Answer:
    if withheld:
        return Answer(diagnosis=plain(known, "undecidable", confidence=0.0))
    return Answer(
        diagnosis=plain(
            known, label.outcome, label.cause_families, confidence=1.0, chain=label.chain,
            probes=label.acceptable_next_probes[:3], files=label.decisive_files,
        )
    )  # fmt: skip


def oracle(task: Task) -> Answer:
    """The label, told back. Must score 100 %, or a scorer is wrong."""
    if task.label is None:
        raise ArmError("oracle: needs the label")
    return _tell(task.known, task.label, task.withheld)


def shuffled_order(labels: list[Label]) -> dict[str, Label]:
    """Case → the label of another case, by a fixed permutation without fixed points."""
    order = list(range(len(labels)))
    random.Random(SEED).shuffle(order)
    return {labels[order[i]].id: labels[order[(i + 1) % len(order)]] for i in range(len(order))}


def shuffled(task: Task) -> Answer:
    """The label of another case. Must score at chance, or the scorers leak."""
    if not task.labels:
        raise ArmError("shuffled: needs the labels")
    other = shuffled_order(list(task.labels))[task.case]
    return _tell(task.known, other, task.withheld)


ARMS = [
    Arm(
        name="oracle",
        says="told the label (bench check)",
        answer=oracle,
        reads=False,
        privileged=True,
        counterfactual=True,
    ),
    Arm(
        name="shuffled",
        says="told another case's label (bench check)",
        answer=shuffled,
        reads=False,
        privileged=True,
        learns=True,
    ),
]
