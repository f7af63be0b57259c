"""Columns of a table: the condition that a cell gives its row, and what headers say beside each other."""

from __future__ import annotations

import re

from tools.report import alternatives, conditions, quantities
from tools.report.conditions import Condition
from tools.report.headers import SIZE, Head, marks_of, metrics_of, setting_of
from tools.report.metrics import Mention

EMPTY = frozenset(("", "-", "–", "—", "n/a", "na", "none", "null", "nan", "?", "x", "tbd", "/"))
# What a version, build, commit or date looks like; "baseline" or "DeepEP" under "Version" is a variant.
_RELEASED = re.compile(
    r"\d\.\d|\bv\d|\b[0-9a-f]{7,40}\b|\b20\d\d[-.]?\d\d|\b(?:nightly|main|master|latest|dev|old\w*|new\w*|prev\w*|before|after|parent|merge\w*|release\w*|good|bad)\b|旧|新",
    re.IGNORECASE,
)
_ON = re.compile(r"[✔✓☑✅√]\ufe0f?|x|yes|y|on|true|enabled?|1|开启?|启用|是", re.IGNORECASE)
_OFF = re.compile(r"[✗✘❌☐×]\ufe0f?|-|–|—|/|no|n|off|false|disabled?|none|0|关闭?|禁用|否|", re.IGNORECASE)
# Beside one of these an x is a cross.
_TICK = re.compile(r"[✔✓☑✅√]\ufe0f?|yes|y|on|true", re.IGNORECASE)
_DAYS = re.compile(
    r"^(?:day|hour|h|d|min|week)\s?(\d+(?:\.\d+)?)$|^(\d+(?:\.\d+)?)\s?(min|m|h|hours?|d|days?|s|sec)$", re.IGNORECASE
)
_WAS = re.compile(
    r"^(?:(?:last|previous|prior) (?:week|month|year|night|run)|yesterday|then|earlier|formerly|start|begin(?:ning)?|first (?:hour|day|half)|以前|之前|原来)$",
    re.IGNORECASE,
)
_IS = re.compile(
    r"^(?:now|today|this (?:week|month|run)|currently|current|end|last (?:hour|half)|last day|现在|当前)$",
    re.IGNORECASE,
)
_DURING = re.compile(r"^(?:while|during|under load)\b", re.IGNORECASE)
# ``ALL_CAPS`` names in a header are values of one setting.
_CONSTANT = re.compile(r"^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$")
# Words in front of a number that say which one of several alike things it is.
_ONE_OF = re.compile(
    r"(?:gpu|card|device|rank|core|node|host|server|machine|worker|engine|replica|pod|instance|run|seed|trial|sample|test|pass|round|turn|client|user|request|day|week|p|top)$",
    re.IGNORECASE,
)
CLOCK = re.compile(r"^(?:\d{4}-\d\d-\d\d[ T])?(\d{1,2}):(\d\d)(?::(\d\d))?$")


def condition(column: Head, written: str) -> Condition | None:
    """The cell of a condition column as a condition."""
    text = written.strip()
    if column.kind == "switch":
        return Condition(
            "feature",
            0,
            len(text),
            column.marks[0].name,
            on=bool(_ON.fullmatch(text)) and not (column.crossed and text.lower() == "x"),
        )
    if text.lower() in EMPTY:
        return None
    size = SIZE.match(text)
    if column.kind == "setting":
        name = setting_of(column.text) or column.text
        if not size:
            return Condition("label", 0, len(text), text)
        return Condition("setting", 0, len(text), f"{name} {text}", _sized(size))
    if column.kind in ("concurrency", "context", "gpus", "run", "power_cap") and size:
        return Condition(column.kind, 0, len(text), text, _sized(size))
    if column.kind == "power_cap":
        watts = next((item.value for item in quantities.find(text) if item.dim == "watts"), None)
        return Condition("power_cap", 0, len(text), text, watts) if watts is not None else None
    if column.kind == "uptime":
        return _uptime(column, text, size)
    if column.kind == "package":
        return Condition(f"package:{column.text.lower()}", 0, len(text), f"{column.text.lower()} {text}")
    if column.kind == "version":
        return Condition("version" if _RELEASED.search(text) else "label", 0, len(text), text)
    number = next((mark for mark in marks_of(text) if mark.kind == column.kind), None)
    if number is not None:
        return number
    # ``n+1`` is an expression, not the number 1.
    digits = re.search(r"(?<![A-Za-z][+-])(?<![\d.])\d[\d,]*(?:\.\d+)?\s?[kK]?", text)
    if digits and column.kind in ("concurrency", "context", "gpus", "run"):
        raw = digits[0]
        value = conditions.number(re.sub(r"[^\d.]", "", raw), "k" if raw[-1] in "kK" else None)
        return Condition(column.kind, 0, len(text), text, value)
    return Condition("label", 0, len(text), text)


