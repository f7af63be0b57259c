"""Facts that make a condition true, false or unknown, close to its thresholds.

A condition tree is walked for sets of leaf truths that give the wanted result; each set is then turned into values, one
fact at a time. Used to prefill fixtures, to prove that a rule can fire at all, and to find the one leaf that decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations, islice
from typing import Any, NamedTuple

from knowledge.logic import ConditionError, Leaf, Node, Ref, Tri, evaluate
from knowledge.schema import FactDef, Text

Tree = Leaf | Node
LIMIT = 4000
_WHOLE = frozenset({"s", "ms", "fraction", "ratio", "tokens/s", "GiB", "GB/s", "%", "TFLOP/s", "req/s", "W", "x"})


class Literal(NamedTuple):
    """A leaf and the truth it must take; ``None`` leaves its fact out."""

    leaf: Leaf
    truth: Tri


class Given:
    """Plain values as :class:`knowledge.logic.Facts`."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def value(self, fact: str) -> Any:
        """The value, ``None`` when absent."""
        return self._values.get(fact)

    def ids(self, fact: str) -> tuple[str, ...]:
        """No evidence stands behind made-up values."""
        return ()


def solutions(tree: Tree, want: bool) -> Iterator[tuple[Literal, ...]]:
    """Sets of leaf truths that make the tree ``want``, small sets first for ``any``."""
    if isinstance(tree, Leaf):
        yield (Literal(tree, want),)
        return
    if tree.kind == "not":
        yield from solutions(tree.parts[0], not want)
        return
    need = {"all": len(tree.parts), "any": 1}.get(tree.kind, tree.n)
    count = need if want else len(tree.parts) - need + 1
    for chosen in combinations(tree.parts, count):
        yield from _product(chosen, want)


def _product(parts: tuple[Tree, ...], want: bool) -> Iterator[tuple[Literal, ...]]:
    if not parts:
        yield ()
        return
    for first in solutions(parts[0], want):
        for rest in _product(parts[1:], want):
            yield (*first, *rest)


