"""The product, and the product with parts taken out: no refuters, no knowledge cards, no layer, no evidence but words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import structs

from agent.investigate import investigate, make_env
from agent.sources import Sources, gatherer
from agent.state import Env
from evals.arms.base import Answer, Arm, Stopwatch, Task, model_use
from knowledge.schema import LAYERS, Knowledge
from tools.contract import Context, Reading

Attach = Callable[[Env], None]


def sources_of(world: Path) -> Sources:
    """Everything in a world."""
    return Sources(paths=[world])


def words_of(world: Path) -> Sources:
    """The reporter's words and nothing else."""
    report = world / "report.md"
    return Sources(texts={"report.md": report.read_bytes()} if report.is_file() else {})


def solve(task: Task, known: Knowledge, sources: Sources, attach: Attach | None = None) -> Answer:
    """One run of the product; ``attach`` may hang a model on the env."""
    watch = Stopwatch()
    env = make_env(sources, known=known, clock=watch)
    if task.gather is not None:
        env.gather = task.gather
    if attach is not None:
        attach(env)
    diagnosis, state = investigate(env)

    def again() -> list[Reading]:
        return gatherer(sources, Context())()[0]

    return Answer(
        diagnosis=diagnosis,
        first_s=watch.first_finding(),
        probes_run=len(state.get("probes_run", [])),
        again=again if task.gather is None else None,
        **model_use(diagnosis),
    )


def rules_only(task: Task) -> Answer:
    """The product with no model."""
    return solve(task, task.known, sources_of(task.world))


def closed_book(task: Task) -> Answer:
    """Only the words of ``report.md``."""
    return solve(task, task.known, words_of(task.world))


_VARIANTS: dict[tuple[str, str], Knowledge] = {}


def _variant(known: Knowledge, name: str, make: Callable[[Knowledge], Knowledge]) -> Knowledge:
    key = (known.version, name)
    if key not in _VARIANTS:
        _VARIANTS[key] = make(known)
    return _VARIANTS[key]


def _without_refuters(known: Knowledge) -> Knowledge:
    rules = {
        key: structs.replace(rule, refuted_by=[], look_alikes=[], against=[], explains_away=[])
        for key, rule in known.rules.items()
    }
    families = {key: structs.replace(card, refuted_by=[], look_alikes=[]) for key, card in known.families.items()}
    return structs.replace(known, rules=rules, families=families)


def _without_cards(known: Knowledge) -> Knowledge:
    rules = {
        key: structs.replace(
            rule, refuted_by=[], look_alikes=[], against=[], supports=[], driven_by=[], leads_to=[], actions=[], probes=[],
            strength="moderate",
        )
        for key, rule in known.rules.items()
    }  # fmt: skip
    return structs.replace(known, rules=rules, families={}, pages={})


def _without_layer(layer: str) -> Callable[[Knowledge], Knowledge]:
    def make(known: Knowledge) -> Knowledge:
        return structs.replace(known, rules={k: r for k, r in known.rules.items() if r.layer != layer})

    return make


def no_verify(task: Task) -> Answer:
    """Nothing may be refuted, argued against or explained away."""
    return solve(task, _variant(task.known, "no-verify", _without_refuters), sources_of(task.world))


def no_knowledge(task: Task) -> Answer:
    """Bare triggers of equal weight: no cards, signs, look-alikes, drivers."""
    return solve(task, _variant(task.known, "no-knowledge", _without_cards), sources_of(task.world))


def without_layer(layer: str) -> Callable[[Task], Answer]:
    """The product without the rules of one layer."""

    def answer(task: Task) -> Answer:
        known = _variant(task.known, f"without:{layer}", _without_layer(layer))
        return solve(task, known, sources_of(task.world))

    return answer


ARMS = [
    Arm(name="rules-only", says="the product with no model", answer=rules_only, counterfactual=True),
    Arm(name="closed-book", says="the product given the words of report.md and nothing else", answer=closed_book),
    Arm(
        name="no-verify",
        says="the product without refuters, look-alikes and signs against",
        answer=no_verify,
        derived=True,
    ),
    Arm(name="no-knowledge", says="bare rule triggers of equal weight, no cards", answer=no_knowledge, derived=True),
    *(
        Arm(
            name=f"without:{layer}",
            says=f"the product without the rules of the {layer} layer",
            answer=without_layer(layer),
            derived=True,
        )
        for layer in LAYERS
    ),
]
