"""The ``.sqlite`` export of nsys, read in place: one scan per table, opened read-only and immutable.

Rows reach Python as three integers (start, end, and name, device and flags packed by SQL), as text that numpy parses:
moving values out of SQLite costs more than scanning the file. Up to :data:`SORT_ROWS` rows are sorted here; beyond that SQLite sorts, so memory
stays bounded. Tables and columns differ between nsys versions: whatever is missing is said and the rest is read.
"""

from __future__ import annotations

import sqlite3
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from tools.contract import Problem
from tools.part import Part
from tools.profile import classify
from tools.profile.clock import Ticker
from tools.profile.intervals import Timeline
from tools.profile.model import Call, Copy, Profile, Progress, Range
from tools.profile.nsys_gaps import host_late
from tools.profile.nsys_schema import DEV_BITS, device_name, refusal, slot_expression
from tools.profile.nsys_totals import COPY, GRAPH, KERNEL, SET, Events, Totals
from tools.profile.sqlite_columns import DAMAGE, Awkward, column_blocks
from tools.profile.steps import steps_of

SORT_ROWS = 6_000_000
BLOCK = 500_000
_KIND_AT, _DEV_AT = 1, 3
_NAME_AT = _DEV_AT + DEV_BITS
_DENSE = 1 << 22
_HUGE = 1 << 62
_MEMCPY = {1: "h2d", 2: "d2h", 3: "h2d", 4: "d2h", 5: "d2d", 6: "d2d", 7: "d2d", 8: "d2d", 9: "h2h", 10: "p2p",
           11: "h2d", 12: "d2h", 13: "d2d"}  # fmt: skip
_PREFIX = "CUPTI_ACTIVITY_KIND_"


def read_sqlite(part: Part, progress: Progress | None = None) -> Profile:
    """Summarise one export. Never raises on content; what is wrong becomes a problem of the profile."""
    profile = Profile(ref=part.name, kind="nsys-sqlite")
    with tempfile.TemporaryDirectory(prefix="inferdx-") as folder:
        try:
            path = _file(part, Path(folder))
            db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        except (OSError, EOFError, zlib.error, sqlite3.Error) as error:
            profile.problems.append(Problem(ref=part.name, what=f"cannot open the database: {error}", severity="error"))
            return profile
        try:
            _Reader(db, profile, Ticker(part.name, progress)).run()
        except DAMAGE as error:
            what = f"the database is damaged ({error}); what was read before that is kept"
            profile.truncated = True
            profile.problems.append(
                Problem(ref=part.name, what=what, do="export it again with nsys export --type sqlite")
            )
        finally:
            db.close()
        wal = path.with_name(path.name + "-wal")
        if part.path is not None and wal.exists() and wal.stat().st_size:
            what = "a -wal file lies beside it; rows that only it holds are not read"
            profile.problems.append(Problem(ref=part.name, what=what, do="close the writer or checkpoint first"))
    return profile


def _file(part: Part, folder: Path) -> Path:
    """The file itself, or a plain copy of compressed or in-memory data."""
    if part.path is not None and part.path.open("rb").read(2) != b"\x1f\x8b":
        return part.path
    plain = folder / "export.sqlite"
    with part.open() as source, plain.open("wb") as target:
        while chunk := source.read(1 << 20):
            target.write(chunk)
    return plain


