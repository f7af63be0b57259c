"""Typed shapes of everything in the knowledge base. Unknown keys are errors: a typo must not silence a rule."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

Layer = Literal["hardware", "kernel", "memory", "scheduling", "parallelism", "speculative", "application"]
LAYERS: tuple[Layer, ...] = (
    "hardware",
    "kernel",
    "memory",
    "scheduling",
    "parallelism",
    "speculative",
    "application",
)
Strength = Literal["decisive", "strong", "moderate", "weak"]
Outcome = Literal["incident", "healthy", "theoretical_limit", "undecidable"]
Combine = Literal["max", "min", "sum", "mean", "any", "all", "first", "last"]


class Strict(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Base of all knowledge records."""


class Text(Strict, kw_only=True):
    """One sentence in both languages."""

    en: str
    zh: str = ""


class Get(Strict, kw_only=True):
    """How a person obtains a missing fact: exact command, what it costs the server, what can go wrong."""

    how: str
    cost: str = "none"
    risk: str = "none"


class FactDef(Strict, kw_only=True):
    """One name of the vocabulary. Rules may use only these names.

    ``combine`` says how several labelled values (engines, ranks, replicas) become the one a condition reads.
    """

    name: str
    unit: str
    means: Text
    type: Literal["number", "bool", "text", "list"] = "number"
    source: str = ""
    get: Get | None = None
    cannot_tell: str = ""
    combine: Combine = "max"


class Sign(Strict, kw_only=True):
    """A condition that speaks for or against a rule's cause. ``says`` is one sentence a person reads.

    ``if`` in YAML; a condition as :mod:`knowledge.logic` parses it.
    """

    cond: Any = field(name="if")
    says: Text | str
    strength: Strength = "moderate"


class Refuter(Strict, kw_only=True):
    """True refutes the cause; False means the refuter was tried and passed; unknown names the probe to run."""

    cond: Any = field(name="if")
    says: Text | str
    probe: str = ""


class LookAlike(Strict, kw_only=True):
    """Another family with the same symptom and the condition that holds when it is *that* family."""

    family: str
    says: Text | str
    cond: Any = field(name="separated_by")


class Action(Strict, kw_only=True):
    """One thing to do. Never executed by us. ``expect`` names a fact of the vocabulary and its change."""

    do: Text
    gain: Text | str
    cost: Text | str
    risk: Text | str = "low"
    how: Literal["online", "restart", "client", "hardware", "none"] = "restart"
    command: str = ""
    flag: str = ""
    direction: Literal["", "raise", "lower", "on", "off", "set", "remove"] = ""
    expect: str = ""
    rollback: str = ""
    versions: dict[str, str] = {}
    when: Any = None


class Probe(Strict, kw_only=True):
    """The next reading or control run: what to run, what each result would mean."""

    id: str
    ask: Text
    command: str
    kind: Literal["reading", "control_run", "question"] = "reading"
    cost: str = "none"
    yields: list[str] = []
    if_true: Text | str = ""
    if_false: Text | str = ""
    change: str = ""
    keep: str = ""
    read: str = ""


class Family(Strict, kw_only=True):
    """The card of one cause family: everything that is the same for all of its rules.

    ``told``: what people say and quote when it is this, in general terms; read by the similarity search only.
    """

    id: str
    title: Text
    explain: Text
    told: Text | None = None
    driven_by: list[str] = []
    leads_to: list[str] = []
    look_alikes: list[LookAlike] = []
    refuted_by: list[Refuter] = []
    actions: list[Action] = []
    probes: list[Probe] = []
    will_not_help: list[Text | str] = []
    cites: list[str] = []
    layer: str = ""


class Rule(Strict, kw_only=True):
    """One mechanism. Fires when ``when`` is true; missing facts leave it ``missing_input``, never clear.

    ``applies`` false makes it ``not_applicable``. ``outcome`` is ``incident`` for faults; ``healthy`` and
    ``theoretical_limit`` rules state why an odd-looking reading is no fault.
    ``strength`` is how much the bare firing says about the family on its own.
    """

    id: str
    family: str = ""
    title: Text
    mechanism: Text
    when: Any
    strength: Strength = "strong"
    outcome: Outcome = "incident"
    applies: Any = None
    supports: list[Sign] = []
    against: list[Sign] = []
    refuted_by: list[Refuter] = []
    look_alikes: list[LookAlike] = []
    driven_by: list[str] = []
    leads_to: list[str] = []
    actions: list[Action] = []
    probes: list[Probe] = []
    cites: list[str] = []
    versions: dict[str, str] = {}
    lifecycle: Literal["preview", "stable", "deprecated"] = "stable"
    layer: str = ""
    explains_away: list[str] = []


class Signature(Strict, kw_only=True):
    """A text pattern that yields a fact, with the words it stood in as its span.

    ``pattern`` is a Python regular expression (case-insensitive unless ``case``); named groups may give the value.
    ``need`` are literal lower-case strings of which one must occur in the line (cheap pre-filter).
    ``where``: which kinds of text it may be read from. ``negatable``: a negation in the same clause flips it.
    ``asked``: a question states it as well, because that somebody asks this is the fact.
    """

    id: str
    fact: str
    pattern: str
    need: list[str] = []
    where: list[Literal["log", "report", "launch", "output"]] = field(default_factory=lambda: ["log"])
    value: Any = True
    group: str = ""
    scale: float = 1.0
    negatable: bool = False
    asked: bool = False
    case: bool = False
    level: Literal["", "info", "warning", "error"] = ""
    versions: dict[str, str] = {}
    proves: str = ""
    does_not_prove: str = ""
    cites: list[str] = []


class CauseDef(Strict, kw_only=True):
    """A row of the closed answer list."""

    id: str
    layer: str
    means: str


class Fixture(Strict, kw_only=True):
    """A small facts file: what the rule must say about it."""

    name: str
    expect: Literal["fired", "clear", "missing_input", "not_applicable"]
    facts: dict[str, Any]


class Page(Strict, kw_only=True):
    """A knowledge page: load-test matrix, trade-off table, explanation."""

    id: str
    title: Text
    body: Text
    keywords: list[str] = []
    cites: list[str] = []


class Knowledge(Strict, kw_only=True):
    """All of it, indexed. ``version`` is a hash of the files it was read from; ``slo``: a site's limits in seconds."""

    version: str
    facts: dict[str, FactDef]
    rules: dict[str, Rule]
    families: dict[str, Family]
    causes: dict[str, CauseDef]
    signatures: dict[str, Signature]
    pages: dict[str, Page]
    slo: dict[str, float] = {}

    def layer_of(self, family: str) -> str:
        """Layer id of a family; empty for none."""
        cause = self.causes.get(family)
        return cause.layer if cause else ""


def both(text: Text | str, lang: str = "en") -> str:
    """The sentence in the language asked for, English where the other is absent."""
    if isinstance(text, str):
        return text
    return (text.zh or text.en) if lang == "zh" else text.en
