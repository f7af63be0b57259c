"""Names of series over engine versions, from ``knowledge/metrics/names.yaml``."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import msgspec
from msgspec import Struct

from knowledge.loader import ROOT, read_yaml


class Canonical(Struct, forbid_unknown_fields=True):
    """One canonical series. ``by``: label that splits it; ``combine``: how engines are pooled at one moment."""

    id: str
    kind: Literal["gauge", "counter", "histogram", "info"]
    names: list[str]
    combine: Literal["sum", "max", "min", "mean"] = "sum"
    by: str = ""


@lru_cache(maxsize=1)
def canonical() -> dict[str, Canonical]:
    """All canonical series by id."""
    table = msgspec.convert(read_yaml(ROOT / "metrics" / "names.yaml"), list[Canonical])
    return {item.id: item for item in table}


@lru_cache(maxsize=1)
def _index() -> dict[str, tuple[str, str]]:
    out: dict[str, tuple[str, str]] = {}
    for item in canonical().values():
        for name in item.names:
            if item.kind == "histogram":
                for suffix in ("_bucket", "_sum", "_count"):
                    out.setdefault(name + suffix, (item.id, suffix))
            elif item.kind == "counter":
                out.setdefault(name, (item.id, ""))
                out.setdefault(name + "_total", (item.id, ""))
            else:
                out.setdefault(name, (item.id, ""))
    return out


@lru_cache(maxsize=4096)
def lookup(name: str) -> tuple[str, str] | None:
    """``(canonical id, "" | "_bucket" | "_sum" | "_count")`` for an exposed name; Ray's renaming is undone."""
    found = _index().get(name)
    if found:
        return found
    plain = re.sub(r"^(?:ray_)?(vllm|sglang)_", r"\1:", name)
    return _index().get(plain)


def engine_of(name: str) -> str:
    """``vllm``, ``sglang``, ``tgi`` or empty."""
    found = re.match(r"(?:ray_)?(vllm|sglang|tgi)[:_]", name)
    return found[1] if found else ""
