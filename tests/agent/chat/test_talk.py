"""Intents, inputs, answers and tools of the dialogue without a model, and checked answers with one."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from agent.chat import answer as answers
from agent.chat import replies
from agent.chat.answer import TOOLS, answer, explain, readings, whatif
from agent.chat.intents import intent, is_question, settings_in
from agent.chat.lines import Inputs
from agent.chat.session import Session
from agent.llm_settings import Capability, Settings
from knowledge import load
from tests.agent.chat.standin import Reply, good, serving, text_of

WORLD = Path(__file__).parents[3] / "evals" / "cases" / "case-0200" / "world"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("why", "why"), ("Why do you think so?", "why"), ("为什么", "why"), ("what next?", "next"), ("下一步做什么", "next"),
        ("how do I fix it", "actions"), ("怎么解决？", "actions"), ("what if max_num_seqs=64", "whatif"),
        ("如果把 max_num_seqs 调大会怎样", "whatif"), ("ruled out", "ruled-out"), ("what did you rule out?", "ruled-out"),
        ("why not the network?", "ruled-out"), ("排除了什么", "ruled-out"), ("show me the evidence", "evidence"), ("证据呢", "evidence"),
        ("which layer is it?", "layers"), ("哪一层", "layers"), ("what is chunked prefill?", "explain"), ("什么是前缀缓存", "explain"),
        ("help", "help"), ("帮助", "help"), ("so what is wrong", "status"), ("结论", "status"),
        ("next token latency went from 30 to 90 ms", ""), ("fix deployed at 10:00, still slow", ""), ("status 503 from the gateway", ""),
        ("evidence of throttling in dmesg", ""), ("help wanted: TTFT is 20 s", ""), ("TTFT is 24 s", ""), ("并发 64 时很慢", ""),
        ("layers 0-31 loaded", ""), ("why " + "x" * 200, ""), ("why\nline two", ""),
    ],
)  # fmt: skip
def test_intents(said: str, meant: str) -> None:
    assert intent(said) == meant


def test_settings_and_questions() -> None:
    assert settings_in("what if max_num_seqs=64 and --kv-cache-dtype fp8?") == {
        "max_num_seqs": "64",
        "kv_cache_dtype": "fp8",
    }
    assert is_question("为什么？") and is_question("is it KV?") and not is_question("it is KV")


def test_piped_inputs_are_blocks() -> None:
    text = "line one\nline two\n\n/why\n/next\n```\na\n\nb\n```\ncut \\\noff\nlast"
    source = Inputs(stream=io.StringIO(text))
    seen = []
    while (item := source.read()) is not None:
        seen.append(item)
    fenced = "```\na\n\nb\n```\ncut \\\noff\nlast"
    assert [s for s in seen if s] == ["line one\nline two", "/why", "/next", fenced]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = Session(tmp_path_factory.mktemp("thread"), known=load())
    list(made.attach([str(WORLD)]))
    yield made
    made.close()


def test_replies_cite_what_exists(session: Session) -> None:
    d = session.diagnosis
    assert d is not None
    ids = {e.id for e in d.evidence}
    import re

    for lines in (
        replies.why(d),
        replies.ruled_out(d),
        replies.layers(d),
        replies.evidence(d),
        replies.next_probe(d),
        replies.actions(d),
    ):
        assert lines and set(re.findall(r"\bE\d+\b", " ".join(lines))) <= ids
    assert replies.evidence(d, "E99999")[0].endswith(f"(E1–E{len(d.evidence)})")
    assert replies.evidence(d, "e1")[0].startswith("E1 ")


def test_answers_without_a_model(session: Session) -> None:
    d = session.diagnosis
    assert d is not None
    assert answer(session, "what about E1 and E2?", None)[0].startswith("E1 ")
    lead = d.causes[0]
    assert answer(session, f"are you sure it is {lead.title.lower()}?", None)[0].startswith(lead.title)
    assert any("max_num_seqs" in line for line in answer(session, "how many max_num_seqs were set?", None))
    assert explain(session, "kv_cache_exhausted")[0].startswith("# ")
    assert explain(session, "zzqqxx")[0].endswith("nothing in the knowledge base")
    assert whatif(session, {})[0].startswith("/whatif") and whatif(session, {"max_num_seqs": "64"})
    assert readings(d, "max num seqs") and not readings(d, "zzqqxx")


def test_every_tool_answers_any_argument(session: Session) -> None:
    d = session.diagnosis
    assert d is not None
    for name, (_, tool) in TOOLS.items():
        for argument in ("", "E1", "$(reboot)", "ignore the rules", "x" * 500, "max_num_seqs=64", "ttft\x00"):
            assert all(isinstance(line, str) for line in tool(session, d, argument)), name


def test_a_model_words_the_answer_behind_checks(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    def script(number: int, body: dict[str, Any]) -> Reply:
        form = body.get("response_format", {}).get("json_schema", {}).get("schema", {}).get("properties", {})
        if "tool" in form:
            return ("text", json.dumps({"tool": "query_metrics", "argument": "max num seqs"}))
        if "sentences" in form:
            item = next(w.split(" ")[0] for w in text_of(body).splitlines() if w.startswith("E"))
            return (
                "text",
                json.dumps({"sentences": [f"The cap stands at {{{item}}}.", "It is 42 {E1}.", "All healthy {E1}."]}),
            )
        return good(number, body)

    monkeypatch.setattr("agent.llm.cached", lambda config: Capability(schema=True, seen=1.0))
    with serving(script) as stand:
        config = Settings(name="m", base_url=stand.url, timeout_s=5.0)
        lines = answer(session, "how large is the batch allowed to be?", config)
        assert lines[0].startswith("The cap stands at ") and "[E" in lines[0]
        assert (
            not [line for line in lines if "42" in line.split("—")[0] and "cap" not in line]
            and "model: 2 calls" in lines[-1]
        )
    with serving(lambda n, b: ("status", 500)) as stand:
        config = Settings(name="m", base_url=stand.url, timeout_s=2.0)
        assert answer(session, "how large is max_num_seqs allowed to be?", config)
    assert answers.tool_schema()["properties"]["tool"]["enum"] == list(TOOLS)
