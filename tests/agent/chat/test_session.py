"""A thread: nothing given is lost or doubled by a kill at any step, and new evidence re-opens the diagnosis."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent.chat.inbox import Inbox, threads
from agent.chat.session import Session, changed
from agent.chat.supersede import merge
from agent.investigate import investigate, make_env
from agent.sources import Sources
from knowledge import load

ROOT = Path(__file__).parents[3]
WORLD = ROOT / "evals" / "cases" / "case-0200" / "world"
VAGUE = "It is slow."


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERDX_DATA", str(tmp_path / "data"))


def files() -> list[str]:
    return sorted(str(p) for p in WORLD.iterdir())


def rows(session: Session) -> Counter[Any]:
    """The evidence in force: what later inputs superseded depends on where a turn was cut, what holds does not."""
    state = [r for r in session.values().get("evidence", []) if r.get("status", "ok") == "ok"]
    return Counter((r["fact"], repr(r["value"]), r["source"].get("ref"), r["source"].get("line")) for r in state)


def test_pieces_give_what_the_whole_gives_and_ids_keep_their_meaning() -> None:
    whole = investigate(make_env(Sources(paths=[WORLD]), known=load()))[0]
    session = Session(known=load())
    met: dict[str, str] = {}
    for path in files():
        list(session.attach([path]))
        for row in session.values()["evidence"]:
            assert met.setdefault(row["id"], row["fact"]) == row["fact"]
    told = session.diagnosis
    assert told is not None and told.outcome == whole.outcome
    assert [(c.family, c.confidence) for c in told.causes] == [(c.family, c.confidence) for c in whole.causes]
    assert changed(session.before, told)
    session.close()


def test_undecided_asks_waits_over_a_restart_and_goes_on() -> None:
    session = Session(known=load(), interactive=True)
    kinds = [kind for kind, _ in session.say(VAGUE)]
    assert kinds[-1] == "diagnosis" and "ask" in kinds
    assert session.diagnosis is not None and session.diagnosis.outcome == "undecidable"
    assert session.waiting() == ("wait",)
    session.close()
    later = Session(session.folder, known=load(), interactive=True)
    assert later.diagnosis is not None and not list(later.recover())
    list(later.attach(files()))
    assert later.diagnosis is not None and later.diagnosis.outcome == "incident"
    assert any("outcome: undecidable → incident" in line for line in changed(later.before, later.diagnosis))
    assert later.waiting() == ()
    later.close()


def test_a_turn_left_half_way_is_taken_up() -> None:
    session = Session(known=load())
    turn = session.attach(files())
    next(turn)
    turn.close()
    assert session.waiting() not in ((), ("wait",))
    list(session.recover())
    assert session.diagnosis is not None and session.diagnosis.outcome == "incident"
    assert not list(session.recover())
    session.close()


_CHILD = """
import os, signal, sys
from pathlib import Path
from agent.chat import session as module
from agent.chat.session import Session
from agent import steps
from knowledge import load

deadly, place = int(sys.argv[2]), sys.argv[3]
count = 0

def die(*_):
    global count
    count += 1
    if count == deadly:
        os.kill(os.getpid(), signal.SIGKILL)

if place == "in":
    for name, step in list(steps.STEPS.items()):
        def run(env, state, step=step):
            die()
            out = step(env, state)
            die()
            return out
        steps.STEPS[name] = run
folder = Path(sys.argv[1])
session = Session(folder, known=load(), interactive=True)
events = iter(())
if session.inbox.entries():
    events = session.recover()
for _ in events:
    die() if place == "between" else None
have = len(session.inbox.entries())
for turn in range(have, 2):
    events = session.say("It is slow.") if turn == 0 else session.attach(sys.argv[4:])
    for _ in events:
        die() if place == "between" else None
