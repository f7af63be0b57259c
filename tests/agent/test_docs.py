"""The generated manual: up to date, complete, without dead links."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from agent.docs import SYMPTOM_NAMES, decision_rows, pages, stale, symptoms_of
from agent.readable import condition
from knowledge import load
from knowledge.lint_rules import SYMPTOMS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_files_in_docs_are_those_the_data_gives() -> None:
    assert stale(load(), DOCS) == [], "run inferdx docs"


def test_every_rule_fact_family_and_page_stands_in_the_manual() -> None:
    known = load()
    texts = pages(known)
    assert [key for key in known.rules if f"### {key}\n" not in texts["rules.md"]] == []
    assert [key for key in known.facts if f"| `{key}` |" not in texts["facts.md"]] == []
    assert [key for key in known.pages if f'<a id="{key}"></a>' not in texts["handbook.md"]] == []
    for key, cause in known.causes.items():
        assert f'<a id="{key}"></a>' in texts[f"families/{cause.layer}.md"]


def test_links_lead_somewhere() -> None:
    texts = pages(load())
    for name, text in texts.items():
        for target in re.findall(r"\]\(([^)#]+\.md)(?:#[^)]*)?\)", text):
            place = (Path(name).parent / target).as_posix().replace("families/../", "")
            assert place in texts, (name, target)


def test_every_cause_ends_in_a_symptom_and_the_table_has_every_incident_rule() -> None:
    known = load()
    assert frozenset(SYMPTOM_NAMES) == SYMPTOMS
    assert [key for key in known.causes if not symptoms_of(known, key)] == []
    named = " ".join(row[2] for row in decision_rows(known))
    missing = [key for key, rule in known.rules.items() if rule.outcome == "incident" and f"({key})" not in named]
    assert missing == []


def test_the_schema_file_is_a_schema() -> None:
    schema = json.loads(pages(load())["diagnosis.schema.json"])
    jsonschema.Draft202012Validator.check_schema(schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"outcome": "maybe"}, schema)


@pytest.mark.parametrize(
    ("cond", "text"),
    [
        ("kv.usage.max >= 0.9", "kv.usage.max ≥ 0.9"),
        ("load.present", "load.present"),
        ("load.present == false", "not load.present"),
        (["a.b > 1", {"any": ["c.d", {"not": "e.f == x"}]}], "a.b > 1 and (c.d or not e.f = x)"),
        ({"atleast": {"n": 2, "of": ["a.b", "c.d", "e.f"]}}, "at least 2 of (a.b, c.d, e.f)"),
        ("known(a.b)", "known(a.b)"),
        ("a.b >= 0.5*$c.d", "a.b ≥ 0.5*$c.d"),
    ],
)
def test_conditions_are_written_for_people(cond: object, text: str) -> None:
    assert condition(cond) == text
