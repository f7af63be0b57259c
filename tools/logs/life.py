"""The life of a server as its log tells it: start-up, ready, serving, shutdown, restart, and how the log ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tools.contract import Reading, Source

BANNER = re.compile(
    r"vLLM API server version v?(?P<vllm>\d[\w.+-]*)|[█▄▀] +version v?(?P<logo>\d[\w.+-]*)"
    r"|Initializing a(?:n| V1| V0)? ?LLM engine \(v(?P<engine>\d[\w.+-]*)\)"
    r"|server_args=(?P<sglang>ServerArgs)\(|text_generation_launcher: (?P<tgi>Args)|^Args \{"
    r"|sglang[= ]v?(?P<sgversion>\d+\.\d+\.\d[\w.]*)"
)
_BANNER_WORDS = (
    "API server version",
    "█",
    "LLM engine (v",
    "server_args=",
    "text_generation_launcher: Args",
    "Args {",
    "sglang",
)
STARTUP = (
    "Starting to load model",
    "Loading model weights",
    "Loading weights took",
    "Model loading took",
    "Loading safetensors checkpoint",
    "Available KV cache memory",
    "KV cache size:",
    "# GPU blocks:",
    "CUDA graph",
    "Graph capturing finished",
    "init engine (profile",
    "Load weight ",
    "KV Cache is allocated",
    "Memory pool end",
    "Init torch distributed",
    "Resolved architecture",
    "non-default args",
    "Started server process",
    "Waiting for application startup",
    "padding layers, may waste",
    "Dynamo bytecode transform",
    "max_running_requests is capped",
    "Starting shard",
    "Starting download process",
    "Shard ready",
    "Warming up model",
)
READY = (
    "Application startup complete",
    "The server is fired up and ready to roll",
    "Uvicorn running on",
    "Starting HTTP server",
)
STOP = (
    "Shutting down",
    "Finished server process",
    "Application shutdown complete",
    "Waiting for application shutdown",
    "[shutdown]",
    "Received signal",
    "SIGTERM",
    "SIGINT",
    "force killing remaining",
    "seconds for processes to exit",
    "Gracefully exiting",
    "Gracefully stopping",
)
FATAL = (
    "encountered a fatal error",
    "failed to start",
    "died unexpectedly",
    "already dead, terminating",
    "Out of memory: Killed",
    "leaked semaphore objects",
    "leaked shared_memory objects",
    "core dumped",
    "OOMKilled",
    "hit an exception",
    "Child process unexpectedly failed",
    "watchdog timeout",
)


def has(text: str, words: tuple[str, ...]) -> bool:
    """Whether any of the words stands in the text."""
    for word in words:  # noqa: SIM110 - several times faster than any() with a generator, and this is a hot path
        if word in text:
            return True
    return False


def tells(text: str, phase: str) -> bool:
    """Whether :meth:`Life.feed` would learn something from a line."""
    return (
        has(text, STOP)
        or has(text, FATAL)
        or has(text, READY)
        or (has(text, _BANNER_WORDS) and BANNER.search(text) is not None)
        or (not phase and has(text, STARTUP))
        or text.strip() == "Killed"
    )


class Life:
    """State of one file. ``phase`` is empty until some line tells: an excerpt may start anywhere."""

    def __init__(self) -> None:
        self.phase = ""
        self.engine = self.version = ""
        self.engine_line = self.version_line = 0
        self.starts: list[tuple[int, str, float | None]] = []
        self.ready: list[tuple[int, float | None]] = []
        self.restarts = 0
        self.stop_line = self.fatal_line = 0
        self.fatal_text = self.stop_text = ""
        self.frontends: set[str] = set()

    def saw_engine(self, name: str, line: int) -> None:
        """A line that only this engine prints."""
        if not self.engine:
            self.engine, self.engine_line = name, line

    def feed(self, text: str, line: int, pid: str, process: str, time: float | None) -> None:
        """One message that one of the patterns of this module may match."""
        banner = BANNER.search(text) if has(text, _BANNER_WORDS) else None
        if banner:
            self._banner(banner, line, pid, process, time)
        if has(text, STOP):
            self.stop_line, self.stop_text = line, text[:200]
        if has(text, FATAL) or text.strip() == "Killed":
            self.fatal_line, self.fatal_text = line, text[:200]
        if has(text, READY):
            if self.phase != "serving":
                self.ready.append((line, time))
            self.phase = "serving"
        elif not self.phase and has(text, STARTUP):
            self.phase = "startup"

    def _banner(self, found: re.Match[str], line: int, pid: str, process: str, time: float | None) -> None:
        got = found.groupdict()
        version = got["vllm"] or got["logo"] or got["engine"]
        if version:
            self.saw_engine("vllm", line)
            if not self.version:
                self.version, self.version_line = version.rstrip("."), line
        elif got["sglang"] or got["sgversion"]:
            self.saw_engine("sglang", line)
            if got["sgversion"] and not self.version:
                self.version, self.version_line = got["sgversion"], line
        elif not got["sgversion"]:
            self.saw_engine("tgi", line)
        if got["engine"] or got["sgversion"]:
            self.phase = self.phase or "startup"
            return  # printed once per engine process, so no sign of a new server
        if self.phase == "serving" or (self.starts and pid and pid != self.starts[-1][1]):
            self.restarts += 1
        elif self.starts:
            return
        self.phase = "startup"
        self.starts.append((line, pid, time))
        del self.starts[64:]

    def readings(self, ref: str, *, lines: int, last_running: float | None, trace_line: int) -> Iterator[Reading]:
        """Facts of the life. ``trace_line``: line of the last exception, 0 for none."""

        def make(fact: str, value: Any, line: int, how: str, *caveats: str, span: str = "") -> Reading:
            source = Source(kind="file", ref=ref, line=line, span=span)
            return Reading(fact=fact, value=value, source=source, method=how, caveats=caveats)

        if self.engine:
            yield make("engine.name", self.engine, self.engine_line, "the line names the engine")
        if self.version:
            yield make("engine.version", self.version, self.version_line, "printed at start-up")
        covers = bool(self.starts and self.ready)
        if self.starts:
            start_line = self.starts[-1][0]
            done = bool(self.ready and self.ready[-1][0] > start_line)
            yield make("log.startup_completed", done, start_line, "last start-up banner, then a ready line or none")
            yield make("log.restarts", self.restarts, start_line, f"{self.restarts} start-up banners after the first")
            if done and self.starts[-1][2] is not None and self.ready[-1][1] is not None:
                took = self.ready[-1][1] - self.starts[-1][2]
                if 0 <= took < 86400:
                    yield make("log.startup_seconds", round(took, 3), start_line, "from the banner to the ready line")
        yield make(
            "log.covers_startup", covers, self.starts[0][0] if self.starts else 0, "banner and ready line both read"
        )
        yield from self._ending(make, lines, last_running, trace_line)

    def _ending(self, make: Any, lines: int, last_running: float | None, trace_line: int) -> Iterator[Reading]:
        whole = bool(self.starts) or lines >= 30
        crash = max(trace_line, self.fatal_line)
        if last_running is not None and last_running > 0 and not self.stop_line:
            note = "a log copied from a live server, or cut, looks the same"
            yield make(
                "log.ends_mid_work", True, lines, f"running = {last_running:g} in the last statistics line", note
            )
        if not whole:
            return
        if self.starts and self.phase == "startup" and self.stop_line < self.starts[-1][0]:
            how = "a start-up banner and no ready or shutdown line after it"
            span = self.fatal_text if self.fatal_line > self.starts[-1][0] else ""
            yield make("log.ended_abruptly", True, self.starts[-1][0], how, span=span)
        elif self.stop_line > (self.starts[-1][0] if self.starts else 0):
            yield make("log.ended_abruptly", False, self.stop_line, "a shutdown line", span=self.stop_text)
        elif crash and lines - crash <= max(200, lines // 5):
            how = f"an exception or fatal line at {crash}, {lines - crash} lines before the end, and no shutdown line after it"
            yield make("log.ended_abruptly", True, crash, how, span=self.fatal_text if crash == self.fatal_line else "")
        elif last_running == 0:
            yield make("log.ended_abruptly", False, lines, "nothing ran in the last statistics line")
