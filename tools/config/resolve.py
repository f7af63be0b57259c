"""The effective value of every flag: given, defaulted under its conditions, ignored, removed, unknown, undetermined."""

from __future__ import annotations

import operator
import re
from functools import lru_cache
from typing import Any

from knowledge.versions import holds as holds_uncached
from tools.config.data import Default, Flag, Outcome, engine_data, is_newer, standing
from tools.config.flags import conditions_text, mask_of, spans_text
from tools.config.launch import Given, Launch
from tools.config.outcome import Effective
from tools.config.world import World

_RANGE = re.compile(r"^(>=|<=|>|<|==)?\s*([\d.]+)$")
_ORDER = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "==": operator.eq}
_ASYNC_SPEC = {"eagle", "eagle3", "mtp", "draft_model", "ngram_gpu", "dflash", "dspark"}
UNKNOWN = object()
ABSENT = object()


@lru_cache(maxsize=65536)
def holds(spec: str, version: str | None) -> bool | None:
    """:func:`knowledge.versions.holds`, remembered: a launch without a version asks it of every release."""
    return holds_uncached(spec, version)


def in_range(spec: str, value: float | None) -> bool | None:
    """``>=35,<60`` against a number; ``None`` when the number is unknown."""
    if value is None:
        return None
    for part in spec.split(","):
        found = _RANGE.match(part.strip())
        if not found or not _ORDER[found[1] or "=="](value, float(found[2])):
            return False
    return True


