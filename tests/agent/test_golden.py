"""Terminal reports at 80 columns, as a person reads them. ``UPDATE_GOLDEN=1`` writes the files anew.

Numbers and evidence ids may move with calibration, so each run of digits stands as ``N``.
"""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from agent.diagnosis import Diagnosis
from agent.investigate import investigate, make_env
from agent.render.terminal import render
from agent.sources import Sources
from knowledge import load

GOLDEN = Path(__file__).parent / "golden"
CASES = Path(__file__).parents[2] / "evals" / "cases"
NAMES = ("lab-001", "lab-002", "inc-001")
KNOWN = load()


def diagnose(name: str, lang: str) -> Diagnosis:
    return investigate(make_env(Sources(paths=[CASES / name / "world"]), known=KNOWN, lang=lang))[0]


def printed(name: str, lang: str) -> str:
    out = io.StringIO()
    render(diagnose(name, lang), Console(file=out, width=80, highlight=False, soft_wrap=False))
    return out.getvalue()


def normal(text: str) -> str:
    """Digits as ``N`` and no trailing blanks."""
    lines = (line.rstrip() for line in text.splitlines())
    return re.sub(r"\d+", "N", "\n".join(lines)).strip() + "\n"


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", NAMES)
def test_terminal_report(name: str, lang: str) -> None:
    text = printed(name, lang)
    wide = [line for line in text.splitlines() if cell_len(line) > 80]
    assert wide == []
    assert "\x1b" not in text
    path = GOLDEN / f"{name}.{lang}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(normal(text), encoding="utf-8")
    assert path.is_file(), "run once with UPDATE_GOLDEN=1 and read what it wrote"
    assert normal(text) == path.read_text(encoding="utf-8"), "if meant so: UPDATE_GOLDEN=1, then read the diff"


def test_digits_alone_do_not_matter() -> None:
    assert normal("likely (65%) [E12]  \n") == normal("likely (7%) [E301]\n")
    assert normal("likely (65%)") != normal("possible (65%)")
