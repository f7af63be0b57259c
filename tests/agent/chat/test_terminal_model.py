"""Chat in a terminal with a model at the other end, and with a server that is scraped when the machine dies."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

from agent.chat.answer import whatif
from agent.chat.session import Session
from knowledge import load
from tests.agent.chat.standin import serving
from tests.agent.chat.terminal import WORLD, Terminal


def test_a_model_narrates_in_the_terminal_and_is_warned_of_when_it_is_the_patient(
    env: dict[str, str], terminals: list[Terminal]
) -> None:
    def script(number: int, body: dict[str, Any]) -> tuple[Any, ...]:
        del number
        cited = re.search(r"\bE\d+\b", json.dumps(body["messages"][-1]))
        if not body.get("stream") or cited is None:
            return ("text", "{}")
        return ("text", f"- The reading stands at {{{cited[0]}}}.\n- It is due to cosmic rays.")

    with serving(script) as stand:
        chat = Terminal({**env, "INFERDX_MODEL": "m", "INFERDX_BASE_URL": stand.url}, str(WORLD))
        terminals.append(chat)
        said = chat.until(r"model: \d+ calls[\s\S]*> $")
        assert "model m" in said and re.search(r"▸ The reading stands at .{1,80}\[E\d+\]", said)
        assert "cosmic" not in said
        chat.send(f"/attach {stand.url.removesuffix('/v1')}/metrics\r")
        chat.until("both the patient and the model used")
        os.kill(chat.child.pid, signal.SIGKILL)
        assert stand.bodies


def test_killed_in_the_middle_of_a_scrape_the_thread_goes_on_with_what_was_given(
    env: dict[str, str], terminals: list[Terminal], tmp_path: Path, page: str
) -> None:
    chat = Terminal(env, "--no-model", str(WORLD))
    terminals.append(chat)
    before = chat.until(r"Evidence[\s\S]*> $")
    chat.send(f"/attach {page}\r")
    time.sleep(3)
    os.kill(chat.child.pid, signal.SIGKILL)
    chat.child.wait(10)
    folder = next((tmp_path / "inferdx/threads").iterdir())
    entries = [json.loads(line) for line in folder.joinpath("inbox.jsonl").open()]
    assert [e["kind"] for e in entries] == ["attach", "attach"]
    again = Terminal(env, "--no-model", "--resume")
    terminals.append(again)
    said = again.until(r"taking up what was left unfinished[\s\S]*write: [\s\S]*> $")
    assert "Traceback" not in before + said
    again.send("\x04")
    assert again.child.wait(20) in (0, 1, 2)


def test_a_change_is_answered_with_numbers_where_model_and_card_are_known(tmp_path: Path) -> None:
    session = Session(tmp_path, known=load())
    launch = tmp_path / "launch.txt"
    launch.write_text("vllm serve Qwen/Qwen3-8B --max-num-seqs 64 --max-model-len 8192\n")
    words = "vLLM 0.11 on one NVIDIA H100 80GB. 32 requests running, prompts of 2000 tokens, 300 output tokens. TPOT is bad."
    report = tmp_path / "report.md"
    report.write_text(words)
    list(session.attach([str(launch), str(report)]))
    lines = whatif(session, {"kv_cache_dtype": "fp8"})
    session.close()
    assert any(re.search(r"\d", line) and "tokens" in line for line in lines), lines
