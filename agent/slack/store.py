"""Everything the Slack and alert doors must remember, so that a worker may die between any two steps.

Each incoming event is a row before it is acknowledged; a worker holds it under a lease; events of one thread are worked
in order and never at the same time. Outgoing messages are keyed, so that a repeated step finds what was already sent.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from agent.slack.db import Database

MAX_TRIES = 5
TOKEN_DAYS = 14
KEEP_DAYS = 30


class Event(Struct, kw_only=True):
    """One unit of work. ``thread`` is ``team:channel:ts``, or a provisional id until the root message exists."""

    id: str
    kind: str
    thread: str
    channel: str
    body: dict[str, Any]
    tries: int = 0


class Thread(Struct, kw_only=True):
    """One investigation."""

    id: str
    channel: str
    ts: str
    owner: str = ""
    status: str = "open"
    follow: bool = False
    asked: int = 0
    watermark: str = ""


class Lost(RuntimeError):
    """The lease of an event went to another worker: stop, nothing more may be sent for it from here."""


class Store:
    """The durable state. ``clock`` gives Unix seconds."""

    def __init__(self, target: str | Path, clock: Callable[[], float] = time.time) -> None:
        self.db = Database(target)
        self.clock = clock

    # ── queue ────────────────────────────────────────────────────────────────────────────────────────────────
    def enqueue(
        self, key: str, kind: str, thread: str, channel: str, body: dict[str, Any], limit: int = 0
    ) -> bool | None:
        """Record an event once. ``False``: seen before. ``None``: ``limit`` open events of the kind are waiting."""
        now = self.clock()
        with self.db.transaction() as run:
            if run("SELECT 1 FROM events WHERE id = ?", (key,)):
                return False
            if limit and run("SELECT count(*) FROM events WHERE state = 'open' AND kind = ?", (kind,))[0][0] >= limit:
                return None
            run(
                "INSERT INTO events (id, kind, thread, channel, body, state, created) VALUES (?, ?, ?, ?, ?, 'open', ?)",
                (key, kind, thread, channel, json.dumps(body), now),
            )
        return True

    def claim(self, worker: str, lease_s: float, kinds: tuple[str, ...]) -> Event | None:
        """The oldest open event whose thread nobody works on, now leased to ``worker``; ``None`` when there is none."""
        now = self.clock()
        marks = ", ".join("?" for _ in kinds)
        with self.db.transaction() as run:
            rows = run(
                f"SELECT seq, id, kind, thread, channel, body, tries FROM events e WHERE state = 'open' AND lease <= ? "
                f"AND kind IN ({marks}) AND NOT EXISTS (SELECT 1 FROM events o WHERE o.thread = e.thread AND "
                "o.state = 'open' AND (o.lease > ? OR o.seq < e.seq)) ORDER BY seq LIMIT 1",
                (now, *kinds, now),
            )
            if not rows:
                return None
            seq, key, kind, thread, channel, body, tries = rows[0]
            run(
                "UPDATE events SET worker = ?, lease = ?, tries = ? WHERE seq = ?",
                (worker, now + lease_s, tries + 1, seq),
            )
        return Event(id=key, kind=kind, thread=thread, channel=channel, body=json.loads(body), tries=tries + 1)

    def renew(self, event: Event, worker: str, lease_s: float) -> None:
        """Extend a lease. Raises :class:`Lost` when another worker has the event."""
        rows = self.db.run(
            "UPDATE events SET lease = ? WHERE id = ? AND worker = ? AND state = 'open' RETURNING id",
            self.clock() + lease_s,
            event.id,
            worker,
        )
        if not rows:
            raise Lost(event.id)

    def rekey(self, event: Event, thread: str) -> None:
        """Give an event its real thread id once the root message exists."""
        self.db.run("UPDATE events SET thread = ? WHERE id = ?", thread, event.id)
        event.thread = thread

    def finish(self, event: Event, worker: str, state: str = "done") -> None:
        """Close an event. ``state`` ``dead`` after too many tries. Raises :class:`Lost` when it is not ours."""
        rows = self.db.run(
            "UPDATE events SET state = ?, lease = 0 WHERE id = ? AND worker = ? AND state = 'open' RETURNING id",
            state,
            event.id,
            worker,
        )
        if not rows:
            raise Lost(event.id)

    def release(self, event: Event, worker: str, delay_s: float) -> None:
        """Give an event back, to be tried again after ``delay_s``."""
        self.db.run(
            "UPDATE events SET worker = '', lease = ? WHERE id = ? AND worker = ?",
            self.clock() + delay_s,
            event.id,
            worker,
        )

    def waiting(self) -> dict[str, int]:
        """Events by state, for metrics."""
        return {str(state): int(n) for state, n in self.db.run("SELECT state, count(*) FROM events GROUP BY state")}

    # ── threads ──────────────────────────────────────────────────────────────────────────────────────────────
    def thread(self, key: str) -> Thread | None:
        """A thread by ``team:channel:ts``."""
        rows = self.db.run(
            "SELECT id, channel, ts, owner, status, follow, asked, watermark FROM threads WHERE id = ?", key
        )
        if not rows:
            return None
        r = rows[0]
        return Thread(
            id=r[0], channel=r[1], ts=r[2], owner=r[3], status=r[4], follow=bool(r[5]), asked=int(r[6]), watermark=r[7]
        )

    def open_thread(self, key: str, channel: str, ts: str, owner: str = "") -> Thread:
        """The thread, made when new; a stopped one opens again."""
        now = self.clock()
        self.db.run(
            "INSERT INTO threads (id, channel, ts, owner, created, touched) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET touched = excluded.touched",
            key, channel, ts, owner, now, now,
        )  # fmt: skip
        found = self.thread(key)
        if found is None:
            raise RuntimeError(f"thread {key} vanished")
        return found

    def set_thread(self, key: str, **values: Any) -> None:
        """Set columns of a thread: ``status``, ``follow``, ``asked``, ``watermark``."""
        names = [n for n in ("status", "follow", "asked", "watermark") if n in values]
        sets = ", ".join(f"{n} = ?" for n in names)
        given = [int(values[n]) if n in ("follow", "asked") else values[n] for n in names]
        self.db.run(f"UPDATE threads SET {sets}, touched = ? WHERE id = ?", *given, self.clock(), key)

    # ── inbox ────────────────────────────────────────────────────────────────────────────────────────────────
    def inbox_add(self, thread: str, key: str, kind: str, content: dict[str, Any]) -> int:
        """One piece of evidence, once per ``key``; its number in the thread."""
        with self.db.transaction() as run:
            rows = run("SELECT n FROM inbox WHERE thread = ? AND key = ?", (thread, key))
            if rows:
                return int(rows[0][0])
            number = int(run("SELECT coalesce(max(n), 0) FROM inbox WHERE thread = ?", (thread,))[0][0]) + 1
            run("INSERT INTO inbox VALUES (?, ?, ?, ?, ?)", (thread, number, key, kind, json.dumps(content)))
        return number

    def inbox(self, thread: str) -> list[dict[str, Any]]:
        """All evidence of a thread in order."""
        rows = self.db.run("SELECT n, kind, body FROM inbox WHERE thread = ? ORDER BY n", thread)
        return [{**json.loads(body), "n": int(n), "kind": kind} for n, kind, body in rows]

    def keep_file(self, data: bytes) -> str:
        """Store a file's bytes by content; the hash."""
        sha = hashlib.sha256(data).hexdigest()
        self.db.run("INSERT INTO files VALUES (?, ?, ?) ON CONFLICT (sha) DO NOTHING", sha, data, self.clock())
        return sha

    def file(self, sha: str) -> bytes:
        """Bytes of a stored file; empty when it was pruned."""
        rows = self.db.run("SELECT data FROM files WHERE sha = ?", sha)
        return bytes(rows[0][0]) if rows else b""

    # ── outgoing ─────────────────────────────────────────────────────────────────────────────────────────────
    def sending(self, key: str, channel: str, stale_s: float) -> tuple[str, str]:
        """Take the right to send a keyed message: ``("sent", ts)``, ``("mine", "")``, ``("check", "")`` when an
        earlier try may have gone out, or ``("busy", "")`` while another worker is at it."""
        now = self.clock()
        with self.db.transaction() as run:
            rows = run("SELECT state, ts, at FROM outbox WHERE key = ?", (key,))
            if not rows:
                run("INSERT INTO outbox (key, channel, state, at) VALUES (?, ?, 'sending', ?)", (key, channel, now))
                return "mine", ""
            state, ts, at = rows[0]
            if state == "sent":
                return "sent", str(ts)
            if state == "sending" and now - at < stale_s:
                return "busy", ""
            run("UPDATE outbox SET at = ?, state = 'sending' WHERE key = ?", (now, key))
            return ("mine", "") if state == "failed" else ("check", "")

    def sent(self, key: str, ts: str) -> None:
        """A message is out."""
        self.db.run("UPDATE outbox SET state = 'sent', ts = ?, at = ? WHERE key = ?", ts, self.clock(), key)

    def not_sent(self, key: str) -> None:
        """Slack refused it for certain: it may be sent again without looking."""
        self.db.run("UPDATE outbox SET state = 'failed' WHERE key = ?", key)

    def sent_ts(self, key: str) -> str:
        """Time stamp of a sent message; empty when it is not out."""
        rows = self.db.run("SELECT ts FROM outbox WHERE key = ? AND state = 'sent'", key)
        return str(rows[0][0]) if rows else ""

    def reserve(self, gate: str, every_s: float) -> float:
        """Seconds to wait before the next call through a gate (a channel, a method); the slot is taken."""
        now = self.clock()
        with self.db.transaction() as run:
            rows = run("SELECT free_at FROM gates WHERE name = ?", (gate,))
            at = max(now, float(rows[0][0]) if rows else now)
            run(
                "INSERT INTO gates VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET free_at = excluded.free_at",
                (gate, at + every_s),
            )
        return at - now

    def hold(self, gate: str, seconds: float) -> None:
        """Close a gate for all workers (``Retry-After``)."""
        until = self.clock() + seconds
        self.db.run(
            "INSERT INTO gates VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET free_at = "
            "CASE WHEN gates.free_at < excluded.free_at THEN excluded.free_at ELSE gates.free_at END",
            gate,
            until,
        )

    # ── buttons and feedback ─────────────────────────────────────────────────────────────────────────────────
    def token(self, thread: str, purpose: str) -> str:
        """The opaque id that a button of this thread carries."""
        fresh = secrets.token_urlsafe(16)
        self.db.run(
            "INSERT INTO tokens VALUES (?, ?, ?, ?) ON CONFLICT (thread, purpose) DO NOTHING",
            fresh, thread, purpose, self.clock() + TOKEN_DAYS * 86400,
        )  # fmt: skip
        return str(self.db.run("SELECT id FROM tokens WHERE thread = ? AND purpose = ?", thread, purpose)[0][0])

    def redeem(self, token: str, purpose: str) -> tuple[str, int]:
        """Thread and number (``skip.2`` → 2) of a button; an empty thread when unknown, of another purpose, or expired."""
        rows = self.db.run("SELECT thread, purpose, expires FROM tokens WHERE id = ?", token[:200])
        if not rows or rows[0][2] <= self.clock():
            return "", 0
        name, _, number = str(rows[0][1]).partition(".")
        return (str(rows[0][0]), int(number or 0)) if name == purpose else ("", 0)

    def feedback(self, thread: str, person: str, **said: str) -> None:
        """What a person thinks of the answer; the last word counts."""
        self.db.run(
            "INSERT INTO feedback VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (thread, person) DO UPDATE SET "
            "verdict = excluded.verdict, reason = excluded.reason, cause = excluded.cause, note = excluded.note, at = excluded.at",
            thread, person, said.get("verdict", ""), said.get("reason", ""), said.get("cause", ""),
            said.get("note", ""), self.clock(),
        )  # fmt: skip

    def opinions(self, thread: str) -> list[dict[str, str]]:
        """Feedback of a thread, newest last."""
        rows = self.db.run(
            "SELECT verdict, reason, cause, note FROM feedback WHERE thread = ? ORDER BY at, person", thread
        )
        return [dict(zip(("verdict", "reason", "cause", "note"), row, strict=True)) for row in rows]

    # ── housekeeping ─────────────────────────────────────────────────────────────────────────────────────────
    def prune(self, days: float = KEEP_DAYS) -> int:
        """Forget threads untouched for ``days`` with all that hangs on them; the number of threads forgotten."""
        before = self.clock() - days * 86400
        with self.db.transaction() as run:
            old = [str(r[0]) for r in run("SELECT id FROM threads WHERE touched < ?", (before,))]
            for key in old:
                for table in ("events", "inbox", "tokens", "feedback"):
                    run(f"DELETE FROM {table} WHERE thread = ?", (key,))
                run("DELETE FROM threads WHERE id = ?", (key,))
            run("DELETE FROM outbox WHERE at < ?", (before,))
            run("DELETE FROM files WHERE created < ?", (before,))
            run("DELETE FROM events WHERE state <> 'open' AND created < ?", (before,))
            run("DELETE FROM alerts WHERE seen < ?", (before,))
        return len(old)

    def close(self) -> None:
        """Close the database."""
        self.db.close()
