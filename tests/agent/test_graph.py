"""The LangGraph wiring gives what the light driver gives, keeps silent towards vendors, and decodes strictly."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from agent.graph import build, run_graph, sqlite_saver, stream
from agent.investigate import investigate, make_env
from agent.sources import Sources
from agent.state import Env
from knowledge import load

ROOT = Path(__file__).parents[2]
CASES = ROOT / "evals" / "cases"
SAMPLE = ["lab-008", "inc-003", "inc-020", "inc-041", "case-0200", "case-0260", "case-0330"]


def env(case: str, **options: Any) -> Env:
    return make_env(Sources(paths=[CASES / case / "world"]), known=load(), clock=lambda: 1.0, **options)


@pytest.mark.parametrize("case", [c for c in SAMPLE if (CASES / c).is_dir()])
def test_graph_and_driver_agree_bit_for_bit(case: str) -> None:
    light, _ = investigate(env(case))
    heavy, _ = investigate(env(case), graph=True)
    assert light.to_json(stable=True) == heavy.to_json(stable=True)


def test_graph_ends_when_probes_never_help() -> None:
    from agent.state import Executable

    tried = env("case-0200")
    wanted = list(load().facts)[:400]
    tried.executables = lambda ledger: [
        Executable(id=f"p{i}", yields=wanted, cost=1.0, run=lambda _: []) for i in range(99)
    ]
    final = run_graph(tried)
    assert final["answer"]["outcome"] and len(final.get("probes_run", [])) <= tried.max_probes


def test_an_undecided_thread_waits_for_a_person_and_goes_on(tmp_path: Path) -> None:
    from agent.graph import answer_with

    saver = sqlite_saver(tmp_path / "s.sqlite")
    first = make_env(Sources(texts={"said-1.md": b"it is slow"}), known=load(), interactive=True)
    seen = dict(stream(build(first, saver), {"next": ""}, "t"))
    assert "interrupt" in seen and seen["ask"]["answer"]["outcome"] == "undecidable" and "write" not in seen
    saver.conn.close()
    saver = sqlite_saver(tmp_path / "s.sqlite")
    second = make_env(Sources(paths=[CASES / "lab-016" / "world"]), known=load(), interactive=True)
    second.cache["inbox"] = 2
    again = dict(stream(build(second, saver), answer_with([2]), "t"))
    assert again["write"]["answer"]["outcome"] == "incident" and again["collect"]["inbox_done"] == 2
    saver.conn.close()


class _Count(BaseHTTPRequestHandler):
    seen = 0

    def _any(self) -> None:
        type(self).seen += 1
        self.send_response(200)
        self.end_headers()

    do_GET = do_POST = do_PATCH = do_PUT = _any

    def log_message(self, *args: Any) -> None:
        del args


# All four variables are true when the packages are imported; each fork then keeps one of them alone.
_CHILD = """
import os, sys
import langgraph.graph, langsmith.utils
from agent.graph import run_graph
from agent.investigate import make_env
from agent.sources import Sources
from knowledge import load
known = load()
names = sys.argv[1:]
for name in names:
    child = os.fork()
    if child == 0:
        for other in names:
            if other != name:
                os.environ.pop(other, None)
        if os.environ[name] != "true":
            os._exit(9)
        final = run_graph(make_env(Sources(texts={"a.md": b"preemptions rise and TTFT is 20 s"}), known=known))
        os._exit(0 if final["answer"]["outcome"] and not langsmith.utils.tracing_is_enabled() else 8)
    print(name, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_inherited_tracing_variables_send_nothing() -> None:
    server = HTTPServer(("127.0.0.1", 0), _Count)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    names = ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2")
    extra = {"LANGSMITH_ENDPOINT": url, "LANGCHAIN_ENDPOINT": url, "LANGSMITH_API_KEY": "x", "PYTHONPATH": str(ROOT)}
    env = {**os.environ, **extra, **dict.fromkeys(names, "true")}
    command = [sys.executable, "-c", _CHILD, *names]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=200, check=False)
    server.shutdown()
    server.server_close()
    assert done.stdout.splitlines() == [f"{name} 0" for name in names], done.stderr[-2000:]
    assert _Count.seen == 0


@pytest.mark.parametrize("form", [0, 1])
def test_checkpoints_decode_strictly(tmp_path: Path, form: int) -> None:
    """A checkpoint that names a callable gets plain data back: the callable is not called."""
    import ormsgpack

    target = tmp_path / "made"
    argument: Any = f"touch {target}"
    named = ("os", "system", argument if form == 0 else (argument,))
    evil = ormsgpack.packb({"evidence": ormsgpack.Ext(form, ormsgpack.packb(named))})
    saver = sqlite_saver(tmp_path / "s.sqlite")
    found = saver.serde.loads_typed(("msgpack", evil))
    assert not target.exists() and not callable(found["evidence"])
    with pytest.raises(Exception, match=r"."):
        saver.serde.loads_typed(("pickle", b"cos\nsystem\n(S'true'\ntR."))
    saver.conn.close()


def test_checkpoints_hold_plain_data_only(tmp_path: Path) -> None:
    saver = sqlite_saver(tmp_path / "s.sqlite")
    list(stream(build(env("case-0200"), saver), {"next": ""}, "t"))
    rows = saver.conn.execute("select type, checkpoint from checkpoints").fetchall()
    assert rows and all(kind == "msgpack" and b"agent.state" not in blob for kind, blob in rows)
    saver.conn.close()
    assert sqlite3.connect(tmp_path / "s.sqlite").execute("pragma integrity_check").fetchone() == ("ok",)
