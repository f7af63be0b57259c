"""Fixtures of the chat tests: an environment of their own, and terminals that are closed at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.chat.terminal import ROOT, Terminal


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("INFERDX_", "LANG", "LC_"))}
    return {**keep, "INFERDX_DATA": str(tmp_path), "PYTHONPATH": str(ROOT), "TERM": "xterm", "LC_ALL": "C.UTF-8",
            "COLUMNS": "100", "XDG_CONFIG_HOME": str(tmp_path)}  # fmt: skip


@pytest.fixture
def terminals(env: dict[str, str]) -> Iterator[list[Terminal]]:
    made: list[Terminal] = []
    yield made
    for terminal in made:
        terminal.end()
