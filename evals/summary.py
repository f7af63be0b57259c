"""From a finished run to the numbers of a report: groups, layers, confusion, reliability, failures, flips."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, field

from evals.rows import Row
from evals.run import Finished, Meta
from evals.schema import Label
from evals.scorers import m08_calibration as m08
from evals.scorers import measures
from evals.scorers.base import Measure, Pair, rate
from evals.stats import Bin, equal_count_bins, mcnemar, paired_bootstrap, risk_coverage
from knowledge.schema import LAYERS

# The latest registered plan: its blind cases have a column, those of earlier plans count as held out.
BLIND = "rules-only-3"

# Columns of the summary: disjoint sources, then the two halves by split, then everything.
GROUPS: dict[str, tuple[str, Callable[[Label], bool]]] = {
    "dev": ("public threads, dev", lambda x: x.group() == "dev"),
    "holdout": ("public threads, held out", lambda x: x.group() == "holdout" and x.blind != BLIND),
    "blind": (f"public threads nobody read before plan {BLIND} was run", lambda x: x.blind == BLIND),
    "inc": ("public incidents, first set", lambda x: x.group() == "inc"),
    "lab": ("recorded in the lab", lambda x: x.group() == "lab"),
    "made": ("essays, twins, made", lambda x: x.group() == "made"),
    "all dev": ("everything in the dev split", lambda x: x.split == "dev"),
    "all held out": ("everything held out", lambda x: x.split == "holdout"),
    "all": ("everything", lambda x: True),
}
HEADLINE = ("M1", "M1b", "M2", "M3", "M4", "M5", "M6", "M7", "M8", "M11", "M12")
KINDS = (*LAYERS, "healthy", "theoretical_limit", "undecidable")


class Failure(Struct, kw_only=True):
    """A case answered wrongly. Held-out ones carry their id alone."""

    case: str
    held_out: bool
    wanted: str = ""
    said: str = ""
    why: str = ""


class Comparison(Struct, kw_only=True):
    """Two arms on the same incident cases."""

    one: str
    two: str
    n: int
    only_one: int
    only_two: int
    p: float
    difference: float
    low: float
    high: float


class Summary(Struct, kw_only=True):
    """All numbers of one arm."""

    arm: str
    groups: dict[str, list[Measure]]
    layers: dict[str, list[Measure]] = field(default_factory=dict)
    confusion: dict[str, dict[str, int]] = field(default_factory=dict)
    bins: list[Bin] = field(default_factory=list)
    risk: list[tuple[float, float]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    right: dict[str, bool] = field(default_factory=dict)
    flips: dict[str, list[str]] = field(default_factory=dict)
    flips_since: str = ""
    cpu_s: float = 0.0


def of(measures_: Sequence[Measure], id: str) -> Measure:
    """A measure by id."""
    return next(m for m in measures_ if m.id == id)


def summarise(finished: Finished, arm: str, before: tuple[Meta, list[Row]] | None = None) -> Summary:
    """The summary of one arm; ``before`` is the run to list flips against."""
    pairs = finished.pairs(arm)
    groups = {
        name: measures(part) for name, (_, wanted) in GROUPS.items() if (part := [p for p in pairs if wanted(p.label)])
    }
    first = [p for p in pairs if p.row.repeat == 0]
    found = m08.bets(first)
    out = Summary(
        arm=arm, groups=groups, layers=_layers(pairs), confusion=confusion(first),
        bins=equal_count_bins([b.confidence for b in found], [b.right for b in found]),
        risk=risk_coverage([b.confidence for b in found], [b.right for b in found])[0],
        failures=[failure(p) for p in first if not m08.right(*p)],
        right={p.label.id: m08.right(*p) for p in first}, cpu_s=sum(p.row.cpu_s for p in pairs),
    )  # fmt: skip
    if before is not None:
        meta, rows = before
        was = {
            r.case: m08.right(finished.cases[r.case].label, r)
            for r in rows
            if r.repeat == 0 and r.case in finished.cases
        }
        out.flips = flips(was, out.right)
        out.flips_since = meta.run
    return out


def flips(was: dict[str, bool], now: dict[str, bool]) -> dict[str, list[str]]:
    """Cases that turned right and wrong between two runs; cases new to the set are in neither list."""
    both = [c for c in now if c in was]
    return {
        "now right": sorted(c for c in both if now[c] and not was[c]),
        "now wrong": sorted(c for c in both if was[c] and not now[c]),
    }


def _layers(pairs: Sequence[Pair]) -> dict[str, list[Measure]]:
    from evals.scorers import m01_family, m01b_ranking, m06_path

    out: dict[str, list[Measure]] = {}
    for layer in LAYERS:
        part = [p for p in pairs if p.label.layer == layer and p.label.outcome == "incident"]
        out[layer] = [
            rate("M1", "family", part, m01_family.score, boot=False),
            rate("M1b", "layer", part, m01b_ranking.layer, boot=False),
            rate("M1b.ac3", "first three", part, m01b_ranking.among_three, boot=False),
            rate("M6", "path", part, m06_path.score, boot=False),
        ]
    return out


def kind_of_label(label: Label) -> str:
    """Row of the confusion matrix: the layer of an incident, else the outcome."""
    return (label.layer or "undecidable") if label.outcome == "incident" else label.outcome


def kind_of_row(row: Row) -> str:
    """Column of the confusion matrix; an error counts as undecidable."""
    if row.said is None:
        return "undecidable"
    top = row.said.top()
    return top.layer if top else (row.said.outcome if row.said.outcome != "incident" else "undecidable")


def confusion(pairs: Sequence[Pair]) -> dict[str, dict[str, int]]:
    """Counts: layer or outcome of the label × of the answer."""
    table = {row: dict.fromkeys(KINDS, 0) for row in KINDS}
    for label, row in pairs:
        table[kind_of_label(label)][kind_of_row(row)] += 1
    return table


def failure(pair: Pair) -> Failure:
    """Why a case is wrong, in words of the bench; nothing but the id of a held-out one."""
    label, row = pair
    if label.split == "holdout":
        return Failure(case=label.id, held_out=True)
    said = row.said
    top = said.top() if said else None
    wanted = label.main() if label.outcome == "incident" else label.outcome
    told = "error" if said is None else (top.family if top else said.outcome)
    return Failure(case=label.id, held_out=False, wanted=wanted, said=told, why=_why(pair))


def _why(pair: Pair) -> str:
    label, row = pair
    if row.said is None:
        return row.error
    if label.outcome != "incident":
        if row.said.outcome == "incident":
            return "false alarm" if label.benign() else "commits where nothing decides"
        return f"outcome {row.said.outcome} instead of {label.outcome}"
    place = next((i for i, c in enumerate(row.said.causes, 1) if c.family in label.accepted()), 0)
    if row.said.outcome == "incident":
        return f"true family at rank {place}" if place else "true family not among causes or leads"
    if row.said.outcome == "undecidable":
        return f"abstains; true family is lead {place}" if place else "abstains; true family is no lead"
    return "called benign"


def compare(finished: Finished, one: str, two: str) -> Comparison:
    """Exact McNemar and a paired, clustered bootstrap of the difference in M1, over incident cases of both arms."""
    from evals.scorers import m01_family
    from evals.scorers.base import per_case

    a, b = (per_case(finished.pairs(arm), m01_family.score) for arm in (one, two))
    cases = [c for c in a if c in b]
    left, right = [a[c][0] for c in cases], [b[c][0] for c in cases]
    only_one, only_two, p = mcnemar([x >= 0.5 for x in left], [x >= 0.5 for x in right])
    mean, low, high = paired_bootstrap(left, right, [a[c][1] for c in cases])
    return Comparison(
        one=one, two=two, n=len(cases), only_one=only_one, only_two=only_two, p=p, difference=mean, low=low, high=high
    )
