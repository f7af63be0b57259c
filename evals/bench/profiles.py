"""How fast and how small the profile readers are: ``python -m evals.bench.profiles [--repeat 3] [--peers] [--out FILE]``.

Generates an nsys SQLite export of 1,000,000 kernels and a torch trace of 300 MB (own generator), reads each in a fresh
interpreter, and reports CPU seconds (user + system, interpreter start included) and peak resident memory. Also checks
that the file's hash does not change, that time grows linearly, and when progress is first shown.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from evals.bench.synth_profiles import write_sqlite, write_trace

RESULTS = Path(__file__).parent / "results" / "profiles.md"
LIMITS = {"sqlite": (3.0, 200.0), "trace": (10.0, 400.0), "trace.gz": (10.0, 400.0)}
KERNELS, TRACE_KERNELS = 1_000_000, 340_000
PEER_LIMIT_S = 600
_CHILD = """
import json, resource, sys, time
begin = time.monotonic()
told = []
from tools.profile.read import summarize
profile = summarize(sys.argv[1], lambda what, done: told.append(time.monotonic() - begin))
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "mb": used.ru_maxrss / 1024, "wall": time.monotonic() - begin,
                  "kernels": profile.kernel_count, "first": told[0] if told else None, "problems": [p.line() for p in profile.problems]}))
