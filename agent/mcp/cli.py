"""``inferdx mcp``: over standard input and output, or streamable HTTP on loopback."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

DEFAULT_PORT = 8736


def add_arguments(parser: argparse.ArgumentParser, command: str = "mcp") -> None:
    """Options of the command."""
    parser.description = (
        "Serve the doctor's tools to other agents by the Model Context Protocol. Reads only; files only below the\n"
        "allowed roots; addresses only from the list. Standard input and output by default, --http for loopback HTTP."
    )
    parser.add_argument(
        "--allow-root", "--root", action="append", default=[], metavar="DIR", dest="roots",
        help="a folder that may be read; may be repeated (default: the current folder)",
    )  # fmt: skip
    parser.add_argument(
        "--allow-url", action="append", default=[], metavar="URL", dest="urls",
        help="an address that may be fetched, such as http://127.0.0.1:8000/metrics; may be repeated (default: none)",
    )  # fmt: skip
    parser.add_argument("--knowledge", action="append", default=[], metavar="DIR", help="site knowledge to add")
    parser.add_argument(
        "--http", action="store_true", help="streamable HTTP at /mcp instead of standard input and output"
    )
    parser.add_argument("--host", default="127.0.0.1", choices=("127.0.0.1", "localhost", "::1"), help="loopback only")
    parser.add_argument(
        "--port", type=int, default=DEFAULT_PORT, metavar="N", help=f"port of --http ({DEFAULT_PORT}; 0: any)"
    )
    parser.add_argument("--verbose", action="store_true", help="log each request on standard error")


def run(args: argparse.Namespace) -> int:
    """Serve until the client goes away. Exit status 0, or 3 when it cannot start."""
    try:
        import anyio
        import mcp  # noqa: F401
    except ImportError:
        print("inferdx: the MCP SDK is missing; pip install 'inferdx[mcp]'", file=sys.stderr)
        return 3
    from agent.mcp.roots import Roots
    from agent.mcp.server import build
    from agent.mcp.tool import Desk
    from agent.mcp.urls import Addresses

    try:
        desk = Desk(
            roots=Roots(_folders(args.roots)),
            addresses=Addresses(args.urls),
            knowledge=[Path(folder) for folder in args.knowledge],
        )
    except ValueError as error:
        print(f"inferdx: {error}", file=sys.stderr)
        return 3
    _quiet(args.verbose)
    server = build(desk)
    try:
        if args.http:
            return _http(server, args.host, args.port, args.verbose)
        anyio.run(_stdio, server)
    except KeyboardInterrupt:
        pass
    return 0


def _folders(given: list[str]) -> list[Path]:
    """The folders named, else the current one; a process started in ``/`` gets none, and says so in ``health``."""
    if given:
        return [Path(text) for text in given]
    here = Path.cwd()
    return [] if here == Path(here.anchor) else [here]


def _quiet(verbose: bool) -> None:
    """Standard output belongs to the protocol; standard error gets warnings only, unless asked for more."""
    import logging

    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO if verbose else logging.WARNING, format="%(name)s: %(message)s"
    )
    if not verbose:
        for name in ("mcp", "httpx", "uvicorn"):
            logging.getLogger(name).setLevel(logging.ERROR)


async def _stdio(server: Any) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _http(server: Any, host: str, port: int, verbose: bool) -> int:
    """The SDK's own app checks Host and Origin against loopback, so that a web page cannot reach it by DNS rebinding."""
    import socket

    import uvicorn

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    held = socket.socket(family, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind((host, port))
        held.listen(128)  # before the address is told: who connects at once must wait, not be refused
    except (OSError, OverflowError) as error:
        print(f"inferdx: port {port} cannot be opened ({error})", file=sys.stderr)
        return 3
    app = server.streamable_http_app(host=host, stateless_http=True, json_response=True)
    shown = f"[{host}]" if ":" in host else host
    print(f"inferdx mcp: http://{shown}:{held.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(app, log_level="info" if verbose else "error", access_log=verbose)
    uvicorn.Server(config).run(sockets=[held])
    return 0
