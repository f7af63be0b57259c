"""Streams a part as blocks of byte lines: fast enough for gigabytes, bounded however long a line is."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from tools.part import MAX_LINE, Part

BLOCK = 1 << 20


class Blocks:
    """Iterate ``(number of the first line from 1, lines without newline)``; ``problem`` says why a stream ended early.

    Lines over 64 KiB are cut. UTF-16 is recoded to UTF-8. NUL bytes (holes left by log rotation) are dropped.
    """

    def __init__(self, part: Part) -> None:
        self._part = part
        self.problem = ""
        self.cut_lines = 0

    def __iter__(self) -> Iterator[tuple[int, list[bytes]]]:
        if self._part.encoding().startswith("utf-16"):
            yield from self._recoded()
            return
        number = 1 + self._part.line0
        tail = b""
        skipping = False
        try:
            with self._part.open() as stream:
                # read1: what a cut stream gave before its end must not go with the exception.
                while block := stream.read1(BLOCK):  # type: ignore[attr-defined]
                    if number == 1 + self._part.line0 and not tail:
                        block = block.removeprefix(b"\xef\xbb\xbf")
                    if b"\x00" in block:
                        block = block.replace(b"\x00", b"")
                    if skipping:
                        at = block.find(b"\n")
                        if at < 0:
                            continue
                        block, skipping = block[at:], False
                    lines = (tail + block).split(b"\n")
                    tail = lines.pop()
                    if len(tail) > MAX_LINE:
                        tail, skipping = tail[:MAX_LINE], True
                        self.cut_lines += 1
                    if lines:
                        if max(map(len, lines)) > MAX_LINE:
                            self.cut_lines += sum(len(line) > MAX_LINE for line in lines)
                            lines = [line[:MAX_LINE] for line in lines]
                        yield number, lines
                        number += len(lines)
        except (OSError, EOFError, zlib.error) as error:
            self.problem = f"the stream ends early ({type(error).__name__})"
        if tail:
            yield number, [tail]

    def _recoded(self) -> Iterator[tuple[int, list[bytes]]]:
        batch: list[bytes] = []
        first = 1 + self._part.line0
        for _, text in self._part.lines():
            batch.append(text.encode("utf-8", "replace"))
            if len(batch) >= 8192:
                yield first, batch
                first += len(batch)
                batch = []
        if batch:
            yield first, batch


def is_text(part: Part) -> bool:
    """Whether the beginning is text (NUL bytes aside): under 5 % other control characters."""
    head = part.head(8192)
    if part.encoding().startswith("utf-16"):
        return True
    body = head.replace(b"\x00", b"")
    if not body:
        return not head
    odd = sum(1 for byte in body if byte < 9 or (13 < byte < 32 and byte != 27) or byte == 127)
    return odd <= 0.05 * len(body)
