"""Speed of the screen: all rules over a ledger of 2,000 readings, made so that most rules are really evaluated.

Run ``python -m evals.bench.screen``. Prints median and worst of the repeats in milliseconds of CPU time, which other
processes on the machine do not stretch; status 1 when the median is above 50 ms.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator

from knowledge.schema import Knowledge
from tools.contract import Reading, Source
from tools.view import Ledger

MOST_MS = 50.0
READINGS = 2000
REPEATS = 30


def readings(known: Knowledge, count: int = READINGS) -> Iterator[Reading]:
    """``count`` readings over the whole vocabulary: each fact in turn, with several engines once all are named."""
    names = sorted(known.facts)
    source = Source(kind="file", ref="bench")
    for number in range(count):
        fact = known.facts[names[number % len(names)]]
        engine = {"engine": str(number // len(names))}
        value: object = {"number": 0.37 + number % 7, "bool": number % 3 == 0, "list": ["a", "b"]}.get(
            fact.type, "word"
        )
        yield Reading(fact=fact.name, value=value, source=source, labels=engine)


def measure(known: Knowledge, repeats: int = REPEATS) -> list[float]:
    """CPU milliseconds of each full screen over a fresh ledger; parsing of conditions is done once before."""
    from agent.screen import screen

    items = list(readings(known))
    out: list[float] = []
    for number in range(repeats + 1):
        ledger = Ledger(known)
        ledger.extend(items)
        start = time.process_time()
        screen(known, ledger)
        if number:
            out.append((time.process_time() - start) * 1000)
    return out


def main() -> int:
    """Print the figures; 0 when the median stays under the limit."""
    from knowledge import load

    known = load()
    times = measure(known)
    median = statistics.median(times)
    print(
        f"{len(known.rules)} rules, {READINGS} readings of {len(known.facts)} facts: "
        f"median {median:.2f} ms, worst {max(times):.2f} ms of CPU, n={len(times)}"
    )
    return 0 if median <= MOST_MS else 1


if __name__ == "__main__":
    sys.exit(main())
