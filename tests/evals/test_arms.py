"""Arms: what they see, what they say, and that a bad model changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.state import Env
from evals.arms import ARMS, ArmError, Task
from evals.arms import model as model_arms
from evals.arms.scripted import Adversary
from evals.arms.simple import loudest
from evals.rows import digest
from knowledge import Knowledge, load
from tests.evals.conftest import LOG, make_label
from tools.contract import Reading, Source
from tools.view import Ledger

LAUNCH = "vllm serve m --max-num-seqs 4\n"


@pytest.fixture(scope="module")
def known() -> Knowledge:
    return load()


@pytest.fixture
def task(tmp_path: Path, known: Knowledge) -> Task:
    (tmp_path / "server.log").write_text(LOG)
    (tmp_path / "launch.txt").write_text(LAUNCH)
    (tmp_path / "report.md").write_text("slow first tokens\n")
    return Task(world=tmp_path, known=known)


@pytest.fixture
def model() -> Iterator[None]:
    yield
    model_arms.use("attach", None)
    model_arms.use("complete", None)


def test_rules_only_repeats_bit_for_bit_and_an_adversary_changes_nothing(task: Task) -> None:
    first = ARMS["rules-only"].answer(task)
    assert digest(first.diagnosis) == digest(ARMS["rules-only"].answer(task).diagnosis)
    assert digest(first.diagnosis) == digest(ARMS["scripted"].answer(task).diagnosis)
    assert first.again is not None
    assert len(first.again()) > 0
    assert first.first_s > 0


def test_closed_book_sees_words_alone(task: Task) -> None:
    seen = {item.source.ref for item in ARMS["closed-book"].answer(task).diagnosis.evidence if item.source.ref}
    assert seen <= {"report.md"}
    (task.world / "report.md").unlink()
    assert ARMS["closed-book"].answer(task).diagnosis.outcome == "undecidable"


def test_ablations_take_out_what_they_say(task: Task, known: Knowledge) -> None:
    whole = ARMS["rules-only"].answer(task).diagnosis
    less = ARMS["without:scheduling"].answer(task).diagnosis
    assert {r.layer for r in whole.rules} - {r.layer for r in less.rules} == {"scheduling"}
    assert len(whole.rules) > len(less.rules)
    assert not any(c.refuters_passed for c in ARMS["no-verify"].answer(task).diagnosis.causes)
    assert ARMS["no-knowledge"].answer(task).diagnosis.actions == []
    assert any(known.rules[r.id].refuted_by for r in whole.rules)


def test_the_loudest_gauge_names_its_cause(known: Knowledge) -> None:
    ledger = Ledger(known)
    assert loudest(ledger) == ("", 1.0)
    for fact, value in (("kv.usage.max", 0.95), ("queue.waiting.max", 98.0)):
        ledger.add(Reading(fact=fact, value=value, source=Source(kind="file", ref="m")))
    assert loudest(ledger) == ("overload", pytest.approx(9.8))


def test_majority_learns_from_the_dev_half_only(known: Knowledge) -> None:
    labels = [
        make_label("case-0001"),
        make_label("case-0002", cause_families=["kv_cache_exhausted"], split="holdout"),
        make_label("case-0003", cause_families=["kv_cache_exhausted"], split="holdout"),
    ]
    said = ARMS["majority"].answer(Task(world=Path("none"), known=known, labels=labels)).diagnosis
    assert [c.family for c in said.causes] == ["sequence_limit"]


def test_adversary_misbehaves_in_every_way() -> None:
    adversary = Adversary()
    given = [adversary.order(["a", "b"], []) for _ in range(4)]
    assert given == [["b", "a"], ["a", "b", "a", "b"], ["E999", "rm -rf /", "b"], []]
    with pytest.raises(TimeoutError):
        adversary.order(["a"], [])


def test_a_bare_model_may_only_name_what_is_on_the_list(task: Task, model: None) -> None:
    prompts: list[str] = []

    def complete(prompt: str, schema: dict[str, Any]) -> tuple[dict[str, Any], int]:
        prompts.append(prompt)
        assert "sequence_limit" in schema["properties"]["family"]["enum"]
        return {"outcome": "incident", "family": "gremlins", "confidence": 0.9}, 120

    model_arms.use("complete", complete)
    answer = ARMS["bare-model"].answer(task)
    assert answer.diagnosis.causes == []
    assert answer.model_tokens == 120
    assert "max-num-seqs" in prompts[0]
    ARMS["closed-book-model"].answer(task)
    assert "max-num-seqs" not in prompts[1]
    assert "slow first tokens" in prompts[1]


def test_a_model_arm_without_a_model_is_an_error_not_a_copy_of_rules_only(task: Task, model: None) -> None:
    model_arms.use("attach", lambda env: None)
    with pytest.raises(ArmError, match="INFERDX_MODEL"):
        ARMS["model"].answer(task)
    hung: list[Env] = []
    model_arms.use("attach", lambda env: hung.append(env) or env)
    assert digest(ARMS["model"].answer(task).diagnosis) == digest(ARMS["rules-only"].answer(task).diagnosis)
    assert len(hung) == 1
