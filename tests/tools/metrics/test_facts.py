"""Windows over real time: resets, engines, histograms, one scrape, no clock, other exporters."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tools.contract import Context, ReadResult
from tools.metrics.read import read
from tools.part import Part


def page(at: float | None, text: str, name: str = "") -> Part:
    return Part(name=name or f"metrics-{at}.prom", data=text.encode(), time=at)


def facts(*parts: Part, **match: str) -> dict[str, Any]:
    return {r.fact: r.value for r in read(list(parts), Context(match=match)).readings}


def vllm(
    running: float = 0,
    waiting: float = 0,
    kv: float = 0,
    done: float = 0,
    tokens: float = 0,
    preempt: float = 0,
    engine: str = "0",
) -> str:
    lab = f'engine="{engine}",model_name="m"'
    return (
        f"vllm:num_requests_running{{{lab}}} {running}\nvllm:num_requests_waiting{{{lab}}} {waiting}\n"
        f"vllm:kv_cache_usage_perc{{{lab}}} {kv}\nvllm:generation_tokens_total{{{lab}}} {tokens}\n"
        f"vllm:num_preemptions_total{{{lab}}} {preempt}\n"
        f'vllm:request_success_total{{{lab},finished_reason="stop"}} {done}\n'
    )


def test_counters_are_rates_over_real_time() -> None:
    got = facts(page(100, vllm(tokens=1000)), page(130, vllm(tokens=4000)))
    assert got["throughput.generation_tokens_per_s.mean"] == 100
    assert got["window.seconds"] == 30


def test_a_reset_is_a_restart_not_a_negative_rate() -> None:
    got = facts(page(0, vllm(tokens=5000, preempt=412)), page(10, vllm(tokens=50)), page(20, vllm(tokens=80)))
    assert got["throughput.generation_tokens.count"] == 80
    assert got["preemptions.count"] == 0
    assert got["engine.restarts"] == 1


def test_one_scrape_has_no_rate() -> None:
    got = facts(page(100, vllm(running=3, kv=0.5, preempt=412, done=9)))
    assert got["queue.running.max"] == 3 and got["kv.usage.last"] == 0.5
    assert "preemptions.count" not in got and "throughput.requests_per_s.mean" not in got
    assert got["preemptions.since_start"] == 412


@pytest.mark.parametrize(
    ("queries", "hits", "done", "rate"),
    [(90_000, 0, 12, 0.0), (90_000, 7, 12, None), (600, 0, 12, None), (90_000, 0, 1, None)],
)
def test_hits_at_zero_since_start_are_a_rate_of_zero(queries: int, hits: int, done: int, rate: float | None) -> None:
    counters = f"vllm:prefix_cache_queries_total {queries}\nvllm:prefix_cache_hits_total {hits}\n"
    assert facts(page(100, counters + vllm(done=done))).get("prefix.hit_rate") == rate


def _pool(engine: str, *, blocks: int, model: str = "m", running: int = 2) -> str:
    lab = f'engine="{engine}",model_name="{model}"'
    return (
        f"vllm:num_requests_running{{{lab}}} {running}\nvllm:kv_cache_usage_perc{{{lab}}} 0.4\n"
        f'vllm:cache_config_info{{block_size="16",num_gpu_blocks="{blocks}",engine="{engine}"}} 1\n'
    )


def test_pools_of_unequal_size_and_the_fullest_engine_are_told() -> None:
    got = facts(page(0, _pool("0", blocks=3000, running=5) + _pool("1", blocks=1000, running=17)))
    assert got["replicas.pool_max_over_min"] == 3.0 and got["replicas.running_max"] == 17
    other = facts(page(0, _pool("0", blocks=3000) + _pool("1", blocks=1000, model="n")))
    assert "replicas.pool_max_over_min" not in other
    assert "replicas.running_max" not in facts(page(0, _pool("0", blocks=3000)))


def test_sglang_pools_are_its_token_totals() -> None:
    text = "".join(
        f'sglang:num_running_reqs{{dp_rank="{r}"}} 3\nsglang:max_total_num_tokens{{dp_rank="{r}"}} {size}\n'
        for r, size in ((0, 400_000), (1, 100_000))
    )
    assert facts(page(0, text))["replicas.pool_max_over_min"] == 4.0


def test_scrapes_without_a_clock_give_ratios_and_no_rates() -> None:
    result = read(
        [page(None, vllm(tokens=4000, done=8), "b.prom"), page(None, vllm(tokens=1000, done=2), "a.prom")], Context()
    )
    got = {r.fact: r.value for r in result.readings}
    assert got["throughput.generation_tokens.count"] == 3000
    assert "throughput.generation_tokens_per_s.mean" not in got and "window.seconds" not in got
    assert any("without a time" in p.what for p in result.problems)


def test_engines_are_summed_for_load_and_maxed_for_kv() -> None:
    both = [vllm(running=4, kv=0.2, engine="0") + vllm(running=12, waiting=9, kv=0.9, engine="1") for _ in range(2)]
    got = facts(page(0, both[0]), page(5, both[1]))
    assert got["queue.running.max"] == 16 and got["kv.usage.max"] == 0.9
    assert got["replicas.count"] == 2 and got["replicas.kv_gap"] == pytest.approx(0.7)
    assert got["replicas.load_max_over_mean"] == pytest.approx(21 / 12.5)
    assert got["replicas.waiting_beside_free"] is True


def test_an_engine_of_another_model_has_no_room_for_these_requests() -> None:
    calm = vllm(running=4, kv=0.2, engine="0")
    crowded = vllm(running=12, waiting=9, kv=0.9, engine="1")
    same = facts(page(0, calm + crowded), page(5, calm + crowded))
    other = crowded.replace('model_name="m"', 'model_name="n"')
    assert same["replicas.waiting_beside_free"] is True
    assert "replicas.waiting_beside_free" not in facts(page(0, calm + other), page(5, calm + other))
    full = vllm(running=4, kv=0.8, engine="0")
    assert facts(page(0, full + crowded), page(5, full + crowded))["replicas.waiting_beside_free"] is False


def test_a_status_that_appears_late_started_from_zero() -> None:
    first = vllm() + 'http_requests_total{status="2xx"} 10\n'
    last = vllm() + 'http_requests_total{status="2xx"} 14\nhttp_requests_total{status="4xx"} 6\n'
    got = facts(page(0, first), page(10, last))
    assert got["http.4xx.count"] == 6 and got["http.4xx.share"] == 0.6


def histogram(name: str, buckets: dict[str, float], total: float) -> str:
    rows = "".join(f'{name}_bucket{{le="{le}",engine="0"}} {n}\n' for le, n in buckets.items())
    return rows + f'{name}_sum{{engine="0"}} {total}\n{name}_count{{engine="0"}} {buckets["+Inf"]}\n'


def test_a_quantile_beyond_the_last_bucket_says_so() -> None:
    name = "vllm:e2e_request_latency_seconds"
    before = histogram(name, {"0.3": 0, "1": 0, "+Inf": 0}, 0)
    after = histogram(name, {"0.3": 0, "1": 10, "+Inf": 100}, 9000)
    readings = read([page(0, vllm() + before), page(10, vllm() + after)], Context()).readings
    p99 = next(r for r in readings if r.fact == "e2e.p99_s")
    assert p99.value == 1 and any("beyond the last bucket" in c for c in p99.caveats)
    assert next(r for r in readings if r.fact == "e2e.mean_s").value == 90


def test_a_quantile_in_the_first_bucket_is_flagged() -> None:
    name = "vllm:request_queue_time_seconds"
    after = histogram(name, {"0.3": 100, "0.5": 100, "+Inf": 100}, 0.1)
    before = histogram(name, {"0.3": 0, "0.5": 0, "+Inf": 0}, 0)
    readings = read([page(0, vllm() + before), page(10, vllm() + after)], Context()).readings
    assert any("anywhere in 0–0.3" in c for c in next(r for r in readings if r.fact == "queue_time.p99_s").caveats)
    assert next(r for r in readings if r.fact == "queue_time.mean_s").value == pytest.approx(0.001)


def test_old_names_are_read_as_new_ones() -> None:
    old = 'vllm:gpu_cache_usage_perc{model_name="m"} 0.7\nvllm:num_requests_running{model_name="m"} 1\n'
    assert facts(page(0, old))["kv.usage.last"] == 0.7
    ray = 'ray_vllm_num_requests_running{model_name="m"} 5\n'
    assert facts(page(0, ray))["queue.running.last"] == 5


def test_a_frozen_engine_looks_calm_and_is_seen() -> None:
    got = facts(*[page(t, vllm(running=5, tokens=900 if t else 800)) for t in (0, 5, 10, 15, 20)])
    assert got["engine.frozen_s"] == 15


def test_labels_pick_one_model() -> None:
    two = 'vllm:num_requests_running{model_name="a"} 1\nvllm:num_requests_running{model_name="b"} 8\n'
    assert facts(page(0, two), model_name="b")["queue.running.last"] == 8


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("", "metrics.empty_page"),
        ("<html><head><title>502 Bad Gateway</title></head></html>", "metrics.html_page"),
        ("node_cpu_seconds_total 5\nnode_load1 2\n", "metrics.other_exporter"),
        ('http_requests_total{status="2xx"} 5\nprocess_cpu_seconds_total 3\n', "metrics.engine_series_absent"),
        ("not a metric at all\nreally not\n", "metrics.empty_page"),
    ],
)
def test_what_is_no_engine_page_is_named(text: str, fact: str) -> None:
    result: ReadResult = read([page(0, text)], Context())
    assert fact in {r.fact for r in result.readings}
    assert result.problems and all(len(p.line().splitlines()) == 1 for p in result.problems)
    assert not {r.fact for r in result.readings} & {"queue.running.last", "kv.usage.last"}


def test_the_index_gives_the_times() -> None:
    index = Part(
        name="scrapes.json",
        data=json.dumps({"scrapes": [{"file": "a.prom", "unix": 50.0}, {"file": "b.prom", "unix": 70.0}]}).encode(),
    )
    got = facts(index, page(None, vllm(tokens=0), "a.prom"), page(None, vllm(tokens=100), "b.prom"))
    assert got["throughput.generation_tokens_per_s.mean"] == 5


def test_a_cut_gzip_keeps_what_came_before() -> None:
    import gzip

    whole = gzip.compress((vllm(running=2) * 300).encode())
    result = read([Part(name="m.prom.gz", data=whole[: len(whole) // 2], time=0)], Context())
    assert any("cut" in p.what for p in result.problems)
