"""A cause that only words speak for: the probe that decides stands before any change, at every door."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from agent.api import diagnose
from agent.diagnosis import Diagnosis
from agent.render import markdown, terminal
from agent.slack import blocks

TOLD = (
    "Through the inference gateway the client TTFT is 5 s at every rate we offer. "
    "The engines' own vllm:time_to_first_token_seconds averages 0.3 s and they sit idle. More pods?\n"
)


@pytest.fixture(scope="module")
def told() -> Diagnosis:
    return diagnose(text=TOLD)


def _terminal(d: Diagnosis) -> str:
    out = io.StringIO()
    terminal.render(d, Console(file=out, width=100))
    return out.getvalue()


def test_words_alone_are_possible_at_most_and_say_so(told: Diagnosis) -> None:
    assert (told.outcome, told.basis) == ("incident", "words")
    assert told.causes[0].family == "gateway_bottleneck"
    assert told.causes[0].band == "possible"
    assert any("only words" in cap for cap in told.causes[0].caps)
    assert told.decide_first()
    assert told.causes[0].family in told.probes[0].families


def test_the_probe_comes_before_the_change(told: Diagnosis) -> None:
    for text in (_terminal(told), markdown.render(told), json.dumps(blocks.answer(told, {}))):
        probe, change = text.index("Decide first"), text.index("If that bears it out")
        assert probe < change
        assert "Do first" not in text


def test_a_reading_puts_the_change_first(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n" * 2
    )
    shown = diagnose(tmp_path)
    assert (shown.outcome, shown.basis) == ("incident", "readings")
    assert not shown.decide_first()
    assert "Decide first" not in _terminal(shown)
