"""Workers die between any two steps, lose their lease, are killed for real; many threads at once; Slack misbehaves."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from agent.slack.store import Lost, Store
from agent.slack.worker import Worker
from tests.agent.slack.conftest import Bench
from tests.agent.slack.slackd import BOT, SECRET, TEAM, TOKEN, Slack, deliver, event_body

ROOT = Path(__file__).parents[3]


class Killed(BaseException):
    """What SIGKILL is to a thread: nothing catches it, nothing is tidied up in the store."""


class Fuse:
    """Counts steps (Web API calls, writes to the store, steps of the graph) and burns after the chosen one."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.dead = False

    def step(self) -> None:
        if self.dead:
            raise Killed
        self.left -= 1
        if self.left == 0:
            self.dead = True
            raise Killed


def armed(bench: Bench, at: int) -> tuple[Worker, Fuse]:
    """A worker that dies right after its ``at``-th step took effect."""
    worker, fuse = bench.worker(lease_s=0.0), Fuse(at)
    worker.lease_s = 60.0
    client, db = worker.handlers.poster.client, worker.store.db
    call, run, transaction = client.api_call, db.run, db.transaction

    def api_call(*args: Any, **kw: Any) -> Any:
        out = call(*args, **kw)
        fuse.step()
        return out

    def db_run(sql: str, *values: Any) -> Any:
        out = run(sql, *values)
        if not sql.startswith("SELECT"):
            fuse.step()
        return out

    class Transaction:
        def __init__(self) -> None:
            self.inner = transaction()

        def __enter__(self) -> Any:
            return self.inner.__enter__()

        def __exit__(self, *args: Any) -> Any:
            out = self.inner.__exit__(*args)
            if args[0] is None:
                fuse.step()
            return out

    client.api_call, db.run, db.transaction = api_call, db_run, Transaction  # type: ignore[method-assign, assignment]
    return worker, fuse


def free_leases(store: Store) -> None:
    """Time passes: leases of the dead run out."""
    store.db.run("UPDATE events SET lease = 0")


def keys_of(slack: Slack, channel: str, ts: str) -> list[str]:
    return [
        m["metadata"]["event_payload"]["key"].rsplit(":", 1)[-1] for m in slack.ours(channel, ts) if "metadata" in m
    ]


def test_killed_between_any_two_steps(bench: Bench, slack: Slack) -> None:
    url = bench.open_http()
    key = slack.add_file("launch.txt", b"vllm serve m --max-num-seqs 4\n")
    reference: list[Any] = []
    steps = 0
    store = bench.stores[0]
    for at in range(1, 120):
        channel = f"C{at:03d}"
        event = slack.person_says(channel, f"<@{BOT}> slow", files=[key])
        deliver(url, event_body(event, kind="app_mention"))
        worker, fuse = armed(bench, at)
        survived = False
        try:
            bench.drain(worker)
            survived = not fuse.dead
        except Killed:
            pass
        free_leases(store)
        if not survived:
            bench.drain()
        seen = keys_of(slack, channel, event["ts"])
        assert sorted(seen) == ["answer", "run"], f"killed after step {at}: {seen}"
        uploads = [m for m in slack.ours(channel, event["ts"]) if "files" in m]
        assert len(uploads) == 1, f"killed after step {at}: {len(uploads)} uploads"
        shown = slack.ours(channel, event["ts"])
        texts = [shown[0]["text"].startswith("Done"), shown[1]["text"]]
        reference = reference or texts
        assert texts == reference, f"killed after step {at}"
        worker.store.close()
        if survived:
            steps = at
            break
    assert steps > 20, "the whole run was covered"
    assert store.waiting() == {"done": steps}


