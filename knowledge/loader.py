"""Reads the YAML files into :class:`knowledge.schema.Knowledge`, with a compiled copy in the user's cache.

Parsing a few hundred YAML files costs more CPU than a diagnosis; the cache key is a hash of names, sizes and
modification times, so an edited file is read anew.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from knowledge.schema import CauseDef, FactDef, Family, Knowledge, Page, Rule, Signature

ROOT = Path(__file__).parent
_KINDS: dict[str, tuple[str, Any]] = {
    "facts": ("facts", FactDef),
    "rules": ("rules", Rule),
    "families": ("families", Family),
    "signatures": ("signatures", Signature),
    "pages": ("pages", Page),
}
T = TypeVar("T")


class KnowledgeError(ValueError):
    """A knowledge file that cannot be used: which file, which record, why."""


def read_yaml(path: Path) -> Any:
    """One YAML file as plain data, by the C loader where it is built."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    except yaml.YAMLError as error:
        raise KnowledgeError(f"{path.name}: not YAML: {str(error).splitlines()[0]}") from None


def yaml_files(root: Path, kind: str) -> list[Path]:
    """The YAML files of one kind below a knowledge directory, in a fixed order."""
    base = root / kind
    return sorted(base.rglob("*.yaml")) if base.is_dir() else []


def _records(path: Path, data: Any) -> list[Any]:
    if data is None:
        return []
    if isinstance(data, dict):
        return [data]
    if isinstance(data, list):
        return data
    raise KnowledgeError(f"{path.name}: expected a record or a list of records")


def _convert(path: Path, data: Any, kind: type[T]) -> list[T]:
    out: list[T] = []
    for number, record in enumerate(_records(path, data)):
        try:
            out.append(msgspec.convert(record, kind))
        except msgspec.ValidationError as error:
            name = record.get("id", record.get("name", number)) if isinstance(record, dict) else number
            raise KnowledgeError(f"{path.parent.name}/{path.name}: {name}: {error}") from None
    return out


def _stamp(roots: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for root in roots:
        for kind in (*_KINDS, "causes"):
            files = yaml_files(root, kind) if kind != "causes" else [root / "causes.yaml"]
            for path in files:
                if path.exists():
                    stat = path.stat()
                    digest.update(f"{path}:{stat.st_size}:{stat.st_mtime_ns};".encode())
    for code in ("schema.py", "loader.py"):
        digest.update((ROOT / code).read_bytes())
    return digest.hexdigest()[:24]


def _content_version(roots: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for root in roots:
        for kind in (*_KINDS, "config", "metrics", "hardware", "models", "kernels", "lexicon"):
            for path in yaml_files(root, kind):
                digest.update(path.relative_to(root).as_posix().encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def cache_dir() -> Path:
    """Where compiled knowledge lies: ``$INFERDX_CACHE``, else the XDG cache."""
    base = os.environ.get("INFERDX_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "inferdx"


def read(roots: list[Path]) -> Knowledge:
    """Read all files; a later root adds to or overrides an earlier one by id. Raises :class:`KnowledgeError`."""
    tables: dict[str, dict[str, Any]] = {kind: {} for kind in _KINDS}
    causes: dict[str, CauseDef] = {}
    for root in roots:
        cause_file = root / "causes.yaml"
        if cause_file.exists():
            for cause in _convert(cause_file, read_yaml(cause_file).get("families", []), CauseDef):
                causes[cause.id] = cause
        for kind, (_, struct) in _KINDS.items():
            seen: dict[str, Path] = {}
            for path in yaml_files(root, kind):
                for record in _convert(path, read_yaml(path), struct):
                    key = record.name if kind == "facts" else record.id
                    if key in seen:
                        raise KnowledgeError(f"{kind}: {key} stands in both {seen[key].name} and {path.name}")
                    seen[key] = path
                    tables[kind][key] = record
    for rule in tables["rules"].values():
        rule.layer = rule.layer or (causes[rule.family].layer if rule.family in causes else "")
    for family in tables["families"].values():
        family.layer = causes[family.id].layer if family.id in causes else ""
    return Knowledge(version=_content_version(roots), causes=causes, **tables)


def load(extra: list[Path] | None = None, *, cache: bool = True) -> Knowledge:
    """The shipped knowledge plus site directories (``--knowledge DIR``), from the cache when nothing changed."""
    roots = [ROOT, *(extra or [])]
    if not cache:
        return read(roots)
    path = cache_dir() / f"knowledge-{_stamp(roots)}.msgpack"
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=Knowledge)
    except (OSError, msgspec.DecodeError):
        pass
    known = read(roots)
    _store(path, msgspec.msgpack.encode(known))
    return known


def _store(path: Path, blob: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob("knowledge-*.msgpack"):
            if old != path:
                old.unlink(missing_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(blob)
        Path(file.name).replace(path)
    except OSError:
        return
