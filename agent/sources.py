"""From what the user names (paths, addresses, text) to a ``gather`` function for the collect step."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from tools.contract import Context, Problem, Reading
from tools.intake.collect import parts_of, read_all
from tools.part import Part

Gather = Callable[[], tuple[list[Reading], list[dict[str, Any]], dict[str, str]]]
Progress = Callable[[str], None]


class Sources(Struct, kw_only=True):
    """Everything one investigation reads. ``window_s``: how long to scrape live addresses."""

    paths: list[Path] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)
    texts: dict[str, bytes] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)
    window_s: float = 0.0
    prometheus: str = ""
    match: str = ""
    start: float = 0.0
    end: float = 0.0
    progress: Progress | None = None

    def empty(self) -> bool:
        """Whether nothing at all was named."""
        return not (self.paths or self.urls or self.texts or self.parts or self.prometheus)


def split_args(items: list[str]) -> tuple[list[Path], list[str], bool]:
    """``(paths, addresses, read standard input)`` from command-line arguments."""
    urls = [x for x in items if re.match(r"https?://", x)]
    return [Path(x) for x in items if x not in urls and x != "-"], urls, "-" in items


def gatherer(sources: Sources, context: Context) -> Gather:
    """A function that reads all sources once."""

    def gather() -> tuple[list[Reading], list[dict[str, Any]], dict[str, str]]:
        parts, problems = parts_of(sources.paths)
        parts = [*parts, *sources.parts]
        parts += [Part(name=name, data=data) for name, data in sources.texts.items()]
        readings: list[Reading] = []
        for url in sources.urls:
            more, bad, found = _live(url, sources)
            parts += more
            problems += bad
            readings += found
        got, bad, kinds = read_all(parts, context)
        readings += got
        problems += bad
        if sources.prometheus:
            from tools.metrics.live import prometheus

            result = prometheus(sources.prometheus, sources.match, sources.start, sources.end)
            readings += result.readings
            problems += result.problems
            kinds[sources.prometheus] = "prometheus"
        return readings, [msgspec.to_builtins(p) for p in problems], kinds

    return gather


def words_of(sources: Sources) -> dict[str, str]:
    """The person's own words (prose files and pasted text, at most 20 kB each), for a model's intake."""
    from tools.intake.registry import classify

    parts, _ = parts_of(sources.paths)
    parts = [*parts, *sources.parts, *(Part(name=n, data=d) for n, d in sources.texts.items())]
    out: dict[str, str] = {}
    for part in parts[:60]:
        if part.name.endswith((".md", ".txt")) or part.path is None:
            try:
                if classify(part) == "report":
                    out[part.name] = part.text(20_000)
            except OSError:
                continue
    return out


def _live(url: str, sources: Sources) -> tuple[list[Part], list[Problem], list[Reading]]:
    from tools.metrics.live import scrape

    def tick(number: int, left: float) -> None:
        if sources.progress:
            sources.progress(f"scrape {number} of {url}, {left:.0f} s left")

    return scrape(url, sources.window_s, tick=tick)


_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86400, "ms": 0.001}


def seconds(text: str) -> float:
    """``30s``, ``5m``, ``-30m``, ``80ms``, plain seconds. Raises ``ValueError``."""
    found = re.fullmatch(r"\s*(-?[\d.]+)\s*(ms|s|m|h|d)?\s*", text)
    if not found:
        raise ValueError(f"cannot read duration {text!r} (write 30s, 5m, 1h)")
    return float(found[1]) * _UNIT[found[2] or "s"]


def moment(text: str, now: float | None = None) -> float:
    """Unix seconds from ``-30m``, ``now``, Unix time or ISO 8601. Raises ``ValueError``."""
    from datetime import datetime

    base = time.time() if now is None else now
    if text in ("", "now"):
        return base
    if re.fullmatch(r"\d{9,}(\.\d+)?", text):
        return float(text)
    if re.fullmatch(r"-[\d.]+(ms|s|m|h|d)?", text):
        return base + seconds(text)
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise ValueError(f"cannot read time {text!r} (write -30m, 2026-01-31T10:00:00Z or Unix seconds)") from None


def parse_slo(items: list[str]) -> dict[str, float]:
    """``ttft_p99=2s`` → ``{"ttft_p99": 2.0}``. Raises ``ValueError`` with what to write instead."""
    out: dict[str, float] = {}
    for item in items:
        name, eq, value = item.partition("=")
        if not eq or not name:
            raise ValueError(f"cannot read SLO {item!r} (write ttft_p99=2s)")
        out[name.strip()] = seconds(value)
    return out
