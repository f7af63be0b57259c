"""``inferdx chat`` in a real terminal (a pseudo-terminal) and from a pipe."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.agent.chat.terminal import MAIN, ROOT, WORLD, Terminal


def test_a_dialogue_on_a_terminal(env: dict[str, str], terminals: list[Terminal], tmp_path: Path) -> None:
    chat = Terminal(env, "--no-model", str(WORLD))
    terminals.append(chat)
    assert "no model" in chat.until(r"Evidence[\s\S]*> ")
    chat.send("/why\r")
    chat.until(r"\+ [\s\S]*> $")
    chat.send("/evidence E1\r")
    chat.until(r"E1 \S+ = [\s\S]*> $")
    chat.send("\x1b[200~first pasted line\nTTFT p99 is 24 s\nlast pasted line\x1b[201~\r")
    chat.until(r"write: [\s\S]*> $")
    chat.interrupt("thread is kept")
    chat.send("/attach /no/such/file\r")
    chat.until(r"write: [\s\S]*> $")
    chat.send("/wyh\r")
    chat.until("did you mean /why")
    chat.send(f"/save {tmp_path}/a.json\r")
    chat.until("written")
    chat.send(f"/export {tmp_path}/a.md\r")
    chat.until("written")
    os.kill(chat.child.pid, signal.SIGKILL)
    chat.child.wait(10)
    entries = [
        json.loads(line) for line in next((tmp_path / "inferdx/threads").iterdir()).joinpath("inbox.jsonl").open()
    ]
    assert [e["kind"] for e in entries] == ["attach", "text", "attach"]
    assert entries[1]["text"] == "first pasted line\nTTFT p99 is 24 s\nlast pasted line"
    data = json.loads((tmp_path / "a.json").read_text())
    assert data["outcome"] == "incident" and (tmp_path / "a.md").read_text().startswith("## ")
    again = Terminal(env, "--no-model", "--resume")
    terminals.append(again)
    said = again.until(r"Evidence[\s\S]*> ")
    assert data["headline"].split("—")[0].strip() in said
    again.send("\x04")
    assert again.child.wait(20) == 1


def test_ctrl_c_stops_a_scrape_and_keeps_the_thread(env: dict[str, str], terminals: list[Terminal], page: str) -> None:
    chat = Terminal(env, "--no-model")
    terminals.append(chat)
    chat.until(r"/attach[\s\S]*> ")
    chat.send(f"/attach {page}\r")
    time.sleep(3)
    begin = time.monotonic()
    chat.send("\x03")
    chat.until("thread is kept")
    assert time.monotonic() - begin < 15
    chat.send("/thread\r")
    chat.until("resume with")


def test_from_a_pipe_blocks_are_inputs_and_commands_are_commands(env: dict[str, str]) -> None:
    talk = "\n".join([
        "/why", "", "what is wrong?", "", (WORLD / "report.md").read_text().replace("\n\n", "\n"), "",
        "/attach " + str(WORLD / "launch.txt") + " " + str(WORLD / "server.log"), "why", "为什么", "下一步", "怎么解决",
        "/lang zh", "结论", "/quit",
    ])  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "chat", "--no-model"], input=talk, cwd=ROOT, env=env, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "Nothing to go on yet" in done.stdout and "write: incident" in done.stdout
    assert "\x1b" not in done.stdout and ("调度层" in done.stdout or "内核层" in done.stdout)
    assert "Traceback" not in done.stderr


def test_a_thread_is_open_in_one_terminal_only(env: dict[str, str], tmp_path: Path) -> None:
    import fcntl

    folder = tmp_path / "inferdx" / "threads" / "one"
    folder.mkdir(parents=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = subprocess.run(
            [sys.executable, "-c", MAIN, "chat", "--resume", "one"], cwd=ROOT, env=env, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 3 and "open in another terminal" in done.stderr
