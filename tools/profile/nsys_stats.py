"""``nsys stats`` reports in any of their forms → :class:`Profile`. Old and new report and column names, any locale."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct, field

from tools.contract import Problem
from tools.part import Part
from tools.profile import classify
from tools.profile.copies import copy_kind
from tools.profile.json_stream import ArrayStream, chunks
from tools.profile.model import Call, Copy, Kernel, Profile, Range
from tools.profile.numbers import SIZE_BYTES, TIME_NS, decimal_sign, header_unit, number
from tools.profile.stats_trace import TraceRows
from tools.profile.steps import steps_of
from tools.profile.tables import Head, Item, Row, Skipped, items

ALIASES = {
    "gpukernsum": "kernels", "cuda_gpu_kern_sum": "kernels", "gpukerngbsum": "kernels_gb", "cuda_gpu_kern_gb_sum": "kernels_gb",
    "cuda kernel": "kernels", "cudaapisum": "api", "cuda_api_sum": "api", "cuda api": "api",
    "gpumemtimesum": "mem_time", "cuda_gpu_mem_time_sum": "mem_time", "cuda memory operation": "",
    "gpumemsizesum": "mem_size", "cuda_gpu_mem_size_sum": "mem_size",
    "gputrace": "trace", "cuda_gpu_trace": "trace", "cuda_kern_exec_trace": "",
    "nvtxsum": "nvtx", "nvtx_sum": "nvtx", "nvtxppsum": "nvtx", "nvtx_pushpop_sum": "nvtx", "nvtxsssum": "nvtx", "nvtx_startend_sum": "nvtx",
    "osrtsum": "osrt", "osrt_sum": "osrt", "operating system runtime api": "osrt",
    "gpusum": "gpu_sum", "cuda_gpu_sum": "gpu_sum",
}  # fmt: skip
_SIMPLE = {"time (%)": "pct", "time(%)": "pct", "time": "pct", "%": "pct", "total": "total", "total time": "total",
           "instances": "count", "num calls": "count", "calls": "count", "count": "count", "operations": "count", "num": "count",
           "avg": "mean", "average": "mean", "med": "median", "median": "median", "max": "longest", "maximum": "longest",
           "min": "shortest", "minimum": "shortest", "stddev": "spread", "name": "name", "operation": "name", "range": "name",
           "kernel name": "name", "style": "style", "category": "category", "start": "start", "duration": "length",
           "bytes": "bytes", "device": "device", "size": "bytes"}  # fmt: skip
_NEEDS = {"kernels": {"instances", "gridxyz"}, "kernels_gb": {"instances"}, "api": {"num calls", "calls"},
          "osrt": {"num calls", "calls"}, "mem_time": {"operation", "count"}, "nvtx": {"range", "name"}}  # fmt: skip
_MAX_STEPS = 1 << 16
_LONG_LINE = 60_000


class Table(Struct):
    """One report being read: which kind, where each column is, and the rows (not of traces, which stream)."""

    kind: str
    head: Head
    at: dict[str, int]
    scale: dict[str, float]
    rows: list[tuple[list[str], int]] = field(default_factory=list)


def column_key(title: str) -> tuple[str, float]:
    """``Total Time (ns)`` → (``total``, 1.0): what a column holds and its unit as a factor to ns or bytes."""
    unit = header_unit(title)
    bare = re.sub(r"\s*[(\[][^)\]]*[)\]]\s*$", "", title).strip().lower() if unit != "%" else "time (%)"
    key = _SIMPLE.get(bare, "")
    scale = TIME_NS.get(unit) or SIZE_BYTES.get(unit) or 1.0
    if key == "total" and unit in SIZE_BYTES:
        key = "bytes_total"
    if key == "mean" and unit in SIZE_BYTES:
        key = ""
    return key, scale


def kind_of(head: Head, name: str) -> str:
    """Which report a table is: by its title, the file's name, else by its columns. Empty for one not used."""
    title = head.title.lower()
    if ALIASES.get(title):
        return ALIASES[title]
    if title == "cuda memory operation":
        # nsys of 2020: a table of times and one of sizes below one title; the sizes state no unit and are left out
        return "mem_time" if any(c.lower().startswith("time") for c in head.columns) else ""
    stem = re.sub(r"[^a-z0-9_]", " ", name.lower())
    keys = {column_key(c)[0] for c in head.columns}
    lowered = [c.lower() for c in head.columns]
    if not {"name"} <= keys:
        return ""
    if "start" in keys and "length" in keys and "strm" in lowered:
        return "trace"
    if "style" in keys or lowered[-1] == "range":
        return "nvtx"
    if "category" in keys:
        return "gpu_sum"
    if "bytes_total" in keys:
        return "mem_size"
    for alias, kind in ALIASES.items():
        if alias in stem and kind in _NEEDS and _NEEDS[kind] & set(lowered):
            return kind
    if title or not {"total", "count"} & keys or any(c.startswith(("qavg", "tavg", "kavg")) for c in lowered):
        return ""
    if "operation" in lowered:
        return "mem_time"
    if {"num calls", "calls"} & set(lowered):
        return "calls"
    return "kernels" if "instances" in lowered or "gridxyz" in lowered else "calls"


