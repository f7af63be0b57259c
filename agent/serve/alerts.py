"""Alertmanager's webhook payload (version 4) → queued work: one investigation per fingerprint, repeats folded into it."""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Struct

from agent.slack.store import Store
from agent.slack.targets import Targets

FOLD_S = 6 * 3600.0
MAX_ALERTS = 200
_CHANNEL = re.compile(r"[CGD][A-Z0-9]{6,20}")
_TS = re.compile(r"\d{10}\.\d{6}")


class Bad(ValueError):
    """A payload that cannot be used: what is wrong with it."""


class Counts(Struct):
    """What became of the alerts of one payload."""

    opened: int = 0
    folded: int = 0
    resolved: int = 0
    refused: int = 0


class Alert(Struct, kw_only=True):
    """One alert of a payload, cleaned and cut."""

    fingerprint: str
    status: str
    labels: dict[str, str]
    annotations: dict[str, str]
    starts: str
    ends: str

    def name(self) -> str:
        """The alert's name."""
        return self.labels.get("alertname", "alert")


def _words(data: Any) -> dict[str, str]:
    if not isinstance(data, dict):
        return {}
    return {str(k)[:100]: str(v)[:1000] for k, v in list(data.items())[:60]}


def parse(body: bytes) -> list[Alert]:
    """The alerts of a payload. Raises :class:`Bad`."""
    try:
        data = json.loads(body)
    except ValueError:
        raise Bad("not JSON") from None
    rows = data.get("alerts") if isinstance(data, dict) else None
    if not isinstance(rows, list):
        raise Bad("no list 'alerts': is this Alertmanager's webhook_config?")
    out: list[Alert] = []
    for row in rows[:MAX_ALERTS]:
        if not isinstance(row, dict) or not re.fullmatch(r"[0-9a-fA-F]{6,64}", str(row.get("fingerprint", ""))):
            raise Bad("an alert without a fingerprint (Alertmanager 0.19 or later sends one)")
        status = str(row.get("status", ""))
        if status not in ("firing", "resolved"):
            raise Bad(f"status {status[:20]!r} is neither firing nor resolved")
        out.append(
            Alert(
                fingerprint=str(row["fingerprint"]),
                status=status,
                labels=_words(row.get("labels")),
                annotations=_words(row.get("annotations")),
                starts=str(row.get("startsAt", ""))[:40],
                ends=str(row.get("endsAt", ""))[:40],
            )
        )
    return out


class Desk:
    """Takes alerts in. ``slack``: whether a Slack app works on this store; without it answers are kept for reading."""

    def __init__(self, store: Store, targets: Targets, *, limit: int, slack: bool, team: str = "") -> None:
        self.store = store
        self.targets = targets
        self.limit = limit
        self.slack = slack
        self.team = team or targets.team

    def take(self, alerts: list[Alert]) -> Counts:
        """Record all; ``refused`` counts those the full queue did not take (the caller answers 503: they come again)."""
        counts = Counts()
        for alert in alerts:
            if alert.status == "resolved":
                counts.resolved += self._resolved(alert)
            else:
                self._firing(alert, counts)
        return counts

    def _row(self, fingerprint: str) -> tuple[Any, ...] | None:
        rows = self.store.db.run(
            "SELECT status, times, thread, opened, seen FROM alerts WHERE fingerprint = ?", fingerprint
        )
        return rows[0] if rows else None

    def _firing(self, alert: Alert, counts: Counts) -> None:
        now = self.store.clock()
        row = self._row(alert.fingerprint)
        if row is not None and now - float(row[3]) < FOLD_S:
            self.store.db.run(
                "UPDATE alerts SET times = times + 1, seen = ?, status = 'firing' WHERE fingerprint = ?",
                now,
                alert.fingerprint,
            )
            counts.folded += 1
            if row[0] == "resolved":  # it came back: worth a line; plain repeats of a firing alert are not
                self._note(alert, str(row[2]), "repeat", {"n": int(row[1]) + 1}, f"again:{alert.starts}")
            return
        channel, root = self._where(alert)
        kind = "alert" if channel and self.slack else "watch"
        key = f"alert:{alert.fingerprint}:{alert.starts}"
        body = {
            "fingerprint": alert.fingerprint,
            "name": alert.name(),
            "summary": alert.annotations.get("summary") or alert.annotations.get("description", ""),
            "labels": alert.labels,
            "team": self.team,
            "root": root,
        }
        taken = self.store.enqueue(key, kind, key, channel, body, self.limit)
        if taken is None:
            counts.refused += 1
            return
        self.store.db.run(
            "INSERT INTO alerts (fingerprint, status, times, thread, opened, seen, body) VALUES (?, 'firing', 1, ?, ?, ?, ?) "
            "ON CONFLICT (fingerprint) DO UPDATE SET status = 'firing', times = 1, opened = excluded.opened, "
            "seen = excluded.seen, body = excluded.body, answer = ''",
            alert.fingerprint,
            key,
            now,
            now,
            json.dumps(body),
        )
        counts.opened += 1

    def _where(self, alert: Alert) -> tuple[str, str]:
        """Channel and, when an annotation names it, the alert's own thread (``slack_thread: C0123456:1700000000.000100``)."""
        channel, _, ts = alert.annotations.get("slack_thread", "").partition(":")
        if _CHANNEL.fullmatch(channel) and _TS.fullmatch(ts):
            return channel, ts
        target = self.targets.of(alert.labels)
        return (target.channel if target and target.channel else self.targets.channel), ""

    def _resolved(self, alert: Alert) -> int:
        row = self._row(alert.fingerprint)
        if row is None or row[0] == "resolved":
            return 0
        self.store.db.run(
            "UPDATE alerts SET status = 'resolved', seen = ? WHERE fingerprint = ?",
            self.store.clock(),
            alert.fingerprint,
        )
        self._note(alert, str(row[2]), "resolved", {"at": alert.ends}, f"end:{alert.ends}")
        return 1

    def _note(self, alert: Alert, thread: str, word: str, values: dict[str, Any], what: str) -> None:
        """A line in the alert's thread, when it has one in Slack."""
        found = self.store.thread(thread)
        if found is not None:
            body = {"word": word, "values": values, "root": found.ts}
            self.store.enqueue(f"note:{alert.fingerprint}:{what}", "note", thread, found.channel, body)
