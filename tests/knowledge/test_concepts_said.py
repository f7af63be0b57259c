"""Each concept's own sentences state it and its look-alikes do not: ``concepts/*.yaml`` beside this file."""

from __future__ import annotations

from pathlib import Path

import pytest

from knowledge import load
from knowledge.loader import read_yaml
from tools.report.concepts import match

FILES = sorted((Path(__file__).parent / "concepts").glob("*.yaml"))
SAID = {concept: kinds for path in FILES for concept, kinds in read_yaml(path).items()}


def test_every_concept_of_words_has_sentences() -> None:
    words = {s.fact for s in load().signatures.values() if s.id.startswith("say.") and s.fact.startswith("concept.")}
    assert words <= set(SAID)


@pytest.mark.parametrize("concept", sorted(SAID))
def test_its_sentences_state_a_concept_and_its_look_alikes_do_not(concept: str) -> None:
    assert concept in load().facts
    kinds = SAID[concept]
    assert set(kinds) == {"say", "not"} and len(kinds["say"]) >= 4 and len(kinds["not"]) >= 4
    silent = [text for text in kinds["say"] if not match("report.md", [(1, text)], concept)]
    false = [text for text in kinds["not"] if match("report.md", [(1, text)], concept)]
    assert not silent and not false
