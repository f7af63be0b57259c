"""``key_averages().table()`` of torch.profiler. Self time counts once: an operator row, the kernel row it launched and a
range around both repeat the same device time, so only rows that exist on the device alone are kernels here.
"""

from __future__ import annotations

import re

from tools.contract import Problem
from tools.part import Part
from tools.profile import classify
from tools.profile.copies import copy_kind
from tools.profile.model import Call, Copy, Kernel, Profile
from tools.profile.numbers import duration_ns, number
from tools.profile.steps import steps_of
from tools.profile.tables import Head, Row, items

_TOTAL = re.compile(r"^\s*Self (\w+) time total:\s*([\d.,]+\s*[a-zµμ]+)", re.I)
_MEMORY = re.compile(r"^mem(?:cpy|set)\b", re.I)
# rows of Python frames (recorded with stacks): they hold the time of the operators below them and of blocked threads
_PYTHON = re.compile(r"^<|^nn\.Module: |^[^:]*/|^[\w.]+\.py\b")
_API = re.compile(r"^(?:cuda|cu|hip)[A-Z]\w+$")


class _Row:
    def __init__(self, name: str, line: int) -> None:
        self.name = name
        self.line = line
        self.calls = 0
        self.self_cpu = 0.0
        self.cpu = 0.0
        self.self_dev = 0.0
        self.dev = 0.0


def read_key_averages(part: Part) -> Profile:
    """One table (the first one) with the totals printed below it."""
    profile = Profile(ref=part.name, kind="key-averages")
    columns: dict[str, int] = {}
    rows: list[_Row] = []
    totals: dict[str, float] = {}
    lines = list(part.lines(200_000))
    for number_, text in lines:
        found = _TOTAL.match(text)
        if found and (value := duration_ns(found[2])) is not None:
            totals.setdefault("cpu" if found[1].lower() == "cpu" else "dev", value)
            profile.lines.setdefault(f"total {found[1].lower()}", number_)
    for item in items(lines):
        if isinstance(item, Head):
            if columns:
                break
            columns = _columns(item)
            profile.lines["kernels"] = item.line
        elif isinstance(item, Row) and columns:
            row = _row(item, columns)
            if row is not None:
                rows.append(row)
    _fill(profile, rows, totals)
    return profile


def _columns(head: Head) -> dict[str, int]:
    out: dict[str, int] = {}
    for index, title in enumerate(head.columns):
        key = title.strip().lower()
        key = re.sub(r"\b(?:cuda|xpu|hip|mtia|hpu|privateuse1|device)\b", "dev", key)
        out.setdefault(key, index)
    return out if "name" in out and ("self cpu" in out or "self dev" in out) else {}


def _row(item: Row, at: dict[str, int]) -> _Row | None:
    def cell(key: str) -> str:
        index = at.get(key, -1)
        return item.cells[index] if 0 <= index < len(item.cells) else ""

    row = _Row(cell("name").strip(), item.line)
    calls = number(cell("# of calls"))
    if not row.name or calls is None:
        return None
    row.calls = int(calls)
    row.self_cpu = duration_ns(cell("self cpu")) or 0.0
    row.cpu = duration_ns(cell("cpu total")) or 0.0
    row.self_dev = duration_ns(cell("self dev")) or 0.0
    row.dev = duration_ns(cell("dev total")) or 0.0
    return row


def _fill(profile: Profile, rows: list[_Row], totals: dict[str, float]) -> None:
    kernels: dict[str, Kernel] = {}
    copies: dict[str, Copy] = {}
    steps: list[tuple[str, float, float]] = []
    for row in rows:
        kind = classify.api_kind(row.name)
        if kind == "overhead":
            profile.overhead += row.self_cpu
        elif _API.match(row.name):
            profile.calls.append(Call(row.name, kind, row.calls, row.self_cpu))
        elif classify.annotation(row.name) is not None or (row.self_cpu == 0 and classify.is_annotation(row.name)):
            if row.calls and (row.dev or row.cpu):
                steps += [(row.name, 0.0, (row.dev or row.cpu) / row.calls)] * min(row.calls, 10_000)
        elif row.self_dev > 0 and row.self_cpu == 0 and row.cpu == 0:
            if _MEMORY.match(row.name):
                copy = copies.setdefault(copy_kind(row.name), Copy(copy_kind(row.name), 0, 0.0))
                copy.count += row.calls
                copy.total += row.self_dev
                continue
            kernel = kernels.setdefault(
                row.name, Kernel(row.name, classify.kernel_class(row.name), 0, 0.0, line=row.line)
            )
            kernel.count += row.calls
            kernel.total += row.self_dev
        elif row.self_cpu > 0 and not _PYTHON.match(row.name):
            profile.ops.append(
                Kernel(row.name, classify.kernel_class(row.name), row.calls, row.self_cpu, line=row.line)
            )
    if rows and not kernels and not profile.ops and not profile.calls:
        what = "the table holds only Python frames, no operators and no kernels"
        profile.problems.append(Problem(ref=profile.ref, what=what, do="give the table of the worker process"))
    profile.kernels = sorted(kernels.values(), key=lambda k: -k.total)
    profile.copies = sorted(copies.values(), key=lambda c: -c.total)
    profile.calls.sort(key=lambda c: -c.total)
    profile.ops.sort(key=lambda k: -k.total)
    framed = any(_PYTHON.match(row.name) for row in rows)
    profile.op_total = sum(op.total for op in profile.ops) if framed else totals.get("cpu", 0.0)
    profile.steps = steps_of(steps)
    profile.steps.periods = []
    if totals.get("dev"):
        profile.row_overlap = sum(row.self_dev for row in rows) / totals["dev"]
    _totals(profile, totals.get("dev"))


def _totals(profile: Profile, device: float | None) -> None:
    """Kernel time is the device total without copies; rows missing from the table leave ``listed`` below one."""
    listed = sum(k.total for k in profile.kernels)
    if not profile.kernels and not device:
        return
    copied = sum(c.total for c in profile.copies)
    whole = max(listed, device - copied) if device else listed
    profile.kernel_total = whole
    profile.listed = listed / whole if whole else None
    if profile.listed is not None and profile.listed < 0.98:
        what = f"the table shows {profile.listed:.0%} of the device time; the rest is in rows that were cut off"
        profile.problems.append(Problem(ref=profile.ref, what=what, do="print it with row_limit=-1", severity="note"))
