"""The linter: the shipped knowledge is clean, and each kind of mistake gives its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.chain import SYMPTOMS as CHAIN_SYMPTOMS
from agent.knowledge_checks import lint_all
from knowledge.lint import lint_book
from knowledge.lint_base import read_book
from knowledge.lint_rules import SYMPTOMS
from knowledge.loader import ROOT

GOOD_RULE: dict[str, Any] = {
    "id": "MEM-test", "family": "kv_cache_exhausted", "title": {"en": "t", "zh": "题"},
    "mechanism": {"en": "m", "zh": "理"}, "when": {"all": ["kv.usage.max >= 0.9"]}, "cites": ["S0"],
}  # fmt: skip
FIXTURES = [
    {"name": "fires", "expect": "fired", "facts": {"kv.usage.max": 0.9}},
    {"name": "clear", "expect": "clear", "facts": {"kv.usage.max": 0.8}},
    {"name": "missing", "expect": "missing_input", "facts": {}},
]


SHIPPED = read_book([ROOT])


@pytest.fixture(scope="module")
def shipped_lines() -> set[str]:
    return {finding.line() for finding in lint_book(read_book([], over=SHIPPED))}


def _site(folder: Path, *, rule: dict[str, Any] | None = None, fixtures: Any = FIXTURES, **files: str) -> Path:
    if rule is not None:
        path = folder / "rules" / "memory" / f"{rule['id']}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(rule, allow_unicode=True), encoding="utf-8")
        beside = folder / "fixtures" / f"{rule['id']}.yaml"
        beside.parent.mkdir(exist_ok=True)
        beside.write_text(yaml.safe_dump(fixtures), encoding="utf-8")
    for name, text in files.items():
        path = folder / name / "one.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def _new(folder: Path, shipped: set[str]) -> list[str]:
    return [line for line in (f.line() for f in lint_book(read_book([folder], over=SHIPPED))) if line not in shipped]


def test_the_shipped_knowledge_has_no_findings() -> None:
    assert [finding.line() for finding in lint_all()] == []


def test_symptoms_are_those_of_the_chain() -> None:
    assert frozenset(CHAIN_SYMPTOMS) == SYMPTOMS


def test_a_good_rule_of_a_site_gives_no_finding(tmp_path: Path, shipped_lines: set[str]) -> None:
    assert _new(_site(tmp_path, rule=GOOD_RULE), shipped_lines) == []


RULE_MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"when": "kv.usage.maxx >= 0.9"}, "did you mean kv.usage.max?"),
    ({"when": "kv usage max over 0.9"}, "cannot read condition"),
    ({"when": "kv.usage.max >= 90"}, "a fraction lies between 0 and 1"),
    ({"when": "kv.usage.max >= high"}, "is no number"),
    ({"when": "kv.usage.max"}, "a measure is read as true or false"),
    ({"when": "load.present >= 1"}, "bool has no order"),
    ({"when": "load.present == word"}, "true or false is compared"),
    ({"when": "kv.usage.max ~ full"}, "a pattern is searched in a number"),
    ({"when": {"all": []}}, "the condition is empty"),
    ({"when": "kv.usage.max >= $queue.waiting.max"}, "is compared with requests"),
    ({"supports": [{"if": "no.such.fact", "says": {"en": "a", "zh": "b"}}]}, "support 1: unknown fact no.such.fact"),
    ({"refuted_by": [{"if": "no.such.fact", "says": {"en": "a", "zh": "b"}}]}, "refuter 1: unknown fact"),
    ({"family": "kv_cache_exausted"}, "did you mean kv_cache_exhausted?"),
    ({"cites": []}, "no citation"),
    ({"title": {"en": "t"}}, "no Chinese"),
    ({"supports": [{"if": "load.present", "says": "plain words"}]}, "no Chinese for 'plain words'"),
    ({"versions": {"vllm": "0.8 to 0.11"}}, "cannot read version range"),
    ({"versions": {"vlm": ">=0.8"}}, "did you mean vllm?"),
    ({"driven_by": ["no_such"]}, "driven_by: unknown cause no_such"),
    ({"leads_to": ["slowness"]}, "no cause and no symptom"),
    ({"leads_to": ["kv_cache_exhausted"]}, "from the family to itself"),
    ({"explains_away": ["no_such"]}, "explains_away: unknown cause"),
    ({"family": "", "outcome": "incident"}, "names no cause family"),
    ({"unknown_key": 1}, "unknown_key"),
    (
        {"look_alikes": [{"family": "no_such", "separated_by": "load.present", "says": {"en": "a", "zh": "b"}}]},
        "look-alike: unknown cause no_such",
    ),
    ({"refuted_by": [{"if": "load.present", "says": {"en": "a", "zh": "b"}, "probe": "none-such"}]}, "unknown probe"),
]  # fmt: skip


@pytest.fixture(scope="module")
def mistaken_lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """One site with every mistaken rule, under an id of its own."""
    folder = tmp_path_factory.mktemp("mistakes")
    for number, (change, _) in enumerate(RULE_MISTAKES):
        _site(folder, rule={**GOOD_RULE, "id": f"MEM-test{number:02d}", **change})
    return [finding.line() for finding in lint_book(read_book([folder], over=SHIPPED))]


@pytest.mark.parametrize("number", range(len(RULE_MISTAKES)), ids=lambda n: RULE_MISTAKES[n][1])
def test_each_mistake_of_a_rule_has_its_line(mistaken_lines: list[str], number: int) -> None:
    mine = [line for line in mistaken_lines if f"MEM-test{number:02d}" in line]
    assert any(RULE_MISTAKES[number][1] in line for line in mine), mine


def test_a_wrong_prefix_and_a_wrong_file_name(tmp_path: Path, shipped_lines: set[str]) -> None:
    lines = _new(_site(tmp_path, rule={**GOOD_RULE, "id": "KV-test"}), shipped_lines)
    assert any("does not begin with MEM-" in line for line in lines)
    (tmp_path / "rules" / "memory" / "KV-test.yaml").rename(tmp_path / "rules" / "memory" / "other.yaml")
    assert any("the file has another name" in line for line in _new(tmp_path, shipped_lines))


@pytest.mark.parametrize(
    ("fixtures", "word"),
    [
        ([], "no fixture for fired, clear, missing_input"),
        (FIXTURES[:1], "no fixture for clear, missing_input"),
        ([*FIXTURES, FIXTURES[0]], "two fixtures are called 'fires'"),
        ([*FIXTURES, {"name": "x", "expect": "clear", "facts": {"kv.usage.maxx": 1}}], "unknown fact kv.usage.maxx"),
        ([*FIXTURES, {"name": "x", "expect": "clear", "facts": {"kv.usage.max": "much"}}], "is a number, not 'much'"),
        ([{"name": "x", "expect": "burning", "facts": {}}], "burning"),
    ],
)
def test_each_mistake_of_a_fixture_has_its_line(
    tmp_path: Path, shipped_lines: set[str], fixtures: Any, word: str
) -> None:
    lines = _new(_site(tmp_path, rule=GOOD_RULE, fixtures=fixtures), shipped_lines)
    assert any(word in line for line in lines), lines


ACTION = "{do: {en: a, zh: b}, gain: {en: a, zh: b}, cost: {en: a, zh: b}"


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({"signatures": "- {id: s.x, fact: log.oom, pattern: 'a(b'}"}, "does not compile"),
        ({"signatures": "- {id: s.x, fact: log.oomm, pattern: 'ab', cites: [c]}"}, "did you mean log.oom?"),
        ({"signatures": "- {id: s.x, fact: log.oom, pattern: '(a+)+b', cites: [c]}"}, "ends in a repetition"),
        ({"signatures": "- {id: s.x, fact: log.oom, pattern: 'a', group: n, cites: [c]}"}, "no group named n"),
        ({"signatures": "- {id: s.x, fact: log.oom, pattern: 'a*', cites: [c]}"}, "matches the empty text"),
        ({"signatures": "- {id: s.x, fact: log.oom, pattern: 'a', need: [OOM], cites: [c]}"}, "not lower-case"),
        ({"signatures": "- {id: s.x, fact: log.oom, pattern: 'a', versions: {vllm: 'new'}, cites: [c]}"}, "version range"),
        ({"facts": "- {name: Kv.Usage, unit: s, means: {en: a, zh: b}, source: t}"}, "not a dotted lower-case name"),
        ({"facts": "- {name: kv.x, unit: s, means: {en: a, zh: b}}"}, "no source"),
        ({"pages": "- {id: p, title: {en: a, zh: b}, body: {en: a, zh: b}}"}, "no citation"),
        ({"pages": "- {id: p, title: {en: a, zh: b}, body: {en: '`kv.usage.maxx`', zh: b}}"}, "kv.usage.maxx"),
        ({"facts": "- {name: kv.x\n  unit: ["}, "mend the YAML"),
        ({"facts": "- {name: kv.y, unit: s, means: {en: a, zh: b}, source: t}\n" * 2}, "the id stands in"),
        (
            {"families": f"id: overload\ntitle: {{en: a, zh: b}}\nexplain: {{en: a, zh: b}}\nactions: [{ACTION}}}]"},
            "expect names no fact",
        ),
        (
            {"families": "id: overload\ntitle: {en: a, zh: b}\nexplain: {en: a, zh: b}\nactions:\n"
             f"  - {ACTION}, expect: kv.usage.max falls, flag: max_num_seqs, direction: raise}}\n"
             f"  - {ACTION}, expect: kv.usage.max rises, flag: max_num_seqs, direction: lower}}"},
            "advice to raise and to lower max_num_seqs",
        ),
        (
            {"families": "id: overload\ntitle: {en: a, zh: b}\nexplain: {en: a, zh: b}\nprobes:\n"
             "  - {id: p, ask: {en: a, zh: b}, command: c, kind: control_run}"},
            "a control run without change, keep, read",
        ),
        ({"families": "id: no_cause\ntitle: {en: a, zh: b}\nexplain: {en: a, zh: b}"}, "a card for no cause"),
        (
            {"families": "id: kv_cache_exhausted\ntitle: {en: a, zh: b}\nexplain: {en: a, zh: b}\nleads_to: [unbounded_output]"
             "\ndriven_by: [unbounded_output]"},
            "kv_cache_exhausted drives unbounded_output",
        ),
    ],
)  # fmt: skip
def test_each_mistake_of_other_records_has_its_line(
    tmp_path: Path, shipped_lines: set[str], files: dict[str, str], word: str
) -> None:
    lines = _new(_site(tmp_path, **files), shipped_lines)
    assert any(word in line for line in lines), lines


def test_flags_that_no_engine_has_and_contradictory_conditions(tmp_path: Path) -> None:
    action = {
        "do": {"en": "a", "zh": "b"}, "gain": {"en": "a", "zh": "b"}, "cost": {"en": "a", "zh": "b"},
        "expect": "kv.usage.max falls", "flag": "metrics_portt", "direction": "set",
    }  # fmt: skip
    late = {**action, "flag": "swap_space", "versions": {"vllm": ">=0.20"}}
    rule = {**GOOD_RULE, "actions": [action, late], "when": {"all": ["kv.usage.max >= 0.9", "kv.usage.max < 0.5"]}}
    lines = [finding.line() for finding in lint_all([_site(tmp_path, rule=rule)])]
    assert any("no engine has --metrics_portt" in line for line in lines)
    assert any("vllm has no --swap_space in >=0.20" in line for line in lines)
    assert any("no facts were found that make it fire" in line for line in lines)
    assert any("fixture 'fires' expects fired" in line for line in lines)


def test_a_broken_file_does_not_hide_the_rest(tmp_path: Path) -> None:
    _site(tmp_path, rule=GOOD_RULE, facts="- [", pages="- 5")
    book = read_book([ROOT, tmp_path])
    assert "MEM-test" in book.rules
    assert len(book.findings) >= 2


def test_a_flag_is_not_offered_to_releases_that_lack_it(tmp_path: Path) -> None:
    action = {
        "do": {"en": "a", "zh": "b"}, "gain": {"en": "a", "zh": "b"}, "cost": {"en": "a", "zh": "b"},
        "expect": "kv.usage.max falls", "command": "--max-num-queued-reqs 100",
    }  # fmt: skip
    good = {**action, "versions": {"vllm": ">=0.29"}}
    gone = {**action, "command": "--swap-space 4", "versions": {"vllm": ">=0.9"}}
    rule = {**GOOD_RULE, "actions": [action, good, gone]}
    lines = [finding.line() for finding in lint_all([_site(tmp_path, rule=rule)], fixtures=False)]
    mine = [line for line in lines if "MEM-test" in line]
    assert len(mine) == 2
    assert "action 1: offers --max-num-queued-reqs to vLLM 0.8.0" in mine[0]
    assert "action 3: offers --swap-space to vLLM 0.18.0" in mine[1]
