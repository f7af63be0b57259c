"""What one input of a person does: a command, an intent, a question, or evidence."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.chat import replies
from agent.chat.intents import intent, is_question, settings_in

if TYPE_CHECKING:
    from agent.cli_chat import Loop

_SHORT = {"ruled_out": "ruled-out", "ruledout": "ruled-out", "q": "quit", "exit": "quit", "h": "help", "e": "evidence"}
_NAMES = (
    "why", "ruled-out", "next", "actions", "layers", "evidence", "status", "whatif", "explain", "attach", "save", "export",
    "retry", "thread", "lang", "help", "quit",
)  # fmt: skip
_TELL: dict[str, Callable[[Any], list[str]]] = {
    "why": replies.why, "ruled-out": replies.ruled_out, "next": replies.next_probe, "actions": replies.actions,
    "layers": replies.layers, "status": lambda d: [d.headline, *d.summary[:3]],
}  # fmt: skip


def handle(loop: Loop, text: str) -> str:
    """Do what an input asks; returns ``quit`` to leave."""
    stripped = text.strip()
    if "\n" not in stripped and (paths := _paths(stripped)):
        loop.attach(paths, [])
        return ""
    if stripped.startswith("/") and not stripped.startswith("//") and "\n" not in stripped and " /" not in stripped[:2]:
        name, _, rest = stripped[1:].partition(" ")
        return command(loop, _SHORT.get(name.lower(), name.lower()), rest.strip())
    told = loop.session.diagnosis is not None
    found = intent(stripped)
    if found and (told or found in ("help", "explain") or len(stripped) < 30):
        return command(loop, found, stripped if found in ("whatif", "explain") else "")
    if is_question(stripped) and told:
        from agent.chat.answer import answer

        for line in answer(loop.session, stripped, loop.config):
            loop.line(line)
        return ""
    loop.play(loop.session.say(text))
    return ""


def _paths(text: str) -> list[str]:
    """A line that is nothing but the paths of existing files or folders (dropped into the terminal)."""
    import shlex

    if len(text) > 2000 or "/" not in text or text.split(maxsplit=1)[0][1:] in _NAMES:
        return []
    try:
        items = [Path(item).expanduser() for item in shlex.split(text)]
        return [str(p.resolve()) for p in items] if all(p.is_absolute() and p.exists() for p in items) else []
    except (ValueError, OSError, RuntimeError):
        return []


def command(loop: Loop, name: str, rest: str) -> str:
    """One command. Unknown ones say so and name the nearest."""
    session = loop.session
    if name == "quit":
        return "quit"
    if name == "help":
        loop.line(replies.HELP[session.lang])
    elif name == "attach":
        _attach(loop, rest)
    elif name == "retry":
        loop.resume()
    elif name == "lang":
        _lang(loop, rest)
    elif name == "thread":
        loop.line(f"{session.folder.name}   resume with: inferdx chat --resume {session.folder.name}")
    elif name == "explain":
        _explain(loop, rest)
    elif name not in _NAMES:
        import difflib

        near = difflib.get_close_matches(name, _NAMES, 1)
        loop.line(f"/{name}: no such command" + (f" (did you mean /{near[0]}?)" if near else " (/help)"))
    elif session.diagnosis is None:
        loop.line(replies.none_yet(session.lang))
    elif name in _TELL or name == "evidence":
        _tell(loop, name, rest)
    elif name == "whatif":
        _whatif(loop, rest)
    else:
        _write(loop, name, rest)
    return ""


def _lang(loop: Loop, rest: str) -> None:
    """Answers from here on; the diagnosis is told again in the other language."""
    if rest not in ("en", "zh"):
        loop.line("/lang zh|en")
        return
    loop.session.lang = rest
    if loop.session.diagnosis is not None and loop.session.diagnosis.lang != rest:
        loop.play(loop.session.again())
    else:
        loop.line(f"lang {rest}")


def _tell(loop: Loop, name: str, rest: str) -> None:
    d = loop.session.diagnosis
    if d is None:
        return
    if name == "evidence":
        lines = [line for i in (rest.split()[:6] or [""]) for line in replies.evidence(d, i)]
    else:
        lines = _TELL[name](d)
    for line in lines:
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
    loop.attach(paths, urls)


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
        path.write_bytes(d.to_json() if name == "save" else render(d).encode("utf-8", "replace"))
        loop.line(f"written: {path}")
    except OSError as error:
        loop.line(f"/{name}: {path}: {error.strerror}")
