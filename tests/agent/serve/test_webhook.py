"""The Alertmanager webhook: token, folding, bounds, targets, and the whole way with a real Alertmanager."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="starlette is not installed (pip install 'inferdx[serve]')")
pytest.importorskip("uvicorn", reason="uvicorn is not installed (pip install 'inferdx[serve]')")

from agent.investigate import site_knowledge
from agent.serve.alerts import Bad, parse
from agent.serve.service import Station
from agent.slack.handlers import Site
from agent.slack.service import Credentials, warm
from agent.slack.targets import Target, Targets, TargetsError, load
from tests.agent.services import alertmanager, free_port

TOKEN = "a-token-of-more-than-sixteen"
CASES = Path(__file__).parents[3] / "evals" / "cases"


@pytest.fixture(scope="module")
def known() -> Any:
    found = site_knowledge()
    warm(found)
    return found


class Pages:
    """An engine's /metrics: the recorded scrapes one after the other."""

    def __init__(self, world: Path) -> None:
        import gzip

        self.bodies = [gzip.decompress(p.read_bytes()) for p in sorted(world.glob("metrics-*.prom.gz"))]
        self.asked = 0
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = owner.bodies[min(owner.asked, len(owner.bodies) - 1)]
                owner.asked += 1
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                del args

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/metrics"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def engine() -> Iterator[Pages]:
    pages = Pages(CASES / "lab-016" / "world")
    yield pages
    pages.close()


class Running:
    """A station behind a real uvicorn."""

    def __init__(self, folder: Path, known: Any, targets: Targets, **options: Any) -> None:
        import uvicorn

        site = Site(home=folder / "home", journal=folder / "journal", known=known, update_every_s=0.05)
        self.station = Station(
            TOKEN,
            str(folder / "store.sqlite"),
            [site],
            targets,
            queue=options.pop("queue", 50),
            looks_s=(0.6, 1.2),
            **options,
        )
        port = free_port()
        self.server = uvicorn.Server(uvicorn.Config(self.station.app, "127.0.0.1", port, log_level="error"))
        self.base = f"http://127.0.0.1:{port}"
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def call(self, path: str, body: Any = None, token: str = TOKEN) -> tuple[int, Any]:
        raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, raw, {"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                text, status = answer.read().decode(), int(answer.status)
        except urllib.error.HTTPError as error:
            text, status = error.read().decode(), int(error.code)
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def drain(self) -> int:
        done = 0
        while self.station.workers[0].once():
            done += 1
        return done

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join(10)
        self.station.stop()


@pytest.fixture
def running(tmp_path: Path, known: Any, engine: Pages) -> Iterator[Running]:
    targets = Targets(targets=[Target(name="lab", match={"model_name": "lab-*"}, metrics=[engine.url])])
    made = Running(tmp_path, known, targets, queue=2)
    yield made
    made.close()


def payload(fingerprint: str = "aabbccdd00112233", status: str = "firing", **labels: str) -> dict[str, Any]:
    one = {
        "status": status, "fingerprint": fingerprint, "startsAt": "2026-01-31T10:00:00Z", "endsAt": "0001-01-01T00:00:00Z",
        "labels": {"alertname": "TTFTHigh", "model_name": "lab-model", **labels}, "annotations": {"summary": "p99 over 2 s"},
    }  # fmt: skip
    return {"version": "4", "status": status, "alerts": [one]}


def test_an_alert_becomes_an_answer_that_can_be_read(running: Running) -> None:
    assert running.call("/alerts", payload()) == (200, {"opened": 1, "folded": 0, "resolved": 0, "refused": 0})
    assert running.call("/investigations/aabbccdd00112233") == (202, {"pending": True})
    assert running.drain() == 1
    status, answer = running.call("/investigations/aabbccdd00112233")
    assert status == 200 and answer["outcome"] in ("incident", "undecidable")
    assert any(e["fact"] == "queue.waiting.max" and e["value"] > 0 for e in answer["evidence"])
    assert any(".prom.gz" in e["source"].get("ref", "") for e in answer["evidence"])
    status, rows = running.call("/investigations")
    assert status == 200 and rows[0]["outcome"] == answer["outcome"] and rows[0]["times"] == 1


def test_repeats_fold_and_resolved_is_kept(running: Running) -> None:
    for n in range(4):
        _, counts = running.call("/alerts", payload())
        assert counts["opened"] == (1 if n == 0 else 0) and counts["folded"] == (0 if n == 0 else 1)
    assert running.call("/alerts", payload(status="resolved"))[1]["resolved"] == 1
    assert running.call("/alerts", payload(status="resolved"))[1]["resolved"] == 0
    assert running.call("/alerts", payload())[1]["folded"] == 1
    assert running.call("/investigations")[1][0]["times"] == 5
    assert running.station.desk.store.waiting() == {"open": 1}


def test_the_queue_is_bounded_and_says_come_again(running: Running) -> None:
    codes = [running.call("/alerts", payload(f"00000000000000{n:02d}"))[0] for n in range(4)]
    assert codes == [200, 200, 503, 503]
    running.station.desk.store.db.run("UPDATE events SET state = 'done'")
    assert running.call("/alerts", payload("0000000000000003"))[0] == 200


def test_token_sizes_and_nonsense(running: Running) -> None:
    assert running.call("/alerts", payload(), token="wrong")[0] == 401
    assert running.call("/metrics", token="")[0] == 401
    assert running.call("/investigations", token="x")[0] == 401
    assert running.call("/healthz", token="")[0] == 200
    assert running.call("/alerts", b"{" * 100)[0] == 400
    assert running.call("/alerts", b"[" + b"1," * (3 << 20) + b"1]")[0] == 413
    assert running.call("/alerts", {"alerts": [{"status": "firing"}]})[0] == 400
    assert running.call("/investigations/none")[0] == 404
    status, text = running.call("/metrics")
    assert status == 200
    from prometheus_client.parser import text_string_to_metric_families

    values = {s.name: s.value for f in text_string_to_metric_families(text) for s in f.samples if not s.labels}
    assert values["inferdx_queue_limit"] == 2
    assert 'inferdx_requests_rejected_total{why="denied"} 3' in text
    running.station.desk.store.db.run("ALTER TABLE events RENAME TO gone")
    assert running.call("/healthz")[0] == 503


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b'{"alerts": 3}', b'{"alerts": [3]}', b'{"alerts": [{"fingerprint": "../../etc", "status": "firing"}]}', b'{"alerts": [{"fingerprint": "aabbccdd", "status": "on fire"}]}']
)  # fmt: skip
def test_bad_payloads_are_refused_with_a_reason(body: bytes) -> None:
    with pytest.raises(Bad) as error:
        parse(body)
    assert str(error.value)


