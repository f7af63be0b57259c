"""Runs from tables: metrics down and statistics across (AIPerf's box, genai-perf's CSV), one run a row (most others),
one run a cell where the columns are variants or concurrencies, and GuideLLM's grouped heads."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.bench.fields import UNITS, Field, field
from tools.bench.grid import Table, is_value
from tools.bench.run import CONDITIONS, Run, new_run, number

_STATS = {
    "avg": "mean",
    "mean": "mean",
    "min": "min",
    "max": "max",
    "p99": "p99",
    "p95": "p95",
    "p90": "p90",
    "p50": "p50",
}
_STATS |= {"median": "p50", "mdn": "p50"}
_SLASH = re.compile(r"(?i)(?<!\w)p?(\d{2}|median|mean)\s*/\s*p?(\d{2}|median|mean)(?!\w)")
_LOAD = re.compile(r"(?i)^(?:c|conc|concurrency|n|bs|batch|users|clients|x|并发)?\s*[=:x×]?\s*(\d{1,6})$")
_CELL_UNIT = re.compile(r"^[~≈<>≤≥]?\s*[-\d.,]+(?:\s*[-–]\s*[\d.,]+)?\s*([a-zA-Zµ%]{1,8}(?:/[a-z]{1,6})?)$")
_NOT_SERVING = re.compile(r"(?i)\bbus ?bw|\balg ?bw|\bbusbw|\bout-of-place|\b(?:message )?size\b.*\bbw\b")
_EMPTY = {"", "-", "—", "–", "n/a", "na", "none", "null"}


def runs_of(table: Table, ref: str) -> list[Run]:
    """All runs of a table; none when its heads name no benchmark quantity."""
    if _NOT_SERVING.search(" ".join(table.heads)):
        return []
    down = stat_run(table, ref) or percentile_run(table, ref)
    if down is not None:
        return [down]
    pivot = list(_pivot(table, ref))
    return pivot or list(_by_row(table, ref)) or list(_by_cell(table, ref))


def stat_run(table: Table, ref: str) -> Run | None:
    """Metrics down, statistics across; ``None`` when the heads are no statistics."""
    stats = {index: _STATS[head.lower()] for index, head in enumerate(table.heads) if head.lower() in _STATS}
    if not stats and len(table.heads) == 2 and table.heads[1].lower() == "value":
        stats = {1: "mean"}
    if not stats or table.heads[0].lower() not in ("metric", "metrics", "statistic", "指标", ""):
        return None
    run = new_run(ref, "AIPerf", ref, table.line)
    label = ""
    for line, cells in table.rows:
        label = cells[0] or label
        if cells[0].startswith("(") and not any(map(is_value, cells[1:])):
            continue  # the unit of the label above, wrapped into a row of its own
        for index, stat in stats.items():
            meaning = field(label, stat=stat)
            if meaning is None or meaning.key not in UNITS or (not meaning.key.endswith("_ms") and stat != "mean"):
                continue
            value = number(cells[index])
            if value is not None:
                run.put(meaning, value, line)
            elif cells[index] and stat == "mean":
                run.missing[meaning.key] = cells[index][:40]
    return run if run.metrics else None


def percentile_run(table: Table, ref: str) -> Run | None:
    """Percentiles down, metrics across; ``None`` when the first column is none of percentiles."""
    if not re.fullmatch(r"(?i)percentiles?|quantiles?|百分位\w{0,2}", table.heads[0].strip()):
        return None
    run = new_run(ref, "percentiles", ref, table.line)
    for line, cells in table.rows:
        share = re.fullmatch(r"[pP]?(\d{1,2})(?:th)?\s?%?", cells[0].strip())
        for head, cell in zip(table.heads[1:], cells[1:], strict=False):
            meaning = field(head, stat=f"p{share[1]}") if share else None
            if meaning is not None and meaning.key.endswith("_ms") and (value := number(cell)) is not None:
                run.put(meaning, value, line)
    return run if run.metrics else None


def _fields(head: str) -> list[Field]:
    """One meaning, or two for a head such as ``TTFT p50 / p95 (ms)``."""
    pair = _SLASH.search(head)
    if pair:
        rest = head[: pair.start()] + " " + head[pair.end() :]
        both = [field(f"{rest} p{word}" if word.isdigit() else f"{rest} {word}") for word in (pair[1], pair[2])]
        found = [one for one in both if one is not None and one.key in UNITS]
        if len(found) == 2:
            return found
    one = field(head)
    return [one] if one is not None and one.key in UNITS else []


def _pivot(table: Table, ref: str) -> Iterator[Run]:
    """The first head names the quantity, the others are loads (``c=8``); rows are variants."""
    quantity = [f for f in _fields(table.heads[0]) if f.key not in CONDITIONS]
    loads = [(index, found[1]) for index, head in enumerate(table.heads) if index and (found := _LOAD.match(head))]
    if not quantity or len(loads) < 2 or len(loads) != len(table.heads) - 1:
        return
    for line, cells in table.rows:
        for index, load in loads:
            run = new_run(f"{ref}#L{line}c{load}", "table", ref, line, " | ".join(cells))
            run.conditions["variant"] = cells[0][:80]
            run.metrics["concurrency"] = float(load)
            _cell(run, quantity, cells[index], table.heads[0], line)
            if len(run.metrics) > 1:
                yield run


def _by_row(table: Table, ref: str) -> Iterator[Run]:
    """One run a row. A quantity that stands in several columns makes as many runs, named by their heads."""
    meanings = {
        index: found
        for index, head in enumerate(table.heads)
        if (found := _fields(head)) and not _is_difference(table, index)
    }
    results = {index: found for index, found in meanings.items() if found[0].key not in CONDITIONS}
    if not results:
        return
    seen: dict[str, int] = {}
    variant: dict[int, int] = {}
    names: dict[int, str] = {}
    for index, found in results.items():
        key = found[0].key
        variant[index] = seen.get(key, 0)
        seen[key] = variant[index] + 1
        words = _name(table.heads[index])
        if words and variant[index] not in names:
            names[variant[index]] = words
    several = max(seen.values()) > 1
    for line, cells in table.rows:
        for which in range(max(seen.values())):
            suffix = f"v{which + 1}" if several else ""
            run = new_run(f"{ref}#L{line}{suffix}", "table", ref, line, " | ".join(cells))
            for index, cell in enumerate(cells):
                head = table.heads[index]
                if index in results:
                    if variant[index] == which:
                        _cell(run, results[index], cell, head, line)
                elif index in meanings:
                    _cell(run, meanings[index], cell, head, line)
                elif cell.lower() not in _EMPTY:
                    run.conditions[(head or ("variant" if not index else f"column {index + 1}"))[:60].lower()] = cell[
                        :80
                    ]
            if several:
                run.conditions["variant"] = (
                    names.get(which, table.heads[0])[:80] if which in names else f"column {which + 1}"
                )
            if run.metrics.keys() - CONDITIONS:
                yield run


def _is_difference(table: Table, index: int) -> bool:
    """Whether every figure of a column carries its sign: it says how much more or less, no amount."""
    filled = [cell for _, row in table.rows if (cell := row[index].strip()).lower() not in _EMPTY]
    return bool(filled) and all(re.match(r"[-+−±]\s?\d", cell) for cell in filled)


def _name(head: str) -> str:
    """What a head says beside its quantity and unit: ``1x A100 tok/s`` → ``1x A100``."""
    text = re.sub(
        r"(?i)[(\[][^)\]]*[)\]]|\b(?:mean|median|avg|p\d\d|ttft|tpot|itl|e2e|latency|output|total|decode|tok(?:en)?s?)\b",
        " ",
        head,
    )
    text = re.sub(
        r"(?i)\b(?:tok(?:en)?s?|req(?:uest)?s?)\s*/\s*s(?:ec)?\b|\btps\b|\bms\b|\bs\b|\bacc(?:ept\w*)?[ _-]?len\w*|[_:/]",
        " ",
        text,
    )
    return " ".join(text.split())[:60]


def _by_cell(table: Table, ref: str) -> Iterator[Run]:
    """No head names a quantity, but cells carry units (``32.0 tok/s``): columns are variants."""
    load = next((index for index, head in enumerate(table.heads) if (f := field(head)) and f.key in CONDITIONS), None)
    if load is None:
        return
    for index, head in enumerate(table.heads):
        if index == load:
            continue
        units = [found[1] for _, cells in table.rows if (found := _CELL_UNIT.match(cells[index].strip()))]
        meaning = field(f"{head} ({units[0]})") if units else None
        if meaning is None and units and units[0].lower() in ("ms", "s", "tok/s"):
            meaning = field(f"x {units[0]}")
        shared = meaning or next((m for m in (_unit_meaning(table, i) for i in range(len(table.heads))) if m), None)
        if shared is None or shared.key not in UNITS:
            continue
        for line, cells in table.rows:
            run = new_run(f"{ref}#L{line}v{index}", "table", ref, line, " | ".join(cells))
            _cell(
                run,
                [field(table.heads[load]) or Field("concurrency")],
                cells[load].lstrip("x×"),
                table.heads[load],
                line,
            )
            run.conditions["variant"] = head[:80]
            _cell(run, [shared], cells[index], head, line)
            if run.metrics.keys() - CONDITIONS:
                yield run


def _unit_meaning(table: Table, index: int) -> Field | None:
    for _, cells in table.rows:
        found = _CELL_UNIT.match(cells[index].strip())
        if found and found[1].lower() == "tok/s":
            return field("x tok/s")
    return None


def _cell(run: Run, meanings: list[Field], cell: str, head: str, line: int) -> None:
    pieces = [part.strip() for part in cell.split("/")] if len(meanings) == 2 else [cell.strip()]
    for meaning, piece in zip(meanings, pieces, strict=False):
        if piece.lower() in _EMPTY:
            continue
        value = number(piece)
        if value is None:
            run.missing[meaning.key] = piece[:40]
            continue
        key = meaning.key
        unit = _CELL_UNIT.match(piece)
        if key.endswith("_ms") and not meaning.unit:
            named = field(f"{head} ({unit[1]})") if unit else None
            if named is not None and named.unit:
                meaning = named
            else:
                run.caveats.append(f"the head “{head[:40]}” names no unit; milliseconds are assumed")
        if unit and unit[1] == "%" and key in ("acceptance_rate", "accuracy"):
            meaning = Field(key, 0.01, "%")
        if piece[:1] in "~≈<>≤≥" or re.search(r"\d\s*[-–]\s*\d", piece):
            run.approximate.add(key)
        run.put(meaning, value, line)
