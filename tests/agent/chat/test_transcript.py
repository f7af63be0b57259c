"""The transcript in the manual is what the program says today."""

from __future__ import annotations

import re

from evals.bench.chat_transcript import PLAIN, held, talk


def _stable(text: str) -> str:
    return re.sub(r"\d+\.\d+ s\b", "N s", text)


def test_the_manual_shows_what_the_program_says() -> None:
    assert _stable(held("no model")) == _stable(talk(PLAIN)), "run python -m evals.bench.chat_transcript"