def read_stats(part: Part) -> list[Profile]:
    """Profiles of one file; a report that comes a second time starts a second profile (before and after)."""
    out: list[Profile] = []
    seen: set[str] = set()
    current = Profile(ref=part.name, kind="nsys-stats")
    table: Table | None = None
    trace: TraceRows | None = None
    tables: list[Table] = []

    def close() -> None:
        nonlocal tables, trace
        if tables or trace:
            _build(current, tables, trace)
            if current.empty():
                names = ", ".join(sorted({t.head.title or t.kind for t in tables}))
                what = f"the report tables ({names}) hold no rows"
                current.problems.append(Problem(ref=current.ref, what=what, do="paste the rows below the header too"))
        if not current.empty() or current.problems:
            out.append(current)
        tables, trace = [], None

    for item in _items(part):
        if isinstance(item, Skipped):
            continue
        if isinstance(item, Head):
            kind = kind_of(item, part.name)
            if kind and kind in seen and kind != "calls":
                close()
                seen = set()
                current = Profile(ref=f"{part.name}#{len(out) + 1}", kind="nsys-stats")
            table = _table(kind, item) if kind else None
            if kind:
                seen.add(kind)
            elif item.title and item.title not in ALIASES:
                current.problems.append(
                    Problem(ref=part.name, what=f"report {item.title} is not used", severity="note")
                )
            if table and kind == "trace":
                trace = trace or TraceRows()
                trace.columns(table.at, table.scale)
            elif table:
                tables.append(table)
        elif isinstance(item, Row) and table is not None:
            if table.kind == "trace" and trace is not None:
                trace.add(item.cells, item.line)
            else:
                table.rows.append((item.cells, item.line))
    close()
    return out


def _items(part: Part) -> Iterator[Item]:
    """Tables of the part; JSON printed on one line is longer than any line may be and is streamed apart."""
    head = part.head(_LONG_LINE + 1)
    if not head.lstrip().startswith(b"[") or b"\n" in head.strip():
        yield from items(part.lines())
        return
    columns: list[str] = []
    for block in ArrayStream(chunks(part, lambda _: None), "", msgspec.json.decode).blocks():
        for row in block:
            if not isinstance(row, dict):
                continue
            if list(row) != columns:
                columns = list(row)
                yield Head(columns, "", "json", 1)
            yield Row(["" if value is None else str(value) for value in row.values()], 1)


def _table(kind: str, head: Head) -> Table:
    at: dict[str, int] = {}
    scale: dict[str, float] = {}
    for index, title in enumerate(head.columns):
        key, factor = column_key(title)
        if key and key not in at:
            at[key], scale[key] = index, factor
    return Table(kind, head, at, scale)


