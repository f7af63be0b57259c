"""Live reading over loopback: windows, refusals, redirects, dead ends; and a real Prometheus where one is installed."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests.agent.services import free_port
from tools.contract import Context
from tools.intake.collect import read_all
from tools.metrics import live

PAGE = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="m"}} 4.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{engine="0",model_name="m"}} 0.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{{engine="0",model_name="m"}} {tokens}
"""


class Handler(BaseHTTPRequestHandler):
    """``/metrics`` counts 100 tokens per second; ``/away`` redirects; ``/no`` is missing; ``/html`` is a web page."""

    born = time.time()
    hits: list[str] = []  # noqa: RUF012 -- shared by the requests of one test, cleared by the fixture

    def do_GET(self) -> None:
        self.hits.append(self.path)
        path = self.path.split("?")[0]
        status, body, kind = 200, "", "text/plain"
        if path == "/metrics":
            body = PAGE.format(tokens=round(100 * (time.time() - self.born), 3))
        elif path == "/away":
            self.send_response(302)
            self.send_header("Location", "/metrics")
            self.end_headers()
            return
        elif path == "/html":
            body, kind = "<html><body>login</body></html>", "text/html"
        else:
            status, body = 404, "no"
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[str]:
    Handler.hits.clear()
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    httpd.server_close()


def test_window_gives_a_rate(server: str) -> None:
    parts, problems, readings = live.scrape(f"{server}/metrics", seconds=2.0, every=0.5)
    assert not problems
    assert not readings
    assert len(parts) == 5
    facts = {r.fact: r.value for r in read_all(parts, Context())[0]}
    assert facts["throughput.generation_tokens_per_s.mean"] == pytest.approx(100, rel=0.15)
    assert facts["queue.running.max"] == 4


def test_one_scrape_has_no_rate(server: str) -> None:
    parts, _, _ = live.scrape(f"{server}/metrics", seconds=0)
    facts = {r.fact for r in read_all(parts, Context())[0]}
    assert len(parts) == 1
    assert not any(f.startswith("throughput.") and "_per_s" in f for f in facts)


def test_a_redirect_is_not_followed(server: str) -> None:
    parts, problems, readings = live.scrape(f"{server}/away", seconds=0)
    assert not parts
    assert "HTTP 302" in problems[0].line()
    assert readings[0].fact == "metrics.endpoint_down"
    assert Handler.hits == ["/away"]


def test_a_page_of_another_kind_is_said(server: str) -> None:
    parts, _, _ = live.scrape(f"{server}/html", seconds=0)
    readings, problems, _ = read_all(parts, Context())
    assert problems
    assert not any(r.fact.startswith("queue.") for r in readings)


def test_nobody_listens() -> None:
    _, problems, readings = live.scrape(f"http://127.0.0.1:{free_port()}/metrics", seconds=0)
    assert "no answer" in problems[0].line()
    assert readings[0].fact == "metrics.endpoint_down"


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "ftp://127.0.0.1/metrics", "http://user:secret@127.0.0.1/metrics", "//127.0.0.1/metrics",
        "http://169.254.169.254/latest", "http://[::ffff:169.254.169.254]/latest", "http://[fe80::1]/m", "http://0.0.0.0/m",
    ],
)  # fmt: skip
def test_refused_addresses(url: str) -> None:
    with pytest.raises(live.Refused) as caught:
        live.check_url(url)
    assert "secret" not in str(caught.value)


def test_an_answer_that_does_not_end() -> None:
    class Drip(Handler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            try:
                for _ in range(200):
                    self.wfile.write(b"# drip\n")
                    self.wfile.flush()
                    time.sleep(0.05)
            except OSError:
                return

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Drip)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    begin = time.monotonic()
    with pytest.raises(httpx.ReadTimeout):
        live.fetch(f"http://127.0.0.1:{httpd.server_port}/metrics", timeout=0.3)
    assert time.monotonic() - begin < 5
    httpd.shutdown()


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[str]:
    binary = shutil.which("prometheus")
    if binary is None:
        pytest.skip("Prometheus is not installed (apt-get install prometheus)")
    config, port = folder / "p.yml", free_port()
    config.write_text(
        "scrape_configs:\n- job_name: e\n  scrape_interval: 1s\n  static_configs:\n  - targets: ['"
        + target.removeprefix("http://")
        + "']\n"
    )
    process = subprocess.Popen(
        [binary, f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}",
         f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.real
def test_a_real_prometheus(tmp_path: Path, server: str) -> None:
    with prometheus(tmp_path, server) as base:
        facts: dict[str, object] = {}
        until = time.time() + 40
        while time.time() < until and "throughput.generation_tokens_per_s.mean" not in facts:
            time.sleep(2)
            result = live.prometheus(base, 'model_name="m"', time.time() - 10, time.time(), step=1.0)
            facts = {r.fact: r.value for r in result.readings if r.status == "ok"}
        assert facts["queue.running.max"] == 4
        assert facts["throughput.generation_tokens_per_s.mean"] == pytest.approx(100, rel=0.35)
        nothing = live.prometheus(base, 'model_name="other"', time.time() - 10, time.time())
        assert "no vLLM or SGLang series" in nothing.problems[0].line()
        bad = live.prometheus(base, 'model_name=~"("', time.time() - 10, time.time())
        assert "Prometheus answered 4" in bad.problems[0].line()
