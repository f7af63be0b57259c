"""M9: right in all repeats (pass^k) beside right in one (pass@1), entropy of answers, bit-identity."""

from __future__ import annotations

from collections.abc import Sequence

from evals.rows import Row
from evals.scorers import m01_family
from evals.scorers.base import Measure, Pair
from evals.stats import entropy, wilson


def _answer(row: Row) -> str:
    if row.said is None:
        return "error"
    top = row.said.top()
    return top.family if top else row.said.outcome


def measure(pairs: Sequence[Pair]) -> list[Measure]:
    """Needs two repeats or more; with one, only its absence is stated."""
    cases: dict[str, list[Pair]] = {}
    for pair in pairs:
        cases.setdefault(pair.label.id, []).append(pair)
    k = min((len(rows) for rows in cases.values()), default=0)
    if k < 2:
        return [Measure(id="M9", name="stability", value=0.0, n=0, note="needs --repeat 2 or more")]
    scores = [[m01_family.score(*p) for p in rows] for rows in cases.values()]
    known = [[x for x in row if x is not None] for row in scores if row[0] is not None]
    once = sum(sum(row) / len(row) for row in known) / len(known) if known else 0.0
    always = sum(all(x == 1.0 for x in row) for row in known)
    low, high = wilson(always, len(known))
    same = sum(len({p.row.digest for p in rows}) == 1 for rows in cases.values())
    spread = sum(entropy([_answer(p.row) for p in rows]) for rows in cases.values()) / len(cases)
    value = always / len(known) if known else 0.0
    met = value >= 0.85 * once - 1e-9 if known else None
    low2, high2 = wilson(same, len(cases))
    return [
        Measure(
            id="M9", name=f"pass^{k}", value=value, n=len(known), low=low, high=high, target="≥ 0.85 × pass@1", met=met,
            note=f"pass@1 {once:.3f}",
        ),
        Measure(
            id="M9.same", name="bit-identical over repeats", value=same / len(cases), n=len(cases), low=low2, high=high2,
            note="must be 1 for arms without a model",
        ),
        Measure(id="M9.entropy", name="mean entropy of answers", value=spread, n=len(cases), unit="bits"),
    ]  # fmt: skip
