"""The shipped set keeps its own rules, and arms of known score score it. No model."""

from __future__ import annotations

import pytest

from evals.check import check
from evals.concepts import action_matches, probe_matches


def test_the_bench_checks_itself() -> None:
    findings = check()
    assert {f.name for f in findings} >= {"oracle scores 100 %", "shuffled labels score at chance", "mix"}
    assert [f.line() for f in findings if not f.holds] == []


@pytest.mark.parametrize(
    ("said", "accepted", "same"),
    [
        ("nsys profile -t cuda for ten steps", "kernel trace of one fast and one slow process", True),
        ("Is the GPU held back? | nvidia-smi -q -d PERFORMANCE", "clocks and event reasons", True),
        ("the same load with --max-num-batched-tokens 8192", "one run with --max-num-batched-tokens 2048", True),
        ("py-spy dump --pid of the engine", "packet capture at the proxy", False),
        ("Running against waiting on /metrics", "queue, waiting and running over the night", True),
        ("prompt texts of two requests", "dmesg for NVRM Xid", False),
    ],
)
def test_probes_match_by_what_they_read(said: str, accepted: str, same: bool) -> None:
    assert probe_matches(said, accepted) is same


@pytest.mark.parametrize(
    ("said", "forbidden", "same"),
    [
        ("Raise --gpu-memory-utilization to 0.95", "raise gpu-memory-utilization", True),
        ("Raise --gpu-memory-utilization to 0.95", "raise gpu-memory-utilization to the edge", False),
        ("Fewer draft tokens lower num_speculative_tokens", "raise the number of draft tokens", False),
        ("Add a replica", "add GPUs", True),
        ("Raise --max-num-seqs", "Lower --max-num-seqs", False),
        ("Switch off the feature that downgrades graphs", "Roll back the server", False),
        ("Drop --enforce-eager", "kill the foreign process", False),
    ],
)
def test_actions_match_by_what_they_change(said: str, forbidden: str, same: bool) -> None:
    assert action_matches(said, forbidden) is same