def _sized(size: re.Match[str]) -> float:
    value = float(size[1].replace(",", ""))
    if size[2]:
        return conditions.number(size[1], "k") if size[2] in "kK" else value * 1e6
    return value


def _uptime(column: Head, text: str, size: re.Match[str] | None) -> Condition | None:
    clock = CLOCK.match(text)
    if clock:
        value = int(clock[1]) * 3600.0 + int(clock[2]) * 60.0 + int(clock[3] or 0)
        return Condition("uptime", 0, len(text), text, value)
    spoken = _DAYS.match(text)
    if not spoken and not size:
        return None
    value = float((spoken[1] or spoken[2]) if spoken else (size[1] if size else "0").replace(",", ""))
    unit = ((spoken[3] if spoken else "") or column.text).lower()
    scale = 86400.0 if "d" in unit else 3600.0 if "h" in unit else 60.0 if "m" in unit else 1.0
    return Condition("uptime", 0, len(text), text, value * scale)


def clock_heads(heads: list[Head]) -> None:
    """Columns named by clock times are a time axis."""
    clocks = [CLOCK.match(item.text) for item in heads[1:]]
    if len(clocks) >= 2 and all(clocks):
        base: float | None = None
        for item, clock in zip(heads[1:], clocks, strict=True):
            assert clock is not None
            seconds = int(clock[1]) * 3600 + int(clock[2]) * 60 + int(clock[3] or 0)
            base = seconds if base is None else base
            item.kind, item.mention = "", None
            item.marks = [Condition("uptime", 0, len(item.text), item.text, float(seconds - base))]


def switches(heads: list[Head], rows: list[list[str]]) -> None:
    """A column headed by a feature whose cells are ticked or not says of each row whether the feature was on."""
    for index, item in enumerate(heads):
        if item.kind or item.mention:
            continue
        name = conditions.feature_of(item.text) or conditions.feature_of(re.sub(r"[-_ ]", "", item.text))
        written = [row[index].strip() for row in rows if index < len(row)] if name else []
        crossed = any(_TICK.fullmatch(text) for text in written)
        on = [bool(_ON.fullmatch(text)) and not (crossed and text.lower() == "x") for text in written]
        off = all(
            ticked or _OFF.fullmatch(text) or text.lower() == "x" for ticked, text in zip(on, written, strict=True)
        )
        if len(set(on)) == 2 and off:
            item.kind, item.marks = "switch", [Condition("feature", 0, len(item.text), name, on=True)]
            item.crossed = crossed


def units(heads: list[Head], rows: list[list[str]]) -> None:
    """Times without a unit: thousands can only be milliseconds, and no token comes within a thousandth of one."""
    times: dict[int, list[float]] = {}
    large = False
    for index, item in enumerate(heads):
        if item.mention and item.unit is None and item.mention.metric in ("ttft", "tpot", "itl", "e2e"):
            found = [SIZE.match(row[index].strip()) for row in rows if index < len(row)]
            times[index] = [float(cell[1].replace(",", "")) for cell in found if cell and not cell[2]]
            least = 5000 if item.mention.metric == "e2e" else 1000
            large = large or (bool(times[index]) and min(times[index]) >= least)
    for index, values in times.items():
        if large:
            heads[index].unit = ("seconds", 0.001)
        elif values and min(values) > 0 and max(values) < 1:
            heads[index].unit = ("seconds", 1.0)


