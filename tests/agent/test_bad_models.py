"""Any scripted model ends within budget, with a valid report whose verdict is the rules' own."""

from __future__ import annotations

import json
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.assistant import BY_MODEL, ModelAssistant
from agent.diagnosis import Diagnosis
from agent.investigate import investigate, make_env
from agent.llm import Model
from agent.llm_settings import Capability, Settings
from agent.sources import Sources, words_of
from agent.verify import check
from knowledge import Knowledge, load
from tests.agent.chat.standin import Reply, good, serving, text_of

WORLD = Path(__file__).parents[2] / "evals" / "cases" / "case-0200" / "world"
BUDGET = {"timeout_s": 0.4, "max_calls": 6, "max_tokens": 12_000, "max_seconds": 4.0}


@lru_cache(maxsize=1)
def known() -> Knowledge:
    return load()


@lru_cache(maxsize=1)
def rules_only() -> Diagnosis:
    return investigate(make_env(Sources(paths=[WORLD]), known=known()))[0]


def lie(number: int, body: dict[str, Any]) -> Reply:
    """Sure of itself and wrong in every form: all facts of the menu with real words as spans, false causes, other ids."""
    form = body.get("response_format", {}).get("json_schema", {}).get("schema", {}).get("properties", {})
    words = text_of(body)
    if "facts" in form:
        names = form["facts"]["items"]["properties"]["fact"]["enum"]
        lines = [line for line in words.splitlines() if len(line) > 20][-8:]
        rows = [{"fact": n, "span": lines[(number + i) % len(lines)][:150]} for i, n in enumerate(names[:12])]
        return ("text", json.dumps({"facts": rows}))
    if "first" in form:
        return ("text", '{"first": "invented"}')
    lies = [
        "The root cause is a retry storm {E1}.",
        "All is healthy {E1}.",
        "It is 99% certain {E1}.",
        "{E77777} proves it.",
    ]
    return ("text", "\n".join(lies) if body.get("stream") else json.dumps({"sentences": lies}))


REPLIES = st.one_of(
    st.just(("good",)),
    st.just(("lie",)),
    st.just(("empty",)),
    st.just(("error200",)),
    st.just(("stall", 1.0)),
    st.just(("drip", 0.05)),
    st.sampled_from([400, 401, 404, 408, 422, 429, 500, 503]).map(lambda code: ("status", code)),
    st.sampled_from([b"<html>sign in</html>", b"", b"null", b"[]", b"{}", b"\xff\xfe", b'{"choices": null}']).map(
        lambda raw: ("raw", raw, "text/html" if raw[:1] == b"<" else "application/json")
    ),
    st.text(max_size=60).map(lambda text: ("text", text or "x")),
    st.text(max_size=40).map(lambda text: ("cut", text or "x")),
    st.sampled_from(
        ['```json\n{"sentences": ["{E1}"]}\n```', '{"facts": 3}', '{"sentences": {"a": 1}}', '{"first": null}', "[" * 3000,
         '{"sentences": ["{E999}", "{E0}", 7, null]}', '{"facts": [null, {"fact": "x"}]}', "same again " * 200]
    ).map(lambda text: ("text", text)),
)  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(replies=st.lists(REPLIES, min_size=1, max_size=6), schema=st.booleans(), streaming=st.booleans())
def test_any_scripted_model_ends_in_budget_with_the_rules_verdict(
    replies: list[Reply], schema: bool, streaming: bool
) -> None:
    def script(number: int, body: dict[str, Any]) -> Reply:
        reply = replies[number % len(replies)]
        return {"good": good, "lie": lie}[reply[0]](number, body) if reply[0] in ("good", "lie") else reply

    with serving(script) as stand:
        sources = Sources(paths=[WORLD])
        env = make_env(sources, known=known(), words=lambda: words_of(sources))
        model = Model(Settings(name="m", base_url=stand.url, **BUDGET))
        model._can = Capability(schema=schema, streaming=streaming)
        env.assistant = ModelAssistant(model, known())
        begin = time.monotonic()
        told, _ = investigate(env)
        took = time.monotonic() - begin
    used, limit = model.used, model.config
    assert used.calls <= limit.max_calls and used.tokens_in + used.tokens_out <= limit.max_tokens + 400
    assert used.seconds <= limit.max_seconds + 0.5 and took < 30
    assert len(stand.bodies) <= limit.max_calls
    added = [e for e in told.evidence if BY_MODEL in e.caveats]
    base = rules_only()
    if not added:
        assert told.outcome == base.outcome
        assert [(c.family, c.confidence) for c in told.causes] == [(c.family, c.confidence) for c in base.causes]
    words = " ".join(part for p in WORLD.iterdir() for part in p.read_text().split())
    assert all(e.source.span in words for e in added)
    rest = [e for e in told.evidence if e not in added]
    assert [(e.fact, e.value) for e in rest if e.source.kind != "computed"] == [
        (e.fact, e.value) for e in base.evidence if e.source.kind != "computed"
    ]
    assert not [s for s in told.narrative if "retry storm" in s or "healthy" in s or "99" in s or "E77777" in s]
    told.narrative = []
    assert json.loads(told.to_json())["outcome"] == told.outcome


def test_a_confident_liar_changes_nothing_and_is_counted() -> None:
    with serving(lie) as stand:
        sources = Sources(paths=[WORLD])
        env = make_env(sources, known=known(), words=lambda: words_of(sources))
        model = Model(Settings(name="m", base_url=stand.url, **{**BUDGET, "timeout_s": 5.0, "max_seconds": 20.0}))
        model._can = Capability(schema=True, streaming=False)
        helper = ModelAssistant(model, known())
        env.assistant = helper
        told, _ = investigate(env)
    assert told.to_json(stable=True) != b"" and told.narrative == []
    assert helper.rejected + helper.dropped >= 4
    assert [(c.family, c.confidence) for c in told.causes] == [(c.family, c.confidence) for c in rules_only().causes]

    def again() -> Any:
        from agent.sources import gatherer
        from tools.contract import Context

        return gatherer(sources, Context())()[0]

    valid, total, bad = check(known(), told, again())
    assert valid == total, bad
    assert told.provenance.model_calls <= 4
