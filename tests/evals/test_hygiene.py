"""Worlds must not tell; labels must agree."""

from __future__ import annotations

import pytest

from evals.hygiene import alias_faults, label_faults, leaks, mix, set_faults
from evals.schema import load_cases
from knowledge import Knowledge, load
from tests.evals.conftest import Writer, make_label


@pytest.fixture(scope="module")
def known() -> Knowledge:
    return load()


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("report.md", "we think kv_cache_exhausted is it", "cause family"),
        ("report.md", "the root cause was found", "root cause"),
        ("report.md", "根因是调度", "root cause"),
        ("report.md", "see https://github.com/vllm-project/vllm/issues/123", "thread"),
        ("report.md", "the fix was to raise it", "fix"),
        ("report.md", "also_accepted: x", "label"),
        ("oom.log", "nothing", "file name"),
        ("healthy_control.txt", "nothing", "file name"),
    ],
)
def test_give_aways_are_found(small_set: Writer, known: Knowledge, name: str, text: str, why: str) -> None:
    cases, labels = small_set([make_label("case-0001", decisive_files=[])], {name: text})
    found = leaks(load_cases(cases, labels)[0], known.causes)
    assert any(why in leak.why for leak in found), found


def test_engine_words_and_plain_words_are_no_give_away(small_set: Writer, known: Knowledge) -> None:
    text = "EngineCore died. See stack trace (above) for the root cause.\nprefix cache, overload of 3 %, fixed length\n"
    cases, labels = small_set([make_label("case-0001")], {"server.log": text})
    assert leaks(load_cases(cases, labels)[0], known.causes) == []


def test_held_out_words_are_not_repeated(small_set: Writer, known: Knowledge) -> None:
    cases, labels = small_set(
        [make_label("case-0001", split="holdout")], {"server.log": "the root cause: secret words"}
    )
    found = leaks(load_cases(cases, labels)[0], known.causes)
    assert found
    assert "secret" not in found[0].line()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"cause_families": ["no_such"]}, "closed list"),
        ({"layer": "memory"}, "layer"),
        ({"decoys": ["sequence_limit"]}, "both accepted and decoy"),
        ({"decisive_files": ["gone.txt"]}, "not in the world"),
        ({"n_snapshots": 3, "cause_families": []}, "without a cause family"),
        ({"chain": [("memory", "sequence_limit"), ("symptom", "ttft")]}, "not a pair"),
        ({"chain": [("scheduling", "sequence_limit"), ("symptom", "sad")]}, "no symptom"),
        ({"chain": [("scheduling", "overload"), ("symptom", "ttft")]}, "does not pass through"),
        ({"outcome": "undecidable", "acceptable_next_probes": []}, "without an accepted probe"),
    ],
)
def test_label_faults_are_named(small_set: Writer, known: Knowledge, changes: dict[str, object], told: str) -> None:
    cases, labels = small_set([make_label("case-0001", **changes)])
    case = load_cases(cases, labels)[0]
    assert any(told in fault for fault in label_faults(case.label, case, known)), label_faults(case.label, case, known)


def test_derived_cases_inherit() -> None:
    parent = make_label("case-0001", split="holdout")
    twin = make_label("case-0002", outcome="healthy", relation="healed_twin", derived_from="case-0001")
    faults = set_faults([parent, twin])
    assert any("split differs" in f for f in faults)
    assert any("origin differs" in f for f in faults)
    fine = make_label(
        "case-0002",
        outcome="healthy",
        relation="healed_twin",
        derived_from="case-0001",
        split="holdout",
        origin="case-0001",
    )
    assert set_faults([parent, fine]) == []


def test_no_name_belongs_to_two_families(known: Knowledge) -> None:
    assert alias_faults(known) == []


def test_mix_names_what_is_missing() -> None:
    found = mix([make_label("case-0001")])
    assert any("1 cases" in fault for fault in found.faults())
    assert any("healed twins" in fault for fault in found.faults())
