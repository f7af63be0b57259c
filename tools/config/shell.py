"""Splits pasted shell text into commands the way people mean them, without ever running anything.

Differences to a shell, all on purpose: a backslash followed by spaces still continues the line (and is noted),
typographic quotes and dashes are accepted (and noted), an apostrophe inside a word is no quote, an unclosed quote is
literal, ``<placeholder>`` is a word, a backtick (Markdown code) ends a command. One pass; linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

_BLANK = re.compile(r"[ \t\r\f\v\u00a0]+")
_RUN = re.compile(r"[^\s\\'\"`#;&|<>()$\u2018\u2019\u201c\u201d\u00a0^]+")
_VAR = re.compile(r"\$\$?(?:\{[^{}'\"\n]{1,200}\}|\([^()\n]{0,200}\)|[A-Za-z_]\w*|[@*#?0-9])")
_CONTINUED = re.compile(r"[\\`^]([ \t\u00a0]*)\r?\n")
_PLACEHOLDER = re.compile(r"<[A-Za-z][\w .:/\-]{0,60}>")
_REDIRECT = re.compile(r"\d*(?:>>|>&|>|<<<|<<-?|<)(?:&?\d)?")
_EXPAND = re.compile(r"\$\$?(?:\{(\w+)(?::?([-=?+])([^{}]*))?\}|([A-Za-z_]\w*))")
_ARRAY = re.compile(r"\$\$?\{(\w+)\[[@*]\]\}")
_ASSIGN = re.compile(r"^([A-Za-z_]\w*)\+?=")
_QUOTES = {"'": "'", '"': '"', "\u201c": "\u201d", "\u2018": "\u2019"}
MAX_QUOTED = 40_000


class Token(NamedTuple):
    """One word. ``line`` counts from 1; ``quoted`` when any part stood in quotes."""

    text: str
    line: int
    quoted: bool = False


class Command(Struct):
    """Words of one simple command. ``gap``: blank or comment lines stand before it. ``label``: the comment above."""

    tokens: list[Token]
    line: int
    gap: bool = False
    label: str = ""
    commented: bool = False
    notes: list[str] = []


class Comment(NamedTuple):
    """A comment with its line."""

    text: str
    line: int


class _Scan:
    """State of the splitter: position, line, the word and the command under way."""

    def __init__(self, text: str, line: int) -> None:
        self.text, self.at, self.line = text, 0, line
        self.word: list[str] = []
        self.word_line = line
        self.in_word = self.quoted = False
        self.tokens: list[Token] = []
        self.done: list[Command] = []
        self.comments: list[Comment] = []
        self.gap, self.label = False, ""
        self.notes: list[str] = []
        self.dead: set[str] = set()
        self.skip_next = False
        self.fresh = True

    def add(self, piece: str, quoted: bool = False) -> None:
        if not self.in_word:
            self.in_word, self.word_line = True, self.line
        self.word.append(piece)
        self.quoted = self.quoted or quoted

    def end_word(self) -> None:
        if self.in_word:
            if self.skip_next:
                self.skip_next = False
            else:
                self.tokens.append(Token("".join(self.word), self.word_line, self.quoted))
            self.word, self.in_word, self.quoted = [], False, False

    def end_command(self) -> None:
        self.end_word()
        self.skip_next = False
        if self.tokens:
            self.done.append(Command(self.tokens, self.tokens[0].line, self.gap, self.label, False, self.notes))
            self.tokens, self.notes, self.gap, self.label = [], [], False, ""

    def newline(self) -> None:
        self.line += 1
        self.at += 1


def split(text: str, line: int = 1) -> tuple[list[Command], list[Comment]]:
    """Commands and comments of a text that starts at ``line``."""
    scan = _Scan(text, line)
    size = len(text)
    while scan.at < size:
        _step(scan)
    scan.end_command()
    return scan.done, scan.comments


def _step(scan: _Scan) -> None:
    text, at = scan.text, scan.at
    char = text[at]
    if char in "\\`^":
        _escape(scan, char)
    elif char == "\n":
        if scan.fresh:
            scan.gap = True
        scan.end_command()
        scan.newline()
        scan.fresh = True
        return
    elif found := _BLANK.match(text, at):
        scan.end_word()
        scan.at = found.end()
        return
    elif char in _QUOTES:
        _quote(scan, char)
    elif char == "#" and not scan.in_word:
        _comment(scan)
        return
    elif found := _whole(scan, char):
        scan.add(found[0])
        scan.at = found.end()
    elif char in "<>":
        _redirect(scan)
    elif char in ";&|":
        scan.end_command()
        scan.at += 1
    elif char in "()":
        _paren(scan, char)
    elif found := _RUN.match(text, at):
        scan.add(found[0])
        scan.at = found.end()
    else:
        scan.add(char)
        scan.at += 1
    scan.fresh = False


def _whole(scan: _Scan, char: str) -> re.Match[str] | None:
    """A variable or a ``<placeholder>``, taken as one piece."""
    if char == "$":
        return _VAR.match(scan.text, scan.at)
    return _PLACEHOLDER.match(scan.text, scan.at) if char == "<" and not scan.in_word else None


def _escape(scan: _Scan, char: str) -> None:
    found = _CONTINUED.match(scan.text, scan.at)
    if found:
        scan.end_word()
        if found[1]:
            scan.notes.append(
                f"line {scan.line}: spaces after the line-continuing {char}; a shell would end the command here"
            )
        scan.at = found.end()
        scan.line += 1
        _skip_commented_lines(scan)
        return
    if char == "\\" and scan.at + 1 < len(scan.text):
        scan.add(scan.text[scan.at + 1])
        scan.at += 2
        return
    if char == "`":
        scan.end_command()
    elif char != "\\":
        scan.add(char)
    scan.at += 1


def _skip_commented_lines(scan: _Scan) -> None:
    """A commented-out flag in the middle of a continued command is left out; the command goes on."""
    while found := _COMMENTED.match(scan.text, scan.at):
        scan.comments.append(Comment(found[1].strip(), scan.line))
        scan.at = found.end()
        scan.line += 1


_COMMENTED = re.compile(r"[ \t]*#([^\n]*)\n")


def _quote(scan: _Scan, char: str) -> None:
    text, at = scan.text, scan.at
    close = _QUOTES[char]
    inside_word = char in "'\u2019" and 0 < at < len(text) - 1 and text[at - 1].isalpha() and text[at + 1].isalpha()
    if char in scan.dead or inside_word:
        scan.add(char)
        scan.at += 1
        return
    end = _closing(text, at + 1, close, escapes=char == '"')
    if end < 0:
        if at + MAX_QUOTED >= len(text):
            scan.dead.add(char)
        scan.add(char)
        scan.at += 1
        return
    body = text[at + 1 : end]
    if char not in "'\"":
        scan.notes.append(f"line {scan.line}: typographic quotes; a shell would take them literally")
    if char == '"':
        body = re.sub(r'\\([\\"$`])', r"\1", body).replace("\\\n", "")
    scan.add(body, True)
    scan.line += text.count("\n", at, end)
    scan.at = end + 1


def _closing(text: str, at: int, close: str, *, escapes: bool) -> int:
    limit = min(len(text), at + MAX_QUOTED)
    while True:
        end = text.find(close, at, limit)
        if end < 0 or not escapes:
            return end
        back = end
        while back > at and text[back - 1] == "\\":
            back -= 1
        if (end - back) % 2 == 0:
            return end
        at = end + 1


def _comment(scan: _Scan) -> None:
    end = scan.text.find("\n", scan.at)
    end = len(scan.text) if end < 0 else end
    body = scan.text[scan.at + 1 : end].strip()
    if not scan.tokens:
        scan.gap = True
        scan.label = body[:80] or scan.label
    scan.comments.append(Comment(body, scan.line))
    scan.at = end


def _redirect(scan: _Scan) -> None:
    found = _REDIRECT.match(scan.text, scan.at)
    if not found:
        scan.at += 1
        return
    if scan.in_word and "".join(scan.word).isdigit():
        scan.word, scan.in_word = [], False
    scan.end_word()
    scan.skip_next = "&" not in found[0]
    scan.at = max(found.end(), scan.at + 1)


def _paren(scan: _Scan, char: str) -> None:
    """``NAME=( … )`` stays one command with its brackets; other brackets separate words."""
    if char == "(" and scan.in_word and "".join(scan.word[-1:]).endswith("="):
        scan.add("(")
        scan.end_word()
    elif scan.in_word and char == "(":
        scan.add("(")
    else:
        scan.end_word()
        if char == ")" and scan.tokens and scan.tokens[0].text.endswith("=("):
            scan.tokens.append(Token(")", scan.line))
            scan.end_command()
    scan.at += 1


def assignment(token: Token) -> tuple[str, str] | None:
    """``NAME=value`` → the pair; ``None`` for any other word."""
    found = _ASSIGN.match(token.text)
    return (found[1], token.text[found.end() :]) if found else None


def array_name(text: str) -> str:
    """``${NAME[@]}`` → ``NAME``; empty for any other word."""
    found = _ARRAY.fullmatch(text)
    return found[1] if found else ""


def expand(text: str, known: Mapping[str, str]) -> tuple[str, str]:
    """Replace ``$NAME`` and ``${NAME:-default}`` by what is known.

    Returns the text and how: ``""`` nothing to do, ``variable``, ``default`` (the value is only the fallback of a
    variable that is set elsewhere), ``unresolved`` (a variable remains).
    """
    how = ""
    for _ in range(4):
        if "$" not in text:
            break
        changed = False

        def put(found: re.Match[str]) -> str:
            nonlocal how, changed
            name = found[1] or found[4]
            if name in known:
                changed, how = True, how or "variable"
                return known[name]
            if found[2] in ("-", "=") and "$" not in found[3]:
                changed, how = True, "default"
                return found[3].strip("'\"")
            return found[0]

        text = _EXPAND.sub(put, text)
        if not changed:
            break
    return text[:100_000], "unresolved" if _EXPAND.search(text) or _VAR.search(text) else how
