"""One small SQL surface over SQLite (one host) and PostgreSQL (several workers): same statements, same semantics."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Row = tuple[Any, ...]
_LOCK = 7_318_042  # advisory lock id: serialises the short claim and gate transactions of all workers
_SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
  seq {serial}, id TEXT UNIQUE NOT NULL, kind TEXT NOT NULL, thread TEXT NOT NULL, channel TEXT NOT NULL,
  body TEXT NOT NULL, state TEXT NOT NULL, worker TEXT NOT NULL DEFAULT '', lease {real} NOT NULL DEFAULT 0,
  tries INTEGER NOT NULL DEFAULT 0, created {real} NOT NULL);
CREATE INDEX IF NOT EXISTS events_open ON events (state, thread);
CREATE TABLE IF NOT EXISTS threads (
  id TEXT PRIMARY KEY, channel TEXT NOT NULL, ts TEXT NOT NULL, owner TEXT NOT NULL DEFAULT '',
  status TEXT NOT NULL DEFAULT 'open', follow INTEGER NOT NULL DEFAULT 0, asked INTEGER NOT NULL DEFAULT 0,
  watermark TEXT NOT NULL DEFAULT '', created {real} NOT NULL, touched {real} NOT NULL);
CREATE TABLE IF NOT EXISTS inbox (
  thread TEXT NOT NULL, n INTEGER NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY (thread, n), UNIQUE (thread, key));
CREATE TABLE IF NOT EXISTS files (sha TEXT PRIMARY KEY, data {blob} NOT NULL, created {real} NOT NULL);
CREATE TABLE IF NOT EXISTS outbox (
  key TEXT PRIMARY KEY, channel TEXT NOT NULL, state TEXT NOT NULL, ts TEXT NOT NULL DEFAULT '', at {real} NOT NULL);
CREATE TABLE IF NOT EXISTS gates (name TEXT PRIMARY KEY, free_at {real} NOT NULL);
CREATE TABLE IF NOT EXISTS tokens (
  id TEXT PRIMARY KEY, thread TEXT NOT NULL, purpose TEXT NOT NULL, expires {real} NOT NULL, UNIQUE (thread, purpose));
CREATE TABLE IF NOT EXISTS feedback (
  thread TEXT NOT NULL, person TEXT NOT NULL, verdict TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '',
  cause TEXT NOT NULL DEFAULT '', note TEXT NOT NULL DEFAULT '', at {real} NOT NULL, PRIMARY KEY (thread, person));
CREATE TABLE IF NOT EXISTS alerts (
  fingerprint TEXT PRIMARY KEY, status TEXT NOT NULL, times INTEGER NOT NULL, thread TEXT NOT NULL,
  opened {real} NOT NULL, seen {real} NOT NULL, body TEXT NOT NULL, answer TEXT NOT NULL DEFAULT '');
"""


class Database:
    """``sqlite path`` or ``postgresql://…``. Statements use ``?``. One connection, one lock; threads may share it."""

    def __init__(self, target: str | Path) -> None:
        self.target = str(target)
        self.postgres = self.target.startswith(("postgresql://", "postgres://"))
        self._lock = threading.RLock()
        self._conn: Any = None
        self._connect()
        words = (
            {"serial": "BIGSERIAL PRIMARY KEY", "real": "DOUBLE PRECISION", "blob": "BYTEA"}
            if self.postgres
            else {"serial": "INTEGER PRIMARY KEY AUTOINCREMENT", "real": "REAL", "blob": "BLOB"}
        )
        with self.transaction() as run:
            for statement in _SCHEMA.format(**words).split(";"):
                if statement.strip():
                    run(statement)

    def _connect(self) -> None:
        if self.postgres:
            try:
                import psycopg
            except ImportError:
                raise RuntimeError("PostgreSQL storage needs pip install 'inferdx[postgres]'") from None
            self._conn = psycopg.connect(self.target, autocommit=True, connect_timeout=10)
            return
        path = Path(self.target)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._conn = sqlite3.connect(str(path), check_same_thread=False, isolation_level=None, timeout=30)
        self._conn.execute("PRAGMA journal_mode=WAL")
        self._conn.execute("PRAGMA synchronous=FULL")
        path.chmod(0o600)

    def _execute(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        cursor = self._conn.execute(sql.replace("?", "%s") if self.postgres else sql, tuple(values))
        return [tuple(row) for row in cursor.fetchall()] if cursor.description else []

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """A serialised transaction; yields ``run(sql, values) -> rows``. Rolled back by any exception."""
        with self._lock:
            if self.postgres and self._conn.closed:
                self._connect()
            if self.postgres:
                with self._conn.transaction():
                    self._execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
                    yield self._execute
                return
            self._conn.execute("BEGIN IMMEDIATE")
            try:
                yield self._execute
            except BaseException:
                self._conn.execute("ROLLBACK")
                raise
            self._conn.execute("COMMIT")

    def run(self, sql: str, *values: Any) -> list[Row]:
        """One statement in a transaction of its own."""
        with self._lock:
            if self.postgres and self._conn.closed:
                self._connect()
            return self._execute(sql, values)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._conn.close()
