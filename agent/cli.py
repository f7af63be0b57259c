"""The command line: argparse only at import; every command loads its own needs.

Exit status: 0 healthy or theoretical limit, 1 incident, 2 undecidable, 3 usage or input error.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from importlib import import_module

from agent.version import VERSION

# command → (module with add_arguments and run, help). One row per door.
COMMANDS: dict[str, tuple[str, str]] = {
    "diagnose": ("agent.cli_diagnose", "diagnose files, folders, a /metrics address or standard input"),
    "demo": ("agent.cli_diagnose", "diagnose a shipped recorded incident"),
    "chat": ("agent.cli_chat", "talk with the doctor during an incident"),
    "roofline": ("agent.cli_roofline", "how fast it could be, and what binds"),
    "whatif": ("agent.cli_roofline", "what a change would buy"),
    "explain": ("agent.cli_knowledge", "explain a cause, fact, rule, metric or flag; --search for full text"),
    "rules": ("agent.cli_knowledge", "list the rules"),
    "decision-table": ("agent.cli_knowledge", "symptom × evidence × cause, for people"),
    "lint-knowledge": ("agent.cli_knowledge", "check the knowledge base; --new-rule scaffolds one"),
    "docs": ("agent.cli_knowledge", "regenerate the manual from the data"),
    "eval": ("evals.cli", "run and compare evals, record cases"),
    "journal": ("evals.cli", "this site's own incidents, one line each"),
    "serve": ("agent.cli_doors", "Alertmanager webhook"),
    "slack": ("agent.cli_doors", "Slack app"),
    "mcp": ("agent.cli_doors", "MCP server"),
}


def _available() -> dict[str, tuple[str, str]]:
    from importlib.util import find_spec

    return {name: row for name, row in COMMANDS.items() if find_spec(row[0]) is not None}


def _overview() -> argparse.ArgumentParser:
    rows = "\n".join(f"  {name:<16}{text}" for name, (_, text) in _available().items())
    parser = argparse.ArgumentParser(
        prog="inferdx",
        description="On-call doctor for LLM inference servers.",
        epilog=f"commands:\n{rows}\n\n"
        "exit status: 0 healthy or theoretical limit, 1 incident, 2 undecidable, 3 usage or input error\n"
        "inferdx COMMAND --help tells each command's options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"inferdx {VERSION}")
    parser.add_argument("command", metavar="COMMAND", choices=list(_available()), help="what to do")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


class Parser(argparse.ArgumentParser):
    """Usage errors exit with 3, not argparse's 2: 2 means undecidable here."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """One line on stderr, exit status 3."""
        self.exit(3, f"{self.prog}: {message} (try {self.prog} --help)\n")


def run(argv: list[str] | None = None) -> int:
    """Dispatch one command. Never shows a traceback for bad input; ``INFERDX_DEBUG=1`` does."""
    args = list(sys.argv[1:] if argv is None else argv)
    overview = _overview()
    overview.__class__ = Parser
    if not args:
        overview.print_help()
        return 3
    known = overview.parse_args(args[:1])
    module = import_module(_available()[known.command][0])
    parser = Parser(prog=f"inferdx {known.command}", formatter_class=argparse.RawDescriptionHelpFormatter)
    module.add_arguments(parser, known.command)
    action: Callable[[argparse.Namespace], int] = module.run
    try:
        options = parser.parse_args(args[1:])
        options.command = known.command
        return action(options)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 3
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 3
    except Exception as error:
        if os.environ.get("INFERDX_DEBUG"):
            raise
        print(f"inferdx: {type(error).__name__}: {error} (INFERDX_DEBUG=1 shows where)", file=sys.stderr)
        return 3
