"""What a site lays over the shipped knowledge besides records of its own: ``site.yaml`` in its knowledge folder.

::

    slo: {ttft_p99: 2s, itl_p99: 80ms}          # limits that diagnose checks when the command line names none
    thresholds:                                  # numbers of shipped rules, by rule and fact
      MEM-kv-full-and-waiting: {kv.usage.while_waiting.p50: 0.95}
    silence: [APP-debug-settings]                # rules that never apply here

Rules, facts, cards, signatures and pages of a site stand in the same folders as the shipped ones and replace them by id.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import field

from knowledge.loader import KnowledgeError, read_yaml
from knowledge.schema import Knowledge, Rule, Strict

FILE = "site.yaml"
_ORDERED = re.compile(r"^(\s*{fact}\s*(?:>=|<=|>|<)\s*)([-+0-9.eE]+)(\s*)$".replace("{fact}", r"([a-z][a-z0-9_.]*)"))
_TIME = re.compile(r"^\s*([0-9.]+)\s*(ms|s|m)?\s*$")
_SCALE = {"ms": 1e-3, "s": 1.0, "m": 60.0, None: 1.0}


class Site(Strict, kw_only=True):
    """One site file. SLO limits in seconds."""

    slo: dict[str, float | str] = field(default_factory=dict)
    thresholds: dict[str, dict[str, float]] = field(default_factory=dict)
    silence: list[str] = field(default_factory=list)

    def limits(self) -> dict[str, float]:
        """SLO name → limit in seconds."""
        return {name: seconds(value) for name, value in self.slo.items()}


def seconds(value: float | str) -> float:
    """``"80ms"`` → 0.08; a bare number is seconds. Raises :class:`KnowledgeError`."""
    if isinstance(value, (int, float)):
        return float(value)
    found = _TIME.match(value)
    if not found:
        raise KnowledgeError(f"{FILE}: cannot read the limit {value!r} (write 2s or 80ms)")
    return float(found[1]) * _SCALE[found[2]]


def read_site(roots: list[Path]) -> Site:
    """The site files of all roots in one; a later root wins. Raises :class:`KnowledgeError`."""
    whole = Site()
    for root in roots:
        path = root / FILE
        if not path.exists():
            continue
        try:
            one = msgspec.convert(read_yaml(path) or {}, Site)
        except msgspec.ValidationError as error:
            raise KnowledgeError(f"{root.name}/{FILE}: {error}") from None
        one.limits()
        whole.slo.update(one.slo)
        for rule, changes in one.thresholds.items():
            whole.thresholds.setdefault(rule, {}).update(changes)
        whole.silence.extend(name for name in one.silence if name not in whole.silence)
    return whole


def apply(known: Knowledge, site: Site) -> Knowledge:
    """Knowledge with the site's limits, thresholds and silenced rules. Raises :class:`KnowledgeError` for unknown names.

    A threshold replaces the number in every ordering leaf of that fact in the rule's ``when``.
    """
    if not (site.thresholds or site.silence or site.slo):
        return known
    rules = dict(known.rules)
    for key, changes in site.thresholds.items():
        rules[key] = _with_thresholds(_rule(rules, key), changes)
    for key in site.silence:
        rules[key] = msgspec.structs.replace(_rule(rules, key), lifecycle="deprecated")
    stamp = hashlib.sha256(msgspec.json.encode(site, order="sorted")).hexdigest()[:6]
    return msgspec.structs.replace(known, rules=rules, slo=site.limits(), version=f"{known.version}+{stamp}")


def _rule(rules: dict[str, Rule], key: str) -> Rule:
    if key not in rules:
        raise KnowledgeError(f"{FILE}: no rule is called {key}")
    return rules[key]


def _with_thresholds(rule: Rule, changes: dict[str, float]) -> Rule:
    left = set(changes)

    def walk(cond: Any) -> Any:
        if isinstance(cond, str):
            found = _ORDERED.match(cond)
            if found and found[2] in changes:
                left.discard(found[2])
                return f"{found[1]}{changes[found[2]]:g}"
            return cond
        if isinstance(cond, list):
            return [walk(part) for part in cond]
        if isinstance(cond, dict):
            return {key: walk(part) for key, part in cond.items()}
        return cond

    when = walk(rule.when)
    if left:
        raise KnowledgeError(f"{FILE}: {rule.id} compares no number with {sorted(left)[0]}")
    return msgspec.structs.replace(rule, when=when)
