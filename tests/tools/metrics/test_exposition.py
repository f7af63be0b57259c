"""The tolerant exposition reader against the official one, and against what incidents bring."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tools.metrics.exposition import parse_page
from tools.metrics.sniff import sniff
from tools.part import Part

ROOT = Path(__file__).parents[3]
SCRAPE = ROOT / "evals" / "cases" / "lab-016" / "world" / "metrics-005.prom.gz"


def numbered(text: str) -> list[tuple[int, str]]:
    return list(enumerate(text.splitlines(), 1))


def test_agrees_with_the_official_parser_on_a_real_scrape() -> None:
    text = Part(name="m", path=SCRAPE).text()
    ours = parse_page(numbered(text), wanted=None).samples
    theirs = {
        (s.name, tuple(sorted(s.labels.items()))): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }
    assert len(ours) == len(theirs) > 400
    assert all(key in ours and (ours[key].value == v or math.isnan(v)) for key, v in theirs.items())


@pytest.mark.parametrize(
    ("line", "name", "labels", "value"),
    [
        ("a 1", "a", {}, 1.0),
        ('a{x="1",} 2e3', "a", {"x": "1"}, 2000.0),
        ('a{x="}",y="\\"q\\""} +Inf', "a", {"x": "}", "y": '"q"'}, math.inf),
        ('{"odd.name",x="1"} 3', "odd.name", {"x": "1"}, 3.0),
        ('a_bucket{le="0.1"} 4 # {trace_id="t"} 0.05 1.6e9', "a_bucket", {"le": "0.1"}, 4.0),
        ("a 5 1795970332780", "a", {}, 5.0),
        ('a{m="Qwen/Qwen3 8B"} 6', "a", {"m": "Qwen/Qwen3 8B"}, 6.0),
    ],
)
def test_forms_of_a_line(line: str, name: str, labels: dict[str, str], value: float) -> None:
    page = parse_page([(1, line)], wanted=None)
    ((key, sample),) = page.samples.items()
    assert (key[0], dict(key[1]), sample.value, page.bad) == (name, labels, value, 0)


@pytest.mark.parametrize("line", ["a", 'a{x="1" 2', "a one", "a{x=1} 2", "a 1 2 3x", "{} 1", "☃ 1"])
def test_bad_lines_are_counted_and_the_rest_kept(line: str) -> None:
    page = parse_page([(1, "good 1"), (2, line), (3, "better 2")], wanted=None)
    assert page.good >= 2 and ("good", ()) in page.samples and ("better", ()) in page.samples
    assert page.bad + page.good == 3


def test_html_is_recognised() -> None:
    assert parse_page(numbered("<html><body>502 Bad Gateway</body></html>")).html


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400))
def test_no_bytes_break_it(noise: bytes) -> None:
    part = Part(name="m.prom", data=b"vllm:num_requests_running 1\n" + noise)
    page = parse_page(part.lines(), wanted=None)
    assert page.good + page.bad >= 1


def test_sixty_times_the_page_costs_about_sixty_times() -> None:
    import time

    text = Part(name="m", path=SCRAPE).text()
    spent = []
    for times in (2, 20):
        body = numbered(text * times)
        start = time.process_time()
        parse_page(body, wanted=None)
        spent.append(time.process_time() - start)
    assert spent[1] < 30 * max(spent[0], 0.004)


@pytest.mark.parametrize(
    ("name", "head", "sure"),
    [
        ("metrics.txt", "queue   engine A   engine B\nwaiting      80          0\n", False),
        ("metrics.txt", "Waiting requests rise to 200 while KV stays at 20 %.\n", False),
        ("metrics.txt", "my_queue_depth 4\nmy_other 5\n", True),
        ("metrics.txt", "# HELP my_queue_depth what waits\n", True),
        ("metrics.txt", "<html><title>502 Bad Gateway</title>", True),
        ("metrics.txt", "upstream connect error or disconnect/reset before headers\n", True),
        ("metrics-000.prom", "nothing that a page would say\n", True),
        ("metrics.txt", "", True),
    ],
)
def test_a_name_alone_does_not_make_a_page_of_somebodys_table(name: str, head: str, sure: bool) -> None:
    assert (sniff(name, head) >= 0.5) is sure
