"""Made worlds: the generator gives the committed pages again, and its pages agree with themselves."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from evals.bench.engine_model import Engine, Request, Setup
from evals.bench.make_worlds import loop, page, poisson, worlds, write
from evals.schema import CASES


@pytest.mark.parametrize("case", ["case-0521", "case-0523", "case-0529"])
def test_generator_gives_the_committed_pages(case: str, tmp_path: Path) -> None:
    write(case, worlds()[case], tmp_path)
    made = tmp_path / case / "world"
    shipped = CASES / case / "world"
    assert sorted(p.name for p in made.iterdir()) == sorted(p.name for p in shipped.iterdir())
    for path in made.iterdir():
        again, before = path.read_bytes(), (shipped / path.name).read_bytes()
        if path.suffix == ".gz":
            again, before = gzip.decompress(again), gzip.decompress(before)
        assert again == before, path.name


def _engine(**more: object) -> Engine:
    def step(prefill: int, decode: int, kv: int) -> float:
        return 0.01 + prefill * 1e-5 + decode * 1e-4

    fields: dict[str, object] = {"step": step, **loop(12, 200, 100, 0.5, gap=0.01), **more}
    return Engine(Setup(**fields), seed=1)  # type: ignore[arg-type]


def test_a_small_pool_preempts_and_every_token_is_still_made() -> None:
    full, small = _engine(pool=100_000), _engine(pool=2_400)
    for engine in (full, small):
        engine.until(60.0)
    assert full.count.get("preemptions", 0) == 0
    assert small.count["preemptions"] > 10
    assert small.used() <= 2_400 + len(small.running)
    for engine in (full, small):
        h = engine.hist["request_generation_tokens"]
        finished = engine.count["finished"]
        assert h.n == finished > 0
        made = h.total + sum(r.made for r in (*engine.running, *engine.waiting))
        assert made == engine.count["generation_tokens"]


def test_the_cap_binds_and_the_queue_shows_it() -> None:
    engine = _engine(max_num_seqs=3, pool=100_000)
    engine.until(5.0)
    assert (len(engine.running), len(engine.waiting)) == (3, 9)


def test_acceptance_is_counted_by_position() -> None:
    engine = _engine(drafts=3, accept=0.5, pool=100_000)
    engine.until(20.0)
    drafts = engine.count["drafts"]
    assert engine.count["draft_tokens"] == 3 * drafts
    assert sum(engine.per_position) == engine.count["accepted_tokens"]
    assert engine.per_position[0] / drafts == pytest.approx(0.5, abs=0.05)
    assert engine.per_position[0] > engine.per_position[1] > engine.per_position[2]


def test_arrivals_are_open_loop_and_seeded() -> None:
    make = poisson(2.0, 50.0, lambda rng: 10, lambda rng: 5)
    one, two = make(random.Random(3)), make(random.Random(3))
    assert [r.arrived for r in one] == [r.arrived for r in two]
    assert 70 <= len(one) <= 130
    assert all(isinstance(r, Request) for r in one)


def test_counters_never_fall_from_page_to_page() -> None:
    world = worlds()["case-0529"]
    engine = Engine(world.setup, seed=529)
    last: dict[str, float] = {}
    for moment in (10.0, 20.0, 40.0):
        engine.until(moment)
        text = gzip.decompress(gzip.compress(page(engine, world).encode())).decode()
        now = {}
        for line in text.splitlines():
            name, _, value = line.rpartition(" ")
            if name and not line.startswith("#") and ("_total{" in name or "_bucket{" in name or "_count{" in name):
                now[name] = float(value)
        assert all(now[name] >= value for name, value in last.items())
        last = now
    assert len(last) > 100
