"""Cold start at the command line: CPU seconds of ``--help``, of two scrapes and of a whole recorded folder.

``python -m evals.bench.cold [--repeat N]`` runs fresh interpreters, prints the median and worst of each and exits 1 when a
median is above its limit. The knowledge cache is warm after the first run, as it is for a user.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

CASES = Path(__file__).resolve().parents[1] / "cases"
WORLD = CASES / "lab-007" / "world"


def cpu_of(arguments: list[str]) -> float:
    """User and system CPU seconds of one run of the command line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "agent.main", *arguments], check=False, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeat", type=int, default=5)
    repeat = max(1, parser.parse_args().repeat)
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in (0, 1):
            shutil.copy(WORLD / f"metrics-00{number}.prom.gz", folder)
        cpu_of(["diagnose", folder])
        print("| what | median CPU s | worst | limit | n |\n|---|---|---|---|---|")
        for what, arguments, limit in (
            ("inferdx --help", ["--help"], 0.25),
            ("diagnose, two scrapes", ["diagnose", folder], 0.6),
            ("diagnose, a lab folder", ["diagnose", str(WORLD)], 1.5),
        ):
            took = [cpu_of(arguments) for _ in range(repeat)]
            middle = statistics.median(took)
            print(f"| {what} | {middle:.2f} | {max(took):.2f} | {limit:g} | {repeat} |")
            worst |= int(middle > limit)
    return worst


if __name__ == "__main__":
    raise SystemExit(main())
