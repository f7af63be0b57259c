"""Words of complaint are counted once each, not where they are denied."""

from __future__ import annotations

import pytest

from tools.contract import Context
from tools.part import Part
from tools.report.read import read


def count(text: str) -> float:
    found = [
        r for r in read([Part(name="r.md", data=text.encode())], Context()).readings if r.fact == "complaint.words"
    ]
    assert len(found) <= 1
    return found[0].value if found else 0.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Two H100, vLLM 0.11, eight users. Is this the right size for us?", 0),
        ("The pods restart and requests time out.", 2),
        ("It got slower, then slower again.", 1),
        ("No timeouts, nothing crashes.", 0),
        ("服务越来越慢，经常超时", 2),
    ],
)
def test_distinct_words_that_are_not_denied(text: str, words: int) -> None:
    assert count(text) == words
