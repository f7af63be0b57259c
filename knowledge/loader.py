"""Reads the YAML files into :class:`knowledge.schema.Knowledge`, with a compiled copy in the user's cache.

Parsing a few hundred YAML files costs more CPU than a diagnosis; the cache key is a hash of names, sizes and
modification times, so an edited file is read anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from knowledge.cache import compiled, stamp
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


def _sources(roots: Iterable[Path]) -> list[Path]:
    files: list[Path] = []
    for root in roots:
        for kind in _KINDS:
            files.extend(yaml_files(root, kind))
        files.append(root / "causes.yaml")
    return files


def _content_version(roots: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for root in roots:
        for kind in (*_KINDS, "config", "metrics", "hardware", "models", "kernels", "lexicon", "told"):
            for path in yaml_files(root, kind):
                digest.update(path.relative_to(root).as_posix().encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


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
    key = stamp(_sources(roots), [ROOT / "schema.py", ROOT / "loader.py"])
    return compiled("knowledge", key, Knowledge, lambda: read(roots))


def told() -> dict[str, dict[str, list[str]]]:
    """How people tell of each family, and of nothing wrong: ``{family: {"en": phrases, "zh": phrases}}``.

    Read by the search for likeness alone; no rule looks at it.
    """
    out: dict[str, dict[str, list[str]]] = {}
    for path in yaml_files(ROOT, "told"):
        for name, languages in msgspec.convert(read_yaml(path), dict[str, dict[str, list[str]]]).items():
            mine = out.setdefault(name, {})
            for lang, texts in languages.items():
                mine.setdefault(lang, []).extend(texts)
    return out
