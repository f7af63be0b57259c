"""One piece of input: a file, standard input, a fenced block or a fetched page, streamed and decoded tolerantly."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

MAX_LINE = 1 << 16
_BOMS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8-sig"))


class Part(Struct, kw_only=True):
    """``name`` is the path inside the world (never absolute); exactly one of ``path`` and ``data`` is set.

    ``line0``: line offset of a block inside ``parent``. ``kind``: what the router decided (``metrics``, ``log`` …).
    ``time``: Unix seconds at which it was captured, when known. ``hint``: a fence's language or a caller's word.
    ``cut``: why reading ended before the end, set while reading; empty as long as nothing went wrong.
    """

    name: str
    path: Path | None = None
    data: bytes | None = None
    kind: str = ""
    hint: str = ""
    parent: str = ""
    line0: int = 0
    time: float | None = None
    group: str = ""
    cut: str = ""

    def size(self) -> int:
        """Bytes as stored (compressed size for ``.gz``)."""
        if self.data is not None:
            return len(self.data)
        return self.path.stat().st_size if self.path else 0

    def open(self) -> BinaryIO:
        """Binary stream, gunzipped when the magic says so. Raises ``OSError``."""
        raw: BinaryIO = io.BytesIO(self.data) if self.data is not None else open(self.path or "", "rb")  # noqa: PTH123, SIM115
        magic = raw.read(2)
        raw.seek(0)
        if magic == b"\x1f\x8b":
            return gzip.GzipFile(fileobj=raw)  # type: ignore[return-value]
        return raw

    def head(self, size: int = 65536) -> bytes:
        """First bytes after decompression; what could be read when the stream is cut."""
        out = bytearray()
        try:
            with self.open() as stream:
                # read1, not read: a cut stream raises at its end, and what came before must not go with it.
                while len(out) < size and (chunk := stream.read1(size - len(out))):  # type: ignore[attr-defined]
                    out += chunk
        except (OSError, EOFError, zlib.error) as error:
            self.cut = _why(error)
        return bytes(out)

    def encoding(self) -> str:
        """From the byte-order mark, or from the NUL pattern of UTF-16 without one; UTF-8 otherwise."""
        head = self.head(4096)
        for bom, name in _BOMS:
            if head.startswith(bom):
                return name
        if len(head) >= 64 and head[1::2].count(0) > 0.9 * len(head[1::2]) and head[0::2].count(0) == 0:
            return "utf-16-le"
        return "utf-8"

    def is_binary(self) -> bool:
        """NUL bytes that UTF-16 does not explain."""
        head = self.head(8192)
        return b"\x00" in head and not self.encoding().startswith("utf-16")

    def lines(self, limit: int | None = None) -> Iterator[tuple[int, str]]:
        """``(line number from 1, text without newline)``, streamed; lines over 64 KiB are cut.

        Decoding errors become U+FFFD. A truncated gzip stream ends the iteration after the last whole line.
        """
        encoding = self.encoding()
        number = 0
        try:
            with self.open() as stream:
                if encoding.startswith("utf-16"):
                    # The named byte order, not "utf-16": that codec raises where the mark is missing.
                    wrapped = io.TextIOWrapper(stream, encoding=encoding, errors="replace", newline=None)
                    for number, line in enumerate(wrapped, 1):
                        text = line.rstrip("\r\n")[:MAX_LINE]
                        yield number + self.line0, text.lstrip("\ufeff") if number == 1 else text
                        if limit and number >= limit:
                            return
                    return
                while True:
                    chunk = stream.readline(MAX_LINE)
                    if not chunk:
                        return
                    number += 1
                    body = chunk
                    while len(body) >= MAX_LINE and not body.endswith(b"\n"):
                        body = stream.readline(MAX_LINE)
                        if not body:
                            break
                    text = chunk.decode("utf-8", "replace").rstrip("\r\n")
                    yield number + self.line0, text.lstrip("\ufeff") if number == 1 else text
                    if limit and number >= limit:
                        return
        except (OSError, EOFError, zlib.error) as error:
            self.cut = _why(error)

    def text(self, limit: int = 4 << 20) -> str:
        """Whole text up to ``limit`` bytes, for formats that must be parsed at once."""
        codec = self.encoding().removesuffix("-le").removesuffix("-be")
        return self.head(limit).decode(codec, "replace").lstrip("\ufeff")

    def is_cut(self) -> str:
        """Why the stream ends early (``truncated gzip``), or an empty string."""
        try:
            with self.open() as stream:
                while stream.read(1 << 20):
                    pass
        except (OSError, EOFError, zlib.error) as error:
            return _why(error)
        return ""


def _why(error: Exception) -> str:
    """One clause for people: the system's own words where it refused, else what is wrong with the data."""
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read ({error.strerror})"
    return f"compressed data is cut or damaged ({type(error).__name__})"
