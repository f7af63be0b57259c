"""What an arm is: a function from a copied world to a diagnosis. Only the self-check arms see the label."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from agent.diagnosis import Cause, Diagnosis, Link, Outcome, ProbeAdvice, Provenance
from agent.sources import Gather
from evals.schema import Label
from knowledge.schema import Knowledge
from tools.contract import Reading, Source
from tools.view import Evidence


class ArmError(RuntimeError):
    """An arm that cannot run here, and what it needs. The run is red: an arm is never skipped silently."""


class Task(Struct, kw_only=True):
    """One case to answer. ``label`` and ``labels`` (the whole set) are set for privileged arms only; ``majority`` learns
    from the dev half. ``withheld``: the decisive files were taken away.
    ``gather``: readings of the world, taken before."""

    world: Path
    known: Knowledge
    case: str = ""
    repeat: int = 0
    withheld: bool = False
    label: Label | None = None
    labels: Sequence[Label] = ()
    gather: Gather | None = None


class Answer(Struct, kw_only=True):
    """What an arm gives back. ``again`` reads the same world afresh, for arms whose citations can be rechecked."""

    diagnosis: Diagnosis
    first_s: float = 0.0
    probes_run: int = 0
    model_calls: int = 0
    model_tokens: int = 0
    usd: float = 0.0
    again: Callable[[], list[Reading]] | None = None


class Arm(Struct, kw_only=True):
    """A row of the arm table. ``privileged``: sees labels (self-checks). ``counterfactual``: run again without the
    decisive files. ``models``: calls a model. ``reads``: opens the world (else none is copied).
    ``derived``: reasons over the same readings as other derived arms, which are taken once a world."""

    name: str
    says: str
    answer: Callable[[Task], Answer]
    privileged: bool = False
    learns: bool = False
    counterfactual: bool = False
    models: bool = False
    reads: bool = True
    derived: bool = False


def plain(
    known: Knowledge,
    outcome: Outcome,
    families: Sequence[str] = (),
    *,
    confidence: float = 0.5,
    chain: Sequence[tuple[str, str]] = (),
    probes: Sequence[str] = (),
    files: Sequence[str] = (),
    says: str = "",
) -> Diagnosis:
    """A minimal diagnosis for arms that do not reason. ``files`` become one piece of evidence each."""
    evidence = [
        Evidence(id=f"E{i}", fact="input.file", value=name, source=Source(kind="file", ref=name))
        for i, name in enumerate(files, 1)
    ]
    ids = [item.id for item in evidence]
    causes = [
        Cause(
            family=f, layer=known.layer_of(f), title=f, confidence=confidence, band="possible", evidence=ids, rules=[],
            mechanism=says,
        )
        for f in families
    ]  # fmt: skip
    links = [Link(state=state, layer=layer, title=state, evidence=ids) for layer, state in chain]
    asks = [ProbeAdvice(id=f"P{i}", ask=text, command="", kind="reading") for i, text in enumerate(probes, 1)]
    return Diagnosis(
        outcome=outcome, headline=outcome, causes=causes, chain=links, layers=[], actions=[], probes=asks,
        evidence=evidence, rules=[], provenance=Provenance(inferdx="", knowledge=known.version), confidence=confidence,
    )  # fmt: skip


class Stopwatch:
    """A clock that remembers its readings: the loop reads it once at the start and next at its first verdict."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.readings: list[float] = []

    def __call__(self) -> float:
        now = time.monotonic()
        self.readings.append(now)
        return now

    def first_finding(self) -> float:
        """Seconds from the making of this clock to its second reading, the first verdict; 0 when there was none."""
        return self.readings[1] - self.begun if len(self.readings) > 1 else 0.0


def model_use(diagnosis: Diagnosis) -> dict[str, Any]:
    """Model calls and tokens of a diagnosis, for :class:`Answer`."""
    return {"model_calls": diagnosis.provenance.model_calls, "model_tokens": diagnosis.provenance.model_tokens}