print("done")
"""


def test_kill_nine_at_any_step_loses_and_doubles_nothing(tmp_path: Path) -> None:
    whole = Session(known=load(), interactive=True)
    list(whole.say(VAGUE))
    list(whole.attach(files()))
    expected, verdict = rows(whole), whole.diagnosis
    whole.close()
    pick = random.Random(7)
    folder = tmp_path / "thread"
    folder.mkdir()
    kills = 0
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    for deadly, place in [
        (pick.randint(2, 6), "between"),
        (pick.randint(3, 12), "in"),
        (pick.randint(2, 9), "in"),
        (99, "in"),
    ]:
        child = subprocess.run(
            [sys.executable, "-c", _CHILD, str(folder), str(deadly), place, *files()],
            cwd=ROOT, env=env, capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip
        assert child.returncode in (0, -signal.SIGKILL), child.stderr[-1500:]
        kills += child.returncode != 0
        assert sqlite3.connect(folder / "state.sqlite").execute("pragma integrity_check").fetchone() == ("ok",)
        if child.returncode == 0:
            break
    assert kills >= 2
    last = Session(folder, known=load(), interactive=True)
    list(last.recover())
    if len(last.inbox.entries()) < 2:
        list(last.attach(files()))
    assert rows(last) == expected
    assert [e["n"] for e in last.inbox.entries()] == [1, 2]
    assert last.diagnosis is not None and verdict is not None
    assert [(c.family, c.confidence) for c in last.diagnosis.causes] == [
        (c.family, c.confidence) for c in verdict.causes
    ]
    last.close()


def test_a_checkpoint_that_does_not_decode_is_set_aside_and_the_inbox_read_again() -> None:
    session = Session(known=load())
    list(session.attach(files()))
    session.close()
    path = session.folder / "state.sqlite"
    for tail in ("-wal", "-shm"):
        path.with_name(path.name + tail).unlink(missing_ok=True)
    path.write_bytes(b"SQLite format 3\x00" + b"junk" * 400)
    again = Session(session.folder, known=load())
    assert again.damaged and again.diagnosis is None
    list(again.recover())
    assert again.diagnosis is not None and again.diagnosis.outcome == "incident"
    assert list(session.folder.glob("state.sqlite.bad-1*"))
    again.close()


def test_inbox_survives_torn_lines_and_odd_separators(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    odd = "a\u2028b\x85c\r\nd\udcffe\x00f"
    assert inbox.add("text", text=odd) == 1
    with inbox.path.open("ab") as file:
        file.write(b'{"n": 2, "kind": "te')
    assert inbox.add("text", text="next") == 2
    assert [e["text"] for e in inbox.entries()] == [odd, "next"]
    assert inbox.path.stat().st_mode & 0o077 == 0


def test_the_last_spoken_thread_comes_first(tmp_path: Path) -> None:
    for number, name in enumerate(("a", "b", "c")):
        folder = tmp_path / "data" / "inferdx" / "threads" / name
        folder.mkdir(parents=True)
        Inbox(folder).add("text", text="x")
        os.utime(folder / "inbox.jsonl", (number, 10 - number))
    assert [p.name for p in threads()] == ["a", "b", "c"]


def test_superseded_rows_stay_but_are_not_read() -> None:
    def row(number: int, value: int, kind: str = "file", inputs: list[str] | None = None) -> dict[str, Any]:
        source = {"kind": kind, "ref": "f", **({"inputs": inputs} if inputs else {})}
        return {"id": f"E{number}", "fact": f"f.{kind}", "value": value, "source": source}

    before = [row(1, 1), row(2, 10, "computed", ["E1"])]
    after = [row(1, 5), row(2, 1), row(3, 60, "computed", ["E1", "E2"])]
    out = merge(before, after)
    assert [(r["id"], r["value"], r.get("status", "ok")) for r in out] == [
        ("E1", 1, "ok"), ("E2", 10, "no_data"), ("E3", 5, "ok"), ("E4", 60, "ok"),
    ]  # fmt: skip
    assert out[3]["source"]["inputs"] == ["E3", "E1"]
