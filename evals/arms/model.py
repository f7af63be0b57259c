"""Arms with a model. The product's own model access does the calls: it is looked up by name, so that evals run without
it, and a scripted model can take its place.

``agent.llm`` offers ``attach(env) -> Model | None`` (hangs intake, probe order and narration on an env, from the environment's
``INFERDX_MODEL``) and ``complete(prompt, schema) -> (data, tokens)`` (one schema-constrained answer).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

from agent.diagnosis import Outcome
from agent.state import Env
from evals.arms.base import Answer, Arm, ArmError, Task, plain
from evals.arms.product import solve, sources_of
from tools.part import Part

Complete = Callable[[str, dict[str, Any]], tuple[dict[str, Any], int]]
SEAM = "agent.llm"
MAX_PROMPT = 16_000
_OVERRIDE: dict[str, Any] = {}


def use(name: str, function: Any) -> None:
    """Put a function in place of the product's own (``attach`` or ``complete``); ``None`` takes it out again."""
    if function is None:
        _OVERRIDE.pop(name, None)
    else:
        _OVERRIDE[name] = function


def seam(name: str) -> Any:
    """``attach`` or ``complete``. Raises :class:`ArmError` when this build has no model access."""
    if name in _OVERRIDE:
        return _OVERRIDE[name]
    try:
        found = getattr(import_module(SEAM), name, None)
    except ImportError:
        found = None
    if found is None:
        raise ArmError(f"model arms need {SEAM}.{name}, and a model (INFERDX_MODEL and its base URL)")
    return found


def full(task: Task) -> Answer:
    """The product with a model: intake, order of probes, narration; verdict by code."""
    hang: Callable[[Env], Any] = seam("attach")

    def attach(env: Env) -> None:
        if hang(env) is None:
            raise ArmError("no model is set: give INFERDX_MODEL and its base URL")

    return solve(task, task.known, sources_of(task.world), attach)


def _schema(families: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["outcome", "family", "confidence"],
        "properties": {
            "outcome": {"type": "string", "enum": ["incident", "healthy", "theoretical_limit", "undecidable"]},
            "family": {"type": "string", "enum": [*families, "none"]},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        },
    }


def _paste(world: Path, names: list[str]) -> str:
    share = MAX_PROMPT // max(1, len(names))
    blocks = [f"--- {n}\n{Part(name=n, path=world / n).text(4 * share)[:share]}" for n in names]
    return "\n".join(blocks)


def _configured() -> None:
    if "complete" not in _OVERRIDE:
        settings = getattr(import_module(SEAM), "settings", None)
        if settings is not None and settings() is None:
            raise ArmError("no model is set: give INFERDX_MODEL and its base URL")


def _ask(task: Task, names: list[str]) -> Answer:
    families = sorted(task.known.causes)
    listing = "\n".join(f"{f}: {task.known.causes[f].means}" for f in families)
    prompt = (
        "An LLM inference server was observed as pasted below. Name the outcome, the one family of the list that is the "
        f"cause (none when there is no fault) and how sure you are.\n\nFamilies:\n{listing}\n\n{_paste(task.world, names)}"
    )
    ask = seam("complete")
    _configured()
    data, tokens = ask(prompt, _schema(families))
    told = str(data.get("outcome"))
    outcome: Outcome = told if told in get_args(Outcome) else "undecidable"  # type: ignore[assignment]
    family = str(data.get("family", "none"))
    sure = float(data.get("confidence", 0.0))
    named = [family] if family in task.known.causes and outcome == "incident" else []
    return Answer(diagnosis=plain(task.known, outcome, named, confidence=sure), model_calls=1, model_tokens=tokens)


def bare(task: Task) -> Answer:
    """No tools, no knowledge, no checks: all files pasted, one answer."""
    names = sorted(p.relative_to(task.world).as_posix() for p in task.world.rglob("*") if p.is_file())
    return _ask(task, names)


def closed(task: Task) -> Answer:
    """Closed book: the reporter's words alone. What it solves, the words give away (or the thread is remembered)."""
    return _ask(task, ["report.md"] if (task.world / "report.md").is_file() else [])


ARMS = [
    Arm(name="model", says="the product with a model", answer=full, models=True),
    Arm(name="bare-model", says="a bare model, all files pasted", answer=bare, models=True),
    Arm(name="closed-book-model", says="a bare model given report.md alone", answer=closed, models=True),
]
