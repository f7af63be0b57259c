"""The whole story of an incident in a thread, over signed HTTP, and what may go wrong with single requests."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from agent.slack.app import build, web_client
from tests.agent.slack.conftest import Bench
from tests.agent.slack.slackd import BOT, TEAM, TOKEN, Slack, action_body, button_value, deliver, event_body

CASES = Path(__file__).parents[3] / "evals" / "cases"
WORLD = CASES / "inc-001" / "world"


def until(what, seconds: float = 5.0) -> None:  # type: ignore[no-untyped-def]
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def test_mention_question_file_reply_answer_feedback_case(bench: Bench, slack: Slack) -> None:
    url = bench.open_http()
    asked_at = time.monotonic()
    first = slack.person_says("C1", f"<@{BOT}> answers come late")
    assert deliver(url, event_body(first, kind="app_mention")) == 200
    until(lambda: slack.ours("C1", first["ts"]))
    assert time.monotonic() - asked_at < 3, "the acknowledgement comes before any worker runs"
    assert "Looking" in slack.ours()[0]["text"]

    worker = bench.worker()
    bench.drain(worker)
    running, answer, files = slack.ours("C1", first["ts"])
    finding = next(u for u in slack.updates if u["ts"] == running["ts"])
    assert finding["at"] - asked_at < 10, "first finding of the rules"
    assert running["text"].startswith("Done in")
    command = json.dumps(answer["blocks"])
    assert "One reading would decide" in command and button_value(answer, "skip")
    assert [f["name"].rsplit(".", 1)[-1] for f in files["files"]] == ["json"]
    assert json.loads(files["files"][0]["data"])["outcome"] == "undecidable"

    # nobody mentions us: a reply with files in an asked thread is the answer to the question
    keys = [slack.add_file(p.name, p.read_bytes()) for p in sorted(WORLD.iterdir())]
    reply = slack.person_says("C1", "here you are", first["ts"], keys)
    assert deliver(url, event_body(reply, "Ev2")) == 200
    bench.drain(worker)
    last = [m for m in slack.ours("C1", first["ts"]) if m.get("blocks")][-1]
    assert "KV pool smaller" in last["text"]
    assert "outcome: undecidable → incident" in json.dumps(last["blocks"], ensure_ascii=False)

    # thumbs down opens the correction at once; what it says is kept
    assert deliver(url, action_body("feedback", button_value(last, "feedback-"), last)) == 200
    until(lambda: slack.views)
    view = slack.views[0]
    state = {
        "reason": {"reason": {"selected_option": {"value": "wrong_cause"}}},
        "cause": {"cause": {"selected_option": {"value": "draft_reserves_memory"}}},
        "note": {"note": {"value": "saw it in the start-up log"}},
    }
    sent = {**view, "state": {"values": state}, "id": "V1"}
    payload = {"type": "view_submission", "team": {"id": TEAM}, "user": {"id": "U0HUMAN01"}, "view": sent}
    assert deliver(url, urlencode({"payload": json.dumps(payload)})) == 200
    until(lambda: any(o["cause"] for o in worker.store.opinions(f"{TEAM}:C1:{first['ts']}")))

    assert deliver(url, action_body("case", button_value(last, "case"), last)) == 200
    bench.drain(worker)
    assert "draft case" in slack.ours("C1", first["ts"])[-1]["text"]
    drafts = yaml.safe_load((bench.folder / "journal" / "drafts.yaml").read_text())
    assert drafts[0]["cause_families"] == ["draft_reserves_memory"] and drafts[0]["confirmed"]
    world = bench.folder / "journal" / "drafts" / drafts[0]["id"] / "world"
    assert len(list(world.iterdir())) == len(keys) + 2  # two messages with words, and the files


def test_the_same_event_three_times_and_as_two_kinds(bench: Bench, slack: Slack) -> None:
    url = bench.open_http()
    event = slack.person_says("C1", f"<@{BOT}> TTFT is 30 s, 98 requests waiting")
    for kind in ("app_mention", "message", "app_mention", "app_mention"):
        assert deliver(url, event_body(event, kind=kind)) == 200
    assert bench.drain() == 1
    for _ in range(3):
        deliver(url, event_body(event, kind="app_mention"))
    assert bench.drain() == 0
    keys = [m["metadata"]["event_payload"]["key"] for m in slack.ours() if "metadata" in m]
    assert len(keys) == len(set(keys)) == 2


def test_signatures(bench: Bench, slack: Slack) -> None:
    url = bench.open_http()
    body = event_body(slack.person_says("C1", f"<@{BOT}> slow"), kind="app_mention")
    assert deliver(url, body, secret="not the secret") == 401
    assert deliver(url, body, at=time.time() - 600) == 401
    assert bench.drain() == 0
    assert deliver(url, json.dumps({"type": "url_verification", "challenge": "abc"})) == 200
    assert deliver(url.replace("/slack/events", "/else"), body) == 404


def test_what_cannot_be_recorded_is_not_acknowledged(bench: Bench, slack: Slack) -> None:
    url = bench.open_http()
    body = event_body(slack.person_says("C1", f"<@{BOT}> slow"), kind="app_mention")
    bench.stores[0].db.run("ALTER TABLE events RENAME TO gone")
    assert deliver(url, body) == 500
    bench.stores[0].db.run("ALTER TABLE gone RENAME TO events")
    assert deliver(url, body) == 200
    assert bench.drain() == 1


def test_not_for_us(bench: Bench, slack: Slack) -> None:
    url = bench.open_http()
    root = slack.person_says("C1", "lunch?")
    deliver(url, event_body(root))
    deliver(url, event_body(slack.person_says("C1", "yes", root["ts"])))
    bot = slack.person_says("C1", f"<@{BOT}> KV cache usage is 100%") | {"bot_id": "B9"}
    deliver(url, event_body(bot, kind="app_mention"))
    assert bench.drain() == 0 and not slack.ours()


def test_called_mid_thread_reads_it_once_as_quoted_data(bench: Bench, slack: Slack) -> None:
    url = bench.open_http()
    root = slack.person_says("C1", "P1: chat is slow")
    slack.messages.append(
        {"channel": "C1", "thread_ts": root["ts"], "ts": slack.stamp(), "bot_id": "B7", "text": "alert"}
    )
    slack.person_says("C1", "vllm:num_requests_waiting is 98 and &lt;!channel&gt; nothing moves", root["ts"])
    for text in (f"<@{BOT}> please look", f"<@{BOT}> why?"):
        deliver(url, event_body(slack.person_says("C1", text, root["ts"]), kind="app_mention"))
        bench.drain()
    reads = [c for c in slack.calls if c[1] == "conversations.replies" and not c[2].get("include_all_metadata")]
    assert len(reads) == 1
    text = next(e["text"] for e in bench.stores[0].inbox(f"{TEAM}:C1:{root['ts']}") if "[person" in e.get("text", ""))
    assert "> [bot B7]\n> alert" in text and "> [person U0HUMAN01]" in text
    assert "%" in slack.ours()[-1]["text"] or slack.ours()[-1]["text"], "why is answered from the diagnosis"


def test_skip_follow_stop_and_expired(bench: Bench, slack: Slack) -> None:
    url = bench.open_http()
    root = slack.person_says("C1", f"<@{BOT}> it is slow")
    deliver(url, event_body(root, kind="app_mention"))
    worker = bench.worker()
    bench.drain(worker)
    answer = slack.ours("C1", root["ts"])[1]
    for _ in range(2):  # a double click is one click
        deliver(url, action_body("skip", button_value(answer, "skip"), answer))
    bench.drain(worker)
    following = slack.ours("C1", root["ts"])[3:]
    assert len(following) == 1 and "One reading would decide" in following[0]["text"]
    for _ in range(10):  # every further question, to the end
        held = slack.ours("C1", root["ts"])[-1]
        if "No further question" in held["text"]:
            break
        deliver(url, action_body("skip", button_value(held, "skip"), held))
        bench.drain(worker)
    else:
        raise AssertionError("questions never end")

    deliver(url, action_body("follow", button_value(answer, "follow"), answer))
    bench.drain(worker)
    said = slack.ours("C1", root["ts"])[-1]
    assert "Following" in said["text"]
    deliver(url, event_body(slack.person_says("C1", "--max-num-seqs 4 is set", root["ts"])))
    assert bench.drain(worker) == 1
    deliver(url, action_body("stop", button_value(said, "stop"), said))
    bench.drain(worker)
    assert "Stopped" in slack.ours("C1", root["ts"])[-1]["text"]
    deliver(url, event_body(slack.person_says("C1", "more words", root["ts"])))
    assert bench.drain(worker) == 0

    bench.stores[0].db.run("UPDATE tokens SET expires = 0")
    for name, value in (
        ("skip", button_value(answer, "skip")),
        ("case", "made-up"),
        ("old_button", "x"),
        ("feedback", "up.x"),
    ):
        deliver(url, action_body(name, value, answer))
    until(lambda: len(slack.ephemerals) == 4)
    assert all("expired" in e["text"] for e in slack.ephemerals)


def test_slash_command_opens_a_thread_of_its_own(bench: Bench, slack: Slack) -> None:
    url = bench.open_http()
    form = {"command": "/inferdx", "text": "ttft p99 is 40 s", "team_id": TEAM, "channel_id": "C2", "user_id": "U1", "trigger_id": "t1"}  # fmt: skip
    for _ in range(2):
        assert deliver(url, urlencode(form)) == 200
    assert bench.drain() == 1
    roots = [m for m in slack.ours("C2") if not m.get("thread_ts")]
    assert len(roots) == 1 and len(slack.ours("C2", roots[0]["ts"])) == 3


def test_a_file_that_slack_does_not_give_is_said(bench: Bench, slack: Slack) -> None:
    url = bench.open_http()
    good = slack.add_file("server.log", (WORLD / "server.log").read_bytes())
    bad = slack.add_file("gone.log", b"x")
    slack.files[bad]["url_private_download"] = "http://169.254.169.254/latest"
    deliver(url, event_body(slack.person_says("C1", f"<@{BOT}>", files=[good, bad]), kind="app_mention"))
    bench.drain()
    answer = [m for m in slack.ours() if m.get("blocks")][-1]
    assert "gone.log: not on Slack" in json.dumps(answer["blocks"], ensure_ascii=False)
    only = slack.person_says("C1", f"<@{BOT}>", files=[bad])
    deliver(url, event_body(only, kind="app_mention"))
    bench.drain()
    assert "could not finish" in slack.ours("C1", only["ts"])[-1]["text"]


def test_log_lines_cannot_mention_or_link(bench: Bench, slack: Slack) -> None:
    """The stand-in refuses any message that could; here is a log full of it."""
    url = bench.open_http()
    evil = (
        "<!channel> <!everyone> <@U0HUMAN01> <https://evil.example/x|click> @here `</> *bold* sk-abcdefghijklmnop1234\n"
        "ERROR 06-23 10:27:28 [core.py:12] CUDA out of memory <!channel> https://evil.example @channel ``` rm -rf\n"
    )
    key = slack.add_file("<!channel>.log", (evil * 20).encode())
    event = slack.person_says("C1", f"<@{BOT}> &lt;!channel&gt; crashed: out of memory", files=[key])
    deliver(url, event_body(event, kind="app_mention"))
    bench.drain()
    assert slack.ours() and "sk-abcdefghijklmnop1234" not in json.dumps([m.get("blocks") for m in slack.ours()])


def test_what_takes_long_says_what_is_pending(bench: Bench, slack: Slack, monkeypatch: pytest.MonkeyPatch) -> None:
    from agent.slack.thread import SlackSession

    recover = SlackSession.recover

    def slowly(self: SlackSession) -> Any:
        time.sleep(0.4)
        return recover(self)

    monkeypatch.setattr(SlackSession, "recover", slowly)
    deliver(bench.open_http(), event_body(slack.person_says("C1", f"<@{BOT}> slow"), kind="app_mention"))
    worker = bench.worker()
    worker.handlers.site.slow_s = 0.1
    bench.drain(worker)
    assert any("pending: collect" in json.dumps(u["blocks"]) for u in slack.updates)
    assert slack.ours()[0]["text"].startswith("Done in")


def test_socket_mode_envelopes_are_acknowledged(bench: Bench, slack: Slack) -> None:
    """The same app behind Socket Mode: the envelope is answered, the event is recorded once, redelivery is nothing new."""
    from slack_bolt.adapter.socket_mode.builtin import SocketModeHandler
    from slack_sdk.socket_mode.request import SocketModeRequest

    app = build(web_client(TOKEN, slack.url), bench.handlers().store, bench.handlers(), secret="", bot=BOT)
    handler = SocketModeHandler(app, "xapp-test")
    sent: list[Any] = []
    handler.client.send_socket_mode_response = sent.append  # type: ignore[method-assign, assignment]
    payload = json.loads(event_body(slack.person_says("C1", f"<@{BOT}> slow"), kind="app_mention"))
    for n in range(3):
        handler.handle(handler.client, SocketModeRequest(type="events_api", envelope_id=f"e{n}", payload=payload))
    assert [r.envelope_id for r in sent] == ["e0", "e1", "e2"]
    assert bench.drain() == 1


def test_the_manifest_asks_for_what_is_used() -> None:
    manifest = yaml.safe_load((Path(__file__).parents[3] / "agent" / "slack" / "manifest.yaml").read_text())
    scopes = set(manifest["oauth_config"]["scopes"]["bot"])
    assert {"app_mentions:read", "chat:write", "commands", "files:read", "files:write"} <= scopes
    assert len(manifest["display_information"]["description"]) <= 140
    assert len(manifest["display_information"]["long_description"]) >= 175
    assert manifest["settings"]["event_subscriptions"]["bot_events"][0] == "app_mention"
    assert not any("admin" in s or s.startswith("users:") for s in scopes)
