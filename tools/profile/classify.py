"""Names → what they are for: kernels, API calls, step annotations, Python frames. The tables are data in knowledge."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import knowledge
from knowledge.loader import read_yaml

CLASSES = ("attention", "gemm", "moe", "allreduce", "quant", "copy", "sampling", "ssm", "elementwise", "other")
_CUT = 600
_QUALIFIER = re.compile(r"^(?:[\w<>]{1,80}\.){1,6}(?=[\w<>]+ \()")
_SUFFIX = re.compile(r"(?:_v\d+|_ptsz|_ptds)+$")


class Annotation(NamedTuple):
    """A step as an engine announces it: requests and tokens in prefill (``ctx``) and decode (``gen``)."""

    engine: str
    ctx: int
    ctx_tokens: int | None
    gen: int
    gen_tokens: int | None


@lru_cache(maxsize=8)
def _table(name: str) -> Any:
    return read_yaml(Path(knowledge.__file__).parent / "kernels" / f"{name}.yaml")


def _any(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{p})" for p in patterns), re.IGNORECASE)


@lru_cache(maxsize=1)
def _classes() -> list[tuple[str, re.Pattern[str]]]:
    return [(row["class"], _any(row["match"])) for row in _table("classes")]


@lru_cache(maxsize=1)
def _apis() -> list[tuple[str, re.Pattern[str]]]:
    return [(row["kind"], _any(row["match"])) for row in _table("apis")]


@lru_cache(maxsize=1)
def _phases() -> list[tuple[str, float, re.Pattern[str]]]:
    return [(row["phase"], float(row["weight"]), _any(row["match"])) for row in _table("phases")["kernels"]]


@lru_cache(maxsize=1)
def _annotations() -> list[tuple[str, re.Pattern[str]]]:
    rows = _table("phases")["annotations"]
    return [(row["engine"], re.compile(row["match"], re.IGNORECASE)) for row in rows]


@lru_cache(maxsize=1)
def _marks() -> tuple[re.Pattern[str], re.Pattern[str]]:
    table = _table("phases")
    return _any(table["steps"]), _any(table["not_kernels"])


@lru_cache(maxsize=1)
def _frames() -> list[tuple[str, re.Pattern[str]]]:
    return [(row["share"], _any(row["match"])) for row in _table("cpu")["frames"]]


@lru_cache(maxsize=1)
def _roles() -> list[tuple[str, re.Pattern[str]]]:
    return [(row["role"], _any(row["match"])) for row in _table("cpu")["roles"]]


@lru_cache(maxsize=65536)
def kernel_class(name: str) -> str:
    """One of :data:`CLASSES`; ``other`` when no pattern knows the name."""
    text = name[:_CUT]
    return next((cls for cls, pattern in _classes() if pattern.search(text)), "other")


def api_name(name: str) -> str:
    """``cudaLaunchKernel_v7000`` → ``cudaLaunchKernel``."""
    return _SUFFIX.sub("", name)


@lru_cache(maxsize=4096)
def api_kind(name: str) -> str:
    """``launch``, ``graph_launch``, ``sync``, ``memcpy``, ``memcpy_async``, ``alloc``, ``module_load``, …, ``other``."""
    text = api_name(name)[:_CUT]
    return next((kind for kind, pattern in _apis() if pattern.search(text)), "other")


@lru_cache(maxsize=65536)
def phase_of(name: str) -> tuple[str, float]:
    """``(decode | prefill | "", weight 0–1)`` that a kernel name speaks for."""
    text = name[:_CUT]
    return next(((phase, weight) for phase, weight, pattern in _phases() if pattern.search(text)), ("", 0.0))


@lru_cache(maxsize=65536)
def annotation(name: str) -> Annotation | None:
    """The step an engine's range describes, or ``None`` when it is not such a range."""
    for engine, pattern in _annotations():
        found = pattern.search(name[:_CUT])
        if not found:
            continue
        got = found.groupdict()
        kind = (got.get("kind") or "").lower()
        batch = _number(got.get("bs")) or 1
        ctx, gen = _number(got.get("ctx")), _number(got.get("gen"))
        if ctx is None and gen is None:
            if kind not in ("decode", "extend", "prefill", "mixed"):
                return None
            ctx = batch if kind in ("extend", "prefill", "mixed") else 0
            gen = batch if kind in ("decode", "mixed") else 0
        gen_tokens = _number(got.get("gentok"))
        return Annotation(engine, ctx or 0, _number(got.get("ctxtok")), gen or 0, gen_tokens or gen or None)
    return None


def _number(text: str | None) -> int | None:
    """A plain count, or the ``sq`` (query tokens) of ``sq128sk256``."""
    if not text:
        return None
    if text.isdigit():
        return int(text)
    found = re.match(r"sq(\d+)", text)
    return int(found[1]) if found else None


@lru_cache(maxsize=65536)
def is_step(name: str) -> bool:
    """Whether a range looks like one step of an engine or profiler."""
    return bool(_marks()[0].search(name[:_CUT]))


@lru_cache(maxsize=65536)
def is_annotation(name: str) -> bool:
    """Whether a row on the device side is a range around kernels and no kernel itself."""
    return bool(_marks()[1].search(name[:_CUT])) or annotation(name) is not None


@lru_cache(maxsize=65536)
def frame_share(frame: str) -> str:
    """What a CPU frame works on: ``tokenize``, ``schedule``, ``poll`` … or an empty string."""
    text = frame[:_CUT]
    bare = _QUALIFIER.sub("", text)
    return next((share for share, pattern in _frames() if pattern.search(bare) or pattern.search(text)), "")


@lru_cache(maxsize=1)
def _frame_roles() -> list[tuple[str, re.Pattern[str]]]:
    return [(row["role"], _any(row["match"])) for row in _table("cpu")["frame_roles"]]


@lru_cache(maxsize=65536)
def frame_role(frame: str) -> str:
    """Process role that a frame near the root gives away, or an empty string."""
    return next((role for role, pattern in _frame_roles() if pattern.search(frame[:_CUT])), "")


@lru_cache(maxsize=4096)
def role_of(title: str) -> str:
    """Process role by title or command line: ``engine_core``, ``api_server``, ``worker`` … or an empty string."""
    return next((role for role, pattern in _roles() if pattern.search(title[:_CUT])), "")
