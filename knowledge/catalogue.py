"""The catalogue of metric families: what each means, since when, what it cannot tell, what it was called before."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import msgspec
from msgspec import field

from knowledge.loader import ROOT, KnowledgeError, read_yaml
from knowledge.schema import Strict, Text
from knowledge.versions import holds

MetricKind = Literal["counter", "gauge", "histogram", "info"]
SUFFIXES = ("_total", "_bucket", "_sum", "_count", "_created")


class Metric(Strict, kw_only=True):
    """One family as an engine exposes it, without ``_total``, ``_bucket`` and the like.

    ``since`` / ``gone``: first release with it, first without it (of those compared). ``hidden``: releases that show it
    only with ``--show-hidden-metrics-for-version``. ``now``: what replaced it. ``needs``: flag or condition without
    which it is absent or constant. ``never``: often quoted, never existed.
    """

    name: str
    engine: Literal["vllm", "sglang", "http"]
    kind: MetricKind
    means: Text
    unit: str = ""
    since: str = ""
    gone: str = ""
    hidden: str = ""
    labels: list[str] = field(default_factory=list)
    needs: str = ""
    cannot_tell: Text | None = None
    now: str = ""
    was: list[str] = field(default_factory=list)
    never: bool = False
    facts: list[str] = field(default_factory=list)


@lru_cache(maxsize=1)
def catalogue() -> dict[str, Metric]:
    """``knowledge/metrics/catalogue.yaml`` by name. Raises :class:`KnowledgeError` when a record cannot be read."""
    try:
        items = msgspec.convert(read_yaml(ROOT / "metrics" / "catalogue.yaml"), list[Metric])
    except msgspec.ValidationError as error:
        raise KnowledgeError(f"metrics/catalogue.yaml: {error}") from None
    out: dict[str, Metric] = {}
    for item in items:
        if item.name in out:
            raise KnowledgeError(f"metrics/catalogue.yaml: {item.name} stands twice")
        out[item.name] = item
    return out


def metric_names() -> set[str]:
    """All names."""
    return set(catalogue())


def find(name: str) -> Metric | None:
    """The family of an exposed name: suffixes, ``ray_`` and Ray's underscores are undone."""
    table = catalogue()
    plain = name.strip().split("{")[0]
    for prefix in ("ray_", ""):
        if prefix and plain.startswith(prefix):
            plain = plain[len(prefix) :]
    forms = [plain]
    for engine in ("vllm", "sglang"):
        if plain.startswith(f"{engine}_"):
            forms.append(f"{engine}:{plain[len(engine) + 1 :]}")
        if ":" not in plain:
            forms.append(f"{engine}:{plain}")
    for form in forms:
        if form in table:
            return table[form]
    for form in forms:
        for suffix in SUFFIXES:
            if form.endswith(suffix) and form[: -len(suffix)] in table:
                return table[form[: -len(suffix)]]
    return None


def exists(metric: Metric, version: str) -> bool | None:
    """Whether a release exposes the family by default; ``None`` when the version cannot be read."""
    if metric.never:
        return False
    spec = ",".join(
        part for part in (f">={metric.since}" if metric.since else "", f"<{metric.gone}" if metric.gone else "") if part
    )
    return holds(spec, version)


def names_in(metric: Metric, version: str) -> list[str]:
    """The names under which a version exposes the same data: its own, or those it replaced or was replaced by."""
    table = catalogue()
    chain = [metric, *(table[name] for name in metric.was if name in table)]
    chain += [table[metric.now]] if metric.now in table else []
    return [item.name for item in chain if exists(item, version)]
