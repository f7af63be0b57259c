"""Data-parallel ranks of one log beside each other."""

from __future__ import annotations

from tools.contract import Context
from tools.logs.read import read
from tools.part import Part

STAT = (
    "INFO 03-11 06:16:52 [loggers.py:257] Engine {rank:03}: Avg prompt throughput: 16.5 tokens/s, Avg generation "
    "throughput: 100.0 tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {kv}%, "
    "Prefix cache hit rate: 0.0%\n"
)


def _facts(text: str) -> dict[str, object]:
    found = read([Part(name="server.log", data=text.encode())], Context()).readings
    return {r.fact: r.value for r in found if r.fact.startswith("replicas.")}


def test_one_rank_queues_while_another_has_room() -> None:
    text = STAT.format(rank=0, running=60, waiting=40, kv=99.0) + STAT.format(rank=1, running=3, waiting=0, kv=4.0)
    facts = _facts(text)
    assert facts["replicas.count"] == 2
    assert facts["replicas.load_max_over_mean"] == round(100 / 51.5, 4)
    assert facts["replicas.kv_gap"] == 0.95
    assert facts["replicas.waiting_beside_free"] is True


def test_equal_ranks_are_not_unequal() -> None:
    text = "".join(STAT.format(rank=r, running=60, waiting=40, kv=99.0) for r in range(4))
    facts = _facts(text)
    assert facts["replicas.load_max_over_mean"] == 1.0
    assert facts["replicas.waiting_beside_free"] is False


def test_one_engine_says_nothing_of_ranks() -> None:
    assert _facts(STAT.format(rank=0, running=60, waiting=40, kv=99.0) * 5) == {}


def test_sglang_rank_lines_without_their_head() -> None:
    line = (
        "[DP{rank}] #running-req: {running}, #token: 100, token_usage: {kv}, #prealloc-req: {queue}, #transfer-req: 0\n"
    )
    text = line.format(rank=0, running=1, kv=0.97, queue=21) + line.format(rank=1, running=1, kv=0.2, queue=0)
    facts = _facts(text)
    assert facts["replicas.count"] == 2
    assert facts["replicas.waiting_beside_free"] is True


def test_tensor_parallel_ranks_are_one_engine() -> None:
    line = "[2025-10-02 10:00:0{s} DP0 TP{rank}] Decode batch. #running-req: {running}, #token: 100, token usage: 0.2, #queue-req: 0\n"
    text = line.format(s=1, rank=0, running=1) + line.format(s=2, rank=1, running=9)
    assert _facts(text) == {}
