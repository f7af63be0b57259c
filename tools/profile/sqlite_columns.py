"""Integer columns of a SQLite table as arrays, without a Python object per value.

SQLite prints a range of rows as one JSON array per column and numpy parses that text: about twice as fast as fetching
rows. Anything but integers in a column is refused, and the caller reads those rows one by one.
"""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Iterator
from typing import Any

STEP = 20_000
DAMAGE = (sqlite3.Error, UnicodeDecodeError)
"""What reading a damaged database raises; the second when SQLite quotes broken text in its error message."""


class Awkward(Exception):
    """The table cannot be read this way: no row ids, no JSON functions, or a value that is no integer."""


def column_blocks(db: sqlite3.Connection, table: str, expressions: list[str]) -> Iterator[Any]:
    """Arrays of shape (rows, expressions) in order of row id. Raises :class:`Awkward`; blocks given before are good."""
    packed = ", ".join(f"json_group_array({e})" for e in expressions)
    sql = f"SELECT COUNT(*), {packed} FROM {table} WHERE rowid > ? AND rowid <= ?"
    try:
        # one aggregate a query: SQLite answers a lone MIN or MAX from the tree's edge, and both together by a scan
        first = db.execute(f"SELECT MIN(rowid) FROM {table}").fetchone()[0]
        last = db.execute(f"SELECT MAX(rowid) FROM {table}").fetchone()[0]
        if first is None:
            return
        at = first - 1
        while at < last:
            row = db.execute(sql, (at, at + STEP)).fetchone()
            at += STEP
            if row[0]:
                yield _parse(row[0], row[1:])
                continue
            after = db.execute(f"SELECT MIN(rowid) FROM {table} WHERE rowid > ?", (at,)).fetchone()[0]
            if after is None:
                return
            at = after - 1
    except (*DAMAGE, OverflowError, TypeError) as error:
        raise Awkward(str(error)) from None


def _parse(count: int, texts: tuple[str, ...]) -> Any:
    import numpy as np

    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            columns = [np.fromstring(text[1:-1], dtype=np.int64, sep=",") for text in texts]
        except (DeprecationWarning, ValueError) as error:
            raise Awkward(str(error)) from None
    if any(len(column) != count for column in columns):
        raise Awkward("a value is no integer")
    return np.stack(columns, axis=1)
