"""``inferdx slack``, ``inferdx serve`` and ``inferdx mcp``: options here, everything else loaded on use."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import Any


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Options of the three doors."""
    if command == "mcp":
        from agent.mcp import cli

        cli.add_arguments(parser)
        return
    parser.add_argument("--targets", type=Path, metavar="FILE", help="this site's servers (docs/alerts.md)")
    parser.add_argument(
        "--store", default="", metavar="PATH|URL", help="SQLite file or postgresql:// address ($INFERDX_STORE)"
    )
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="investigations at the same time (2)")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the answers")
    parser.add_argument("--knowledge", action="append", default=[], metavar="DIR", help="site knowledge to add")
    parser.add_argument("--slo", action="append", default=[], metavar="ttft_p99=2s", help="a limit; may be repeated")
    parser.add_argument("--no-model", action="store_true", help="ignore any configured model")
    parser.add_argument(
        "--api", default="https://slack.com/api/", metavar="URL", help="Slack API (GovSlack has its own)"
    )
    if command == "slack":
        parser.description = (
            "The Slack app. SLACK_BOT_TOKEN, and SLACK_APP_TOKEN (Socket Mode) or SLACK_SIGNING_SECRET (HTTP), from the "
            "environment. Set-up: docs/slack.md."
        )
        parser.add_argument("--listen", default="", metavar="HOST:PORT", help="HTTP instead of Socket Mode")
        parser.add_argument("--manifest", action="store_true", help="print the app manifest and leave")
        return
    parser.description = "Alertmanager webhook. The bearer token comes from INFERDX_TOKEN. Set-up: docs/alerts.md."
    parser.add_argument("--listen", default="127.0.0.1:9096", metavar="HOST:PORT", help="address (127.0.0.1:9096)")
    parser.add_argument("--queue", type=int, default=200, metavar="N", help="alerts that may wait (200)")


def address(text: str) -> tuple[str, int]:
    """``HOST:PORT`` → pair. Raises ``ValueError``."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"cannot read address {text!r} (write 127.0.0.1:8080)")
    return host.strip("[]"), int(port)


def _setup(args: argparse.Namespace) -> tuple[list[Any], str, Any, Any]:
    """Sites (one per worker), store, targets, credentials."""
    from agent.investigate import site_knowledge
    from agent.llm import settings
    from agent.slack.service import credentials, default_store, ensure_private, make_site, warm
    from agent.slack.targets import load
    from agent.sources import parse_slo
    from tools.contract import Context

    targets = load(args.targets)
    store = args.store or default_store()
    if "://" not in store:
        ensure_private(Path(store).resolve().parent)
    known = site_knowledge([Path(p) for p in args.knowledge])
    config = None if args.no_model else settings()
    attach: Any = None
    if config is not None:
        from agent.llm import attach as attach_model

        attach = attach_model
    options = {"lang": args.lang, "context": Context(slo=parse_slo(args.slo)), "attach": attach, "model": config}
    sites = [make_site(known, store, **options) for _ in range(max(1, min(args.workers, 32)))]
    warm(known)
    return sites, store, targets, credentials()


def run(args: argparse.Namespace) -> int:
    """0 after a clean stop, 3 on set-up errors."""
    if args.command == "mcp":
        from agent.mcp import cli

        return cli.run(args)
    if args.command == "slack" and args.manifest:
        sys.stdout.write((Path(__file__).parent / "slack" / "manifest.yaml").read_text(encoding="utf-8"))
        return 0
    from importlib.util import find_spec

    wants = {"slack": ("slack_bolt", "slack_sdk"), "serve": ("starlette", "uvicorn")}[args.command]
    if any(find_spec(name) is None for name in wants):
        print(f"inferdx: {args.command} needs pip install 'inferdx[{args.command}]'", file=sys.stderr)
        return 3
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    for noisy in ("httpx", "httpx2", "httpcore"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    from agent.llm import ModelError
    from agent.slack.service import SetupError

    try:
        return _slack(args) if args.command == "slack" else _serve(args)
    except (SetupError, ModelError, ValueError, RuntimeError) as error:
        print(f"inferdx: {error}", file=sys.stderr)
        return 3


def _slack(args: argparse.Namespace) -> int:
    from agent.slack.service import SetupError, assemble, credentials, serve

    listen = address(args.listen) if args.listen else None
    given = credentials()
    if listen is None and not given.app:
        raise SetupError(
            "SLACK_APP_TOKEN is not set (Basic Information → App-Level Tokens, scope connections:write); "
            "or use --listen HOST:PORT with SLACK_SIGNING_SECRET"
        )
    if listen is not None and not given.secret:
        raise SetupError(
            "SLACK_SIGNING_SECRET is not set: HTTP requests could not be verified (Basic Information page)"
        )
    if listen is not None:
        given.app = ""
    sites, store, targets, _ = _setup(args)
    serve(given, assemble(given, store, sites, targets, base_url=args.api), listen)
    return 0


def _serve(args: argparse.Namespace) -> int:
    from agent.serve.service import serve

    listen = address(args.listen)
    token = os.environ.get("INFERDX_TOKEN", "")
    if len(token) < 16:
        from agent.slack.service import SetupError

        raise SetupError("INFERDX_TOKEN is not set or shorter than 16 characters (openssl rand -hex 24)")
    sites, store, targets, given = _setup(args)
    serve(listen, token, store, sites, targets, given, queue=args.queue, base_url=args.api)
    return 0