class _Reader:
    def __init__(self, db: sqlite3.Connection, profile: Profile, ticker: Ticker) -> None:
        self.db = db
        self.profile = profile
        self.ticker = ticker
        self.damaged = ""
        db.text_factory = lambda raw: raw.decode("utf-8", "replace")
        db.set_progress_handler(self._tick, 2_000_000)
        self.tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table','view')")}
        self._columns: dict[str, set[str]] = {}
        self.wide = False
        self.slot_sql = "0"
        self.dense: dict[int, int] = {}
        self.name_column = ""

    def _tick(self) -> int:
        self.ticker.tick()
        return 0

    def columns(self, table: str) -> set[str]:
        if table not in self._columns:
            rows = self.db.execute(f'PRAGMA table_info("{table}")').fetchall() if table in self.tables else []
            self._columns[table] = {row[1] for row in rows}
        return self._columns[table]

    def problem(self, what: str, do: str = "", severity: Any = "warning") -> None:
        self.profile.problems.append(Problem(ref=self.profile.ref, what=what, do=do, severity=severity))

    def run(self) -> None:
        kernel = _PREFIX + "KERNEL"
        if not self.tables & {kernel, _PREFIX + "GRAPH_TRACE", _PREFIX + "MEMCPY", _PREFIX + "RUNTIME", "NVTX_EVENTS"}:
            what, do = refusal(self.tables)
            self.problem(what, do, "error")
            return
        self.profile.device_name = device_name(self.db, self.columns)
        self.slot_sql = slot_expression(self.db, self.columns)
        if kernel not in self.tables:
            self.problem(
                "no kernel table: the capture holds no GPU kernels (whole-graph tracing, or CUDA was not traced)",
                "record with --trace=cuda,nvtx --cuda-graph-trace=node",
            )
        self._device_work()
        self._api()
        self._copies()
        self._ranges()
        if self.damaged:
            self.profile.truncated = True
            self.problem(f"the database is damaged ({self.damaged}); rows after that are missing", "export it again")

    def _selects(self) -> list[tuple[str, list[str]]]:
        """Tables of device work with the three expressions to read from each."""
        out: list[tuple[str, list[str]]] = []
        for kind, suffix in ((KERNEL, "KERNEL"), (COPY, "MEMCPY"), (SET, "MEMSET"), (GRAPH, "GRAPH_TRACE")):
            table, have = _PREFIX + suffix, self.columns(_PREFIX + suffix)
            if not {"start", "end"} <= have:
                continue
            name = "0"
            if kind == KERNEL:
                self.name_column = next((c for c in ("demangledName", "shortName", "mangledName") if c in have), "")
                name = self.name_column or "0"
            graph = "(graphNodeId IS NOT NULL)" if kind == KERNEL and "graphNodeId" in have else "0"
            slot = (
                self.slot_sql
                if "deviceId" in have and (kind == KERNEL or "globalPid" in have or "CASE" not in self.slot_sql)
                else "0"
            )
            code = f"({name} << {_NAME_AT}) | ({slot} << {_DEV_AT}) | {kind << _KIND_AT} | {graph}"
            out.append((table, ["start", "end", code]))
        return out

    def _rows(self) -> int:
        total = 0
        for suffix in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"):
            if _PREFIX + suffix in self.tables:
                total += self.db.execute(f"SELECT MAX(rowid) FROM {_PREFIX}{suffix}").fetchone()[0] or 0
        return total

    def _rows_of(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Rows of a query; damage ends the iteration."""
        try:
            yield from self.db.execute(sql)
        except DAMAGE as error:
            self.damaged = str(error)

    def _table(self, table: str, wanted: list[str]) -> Iterator[Any]:
        """Arrays of ``(n, 3)`` integers of one table."""
        given = 0
        try:
            for block in column_blocks(self.db, table, wanted):
                given += len(block)
                yield block
        except Awkward:
            yield from self._careful(f"SELECT {', '.join(wanted)} FROM {table}", given)

    def _sorted(self, selects: list[tuple[str, list[str]]]) -> Iterator[Any]:
        """The same of all tables together, sorted by SQLite."""
        import numpy as np

        parts = [f"SELECT {', '.join([f'{w[0]} AS s', *w[1:]])} FROM {table}" for table, w in selects]
        sql = " UNION ALL ".join(parts) + " ORDER BY s"
        rows = self.db.execute(sql)
        given = 0
        while True:
            try:
                flat = np.fromiter(chain.from_iterable(islice(rows, BLOCK)), dtype=np.int64)
            except (TypeError, ValueError, OverflowError, *DAMAGE):
                yield from self._careful(sql, given)
                return
            if not len(flat):
                return
            given += len(flat) // 3
            yield flat.reshape(-1, 3)

    def _careful(self, sql: str, given: int) -> Iterator[Any]:
        """Rows one by one from ``given`` on: those that hold integers are kept, damage ends the table."""
        import numpy as np

        seen, good = 0, []
        for row in islice(self._rows_of(sql), given, None):
            seen += 1
            if all(type(value) is int and -_HUGE < value < _HUGE for value in row):
                good.append(row)
        if len(good) < seen:
            self.problem(
                f"{seen - len(good)} rows hold no numbers where times belong; they are left out", "export it again"
            )
        if good:
            yield np.array(good, dtype=np.int64)

    def _events(self) -> Iterator[Events]:
        import numpy as np

        limit = self.db.execute("SELECT MAX(id) FROM StringIds").fetchone()[0] if "StringIds" in self.tables else 0
        self.wide = isinstance(limit, int) and limit >= _DENSE
        selects = self._selects()
        if not selects:
            return
        self.ticker.total = self._rows()
        if self.ticker.total > SORT_ROWS:
            for block in self._sorted(selects):
                yield self._unpack(block)
            return
        held = [block for table, wanted in selects for block in self._table(table, wanted)]
        if held:
            rows = np.concatenate(held)
            held.clear()
            if len(rows) > 1 and not bool((rows[1:, 0] >= rows[:-1, 0]).all()):
                rows = rows[np.argsort(rows[:, 0], kind="stable")]
            for at in range(0, len(rows), BLOCK):
                yield self._unpack(rows[at : at + BLOCK])

    def _unpack(self, rows: Any) -> Events:
        import numpy as np

        start, code = rows[:, 0], rows[:, 2]
        names = code >> _NAME_AT
        return Events(
            start=start,
            end=np.maximum(rows[:, 1], start),
            kind=(code >> _KIND_AT) & 3,
            slot=(code >> _DEV_AT) & ((1 << DEV_BITS) - 1),
            name=self._dense(names) if self.wide else np.clip(names, 0, _DENSE),
            graph=code & 1,
        )

    def _dense(self, ids: Any) -> Any:
        """String ids of any size → small numbers; ``dense`` keeps the way back."""
        import numpy as np

        unique, inverse = np.unique(ids, return_inverse=True)
        codes = [self.dense.setdefault(int(i), len(self.dense)) for i in unique]
        return np.array(codes, dtype=np.int64)[inverse]

    def _names(self, codes: list[int]) -> dict[int, str]:
        """Names of kernels by the number used in :class:`Events`."""
        if not self.wide:
            return self._strings(codes)
        back = {code: key for key, code in self.dense.items()}
        found = self._strings([back[code] for code in codes])
        return {code: found[back[code]] for code in codes}

    def _device_work(self) -> None:
        import numpy as np

        totals = Totals()
        timelines: dict[int, Timeline] = {}
        names: dict[int, str] = {}
        comm_ids = np.zeros(1, dtype=bool)
        for events in self._events():
            fresh = [
                int(i) for i in np.flatnonzero(np.bincount(events.name[events.kind == KERNEL])) if int(i) not in names
            ]
            if fresh:
                names.update(self._names(fresh))
                comm_ids = _mask(names)
            totals.add(events)
            self.ticker.done += len(events.start)
            self.ticker.tick()
            kernel = (events.kind == KERNEL) | (events.kind == GRAPH)
            comm = kernel & comm_ids[np.minimum(events.name, len(comm_ids) - 1)]
            slots = np.flatnonzero(np.bincount(events.slot))
            for slot in slots.tolist():
                line = timelines.setdefault(slot, Timeline())
                if len(slots) == 1:
                    line.feed(events.start, events.end, kernel, comm)
                    continue
                here = events.slot == slot
                line.feed(events.start[here], events.end[here], kernel[here], comm[here])
        totals.into(self.profile, names)
        for slot, line in sorted(timelines.items()):
            span = line.span(str(slot))
            host_late(self.db, self.columns, span, line.everything.longest)
            self.profile.spans.append(span)

    def _strings(self, ids: list[int]) -> dict[int, str]:
        found: dict[int, str] = {}
        if {"id", "value"} <= self.columns("StringIds"):
            for at in range(0, len(ids), 500):
                some = ids[at : at + 500]
                marks = ",".join("?" * len(some))
                rows = self.db.execute(f"SELECT id, value FROM StringIds WHERE id IN ({marks})", some)
                found.update((row[0], str(row[1])) for row in rows)
        return {i: found.get(i, f"unnamed kernel {i}") for i in ids}

    def _api(self) -> None:
        table, have = _PREFIX + "RUNTIME", self.columns(_PREFIX + "RUNTIME")
        if not {"start", "end", "nameId"} <= have:
            self.problem("no runtime API table: launches and synchronisation are not known", severity="note")
            return
        self.profile.calls = self._calls(table)
        if {"start", "end", "nameId"} <= self.columns("OSRT_API"):
            self.profile.os_calls = self._calls("OSRT_API")

    def _calls(self, table: str) -> list[Call]:
        sums = self._sums(table)
        names = self._strings(list(sums))
        out: dict[str, Call] = {}
        for name_id, (count, total) in sums.items():
            name = classify.api_name(names[name_id])
            call = out.setdefault(name, Call(name, classify.api_kind(name), 0, 0.0))
            call.count += int(count)
            call.total += total
        return sorted(out.values(), key=lambda c: -c.total)

    def _sums(self, table: str) -> dict[int, tuple[float, float]]:
        """Name id → calls and time. SQLite's own grouping sorts the table; here it is the slower way out."""
        import numpy as np

        sums: dict[int, tuple[float, float]] = {}
        try:
            for block in column_blocks(self.db, table, ["nameId", "end - start"]):
                if block[:, 0].min() < 0 or block[:, 0].max() >= _DENSE:
                    raise Awkward("name ids are too large to count by")
                counts = np.bincount(block[:, 0])
                totals = np.bincount(block[:, 0], weights=block[:, 1])
                for i in np.flatnonzero(counts).tolist():
                    count, total = sums.get(i, (0.0, 0.0))
                    sums[i] = (count + float(counts[i]), total + float(totals[i]))
                self.ticker.tick()
        except Awkward:
            sql = f"SELECT nameId, COUNT(*), SUM(end - start) FROM {table} GROUP BY nameId"
            return {row[0]: (row[1], float(row[2] or 0)) for row in self.db.execute(sql) if isinstance(row[0], int)}
        return sums

    def _copies(self) -> None:
        have = self.columns(_PREFIX + "MEMCPY")
        if {"start", "end", "copyKind"} <= have:
            size = "SUM(bytes)" if "bytes" in have else "NULL"
            pageable = "SUM(srcKind = 0 OR dstKind = 0)" if {"srcKind", "dstKind"} <= have else "NULL"
            sql = f"SELECT copyKind, COUNT(*), SUM(end - start), {size}, {pageable} FROM {_PREFIX}MEMCPY GROUP BY copyKind"
            self._merge_copies((_MEMCPY.get(row[0], "other"), *row[1:]) for row in self.db.execute(sql))
        have = self.columns(_PREFIX + "MEMSET")
        if {"start", "end"} <= have:
            size = "SUM(bytes)" if "bytes" in have else "NULL"
            self._merge_copies(
                ("set", *row, None)
                for row in self.db.execute(f"SELECT COUNT(*), SUM(end - start), {size} FROM {_PREFIX}MEMSET")
                if row[0]
            )
        self.profile.copies.sort(key=lambda c: -c.total)

    def _merge_copies(self, rows: Iterable[Any]) -> None:
        known = {copy.kind: copy for copy in self.profile.copies}
        for kind, count, total, size, pageable in rows:
            copy = known.setdefault(kind, Copy(kind, 0, 0.0))
            copy.count += count
            copy.total += float(total or 0)
            copy.size = (copy.size or 0.0) + float(size) if size is not None else copy.size
            copy.pageable = (copy.pageable or 0) + int(pageable) if pageable is not None else copy.pageable
        self.profile.copies = list(known.values())

    def _ranges(self) -> None:
        have = self.columns("NVTX_EVENTS")
        if not {"start", "end", "text"} <= have:
            return
        text, join = "n.text", ""
        if "textId" in have and "StringIds" in self.tables:
            text, join = "COALESCE(n.text, s.value)", "LEFT JOIN StringIds s ON s.id = n.textId"
        sums: dict[str, Range] = {}
        steps: list[tuple[str, float, float]] = []
        sql = f"SELECT {text}, n.start, n.end - n.start FROM NVTX_EVENTS n {join} WHERE n.end > n.start"
        for name, start, length in self._rows_of(sql):
            if not isinstance(name, str) or not isinstance(length, int) or not isinstance(start, int):
                continue
            row = sums.setdefault(name, Range(name, 0, 0.0))
            row.count += 1
            row.total += length
            if classify.is_step(name):
                steps.append((name, float(start), float(length)))
        self.profile.ranges = sorted(sums.values(), key=lambda r: -r.total)
        self.profile.steps = steps_of(steps)


def _mask(names: dict[int, str]) -> Any:
    import numpy as np

    mask = np.zeros(max(names) + 2, dtype=bool)
    for key, name in names.items():
        mask[key] = classify.kernel_class(name) == "allreduce"
    return mask