def test_no_answer_from_slack_is_looked_up_before_posting_again(bench: Bench, slack: Slack) -> None:
    """The connection drops before or after Slack took the message: exactly one message in both cases."""
    url = bench.open_http()
    for fault in ("drop", "drop after"):
        event = slack.person_says("C1", f"<@{BOT}> slow")
        broken: set[str] = set()

        def faults(
            method: str, given: dict[str, Any], count: int, fault: str = fault, broken: set[str] = broken
        ) -> Any:
            if method not in broken and method in ("chat.postMessage", "files.completeUploadExternal", "chat.update"):
                broken.add(method)
                return fault
            return None

        slack.faults = faults
        deliver(url, event_body(event, kind="app_mention"))
        time.sleep(0.3)
        for _ in range(20):
            bench.drain()
            if not bench.stores[0].waiting().get("open"):
                break
            time.sleep(0.02)
        slack.faults = None
        assert sorted(keys_of(slack, "C1", event["ts"])) == ["answer", "run"], fault
        assert len(slack.ours("C1", event["ts"])) == 3, fault


def test_retry_after_is_obeyed_by_all_workers(bench: Bench, slack: Slack) -> None:
    limited: list[float] = []

    def faults(method: str, given: dict[str, Any], count: int) -> Any:
        if method == "chat.postMessage" and not limited:
            limited.append(time.monotonic())
            return 429, {"ok": False, "error": "ratelimited"}, {"Retry-After": "1"}
        return None

    one, two = bench.handlers(), bench.handlers()
    slack.faults = faults
    content = {"text": "x", "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "x"}}]}
    thread = threading.Thread(target=lambda: one.poster.post("k1", "C1", "", content))
    thread.start()
    while not limited:
        time.sleep(0.005)
    time.sleep(0.1)
    two.poster.post("k2", "C1", "", content)
    thread.join()
    times = [at for at, method, _ in slack.calls if method == "chat.postMessage"]
    assert len(times) == 3 and min(times[1:]) - limited[0] >= 0.95


def test_one_post_a_second_in_a_channel_over_two_workers(slack: Slack, bench: Bench) -> None:
    slack.every_s = 0.2
    pair = [bench.handlers(), bench.handlers()]
    for h in pair:
        h.poster.every_s = 0.2
    content = {"text": "x", "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "x"}}]}
    crowd = [
        threading.Thread(target=lambda n=n, h=h: h.poster.post(f"k{n}{id(h)}", "C1", "", content))  # type: ignore[misc]
        for n in range(3)
        for h in pair
    ]
    for t in crowd:
        t.start()
    for t in crowd:
        t.join()
    times = sorted(at for at, method, _ in slack.calls if method == "chat.postMessage")
    assert len(slack.ours()) == 6
    assert min(b - a for a, b in itertools.pairwise(times)) > 0.15


def crowd_of(bench: Bench, slack: Slack, count: int) -> dict[str, dict[str, Any]]:
    """``count`` threads at once, each with its own word, worked on by two workers; every event delivered twice."""
    url = bench.open_http()
    events = {f"C{n:03d}": slack.person_says(f"C{n:03d}", f"<@{BOT}> slow, marker-{n:03d}") for n in range(count)}
    bodies = [event_body(e, kind=k) for e in events.values() for k in ("app_mention", "message")]
    senders = [
        threading.Thread(target=lambda part=part: [deliver(url, b) for b in part])
        for part in (bodies[::2], bodies[1::2])
    ]  # type: ignore[misc]
    workers = [bench.worker(), bench.worker()]
    threads = [w.start() for w in workers]
    for s in senders:
        s.start()
    for s in senders:
        s.join()
    end = time.monotonic() + 60
    while bench.stores[0].waiting() != {"done": count}:
        assert time.monotonic() < end, bench.stores[0].waiting()
        time.sleep(0.05)
    for w in workers:
        w.stopping.set()
    for t in threads:
        t.join()
    return events


def check_crowd(bench: Bench, slack: Slack, events: dict[str, dict[str, Any]]) -> None:
    for channel, event in events.items():
        assert sorted(keys_of(slack, channel, event["ts"])) == ["answer", "run"], "none lost, none doubled"
        words = [e["text"] for e in bench.stores[0].inbox(f"{TEAM}:{channel}:{event['ts']}")]
        assert words == [f"slow, marker-{channel[1:]}"], "none crossed"
        report = next(m for m in slack.ours(channel, event["ts"]) if "files" in m)["files"][0]["data"]
        assert json.loads(report)["provenance"], channel


def test_twenty_threads_at_once_with_two_workers(bench: Bench, slack: Slack) -> None:
    check_crowd(bench, slack, crowd_of(bench, slack, 20))


def test_a_lost_lease_stops_the_worker(bench: Bench, slack: Slack) -> None:
    slow = bench.worker()
    store = slow.store
    store.enqueue("e1", "message", "T:C1:1", "C1", {})
    event = store.claim("one", 0.0, ("message",))
    other = store.claim("two", 60.0, ("message",))
    assert event is not None and other is not None and other.tries == 2
    with pytest.raises(Lost):
        store.renew(event, "one", 60.0)
    with pytest.raises(Lost):
        store.finish(event, "one")
    store.finish(other, "two")
    assert store.claim("three", 60.0, ("message",)) is None


def test_events_of_one_thread_in_order_and_never_at_once(bench: Bench) -> None:
    store = bench.worker().store
    for n in range(3):
        store.enqueue(f"e{n}", "message", "T:C1:1", "C1", {})
    store.enqueue("other", "message", "T:C1:2", "C1", {})
    first = store.claim("one", 60.0, ("message",))
    second = store.claim("two", 60.0, ("message",))
    assert first is not None and second is not None and (first.id, second.id) == ("e0", "other")
    assert store.claim("three", 60.0, ("message",)) is None
    store.finish(first, "one")
    after = store.claim("three", 60.0, ("message",))
    assert after is not None and after.id == "e1"


def test_an_event_that_always_fails_ends_visibly(bench: Bench, slack: Slack) -> None:
    url = bench.open_http()
    event = slack.person_says("C1", f"<@{BOT}> slow")
    deliver(url, event_body(event, kind="app_mention"))
    worker = bench.worker()
    worker.handlers.collector.message = lambda *_: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    end = time.monotonic() + 10
    while bench.stores[0].waiting().get("dead") != 1:
        worker.once()
        time.sleep(0.01)
        assert time.monotonic() < end
    assert "ZeroDivisionError after 5 tries" in slack.ours("C1", event["ts"])[-1]["text"]


CHILD = """
import sys
from pathlib import Path
from agent.cli import run
sys.exit(run(["slack", "--listen", "127.0.0.1:0", "--store", sys.argv[1], "--api", sys.argv[2], "--no-model", "--workers", "2"]))
"""


def start_child(store: Path, slack: Slack, home: Path) -> subprocess.Popen[str]:
    env = {
        **os.environ, "SLACK_BOT_TOKEN": TOKEN, "SLACK_SIGNING_SECRET": SECRET, "INFERDX_DATA": str(home), "HOME": str(home),
        "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(store), slack.url], env=env, cwd=home, stderr=subprocess.PIPE, text=True
    )


def test_kill_dash_nine_of_the_real_process(slack: Slack, tmp_path: Path, bench: Bench) -> None:
    """The product's own command is killed while Slack answers its post, started again, and finishes the event once."""
    path = tmp_path / "store.sqlite"
    hit = threading.Event()
    child = start_child(path, slack, tmp_path)
    try:
        assert child.stderr is not None
        line = next(row for row in child.stderr if "listening on" in row or not row)
        url = line.rsplit(" ", 1)[-1].strip()

        def faults(method: str, given: dict[str, Any], count: int) -> Any:
            if method == "chat.update" and not hit.is_set():
                hit.set()
                time.sleep(0.5)
                return "drop after"
            return None

        slack.faults = faults
        event = slack.person_says("C1", f"<@{BOT}> slow")
        assert deliver(url, event_body(event, kind="app_mention")) == 200
        assert hit.wait(20)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    slack.faults = None
    free_leases(Store(path))
    bench.drain()
    assert sorted(keys_of(slack, "C1", event["ts"])) == ["answer", "run"]