"""
_PLAIN = """
import json, resource, sqlite3, sys
db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro&immutable=1", uri=True)
db.execute("SELECT s.value, COUNT(*), SUM(k.end - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName GROUP BY 1").fetchall()
last = gaps = 0
for start, end in db.execute("SELECT start, end FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start"):
    gaps += max(0, start - last)
    last = max(last, end)
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "mb": used.ru_maxrss / 1024, "wall": 0.0, "kernels": 0, "first": None, "problems": []}))
"""
_HTA = "import sys; from hta.trace_analysis import TraceAnalysis as T; t = T(trace_dir=sys.argv[1]); t.get_temporal_breakdown(visualize=False)"


class Run(NamedTuple):
    """Median over ``n`` fresh processes."""

    what: str
    size_mb: float
    kernels: int
    cpu: float
    mb: float
    n: int
    first: float | None


def child(code: str, path: Path, limit: float = PEER_LIMIT_S) -> dict[str, Any]:
    """Run one measurement in a fresh interpreter; raises ``CalledProcessError`` or ``TimeoutExpired``."""
    out = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=limit,
        cwd=Path(__file__).parents[2],
    )
    found: dict[str, Any] = json.loads(out.stdout.strip().splitlines()[-1])
    return found


def measure(what: str, path: Path, repeat: int, code: str = _CHILD) -> Run:
    """Median CPU and peak memory of reading one file."""
    rows = [child(code, path) for _ in range(repeat)]
    bad = [p for row in rows for p in row["problems"]]
    if bad:
        raise RuntimeError(f"{what}: {bad[0]}")
    firsts = [row["first"] for row in rows if row["first"] is not None]
    return Run(
        what,
        path.stat().st_size / 1e6,
        rows[0]["kernels"],
        statistics.median(row["cpu"] for row in rows),
        max(row["mb"] for row in rows),
        repeat,
        min(firsts, default=None),
    )


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def pack(path: Path) -> Path:
    """The file gzipped beside itself."""
    target = path.with_name(path.name + ".gz")
    with path.open("rb") as source, gzip.open(target, "wb", compresslevel=6) as out:
        shutil.copyfileobj(source, out, 1 << 20)
    return target


def peers(sqlite: Path, small_trace: Path) -> list[str]:
    """The peers, where they are installed; a limit of ten minutes each."""
    lines = []
    if shutil.which("nsys-ai"):
        lines.append(_peer("nsys-ai diagnose, 1M-kernel SQLite", ["nsys-ai", "diagnose", str(sqlite)]))
    if importlib.util.find_spec("hta"):
        folder = small_trace.parent / "hta"
        folder.mkdir(exist_ok=True)
        shutil.copy(small_trace, folder / "rank-0.json")
        lines.append(
            _peer(f"HTA, {small_trace.stat().st_size / 1e6:.0f} MB trace", [sys.executable, "-c", _HTA, str(folder)])
        )
    return lines or ["no peer is installed here (nsys-ai, HolisticTraceAnalysis)"]


def _peer(what: str, command: list[str]) -> str:
    before = os.times()
    begin = time.monotonic()
    try:
        subprocess.run(command, capture_output=True, timeout=PEER_LIMIT_S, check=False)
        tail = ""
    except subprocess.TimeoutExpired:
        tail = ", not finished"
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return f"{what}: {cpu:.1f} CPU s, {time.monotonic() - begin:.0f} s wall{tail}"


def linearity(folder: Path, repeat: int) -> list[Run]:
    """The same shape at a quarter, a half, one and two million kernels."""
    out = []
    for count in (250_000, 500_000, 1_000_000, 2_000_000):
        path = folder / f"scale-{count}.sqlite"
        write_sqlite(path, count)
        out.append(measure("sqlite", path, repeat))
        path.unlink()
    return out


def run(repeat: int, with_peers: bool) -> tuple[list[Run], list[Run], Run, list[str], bool]:
    """All measurements; the last value says whether the hash of the SQLite file was the same after as before."""
    with tempfile.TemporaryDirectory(prefix="inferdx-bench-") as name:
        folder = Path(name)
        sqlite, trace = folder / "profile.sqlite", folder / "trace.json"
        write_sqlite(sqlite, KERNELS)
        write_trace(trace, TRACE_KERNELS)
        packed = pack(trace)
        before = digest(sqlite)
        runs = [measure("sqlite", sqlite, repeat), measure("trace", trace, repeat), measure("trace.gz", packed, repeat)]
        same = digest(sqlite) == before
        plain = measure("plain scan", sqlite, repeat, _PLAIN)
        small = folder / "small.json"
        notes = []
        if with_peers:
            write_trace(small, 34_000)
            notes = peers(sqlite, small)
        return runs, linearity(folder, max(1, repeat - 1)), plain, notes, same


def render(repeat: int, result: tuple[list[Run], list[Run], Run, list[str], bool]) -> str:
    """The result as Markdown."""
    runs, scale, plain, notes, same = result
    lines = [
        "# Profile readers: time and memory",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f} at the end; Python {sys.version.split()[0]}.",
        f"CPU seconds are user + system of a fresh interpreter, median of n = {repeat}; memory is the largest of the runs.",
        "Command: `python -m evals.bench.profiles`.",
        "",
        "| input | MB | kernels | CPU s (limit) | peak MB (limit) | first progress, s | within |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in runs:
        cpu, mb = LIMITS[row.what]
        first = f"{row.first:.1f}" if row.first is not None else "under 1 s in all"
        held = "yes" if row.cpu <= cpu and row.mb <= mb else "NO"
        lines.append(
            f"| {row.what} | {row.size_mb:.0f} | {row.kernels} | {row.cpu:.2f} ({cpu:g}) | {row.mb:.0f} ({mb:g}) | {first} | {held} |"
        )
    lines += [
        "",
        f"Beside it, two plain queries over the same SQLite file (sum by name, ordered gap scan): {plain.cpu:.2f} CPU s, {plain.mb:.0f} MB.",
        f"Hash of the SQLite file after all runs: {'unchanged' if same else 'CHANGED'}.",
        "",
        "| SQLite kernels | CPU s | CPU us per kernel | peak MB |",
        "|---|---|---|---|",
        *(f"| {row.kernels} | {row.cpu:.2f} | {row.cpu / row.kernels * 1e6:.2f} | {row.mb:.0f} |" for row in scale),
        "",
    ]
    return "\n".join(lines + [f"Peer: {note}" for note in notes]).rstrip() + "\n"


def main() -> int:
    """Measure, print, store; exit code 1 when a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    result = run(args.repeat, args.peers)
    text = render(args.repeat, result)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(text, encoding="utf-8")
    print(text)
    held = all(row.cpu <= LIMITS[row.what][0] and row.mb <= LIMITS[row.what][1] for row in result[0])
    return 0 if held and result[4] else 1


if __name__ == "__main__":
    sys.exit(main())
