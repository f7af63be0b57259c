"""Tables of any layout (Markdown, aligned with spaces, CSV, tab, key=value) become observations with their conditions."""

from __future__ import annotations

import re

from msgspec import Struct, field

from tools.report import entities, figures, lexicon, metrics, quantities
from tools.report.blocks import Block, Line
from tools.report.columns import EMPTY, condition
from tools.report.conditions import Condition
from tools.report.figures import Place, Told, Unit
from tools.report.grid import Cell, Grid, layout, named
from tools.report.headers import SIZE, Head, head, marks_of, unit_of
from tools.report.metrics import Mention
from tools.report.spans import Sentence

_CAPTION_UNIT = re.compile(
    r"(?:^|\(|\[|,\s?|;\s?|\bin\s)(?P<u>ms|us|µs|seconds|s|tok(?:ens?)?/s|tps|req/s|rps|qps|%|GB/s|GiB|W|MHz)\b(?!\s\w+ed)|(?P<u2>tok(?:ens?)?/s|req/s)(?= per|\s?[:(]|$)"
)
_DIFFERENCES = re.compile(r"\brelative to\b|\bdifferences? (?:to|from|against)\b|\bdelta\b|相对于|差值", re.IGNORECASE)
# "GPU memory is flat." says all there is to say of it: it heads no table.
_CLOSED = re.compile(
    r"^[^,;.]{0,12}\b(?:is|are|was|were|stays?|remains?) (?:\w+ )?(?:flat|unchanged|constant|stable|steady|fine|normal)\b",
    re.IGNORECASE,
)
_OWN = re.compile(
    r"^\W*(?:mine|ours?|here|this (?:cluster|machine|box|host|run)|my \w+|measured|actual|我的|实测)\b", re.IGNORECASE
)
_UNITY = re.compile(r"^(?:1(?:\.0+)?\s?[x×]|[x×]\s?1(?:\.0+)?|100\s?%)$")
_FACTOR = re.compile(r"^[~≈]?\d+(?:\.\d+)?\s?[x×%]$")


class Caption(Struct):
    """What the text before a table says of all of it: metrics it may hold, a unit, conditions."""

    mentions: list[Mention] = field(default_factory=list)
    unit: Unit | None = None
    marks: list[Condition] = field(default_factory=list)
    differences: bool = False

    def for_dim(self, dim: str) -> Mention | None:
        """The last metric named there that such a value can be of, the specific before the general one."""
        fit = [item for item in self.mentions if metrics.fits(item.metric, dim)]
        host = [item for item in fit if item.metric == "host_memory"]
        special = [item for item in fit if item.metric != "throughput"]
        return (host or special or fit)[-1] if fit else None


def caption(texts: list[str]) -> Caption:
    """Caption from the sentences in front of a table (nearest last)."""
    out = Caption()
    for text in texts:
        names = entities.find(text)
        plain = entities.mask(text, names)
        found = quantities.find(plain)
        out.mentions.extend(
            item
            for item in metrics.mentions(plain, text)
            if not any(q.start <= item.start < q.stop for q in found) and not _CLOSED.match(plain[item.stop :])
        )
    if texts:
        unit = _CAPTION_UNIT.search(texts[-1])
        out.unit = unit_of(unit["u"] or unit["u2"]) if unit else None
        out.differences = out.unit is not None and bool(_DIFFERENCES.search(texts[-1]))
        found_marks = [
            mark for mark in marks_of(texts[-1]) if mark.kind in ("tool", "route", "side") and not mark.number
        ]
        out.marks = found_marks if len(texts[-1]) < 90 else []
    return out


def read(block: Block, about: Caption, group: str) -> tuple[Told, list[Sentence]]:
    """What a table says, and the lines of a name/value table as sentences for names and sizes of the set-up."""
    grid = layout(block)
    out = Told()
    if grid is None:
        return out, []
    if grid.listed and any(len(row) > 1 and named(row[0].text, row[1].text) is not None for _, row in grid.rows):
        # The lines name their own metrics: one that names none is of something else.
        about = Caption(marks=about.marks)
    for number, (line, row) in enumerate(grid.rows):
        _row(line, row, grid, about, out, number)
    for item in (*out.found, *out.ratios):
        item.group = group
    return out, [_sentence(line, row, grid) for line, row in grid.rows if len(row) > 1] if grid.told() else []


def _sentence(line: Line, row: list[Cell], grid: Grid) -> Sentence:
    """``| GPU | 2x H100 |`` as the sentence ``GPU 2x H100`` whose spans lead back into the line."""
    if grid.keyed:
        return Sentence(line.text, [(0, line.no, 0)], {line.no: line.text}, "item")
    text, starts, at = "", [], 0
    for cell in row:
        place = line.text.find(cell.text, at)
        if not cell.text or place < 0:
            continue
        at = place + len(cell.text)
        text = f"{text} " if text else ""
        starts.append((len(text), line.no, place))
        text += cell.text
    return Sentence(text, starts or [(0, line.no, 0)], {line.no: line.text}, "item")


def _label(row: list[Cell], grid: Grid) -> Head:
    if grid.key >= len(row) or not row[grid.key].text:
        return Head("")
    text = row[grid.key].text
    if SIZE.match(text) and grid.heads[grid.key].kind:
        return Head(text)
    item = head(text)
    if grid.listed and item.mention is None and len(row) > 1:
        item.mention = named(text, row[1].text)
    return item


