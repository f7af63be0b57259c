"""Mutation check of the knowledge base: how many changed conditions no fixture notices.

Run ``python -m evals.bench.mutate``. Prints one line per survivor and the counts; status 1 above 2 %.
"""

from __future__ import annotations

import sys
import time

MOST = 0.02


def main() -> int:
    """Print survivors and counts; 0 when at most 2 % survive."""
    from agent.fixtures import read
    from agent.mutants import check
    from knowledge import load
    from knowledge.loader import ROOT

    start = time.perf_counter()
    report = check(load(), read([ROOT]))
    for survivor in report.survivors:
        print(survivor.line())
    print(
        f"{report.rules} rules, {report.mutants} mutants, {len(report.survivors)} survive ({report.share():.2%}), "
        f"{time.perf_counter() - start:.1f} s"
    )
    return 0 if report.mutants and report.share() <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
