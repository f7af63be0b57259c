"""Full-text search in both languages."""

from __future__ import annotations

import pytest

from agent.search import Document, Index, index, words
from knowledge import load


def test_words_are_split_and_chinese_is_paired() -> None:
    assert list(words("max_num_seqs")) == ["max_num_seq", "max", "num", "seq"]
    assert list(words("显存碎片")) == ["显存", "存碎", "碎片"]
    assert list(words("KV 墙")) == ["kv", "墙"]


@pytest.fixture(scope="module")
def whole() -> Index:
    return index(load())


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("waiting high kv low", "symptom-routing"),
        ("kv cache preempted recompute", "kv_cache_exhausted"),
        ("gpu_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        ("max_num_batched_tokens", "tradeoffs.max_num_batched_tokens"),
        ("littles law", "capacity"),
        ("load test matrix", "loadtest"),
        ("显存没满 但 OOM", "memory-partition"),
        ("前缀缓存 命中率低", "prefix-cache"),
        ("重试 雪崩", "retry_storm"),
        ("profiler overhead", "profiler-overhead"),
        ("swap-space", "vllm:swap-space"),
        ("cuda graph capture size", "cuda-graphs"),
    ],
)
def test_a_question_finds_its_answer_among_the_first(whole: Index, query: str, wanted: str) -> None:
    found = [hit.id for hit in whole.search(query, limit=10)]
    assert wanted in found, found


def test_kinds_narrow_the_search_and_unknown_words_find_nothing(whole: Index) -> None:
    assert {hit.kind for hit in whole.search("kv cache", kinds=["page"])} == {"page"}
    assert whole.search("zzzxqy") == []
    assert whole.search("") == []


def test_rare_words_weigh_more_and_the_order_is_stable() -> None:
    small = Index()
    for number in range(20):
        small.add(Document("page", f"p{number:02d}", "", "", "common words here"))
    small.add(Document("page", "rare", "", "", "common zebra"))
    assert small.search("common zebra")[0].id == "rare"
    assert [hit.id for hit in small.search("words", limit=3)] == ["p00", "p01", "p02"]