def _row(line: Line, row: list[Cell], grid: Grid, about: Caption, out: Told, number: int) -> None:
    if not row:
        return
    heads = grid.heads
    label = _label(row, grid)
    base = _conditions(row, grid, label, about)
    values = [cell.text.strip() for cell in row[grid.key + 1 :]]
    unity = len(values) > 1 and bool(_UNITY.match(values[0])) and all(_FACTOR.match(text) for text in values if text)
    start = 0
    previous: tuple[Mention, Unit | None] | None = None
    for index, (column, cell) in enumerate(zip(heads, row, strict=False)):
        at = line.text.find(cell.text, start) if cell.text else -1
        if at >= 0:
            start = at + len(cell.text)
        labels = index == grid.key and not column.mention
        if column.kind or cell.text.strip().lower() in EMPTY or labels or index < grid.key or at < 0:
            continue
        mention = _mention(index, column, label, grid)
        unit = column.unit or (label.unit if grid.transposed or not column.mention else None) or heads[0].unit
        unit = unit or about.unit
        if mention is None and column.relative and about.mentions:
            mention = about.for_dim("tokens_per_s") or about.mentions[-1]
        if mention is None and (column.marks or _OWN.match(column.text) or about.mentions or about.unit):
            mention = _inherit(column, label, unit or (previous[1] if previous else None), about, previous)
            unit = unit or (previous[1] if previous and mention is previous[0] else None)
        place = Place(
            line,
            at,
            number,
            column,
            label,
            {**base, **{mark.kind: mark for mark in column.marks}},
            relative=unity,
            differences=about.differences,
            natural=not (label if mention is label.mention else column).phase
            or about.for_dim("tokens_per_s") is not None,
        )
        seen = figures.read(cell.text, place, mention, unit, out)
        previous = seen or previous
        if seen and column.mention is None and index and label.mention is None and not grid.listed:
            column.mention, column.unit = seen[0], column.unit or seen[1]


def _mention(index: int, column: Head, label: Head, grid: Grid) -> Mention | None:
    """The metric of a cell: what the row says in a transposed table, else the column's; a row may name a sibling."""
    if grid.transposed and index != grid.key:
        own = label.mention
        if own is not None and column.stat and not (own.stat or own.stats):
            return Mention(own.metric, own.start, own.stop, column.stat)
        return own
    if column.mention and label.mention and index and _sibling(column.mention, label):
        return label.mention
    return column.mention or label.mention or (grid.heads[0].mention if index else None)


def _sibling(mention: Mention, label: Head) -> bool:
    """``decode`` as a row under ``prefill, tok/s``: the label is wholly the name of a metric of the same kind."""
    own = label.mention
    return (
        own is not None
        and own.metric != mention.metric
        and own.start == 0
        and own.stop == len(label.text)
        and lexicon.metrics()[own.metric].dims == lexicon.metrics()[mention.metric].dims
    )


def _conditions(row: list[Cell], grid: Grid, label: Head, about: Caption) -> dict[str, Condition]:
    """Under which conditions the figures of a row were taken: its condition columns and its label."""
    base: dict[str, Condition] = {mark.kind: mark for mark in about.marks}
    first = next((index for index, item in enumerate(grid.heads) if item.mention and index), 3)
    first = grid.key if grid.transposed else min(first, 3)
    for index, (column, cell) in enumerate(zip(grid.heads, row, strict=False)):
        if column.kind == "aside":
            continue
        if column.kind:
            fixed = SIZE.match(cell.text.strip()) or column.kind in ("version", "package", "switch")
            worded = [] if fixed else marks_of(cell.text)
            mark = condition(column, cell.text)
            if mark is not None and not (column.kind == "run" and worded):
                base[mark.kind] = mark
            base.update({mark.kind: mark for mark in worded if mark.kind != column.kind})
            continue
        words = index < first and column.mention is None and not SIZE.match(cell.text)
        if (index == grid.key and not column.mention) or words:
            marks = label.marks if index == grid.key else marks_of(cell.text)
            own: dict[str, Condition] = {}
            for mark in marks:
                own.setdefault(mark.kind, mark)
            base.update(own)
            name = f"{column.text}={cell.text}" if grid.keyed else cell.text.strip()
            if not cell.text or (label.mention and index == grid.key):
                continue
            if "label" not in base and index in (0, grid.key):
                base["label"] = Condition("label", 0, len(cell.text), name)
            elif "label" in base and not marks and not grid.transposed and not re.search(r"\d", name):
                base["label"] = Condition("label", 0, len(cell.text), f"{base['label'].name}, {name}")
    return base


def _inherit(
    column: Head,
    label: Head,
    unit: Unit | None,
    about: Caption,
    previous: tuple[Mention, Unit | None] | None,
) -> Mention | None:
    """Metric of a column without one: by the unit the caption gives, else that of the column before it."""
    if unit is not None:
        if unit[0] == "tokens_per_s" and figures.each(f"{column.text} {label.text}"):
            return Mention("user_tps", 0, 0)
        found = about.for_dim(unit[0]) or figures.default(unit[0], f"{column.text} {label.text}")
        if found is not None:
            return found
    if previous is not None and column.marks:
        return previous[0]
    return about.mentions[-1] if about.mentions and column.marks else None
