"""How much of a figure that others report, or that was promised, the writer's own figure reaches."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.contract import Reading, Source
from tools.report import lexicon, pairs
from tools.report.document import Document
from tools.report.observe import Observation

# "Others get 100, we get 40": a cue that spans both figures tells neither side.
_BOTH = re.compile(r"\b(?:we|i|my|our|mine|ours)\b|我", re.IGNORECASE)
# A target or a limit is nobody's figure.
_TARGET = re.compile(r"\b(?:sl[oa]s?|targets?|goal|limit|objective|theor\w+|peak|ceiling)\b|目标|理论", re.IGNORECASE)
_SAME = ("gpu", "gpus", *pairs.LOAD)


def shares(doc: Document) -> Iterator[Reading]:
    """``report.reference_share`` of each sentence that holds both: 1 is as good, below 1 worse; of several own figures
    the worst. Figures of another statistic, unit or earlier state are not compared."""
    for _, found in doc.figures:
        for norm in (item for item in found if item.value > 0 and _theirs(item)):
            better = lexicon.metrics()[norm.metric].better
            own = [item for item in found if _comparable(item, norm)]
            if better not in ("high", "low") or not own:
                continue
            reached = [item.value / norm.value if better == "high" else norm.value / item.value for item in own]
            yield Reading(
                fact="report.reference_share",
                value=round(min(reached), 4),
                unit="ratio",
                labels={"metric": norm.metric},
                source=Source(kind="words", ref=doc.part.name, line=norm.line, span=norm.span),
                method=f"own figure against {norm.value:g} that others report or that was promised",
            )


def _theirs(item: Observation) -> bool:
    cue = item.conditions["reference"].name if item.norm else ""
    return bool(cue) and not _BOTH.search(cue) and not _TARGET.search(cue)


def _comparable(item: Observation, norm: Observation) -> bool:
    side = item.conditions.get("side")
    return (
        (item.metric, item.stat, item.unit, item.per) == (norm.metric, norm.stat, norm.unit, norm.per)
        and not item.norm
        and not item.extra
        and item.value > 0
        and (side is None or side.name != "before")
        and all(_value(item, kind) == _value(norm, kind) for kind in _SAME)
    )


def _value(item: Observation, kind: str) -> str:
    found = item.conditions.get(kind)
    return found.name.lower() if found is not None else ""
