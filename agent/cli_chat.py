"""``inferdx chat``: the terminal around :class:`agent.chat.session.Session`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.chat.session import Session


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Options of ``inferdx chat``."""
    del command
    parser.description = "Talk with the doctor during an incident. Works with no model; INFERDX_MODEL adds one."
    parser.add_argument("sources", nargs="*", metavar="FILE|FOLDER|URL", help="what you have already")
    parser.add_argument(
        "--resume", nargs="?", const="last", default="", metavar="THREAD", help="go on with a thread (the last one)"
    )
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the answers")
    parser.add_argument("--no-model", action="store_true", help="ignore any configured model")
    parser.add_argument("--knowledge", action="append", default=[], metavar="DIR", help="site knowledge to add")
    parser.add_argument("--slo", action="append", default=[], metavar="ttft_p99=2s", help="a limit; may be repeated")


def run(args: argparse.Namespace) -> int:
    """Exit status of the last diagnosis (0 healthy or limit, 1 incident, 2 undecidable), 3 on usage errors."""
    from agent.chat.inbox import threads
    from agent.chat.session import Session
    from agent.investigate import site_knowledge
    from agent.llm import ModelError, settings
    from agent.sources import parse_slo, split_args
    from tools.contract import Context

    folder: Path | None = None
    if args.resume:
        found = threads() if args.resume == "last" else [p for p in threads() if p.name == args.resume]
        if not found:
            print(f"inferdx: no thread {args.resume!r} to resume", file=sys.stderr)
            return 3
        folder = found[0]
    attach = None
    try:
        config = None if args.no_model else settings()
        slo = parse_slo(args.slo)
    except (ModelError, ValueError) as error:
        print(f"inferdx: {error}", file=sys.stderr)
        return 3
    if config is not None:
        from agent.llm import attach as attach_model

        attach = attach_model
    session = Session(
        folder,
        known=site_knowledge([Path(p) for p in args.knowledge]),
        lang=args.lang,
        context=Context(slo=slo),
        attach=attach,
    )
    loop = Loop(session, config)
    try:
        loop.start([str(p) for p in split_args(args.sources)[0]], split_args(args.sources)[1])
        loop.talk()
    finally:
        session.close()
    return session.diagnosis.exit_code() if session.diagnosis else 2


class Loop:
    """Reads lines and pasted blocks, prints answers. Ctrl-C stops what runs and keeps the thread; twice leaves."""

    def __init__(self, session: Session, config: Any) -> None:
        from rich.console import Console

        self.session = session
        self.config = config
        self.console = Console(highlight=False)
        self.asked: Any = None

    def line(self, text: str = "", style: str = "") -> None:
        """Print one block of plain text; nothing in it is markup."""
        from rich.text import Text

        from agent.render.terminal import clean

        self.console.print(Text(clean(text), style=style))

    def start(self, paths: list[str], urls: list[str]) -> None:
        """Greet, recover what a crash left, read what was given on the command line."""
        from agent.chat.replies import HELP
        from agent.llm import same_endpoint

        self.line(
            f"inferdx chat — thread {self.session.folder.name}"
            + (f", model {self.config.name}" if self.config else ", no model"),
            "bold",
        )
        if self.config and (warning := same_endpoint(self.config, urls)):
            self.line(f"! {warning}", "yellow")
        if self.session.unfinished():
            self.line("taking up what the last run left unfinished …", "dim")
            self.play(self.session.recover())
        elif self.session.diagnosis is not None:
            self.report()
        if paths or urls:
            self.play(self.session.attach([str(Path(p).resolve()) for p in paths], urls, 30.0 if urls else 0.0))
        if self.session.diagnosis is None:
            self.line(HELP[self.session.lang])

    def play(self, events: Any) -> None:
        """Show a turn; Ctrl-C ends it and keeps the thread."""
        try:
            for kind, content in events:
                if kind == "progress":
                    self.line(f"  {content}", "dim")
                elif kind == "ask":
                    self.asked = content
                elif kind == "diagnosis":
                    self.report()
        except KeyboardInterrupt:
            self.line("stopped; the thread is kept (what you gave is saved)", "yellow")

    def report(self) -> None:
        """Verdict, what changed, first action, next question, cost."""
        from agent.chat.session import changed
        from agent.render.terminal import render

        diagnosis = self.session.diagnosis
        if diagnosis is None:
            return
        difference = changed(self.session.before, diagnosis)
        if difference:
            for text in difference:
                self.line(f"Δ {text}")
            self.line(diagnosis.headline, "bold")
        else:
            render(diagnosis, self.console)
        for sentence in diagnosis.narrative:
            self.line(f"  {sentence}")
        if diagnosis.outcome == "undecidable" and diagnosis.probes:
            probe = diagnosis.probes[0]
            self.line(f"? {probe.ask}", "bold")
            self.line(f"  $ {probe.command}")
        if self.session.env is not None and self.session.env.assistant is not None:
            used = self.session.env.assistant.usage()
            self.line(
                f"model: {used['calls']} calls, {used['tokens']} tokens, {used['seconds']} s, ${used['usd']:.4f}", "dim"
            )

    def talk(self) -> None:
        """The loop until end of input or /quit."""
        from agent.chat.turns import handle

        while True:
            try:
                text = self.read()
            except KeyboardInterrupt:
                self.line()
                continue
            if text is None:
                return
            if text.strip() and handle(self, text) == "quit":
                return

    def read(self) -> str | None:
        """One input: a line, or a paste (lines that are already waiting, or up to a closing fence)."""
        import select

        try:
            first = input("> " if sys.stdin.isatty() else "")
        except EOFError:
            return None
        lines = [first]
        fenced = first.lstrip().startswith("```")
        while (
            fenced
            or (sys.stdin.isatty() and select.select([sys.stdin], [], [], 0.05)[0])
            or first.rstrip().endswith("\\")
        ):
            try:
                first = input()
            except EOFError:
                break
            lines.append(first)
            if fenced and first.strip() == "```":
                break
        return "\n".join(lines)
