"""YAML with line numbers, safe against bombs: nodes are composed, never constructed, and every walk has a budget."""

from __future__ import annotations

import re
from typing import Any

from tools.config.values import MISSING, number

MAX_TEXT = 2 << 20
MAX_DEPTH = 60
MAX_NODES = 60_000
_DEEP = re.compile(r"^[ ]*(?:[-?:] +){40}", re.MULTILINE)


class Mapping(dict[Any, Any]):
    """A mapping that remembers the line (from 1) of each key, or of its value where that is a scalar."""

    lines: dict[Any, int]


class Sequence(list[Any]):
    """A sequence that remembers the line of each item."""

    lines: list[int]


class _Budget:
    def __init__(self) -> None:
        self.left = MAX_NODES
        self.memo: dict[int, Any] = {}
        self.hit = False


def _scalar(node: Any) -> Any:
    kind = node.tag.rsplit(":", 1)[-1]
    text = node.value
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in ("true", "yes", "on", "y")
    if kind in ("int", "float"):
        found = number(text.replace(",", ""))
        return found if found is not None else text
    return text


def _line(node: Any) -> int:
    """Line where a value starts; the text of a block scalar starts below its ``|``."""
    return int(node.start_mark.line) + (2 if getattr(node, "style", None) in ("|", ">") else 1)


def _data(node: Any, budget: _Budget, depth: int) -> Any:
    import yaml

    key = id(node)
    if key in budget.memo:
        return budget.memo[key]
    budget.left -= 1
    if budget.left < 0 or depth > MAX_DEPTH:
        budget.hit = True
        return MISSING
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        items = Sequence()
        items.lines = []
        budget.memo[key] = items
        for child in node.value:
            items.append(_data(child, budget, depth + 1))
            items.lines.append(_line(child))
        return items
    out = Mapping()
    out.lines = {}
    budget.memo[key] = out
    for left, right in node.value:
        name = _scalar(left) if isinstance(left, yaml.ScalarNode) else None
        value = _data(right, budget, depth + 1)
        if name == "<<":
            for source in value if isinstance(value, list) else [value]:
                if isinstance(source, Mapping) and source is not out:
                    for inner, content in source.items():
                        out.setdefault(inner, content)
                        out.lines.setdefault(inner, source.lines.get(inner, 0))
            continue
        if isinstance(name, (str, int, float, bool)):
            out[name] = value
            out.lines[name] = _line(right) if isinstance(right, yaml.ScalarNode) else left.start_mark.line + 1
    return out


def _too_deep(text: str) -> bool:
    level = deepest = 0
    for char in re.findall(r"[\[\]{}]", text):
        level += 1 if char in "[{" else -1
        level = max(level, 0)
        deepest = max(deepest, level)
        if deepest > 200:
            return True
    return bool(_DEEP.search(text))


def documents(text: str) -> tuple[list[Any], str]:
    """All documents of a text, and why reading stopped early (empty when it did not)."""
    import yaml

    if len(text) > MAX_TEXT:
        text = text[:MAX_TEXT]
    if _too_deep(text):
        return [], "nested too deeply to be a configuration"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    out: list[Any] = []
    try:
        for node in yaml.compose_all(text, Loader=loader):
            budget = _Budget()
            out.append(_data(node, budget, 0) if node is not None else None)
            if budget.hit:
                return out, "larger than a configuration; only its first part was read"
            if len(out) >= 200:
                return out, "more than 200 documents; the rest was not read"
    except (yaml.YAMLError, ValueError, RecursionError, UnicodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        return out, f"{where}{getattr(error, 'problem', None) or type(error).__name__}"
    return out, ""


def line_of(container: Any, key: Any) -> int:
    """Line of a key or item; 0 when not known."""
    lines = getattr(container, "lines", None)
    if isinstance(lines, dict):
        return int(lines.get(key, 0))
    if isinstance(lines, list) and isinstance(key, int) and key < len(lines):
        return int(lines[key])
    return 0
