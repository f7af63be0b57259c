"""``python -m agent.mcp``: the same as ``inferdx mcp``, for clients that start servers by interpreter."""

from __future__ import annotations

import sys

from agent.cli import Parser
from agent.mcp.cli import add_arguments, run

if __name__ == "__main__":
    parser = Parser(prog="inferdx mcp")
    add_arguments(parser)
    sys.exit(run(parser.parse_args()))
