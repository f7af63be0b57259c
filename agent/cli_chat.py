"""``inferdx chat``: the terminal around :class:`agent.chat.session.Session`."""

from __future__ import annotations

import argparse
import itertools
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
    from agent.chat.inbox import Inbox, new_thread, threads
    from agent.chat.session import Session
    from agent.investigate import site_knowledge
    from agent.llm_settings import ModelError, settings
    from agent.sources import parse_slo, split_args
    from tools.contract import Context

    try:
        config = None if args.no_model else settings()
        slo = parse_slo(args.slo)
        known = site_knowledge([Path(p) for p in args.knowledge])
        folder = _thread(args.resume, threads()) if args.resume else new_thread()
        lock = _locked(folder)
    except (ModelError, ValueError) as error:
        print(f"inferdx: {error}", file=sys.stderr)
        return 3
    inbox = Inbox(folder)
    for entry in inbox.entries():
        if entry["kind"] == "settings":
            slo = {**entry["slo"], **slo}
    if args.slo:
        inbox.add("settings", slo=slo)
    attach: Any = None
    if config is not None:
        from agent.llm import attach as attach_model

        attach = attach_model
    session = Session(folder, known=known, lang=args.lang, context=Context(slo=slo), attach=attach, interactive=True)
    loop = Loop(session, config)
    paths, urls, _ = split_args(args.sources)
    try:
        loop.start([str(p) for p in paths], urls)
        loop.talk()
    finally:
        session.close()
        lock.close()
    return session.diagnosis.exit_code() if session.diagnosis else 2


def _thread(name: str, found: list[Path]) -> Path:
    chosen = found if name == "last" else [p for p in found if p.name == name]
    if not chosen:
        known = ", ".join(p.name for p in found[:5]) or "none yet"
        raise ValueError(f"no thread {name!r} to resume (threads: {known})")
    return chosen[0]


def _locked(folder: Path) -> Any:
    """Hold the thread: two terminals must not write one checkpoint file. Released by the system at any death."""
    file = (folder / "lock").open("w")
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return file
    except OSError:
        raise ValueError(f"thread {folder.name} is open in another terminal") from None
    return file


class Loop:
    """Reads lines and pasted blocks, prints answers. Ctrl-C stops what runs and keeps the thread."""

    def __init__(self, session: Session, config: Any) -> None:
        from rich.console import Console

        from agent.chat.inbox import home
        from agent.chat.lines import Inputs

        self.session = session
        self.config = config
        self.console = Console(highlight=False)
        self.inputs = Inputs(home() / "history")
        self.streamed: list[str] = []
        session.sentence = self._sentence

    def line(self, text: str = "", style: str = "") -> None:
        """Print one block of plain text; nothing in it is markup."""
        from rich.text import Text

        from agent.render.terminal import clean

        self.console.print(Text(clean(text), style=style))

    def _sentence(self, text: str) -> None:
        self.streamed.append(text)
        self.line(f"  ▸ {text}")

    def start(self, paths: list[str], urls: list[str]) -> None:
        """Greet, recover what a crash left, read what was given on the command line."""
        from agent.chat.replies import HELP

        name = self.session.folder.name
        self.line(
            f"inferdx chat — thread {name}" + (f", model {self.config.name}" if self.config else ", no model"), "bold"
        )
        if self.session.damaged:
            self.line(f"! {self.session.damaged}", "yellow")
        self.resume()
        if paths or urls:
            self.attach([str(Path(p).resolve()) for p in paths], urls)
        if self.session.diagnosis is None:
            self.line(HELP[self.session.lang])

    def resume(self) -> None:
        """Go on with what the last run left unfinished; else show where the thread stands."""
        events = self.session.recover()
        first = next(events, None)
        if first is not None:
            self.line("taking up what was left unfinished …", "dim")
            self.play(itertools.chain([first], events))
        elif self.session.diagnosis is not None:
            self.report()

    def attach(self, paths: list[str], urls: list[str]) -> None:
        """Read files, folders and addresses; live addresses are scraped for 30 s."""
        from agent.llm_settings import same_endpoint

        if self.config and (warning := same_endpoint(self.config, urls)):
            self.line(f"! {warning}", "yellow")
        self.play(self.session.attach(paths, urls, 30.0 if urls else 0.0))

    def play(self, events: Any) -> None:
        """Show a turn; Ctrl-C ends it and keeps the thread."""
        self.streamed = []
        asked: Any = None
        try:
            for kind, content in events:
                if kind == "progress":
                    self.line(f"  {content}", "dim")
                elif kind == "ask":
                    asked = content
                elif kind == "diagnosis":
                    self.report()
        except KeyboardInterrupt:
            self.line("stopped; the thread is kept (/retry goes on, or give more)", "yellow")
            return
        if asked is not None:
            self.ask(asked)

    def ask(self, probe: Any) -> None:
        """The question for what only a person can give. Any later input answers it, in hours or after a restart."""
        zh = self.session.lang == "zh"
        self.line("? " + probe.ask, "bold")
        self.line(f"  $ {probe.command}")
        self.line(
            "  （把结果粘贴到这里，或用 /attach 加入文件）" if zh else "  (paste what it prints, or /attach the file)",
            "dim",
        )

    def report(self) -> None:
        """Verdict, what changed, first action, next question, cost."""
        from agent.chat.session import changed
        from agent.render.terminal import render

        diagnosis = self.session.diagnosis
        if diagnosis is None:
            return
        if self.session.before is not None:
            for text in changed(self.session.before, diagnosis) or ["nothing changed"]:
                self.line(f"Δ {text}")
            self.line(diagnosis.headline, "bold")
            for text in diagnosis.summary[:2]:
                self.line(f"  {text}")
        else:
            render(diagnosis, self.console)
        for sentence in diagnosis.narrative:
            if sentence not in self.streamed:
                self.line(f"  ▸ {sentence}")
        self.cost()

    def cost(self) -> None:
        """One line of what the model of this turn cost."""
        assistant = self.session.env.assistant if self.session.env is not None else None
        if assistant is not None:
            used = assistant.usage()
            refused = used.get("rejected", 0) + used.get("dropped", 0)
            self.line(
                f"model: {used['calls']} calls, {used['tokens']} tokens, {used['seconds']} s, ${used['usd']:.4f}"
                + (f", {used['failed']} failed" if used["failed"] else "")
                + (f", {refused} statements refused" if refused else ""),
                "dim",
            )

    def talk(self) -> None:
        """The loop until end of input or /quit."""
        from agent.chat.turns import handle

        while True:
            try:
                text = self.inputs.read()
                if text is None:
                    return
                if text.strip() and handle(self, text) == "quit":
                    return
            except KeyboardInterrupt:
                self.line("(Ctrl-D or /quit leaves; the thread is kept)", "dim")
