"""Every message kind as golden JSON (``UPDATE_GOLDEN=1`` writes them anew), and limits under hostile sizes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.diagnosis import (
    ActionAdvice,
    Cause,
    Diagnosis,
    InputProblem,
    LayerRow,
    Link,
    PastCase,
    ProbeAdvice,
    Provenance,
    RuledOut,
    RuleResult,
)
from agent.slack import blocks
from agent.slack.escape import code, mrkdwn, safe, unslack
from agent.slack.feedback import modal, read_modal
from agent.slack.limits import BUDGET, fit, section, size
from knowledge.schema import LAYERS
from tests.agent.slack.slackd import check_blocks, check_view
from tools.contract import Source
from tools.view import Evidence

GOLDEN = Path(__file__).parent / "golden"
TOKENS = {"feedback": "tok-f", "case": "tok-c", "follow": "tok-w", "skip": "tok-s"}
EVIL = "<!channel> `*x*` <https://evil.example|click> @here & sk-abcdefghijklmnop1234"


def sample(outcome: str, noise: str = "", lang: str = "en") -> Diagnosis:
    """A diagnosis of fixed content: goldens must not move when rules do."""
    probe = ProbeAdvice(
        id="p", ask=f"Which sequence cap is set {noise}".strip(), command="grep -n max-num-seqs launch.txt", kind="reading",
        if_true="4: the cap binds", if_false="256: not this", change="nothing", keep="load", read="config.max_num_seqs",
    )  # fmt: skip
    main = Cause(
        family="sequence_limit", layer="scheduling", title=f"Sequence cap binds {noise}".strip(), confidence=0.97,
        band="very likely", evidence=["E1", "E2"], rules=["SCH-1"], says=["Running is pinned at 4 while 98 wait. [E1][E2]"],
        verdict="supported" if outcome == "incident" else "lead", against=["KV use is 0.3 % [E2]"],
    )  # fmt: skip
    benign = outcome in ("healthy", "theoretical_limit")
    head = {
        "incident": "Sequence cap binds — scheduling layer, very likely (97%)", "healthy": "Healthy: nothing waits (90%)",
        "theoretical_limit": "At the limit: decode at 93 % of the bandwidth floor (88%)",
        "undecidable": "Cannot tell yet. Strongest lead: Sequence cap binds (possible)",
    }  # fmt: skip
    return Diagnosis(
        outcome=outcome,  # type: ignore[arg-type]
        headline=f"{head[outcome]} {noise}".strip(),
        causes=[] if outcome == "healthy" else [main],
        chain=[] if outcome != "incident" else [
            Link(state="sequence_limit", layer="scheduling", title="Sequence cap binds", evidence=["E1"]),
            Link(state="ttft", layer="symptom", title="long time to first token", evidence=["E2"]),
        ],
        layers=[LayerRow(layer=n, status="ruled_out" if n == "memory" else "not_examined") for n in LAYERS],
        actions=[] if outcome != "incident" else [
            ActionAdvice(do="Raise the sequence cap", gain="queue empties", cost="KV memory", risk="preemption", how="restart",
                         family="sequence_limit", command="--max-num-seqs 64", rollback="restart with 4", predicted="TTFT 26 s → 0.1 s")
        ],
        probes=[] if benign else [probe, probe],
        evidence=[
            Evidence(id="E1", fact="queue.running.max", value=4, unit="requests", source=Source(kind="file", ref="m-000.prom", line=12), method="max over 9 scrapes", labels={"replica": "10.0.0.7:8000"}),
            Evidence(id="E2", fact="kv.usage.max", value=0.003, unit="fraction", source=Source(kind="file", ref=f"m-008.prom{noise}", line=40)),
        ],
        rules=[RuleResult(id="SCH-1", family="sequence_limit", state="fired"), RuleResult(id="MEM-1", family="kv", state="clear")],
        provenance=Provenance(inferdx="0.1.0", knowledge="x"),
        confidence=0.97,
        summary=["98 requests wait, 4 run [E1]."],
        ruled_out=[RuledOut(family="kv", title="KV cache exhausted", because=f"use is 0.3 % {noise}".strip(), evidence=["E2"])],
        problems=[InputProblem(ref="http://10.0.0.7:8000/metrics", what=f"no answer (ConnectTimeout) {noise}".strip())],
        past=[PastCase(id="lab-016", line="98 waiting, KV 0.3 % – cap 4 – raise to 64", similarity=0.8)],
        lang=lang,
    )  # fmt: skip


KINDS: dict[str, Any] = {
    "ack": lambda: blocks.ack("3 files"),
    "first-finding": lambda: blocks.finding("Sequence cap binds", "97%"),
    "first-finding-none": lambda: blocks.finding("", ""),
    "progress": lambda: blocks.progress("Sequence cap binds", "97%", ["collect: 486 readings from 31 inputs", "screen: 4 fired"]),
    "progress-slow": lambda: blocks.progress("", "", ["collect: 486 readings from 31 inputs"], slow=91.2),
    "done": lambda: blocks.done("Sequence cap binds", 8.25),
    "answer-incident": lambda: blocks.answer(sample("incident"), TOKENS, ["outcome: undecidable → incident"], ["gone.log: over 32 MiB"]),
    "answer-incident-zh": lambda: blocks.answer(sample("incident", lang="zh"), TOKENS),
    "answer-healthy": lambda: blocks.answer(sample("healthy"), TOKENS),
    "answer-limit": lambda: blocks.answer(sample("theoretical_limit"), TOKENS),
    "answer-undecidable": lambda: blocks.answer(sample("undecidable"), TOKENS),
    "ask": lambda: blocks.ask(sample("undecidable").probes[0], "tok-s"),
    "expired": lambda: blocks.notice("expired"),
    "error": lambda: blocks.error("chat.postMessage: not_in_channel"),
    "alert": lambda: blocks.alert("TTFTHigh", {"alertname": "TTFTHigh", "model_name": "m"}, "p99 over 2 s", 3),
    "resolved": lambda: blocks.notice("resolved", at="2026-01-31T10:00:00Z"),
    "case-saved": lambda: blocks.notice("case", name="draft-1", n=3),
    "reply": lambda: blocks.lines(["Sequence cap binds: very likely (97%)", "+ Running is pinned [E1]"]),
    "hostile": lambda: blocks.answer(sample("incident", EVIL), TOKENS),
    "older-workspace": lambda: {"text": "x", "blocks": blocks.plain_buttons(blocks.answer(sample("healthy"), TOKENS)["blocks"])},
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_golden(kind: str) -> None:
    made = KINDS[kind]()
    assert not check_blocks(made["blocks"])
    assert 1 <= len(made["text"]) <= 300
    path = GOLDEN / f"{kind}.json"
    text = json.dumps(made, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def test_golden_modal(known: Any) -> None:
    view = modal(known, "tok-f")
    assert not check_view(view)
    cut = json.loads(json.dumps(view))
    families = [o["value"] for g in cut["blocks"][1]["element"]["option_groups"] for o in g["options"]]
    assert set(families) == set(known.families)
    cut["blocks"][1]["element"]["option_groups"] = []  # the families are knowledge's, not this door's
    path = GOLDEN / "feedback-modal.json"
    text = json.dumps(cut, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
    assert not check_view(modal(known, "tok-f", "zh"))


def test_order_of_the_answer() -> None:
    text = json.dumps(blocks.answer(sample("incident"), TOKENS)["blocks"], ensure_ascii=False)
    marks = ["very likely (97%)", "blast radius", "Do first", "--max-num-seqs 64", "*Chain*", "*Evidence*", "Ruled out", "*Next probe*", "feedback_buttons"]  # fmt: skip
    assert [text.find(m) for m in marks] == sorted(text.find(m) for m in marks) and text.find(marks[0]) >= 0
    assert "ConnectTimeout" in text, "a missing source is shown"


def test_modal_values_that_are_not_on_offer_are_dropped(known: Any) -> None:
    view = {"state": {"values": {"reason": {"reason": {"selected_option": {"value": "rm -rf"}}}, "cause": {"cause": {"selected_option": {"value": "nonsense"}}}, "note": {"note": {"value": None}}}}}  # fmt: skip
    assert read_modal(view, known) == {"reason": "", "cause": "", "note": ""}
    assert read_modal({}, known) == {"reason": "", "cause": "", "note": ""}


@settings(max_examples=40, deadline=None)
@given(st.text(alphabet="<>&`*_~@!|#:/ahtpschnel \n\u202e\u200b中[]", min_size=0, max_size=400), st.integers(1, 60))
def test_any_text_stays_inside_the_limits(text: str, times: int) -> None:
    noise = (text * times)[:20_000]
    for outcome in ("incident", "undecidable"):
        made = blocks.answer(sample(outcome, noise), TOKENS)
        assert not check_blocks(made["blocks"])
        assert sum(size(b) for b in made["blocks"]) <= BUDGET
        assert made["blocks"][-1]["type"] == "actions", "the buttons survive"
    for shown in (mrkdwn(noise), code(noise)):
        assert "<" not in shown and ">" not in shown
        assert code(noise)[1:-1].count("`") == 0


def test_too_many_blocks_are_cut_and_said() -> None:
    made = fit([section("x" * 2900) for _ in range(60)])
    assert len(made) <= 50 and "attached" in json.dumps(made[-1])


def test_masking_keeps_what_people_need() -> None:
    text = safe("replica 10.0.0.7:8000 key sk-abcdefghijklmnop1234 mail a.person@example.com")
    assert "10.0.0.7:8000" in text and "sk-abc" not in text and "a.person" not in text


def test_unslack() -> None:
    raw = "<@UBOT|inferdx> see <https://x.example/a|the page> &lt;tag&gt; <@U1> <http://a.example>"
    assert unslack(raw, "UBOT") == "see the page <tag> @U1 http://a.example"
