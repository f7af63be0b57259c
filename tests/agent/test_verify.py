"""A reading or a citation that was tampered with is found; an honest answer recomputes whole."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from agent.diagnosis import Diagnosis
from agent.investigate import investigate, make_env
from agent.sources import Sources, gatherer
from agent.verify import bad_evidence, check, citations, recompute, same
from knowledge import load
from tests.agent.small_knowledge import knowledge
from tools.contract import Context, Reading, Source
from tools.view import Evidence, Ledger

KNOWN = load()
WORLD = Path(__file__).parents[2] / "evals" / "cases" / "lab-001" / "world"


@pytest.fixture(scope="module")
def honest() -> tuple[Diagnosis, list[Reading]]:
    """The answer of one recorded world, and its readings read once more."""
    sources = Sources(paths=[WORLD])
    answer, _ = investigate(make_env(sources, known=KNOWN))
    return answer, gatherer(sources, Context())()[0]


def copy(answer: Diagnosis) -> Diagnosis:
    return msgspec.convert(msgspec.to_builtins(answer), Diagnosis)


def cited_number(answer: Diagnosis) -> tuple[int, Evidence]:
    """Place and evidence of a cited number that came from a file."""
    ids = {i for _, i in citations(answer)}
    return next(
        (n, e)
        for n, e in enumerate(answer.evidence)
        if e.id in ids and e.source.kind == "file" and isinstance(e.value, float) and e.value
    )


def test_an_honest_answer_recomputes(honest: tuple[Diagnosis, list[Reading]]) -> None:
    valid, total, failures = check(KNOWN, *honest)
    assert failures == []
    assert valid == total > 10


def test_a_changed_value_is_found(honest: tuple[Diagnosis, list[Reading]]) -> None:
    answer, again = copy(honest[0]), honest[1]
    at, item = cited_number(answer)
    answer.evidence[at] = structs.replace(item, value=item.value * 1.5)
    assert recompute(answer, again)[item.id] is False
    valid, total, failures = check(KNOWN, answer, again)
    assert valid < total
    assert any(item.id in line and "does not recompute" in line for line in failures)


@pytest.mark.parametrize("moved", [{"ref": "other.log"}, {"line": 999_999}])
def test_a_changed_place_is_found(honest: tuple[Diagnosis, list[Reading]], moved: dict[str, object]) -> None:
    answer, again = copy(honest[0]), honest[1]
    at, item = cited_number(answer)
    answer.evidence[at] = structs.replace(item, source=structs.replace(item.source, **moved))
    assert any(item.id in line for line in check(KNOWN, answer, again)[2])


def test_what_was_computed_from_a_changed_value_falls_with_it(honest: tuple[Diagnosis, list[Reading]]) -> None:
    answer, again = copy(honest[0]), honest[1]
    computed = next(
        e for e in answer.evidence if e.source.kind == "computed" and any(i[:1] == "E" for i in e.source.inputs)
    )
    root = next(i for i in computed.source.inputs if i[:1] == "E")
    at = next(n for n, e in enumerate(answer.evidence) if e.id == root)
    answer.evidence[at] = structs.replace(answer.evidence[at], value="tampered")
    fresh = recompute(answer, again)
    assert fresh[root] is False
    assert fresh[computed.id] is False


def test_an_invented_citation_is_found(honest: tuple[Diagnosis, list[Reading]]) -> None:
    answer = copy(honest[0])
    answer.causes[0].evidence.append("E99999")
    assert check(KNOWN, answer, honest[1])[2] == [f"{answer.causes[0].family}: E99999 does not exist"]


def test_evidence_that_failed_to_read_is_no_evidence(honest: tuple[Diagnosis, list[Reading]]) -> None:
    answer = copy(honest[0])
    at, item = cited_number(answer)
    answer.evidence[at] = structs.replace(item, status="no_data")
    assert any(item.id in line and "no_data" in line for line in check(KNOWN, answer, honest[1])[2])


def test_a_rule_said_to_have_fired_that_did_not_is_found(honest: tuple[Diagnosis, list[Reading]]) -> None:
    answer = copy(honest[0])
    clear = next(r for r in answer.rules if r.state == "clear")
    clear.state = "fired"
    assert check(KNOWN, answer, honest[1])[2] == [f"rule {clear.id}: its condition does not hold on the cited evidence"]


def test_every_part_of_the_answer_that_cites_is_checked(honest: tuple[Diagnosis, list[Reading]]) -> None:
    answer = copy(honest[0])
    answer.chain[0].evidence = ["E99991"]
    answer.layers[0].evidence = ["E99992"]
    answer.ruled_out[0].evidence = ["E99993"]
    lines = " ".join(check(KNOWN, answer, honest[1])[2])
    assert all(f"E9999{n} does not exist" in lines for n in (1, 2, 3))


@pytest.mark.parametrize(
    ("reading", "good"),
    [
        (Reading(fact="flag.n0", value=True, source=Source(kind="file", ref="a.log", line=3)), True),
        (Reading(fact="flag.n0", value=True, source=Source(kind="file")), False),
        (Reading(fact="flag.n0", value=True, source=Source(kind="words", ref="r.md")), False),
        (Reading(fact="flag.n0", value=True, source=Source(kind="words", ref="r.md", span="it hangs")), True),
        (Reading(fact="flag.n0", value=float("nan"), source=Source(kind="file", ref="a.log")), False),
        (Reading(fact="flag.n0", value=float("inf"), source=Source(kind="file", ref="a.log")), False),
        (Reading(fact="flag.n0", value=1.0, source=Source(kind="computed", inputs=("E77",))), False),
        (Reading(fact="flag.n0", value=1.0, source=Source(kind="computed", inputs=("some.fact",))), True),
    ],
)
def test_evidence_that_contradicts_itself(reading: Reading, good: bool) -> None:
    ledger = Ledger(knowledge())
    name = ledger.add(reading)
    assert bad_evidence(ledger) == ([] if good else [name])


def test_same_is_equal_up_to_rounding_but_not_across_types() -> None:
    assert same(0.1 + 0.2, 0.3)
    assert same(5, 5.0)
    assert not same(1.0, 1.001)
    assert not same(True, 1.01)
    assert not same("5", 5)
    assert not same(float("nan"), float("nan"))