class Resolver:
    """Works out one launch in one world."""

    def __init__(self, launch: Launch, world: World) -> None:
        self.launch, self.world = launch, world
        self.engine = engine_data(launch.engine)
        self.out = Effective(launch, self.engine)
        self.given: dict[str, list[Given]] = {}
        for item in launch.given:
            self.given.setdefault(item.name, []).append(item)
        self.memo: dict[str, Any] = {}
        self.candidates: list[str] = []

    def old_optimization(self) -> None:
        """Before 0.12 ``-O3`` meant the compilation level, not the optimization level."""
        if self.over("<0.12") is not True:
            return
        for item in self.given.pop("optimization-level", []):
            if item.typed.startswith("-O"):
                item.name, item.path = "compilation-config", item.path or "level"
                level = str(item.value).lstrip("O")
                item.value = int(level) if level.isdigit() else item.value
            self.given.setdefault(item.name, []).append(item)

    # ── version, device, generation ──────────────────────────────────────────────────────────────────────────────
    def version(self) -> None:
        """The version, or the releases that know every given flag."""
        out, launch, world = self.out, self.launch, self.world
        same = not world.engine or world.engine == launch.engine
        out.version = launch.version or (world.version if same else "")
        out.version_how = launch.version_how if launch.version else (world.version_how if out.version else "")
        engine = self.engine
        everything = (1 << len(engine.releases)) - 1
        if out.version and (standing(engine, out.version) or not engine.releases):
            self.candidates = [out.version]
            return
        if out.version and is_newer(engine, out.version):
            self.candidates = [engine.releases[-1]]
            out.undetermined.append(
                f"version {out.version} is newer than the data, which ends at {engine.releases[-1]}"
            )
            return
        mask = everything
        if launch.strict:
            for name in self.given:
                have = mask_of(engine, name)
                if name == "optimization-level":
                    have |= mask_of(engine, "compilation-config")
                mask &= have or everything
        if not mask and everything:
            names = [name for name in self.given if (have := mask_of(engine, name)) and have != everything]
            spans = ", ".join(f"--{name} ({spans_text(engine, mask_of(engine, name))})" for name in sorted(names))
            out.conflicts.append(f"no compared release accepts all of: {spans}")
            mask = everything
        elif engine.releases and mask != everything:
            out.version_range = spans_text(engine, mask)
        self.candidates = [label for index, label in enumerate(engine.releases) if mask >> index & 1] or [""]

    def device(self) -> None:
        """Which hardware: a flag, a variable, an image or the caller; a GPU is assumed when nothing speaks."""
        found = self.launch.first("device")
        text = str(found.value).lower() if found and not found.unresolved else ""
        self.out.device = (text if text not in ("", "auto") else "") or self.launch.device or self.world.device

    def generation(self) -> None:
        """V0 or V1 of vLLM over all candidate versions; empty when it depends."""
        out = self.out
        if self.launch.engine != "vllm":
            return
        if self.launch.generation or self.world.generation:
            out.generation = self.launch.generation or self.world.generation
            out.generation_how = "named in the start-up line" if self.launch.generation else "known from elsewhere"
            return
        use = next((str(s.value) for s in reversed(self.launch.env) if s.name == "VLLM_USE_V1"), "")
        kinds = {self._generation(version, use) for version in self.candidates}
        if len(kinds) == 1:
            out.generation = kinds.pop()
        if out.generation:
            out.generation_how = self._generation_how(use)

    def _generation(self, version: str, use: str) -> str:
        if not version:
            return ""
        if holds(">=0.11", version):
            return "V1"
        if holds("<0.6.4", version):
            return "V0"
        if use in ("0", "1"):
            return "V1" if use == "1" else "V0"
        if holds("<0.8", version):
            return "V0"
        if self.out.device == "cpu" and holds("<0.9.2", version):
            return "V0"
        return "V0" if any(self._forces(name, version) for name in self.given) else "V1"

    def _generation_how(self, use: str) -> str:
        low = self.candidates[0]
        if holds(">=0.11", low):
            return "V0 was removed in 0.11.0"
        if use in ("0", "1"):
            return f"VLLM_USE_V1={use}"
        if holds("<0.8", self.candidates[-1]):
            return "V1 was opt-in before 0.8.0"
        if self.out.generation == "V0" and self.out.device == "cpu":
            return "the CPU backend used V0 by default before 0.9.2, or a given flag needs it"
        if self.out.generation == "V0":
            return "a given flag is not supported by V1 and falls back to V0"
        return "default since 0.8.0; 0.8–0.10 may still fall back to V0 for the model or GPU: see the start-up line"

    def _forces(self, name: str, version: str) -> bool:
        flag = self.engine.flags.get(name)
        item = self.last(name)
        return bool(flag and item and any(holds(o.versions, version) and self.differs(item, o) for o in flag.forces_v0))

    def last(self, name: str) -> Given | None:
        return next((g for g in reversed(self.given.get(name, [])) if not g.path), None)

    def differs(self, item: Given, outcome: Outcome) -> bool:
        """Whether a flag is set to something other than the values that have no such effect."""
        if item.unresolved:
            return False
        return not any(_same(item.value, allowed) for allowed in outcome.unless)

    def over(self, spec: str) -> bool | None:
        """A version range over all candidates: true, false, or it depends."""
        states = {holds(spec, version or None) for version in self.candidates}
        return states.pop() if len(states) == 1 else None

    # ── values ───────────────────────────────────────────────────────────────────────────────────────────────────
    def value(self, name: str) -> Any:
        """Effective value of a flag: given, else default; :data:`UNKNOWN` when it cannot be determined."""
        if name in self.memo:
            return self.memo[name]
        self.memo[name] = UNKNOWN
        item = self.last(name)
        if item is not None:
            result = UNKNOWN if item.unresolved else item.value
        else:
            flag = self.engine.flags.get(name)
            options = self.options(flag) if flag else []
            result = options[0][0] if len(options) == 1 else UNKNOWN
            result = UNKNOWN if result is ABSENT else result
        self.memo[name] = result
        return result

    def options(self, flag: Flag) -> list[tuple[Any, Default]]:
        """Every value the default may have, with the entry it came from; one distinct value means it is certain.

        :data:`ABSENT` stands for candidate releases in which no default applies, :data:`UNKNOWN` for a condition that
        cannot be judged.
        """
        out: list[tuple[Any, Default]] = []
        if not flag.defaults:
            return out
        for version in self.candidates:
            found = self._options_at(flag, version)
            if not found and len(self.candidates) > 1:
                found = [(ABSENT, flag.defaults[-1])]
            for value, entry in found:
                if not any(_same(value, have) and type(value) is type(have) for have, _ in out):
                    out.append((value, entry))
        out.sort(key=lambda pair: pair[0] is ABSENT)
        return out

    def _options_at(self, flag: Flag, version: str) -> list[tuple[Any, Default]]:
        out: list[tuple[Any, Default]] = []
        for entry in flag.defaults:
            state = self._applies(entry, version)
            if state is False:
                continue
            out.append((self._computed(entry), entry))
            if state:
                return out
        if out:
            out.append((UNKNOWN, flag.defaults[-1]))
        return out

    def _applies(self, entry: Default, version: str) -> bool | None:
        states: list[bool | None] = [holds(entry.versions, version or None)] if entry.versions else []
        if states and states[0] is False:
            return False
        world, device = self.world, self.out.device
        if entry.context:
            context = self.launch.context or world.context
            states.append(None if not context else context == entry.context)
        if entry.device:
            on_cpu = device == "cpu"
            states.append(on_cpu if entry.device == "cpu" else not on_cpu)
        if entry.generation:
            states.append(None if not self.out.generation else self.out.generation == entry.generation)
        if entry.gpu_gib:
            states.append(in_range(entry.gpu_gib, world.gpu_gib))
        if entry.gpu:
            states.append(bool(re.search(entry.gpu, world.gpu_name)) if world.gpu_name else None)
        if entry.gpu_not:
            big = world.gpu_gib is not None and world.gpu_gib > 125
            states.append(True if big else not re.search(entry.gpu_not, world.gpu_name) if world.gpu_name else None)
        if entry.tp:
            size = self.value("tp-size" if self.launch.engine == "sglang" else "tensor-parallel-size")
            states.append(in_range(entry.tp, float(size) if isinstance(size, (int, float)) else None))
        for name, wanted in entry.given.items():
            have = self.value(name)
            states.append(None if have is UNKNOWN else _same(have, wanted))
        if False in states:
            return False
        return None if None in states else True

    def _computed(self, entry: Default) -> Any:
        value = entry.value
        if entry.expr:
            value = self._expression(entry)
        for size in entry.per:
            factor = self.value({"tp": "tensor-parallel-size", "pp": "pipeline-parallel-size"}[size])
            if value is UNKNOWN or not isinstance(factor, (int, float)) or not isinstance(value, (int, float)):
                return UNKNOWN
            value = value * factor
        return value

    def _expression(self, entry: Default) -> Any:
        if entry.expr == "dp":
            size = self.value("data-parallel-size")
            return size if isinstance(size, int) else UNKNOWN
        if entry.expr == "max_model_len_2048":
            length = self.value("max-model-len")
            return max(int(length), 2048) if isinstance(length, (int, float)) else UNKNOWN
        if entry.expr == "async_auto":
            method = self.speculation()
            if method == "":
                return UNKNOWN
            return method is None or method in _ASYNC_SPEC or str(method).endswith("_mtp")
        seqs = self.batch_default("max-num-seqs")[0]
        if not isinstance(seqs, (int, float)):
            return UNKNOWN
        per = 1 + (self.draft_tokens() or 0) if entry.expr == "capture_2x_queries" else 1
        return int(min(2 * seqs * per, entry.value))

    def batch_default(self, name: str) -> tuple[Any, str]:
        """A batch size with what the engine does to its own default, and that in words.

        vLLM: ``performance-mode throughput`` doubles it; from 0.11.1 the token budget is at least the context when
        chunked prefill is off, at most max_num_seqs × context, and max_num_seqs is at most the token budget.
        """
        value = self.value(name)
        if self.last(name) is not None or not isinstance(value, (int, float)) or self.launch.engine != "vllm":
            return value, ""
        how = ""
        if self.value("performance-mode") == "throughput":
            value, how = value * 2, "doubled by performance-mode throughput"
        if self.over(">=0.11.1") is not True:
            return value, how
        if name == "max-num-seqs":
            tokens = self.last("max-num-batched-tokens")
            limit = tokens.value if tokens is not None else None
            if isinstance(limit, (int, float)) and limit < value:
                return limit, "lowered to the given token budget"
            return value, how
        length = self.value("max-model-len")
        known = isinstance(length, (int, float)) and length > 0
        if self.value("enable-chunked-prefill") is False:
            if not known:
                return UNKNOWN, ""
            if length > value:
                value, how = length, "raised to the context length, since chunked prefill is off"
        seqs = self.batch_default("max-num-seqs")[0]
        if known and isinstance(seqs, (int, float)) and seqs * length < value:
            value, how = int(seqs * length), "lowered to max_num_seqs × context length"
        return value, how

    def speculation(self) -> str | None:
        """Speculation method in lower case; ``None`` when there is none, empty when only a draft model is named.

        With a draft model alone the engine recognises the method from its checkpoint.
        """
        for name in ("spec-method", "speculative-algorithm"):
            item = self.last(name)
            if item is not None and item.value:
                return str(item.value).lower()
        config = self.config("speculative-config")
        if not config:
            old = self.last("speculative-model")
            return None if old is None else "ngram" if "ngram" in str(old.value) else ""
        return str(config.get("method") or config.get("decoding_type") or "").lower()

    def draft_tokens(self) -> int | None:
        """Draft tokens per step, when speculation is on and says so."""
        config = self.config("speculative-config")
        for source in (
            config.get("num_speculative_tokens"),
            config.get("num_spec_tokens"),
            *(g.value for n in ("spec-tokens", "num-speculative-tokens") for g in self.given.get(n, [])),
        ):
            if isinstance(source, int) and not isinstance(source, bool):
                return source
        return None

    def config(self, name: str) -> dict[str, Any]:
        """A JSON-valued flag with its dotted parts merged in."""
        out: dict[str, Any] = {}
        for item in self.given.get(name, []):
            if item.path:
                out[item.path] = item.value
            elif isinstance(item.value, dict):
                out.update(item.value)
        return out


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, str) or isinstance(right, str):
        return str(left).lower() == str(right).lower()
    return bool(left == right)


def default_method(engine: str, version: str, entry: Default) -> str:
    """How a default was chosen, as one sentence."""
    conditions = conditions_text(entry)
    why = f"; {entry.why}" if entry.why else ""
    source = f" [{entry.source}]" if entry.source else ""
    return f"default of {engine} {version or '(version unknown, same in all candidates)'}: {conditions}{why}{source}"
