"""M5b: how many of the files that decide the case does the answer's cause or chain cite."""

from __future__ import annotations

from collections.abc import Sequence

from evals.rows import Row
from evals.schema import Label
from evals.scorers.base import Measure, Pair, files_group, rate


def score(label: Label, row: Row) -> float | None:
    """Recall of decisive files (scrapes of one series count as one) among the cited, on incident answers."""
    if label.outcome != "incident" or not label.decisive_files or row.said is None or row.said.outcome != "incident":
        return None
    decisive = {files_group(name) for name in label.decisive_files}
    cited = {files_group(name) for name in row.said.cited_files}
    return len(decisive & cited) / len(decisive)


def measure(pairs: Sequence[Pair]) -> list[Measure]:
    """Recall of decisive files."""
    return [rate("M5b", "recall of decisive files among citations", pairs, score)]
