"""A tiny set of cases in a temporary folder, for tests of the runner and the scorers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evals.schema import CaseProvenance, Label, dump_label

LOG = (
    "(APIServer pid=1) INFO 10-12 14:20:05 [loggers.py:310] Engine 000: Avg prompt throughput: 100.0 tokens/s, "
    "Avg generation throughput: 50.0 tokens/s, Running: 4 reqs, Waiting: 60 reqs, GPU KV cache usage: 2.0%, "
    "Prefix cache hit rate: 0.0%\n"
)


def make_label(id: str, **changes: object) -> Label:
    """A valid incident label, changed as asked."""
    fields: dict[str, object] = {
        "id": id, "split": "dev", "outcome": "incident", "layer": "scheduling", "cause_families": ["sequence_limit"],
        "also_accepted": [], "mechanism": "m", "chain": [("scheduling", "sequence_limit"), ("symptom", "ttft")],
        "decoys": ["overload"], "decisive_files": ["server.log"], "acceptable_next_probes": ["launch command"],
        "first_safe_action": "", "forbidden_actions": ["add replicas first"], "fix": "", "line": "a – b – c – d",
        "origin": id, "n_snapshots": 0, "quality": "B", "provenance": CaseProvenance(kind="made"),
    }  # fmt: skip
    fields.update(changes)
    if fields["outcome"] != "incident":
        fields = {"layer": None, **fields, **{k: changes.get(k, v) for k, v in
                  {"layer": None, "cause_families": [], "chain": [("symptom", "none")], "decisive_files": []}.items()}}  # fmt: skip
    return Label(**fields)  # type: ignore[arg-type]


Writer = Callable[..., tuple[Path, Path]]


@pytest.fixture
def small_set(tmp_path: Path) -> Writer:
    """Writes labels and one-file worlds; returns the two folders."""

    def write(labels: list[Label], files: dict[str, str] | None = None) -> tuple[Path, Path]:
        cases, tree = tmp_path / "cases", tmp_path / "labels"
        tree.mkdir(exist_ok=True)
        for label in labels:
            world = cases / label.id / "world"
            world.mkdir(parents=True)
            for name, text in (files or {"server.log": LOG}).items():
                (world / name).write_text(text)
            (tree / f"{label.id}.yaml").write_text(dump_label(label))
        return cases, tree

    return write
