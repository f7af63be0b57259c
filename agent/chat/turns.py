"""What one input of a person does: a command, an intent, a question, or evidence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from agent.chat import replies
from agent.chat.intents import intent, is_question, settings_in

if TYPE_CHECKING:
    from agent.cli_chat import Loop

_SHORT = {"ruled_out": "ruled-out", "ruledout": "ruled-out", "q": "quit", "exit": "quit", "h": "help", "e": "evidence"}


def handle(loop: Loop, text: str) -> str:
    """Do what an input asks; returns ``quit`` to leave."""
    stripped = text.strip()
    if stripped.startswith("/") and not stripped.startswith("//") and "\n" not in stripped and not _is_path(stripped):
        name, _, rest = stripped[1:].partition(" ")
        return command(loop, _SHORT.get(name.lower(), name.lower()), rest.strip())
    found = intent(stripped)
    if found:
        return command(loop, found, stripped if found in ("whatif", "explain") else "")
    if is_question(stripped):
        from agent.chat.answer import answer

        for line in answer(loop.session, stripped, loop.config):
            loop.line(line)
        return ""
    loop.play(loop.session.say(text))
    return ""


def _is_path(text: str) -> bool:
    return len(text) < 400 and text.count("/") >= 2 and Path(text.split(maxsplit=1)[0]).exists()


def command(loop: Loop, name: str, rest: str) -> str:
    """One command. Unknown ones say so and name the nearest."""
    session = loop.session
    d = session.diagnosis
    if name == "quit":
        return "quit"
    if name == "help":
        loop.line(replies.HELP[session.lang])
    elif name == "attach":
        _attach(loop, rest)
    elif name == "lang" and rest in ("en", "zh"):
        session.lang = rest
        loop.line(f"lang {rest}")
    elif name == "thread":
        loop.line(f"{session.folder.name}   resume with: inferdx chat --resume {session.folder.name}")
    elif name == "explain":
        _explain(loop, rest)
    elif d is None:
        loop.line(replies.none_yet(session.lang))
    elif name in ("why", "ruled-out", "next", "actions", "layers", "evidence", "status"):
        _tell(loop, name, rest)
    elif name == "whatif":
        _whatif(loop, rest)
    elif name in ("save", "export"):
        _write(loop, name, rest)
    else:
        import difflib

        known = [
            "why",
            "ruled-out",
            "next",
            "actions",
            "layers",
            "evidence",
            "whatif",
            "explain",
            "attach",
            "save",
            "export",
            "thread",
            "lang",
            "help",
            "quit",
        ]
        near = difflib.get_close_matches(name, known, 1)
        loop.line(f"/{name}: no such command" + (f" (did you mean /{near[0]}?)" if near else " (/help)"))
    return ""


def _tell(loop: Loop, name: str, rest: str) -> None:
    d = loop.session.diagnosis
    if d is None:
        return
    lines = {
        "why": replies.why, "ruled-out": replies.ruled_out, "next": replies.next_probe, "actions": replies.actions,
        "layers": replies.layers, "status": lambda x: [x.headline, *x.summary[:3]],
    }  # fmt: skip
    for line in replies.evidence(d, rest) if name == "evidence" else lines[name](d):
        loop.line(line)


def _attach(loop: Loop, rest: str) -> None:
    import shlex

    try:
        items = shlex.split(rest)
    except ValueError as error:
        loop.line(f"/attach: {error}")
        return
    if not items:
        loop.line("/attach FILE|FOLDER|URL …")
        return
    urls = [i for i in items if re.match(r"https?://", i)]
    paths = [str(Path(i).expanduser().resolve()) for i in items if i not in urls]
    loop.play(loop.session.attach(paths, urls, 30.0 if urls else 0.0))


def _explain(loop: Loop, rest: str) -> None:
    from agent.chat.answer import explain

    term = re.sub(
        r"^(?:what (?:is|does|are)|explain|define|什么是|解释)\s*|\s*(?:mean|是什么)?[?？]?$", "", rest, flags=re.I
    ).strip()
    for line in explain(loop.session, term):
        loop.line(line)


def _whatif(loop: Loop, rest: str) -> None:
    from agent.chat.answer import whatif

    for line in whatif(loop.session, settings_in(rest)):
        loop.line(line)


def _write(loop: Loop, name: str, rest: str) -> None:
    d = loop.session.diagnosis
    if d is None or not rest:
        loop.line(f"/{name} FILE")
        return
    from agent.render.markdown import render

    path = Path(rest).expanduser()
    try:
        path.write_bytes(d.to_json()) if name == "save" else path.write_text(render(d), encoding="utf-8")
        loop.line(f"written: {path}")
    except OSError as error:
        loop.line(f"/{name}: {path}: {error.strerror}")
