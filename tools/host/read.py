"""Process CPU tables over time → who starves whom.

A busy engine process is no finding: it spins by design. What counts is *foreign* work on the very CPUs that an engine
process may use, the share it takes there, and CPU quota throttling.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from msgspec import Struct, field

from tools.contract import Context, Problem, Reading, ReadResult, Source
from tools.part import Part

_STEP = re.compile(r"^#?\s*(?:t=(\d+(?:\.\d+)?)s\b|top - |Average:|Linux )")
_CORE = re.compile(r"^cpu\d+\s+usr=[\d.]+%\s+sys=[\d.]+%\s+idle=([\d.]+)%.*?(?:steal=([\d.]+)%)?$")
# The summary of all cores above top's processes.
_ALL_CORES = re.compile(r"^%?Cpu\(s\):.{0,80}?([\d.]+)[ %]{1,2}id\b(?:.{0,60}?([\d.]+)[ %]{1,2}st\b)?")
_REST = re.compile(r"^\(rest of machine\)\s+([\d.]+)")
# Four digits: Linux has at most 8192 CPUs, and a longer range would only cost memory.
_RANGE = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")
_LOAD = re.compile(r"loadavg=([\d.]+)|load average: ([\d.]+)")
_SELF = {"load-client", "other", "(rest of machine)", "top", "pidstat", "ps", "sh", "bash"}
ROLES = {
    "worker": re.compile(r"worker|sglang::scheduler|tp\d+ ?rank|ray::", re.I),
    "engine_core": re.compile(r"enginecore|engine_core|engine core", re.I),
    "api_server": re.compile(
        r"apiserver|api_server|vllm serve|sglang::(?:http|tokenizer|detokenizer)|uvicorn|launch_server", re.I
    ),
}


class Row(Struct):
    """One process in one sample: CPU percent of one core, RSS MiB, involuntary switches per second, CPU list."""

    name: str
    cpu: float
    line: int
    rss: float | None = None
    nvcsw: float | None = None
    cpus: str = ""


class Sample(Struct):
    """One moment: processes and per-core idle and steal percentages."""

    time: float
    rows: list[Row] = field(default_factory=list)
    idle: list[float] = field(default_factory=list)
    steal: list[float] = field(default_factory=list)
    rest: float | None = None
    load: float | None = None
    line: int = 0


def role_of(name: str) -> str:
    """``worker``, ``engine_core``, ``api_server`` or empty for a foreign process."""
    return next((role for role, pattern in ROLES.items() if pattern.search(name)), "")


def samples(part: Part) -> Iterator[Sample]:
    """Parse a stream of tables; columns are found by their header."""
    current: Sample | None = None
    columns: list[str] = []
    for number, line in part.lines():
        step = _STEP.match(line)
        if step:
            if current and (current.rows or current.idle):
                yield current
            current = Sample(float(step[1] or 0), line=number)
            load = _LOAD.search(line)
            if load:
                current.load = _float(load[1] or load[2])
            continue
        if "%CPU" in line and re.search(r"process|command|cmd", line, re.I):
            columns = line.split()
            current = current or Sample(0.0, line=number)
            continue
        current = current or Sample(0.0, line=number)
        core = _CORE.match(line) or _ALL_CORES.match(line)
        rest = _REST.match(line)
        if core:
            current.idle.extend(_finite(core[1]))
            current.steal.extend(_finite(core[2]))
        elif rest:
            current.rest = _float(rest[1])
        elif columns and line.strip():
            row = _row(columns, line, number)
            if row:
                current.rows.append(row)
    if current and (current.rows or current.idle):
        yield current


def _row(columns: list[str], line: str, number: int) -> Row | None:
    first = columns[0].lower().lstrip("#") == "process"
    cells = line.split(None, len(columns) - 1) if not first else line.rsplit(None, len(columns) - 1)
    if len(cells) != len(columns):
        return None
    table = dict(zip([c.lower() for c in columns], cells, strict=True))
    name = table.get("process") or table.get("command") or table.get("cmd") or ""
    cpu = _float(table.get("%cpu"))
    if cpu is None:
        return None
    return Row(
        name.strip(),
        cpu,
        number,
        _float(table.get("rss_mib")),
        _float(table.get("nvcsw/s") or table.get("nvcswch/s")),
        table.get("cpus", ""),
    )


def _float(text: str | None) -> float | None:
    """A finite number, or ``None``: a cell of ``nan`` or ``1.2.3`` is no measurement."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _finite(text: str | None) -> list[float]:
    value = _float(text)
    return [] if value is None else [value]