def paths(tree: Tree, prefix: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """The way to every leaf, left to right."""
    if isinstance(tree, Leaf):
        yield prefix
        return
    for number, part in enumerate(tree.parts):
        yield from paths(part, (*prefix, number))


def leaf_at(tree: Tree, path: tuple[int, ...]) -> Leaf:
    """The leaf at the end of a path. Raises ``ValueError`` when the path ends at a tree."""
    for number in path:
        if isinstance(tree, Leaf):
            raise ValueError("the path goes on below a leaf")
        tree = tree.parts[number]
    if not isinstance(tree, Leaf):
        raise ValueError("the path ends above a leaf")
    return tree


def pivots(tree: Tree, path: tuple[int, ...], truth: Tri) -> Iterator[tuple[Literal, ...]]:
    """Sets of leaf truths in which the leaf at ``path`` has ``truth`` and alone decides the whole."""
    if isinstance(tree, Leaf):
        yield (Literal(tree, truth),)
        return
    here, rest = path[0], path[1:]
    others = (*tree.parts[:here], *tree.parts[here + 1 :])
    for inner in pivots(tree.parts[here], rest, truth):
        for outer in _neutral(tree, others):
            yield (*inner, *outer)


def _neutral(tree: Node, others: tuple[Tree, ...]) -> Iterator[tuple[Literal, ...]]:
    """Truths of the siblings that leave the result to one part."""
    if tree.kind == "not":
        yield ()
    elif tree.kind in ("all", "any"):
        yield from _product(others, tree.kind == "all")
    else:
        for true in combinations(range(len(others)), tree.n - 1):
            yes = tuple(part for number, part in enumerate(others) if number in true)
            no = tuple(part for number, part in enumerate(others) if number not in true)
            for left in _product(yes, True):
                for right in _product(no, False):
                    yield (*left, *right)


def witness(tree: Tree, want: bool, facts: Mapping[str, FactDef]) -> dict[str, Any] | None:
    """Values that make the tree ``want``; ``None`` when none was found within the search limit."""
    for literals in islice(solutions(tree, want), LIMIT):
        values = assign(literals, facts)
        if values is not None and truth_of(tree, values) is want:
            return values
    return None


def deciding(tree: Tree, path: tuple[int, ...], truth: Tri, facts: Mapping[str, FactDef]) -> dict[str, Any] | None:
    """Values under which the leaf at ``path`` has ``truth`` and the whole follows from it alone."""
    target = leaf_at(tree, path)
    gone = _wants_absent(Literal(target, truth)) and truth is not None
    for literals in islice(pivots(tree, path, truth), LIMIT):
        if gone:
            # The leaf asks whether its fact is known: siblings that read the same fact become unknown with it.
            literals = tuple(lit for lit in literals if lit.leaf is target or target.fact not in _facts_in(lit.leaf))
        values = assign(literals, facts)
        if values is None or truth_of(target, values) is not truth:
            continue
        whole = truth_of(tree, values)
        if (whole is None) == (truth is None):
            return values
    return None


def truth_of(tree: Tree, values: Mapping[str, Any]) -> Tri:
    """The tree over plain values; a comparison that cannot be made counts as unknown."""
    try:
        return evaluate(tree, Given(values)).truth
    except (ConditionError, TypeError, ValueError):
        return None


def assign(literals: tuple[Literal, ...], facts: Mapping[str, FactDef]) -> dict[str, Any] | None:
    """One value per fact so that every literal holds; ``None`` when they contradict each other."""
    absent = {lit.leaf.fact for lit in literals if _wants_absent(lit)}
    present = {lit.leaf.fact for lit in literals if not _wants_absent(lit)}
    refs = {lit.leaf.rhs.fact for lit in literals if isinstance(lit.leaf.rhs, Ref) and lit.truth is not None}
    if absent & (present | refs):
        return None
    order = sorted(refs - present) + sorted(present, key=lambda name: (name not in refs, name))
    return _fill(order, 0, {}, tuple(lit for lit in literals if lit.truth is not None), facts)


def _wants_absent(literal: Literal) -> bool:
    if literal.truth is None:
        return True
    return literal.leaf.kind in ("known", "unknown") and (literal.leaf.kind == "known") != literal.truth


def _fill(
    order: list[str], at: int, values: dict[str, Any], literals: tuple[Literal, ...], facts: Mapping[str, FactDef]
) -> dict[str, Any] | None:
    if at == len(order):
        return dict(values)
    name = order[at]
    mine = [lit for lit in literals if name in _facts_in(lit.leaf)]
    for candidate in _candidates(name, mine, values, facts):
        values[name] = candidate
        ready = [lit for lit in mine if all(fact in values for fact in _facts_in(lit.leaf))]
        if all(truth_of(lit.leaf, values) is lit.truth for lit in ready if not _wants_absent(lit)):
            done = _fill(order, at + 1, values, literals, facts)
            if done is not None:
                return done
        del values[name]
    return None


def _facts_in(leaf: Leaf) -> tuple[str, ...]:
    return (leaf.fact, leaf.rhs.fact) if isinstance(leaf.rhs, Ref) else (leaf.fact,)


def _candidates(name: str, literals: list[Literal], values: dict[str, Any], facts: Mapping[str, FactDef]) -> list[Any]:
    """Values worth trying, those at a threshold first; without a threshold something of the fact's type."""
    fact = facts.get(name) or FactDef(name=name, unit="", means=Text(en=name))
    out: list[Any] = []
    for lit in literals:
        leaf = lit.leaf
        if leaf.fact != name or leaf.kind != "cmp":
            continue
        rhs = leaf.rhs
        if isinstance(rhs, Ref):
            if rhs.fact not in values:
                continue
            rhs = _tidy(values[rhs.fact] * rhs.factor)
        out.extend(_near(leaf.op, rhs, bool(lit.truth), fact))
    out.extend(_any_of(fact))
    return out


def _near(oper: str, rhs: Any, truth: bool, fact: FactDef) -> list[Any]:
    if isinstance(rhs, re.Pattern):
        word = example(rhs) if truth else "something else"
        return [[word] if fact.type == "list" else word] if word is not None else []
    if isinstance(rhs, tuple):
        pool = list(rhs)
        wrong = "something else" if all(isinstance(item, str) for item in pool) else _tidy(max(pool) + 1)
        return [_as(fact, value) for value in (pool if truth == (oper in ("in", "==")) else [wrong])]
    if isinstance(rhs, bool):
        return _truthy(fact, rhs == (truth == (oper == "==")))
    if isinstance(rhs, str):
        return [_as(fact, rhs if truth == (oper in ("==", "in")) else "something else")]
    step = _step(rhs, fact.unit)
    at, above, below = _tidy(rhs), _tidy(rhs + step), _tidy(rhs - step)
    table = {
        (">", True): [above], (">", False): [at, below], (">=", True): [at, above], (">=", False): [below],
        ("<", True): [below], ("<", False): [at, above], ("<=", True): [at, below], ("<=", False): [above],
        ("==", True): [at], ("==", False): [above, below], ("!=", True): [above, below], ("!=", False): [at],
        ("in", True): [at], ("in", False): [above],
    }  # fmt: skip
    return table[oper, truth]


def _as(fact: FactDef, value: Any) -> Any:
    return [value] if fact.type == "list" else value


def _truthy(fact: FactDef, value: bool) -> list[Any]:
    if fact.type == "bool":
        return [value]
    if fact.type == "number":
        return [1 if value else 0]
    if fact.type == "list":
        return [["something"] if value else []]
    return ["something" if value else ""]


def _any_of(fact: FactDef) -> list[Any]:
    if fact.type == "bool":
        return [True, False]
    if fact.type == "number":
        return [0.5, 0, 1] if fact.unit == "fraction" else [100, 1, 0, 10000]
    return [["something"], []] if fact.type == "list" else ["something"]


def _step(threshold: float, unit: str) -> float:
    """A small step away from a threshold: one for counts, 1 % point for fractions, 5 % for other measures."""
    if unit == "fraction":
        return 0.01 if abs(threshold) >= 0.05 else 0.001
    if unit not in _WHOLE and float(threshold).is_integer():
        return 1.0
    return abs(threshold) * 0.05 or 0.01


def _tidy(value: float) -> float | int:
    rounded = float(f"{value:.6g}")
    return int(rounded) if rounded.is_integer() else rounded


_SIMPLE = (
    (re.compile(r"\(\?[:<P!=][^)]*?\)\?"), ""), (re.compile(r"\\[bBAZ]"), ""), (re.compile(r"\\d[+*]?(\{[\d,]+\})?"), "7"),
    (re.compile(r"\\s[+*?]?"), " "), (re.compile(r"\\w[+*]?"), "a"), (re.compile(r"[.]\*[?]?|[.]\+[?]?"), "x"),
    (re.compile(r"\[([^\]^])[^\]]*\][+*?]?"), r"\1"), (re.compile(r"(\w)\?"), r"\1"), (re.compile(r"\\([^\w\s])"), r"\1"),
    (re.compile(r"[\^$]"), ""),
)  # fmt: skip


def example(pattern: re.Pattern[str]) -> str | None:
    """A short text that the pattern finds, for the simple patterns conditions use; ``None`` when none was found."""
    for text in _alternatives(pattern.pattern):
        for form, repl in _SIMPLE:
            text = form.sub(repl, text)
        text = re.sub(r"[()?+*]", "", text)
        if text and pattern.search(text):
            return text
    return None


def _alternatives(pattern: str) -> list[str]:
    """Top-level alternatives first, then those of the first group, spelt out."""
    parts: list[str] = [""]
    depth = 0
    for char in pattern:
        depth += (char == "(") - (char == ")")
        if char == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    out: list[str] = []
    for part in parts:
        group = re.search(r"\((?:\?:)?([^()]*\|[^()]*)\)", part)
        if group:
            inner = group[1].split("|")
            out.extend(x for word in inner for x in _alternatives(part[: group.start()] + word + part[group.end() :]))
        else:
            out.append(part)
    return out
