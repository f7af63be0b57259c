"""The SDK's own client against a real server process: over standard input and output, and over HTTP on loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'inferdx[mcp]')")

from tests.agent.mcp.worlds import world

REPO = Path(__file__).resolve().parents[3]


def command(root: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "agent.main", "mcp", "--allow-root", str(root), *more]


def environment() -> dict[str, str]:
    keep = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "INFERDX_CACHE", "XDG_CACHE_HOME")}
    return {**keep, "PYTHONPATH": str(REPO), "NO_PROXY": "127.0.0.1"}


async def session(client: Any) -> None:
    """What an agent does: list, diagnose, follow the evidence, run into refusals."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert "diagnose" in tools and len(tools) == 9

    async def ask(name: str, **given: Any) -> Any:
        result = await client.call_tool(name, given)
        assert not result.is_error, result.content[0].text
        Draft202012Validator(tools[name].output_schema).validate(result.structured_content)
        return result

    found = await ask("diagnose", paths=["incident"])
    data = found.structured_content
    links = [c for c in found.content if c.type == "resource_link"]
    assert f"inferdx://report/{data['run']}" in {str(link.uri) for link in links}
    report = (await client.read_resource(f"inferdx://report/{data['run']}")).contents[0]
    assert report.mime_type == "text/markdown" and report.text.startswith("## ")
    first = (await ask("get_evidence", run=data["run"], limit=1)).structured_content["items"][0]
    one = (await client.read_resource(f"inferdx://evidence/{data['run']}/{first['id']}")).contents[0]
    assert json.loads(one.text) == first
    known = (await client.read_resource("inferdx://knowledge/cause/kv_cache_exhausted")).contents[0]
    assert "kv_cache_exhausted" in known.text
    listed = {str(r.uri) for r in (await client.list_resources()).resources}
    assert f"inferdx://report/{data['run']}" in listed
    templates = {t.uri_template for t in (await client.list_resource_templates()).resource_templates}
    assert "inferdx://evidence/{run}/{id}" in templates
    for uri in (
        "inferdx://evidence/r0/E1",
        "inferdx://evidence/../E1",
        "inferdx://knowledge/cause/nope",
        "inferdx://x/y",
        "file:///etc/passwd",
    ):
        with pytest.raises(Exception, match=r"unknown_|no such|[Uu]nknown|not found"):
            await client.read_resource(uri)
    for name, given, code in (
        ("diagnose", {"paths": ["/etc/passwd"]}, "path_refused"),
        ("fetch_metrics", {"url": "http://169.254.169.254/latest/meta-data"}, "url_refused"),
        ("read_config", {"wrong": 1}, "bad_argument"),
    ):
        result = await client.call_tool(name, given)
        assert result.is_error and json.loads(result.content[0].text)["error"]["code"] == code
    assert (await ask("health")).structured_content["roots"]


def test_over_standard_input_and_output(tmp_path: Path) -> None:
    import anyio
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters

    world(tmp_path / "incident")
    words = command(tmp_path)
    parameters = StdioServerParameters(command=words[0], args=words[1:], env=environment(), cwd=str(tmp_path))

    async def go() -> None:
        with anyio.fail_after(150):
            async with Client(parameters) as client:
                await session(client)

    anyio.run(go)


@contextmanager
def served(root: Path) -> Iterator[str]:
    process = subprocess.Popen(
        command(root, "--http", "--port", "0"), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        env=environment(), cwd=root,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/mcp", line)
        assert found, line
        drain = threading.Thread(target=process.stderr.read, daemon=True)
        drain.start()
        yield found[0]
    finally:
        process.terminate()
        process.wait(15)


def test_over_http_in_both_protocol_revisions(tmp_path: Path) -> None:
    import anyio
    import httpx
    from mcp.client.client import Client

    world(tmp_path / "incident")
    with served(tmp_path) as url:

        async def go() -> None:
            with anyio.fail_after(150):
                async with Client(url) as client:
                    await session(client)
                async with Client(url, mode="legacy") as client:
                    assert len((await client.list_tools()).tools) == 9

        anyio.run(go)
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        with httpx.Client(trust_env=False) as plain:
            for header in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
                answer = plain.post(url, json=body, headers={"Accept": "application/json, text/event-stream", **header})
                assert answer.status_code in (403, 421), "a web page must not reach it by DNS rebinding"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--allow-root", "/no/such/folder"], "no such folder"),
        (["--allow-root", "/"], "whole file system"),
        (["--allow-url", "http://169.254.169.254/"], "never read"),
        (["--host", "0.0.0.0"], "invalid choice"),
    ],
)
def test_what_cannot_start_says_why_in_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from agent.cli import Parser
    from agent.mcp.cli import add_arguments, run

    parser = Parser(prog="inferdx mcp")
    add_arguments(parser)
    try:
        status = run(parser.parse_args(words))
    except SystemExit as ended:
        status = int(str(ended.code))
    text = capsys.readouterr().err
    assert status == 3 and said in text and text.count("\n") == 1
