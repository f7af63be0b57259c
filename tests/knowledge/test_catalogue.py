"""Names of metrics over releases."""

from __future__ import annotations

import pytest

from knowledge.catalogue import catalogue, exists, find, names_in


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("vllm:gpu_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        ("vllm:num_preemptions_total", "vllm:num_preemptions"),
        ("ray_vllm_num_requests_running", "vllm:num_requests_running"),
        ("num_requests_waiting", "vllm:num_requests_waiting"),
        ("vllm:time_to_first_token_seconds_bucket", "vllm:time_to_first_token_seconds"),
        ('vllm:kv_cache_usage_perc{engine="0"}', "vllm:kv_cache_usage_perc"),
        ("http_requests_total", "http_requests"),
        ("vllm:iteration_tokens_total_sum", "vllm:iteration_tokens_total"),
    ],
)
def test_exposed_names_lead_to_their_family(given: str, name: str) -> None:
    found = find(given)
    assert found is not None
    assert found.name == name


def test_an_unknown_name_is_not_guessed() -> None:
    assert find("node_cpu_seconds_total") is None


def test_a_renamed_gauge_is_followed_over_versions() -> None:
    old = catalogue()["vllm:gpu_cache_usage_perc"]
    new = catalogue()["vllm:kv_cache_usage_perc"]
    assert exists(old, "0.9.1") is True
    assert exists(old, "0.12.0") is False
    assert names_in(old, "0.20.0") == ["vllm:kv_cache_usage_perc"]
    assert names_in(new, "0.8.5") == ["vllm:gpu_cache_usage_perc"]
    assert set(names_in(new, "0.10.0")) == {"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"}
    assert exists(new, "nightly") is None


def test_names_that_never_existed_say_so() -> None:
    for name in ("vllm:cache_usage", "vllm:gpu_utilization", "vllm:queue_length", "vllm:tpot_seconds"):
        assert catalogue()[name].never
        assert exists(catalogue()[name], "0.32.0") is False


def test_the_readers_names_stand_in_the_catalogue() -> None:
    from tools.metrics.names import canonical

    strange = [
        name
        for item in canonical().values()
        for name in item.names
        if name.startswith(("vllm:", "sglang:")) and find(name) is None
    ]
    assert strange == []
