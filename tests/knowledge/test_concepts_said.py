"""Each concept's own sentences state it and its look-alikes do not: ``concepts/*.yaml`` beside this file."""

from __future__ import annotations

from pathlib import Path

import pytest

from knowledge import load
from knowledge.loader import read_yaml
from tools.report.concepts import match

FILES = sorted((Path(__file__).parent / "concepts").glob("*.yaml"))
SAID = [
    pytest.param(concept, sentence, kind == "say", id=f"{concept}-{kind}-{number}")
    for path in FILES
    for concept, kinds in read_yaml(path).items()
    for kind, sentences in kinds.items()
    for number, sentence in enumerate(sentences)
]


@pytest.mark.parametrize(("concept", "sentence", "states"), SAID)
def test_a_sentence_states_the_concept_or_only_looks_like_it(concept: str, sentence: str, states: bool) -> None:
    assert concept in load().facts
    found = {r.fact for r in match("report.md", [(1, sentence)])}
    assert (concept in found) is states, sentence