def rates(heads: list[Head], rows: list[list[str]]) -> None:
    """A bare ``Throughput`` that never exceeds the ``Request Rate`` beside it counts requests."""
    offered = next((i for i, item in enumerate(heads) if item.mention and item.mention.metric == "request_rate"), -1)
    for index, item in enumerate(heads):
        if offered < 0 or item.mention is None or item.mention.metric != "throughput" or item.unit:
            continue
        cells = [
            (SIZE.match(row[index].strip()), SIZE.match(row[offered].strip()))
            for row in rows
            if len(row) > max(index, offered)
        ]
        if cells and all(
            own and rate and float(own[1].replace(",", "")) <= float(rate[1].replace(",", "")) for own, rate in cells
        ):
            item.mention, item.unit = Mention("requests_per_s", 0, 0, item.mention.stat), ("requests_per_s", 1.0)


def layouts(heads: list[Head]) -> None:
    """Columns named by values of one choice (``TP8-triton | TEP8-triton``) are the runs that are compared."""
    runs = [item for item in heads[1:] if not item.kind and not item.mention and alternatives.known(item.text)]
    if any(alternatives.kind(one.text, two.text) for one in runs for two in runs):
        for item in runs:
            item.marks = [Condition("variant", 0, len(item.text), item.text)]


def samples(heads: list[Head]) -> None:
    """Beside columns of statistics ``N`` counts the samples."""
    if sum(bool(item.stat) for item in heads) >= 2:
        for item in heads:
            if re.fullmatch(r"n|#|count|samples", item.text, re.IGNORECASE):
                item.kind, item.mention = "aside", None


def repeated(heads: list[Head]) -> None:
    """Columns with the same metric are told apart by their headers; a bare repeat belongs to the marked column before it."""
    texts = [item.text.lower() for item in heads]
    by_metric: dict[str, list[Head]] = {}
    for item in heads[1:]:
        if _CONSTANT.match(item.text) and not item.mention and not item.kind and not item.marks:
            item.marks = [Condition("setting", 0, len(item.text), item.text)]
    marked: list[Condition] = []
    for item in heads:
        if item.marks and item.mention:
            marked = item.marks
        elif item.mention and texts.count(item.text.lower()) > 1 and marked:
            item.marks = list(marked)
        if item.mention and not item.kind:
            by_metric.setdefault(item.mention.metric + item.mention.stat, []).append(item)
    for same in by_metric.values():
        if len(same) > 1:
            _numbered(same)
            for item in same:
                if not item.marks and texts.count(item.text.lower()) == 1:
                    item.marks = [Condition("variant", 0, len(item.text), item.text)]


def _numbered(same: list[Head]) -> None:
    """``length: theta 100 | length: theta 200``: headers alike but for one number name the values of a setting."""
    hits = [
        re.fullmatch(r"(?P<lead>\D*[A-Za-z]\D*?)[\s=:]*(?P<n>\d[\d,]*(?:\.\d+)?)(?P<rest>\D*)", item.text)
        for item in same
    ]
    found = [hit for hit in hits if hit]
    if (
        len(found) < len(same)
        or any(item.marks for item in same)
        or len({(hit["lead"], hit["rest"]) for hit in found}) > 1
    ):
        return
    word = re.findall(r"[\w-]+", found[0]["lead"])[-1]
    if _ONE_OF.match(word) or metrics_of(word) is not None or len({hit["n"] for hit in found}) < len(same):
        return
    for item, hit in zip(same, found, strict=True):
        item.marks = [Condition("setting", 0, len(item.text), f"{word} {hit['n']}", float(hit["n"].replace(",", "")))]


def sides(heads: list[Head]) -> None:
    """``last month | now`` are the two sides of a change; ``while X runs | after`` are not."""
    during = [item for item in heads if _DURING.match(item.text)]
    if during:
        for item in heads[1:]:
            item.marks = [mark for mark in item.marks if mark.kind != "side"]
            if not item.marks and not item.mention and item.text:
                item.marks = [Condition("variant", 0, len(item.text), item.text)]
        return
    was = [item for item in heads if _WAS.match(item.text)]
    now = [item for item in heads if _IS.match(item.text)]
    if len(was) == 1 and len(now) == 1:
        for item, name in ((was[0], "before"), (now[0], "after")):
            item.kind, item.mention = "", None
            item.marks = [Condition("side", 0, len(item.text), name)]
