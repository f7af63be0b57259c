"""A handful of calls to a real small model: the product must be right with it, whatever it says."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.assistant import BY_MODEL, ModelAssistant
from agent.investigate import investigate, make_env
from agent.llm import Model
from agent.llm_settings import Settings
from agent.sources import Sources, words_of
from knowledge import load

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[2]
SERVE = ROOT.parent / "shared" / "llm" / "serve.sh"
WORLD = ROOT / "evals" / "cases" / "case-0200" / "world"
PORT = 8089


def _up() -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", PORT)) == 0


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    started = False
    if not _up():
        if os.environ.get("INFERDX_REAL_MODEL") != "1":
            pytest.skip(f"no model listens on {PORT}, and INFERDX_REAL_MODEL=1 is not set")
        if not SERVE.exists():
            pytest.skip(f"{SERVE.name} is not beside the project")
        done = subprocess.run(["bash", str(SERVE), "start"], capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            pytest.skip(f"the model cannot be set up: {done.stderr[-200:]}")
        started = True
    name = os.environ.get("INFERDX_MODEL", "qwen2.5-coder-1.5b-instruct")
    limits = {"timeout_s": 240.0, "max_seconds": 600.0}
    yield Model(Settings(name=name, base_url=f"http://127.0.0.1:{PORT}/v1", **limits))
    if started:
        subprocess.run(["bash", str(SERVE), "stop"], capture_output=True, timeout=60, check=False)


def test_capabilities_of_a_real_server(model: Model) -> None:
    can = model.can()
    assert can.schema and can.streaming and 1024 <= can.context <= 32768


def test_the_verdict_with_a_real_model_is_the_rules_own(model: Model) -> None:
    model.can()
    before = model.used.calls
    plain, _ = investigate(make_env(Sources(paths=[WORLD]), known=load()))
    sources = Sources(paths=[WORLD])
    env = make_env(sources, known=load(), words=lambda: words_of(sources), max_seconds=700)
    env.assistant = ModelAssistant(model, load())
    told, _ = investigate(env)
    assert model.used.calls - before <= 4
    if not any(BY_MODEL in e.caveats for e in told.evidence):
        assert [(c.family, c.confidence) for c in told.causes] == [(c.family, c.confidence) for c in plain.causes]
    ids = {e.id for e in told.evidence}
    assert all(any(f"[{i}]" in sentence for i in ids) for sentence in told.narrative)
