"""Speed and memory of the log reader on a made log: ``python -m evals.bench.logs [MB] [mixed|unique|statistics]``.

The log mixes what big logs hold: access lines, statistics lines, request lines with identifiers, warnings, tracebacks
of interleaved processes and progress bars. It is written to a temporary file in a stream; a child process reads it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

CHUNK = 2000
_CHILD = """
import json, resource, sys, time
from pathlib import Path
from tools.contract import Context
from tools.logs.read import read
from tools.part import Part
path = Path(sys.argv[1])
start, cpu = time.perf_counter(), time.process_time()
result = read([Part(name="made.log", path=path)], Context())
out = {
    "wall_s": round(time.perf_counter() - start, 3),
    "cpu_s": round(time.process_time() - cpu, 3),
    "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    "readings": len(result.readings),
    "problems": len(result.problems),
    "lines": next(r.value for r in result.readings if r.fact == "log.lines"),
}
print(json.dumps(out))
"""


def chunk(number: int, kind: str) -> Iterator[str]:
    """2000 lines. ``kind``: ``mixed`` (as described above) or ``unique`` (each line has new words: the
    worst case), or ``statistics`` (nothing but the periodic line, read in full each time)."""
    stamp = f"11-{1 + number // 8640 % 28:02d} {number // 360 % 24:02d}:{number // 6 % 60:02d}:{number % 6 * 10:02d}"
    api, core = f"(APIServer pid=4242) INFO {stamp}", "(EngineCore_DP0 pid=4311)"
    if kind == "statistics":
        yield from (_statistics(number * CHUNK + i) for i in range(CHUNK))
        return
    yield (
        f"{api} [loggers.py:123] Engine 000: Avg prompt throughput: {900 + number % 700}.4 tokens/s, Avg generation "
        f"throughput: {1200 + number % 333}.1 tokens/s, Running: {64 + number % 9} reqs, Waiting: {number % 5} reqs, "
        f"GPU KV cache usage: {number % 100}.{number % 10}%, Prefix cache hit rate: 41.{number % 10}%"
    )
    for i in range(CHUNK - 1):
        serial = number * CHUNK + i
        if kind == "unique":
            yield f"{api} [logger.py:39] Received request cmpl-{hash((serial, 7)) & (1 << 64) - 1:x}: prompt: '{_words(serial)}'"
        elif i % 20 < 14:
            code = "200 OK" if i % 50 else "503 Service Unavailable"
            yield f'INFO:     10.0.{i % 256}.7:{30000 + i} - "POST /v1/chat/completions HTTP/1.1" {code}'
        elif i % 20 < 18:
            yield f"{api} [async_llm.py:271] Added request chatcmpl-{hash((serial, 1)) & (1 << 128) - 1:032x}."
        elif i % 400 == 18:
            yield f"{core} ERROR {stamp} [core.py:586] Traceback (most recent call last):"
            yield f'{core} ERROR {stamp} [core.py:586]   File "/opt/vllm/worker.py", line {i}, in execute_model'
            yield f"{core} ERROR {stamp} [core.py:586] RuntimeError: request {serial} failed"
        elif i % 20 == 18:
            yield f"{core} WARNING {stamp} [scheduler.py:9] queue of tenant {i % 7} is {i} long"
        else:
            yield f"Capturing CUDA graphs (decode, FULL): {i % 100}%|###   | {i}/67 [00:0{i % 10}<00:03,  9.{i % 10}it/s]"


def _statistics(n: int) -> str:
    stamp = f"11-{1 + n // 8640 % 28:02d} {n // 360 % 24:02d}:{n // 6 % 60:02d}:{n % 6 * 10:02d}"
    return (
        f"(APIServer pid=1) INFO {stamp} [loggers.py:123] Engine 000: Avg prompt throughput: {900 + n % 700}.4 tokens/s, "
        f"Avg generation throughput: {1200 + n % 333}.1 tokens/s, Running: {64 + n % 9} reqs, Waiting: {n % 5} reqs, "
        f"GPU KV cache usage: {n % 100}.{n % 10}%, Prefix cache hit rate: 41.{n % 10}%"
    )


def _words(serial: int) -> str:
    return " ".join(
        f"{(serial * 2654435761 + k * 40503) % 46656:x}q{'abcdefghij'[(serial + k) % 10]}xz" for k in range(24)
    )


def write(path: Path, megabytes: int, kind: str) -> int:
    """Write a made log of about this size; bytes written."""
    size = number = 0
    with path.open("w", encoding="utf-8") as out:
        while size < megabytes << 20:
            text = "\n".join(chunk(number, kind)) + "\n"
            out.write(text)
            size += len(text)
            number += 1
    return size


def measure(megabytes: int, kind: str) -> dict[str, float]:
    """Write, read in a child process, and report MB/s and peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.log"
        size = write(path, megabytes, kind)
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, str(path)], capture_output=True, text=True, check=True, timeout=3600
        )
        out: dict[str, float] = json.loads(done.stdout)
        out["child_wall_s"] = round(time.perf_counter() - begin, 3)
        out["mb"] = round(size / (1 << 20), 1)
        out["mb_per_cpu_s"] = round(out["mb"] / out["cpu_s"], 1)
        return out


def main() -> None:
    """Print one JSON line per kind of log."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    for kind in sys.argv[2:3] or ("mixed", "unique"):
        print(json.dumps({"kind": kind, **measure(megabytes, kind)}), flush=True)


if __name__ == "__main__":
    main()
