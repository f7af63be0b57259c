"""From an event to inbox entries: words, attached files, the thread before us, and the live sources of a target."""

from __future__ import annotations

import gzip
import re
from typing import Any

from agent.slack.download import MAX_FILES, fetch
from agent.slack.escape import unslack
from agent.slack.poster import Poster
from agent.slack.store import Event, Store, Thread
from agent.slack.targets import Target, Targets
from agent.untrusted import clean
from tools.contract import Problem

_MAX_THREAD = 200_000


class Collector:
    """Collects for one worker. ``bot``: our own user id; windows in seconds of scraping for alerts."""

    def __init__(
        self,
        poster: Poster | None,
        store: Store,
        targets: Targets,
        *,
        bot: str = "",
        token: str = "",
        base_url: str = "",
        first_look_s: float = 4.0,
        long_look_s: float = 30.0,
    ) -> None:
        self.poster = poster
        self.store = store
        self.targets = targets
        self.bot = bot
        self.token = token
        self.base_url = base_url
        self.first_look_s = first_look_s
        self.long_look_s = long_look_s

    def words(self, body: dict[str, Any]) -> str:
        """What the person typed, without the mention."""
        return unslack(str(body.get("text", "")), self.bot)

    def message(self, event: Event, thread: Thread) -> list[str]:
        """Record everything a message gives; what could not be had, one line each."""
        body = event.body
        problems: list[str] = []
        if body.get("ts") and body.get("root") != body.get("ts") and not thread.watermark:
            problems += self._thread_before(thread, str(body["ts"]))
        elif body.get("ts") and not thread.watermark:
            self.store.set_thread(thread.id, watermark=str(body["ts"]))
        problems += self._files(thread, body.get("files", []))
        text = self.words(body)
        target = self.targets.named(text)
        if target is not None:
            problems += self.target(event, thread, target, self.first_look_s)
            text = "" if len(text.split()) <= 3 else text
        if text:
            self.store.inbox_add(thread.id, f"{event.id}:text", "text", {"text": clean(text, 40_000)})
        return problems

    def _files(self, thread: Thread, items: list[dict[str, Any]]) -> list[str]:
        problems: list[str] = []
        for item in items[:MAX_FILES]:
            got = fetch(item, self.token, self.base_url)
            name = clean(str(item.get("name") or item.get("id") or "file"), 120)
            if isinstance(got, Problem):
                problems.append(got.line())
                # the refusal is evidence about our input: it shows in the header of the answer, not silently
                self.store.inbox_add(thread.id, f"file:{item.get('id')}", "refused", {"line": got.line()})
                continue
            sha = self.store.keep_file(got)
            self.store.inbox_add(thread.id, f"file:{item.get('id')}", "file", {"name": name, "sha": sha})
        return problems

    def _thread_before(self, thread: Thread, upto: str) -> list[str]:
        """Read the thread once, as quoted data labelled by author; then only what arrives as events counts."""
        if self.poster is None:
            return []
        quoted: list[str] = []
        problems: list[str] = []
        for item in self.poster.replies(thread.channel, thread.ts):
            ts = str(item.get("ts", ""))
            if ts >= upto or (self.bot and item.get("user") == self.bot):
                continue
            who = f"bot {item['bot_id']}" if item.get("bot_id") else f"person {item.get('user', '?')}"
            text = clean(unslack(str(item.get("text", "")), self.bot), 8000)
            if text:
                quoted.append(f"> [{who}]\n" + "\n".join(f"> {line}" for line in text.splitlines()))
            if not item.get("bot_id"):
                problems += self._files(thread, [f for f in item.get("files", []) if isinstance(f, dict)])
        if quoted:
            body = "\n\n".join(quoted)[:_MAX_THREAD]
            self.store.inbox_add(thread.id, f"thread:{thread.ts}", "text", {"text": body})
        self.store.set_thread(thread.id, watermark=upto)
        return problems

    def alert(self, event: Event, thread: Thread, window_s: float) -> list[str]:
        """The alert itself and its target's live sources."""
        body = event.body
        lines = [f"Alert {body['name']}: {body['summary']}", *[f"{k}: {v}" for k, v in sorted(body["labels"].items())]]
        self.store.inbox_add(thread.id, f"{event.id}:alert", "text", {"text": clean("\n".join(lines), 8000)})
        target = self.targets.of(body["labels"])
        if target is None:
            return ["no target matches the alert's labels (see the targets file)"]
        return self.target(event, thread, target, window_s)

    def target(self, event: Event, thread: Thread, target: Target, window_s: float) -> list[str]:
        """Scrapes kept as files (so that a draft case and the picture have them), a Prometheus range as a query."""
        from tools.metrics.live import scrape

        problems: list[str] = []
        for number, url in enumerate(target.metrics):
            prefix = f"{event.id}:{window_s:g}:{number}"
            if any(e.get("of") == prefix for e in self.store.inbox(thread.id)):
                continue
            parts, bad, _ = scrape(url, window_s, every=2.0 if window_s <= 10 else 5.0)
            problems += [p.line() for p in bad]
            label = re.sub(r"[^A-Za-z0-9]+", "-", url.split("://", 1)[-1]).strip("-")[:60]
            for index, part in enumerate(parts):
                sha = self.store.keep_file(gzip.compress(part.data or b"", mtime=0))
                name = f"{label}-{int(part.time or 0)}-{index}.prom.gz"
                entry = {"name": name, "sha": sha, "time": part.time, "of": prefix}
                self.store.inbox_add(thread.id, f"{prefix}:{index}", "file", entry)
            if not parts:
                down: dict[str, Any] = {"paths": [], "urls": [url], "window_s": 0.0, "of": prefix}
                self.store.inbox_add(thread.id, f"{prefix}:down", "attach", down)
        if target.prometheus:
            entry = {
                "url": target.prometheus,
                "match": target.prometheus_match,
                "start": f"-{target.range}",
                "end": "now",
            }
            self.store.inbox_add(thread.id, f"{event.id}:prometheus", "prometheus", entry)
        for path in target.files:
            self.store.inbox_add(thread.id, f"target:{path}", "attach", {"paths": [path], "urls": []})
        return problems
