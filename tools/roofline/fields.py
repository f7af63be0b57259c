"""Typed, tolerant access to a ``config.json``: aliases of one quantity, and a refusal that names the field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tools.roofline.shape import Refusal

_NESTED = ("text_config", "llm_config", "language_config", "language_model_config", "thinker_config", "decoder")
_LIMIT = 1_000_000_000


class Missing(Exception):
    """Carries the refusal out of nested builders; never leaves this package."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.line())
        self.refusal = refusal


class Fields:
    """A config with its nested text part on top, and a note of every default that had to be assumed."""

    def __init__(self, config: dict[str, Any], defaults: dict[str, dict[str, Any]]) -> None:
        merged = dict(config)
        for _ in range(3):
            inner = next((merged[key] for key in _NESTED if isinstance(merged.get(key), dict)), None)
            if inner is None:
                break
            outer = {k: v for k, v in merged.items() if k not in _NESTED}
            merged = outer | {k: v for k, v in inner.items() if v is not None or k not in outer}
        self.data: dict[str, Any] = merged
        self.model_type = str(merged.get("model_type") or "").lower()
        self.notes: list[str] = []
        self._defaults = defaults.get(self.model_type, {})

    def raw(self, *names: str) -> Any:
        """First non-null value among aliases; the model type's own defaults stand last and are noted."""
        for name in names:
            if self.data.get(name) is not None:
                return self.data[name]
        for name in names:
            if name in self._defaults:
                value = self._defaults[name]
                self.notes.append(f"{name} is not in the file: default of {self.model_type} taken ({value})")
                return value
        return None

    def opt(self, *names: str, default: int = 0) -> int:
        """A count, ``default`` when absent. Raises :class:`Missing` on a value that is no count."""
        value = self.raw(*names)
        if value is None or value is False:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _LIMIT:
            raise Missing(Refusal(field=names[0], why=f"{value!r} is not a count", do="check the file"))
        return int(value)

    def need(self, *names: str) -> int:
        """A count that nothing can be computed without."""
        value = self.opt(*names, default=0)
        if value <= 0:
            raise Missing(
                Refusal(
                    field=names[0],
                    why="missing from the config, so weights and cache cannot be computed",
                    do="give the whole config.json or the model's name",
                )
            )
        return value

    def flag(self, *names: str, default: bool = False) -> bool:
        """A switch."""
        value = self.raw(*names)
        return default if value is None else bool(value)

    def items(self, name: str) -> list[Any]:
        """A list, empty when absent or of another type."""
        value = self.data.get(name)
        return value if isinstance(value, list) and len(value) <= 4096 else []

    def word(self, *names: str) -> str:
        """Lower-case text, empty when absent."""
        value = self.raw(*names)
        return str(value).lower() if isinstance(value, str) else ""


def runs(items: list[Any]) -> Iterator[tuple[Any, int]]:
    """Distinct items with their counts, in order of first appearance."""
    order: list[Any] = []
    counts: list[int] = []
    index: dict[Any, int] = {}
    for item in items:
        if item in index:
            counts[index[item]] += 1
        else:
            index[item] = len(order)
            order.append(item)
            counts.append(1)
    yield from zip(order, counts, strict=True)
