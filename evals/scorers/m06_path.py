"""M6: M1, and the chain told is a sub-path of the label's with its root: right names without a valid path do not count."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from evals.rows import Row
from evals.schema import Label
from evals.scorers import m01_family
from evals.scorers.base import Measure, Pair, rate

# A label names one symptom, a world often shows two names of the same: few tokens per second is told as TPOT or as
# throughput, a failing server as errors, a crash or no progress. The strict variant takes the label's word.
SAME = {"tpot": "slow tokens", "throughput": "slow tokens", "errors": "failing", "crash": "failing", "hang": "failing"}


def on_path(label: Label, chain: list[tuple[str, str]], *, strict: bool = False) -> bool:
    """Whether the states told occur in the label's chain in its order, starting with the root side, with one edge or more.

    The root side is the label's first state, its main family, or an accepted alternative (which stands in its place).
    """
    truth, told = ([_name(step, strict) for step in steps] for steps in (label.chain, chain))
    if len(told) < 2 or len(truth) < 2:
        return False
    main = truth.index(label.main()) if label.main() in truth else 0
    root = told[0]
    if root not in truth:
        if root not in label.accepted():
            return False
        here = main
    else:
        here = truth.index(root)
        if here not in (0, main) and root not in label.accepted():
            return False
    for state in told[1:]:
        if state in truth[here + 1 :]:
            here = truth.index(state, here + 1)
        elif state in label.accepted() and here < main:
            here = main
        else:
            return False
    return True


def _name(step: tuple[str, str], strict: bool) -> str:
    layer, state = step
    return SAME.get(state, state) if layer == "symptom" and not strict else state


def score(label: Label, row: Row) -> float | None:
    """1 when M1 holds and the chain is on the label's path."""
    first = m01_family.score(label, row)
    if first is None:
        return None
    return float(first == 1.0 and row.said is not None and on_path(label, row.said.chain))


def strict(label: Label, row: Row) -> float | None:
    """The same with the label's own word for the symptom."""
    first = m01_family.score(label, row)
    if first is None:
        return None
    return float(first == 1.0 and row.said is not None and on_path(label, row.said.chain, strict=True))


def without_symptom(label: Label, row: Row) -> float | None:
    """The same over causes alone: which symptom a person feels first is often a matter of taste."""
    first = m01_family.score(label, row)
    if first is None:
        return None
    chain = [step for step in row.said.chain if step[0] != "symptom"] if row.said else []
    bare = structs.replace(label, chain=[*(s for s in label.chain if s[0] != "symptom"), ("symptom", "end")])
    return float(first == 1.0 and on_path(bare, [*chain, ("symptom", "end")]))


def measure(pairs: Sequence[Pair]) -> list[Measure]:
    """Path-grounded accuracy and its distance from M1."""
    whole = rate("M6", "path-grounded family top-1", pairs, score)
    top = rate("M1", "", pairs, m01_family.score, boot=False)
    gap = top.value - whole.value
    met = gap <= 0.08 + 1e-9 if whole.n else None
    return [
        whole,
        rate("M6.strict", "… with the label's own word for the symptom", pairs, strict),
        rate("M6.causes", "… judged without the symptom at its end", pairs, without_symptom),
        Measure(id="M6.gap", name="M1 − M6", value=gap, n=whole.n, target="≤ 0.08", met=met, unit="difference"),
    ]
