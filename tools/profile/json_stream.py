"""A JSON array of objects, read in blocks of a few MiB cut at object borders: fast decoding with bounded memory.

A block is cut where an object ends and the next begins with the same key as the first one did. Such a place inside a
nested value leaves brackets open, so a wrong cut fails to decode and is never silently accepted; then the borders are
found by counting brackets outside strings.
"""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import msgspec

from tools.part import Part

BLOCK = 4 << 20
MAX_PREFIX = 64 << 20
MAX_SUFFIX = 8 << 20
MAX_OBJECT = 64 << 20
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_FIRST_KEY = re.compile(rb'\s*\{\s*("(?:[^"\\]|\\.){1,80}")')
_TRIES = 3
_UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)

Note = Callable[[str], None]
Decode = Callable[[bytes], list[Any]]


def chunks(part: Part, note: Note, size: int = BLOCK) -> Iterator[bytes]:
    """Decompressed bytes of a part. A stream that is cut or damaged ends early and says so through ``note``."""
    try:
        with _raw(part) as raw:
            magic = raw.read(2)
            raw.seek(0)
            if magic == b"\x1f\x8b":
                yield from _inflate(raw, note, size)
                return
            while block := raw.read(size):
                yield block
    except OSError as error:
        note(f"cannot be read ({error})")


def _raw(part: Part) -> BinaryIO:
    return io.BytesIO(part.data) if part.data is not None else open(part.path or "", "rb")  # noqa: PTH123


def _inflate(raw: BinaryIO, note: Note, size: int) -> Iterator[bytes]:
    engine = zlib.decompressobj(31)
    inside = False
    while data := raw.read(1 << 18):
        while data:
            inside = True
            try:
                out = engine.decompress(data, size)
            except zlib.error as error:
                note(f"compressed data is damaged ({error})")
                return
            if out:
                yield out
            data = engine.unconsumed_tail
            if engine.eof:
                inside = False
                data = engine.unused_data if engine.unused_data.startswith(b"\x1f\x8b") else b""
                engine = zlib.decompressobj(31)
    if inside:
        note("compressed data is cut")


class ArrayStream:
    """Objects of one array: the array under ``key``, or the top-level array when the text starts with ``[``.

    After :meth:`blocks` is exhausted: ``meta`` holds the other top-level keys that could be read, ``cut`` says that the
    array was never closed, ``bad`` counts objects that could not be decoded, ``problem`` is a refusal in words.
    """

    def __init__(self, source: Iterator[bytes], key: str, decode: Decode) -> None:
        self._source = source
        self._key = json.dumps(key).encode()
        self._decode = decode
        self._buffer = b""
        self._ended = False
        self._border: re.Pattern[bytes] | None = None
        self._prefix = b""
        self.meta: dict[str, Any] = {}
        self.cut = False
        self.bad = 0
        self.problem = ""
        self.given = 0

    def blocks(self) -> Iterator[list[Any]]:
        """Lists of decoded objects, in order."""
        if not self._find_array():
            return
        while True:
            more = self._fill()
            if len(self._buffer) > MAX_OBJECT:
                self.problem = f"one object is longer than {MAX_OBJECT >> 20} MiB"
                self.cut = True
                return
            if not more:
                yield from self._last()
                return
            cut = self._cut()
            if cut is not None:
                yield cut
                continue
            items, done = self._by_depth()
            yield from items
            if done:
                return

    def _fill(self) -> bool:
        block = next(self._source, None)
        if block is None:
            self._ended = True
            return False
        self._buffer += block
        return True

    def _find_array(self) -> bool:
        while not self._buffer.strip():
            if not self._fill():
                self.problem = "empty"
                return False
        head = self._buffer.lstrip(b"\xef\xbb\xbf \t\r\n")
        if head[:1] == b"[":
            self._buffer = head[1:]
            return True
        if head[:1] != b"{":
            self.problem = "not JSON"
            return False
        place = re.compile(re.escape(self._key) + rb"\s*:\s*\[")
        searched = 0
        while True:
            for found in place.finditer(self._buffer, max(0, searched - 64)):
                meta = _object(self._buffer[: found.start()].rstrip().rstrip(b",") + b"}")
                if meta is not None:
                    self.meta = meta
                    self._buffer = self._buffer[found.end() :]
                    return True
            searched = len(self._buffer)
            if searched > MAX_PREFIX or not self._fill():
                whole = _object(self._buffer)
                self.meta = whole or {}
                self.problem = (
                    f"no {self._key.decode()} array in it" if whole is not None else "cut before the first event"
                )
                return False

    def _cut(self) -> list[Any] | None:
        if self._border is None:
            first = _FIRST_KEY.match(self._buffer)
            if not first:
                return None
            self._border = re.compile(rb"\}\s*(,)\s*\{\s*" + re.escape(first[1]))
        window = max(0, len(self._buffer) - (256 << 10))
        places = [m.start(1) for m in self._border.finditer(self._buffer, window)]
        for at in reversed(places[-_TRIES:]):
            try:
                items = self._decode(b"[" + self._buffer[:at] + b"]")
            except _UNREADABLE:
                continue
            self._buffer = self._buffer[at + 1 :]
            self.given += len(items)
            return items
        return None

    def _by_depth(self) -> tuple[list[list[Any]], bool]:
        """Whole objects in the buffer, one decode each; ``True`` when the array closes in it."""
        items: list[Any] = []
        depth = start = used = 0
        for token in _TOKEN.finditer(self._buffer):
            char = token[0][:1]
            if char in b"[{":
                if depth == 0:
                    start = token.start()
                depth += 1
            elif char in b"]}":
                depth -= 1
                if depth < 0:
                    self._suffix(self._buffer[token.end() :])
                    return [items] if items else [], True
                if depth == 0:
                    used = token.end()
                    self._one(self._buffer[start:used], items)
        self._buffer = self._buffer[used:].lstrip(b" \t\r\n,")
        return [items] if items else [], False

    def _one(self, text: bytes, items: list[Any]) -> None:
        for attempt in (text, text.decode("utf-8", "replace").encode()):
            try:
                items += self._decode(b"[" + attempt + b"]")
                self.given += 1
                return
            except _UNREADABLE:
                continue
        self.bad += 1

    def _last(self) -> Iterator[list[Any]]:
        most = self._cut() if self._buffer else None
        if most is not None:
            yield most
        items, done = self._by_depth()
        yield from items
        if not done:
            self.cut = True

    def _suffix(self, rest: bytes) -> None:
        while len(rest) < MAX_SUFFIX and (block := next(self._source, None)) is not None:
            rest += block
        self.meta.update(_object(b"{" + rest.strip().lstrip(b",") if rest.strip()[:1] == b"," else b"{}") or {})


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(text)
    except _UNREADABLE:
        return None
    return value if isinstance(value, dict) else None