def test_targets_file(tmp_path: Path) -> None:
    path = tmp_path / "targets.yaml"
    path.write_text(
        "channel: C0000001\ntargets:\n  - name: a\n    match: {model_name: 'llama-*', namespace: prod}\n    metrics: ['http://h:1/metrics']\n"
    )
    found = load(path)
    assert found.of({"model_name": "llama-70b", "namespace": "prod"}) is not None
    assert found.of({"model_name": "llama-70b"}) is None
    assert found.named("please look at a now") is not None and found.named("please look at it") is None
    for text, what in (
        ("targets: [", "not YAML"), ("targets: [{name: a, metrcs: []}]", "metrcs"), ("targets: [{name: a, range: soon}]", "soon"),
        ("targets: [{name: a, metrics: ['file:///etc/passwd']}]", "not an http address"),
    ):  # fmt: skip
        path.write_text(text)
        with pytest.raises(TargetsError, match=what):
            load(path)
    with pytest.raises(TargetsError, match="cannot be read"):
        load(tmp_path / "none.yaml")


def test_alertmanager_to_thread_to_answer(tmp_path: Path, known: Any, engine: Pages) -> None:
    """A real Alertmanager fires; the alert's thread gets finding, answer and picture; repeats fold; the end is told."""
    pytest.importorskip("slack_sdk", reason="slack-sdk is not installed (pip install 'inferdx[slack]')")
    from tests.agent.slack.slackd import TOKEN as BOT_TOKEN
    from tests.agent.slack.slackd import Slack

    slack = Slack()
    targets = Targets(
        targets=[Target(name="lab", match={"model_name": "lab-*"}, metrics=[engine.url], channel="C0000001")]
    )
    made = Running(tmp_path, known, targets, slack=Credentials(bot=BOT_TOKEN), base_url=slack.url, every_s=0.0)
    try:
        with alertmanager(tmp_path, f"{made.base}/alerts", TOKEN) as base:
            made.station.start()
            fired = time.monotonic()
            alerts: list[dict[str, Any]] = [
                {
                    "labels": {"alertname": "TTFTHigh", "model_name": "lab-model"},
                    "annotations": {"summary": "p99 <!channel> 30 s"},
                }
            ]
            request = urllib.request.Request(
                f"{base}/api/v2/alerts", json.dumps(alerts).encode(), {"Content-Type": "application/json"}
            )

            def fire() -> None:
                with urllib.request.urlopen(request, timeout=5) as answer:
                    assert answer.status == 200

            def wait(what: Any, seconds: float = 30.0) -> None:
                end = time.monotonic() + seconds
                while not what():
                    assert time.monotonic() < end, [m.get("text") for m in slack.ours()]
                    time.sleep(0.02)

            fire()
            wait(lambda: any("files" in m for m in slack.ours()))
            assert time.monotonic() - fired < 90
            roots = [m for m in slack.ours("C0000001") if not m.get("thread_ts")]
            assert len(roots) == 1 and "TTFTHigh" in roots[0]["text"]
            thread = slack.ours("C0000001", roots[0]["ts"])
            assert [("files" in m) for m in thread] == [False, False, True]
            names = [f["name"].rsplit(".", 1)[-1] for f in thread[2]["files"]]
            assert names == ["json", "png"] and thread[2]["files"][1]["data"].startswith(b"\x89PNG")
            wait(lambda: made.call("/investigations")[1][0]["times"] >= 2)  # repeat_interval
            alerts[0]["endsAt"] = "2026-01-01T00:00:00Z"
            request.data = json.dumps(alerts).encode()
            fire()
            wait(lambda: any("resolved" in m.get("text", "") for m in slack.ours()))
            assert len([m for m in slack.ours("C0000001") if not m.get("thread_ts")]) == 1, "everything in one thread"
            assert len(slack.ours("C0000001", roots[0]["ts"])) == 4
    finally:
        made.close()
        slack.close()
    assert not slack.broken, slack.broken
