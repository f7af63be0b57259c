"""Model access: budgets, deadlines, masks, capabilities, forms that are not quite the API."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent import llm_settings
from agent.llm import Model, fit, loose_json, rough_tokens
from agent.llm_settings import ModelError, Settings, same_endpoint, settings
from tests.agent.chat.standin import Reply, good, serving, text_of

SCHEMA = {
    "type": "object", "additionalProperties": False, "required": ["x"], "properties": {"x": {"type": "string"}},
}  # fmt: skip


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(llm_settings, "_cache_file", lambda: tmp_path / "models.json")
    for name in ("INFERDX_MODEL", "INFERDX_BASE_URL", "INFERDX_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    yield


def model(url: str, **options: Any) -> Model:
    return Model(Settings(name="m", base_url=url, key="k", **{"timeout_s": 2.0, **options}))


def test_settings_from_environment_and_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings() is None
    folder = tmp_path / "config" / "inferdx"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('[model]\nname = "a"\nbase_url = "http://h:1/v1"\nmax_calls = 3\n')
    found = settings()
    assert found is not None and (found.name, found.base_url, found.max_calls) == ("a", "http://h:1/v1", 3)
    monkeypatch.setenv("INFERDX_MODEL", "b")
    monkeypatch.setenv("INFERDX_API_KEY", "secret")
    found = settings()
    assert found is not None and (found.name, found.key) == ("b", "secret")
    (folder / "config.toml").write_text("model = 3\n")
    with pytest.raises(ModelError, match="not a table"):
        settings()
    (folder / "config.toml").write_text("[model\n")
    with pytest.raises(ModelError):
        settings()
    (folder / "config.toml").unlink()
    monkeypatch.setenv("INFERDX_BASE_URL", "file:///etc/passwd")
    with pytest.raises(ModelError, match="not an http"):
        settings()


def test_capabilities_are_probed_once_and_cached() -> None:
    with serving(good) as stand:
        first = model(stand.url)
        assert first.can().schema and first.can().context == 8192 and first.can().streaming
        assert not first.can().tools
        seen = len(stand.bodies)
        assert first.can() is first.can() and len(stand.bodies) == seen
        assert model(stand.url).can().schema and len(stand.bodies) == seen


def test_a_dead_endpoint_is_not_cached() -> None:
    dead = model("http://127.0.0.1:9/v1")
    with pytest.raises(ModelError):
        dead.data("s", "u", SCHEMA)
    assert llm_settings.cached(dead.config) is None
    assert dead.used.calls <= 4


def test_masks_secrets_and_addresses_in_every_body() -> None:
    secrets = [
        "sk-abcdefghijklmnop1234",
        "10.11.12.13",
        "node7.corp.example.com",
        "ops@example.com",
        "hf_abcdefghijklmnop",
    ]
    text = "\n".join(f"value {s} seen" for s in secrets) + "\npassword=hunter2hunter2"

    def script(number: int, body: dict[str, Any]) -> Reply:
        if "<ip-1>" in text_of(body) and body.get("response_format"):
            return ("text", json.dumps({"x": "at <ip-1>"}))
        return good(number, body)

    with serving(script) as stand:
        used = model(stand.url)
        assert used.data("system", text, SCHEMA) == {"x": "at 10.11.12.13"}
        used.text("system", text)
        list(used.stream("system", text))
        assert len(stand.raw) >= 5
        for raw in stand.raw:
            assert not [s for s in [*secrets, "hunter2"] if s.encode() in raw]
        assert all({k.lower(): v for k, v in h.items()}["authorization"] == "Bearer k" for h in stand.headers)


@pytest.mark.parametrize(
    "reply",
    [
        ("raw", b"<html>login</html>", "text/html"), ("error200",), ("empty",), ("status", 500), ("status", 429),
        ("raw", b"{not json", "application/json"), ("text", ""), ("text", "no json here"), ("text", '["list"]'),
        ("raw", json.dumps({"choices": [{"message": {"content": 5}}]}).encode(), "application/json"),
        ("raw", json.dumps({"choices": "x"}).encode(), "application/json"),
    ],
)  # fmt: skip
def test_odd_answers_become_one_error(reply: Reply) -> None:
    with serving(lambda n, b: reply) as stand:
        used = model(stand.url)
        with pytest.raises(ModelError):
            used.data("s", "u", SCHEMA)
        assert used.used.failed >= 1 and used.used.calls <= used.config.max_calls


def test_fenced_json_and_one_repair() -> None:
    replies = iter([("text", "sorry, what?"), ("text", 'Sure:\n```json\n{"x": "y"}\n```')])
    with serving(lambda n, b: good(n, b) if n < 3 else next(replies)) as stand:
        used = model(stand.url)
        used.can()
        assert used.data("s", "u", SCHEMA) == {"x": "y"}


def test_a_refused_call_is_tried_once_more() -> None:
    with serving(lambda n, b: ("status", 429) if n == 3 else good(n, b)) as stand:
        used = model(stand.url)
        used.can()
        assert used.data("s", "u", SCHEMA) == {"x": ""}
        assert len(stand.bodies) == 5 and used.used.calls == 5


def test_schema_refused_by_the_server_falls_back_to_words() -> None:
    def script(number: int, body: dict[str, Any]) -> Reply:
        if number >= 3 and body.get("response_format"):
            return ("status", 400)
        return ("text", '{"x": "plain"}') if number >= 3 else good(number, body)

    with serving(script) as stand:
        used = model(stand.url)
        assert used.data("s", "u", SCHEMA) == {"x": "plain"}
        assert "schema" in text_of(stand.bodies[-1])


@pytest.mark.parametrize("reply", [("stall", 20), ("drip", 0.1)])
def test_a_call_ends_at_its_deadline_however_slow_the_bytes(reply: Reply) -> None:
    with serving(lambda n, b: reply) as stand:
        used = model(stand.url, timeout_s=0.4)
        begin = time.monotonic()
        with pytest.raises(ModelError):
            used.text("s", "u")
        assert time.monotonic() - begin < 3.0
        assert not used.left()


def test_budgets_are_hard() -> None:
    with serving(good) as stand:
        calls = model(stand.url, max_calls=4)
        for _ in range(12):
            try:
                calls.data("s", "u", SCHEMA)
            except ModelError:
                continue
        assert calls.used.calls <= 4
        tokens = model(stand.url, max_tokens=900)
        for _ in range(12):
            try:
                tokens.data("s", "u" * 300, SCHEMA, 100)
            except ModelError:
                continue
        assert tokens.used.tokens_in + tokens.used.tokens_out <= 900
        money = model(stand.url, usd_in=1000.0, usd_out=1000.0, max_usd=0.3)
        for _ in range(12):
            try:
                money.data("s", "u", SCHEMA, 20)
            except ModelError:
                continue
        assert money.used.usd <= 0.3


def test_a_server_that_lies_about_tokens_is_not_believed() -> None:
    lie = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "x" * 900}}],
           "usage": {"prompt_tokens": -5, "completion_tokens": 0, "total_tokens": 0}}  # fmt: skip
    with serving(lambda n, b: ("raw", json.dumps(lie).encode(), "application/json")) as stand:
        used = model(stand.url)
        used._can = llm_settings.Capability()
        used.text("s", "u")
        assert used.used.tokens_out >= 250 and used.used.tokens_in > 0


def test_a_stream_that_breaks_off_gives_what_came() -> None:
    with serving(lambda n, b: ("cut", "one two three") if b.get("stream") else good(n, b)) as stand:
        assert "".join(model(stand.url).stream("s", "u")).startswith("one")


def test_prompts_are_cut_inside_the_quoted_data() -> None:
    text = "before\n<<<DATA log\n" + "x" * 30_000 + "\nDATA>>>\nafter"
    cut = fit(text, 1000)
    assert rough_tokens(cut) <= 1000 and cut.endswith("\nDATA>>>\nafter") and cut.startswith("before\n<<<DATA log")
    with pytest.raises(ModelError, match="does not fit"):
        fit("i" * 9000, 100)


def test_loose_json() -> None:
    assert loose_json('x {"a": 1} y') == {"a": 1}
    assert loose_json("none") is None and loose_json("{broken") is None
    assert loose_json("[" * 100_000) is None


def test_warns_when_patient_and_model_are_one() -> None:
    config = Settings(name="m", base_url="http://localhost:8000/v1")
    assert "both the patient" in same_endpoint(config, ["http://127.0.0.1:8000/metrics"])
    assert not same_endpoint(config, ["http://127.0.0.1:9000/metrics", "http://other:8000/metrics"])
    assert same_endpoint(Settings(name="m", base_url="https://h/v1"), ["https://H:443/metrics"])
