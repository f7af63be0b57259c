"""The table of readers: kind → package. A package has ``sniff.sniff(name, head)`` and ``read.read(parts, context)``.

Adding a reader is one row here. ``priority`` breaks ties; prose is what nothing else claims.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import NamedTuple, cast

from tools.contract import Context, ReadResult
from tools.part import Part
from tools.report.sniff import written

Sniff = Callable[[str, str], float]
Read = Callable[[list[Part], Context], ReadResult]


class Kind(NamedTuple):
    """A row: package below ``tools`` and the score that its sniffer must reach."""

    package: str
    floor: float = 0.5


KINDS: dict[str, Kind] = {
    "metrics": Kind("metrics"),
    "log": Kind("logs"),
    "config": Kind("config"),
    "bench": Kind("bench"),
    "host": Kind("host"),
    "gpu": Kind("gpu"),
    "profile": Kind("profile"),
    "hf_config": Kind("roofline"),
    "report": Kind("report", 0.0),
}


# What tools print is pasted into reports; the report reader hands each print-out to the reader of its kind.
PRINTED = ("log", "bench", "gpu", "host")
# At this score no other sniffer is asked: scrapes come by the dozen, and each sniffer reads the head again.
CERTAIN = 0.97


@cache
def sniffer(kind: str) -> Sniff:
    """The sniffer of a kind (light import)."""
    return cast(Sniff, import_module(f"tools.{KINDS[kind].package}.sniff").sniff)


@cache
def reader(kind: str) -> Read:
    """The reader of a kind (may import more)."""
    return cast(Read, import_module(f"tools.{KINDS[kind].package}.read").read)


def classify(part: Part) -> str:
    """The kind whose sniffer is surest; ``report`` for text nobody claims; ``binary`` for what is no text."""
    head_bytes = part.head(65536)
    if len(head_bytes) < 65536 and not head_bytes.strip():
        part.size()  # raises for a file that is gone
        return "metrics" if part.name.endswith((".prom", ".prom.gz")) else "empty"
    head = head_bytes.decode(part.encoding().removesuffix("-le").removesuffix("-be"), "replace")
    best, score = "report", 0.05
    for kind, row in KINDS.items():
        if kind == "report":
            continue
        sure = sniffer(kind)(part.name, head)
        if sure >= row.floor and sure > score:
            best, score = kind, sure
            if sure >= CERTAIN:
                break
    if best == "report" and part.is_binary():
        return "binary"
    return "report" if best in PRINTED and written(part.name, head) else best
