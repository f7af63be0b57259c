"""Conditions over facts with three-valued logic. Data, never code: a condition is parsed, not evaluated by Python.

Grammar of a leaf: ``fact``, ``fact OP value``, ``known(fact)``, ``unknown(fact)``; OP is one of
``> >= < <= == != in ~`` (``~``: case-insensitive regular-expression search). A value is a number, ``true``/``false``,
a quoted or bare word, ``[a, b]``, or another fact: ``$fact`` or ``0.95*$fact``.
Trees: ``{all: […]}``, ``{any: […]}``, ``{not: …}``, ``{atleast: {n: 2, of: […]}}``; a bare list means ``all``.
A fact that is not in the ledger makes its leaf *unknown* (``None``); unknown is never true and never false.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

Tri = bool | None

_LEAF = re.compile(r"^\s*([a-z][a-z0-9_.]*)\s*(?:(>=|<=|==|!=|>|<|~|\bin\b)\s*(.+?))?\s*$")
_KNOWN = re.compile(r"^\s*(known|unknown)\(\s*([a-z][a-z0-9_.]*)\s*\)\s*$")
_REF = re.compile(r"^(?:([0-9.]+)\s*\*\s*)?\$([a-z][a-z0-9_.]*)$")


class ConditionError(ValueError):
    """A condition that cannot be parsed or compares what cannot be compared."""


class Facts(Protocol):
    """What conditions read: the one value of a fact and the evidence ids it came from."""

    def value(self, fact: str) -> Any:
        """The combined value, or ``None`` when the fact is not known."""
        ...

    def ids(self, fact: str) -> tuple[str, ...]:
        """Evidence ids behind :meth:`value`."""
        ...


class Ref(NamedTuple):
    """Right-hand side that is another fact, times a factor."""

    factor: float
    fact: str


class Leaf(NamedTuple):
    """A parsed leaf."""

    kind: str
    fact: str
    op: str
    rhs: Any
    text: str


class Node(NamedTuple):
    """A parsed tree: ``kind`` is all, any, not or atleast."""

    kind: str
    n: int
    parts: tuple[Any, ...]


class Verdict(NamedTuple):
    """Result of a condition: truth, evidence ids used, facts that were missing, leaves that held."""

    truth: Tri
    used: tuple[str, ...]
    missing: tuple[str, ...]
    held: tuple[str, ...]


def _scalar(text: str) -> Any:
    text = text.strip()
    if text[:1] in "'\"" and text[-1:] == text[:1] and len(text) > 1:
        return text[1:-1]
    low = text.lower()
    if low in ("true", "false"):
        return low == "true"
    try:
        return float(text)
    except ValueError:
        return text


def _rhs(text: str) -> Any:
    ref = _REF.match(text.strip())
    if ref:
        return Ref(float(ref[1] or 1.0), ref[2])
    if text.strip().startswith("["):
        return tuple(_scalar(item) for item in text.strip().strip("[]").split(",") if item.strip())
    return _scalar(text)


@lru_cache(maxsize=8192)
def _parse_leaf(text: str) -> Leaf:
    known = _KNOWN.match(text)
    if known:
        return Leaf(known[1], known[2], "", None, text)
    found = _LEAF.match(text)
    if not found:
        raise ConditionError(f"cannot read condition {text!r}")
    fact, oper, rhs = found.groups()
    if oper is None:
        return Leaf("cmp", fact, "==", True, text)
    if oper == "~":
        body = rhs.strip().strip("'\"")
        try:
            return Leaf("cmp", fact, oper, re.compile(body, re.IGNORECASE), text)
        except re.error as error:
            raise ConditionError(f"bad regular expression in {text!r}: {error}") from None
    return Leaf("cmp", fact, oper, _rhs(rhs), text)


def parse(cond: Any) -> Leaf | Node:
    """Turn YAML data into a tree. Raises :class:`ConditionError` with the offending text."""
    if isinstance(cond, str):
        return _parse_leaf(cond)
    if isinstance(cond, (list, tuple)):
        return Node("all", 0, tuple(parse(part) for part in cond))
    if isinstance(cond, dict) and len(cond) == 1:
        ((key, body),) = cond.items()
        if key in ("all", "any") and isinstance(body, list):
            return Node(key, 0, tuple(parse(part) for part in body))
        if key == "not":
            return Node("not", 0, (parse(body),))
        if key == "atleast" and isinstance(body, dict) and set(body) == {"n", "of"}:
            return Node("atleast", int(body["n"]), tuple(parse(part) for part in body["of"]))
    raise ConditionError(f"cannot read condition {cond!r}")


def leaves(tree: Leaf | Node) -> Iterator[Leaf]:
    """All leaves of a tree, left to right."""
    if isinstance(tree, Leaf):
        yield tree
        return
    for part in tree.parts:
        yield from leaves(part)


def facts_of(cond: Any) -> set[str]:
    """Every fact name a condition mentions."""
    names: set[str] = set()
    for leaf in leaves(parse(cond)):
        names.add(leaf.fact)
        if isinstance(leaf.rhs, Ref):
            names.add(leaf.rhs.fact)
    return names


_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
}


def _compare(leaf: Leaf, left: Any, right: Any) -> bool:
    if leaf.op in _ORDER:
        if isinstance(left, str) or isinstance(right, str):
            raise ConditionError(f"{leaf.text!r}: cannot order {left!r} against {right!r}")
        return _ORDER[leaf.op](left, right)
    if leaf.op == "~":
        return bool(right.search(str(left)))
    if leaf.op == "in":
        pool = right if isinstance(right, (tuple, list)) else (right,)
        values = left if isinstance(left, (list, tuple)) else [left]
        return any(_same(item, want) for item in values for want in pool)
    if isinstance(left, (list, tuple)) and isinstance(right, bool):
        same = bool(left) == right
    elif isinstance(left, (list, tuple)) and not isinstance(right, (list, tuple)):
        same = any(_same(item, right) for item in left)
    else:
        same = _same(left, right)
    return same if leaf.op == "==" else not same


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left.lower() == right.lower()
    if isinstance(left, bool) or isinstance(right, bool):
        return bool(left) == right if isinstance(right, bool) else left == right
    return bool(left == right)


def _leaf(leaf: Leaf, facts: Facts) -> Verdict:
    left = facts.value(leaf.fact)
    if leaf.kind in ("known", "unknown"):
        truth = (left is not None) == (leaf.kind == "known")
        return Verdict(truth, facts.ids(leaf.fact) if left is not None else (), (), (leaf.text,) if truth else ())
    if left is None:
        return Verdict(None, (), (leaf.fact,), ())
    right, used = leaf.rhs, facts.ids(leaf.fact)
    if isinstance(right, Ref):
        other = facts.value(right.fact)
        if other is None:
            return Verdict(None, used, (right.fact,), ())
        right, used = other * right.factor, used + facts.ids(leaf.rhs.fact)
    truth = _compare(leaf, left, right)
    return Verdict(truth, used, (), (leaf.text,) if truth else ())


def evaluate(tree: Leaf | Node, facts: Facts) -> Verdict:
    """Three-valued evaluation.

    ``all``: false if any part is false, else unknown if any is unknown. ``any`` and ``atleast`` mirror it.
    Evidence ids of a decided result are those of the parts that decided it.
    """
    if isinstance(tree, Leaf):
        return _leaf(tree, facts)
    parts = [evaluate(part, facts) for part in tree.parts]
    if tree.kind == "not":
        inner = parts[0]
        truth = None if inner.truth is None else not inner.truth
        held = (f"not ({_text(tree.parts[0])})",) if truth else ()
        return Verdict(truth, inner.used, inner.missing, held)
    need = {"all": len(parts), "any": 1}.get(tree.kind, tree.n)
    yes = [part for part in parts if part.truth is True]
    maybe = [part for part in parts if part.truth is None]
    missing = tuple(dict.fromkeys(name for part in maybe for name in part.missing))
    if len(yes) >= need:
        return Verdict(True, _join(p.used for p in yes), (), _join(p.held for p in yes))
    if len(yes) + len(maybe) >= need:
        return Verdict(None, _join(p.used for p in yes), missing, _join(p.held for p in yes))
    no = [part for part in parts if part.truth is False]
    return Verdict(False, _join(p.used for p in no), (), ())


def _join(groups: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for group in groups for item in group))


def _text(tree: Leaf | Node) -> str:
    if isinstance(tree, Leaf):
        return tree.text
    glue = {"all": " and ", "any": " or ", "not": "not ", "atleast": f" ({tree.n} of) "}[tree.kind]
    return glue.join(_text(part) for part in tree.parts) if len(tree.parts) > 1 else _text(tree.parts[0])


def text_of(cond: Any) -> str:
    """A condition as one line for people."""
    return _text(parse(cond))