class Cells:
    """Numbers of one table by column, in ns or bytes, with the table's own decimal sign."""

    def __init__(self, table: Table) -> None:
        self.table = table
        numeric = [i for key, i in table.at.items() if key not in ("name", "style", "category", "device")]
        sample = table.rows[:200]
        self.decimal = decimal_sign(cells[i] for cells, _ in sample for i in numeric if i < len(cells))

    def get(self, cells: list[str], key: str) -> float | None:
        """One value, ``None`` when the column or a number in it is missing."""
        index = self.table.at.get(key)
        if index is None or index >= len(cells):
            return None
        value = number(cells[index], self.decimal)
        return value * self.table.scale[key] if value is not None else None

    def name(self, cells: list[str]) -> str:
        """The name column."""
        index = self.table.at.get("name", len(cells))
        return cells[index] if index < len(cells) else ""


def _build(profile: Profile, tables: list[Table], trace: TraceRows | None) -> None:
    kinds = {table.kind for table in tables}
    for table in tables:
        cells = Cells(table)
        profile.lines.setdefault(table.kind, table.head.line)
        if table.kind == "kernels" or (table.kind == "kernels_gb" and "kernels" not in kinds):
            _kernels(profile, cells)
        elif table.kind == "gpu_sum" and not kinds & {"kernels", "kernels_gb"}:
            _gpu_sum(profile, cells, copies="mem_time" not in kinds)
        elif table.kind in ("api", "osrt", "calls"):
            _calls(profile, cells)
        elif table.kind == "mem_time":
            _mem(profile, _rows(cells), None, cells)
        elif table.kind == "mem_size":
            _mem(profile, _rows(cells), cells)
        elif table.kind == "nvtx":
            _ranges(profile, cells)
    if trace is not None:
        profile.lines.setdefault("trace", trace.line)
        trace.into(profile)
    profile.copies.sort(key=lambda c: -c.total)
    _graph_share(profile)


def _rows(cells: Cells) -> list[tuple[str, list[str], int]]:
    return [(cells.name(row), row, line) for row, line in cells.table.rows if cells.name(row)]


def _kernels(profile: Profile, cells: Cells) -> None:
    _merge_kernels(profile, cells, _rows(cells))


def _merge_kernels(profile: Profile, cells: Cells, rows: Iterable[tuple[str, list[str], int]]) -> None:
    merged: dict[str, Kernel] = {}
    whole = best = 0.0
    for name, row, line in rows:
        total, count = cells.get(row, "total"), cells.get(row, "count")
        if total is None or count is None or count < 1 or total < 0:
            continue
        share = cells.get(row, "pct")
        if share and share > best:
            best, whole = share, total / share * 100.0
        kernel = merged.setdefault(name, Kernel(name, classify.kernel_class(name), 0, 0.0, line=line))
        kernel.count += int(count)
        kernel.total += total
        kernel.median = cells.get(row, "median") if kernel.count == int(count) else None
        kernel.longest = max(kernel.longest or 0.0, cells.get(row, "longest") or 0.0) or None
    if not merged:
        return
    profile.kernels = sorted(merged.values(), key=lambda k: -k.total)
    listed = sum(k.total for k in profile.kernels)
    slack = 0.05 / best if best else 0.0
    excerpt = whole > listed * (1.02 + slack)
    profile.kernel_total = whole if excerpt else listed
    profile.listed = listed / profile.kernel_total if profile.kernel_total else None
    if excerpt:
        what = f"the kernel table is an excerpt: its rows hold {profile.listed or 0:.0%} of the kernel time it states"
        profile.problems.append(Problem(ref=profile.ref, what=what, do="give the whole table", severity="note"))


def _gpu_sum(profile: Profile, cells: Cells, *, copies: bool) -> None:
    rows = _rows(cells)
    column = cells.table.at.get("category", -1)
    kernel = [r for r in rows if 0 <= column < len(r[1]) and "KERNEL" in r[1][column].upper()]
    for row in kernel:
        if "pct" in cells.table.at and cells.table.at["pct"] < len(row[1]):
            row[1][cells.table.at["pct"]] = ""
    _merge_kernels(profile, cells, kernel)
    if copies:
        _mem(profile, [r for r in rows if r not in kernel], None, cells)


