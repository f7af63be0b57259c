"""Finds exceptions: follows tracebacks per process, tells the first one from those that only follow it."""

from __future__ import annotations

import re

from msgspec import Struct

START = "Traceback (most recent call last):"
MAX_OPEN = 128
MAX_TRACES = 2000
MAX_LINES = 4000

_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Za-z_]\w{0,60}"
    r"(?:Error|Exception|Interrupt|Exit|Failure|Timeout|Expired|Closed|OOM)\b(?: \(\w{1,40}\))?(?::|$)"
)
_INSIDE = re.compile(
    r"(?:exception|error)[:=]\s{0,3}((?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Failure)\b: .{0,400})"
)
_FRAME = re.compile(r'\s*File "([^"]{1,300})", line (\d+), in ([\w<>.]{1,120})')
_FOLLOW_UP = re.compile(
    r"EngineDeadError|Engine core initialization failed|EngineCore encountered an issue|WorkerProc initialization failed"
    r"|Engine process failed to start|See (?:root cause|stack trace) |MQEngineDeadError|EngineGenerateError"
    r"|Engine loop (?:has|is) (?:died|dead)|Background loop (?:has errored|is stopped)|AsyncEngineDeadError"
    r"|CancelledError|BrokenPipeError|ConnectionResetError|SystemExit|KeyboardInterrupt|ClientDisconnect|EndOfStream"
    r"|Worker proc .{0,80} died unexpectedly|cancelled$|BrokenResourceError|ConnectionRefusedError"
)
STARTUP_FRAMES = frozenset(
    {
        "profile_run",
        "determine_available_memory",
        "determine_num_available_blocks",
        "load_model",
        "initialize_kv_caches",
        "_initialize_kv_caches",
        "initialize_from_config",
        "compile_or_warm_up_model",
        "capture_model",
        "capture_graphs",
        "init_device",
        "create_engine_config",
        "create_weights",
        "process_weights_after_loading",
        "warmup_kernels",
        "kernel_warmup",
        "init_memory_pool",
        "init_cuda_graphs",
        "capture",
        "load_weights",
        "allocate_kv_cache",
        "initialize_kv_cache",
        "init_device_graphs",
        "_dummy_run",
        "_dummy_sampler_run",
        "initialize_cache",
    }
)


class Trace(Struct):
    """One exception: its last line, where, in which process, and the innermost frames (``file:function``)."""

    text: str
    line: int
    process: str
    time: float | None
    frames: tuple[str, ...] = ()
    startup: bool = False
    follow_up: bool = False
    phase: str = ""


class _Open(Struct):
    line: int
    time: float | None
    count: int = 0
    frames: list[str] = []
    startup: bool = False
    phase: str = ""


class Traces:
    """Tracebacks of interleaved processes; ``opened``: those whose end has not come, by process.

    Bodies of more than 2000 tracebacks are no longer followed.
    """

    def __init__(self) -> None:
        self.opened: dict[str, _Open] = {}
        self.first: Trace | None = None
        self.first_follow_up: Trace | None = None
        self.last: Trace | None = None
        self.count = 0
        self.kinds: dict[str, int] = {}

    def feed(self, text: str, line: int, process: str, time: float | None, *, level: str = "", phase: str = "") -> bool:
        """One message; whether it belonged to a traceback or named an exception."""
        state = self.opened.get(process)
        if START in text:
            if self.count < MAX_TRACES and len(self.opened) < MAX_OPEN:
                self.opened[process] = _Open(line=line, time=time, frames=[], phase=phase)
            return True
        if state is None and "File " in text and len(self.opened) < MAX_OPEN and _FRAME.match(text):
            state = self.opened[process] = _Open(line=line, time=time, frames=[], phase=phase)  # its head was cut off
        bare = text.strip()
        if state is not None:
            state.count += 1
            if state.count > MAX_LINES:
                del self.opened[process]
                return False
            found = _FRAME.match(text)
            if found:
                function = found[3].rpartition(".")[2]
                state.startup = state.startup or function in STARTUP_FRAMES
                state.frames.append(f"{found[1].rpartition('/')[2]}:{function}")
                if len(state.frames) > 12:
                    del state.frames[0]
                return True
            if not bare or text[:1] in " \t" or bare[:1] in "^~|+-" or "During handling of the above" in text:
                return True
            if "direct cause of the following exception" in text:
                return True
            if _EXCEPTION.match(bare):
                del self.opened[process]
                self._close(bare, line, process, state)
                return True
            return level in ("", "error", "critical")  # source lines and notes; anything else is interleaved
        if found := (_EXCEPTION.match(bare) if bare[:1].isalpha() else None):
            self._close(bare, line, process, _Open(line=line, time=time, frames=[], phase=phase))
            return True
        if level in ("error", "critical") and (inner := _INSIDE.search(bare)):
            self._close(inner[1], line, process, _Open(line=line, time=time, frames=[], phase=phase))
            return True
        return False

    def _close(self, text: str, line: int, process: str, state: _Open) -> None:
        if text.startswith("KeyboardInterrupt"):
            return  # somebody ended the program: a signal, no fault of its own
        self.count += 1
        follow = bool(_FOLLOW_UP.search(text))
        trace = Trace(
            text=text[:400],
            line=line,
            process=process,
            time=state.time,
            frames=tuple(state.frames),
            startup=state.startup,
            follow_up=follow,
            phase=state.phase,
        )
        kind = text.partition(":")[0][:80]
        if kind in self.kinds or len(self.kinds) < 64:
            self.kinds[kind] = self.kinds.get(kind, 0) + 1
        self.last = trace
        if follow:
            self.first_follow_up = self.first_follow_up or trace
        if self.first is None and not follow:
            self.first = trace

    def expire(self, line: int) -> None:
        """Give up on tracebacks whose end did not come within 4000 lines."""
        for process in [name for name, state in self.opened.items() if line - state.line > MAX_LINES]:
            del self.opened[process]

    @property
    def follow_ups(self) -> int:
        """Exceptions beside :attr:`root`."""
        return max(0, self.count - 1)

    @property
    def root(self) -> Trace | None:
        """The first exception that is not known to be a mere consequence; such a one when there is nothing else."""
        return self.first or self.first_follow_up
