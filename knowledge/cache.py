"""Compiled copies of what is slow to read, kept in the user's cache and made anew when a source file changed."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def cache_dir() -> Path:
    """Where compiled knowledge lies: ``$INFERDX_CACHE``, else the XDG cache."""
    base = os.environ.get("INFERDX_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "inferdx"


def stamp(files: Iterable[Path], code: Iterable[Path]) -> str:
    """A key of names, sizes and modification times of ``files`` and of the text of ``code``."""
    digest = hashlib.sha256()
    for path in files:
        if path.exists():
            stat = path.stat()
            digest.update(f"{path}:{stat.st_size}:{stat.st_mtime_ns};".encode())
    for path in code:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def compiled(name: str, key: str, kind: type[T], build: Callable[[], T]) -> T:
    """The stored copy of ``name`` under ``key``, else what ``build`` makes; older copies are removed.

    A cache that cannot be read or written costs time and nothing else.
    """
    path = cache_dir() / f"{name}-{key}.msgpack"
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):
        pass
    made = build()
    _store(path, name, msgspec.msgpack.encode(made))
    return made


def _store(path: Path, name: str, blob: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob(f"{name}-*.msgpack"):
            if old != path:
                old.unlink(missing_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(blob)
        Path(file.name).replace(path)
    except OSError:
        return
