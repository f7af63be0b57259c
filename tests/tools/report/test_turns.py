"""What the counts of several turns show of the prefix cache."""

from __future__ import annotations

import pytest

from tools.report.turns import readings


def _facts(text: str) -> set[str]:
    return {r.fact for r in readings("t.log", list(enumerate(text.splitlines(), 1)))}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The answer of the turn before is prefilled again.
        ("turn 1: prompt=400 output=120 cached=0\nturn 2: prompt=560 output=90 cached=400\n", {"concept.missing_equals_output"}),
        (("| turn | prompt tokens | output tokens | cached tokens |\n|---|---|---|---|\n| 1 | 1,000 | 300 | 0 |\n"
         "| 2 | 1,400 | 250 | 992 |\n| 3 | 1,800 | 100 | 1,392 |\n"), {"concept.missing_equals_output"}),
        # A fixed head is found and nothing behind it.
        ("a: input=9000, cached=2048\nb: input=9900, cached=2048\nc: input=11000, cached=2048\n", {"concept.common_prefix_pinned"}),
        ("a: input=900 cached=0\nb: input=1800 cached=0\n", {"concept.cache_insert_missing"}),
        ("a: input=9000 cached=0\nb: input=9900 cached=8900\nc: input=11000 cached=500\n", {"concept.hits_decay"}),
        # All of the turn before is found: health. One turn, or turns that do not grow, show nothing.
        ("a: input=400 output=100 cached=0\nb: input=600 output=90 cached=496\n", set()),
        ("a: input=400 output=100 cached=0\n", set()),
        ("a: input=400 output=100 cached=0\nb: input=90 output=90 cached=0\n", set()),
        ("prompt: 3.2 s, cached: 0.1 s\nprompt: 4.2 s, cached: 0.1 s\n", set()),
        ("hit rate cached: 40 %, prompt: 50 %\n", set()),
    ],
)  # fmt: skip
def test_shapes_of_turns(text: str, expected: set[str]) -> None:
    assert _facts(text) == expected


def test_the_span_is_the_turn_that_shows_it() -> None:
    (found,) = readings("t.log", [(7, "r1: in=400 out=120 cached=0"), (8, "  r2: in=560 out=90 cached=400")])
    assert (found.source.kind, found.source.line, found.source.span) == ("words", 8, "r2: in=560 out=90 cached=400")
