"""Tables of any layout (Markdown, aligned with spaces, CSV, tab) become observations with row and column conditions."""

from __future__ import annotations

import re

from msgspec import Struct, field

from tools.report import conditions, entities, lexicon, metrics, quantities
from tools.report.blocks import Block, Line, cells, table_mode
from tools.report.conditions import Condition
from tools.report.metrics import Mention
from tools.report.observe import Observation
from tools.report.quantities import Quantity

MAX_ROWS = 20000
MAX_COLUMNS = 64
_RULE = re.compile(r"^[\s|:=+-]*$")
_SAME = re.compile(
    r"^\s?(?:about |roughly |nearly |exactly )?(?:the )?(?:same|unchanged|equal|identical|no (?:change|difference))\s*$|^\s?(?:不变|相同|一样|持平)\s*$",
    re.IGNORECASE,
)
_EMPTY = {"", "-", "–", "—", "n/a", "na", "none", "null", "nan", "?", "x", "tbd", "/"}
_UNIT = re.compile(
    r"(?:\(|\[|,\s?|_|(?<!\d)\s|^)(?P<u>ms|us|µs|sec|seconds?|s|min|tok(?:ens?)?/s(?:ec)?|tokens?[_ ]per[_ ]s(?:ec(?:ond)?)?|tps|t/s|req/s|req(?:uest)?s?[_ ]per[_ ](?:s|min)|rps|qps|%|pct|GB/s|GiB|GB|MiB|MB|W|w|MHz|mhz|C|c|x)(?:\)|\]|$|\s|,)"
)
_CAPTION_UNIT = re.compile(
    r"(?:\(|\[|,\s?|\bin\s)(?P<u>ms|us|µs|seconds|s|tok(?:ens?)?/s|tps|req/s|rps|qps|%|GB/s|GiB|W|MHz)\b(?!\s\w+ed)|(?P<u2>tok(?:ens?)?/s|req/s)(?= per|\s?[:(]|$)"
)
_OTHERS = re.compile(
    r"^\W*(?:theirs?|others?|published|readme|official|expected|reference|target|vendor|datasheet|claimed|别人|官方|预期)\b",
    re.IGNORECASE,
)
_OWN = re.compile(
    r"^\W*(?:mine|ours?|here|this (?:cluster|machine|box|host|run)|my \w+|measured|actual|我的|实测)\b", re.IGNORECASE
)
_SUM = re.compile(r"\b(?:sum|total|aggregate|all|combined|overall|system)\b|合计|总", re.IGNORECASE)
_EACH = re.compile(r"\b(?:per|each|every|single)[ -](?:user|session|stream|client|request)\b|单路|每路", re.IGNORECASE)
_UNITS: dict[str, tuple[str, float]] = {
    "ms": ("seconds", 0.001),
    "us": ("seconds", 1e-6),
    "µs": ("seconds", 1e-6),
    "s": ("seconds", 1.0),
    "sec": ("seconds", 1.0),
    "second": ("seconds", 1.0),
    "seconds": ("seconds", 1.0),
    "min": ("seconds", 60.0),
    "tps": ("tokens_per_s", 1.0),
    "t/s": ("tokens_per_s", 1.0),
    "req/s": ("requests_per_s", 1.0),
    "rps": ("requests_per_s", 1.0),
    "qps": ("requests_per_s", 1.0),
    "%": ("fraction", 0.01),
    "pct": ("fraction", 0.01),
    "gb/s": ("bytes_per_s", 1.0),
    "gib": ("bytes", 1.0),
    "gb": ("bytes", 1.0),
    "mib": ("bytes", 1 / 1024),
    "mb": ("bytes", 1 / 1024),
    "w": ("watts", 1.0),
    "mhz": ("hertz", 1.0),
    "c": ("celsius", 1.0),
    "x": ("factor", 1.0),
}
_KINDS: tuple[tuple[str, str], ...] = (
    (
        "concurrency",
        r"^(?:max[ _-]?)?(?:concurren\w+|conc|parallel\w*|clients?|users?|streams?|sessions?|batch(?:[ _]?size)?|bs|n|c|in[ -]?flight|并发(?:数|量)?|用户数)\b",
    ),
    (
        "context",
        r"^(?:context|ctx|prompt(?:[ _](?:tokens?|len(?:gth)?))?|input(?:[ _](?:tokens?|len(?:gth)?))?|isl|seq(?:uence)?[ _]?len(?:gth)?|tokens in|length|上下文|输入长度)\b",
    ),
    ("gpus", r"^(?:#?\s?(?:gpus?|cards?|ranks|devices)|tp(?:[ _]size)?|tensor[ _-]parallel\w*|nodes?|卡数)$"),
    (
        "version",
        r"^(?:version|release|image|tag|build|engine version|vllm|sglang|commit|source(?: state)?|wheel|版本)\b",
    ),
    ("run", r"^(?:run|pass|round|iteration|turn|attempt|trial|request #|query|call|step|epoch|轮次|次数)\b"),
    ("uptime", r"^(?:time|uptime|hours?|minutes?|elapsed|clock|day|at|t|时间|when|age)\b"),
    ("power_cap", r"^(?:power[ _]?)?(?:cap|limit)(?:[ _]?w)?$"),
    (
        "setting",
        r"^(?:num[ _]speculative[ _]tokens|draft(?:[ _]tokens)?|k|gamma|block[ _]size|chunk(?:[ _]size)?|budget|threads|workers|cores|channels|size|message size)\b",
    ),
)
_KIND = [(kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _KINDS]
_CLOCK = re.compile(r"^(?:\d{4}-\d\d-\d\d[ T])?(\d{1,2}):(\d\d)(?::(\d\d))?$")
_SIZE = re.compile(r"^[x×]?\s?(\d[\d,]*(?:\.\d+)?)\s?([kKM])?[xX×]?$")
_DAYS = re.compile(
    r"^(?:day|hour|h|d|min|week)\s?(\d+(?:\.\d+)?)$|^(\d+(?:\.\d+)?)\s?(min|m|h|hours?|d|days?|s|sec)$", re.IGNORECASE
)


class Cell(Struct):
    """A cell with its place in the line."""

    text: str
    start: int = 0


class Head(Struct):
    """What a column or row label says: a metric, conditions, or a kind whose value stands in each cell."""

    text: str
    mention: Mention | None = None
    kind: str = ""
    unit: tuple[str, float] | None = None
    marks: list[Condition] = field(default_factory=list)
    relative: bool = False


class Caption(Struct):
    """What the text before a table says of all of it: metrics it may hold, a unit, conditions."""

    mentions: list[Mention] = field(default_factory=list)
    unit: tuple[str, float] | None = None
    marks: list[Condition] = field(default_factory=list)

    def for_dim(self, dim: str) -> Mention | None:
        """The last metric named there that such a value can be of."""
        fit = [item for item in self.mentions if metrics.fits(item.metric, dim)]
        host = [item for item in fit if item.metric == "host_memory"]
        return (host or fit)[-1] if fit else None


def caption(texts: list[str]) -> Caption:
    """Caption from the sentences in front of a table (nearest last)."""
    out = Caption()
    for text in texts:
        names = entities.find(text)
        plain = entities.mask(text, names)
        found = quantities.find(plain)
        out.mentions.extend(
            item for item in metrics.mentions(plain, text) if not any(q.start <= item.start < q.stop for q in found)
        )
    if texts:
        unit = _CAPTION_UNIT.search(texts[-1])
        out.unit = _unit(unit["u"] or unit["u2"]) if unit else None
        found_marks = [mark for mark in _marks(texts[-1]) if mark.kind in ("tool", "route", "side") and not mark.number]
        out.marks = found_marks if len(texts[-1]) < 90 else []
    return out


def read(block: Block, about: Caption, group: str) -> tuple[list[Observation], list[Observation]]:
    """Observations of one table, and its relative cells (``-8 %``), whose ``value`` is the ratio."""
    lines = [line for line in block.lines if not _RULE.match(line.text)][:MAX_ROWS]
    mode = table_mode([line.text for line in block.lines[:3]]) or "gap"
    if len(lines) < 2:
        return [], []
    header = _split(lines[0], mode)[:MAX_COLUMNS]
    if (
        mode == "gap"
        and header
        and header[0].start > 0
        and max(len(_split(line, mode)) for line in lines[1:8]) > len(header)
    ):
        header.insert(0, Cell("", 0))
    body = [(line, _align(_split(line, mode), header, mode)) for line in lines[1:]]
    if _numeric_row(header):
        return [], []
    heads = [head(cell.text) for cell in header]
    _clock_heads(heads)
    _repeated(heads)
    labels = sum(1 for _, row in body if row and metrics_of(row[0].text) is not None)
    transposed = labels * 2 >= len(body) and labels > 0 and not any(item.mention for item in heads[1:])
    out: list[Observation] = []
    ratios: list[Observation] = []
    for number, (line, row) in enumerate(body):
        _row(line, row, heads, transposed, about, out, ratios, number)
    for item in (*out, *ratios):
        item.group = group
    return out, ratios


def _split(line: Line, mode: str) -> list[Cell]:
    if mode == "gap":
        return [Cell(found[0].strip(), found.start()) for found in re.finditer(r"\S+(?:\s\S+)*", line.text)]
    return [Cell(re.sub(r"^[*_`]+|[*_`]+$", "", text)) for text in cells(line.text, mode)]


def _align(row: list[Cell], header: list[Cell], mode: str) -> list[Cell]:
    """Put the cells of a space-aligned row under their columns, so that empty cells stay empty."""
    if mode != "gap" or len(row) == len(header):
        return row
    out = [Cell("") for _ in header]
    last = -1
    for cell in row:
        best, distance = -1, 1 << 30
        for index in range(last + 1, len(header)):
            left, right = header[index].start, header[index].start + len(header[index].text)
            gap = max(0, left - cell.start - len(cell.text), cell.start - right)
            away = gap * 100 + abs(left - cell.start)
            if away < distance:
                best, distance = index, away
        if best >= 0:
            out[best] = cell
            last = best
    return out


def _numeric_row(row: list[Cell]) -> bool:
    return bool(row) and all(_SIZE.match(cell.text) for cell in row)


def head(text: str) -> Head:
    """Classify a column header or row label."""
    clean = re.sub(r"[*`]", "", text).strip()
    spaced = clean.replace("_", " ")
    item = Head(clean)
    unit = _UNIT.search(clean) or _UNIT.search(spaced)
    if unit:
        item.unit = _unit(unit["u"])
    item.relative = bool(
        re.search(
            r"\brelative\b|\bvs\.?\b|\bchange\b|\bdelta\b|Δ|against|compared|diff(?:erence)?\b|变化",
            clean,
            re.IGNORECASE,
        )
    )
    for kind, pattern in _KIND:
        if (
            pattern.match(spaced)
            and not (item.unit and item.unit[0] in ("tokens_per_s", "requests_per_s"))
            and not re.search(r"latency|throughput|usage|rate", spaced, re.I)
        ):
            if kind == "uptime" and metrics_of(clean) is not None:
                continue
            item.kind = kind
            break
    if re.fullmatch(rf"(?:{'|'.join(lexicon.names().packages)})(?: version)?", spaced, re.IGNORECASE) and not item.kind:
        item.kind = "package"
    elif _SUM.search(spaced) and not item.kind and item.unit and item.unit[0] == "tokens_per_s":
        item.mention = Mention("generation_tps", 0, 0)
    bare = _UNIT.sub(" ", clean).strip() if unit else clean
    item.marks = _marks(bare)
    if any(mark.kind == item.kind and mark.number is not None for mark in item.marks):
        item.kind = ""
    if not item.kind or item.kind == "uptime":
        found = metrics_of(clean) if item.unit or len(clean.split()) <= 6 else None
        if found is not None:
            item.mention, item.kind = found, ""
        elif item.unit and item.unit[0] in metrics.DEFAULTS and not item.kind:
            item.mention = Mention(metrics.DEFAULTS[item.unit[0]], 0, 0)
    return item


def _unit(word: str) -> tuple[str, float]:
    low = word.lower()
    if low in _UNITS:
        return _UNITS[low]
    if low.startswith("tok"):
        return ("tokens_per_s", 1.0)
    return ("requests_per_s", 1 / 60 if "min" in low else 1.0)


def metrics_of(text: str) -> Mention | None:
    """The metric a label names, ``None`` when it names none."""
    names = entities.find(text)
    plain = entities.mask(
        text, [item for item in names if item.kind in ("gpu", "model", "version", "package")]
    ).replace("_", " ")
    found = metrics.mentions(plain, text.replace("_", " "))
    found = [item for item in found if item.metric not in ("takes",)]
    if not found:
        return None
    specific = [item for item in found if item.metric not in ("throughput", "e2e", "power")]
    return (specific or found)[0]


def _marks(text: str) -> list[Condition]:
    names = entities.find(text)
    plain = entities.mask(text, names)
    found = quantities.find(plain)
    marks = [
        mark
        for mark in conditions.find(text, plain, names, found)
        if mark.kind != "reference"
        or re.search(r"readme|official|published|theirs|expected|target|reference|官方", text, re.I)
    ]
    if _OTHERS.match(text) and not any(mark.kind == "reference" for mark in marks):
        marks.append(Condition("reference", 0, len(text), text))
    size = _SIZE.match(text.strip())
    if not marks and re.match(r"^x\d+$", text.strip(), re.IGNORECASE) and size:
        marks.append(Condition("concurrency", 0, len(text), text, float(size[1].replace(",", ""))))
    feature = conditions.feature_of(text)
    if feature and not any(mark.kind == "feature" for mark in marks):
        off = re.search(r"\b(?:no|off|without|w/o|disabled?|none|baseline)\b|关闭|无", text, re.IGNORECASE)
        marks.append(Condition("feature", 0, len(text), feature, on=not off))
    if re.search(
        r"^\W*(?:baseline|default|none|off|plain|vanilla|stock|control|without|before|parent|good)\b|基线|默认",
        text,
        re.IGNORECASE,
    ) and not any(mark.kind in ("feature", "side", "baseline") for mark in marks):
        marks.append(Condition("baseline", 0, len(text), text))
    return marks


def _clock_heads(heads: list[Head]) -> None:
    """Columns named by clock times are a time axis."""
    clocks = [_CLOCK.match(item.text) for item in heads[1:]]
    if len(clocks) >= 2 and all(clocks):
        base: float | None = None
        for item, clock in zip(heads[1:], clocks, strict=True):
            assert clock is not None
            seconds = int(clock[1]) * 3600 + int(clock[2]) * 60 + int(clock[3] or 0)
            base = seconds if base is None else base
            item.kind, item.mention = "", None
            item.marks = [Condition("uptime", 0, len(item.text), item.text, float(seconds - base))]


def _repeated(heads: list[Head]) -> None:
    """Columns with the same metric are told apart by their headers; a bare repeat belongs to the marked column before it."""
    texts = [item.text.lower() for item in heads]
    by_metric: dict[str, list[Head]] = {}
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
            for item in same:
                if not item.marks and texts.count(item.text.lower()) == 1:
                    item.marks = [Condition("variant", 0, len(item.text), item.text)]


def _row(
    line: Line,
    row: list[Cell],
    heads: list[Head],
    transposed: bool,
    about: Caption,
    out: list[Observation],
    ratios: list[Observation],
    number: int,
) -> None:
    if not row:
        return
    label = head(row[0].text) if row[0].text and not (_SIZE.match(row[0].text) and heads[0].kind) else Head(row[0].text)
    base: dict[str, Condition] = {mark.kind: mark for mark in about.marks}
    for index, (column, cell) in enumerate(zip(heads, row, strict=False)):
        if column.kind:
            worded = (
                [] if _SIZE.match(cell.text.strip()) or column.kind in ("version", "package") else _marks(cell.text)
            )
            mark = _condition(column, cell)
            if mark is not None and not (column.kind == "run" and worded):
                base[mark.kind] = mark
            base.update({mark.kind: mark for mark in worded if mark.kind != column.kind})
        elif (
            index == 0
            and not column.mention
            or (column.mention is None and not _SIZE.match(cell.text) and not transposed and index < 3)
        ):
            for mark in label.marks if index == 0 else _marks(cell.text):
                base[mark.kind] = mark
            if cell.text and index == 0 and not label.mention and "label" not in base:
                base["label"] = Condition("label", 0, len(cell.text), cell.text.strip())
    start = 0
    previous: tuple[Mention, tuple[str, float] | None] | None = None
    for index, (column, cell) in enumerate(zip(heads, row, strict=False)):
        at = line.text.find(cell.text, start) if cell.text else -1
        if at >= 0:
            start = at + len(cell.text)
        if column.kind or cell.text.strip().lower() in _EMPTY or (index == 0 and not column.mention) or at < 0:
            continue
        mention = (
            label.mention
            if transposed and index
            else column.mention or label.mention or (heads[0].mention if index else None)
        )
        unit = column.unit or (label.unit if transposed or not column.mention else None) or heads[0].unit or about.unit
        if mention is None and (column.marks or _OWN.match(column.text) or about.mentions or about.unit):
            mention = _inherit(column, unit or (previous[1] if previous else None), about, previous)
            unit = unit or (previous[1] if previous and mention is previous[0] else None)
        found = {**base, **{mark.kind: mark for mark in column.marks}}
        seen = _cell(line, cell, at, mention, unit, column, label, found, out, ratios, number)
        previous = seen or previous
        if seen and column.mention is None and index and label.mention is None:
            column.mention, column.unit = seen[0], column.unit or seen[1]


def _inherit(
    column: Head,
    unit: tuple[str, float] | None,
    about: Caption,
    previous: tuple[Mention, tuple[str, float] | None] | None,
) -> Mention | None:
    """Metric of a column without one: by the unit the caption gives, else that of the column before it."""
    if unit is not None:
        if unit[0] == "tokens_per_s" and _EACH.search(column.text):
            return Mention("user_tps", 0, 0)
        found = about.for_dim(unit[0])
        if found is not None:
            return found
        default = metrics.DEFAULTS.get(unit[0])
        if default:
            return Mention(default, 0, 0)
    if previous is not None and column.marks:
        return previous[0]
    return about.mentions[-1] if about.mentions and column.marks else None


def _condition(column: Head, cell: Cell) -> Condition | None:
    """The cell of a condition column as a condition."""
    text = cell.text.strip()
    if text.lower() in _EMPTY:
        return None
    size = _SIZE.match(text)
    if column.kind in ("concurrency", "context", "gpus", "run", "power_cap", "setting") and size:
        value = float(size[1].replace(",", ""))
        if size[2]:
            value = conditions.number(size[1], "k") if size[2] in "kK" else value * 1e6
        return Condition(column.kind, 0, len(text), text if column.kind != "setting" else column.text, value)
    if column.kind == "uptime":
        clock = _CLOCK.match(text)
        if clock:
            return Condition(
                "uptime", 0, len(text), text, int(clock[1]) * 3600.0 + int(clock[2]) * 60.0 + int(clock[3] or 0)
            )
        spoken = _DAYS.match(text)
        if spoken or size:
            value = float((spoken[1] or spoken[2]) if spoken else (size[1] if size else "0").replace(",", ""))
            unit = (spoken[3] if spoken else "") or column.text
            scale = (
                86400.0
                if "d" in unit.lower()
                else 3600.0
                if "h" in unit.lower()
                else 60.0
                if "m" in unit.lower()
                else 1.0
            )
            return Condition("uptime", 0, len(text), text, value * scale)
        return None
    if column.kind == "package":
        return Condition(f"package:{column.text.lower()}", 0, len(text), f"{column.text.lower()} {text}")
    if column.kind == "version":
        return Condition("version", 0, len(text), text)
    marks = _marks(text)
    number = next((mark for mark in marks if mark.kind == column.kind), None)
    if number is not None:
        return number
    digits = re.search(r"\d[\d,]*(?:\.\d+)?\s?[kK]?", text)
    if digits and column.kind in ("concurrency", "context", "gpus", "run"):
        raw = digits[0]
        return Condition(
            column.kind,
            0,
            len(text),
            text,
            conditions.number(re.sub(r"[^\d.]", "", raw), "k" if raw[-1] in "kK" else None),
        )
    return Condition("label", 0, len(text), text)


def _cell(
    line: Line,
    cell: Cell,
    at: int,
    mention: Mention | None,
    unit: tuple[str, float] | None,
    column: Head,
    label: Head,
    found: dict[str, Condition],
    out: list[Observation],
    ratios: list[Observation],
    number: int,
) -> tuple[Mention, tuple[str, float] | None] | None:
    text = re.sub(r"[*`]", " ", cell.text)
    numbers = [item for item in quantities.find(text) if item.dim != "count"]
    if mention is not None and not numbers and _SAME.match(text):
        metric = metrics.resolve(mention.metric, unit[0] if unit else "tokens_per_s")
        ratios.append(
            Observation(
                metric, 1.0, "x", line.no, cell.text.strip(), mention.stat, conditions=dict(found), order=number
            )
        )
        return None
    if not numbers or (re.search(r"[A-Za-z]{4,}.*[A-Za-z]{4,}", text) and not re.search(r"tok|req|per", text)):
        return None
    if mention is None and numbers[0].dim in metrics.DEFAULTS:
        mention = Mention(metrics.DEFAULTS[numbers[0].dim], 0, 0)
    if mention is None:
        return None
    stats = mention.stats or (label.mention.stats if label.mention else ())
    for place, item in enumerate(numbers[: max(1, len(stats))]):
        value, dim = _value(item, unit)
        stat = stats[place] if place < len(stats) and len(stats) == len(numbers) else mention.stat
        span = cell.text.strip() if len(numbers) == 1 or not stats else text[item.start : item.stop].strip()
        metric = metrics.resolve(mention.metric, dim)
        common = {"line": line.no, "span": span, "conditions": dict(found), "stat": stat, "order": number}
        relative = item.dim == "fraction" and (item.signed or column.relative) and not metrics.fits(metric, "fraction")
        if relative and (item.signed or abs(item.value) <= 0.03):
            ratios.append(Observation(metric, 1 + item.value, "x", **common))  # type: ignore[arg-type]
            continue
        if column.relative and item.dim in ("factor", "fraction"):
            ratios.append(Observation(metric, item.value, "x", **common))  # type: ignore[arg-type]
            continue
        if not metrics.fits(mention.metric, dim):
            if dim in metrics.DEFAULTS:
                metric = metrics.DEFAULTS[dim]
            elif dim != "plain":
                continue
            else:
                value, dim = value, "plain"
                if not metrics.fits(metric, "plain"):
                    scale = _assume(metric)
                    if scale is None:
                        continue
        out.append(
            Observation(
                metric,
                value,
                _canonical(metric, dim, item),
                low=item.low,
                high=item.high,
                cmp=item.cmp,
                approx=item.approx,
                per=item.per,
                **common,
            )  # type: ignore[arg-type]
        )
    factor = numbers[0].value / numbers[0].raw if numbers[0].raw and numbers[0].dim != "plain" else None
    return mention, (unit or ((numbers[0].dim, factor) if factor is not None else None))


def _value(item: Quantity, unit: tuple[str, float] | None) -> tuple[float, str]:
    if item.dim != "plain" or unit is None:
        return item.value, item.dim
    return item.raw * unit[1], unit[0]


def _assume(metric: str) -> float | None:
    """Bare figures of a rate column are in its natural unit; bare durations are not guessed."""
    return (
        1.0
        if metric
        in (
            "generation_tps",
            "prompt_tps",
            "total_tps",
            "user_tps",
            "requests_per_s",
            "power",
            "clock_sm",
            "clock_mem",
            "temperature",
            "power_limit",
            "cpu_cores",
            "cpu_limit",
            "busbw",
        )
        else None
    )


def _canonical(metric: str, dim: str, item: Quantity) -> str:
    table = {
        "seconds": "s",
        "tokens_per_s": "tokens/s",
        "requests_per_s": "requests/s",
        "fraction": "fraction",
        "bytes": "GiB",
        "bytes_per_s": "GB/s",
        "bits_per_s": "Gb/s",
        "watts": "W",
        "hertz": "MHz",
        "celsius": "C",
    }
    if dim in table:
        return table[dim]
    guess = {
        "generation_tps": "tokens/s",
        "prompt_tps": "tokens/s",
        "total_tps": "tokens/s",
        "user_tps": "tokens/s",
        "requests_per_s": "requests/s",
    }
    return guess.get(metric, item.unit)