def _cpus(text: str) -> frozenset[int]:
    out: set[int] = set()
    for piece in text.split(","):
        found = _RANGE.fullmatch(piece.strip())
        if found:
            out.update(range(int(found[1]), int(found[2] or found[1]) + 1))
    return frozenset(out)


def read(parts: list[Part], context: Context) -> ReadResult:
    """Facts per part: role CPU means, foreign share on engine CPUs, idle, steal, RSS growth."""
    del context
    result = ReadResult()
    for part in parts:
        rows = list(samples(part))
        if not rows:
            result.problems.append(
                Problem(ref=part.name, what="no process table could be read", do="pidstat -u -w -p ALL 5")
            )
            continue
        result.readings.extend(_facts(part.name, rows))
    return result


def _facts(ref: str, rows: list[Sample]) -> list[Reading]:
    out: list[Reading] = []
    span = (rows[0].time, rows[-1].time) if rows[-1].time > rows[0].time else None

    def put(fact: str, value: float, method: str, line: int) -> None:
        source = Source(kind="file", ref=ref, line=line)
        out.append(Reading(fact=fact, value=round(value, 4), source=source, method=method, window=span))

    for role in ROLES:
        mine = [r for s in rows for r in s.rows if role_of(r.name) == role]
        if not mine:
            continue
        note = f"mean of {len(mine)} samples"
        put(f"host.{role}.cpu_cores", _mean([r.cpu for r in mine]) / 100, note, mine[0].line)
        switches = [r.nvcsw for r in mine if r.nvcsw is not None]
        if switches:
            put(f"host.{role}.nvcsw_per_s", _mean(switches), note, mine[0].line)
        foreign = _foreign(rows, role)
        if foreign is not None:
            share, names, line = foreign
            put(
                f"host.{role}.foreign_share",
                share,
                f"CPU of other processes ({names}) on the CPUs this one may use ÷ CPUs",
                line,
            )
    memory = [(r.rss, r.line) for s in rows for r in s.rows if r.rss and role_of(r.name)]
    if len(memory) >= 2 and len(rows) >= 2:
        totals = [sum(r.rss or 0 for r in s.rows if role_of(r.name)) for s in rows]
        if totals[0] > 0:
            put(
                "host.rss_growth_ratio",
                totals[-1] / totals[0],
                f"RSS of engine processes, last ÷ first of {len(rows)} samples",
                rows[-1].line,
            )
    idle = [value for s in rows for value in s.idle]
    if idle:
        put("host.cpu_idle", _mean(idle) / 100, f"mean idle over cores and {len(rows)} samples", rows[0].line)
    steal = [value for s in rows for value in s.steal]
    if steal:
        put("host.cpu_steal", _mean(steal) / 100, f"mean steal over cores and {len(rows)} samples", rows[0].line)
    rest = [s.rest for s in rows if s.rest is not None]
    if rest:
        put(
            "host.other_cores",
            _mean(rest) / 100,
            f"cores used by processes outside the table, mean of {len(rest)} samples",
            rows[0].line,
        )
    return out


def _foreign(rows: list[Sample], role: str) -> tuple[float, str, int] | None:
    """Mean share of an engine process's CPUs that pinned foreign processes take; ``None`` without CPU lists."""
    shares: list[float] = []
    names: dict[str, int] = {}
    line = 0
    for sample in rows:
        mine = [r for r in sample.rows if role_of(r.name) == role and r.cpus]
        if not mine:
            continue
        allowed = frozenset().union(*(_cpus(r.cpus) for r in mine))
        taken = 0.0
        for row in sample.rows:
            where = _cpus(row.cpus)
            if not role_of(row.name) and row.name not in _SELF and where and where <= allowed:
                taken += row.cpu
                names[row.name] = names.get(row.name, 0) + 1
                line = line or row.line
        shares.append(taken / 100 / max(1, len(allowed)))
    if not shares:
        return None
    return _mean(shares), ", ".join(sorted(names)) or "none", line or rows[0].line


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
