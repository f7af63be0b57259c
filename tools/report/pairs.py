"""Observation pairs: the same figure twice with one difference, from tables, sentences and stated changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from knowledge.versions import parse_version
from tools.report import alternatives, lexicon
from tools.report.compare import Ratio
from tools.report.conditions import Condition
from tools.report.hints import cues
from tools.report.observe import Observation

MAX_GROUP = 48
MAX_PAIRS = 400
# Condition kind → kind of difference. Load axes (concurrency, context …) make sweeps, not pairs.
DIFFERENCES: dict[str, str] = {
    "version": "version_upgrade",
    "package": "dependency",
    "feature": "feature_on_off",
    "baseline": "feature_on_off",
    "route": "route",
    "gpus": "gpu_count",
    "gpu": "hardware",
    "uptime": "time",
    "run": "run_order",
    "side": "before_after",
    "reference": "reference",
    "setting": "config_value",
    "power_cap": "config_value",
    "tool": "tool",
    "variant": "variant",
    "label": "variant",
}
# A figure of a run that is not named is compared with a named one only where they stand together.
NEAR_LINES = 8
LOAD = ("concurrency", "context", "prompt_tokens", "output_tokens")
# Differences that go together and count as one: the leading kind names it.
_TOGETHER: tuple[tuple[str, ...], ...] = (
    ("gpus", "setting"),
    ("gpus", "gpu"),
    ("gpus", "label"),
    ("version", "side"),
    ("version", "package"),
    ("version", "variant"),
    ("version", "label"),
    ("package", "side"),
    ("feature", "label"),
    ("feature", "setting"),
    ("feature", "baseline"),
    ("feature", "side"),
    ("baseline", "label"),
    ("baseline", "variant"),
    ("route", "label"),
    ("route", "side"),
    ("route", "baseline"),
    ("reference", "label"),
    ("reference", "variant"),
    ("side", "label"),
    ("side", "variant"),
    ("side", "setting"),
    ("variant", "label"),
    ("run", "side"),
    ("uptime", "side"),
    ("uptime", "run"),
    ("gpu", "label"),
    ("tool", "label"),
)
_GOOD = re.compile(
    r"\b(?:good|old|older|stock|healthy|fast|faster|first|one|working|before|parent|baseline|default|normal|previous)\b",
    re.IGNORECASE,
)
_BAD = re.compile(
    r"\b(?:bad|new|newer|affected|slow|slower|second|broken|after|merge|other|another|now|current)\b", re.IGNORECASE
)


# What the opening sentences of a report may settle for a change stated further down.
_SETTING = ("version_upgrade", "feature_on_off", "route", "other_load")


class Pair(Struct):
    """``ratio`` is after/before; ``after`` is the later, newer, switched-on, larger or proxied side."""

    metric: str
    ratio: float
    difference: str
    what: str
    line: int
    span: str
    before: float | None = None
    after: float | None = None
    unit: str = ""
    stat: str = ""
    stated: bool = False
    at: dict[str, Condition] = {}
    part: str = ""

    def worse(self) -> float | None:
        """Factor by which the ``after`` side is worse (below 1: better); ``None`` for metrics without a good direction."""
        better = "high" if self.metric == "speed" else lexicon.metrics()[self.metric].better
        if better == "low":
            return self.ratio
        if better == "high":
            return 1 / self.ratio if self.ratio > 0 else None
        return None


def of_observations(found: Iterable[Observation], text: str) -> list[Pair]:
    """Pairs among observations of one part. ``text`` settles what an unnamed *before* and *after* stand for."""
    groups: dict[tuple[str, str, str, str], list[Observation]] = {}
    for item in found:
        if not item.extra:
            groups.setdefault((item.group, item.metric, item.stat, item.per), []).append(item)
    spoken = cues(text)
    alone = alternatives.alone(text)
    out: list[Pair] = []
    for items in groups.values():
        few = items[:MAX_GROUP]
        control = alone and _two_labels(few)
        for index, first in enumerate(few):
            for second in few[index + 1 :]:
                pair = _pair(first, second, spoken, control)
                if pair is not None and len(out) < MAX_PAIRS:
                    out.append(pair)
    return out


def _split_otherwise(kinds: list[str], first: Observation, second: Observation) -> bool:
    """The names are two layouts of as many GPUs; the degrees that were read from them are no count of GPUs."""
    left, right = first.conditions.get("label"), second.conditions.get("label")
    if (
        left is None
        or right is None
        or not {"gpus", "setting"} & set(kinds)
        or set(kinds) - {"label", "gpus", "setting"}
    ):
        return False
    return alternatives.kind(left.name, right.name) == "layout"


def _two_labels(items: list[Observation]) -> bool:
    """Two runs, each with a name of its own: where one thing alone differs, the names stand for it."""
    names = {mark.name.lower() for item in items for mark in [item.conditions.get("label")] if mark is not None}
    return len(names) == 2


def _differ(first: Observation, second: Observation) -> list[str]:
    kinds = {*first.conditions, *second.conditions}
    out = []
    for kind in sorted(kinds):
        left, right = first.conditions.get(kind), second.conditions.get(kind)
        if (
            left is None
            or right is None
            or (left.number, left.name.lower(), left.on) != (right.number, right.name.lower(), right.on)
        ):
            if left is not None and right is not None and left.number is not None and left.number == right.number:
                continue
            out.append("package" if kind.startswith("package:") else kind)
    return list(dict.fromkeys(out))


def _pair(first: Observation, second: Observation, hints: Sequence[str], control: bool) -> Pair | None:
    if first.value == second.value == 0 or first.unit != second.unit or (first.norm and second.norm):
        return None
    kinds = _differ(first, second)
    lead = "label" if _split_otherwise(kinds, first, second) else _lead(kinds, first, second)
    if not lead:
        return None
    if lead in ("uptime", "run") and "label" in kinds:
        return None
    one_sided = lead not in first.conditions or lead not in second.conditions
    if one_sided and not first.group and abs(first.line - second.line) > NEAR_LINES:
        return None
    choice = _choice(first, second, lead, control)
    before, after = _by_worth(first, second) if choice else _order(first, second, lead)
    if before is None or after is None or before.value == 0:
        return None
    kind = choice or DIFFERENCES[lead]
    if kind == "before_after" and hints:
        kind = hints[0]
    if kind == "variant" and "version_upgrade" in hints and not choice:
        kind = "version_upgrade"
    if kind == "run_order" and abs(after.value / before.value - 1) <= lexicon.shapes().same:
        return None
    return Pair(
        after.metric,
        after.value / before.value,
        kind,
        _what(before, after, lead),
        after.line,
        after.span,
        before.value,
        after.value,
        after.unit,
        after.stat,
        at={name: mark for name, mark in after.conditions.items() if name in LOAD},
    )


def _lead(kinds: list[str], first: Observation, second: Observation) -> str:
    """The one kind two observations differ by; empty when they differ by none, by load, or by more than one."""
    if any(kind in LOAD for kind in kinds):
        only_one_has = [
            kind for kind in kinds if kind in LOAD and (kind not in first.conditions or kind not in second.conditions)
        ]
        if len(only_one_has) < len([kind for kind in kinds if kind in LOAD]):
            return ""
        kinds = [kind for kind in kinds if kind not in LOAD]
    kinds = [kind for kind in kinds if kind in DIFFERENCES]
    # A marker that only one side carries says little when the other side names its own.
    if len(kinds) > 1:
        both = [kind for kind in kinds if kind in first.conditions and kind in second.conditions]
        if len(both) == 1 and both[0] not in ("label", "setting"):
            kinds = both
    if len(kinds) == 1:
        kind = kinds[0]
        if kind in ("gpu", "setting", "uptime", "run", "version", "gpus", "tool", "power_cap") and not (
            kind in first.conditions and kind in second.conditions
        ):
            return ""
        return kind
    if len(kinds) in (2, 3):
        for lead, follower in _TOGETHER:
            if set(kinds) <= {lead, follower, "label", "baseline", "variant"} and lead in kinds:
                return lead
    return ""


def _choice(first: Observation, second: Observation, lead: str, control: bool) -> str:
    """What two named runs differ in, where neither name says which is the good one."""
    left, right = first.conditions.get(lead), second.conditions.get(lead)
    if lead not in ("variant", "label") or left is None or right is None or _told(left, right):
        return ""
    return alternatives.kind(left.name, right.name) or ("config_value" if control else "")


def _by_worth(first: Observation, second: Observation) -> tuple[Observation | None, Observation | None]:
    """(better, worse): of alternatives neither comes first, and the complaint is of the worse one."""
    better = lexicon.metrics()[first.metric].better
    if better not in ("low", "high"):
        return None, None
    ahead = first.value <= second.value if better == "low" else first.value >= second.value
    return (first, second) if ahead else (second, first)


def _order(first: Observation, second: Observation, lead: str) -> tuple[Observation | None, Observation | None]:
    """(before, after) for the leading kind; ``(None, None)`` when the two do not form a pair."""
    left, right = first.conditions.get(lead), second.conditions.get(lead)
    if lead == "package":
        return (first, second) if _packages(first) and _packages(second) else (None, None)
    if lead == "feature":
        return _feature(first, second, left, right)
    if lead in ("baseline", "reference"):
        return (first, second) if left is not None else (second, first)
    if lead == "side":
        if left is not None and right is not None:
            return (first, second) if (left.name, right.name) == ("before", "after") else (second, first)
        if first.line != second.line or any("variant" in item.conditions for item in (first, second)):
            return None, None
        side = left or right
        before_first = (side is left) == (side is not None and side.name == "before")
        return (first, second) if before_first else (second, first)
    if left is None or right is None:
        if lead == "route":
            known = left or right
            is_gateway = known is not None and known.name == "gateway"
            return (second, first) if (known is left) == is_gateway else (first, second)
        if lead in ("variant", "label"):
            return None, None
        return None, None
    if lead == "version":
        old, new = parse_version(left.name), parse_version(right.name)
        if old and new and old != new:
            return (first, second) if old < new else (second, first)
        return _named(first, second, left, right)
    if lead == "route":
        return (first, second) if left.name == "direct" else (second, first)
    if left.number is not None and right.number is not None:
        return (first, second) if left.number <= right.number else (second, first)
    if lead in ("variant", "label") and not _told(left, right):
        return None, None
    return _named(first, second, left, right)


def _told(left: Condition, right: Condition) -> bool:
    """Whether the two names themselves say which is the good side and which the bad one."""
    good = bool(_GOOD.search(left.name)), bool(_GOOD.search(right.name))
    bad = bool(_BAD.search(left.name)), bool(_BAD.search(right.name))
    return (good[0] and bad[1] and not bad[0]) or (good[1] and bad[0] and not bad[1])


def _packages(item: Observation) -> bool:
    return any(kind.startswith("package:") for kind in item.conditions)


def _feature(
    first: Observation, second: Observation, left: Condition | None, right: Condition | None
) -> tuple[Observation | None, Observation | None]:
    if left is not None and right is not None:
        if left.name != right.name:
            return (
                (first, second)
                if left.on is False and right.on
                else (second, first)
                if right.on is False and left.on
                else (None, None)
            )
        return (second, first) if left.on else (first, second)
    known, other = (left, second) if left is not None else (right, first)
    own = first if left is not None else second
    if known is None:
        return None, None
    return (other, own) if known.on else (own, other)


def _named(
    first: Observation, second: Observation, left: Condition, right: Condition
) -> tuple[Observation, Observation]:
    if (_GOOD.search(right.name) and not _GOOD.search(left.name)) or (
        _BAD.search(left.name) and not _BAD.search(right.name)
    ):
        return second, first
    return first, second


def _what(before: Observation, after: Observation, lead: str) -> str:
    names = []
    for item in (before, after):
        mark = next(
            (value for key, value in item.conditions.items() if key == lead or key.startswith(f"{lead}:")), None
        )
        names.append(mark.label() if mark else "")
    if names[0] and names[1]:
        return f"{names[0]} → {names[1]}"
    return names[1] or names[0]


def of_ratio(item: Ratio, line: int, span: str, text: str, around: str) -> Pair:
    """A stated change as a pair; the difference is looked for in the sentence, then around it."""
    kinds = cues(text) or [kind for kind in cues(around) if kind in _SETTING]
    if item.how == "stated" and lexicon.cue("reference").search(text):
        kinds = ["reference", *kinds]
    return Pair(
        item.metric,
        item.ratio,
        kinds[0] if kinds else "unnamed",
        "",
        line,
        span,
        item.before,
        item.after,
        item.unit,
        item.stat,
        stated=True,
    )
