"""Replicas or ranks beside each other in a person's table."""

from __future__ import annotations

import pytest

from tools.contract import Context, Reading
from tools.part import Part
from tools.report.read import read

COLUMNS = """three boxes, one engine each

                    worker 1    worker 2    worker 3
running / waiting   40 / 95     6 / 0       4 / 0
KV usage            97 %        12 %        9 %
KV cache size       410,000     410,112     410,064
"""
ROWS = """| replica | running | waiting | KV use |
|---|---|---|---|
| a1 | 33 | 71 | 99 % |
| a2 | 12-14 | 0 | 21-25 % |
| a3 | 9 | 0 | 14 % |
"""
KEYED = """dp_rank=0 running_reqs=0 queue_reqs=0
dp_rank=1 running_reqs=2 queue_reqs=17
dp_rank=2 running_reqs=0 queue_reqs=0
"""


def _told(text: str) -> dict[str, Reading]:
    out = read([Part(name="table.txt", data=text.encode())], Context())
    return {r.fact: r for r in out.readings if r.fact.startswith("replicas.")}


@pytest.mark.parametrize(
    ("text", "count", "load", "ranks", "crowded"),
    [
        (COLUMNS, 3, 135 / (145 / 3), False, "running / waiting   40 / 95"),
        (ROWS, 3, 104 / (125 / 3), False, "| a1 |"),
        (KEYED, 3, 3.0, True, "dp_rank=1"),
    ],
)
def test_three_layouts(text: str, count: int, load: float, ranks: bool, crowded: str) -> None:
    found = _told(text)
    assert found["replicas.count"].value == count
    assert found["replicas.load_max_over_mean"].value == pytest.approx(load, abs=1e-3)
    assert found["replicas.are_ranks"].value is ranks
    assert found["replicas.waiting_beside_free"].value is True
    source = found["replicas.count"].source
    assert source.kind == "words" and source.span.startswith(crowded)


def test_pools_of_different_size_are_seen() -> None:
    assert _told(COLUMNS)["replicas.pool_max_over_min"].value == pytest.approx(1.0, abs=1e-3)
    smaller = COLUMNS.replace("410,000 ", "41,000  ")
    assert _told(smaller)["replicas.pool_max_over_min"].value == pytest.approx(10.0, abs=0.01)
    assert _told(COLUMNS)["replicas.kv_gap"].value == pytest.approx(0.88)


def test_equal_replicas_are_not_uneven() -> None:
    text = COLUMNS.replace("40 / 95", "5 / 0  ").replace("97 %", "11 %")
    found = _told(text)
    assert found["replicas.waiting_beside_free"].value is False
    assert found["replicas.load_max_over_mean"].value < 1.3


@pytest.mark.parametrize(
    "text",
    [
        "| concurrency | running | waiting |\n|---|---|---|\n| 8 | 8 | 0 |\n| 64 | 16 | 48 |\n",
        "rank 3 of 8 hangs at step 5730, running=1",
        "| worker | version |\n|---|---|\n| 1 | 0.9 |\n| 2 | 0.10 |\n",
        "node A: 8x H100, node B: 8x H200; running 40, waiting 3",
        "                 engine A   engine B\nTTFT p99         2.1 s      0.4 s\n",
    ],
)
def test_other_tables_say_nothing_of_replicas(text: str) -> None:
    assert _told(text) == {}
