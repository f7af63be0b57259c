"""Writes the transcripts of ``docs/chat.md``: a recorded incident solved in chat. ``python -m evals.bench.chat_transcript``

``--model`` adds the transcript with the configured model; without it the one already in the page is kept.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "chat.md"
WORLD = ROOT / "evals" / "cases" / "lab-016" / "world"
PLAIN = [
    "Users wait half a minute for the first token since this morning.",
    "/attach {world}/launch.txt {world}/client.json",
    "/attach {world}",
    "why",
    "is it an exhausted KV cache?",
    "what is max_num_seqs?",
    "怎么解决",
    "/quit",
]
MODEL = ["/attach {world}", "how many requests were waiting?", "/quit"]


def talk(inputs: list[str], config: Any = None) -> str:
    """The transcript: each input after ``> ``, then what the program printed."""
    from rich.console import Console

    from agent.chat.session import Session
    from agent.chat.turns import handle
    from agent.cli_chat import Loop
    from agent.llm import attach
    from knowledge import load

    out = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(out):
        place = Path(folder) / "20260131-101500"
        place.mkdir()
        session = Session(place, known=load(), attach=attach if config else None, interactive=True)
        loop = Loop(session, config)
        loop.console = Console(file=out, width=100, color_system=None, highlight=False)
        loop.start([], [])
        for text in inputs:
            out.write(f"\n> {text.format(world='world')}\n")
            if handle(loop, text.format(world=WORLD)) == "quit":
                break
        session.close()
    return "\n".join(line.rstrip() for line in out.getvalue().replace(str(WORLD), "world").splitlines()).strip()


def page(plain: str, modelled: str) -> str:
    """The page with both transcripts between its marks."""
    text = PAGE.read_text(encoding="utf-8")
    for name, body in (("no model", plain), ("small model", modelled)):
        block = f"<!-- transcript: {name} -->\n```text\n{body}\n```\n<!-- end -->"
        start, end = f"<!-- transcript: {name} -->", "<!-- end -->"
        before, _, rest = text.partition(start)
        text = before + block + rest.partition(end)[2]
    return text


def held(name: str) -> str:
    """The transcript that the page has now."""
    found = re.search(rf"<!-- transcript: {name} -->\n```text\n(.*?)\n```\n<!-- end -->", PAGE.read_text("utf-8"), re.S)
    return found[1] if found else ""


def main() -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="store_true", help="also talk with the configured model")
    args = parser.parse_args()
    modelled = held("small model")
    if args.model:
        import msgspec

        from agent.llm_settings import settings

        config = settings()
        if config is None:
            print("set INFERDX_MODEL and INFERDX_BASE_URL", file=sys.stderr)
            return 3
        modelled = talk(MODEL, msgspec.structs.replace(config, timeout_s=120.0, max_seconds=300.0))
    PAGE.write_text(page(talk(PLAIN), modelled), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
