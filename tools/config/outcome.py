"""What a launch amounts to: the value of every flag and what was said of the rest."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from tools.config.data import Engine
from tools.config.launch import Launch


class Value(Struct):
    """One effective value. ``origin``: given, default or log; ``flag`` is the name it came from."""

    fact: str
    value: Any
    origin: str
    flag: str
    method: str
    line: int = 0
    span: str = ""
    caveats: tuple[str, ...] = ()


class Effective(Struct):
    """What a launch amounts to. The lists hold bare flag names; ``details`` says why, by name."""

    launch: Launch
    engine: Engine
    version: str = ""
    version_how: str = ""
    version_range: str = ""
    generation: str = ""
    generation_how: str = ""
    device: str = ""
    values: dict[str, Value] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    too_new: list[str] = field(default_factory=list)
    renamed: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    forcing_v0: list[str] = field(default_factory=list)
    failing: list[str] = field(default_factory=list)
    env_unknown: list[str] = field(default_factory=list)
    env_removed: list[str] = field(default_factory=list)
    slows: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    undetermined: list[str] = field(default_factory=list)
    details: dict[str, str] = field(default_factory=dict)

    def num(self, fact: str) -> float | None:
        """A value as a number; ``None`` when it is not known or no number."""
        found = self.values.get(fact)
        if found is None or isinstance(found.value, bool) or not isinstance(found.value, (int, float)):
            return None
        return float(found.value)

    def raw(self, fact: str) -> Any:
        """A value; ``None`` when it is not known."""
        found = self.values.get(fact)
        return found.value if found is not None else None
