"""Cases and labels. Strict: an unknown or repeated key, a family outside the closed list, a wrong type is an error."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from agent.diagnosis import Outcome

ROOT = Path(__file__).resolve().parent
CASES = ROOT / "cases"
LABELS = ROOT / "labels"
SYMPTOMS = ("ttft", "tpot", "throughput", "errors", "crash", "startup", "none")
Relation = Literal["healed_twin", "look_alike", "withheld", "control"]
Source = Literal["lab", "public", "essay", "made", "profile"]


class LabelError(ValueError):
    """A label that cannot be used: which file, which key, why."""


class Origin(Struct, forbid_unknown_fields=True, kw_only=True):
    """Where a public case was told."""

    repo: str
    number: int | str
    kind: str = "issue"


class CaseProvenance(Struct, forbid_unknown_fields=True, kw_only=True):
    """Where the case comes from. Stands in the label only: a world must not tell which public thread to recall."""

    kind: Source
    source: Origin | str | None = None
    engine_version: str = ""
    hardware: str = ""
    model: str = ""
    confirmed_by: str = ""


class Label(Struct, forbid_unknown_fields=True, kw_only=True):
    """The answer of one case; see ``evals/README.md`` for the meaning of each field.

    ``blind``: the registered plan before whose run nobody who wrote rules had read the case.
    """

    id: str
    split: Literal["dev", "holdout"]
    outcome: Outcome
    layer: str | None
    cause_families: list[str]
    also_accepted: list[str]
    mechanism: str
    chain: list[tuple[str, str]]
    decoys: list[str]
    decisive_files: list[str]
    acceptable_next_probes: list[str]
    first_safe_action: str
    forbidden_actions: list[str]
    fix: str
    line: str
    origin: str
    n_snapshots: int
    quality: Literal["A", "B"]
    provenance: CaseProvenance
    decoy: str = ""
    noise: str = ""
    derived_from: str | None = None
    relation: Relation | None = None
    blind: str = ""

    def main(self) -> str:
        """The family that must stand on top; empty for none."""
        return self.cause_families[0] if self.cause_families else ""

    def accepted(self) -> set[str]:
        """Families that count as the right top answer."""
        return {self.main(), *self.also_accepted} - {""}

    def benign(self) -> bool:
        """Healthy or at a limit: any fault named here is a false alarm."""
        return self.outcome in ("healthy", "theoretical_limit")

    def group(self) -> str:
        """Source group of the summary: dev, holdout, inc, lab or made."""
        if self.provenance.kind == "lab" and self.relation in (None, "control"):
            return "lab"
        if self.id.startswith("inc-"):
            return "inc"
        if self.provenance.kind == "public" and self.relation is None:
            return "holdout" if self.split == "holdout" else "dev"
        return "made"


class Case(Struct, kw_only=True):
    """A world folder and its label."""

    label: Label
    world: Path

    @property
    def id(self) -> str:
        """Neutral id."""
        return self.label.id


def _no_repeats(text: str) -> Any:
    """YAML as plain data; a key given twice in one mapping is an error (PyYAML would keep the last one silently)."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
            keys = [key.value for key, _ in node.value]
            twice = sorted({str(key) for key in keys if keys.count(key) > 1})
            if twice:
                raise LabelError(f"key {twice[0]!r} is given twice (line {node.start_mark.line + 1})")
            made: dict[Hashable, Any] = super().construct_mapping(node, deep)
            return made

    return yaml.load(text, Loader=Loader)


def load_label(path: Path) -> Label:
    """One label file. Raises :class:`LabelError` that names the file and the key."""
    import yaml

    try:
        data = _no_repeats(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LabelError(f"{path.name}: cannot be read ({error.strerror})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        raise LabelError(f"{path.name}: not YAML{where}: {getattr(error, 'problem', error)}") from None
    except LabelError as error:
        raise LabelError(f"{path.name}: {error}") from None
    try:
        label = msgspec.convert(data, Label)
    except msgspec.ValidationError as error:
        raise LabelError(f"{path.name}: {error}") from None
    if label.id != path.stem:
        raise LabelError(f"{path.name}: id is {label.id!r}, not the file's name")
    return label


def load_cases(cases: Path = CASES, labels: Path = LABELS) -> list[Case]:
    """All cases, by id. A label without a world or a world without a label is an error, never a skip."""
    found = [load_label(path) for path in sorted(labels.glob("*.yaml"))]
    names = {label.id for label in found}
    worlds = {path.name for path in cases.iterdir() if path.is_dir()} if cases.is_dir() else set()
    if names != worlds:
        lone = sorted(names ^ worlds)
        what = "label without a world" if lone[0] in names else "world without a label"
        raise LabelError(f"{lone[0]}: {what} ({len(lone)} such)")
    return [Case(label=label, world=cases / label.id / "world") for label in found]


def dump_label(label: Label) -> str:
    """YAML text of a label, keys in the order of the schema."""
    import yaml

    data = msgspec.to_builtins(label)
    data["chain"] = [list(step) for step in label.chain]
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=118, default_flow_style=None)
    return text
