"""A tolerant reader of Prometheus text and OpenMetrics pages.

Real scrapes in an incident are cut, concatenated or proxied; a strict parser refuses the page. Here every good line is
kept and every bad one counted. The official parser serves as the oracle in the tests.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from msgspec import Struct, field

Labels = tuple[tuple[str, str], ...]
_LABEL = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_QUOTED_NAME = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_WANTED = ("vllm", "sglang", "ray_", "http_", "process_", "tgi_")


class Sample(Struct, frozen=True):
    """One line: value, 1-based line number, timestamp in Unix seconds when the page gives one."""

    value: float
    line: int
    time: float | None = None


class Page(Struct):
    """A parsed page. ``other`` counts good samples of families nobody asked for, by name prefix."""

    samples: dict[tuple[str, Labels], Sample] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    other: dict[str, int] = field(default_factory=dict)
    good: int = 0
    bad: int = 0
    first_bad: str = ""
    html: bool = False
    open_metrics: bool = False
    complete: bool = True


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text)


def parse_labels(body: str) -> tuple[str | None, Labels] | None:
    """``(quoted metric name or None, sorted labels)``; ``None`` when malformed."""
    labels: list[tuple[str, str]] = []
    quoted: str | None = None
    pos, size = 0, len(body)
    while pos < size and body[pos:].strip():
        found = _LABEL.match(body, pos)
        if found:
            name = found[1]
            labels.append((_unescape(name[1:-1]) if name[0] == '"' else name, _unescape(found[2])))
            pos = found.end()
            continue
        bare = _QUOTED_NAME.match(body, pos)
        if bare and quoted is None and not labels:
            quoted = _unescape(bare[1])
            pos = bare.end()
            continue
        return None
    return quoted, tuple(sorted(labels))


def _close(line: str, start: int) -> int:
    """Index of the ``}`` that closes the label set, outside quotes; -1 when cut."""
    first = line.find("}", start)
    if first < 0 or line.count('"', start, first) % 2 == 0:
        return first
    inside = escaped = False
    for index in range(start, len(line)):
        char = line[index]
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == '"':
            inside = not inside
        elif char == "}" and not inside:
            return index
    return -1


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return {"+Inf": math.inf, "-Inf": -math.inf, "Inf": math.inf}.get(text)


def parse_page(lines: Iterable[tuple[int, str]], *, wanted: tuple[str, ...] | None = _WANTED) -> Page:
    """Parse numbered lines. ``wanted`` are family prefixes to keep (``None``: all); others are only counted."""
    page = Page()
    cache: dict[str, tuple[str | None, Labels] | None] = {}
    for number, line in lines:
        if not line or line.isspace():
            continue
        if line[0] == "#":
            _comment(page, line)
            continue
        text = line.strip()
        if number < 30 and text[:1] == "<" and re.match(r"<(?:!doctype|html|head|body|\?xml)", text, re.I):
            page.html = True
            return page
        _sample(page, text, number, wanted, cache)
    return page


def _comment(page: Page, line: str) -> None:
    if line.startswith("# TYPE "):
        parts = line.split()
        if len(parts) >= 4:
            page.types[parts[2]] = parts[3]
    elif line.startswith("# EOF"):
        page.open_metrics = True


def _sample(
    page: Page,
    text: str,
    number: int,
    wanted: tuple[str, ...] | None,
    cache: dict[str, tuple[str | None, Labels] | None],
) -> None:
    brace = text.find("{")
    labels: Labels = ()
    if brace >= 0 and (brace == 0 or " " not in text[:brace].strip()):
        end = _close(text, brace + 1)
        if end < 0:
            return _bad(page, text, number)
        body = text[brace + 1 : end]
        if body not in cache:
            cache[body] = parse_labels(body)
        parsed = cache[body]
        if parsed is None:
            return _bad(page, text, number)
        name = text[:brace].strip() or (parsed[0] or "")
        labels = parsed[1]
        rest = text[end + 1 :].split()
    else:
        fields = text.split()
        name, rest = fields[0], fields[1:]
    if not rest or not name or (brace != 0 and not _NAME.fullmatch(name)):
        return _bad(page, text, number)
    value = _float(rest[0])
    if value is None or (len(rest) > 1 and rest[1] != "#" and _float(rest[1]) is None):
        return _bad(page, text, number)
    page.good += 1
    if wanted is not None and not name.startswith(wanted):
        prefix = re.split(r"[:_]", name, maxsplit=1)[0]
        page.other[prefix] = page.other.get(prefix, 0) + 1
        return None
    stamp = None
    if len(rest) > 1 and rest[1] != "#":
        raw = float(rest[1])
        stamp = raw / 1000.0 if raw > 1e11 else raw
    page.samples[(name, labels)] = Sample(value, number, stamp)
    return None


def _bad(page: Page, text: str, number: int) -> None:
    page.bad += 1
    if not page.first_bad:
        page.first_bad = f"line {number}: {text[:60]!r}"
