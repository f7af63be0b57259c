"""What keeps the set honest: neutral ids, worlds that do not tell, labels that agree with themselves and each other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from evals.schema import SYMPTOMS, Case, Label
from knowledge.schema import LAYERS, Knowledge
from tools.part import Part

ID = re.compile(r"^(case-\d{4}|inc-\d{3}|lab-\d{3})$")
MAX_BYTES = 64 << 20

# What an engine prints itself is no give-away.
_ALLOWED = (
    "see stack trace (above) for the root cause",
    "stack trace above for the root cause",
)
_LEAKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("names a root cause", re.compile(r"root[ -]?cause|根本原因|根因", re.I)),
    ("names a fix", re.compile(r"\b(the|a|quick|hot)[ -]?fix\b|\bfix(ed|es)? (it|this|in|by)\b|\bworkaround\b|修复", re.I)),
    ("cites a thread", re.compile(r"github\.com/[\w.-]+/[\w.-]+/(issues|pull|discussions)/\d+|\b(issue|pull request) #?\d{2,6}\b|\bPR #\d{2,6}\b", re.I)),
    ("holds words of a label", re.compile(r"\b(cause_famil|also_accepted|decisive_files|acceptable_next|forbidden_actions|healed_twin|look_alike)")),
)  # fmt: skip
_HINTS = (
    "root cause", "root-cause", "rootcause", "根本原因", "根因", " fix", "hotfix", "hot-fix", "quickfix", "quick-fix",
    "\nfix", "workaround", "修复", "github.com/", "issue ", "pull request", "pr #", "cause_famil", "also_accepted",
    "decisive_files", "acceptable_next", "forbidden_actions", "healed_twin", "look_alike",
)  # fmt: skip
_NAMES = re.compile(
    r"(^|[-_. ])(oom|crash(ed)?|preempt\w*|healthy|sick|bug|fix(ed)?|cause|label|hang|incident|control|"
    r"baseline|broken|throttl\w*|thrash\w*|fault\w*|twin|solution|answer)([-_. ]|$)",
    re.I,
)


class Leak(Struct, frozen=True, kw_only=True):
    """A place in a world that tells. ``text`` is empty for held-out worlds."""

    case: str
    where: str
    why: str
    text: str = ""

    def line(self) -> str:
        """One line for a terminal."""
        return f"{self.case}: {self.where}: {self.why}" + (f": {self.text}" if self.text else "")


def leaks(case: Case, families: Iterable[str]) -> list[Leak]:
    """Give-aways in file names and in the text of a world."""
    ids = [f for f in families if "_" in f]
    family = re.compile(r"\b(" + "|".join(map(re.escape, ids)) + r")\b") if ids else None
    found: list[Leak] = []
    secret = case.label.split == "holdout"
    for path in sorted(p for p in case.world.rglob("*") if p.is_file()):
        name = path.relative_to(case.world).as_posix()
        tell = _NAMES.search(name)
        if tell:
            found.append(Leak(case=case.id, where="(held out)" if secret else name, why=f"file name tells ({tell[2]})"))
        part = Part(name=name, path=path)
        whole = part.text(MAX_BYTES)
        # Plain substrings of the patterns first: most files hold none, and metrics pages are large.
        low = whole.lower()
        if not any(i in whole for i in ids) and not any(hint in low for hint in _HINTS):
            continue
        for number, text in part.lines():
            for why in _tells(text, family):
                where = f"line {number}" if secret else f"{name}:{number}"
                found.append(Leak(case=case.id, where=where, why=why, text="" if secret else text.strip()[:120]))
    return found


def _tells(text: str, family: re.Pattern[str] | None) -> list[str]:
    out = [why for why, pattern in _LEAKS if pattern.search(text)]
    if out and any(phrase in text.lower() for phrase in _ALLOWED):
        out.remove("names a root cause")
    if family is not None and family.search(text):
        out.append("names a cause family")
    return out


def label_faults(label: Label, case: Case, known: Knowledge) -> list[str]:
    """Where a label contradicts the closed list, its world, or itself."""
    bad: list[str] = []

    def fault(condition: bool, text: str) -> None:
        if condition:
            bad.append(f"{label.id}: {text}")

    fault(not ID.match(label.id), "id is not neutral")
    for field in ("cause_families", "also_accepted", "decoys"):
        for name in getattr(label, field):
            fault(name not in known.causes, f"{field}: {name!r} is not in the closed list")
    incident = label.outcome == "incident"
    fault(incident and not label.cause_families, "an incident without a cause family")
    fault(not incident and bool(label.cause_families), f"cause_families on a {label.outcome} world")
    if label.main() in known.causes:
        fault(label.layer != known.layer_of(label.main()), f"layer {label.layer} is not the layer of {label.main()}")
    fault(label.outcome in ("healthy", "undecidable") and label.layer is not None, f"layer on a {label.outcome} world")
    clash = (set(label.also_accepted) | set(label.cause_families)) & set(label.decoys)
    fault(bool(clash), f"both accepted and decoy: {', '.join(sorted(clash))}")
    fault(label.main() in label.also_accepted, "the main family is listed as an alternative too")
    fault(label.outcome == "undecidable" and not label.acceptable_next_probes, "undecidable without an accepted probe")
    bad.extend(_chain_faults(label, known))
    names = {p.relative_to(case.world).as_posix() for p in case.world.rglob("*") if p.is_file()}
    fault(not names, "empty world")
    for name in label.decisive_files:
        fault(name not in names, f"decisive file {name} is not in the world")
    scrapes = sum(bool(re.match(r"metrics-\d+\.prom(\.gz)?$", n)) for n in names)
    fault(scrapes > 0 and scrapes != label.n_snapshots, f"n_snapshots {label.n_snapshots}, but {scrapes} scrapes")
    return bad


def _chain_faults(label: Label, known: Knowledge) -> list[str]:
    bad: list[str] = []
    for place, (layer, state) in enumerate(label.chain):
        if layer == "symptom":
            if state not in SYMPTOMS:
                bad.append(f"{label.id}: chain: {state!r} is no symptom")
            if place != len(label.chain) - 1:
                bad.append(f"{label.id}: chain: a symptom before its end")
        elif state not in known.causes or known.layer_of(state) != layer:
            bad.append(f"{label.id}: chain: ({layer}, {state}) is not a pair of the closed list")
    if label.outcome == "incident":
        states = [state for _, state in label.chain]
        if not label.chain or label.chain[-1][0] != "symptom":
            bad.append(f"{label.id}: chain of an incident must end in a symptom")
        if states and not (set(states) & (label.accepted() | set(label.cause_families))):
            bad.append(f"{label.id}: chain does not pass through the cause")
    return bad


def set_faults(labels: Sequence[Label]) -> list[str]:
    """Where labels contradict each other: derived cases keep split and origin of what they were made from."""
    by_id = {label.id: label for label in labels}
    bad: list[str] = []
    for label in labels:
        if label.relation != "control" and (label.relation is None) != (label.derived_from is None):
            bad.append(f"{label.id}: relation and derived_from go together")
        if label.derived_from is None:
            continue
        parent = by_id.get(label.derived_from)
        if parent is None:
            bad.append(f"{label.id}: derived from {label.derived_from}, which is not in the set")
            continue
        if parent.split != label.split:
            bad.append(f"{label.id}: split differs from {parent.id}, which it was made from")
        if label.relation != "control" and parent.origin != label.origin:
            bad.append(f"{label.id}: origin differs from {parent.id}, which it was made from")
        if label.relation == "healed_twin" and not label.benign():
            bad.append(f"{label.id}: a healed twin must be healthy or at its limit")
        if label.relation == "withheld" and label.outcome != "undecidable":
            bad.append(f"{label.id}: a withheld variant must be undecidable")
        if label.relation == "look_alike" and set(label.cause_families) & parent.accepted():
            bad.append(f"{label.id}: a look-alike must have another cause than {parent.id}")
    return bad


def alias_faults(known: Knowledge) -> list[str]:
    """A name that two families share cannot be scored: ids, titles and their plain forms must be distinct."""
    owners: dict[str, set[str]] = {}
    for family in known.causes:
        names = {family, family.replace("_", " ")}
        card = known.families.get(family)
        if card is not None:
            names |= {card.title.en, card.title.zh}
        for name in names - {""}:
            owners.setdefault(name.strip().lower(), set()).add(family)
    return [f"{name!r} names {' and '.join(sorted(who))}" for name, who in sorted(owners.items()) if len(who) > 1]


class Mix(Struct, kw_only=True):
    """How the set is made up."""

    total: int
    outcomes: dict[str, int]
    layers: dict[str, int]
    splits: dict[str, int]
    groups: dict[str, int]
    relations: dict[str, int]
    two_faults: int

    def faults(self) -> list[str]:
        """Where the mix misses the design: ≥ 120 cases, each layer ≥ 10, 20–25 % benign, 10–15 % undecidable, ≥ 20
        healed twins, ≥ 10 look-alikes."""
        benign = (self.outcomes.get("healthy", 0) + self.outcomes.get("theoretical_limit", 0)) / max(1, self.total)
        blank = self.outcomes.get("undecidable", 0) / max(1, self.total)
        tests = [
            (self.total >= 120, f"{self.total} cases, wanted 120 or more"),
            (0.195 <= benign <= 0.255, f"{benign:.1%} healthy or limit, wanted 20–25 %"),
            (0.095 <= blank <= 0.155, f"{blank:.1%} undecidable, wanted 10–15 %"),
            (
                self.relations.get("healed_twin", 0) >= 20,
                f"{self.relations.get('healed_twin', 0)} healed twins, wanted 20",
            ),
            (
                self.relations.get("look_alike", 0) >= 10,
                f"{self.relations.get('look_alike', 0)} look-alikes, wanted 10",
            ),
            *(
                (self.layers.get(x, 0) >= 10, f"{self.layers.get(x, 0)} incidents in the {x} layer, wanted 10")
                for x in LAYERS
            ),
        ]
        return [text for fine, text in tests if not fine]


def mix(labels: Sequence[Label]) -> Mix:
    """Counts of a set."""
    return Mix(
        total=len(labels),
        outcomes=dict(Counter(x.outcome for x in labels)),
        layers=dict(Counter(str(x.layer) for x in labels if x.outcome == "incident")),
        splits=dict(Counter(x.split for x in labels)),
        groups=dict(Counter(x.group() for x in labels)),
        relations=dict(Counter(x.relation for x in labels if x.relation)),
        two_faults=sum(len(x.cause_families) > 1 for x in labels),
    )
