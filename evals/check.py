"""The bench checks itself: labels, worlds, mix, and arms whose score is known beforehand. No model, a few CPU seconds."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from evals.arms.informed import shuffled_order
from evals.concepts import changeable, reads
from evals.hygiene import alias_faults, label_faults, leaks, mix, set_faults
from evals.run import Finished, Plan, run
from evals.schema import CASES, LABELS, Case, Label, load_cases
from evals.scorers import measures
from evals.summary import of
from knowledge import load
from knowledge.schema import LAYERS, Knowledge

ARMS = ("oracle", "shuffled", "everything-broken", "always-abstain", "constant", "majority")
MAX_CONSTANT = 0.25


class Finding(Struct, frozen=True, kw_only=True):
    """One check: what it is, whether it holds, what was seen."""

    name: str
    holds: bool
    seen: str = ""

    def line(self) -> str:
        """``ok   name: seen``."""
        return f"{'ok  ' if self.holds else 'FAIL'} {self.name}" + (f": {self.seen}" if self.seen else "")


def lint(cases: Sequence[Case], known: Knowledge) -> list[Finding]:
    """Hygiene of worlds and labels."""
    found = [leak.line() for case in cases for leak in leaks(case, known.causes)]
    faults = [text for case in cases for text in label_faults(case.label, case, known)]
    across = set_faults([c.label for c in cases])
    alias = alias_faults(known)
    return [
        Finding(name="cases", holds=bool(cases), seen=f"{len(cases)} with a label each"),
        Finding(name="worlds do not tell", holds=not found, seen="; ".join(found[:5])),
        Finding(
            name="labels agree with the closed list and their worlds", holds=not faults, seen="; ".join(faults[:5])
        ),
        Finding(name="derived cases keep split and origin", holds=not across, seen="; ".join(across[:5])),
        Finding(name="no name belongs to two families", holds=not alias, seen="; ".join(alias[:5])),
    ]


def mixture(labels: Sequence[Label]) -> list[Finding]:
    """The mix of the whole set."""
    found = mix(labels)
    faults = found.faults()
    seen = (
        "; ".join(faults) or f"{found.total} cases, {found.outcomes}, {found.relations}, two faults {found.two_faults}"
    )
    return [Finding(name="mix", holds=not faults, seen=seen)]


def chance(labels: Sequence[Label]) -> float:
    """Expected M1 of another case's label: share of ordered pairs in which it would be accepted."""
    hits = total = 0
    for label in labels:
        if label.outcome != "incident":
            continue
        others = [x for x in labels if x.id != label.id]
        hits += sum(x.outcome == "incident" and x.main() in label.accepted() for x in others)
        total += len(others)
    return hits / total if total else 0.0


def known_arms(finished: Finished) -> list[Finding]:
    """Scores that are known beforehand."""
    by_arm = {arm: measures(finished.pairs(arm)) for arm in finished.meta.arms}
    labels = [finished.cases[c].label for c in finished.meta.cases]
    out = []
    perfect = ("M1", "M1b", "M1b.ac3", "M1b.mrr", "M1b.outcome", "M2", "M4", "M5b", "M6", "M12")
    empty = ("M3", "M7", "M8", "M11")
    told = by_arm["oracle"]
    bad = [i for i in perfect if of(told, i).n and of(told, i).value < 1] + [i for i in empty if of(told, i).value > 0]
    out.append(Finding(name="oracle scores 100 %", holds=not bad, seen=", ".join(bad)))
    m1 = of(by_arm["shuffled"], "M1")
    expected = chance(labels)
    spread = 3 * (expected * (1 - expected) / max(1, m1.n)) ** 0.5 + 1 / max(1, m1.n)
    seen = f"{m1.value:.3f}, chance {expected:.3f} ± {spread:.3f}"
    out.append(Finding(name="shuffled labels score at chance", holds=abs(m1.value - expected) <= spread, seen=seen))
    broken = by_arm["everything-broken"]
    m2, m3 = of(broken, "M2"), of(broken, "M3")
    seen = f"M2 {m2.value:.3f}, false alarms {m3.value:.3f}"
    out.append(Finding(name="everything-broken fails M2 and M3", holds=m2.value <= 0.06 and m3.value == 1.0, seen=seen))
    silent = by_arm["always-abstain"]
    seen = f"M1 {of(silent, 'M1').value:.3f}, J {of(silent, 'M3b').value:.3f}"
    holds = of(silent, "M1").value == 0 and of(silent, "M4").value == 0 and of(silent, "M3b").value <= 0
    out.append(Finding(name="always-abstain scores 0", holds=holds, seen=seen))
    for arm in ("constant", "majority"):
        m1 = of(by_arm[arm], "M1")
        out.append(Finding(name=f"{arm} family < 25 %", holds=m1.value < MAX_CONSTANT, seen=f"{m1.value:.3f} n {m1.n}"))
    out.append(constant_layer(labels))
    return out


def constant_layer(labels: Sequence[Label]) -> Finding:
    """Answering one layer always: its score is that layer's share of the incidents."""
    incidents = [x for x in labels if x.outcome == "incident"]
    shares = {layer: sum(x.layer == layer for x in incidents) / max(1, len(incidents)) for layer in LAYERS}
    best = max(shares, key=lambda layer: shares[layer])
    seen = f"at most {shares[best]:.3f} ({best}) n {len(incidents)}"
    return Finding(name="any constant layer < 25 %", holds=shares[best] < MAX_CONSTANT, seen=seen)


def not_checkable(labels: Sequence[Label]) -> list[str]:
    """Probes and forbidden actions whose text maps to no concept: no answer can match or break them."""
    out = []
    for label in labels:
        if label.split == "holdout":
            continue
        out += [f"{label.id}: probe: {x}" for x in label.acceptable_next_probes if not reads(x)]
        out += [f"{label.id}: forbidden: {x}" for x in label.forbidden_actions if not changeable(x)]
    return out


def check(cases_dir: Path = CASES, labels_dir: Path = LABELS, *, whole: bool = True) -> list[Finding]:
    """All self-checks. ``whole``: the set is meant to be complete, so its mix is checked too."""
    cases, known = load_cases(cases_dir, labels_dir), load()
    labels = [c.label for c in cases]
    out = lint(cases, known) + (mixture(labels) if whole else [])
    if len(cases) < 2:
        return [*out, Finding(name="arms", holds=False, seen="too few cases to check the scorers")]
    with tempfile.TemporaryDirectory() as folder:
        plan = Plan(arms=list(ARMS), jobs=1, cases=cases_dir, labels=labels_dir, folder=Path(folder), quiet=True)
        out += known_arms(run(plan))
    ring = shuffled_order(labels)
    out.append(Finding(name="the shuffle moves every label", holds=all(ring[x.id].id != x.id for x in labels)))
    return out