def _calls(profile: Profile, cells: Cells) -> None:
    rows: dict[str, Call] = {}
    for name, row, _ in _rows(cells):
        total, count = cells.get(row, "total"), cells.get(row, "count")
        if total is None or count is None or count < 1:
            continue
        bare = classify.api_name(name)
        call = rows.setdefault(bare, Call(bare, classify.api_kind(name), 0, 0.0))
        call.count += int(count)
        call.total += total
    found = sorted(rows.values(), key=lambda c: -c.total)
    cuda = sum(bool(re.match(r"(?:cu|cuda|hip)[A-Z]", c.name)) for c in found)
    if cells.table.kind == "api" or (cells.table.kind == "calls" and cuda * 2 >= len(found)):
        profile.calls = found
    else:
        profile.os_calls = found


def _mem(
    profile: Profile, rows: list[tuple[str, list[str], int]], sizes: Cells | None, times: Cells | None = None
) -> None:
    known = {copy.kind: copy for copy in profile.copies}
    cells = sizes or times
    for name, row, _ in rows:
        if cells is None:
            continue
        kind = copy_kind(name)
        copy = known.setdefault(kind, Copy(kind, 0, 0.0))
        if sizes is not None:
            size = cells.get(row, "bytes_total")
            copy.size = (copy.size or 0.0) + size if size is not None else copy.size
            continue
        total, count = cells.get(row, "total"), cells.get(row, "count")
        if total is not None and count is not None:
            copy.total += total
            copy.count += int(count)
    profile.copies = list(known.values())


def _ranges(profile: Profile, cells: Cells) -> None:
    steps: list[tuple[str, float, float]] = []
    for name, row, _ in _rows(cells):
        total, count = cells.get(row, "total"), cells.get(row, "count")
        if total is None or count is None or count < 1:
            continue
        bare = name.removeprefix(":")
        profile.ranges.append(Range(bare, int(count), total))
        if classify.is_step(bare):
            steps += [(bare, 0.0, total / count)] * min(int(count), _MAX_STEPS)
    profile.ranges.sort(key=lambda r: -r.total)
    profile.steps = steps_of(steps)
    profile.steps.periods = []


def _graph_share(profile: Profile) -> None:
    """Kernels that no launch call accounts for came from graphs; known only with both tables in full."""
    launches = sum(c.count for c in profile.calls if c.kind == "launch")
    graphs = sum(c.count for c in profile.calls if c.kind == "graph_launch")
    kernels = profile.kernel_count
    if not kernels or not profile.calls or (profile.listed or 0) < 0.98 or not (launches or graphs):
        return
    profile.graph_share = max(0.0, 1.0 - launches / kernels) if graphs else 0.0


def merge(profiles: list[Any]) -> list[Profile]:
    """Join reports of one capture that were exported to several files (same name but for the report's)."""
    groups: dict[str, Profile] = {}
    out: list[Profile] = []
    for profile in profiles:
        stem = _stem(profile.ref)
        known = groups.get(stem)
        if known is None or not _disjoint(known, profile):
            groups.setdefault(stem, profile)
            out.append(profile)
            continue
        for name in ("kernels", "calls", "copies", "ranges", "os_calls", "spans", "problems"):
            setattr(known, name, getattr(known, name) + getattr(profile, name))
        known.kernel_total = known.kernel_total or profile.kernel_total
        known.listed = known.listed if known.listed is not None else profile.listed
        known.device_name = known.device_name or profile.device_name
        known.steps = known.steps if known.steps.durations else profile.steps
        known.lines |= profile.lines
        known.copies = _fold(known.copies)
        _graph_share(known)
    return out


def _fold(copies: list[Copy]) -> list[Copy]:
    """Times of one report and sizes of another become one row a direction."""
    out: dict[str, Copy] = {}
    for copy in copies:
        row = out.setdefault(copy.kind, Copy(copy.kind, 0, 0.0))
        row.count, row.total = max(row.count, copy.count), max(row.total, copy.total)
        row.size = copy.size if row.size is None else row.size
    return sorted(out.values(), key=lambda c: -c.total)


def _stem(ref: str) -> str:
    for alias in sorted(ALIASES, key=len, reverse=True):
        ref = ref.replace(alias, "*")
    return ref


def _disjoint(a: Profile, b: Profile) -> bool:
    return not any(getattr(a, n) and getattr(b, n) for n in ("kernels", "calls", "ranges", "os_calls", "spans"))
