"""A lexical check of the skill's description against prompts people type.

The prompts were written beside the description, so its words were known.

What it proves: the description holds the words of prompts that must load the skill more than those of near-misses, and
every near-miss has a reason that the skill's own text names. What it does not prove: that an agent's model loads the
skill. Only a run with that agent can.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from tests.skills.test_skill import split

_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a all an and any are as at be by can do every for from full has have how i if in is it its low me my no not of on "
        "or our out so someone the them these this to use used we what when which why with would you",
    )
)
_REASONS = {
    "training": "Training or fine-tuning", "prompt writing": "prompt writing", "model quality": "model quality",
    "evaluating answers": "evaluating answers", "hosted API": "hosted API", "installing": "Installing an engine",
    "no inference engine": "no inference engine",
}  # fmt: skip


def words(text: str) -> set[str]:
    found = re.findall(r"[a-z][a-z0-9]+", text.lower().replace("_", " "))
    return {w.removesuffix("s") if len(w) > 4 else w for w in found} - _COMMON


def prompts() -> tuple[list[str], list[dict[str, str]]]:
    data = yaml.safe_load((Path(__file__).parent / "triggers.yaml").read_text(encoding="utf-8"))
    return data["must"], data["near_miss"]


def test_twenty_of_each_and_none_twice() -> None:
    must, near = prompts()
    texts = [*must, *(row["text"] for row in near)]
    assert len(must) == len(near) == 20 and len(set(texts)) == 40


def test_every_prompt_that_must_load_shares_words_with_the_description() -> None:
    known = words(split()[0]["description"])
    weak = {text: words(text) & known for text in prompts()[0] if len(words(text) & known) < 2}
    assert not weak


def test_near_misses_share_fewer() -> None:
    known = words(split()[0]["description"])
    must, near = prompts()
    score_must = [len(words(text) & known) for text in must]
    score_near = [len(words(row["text"]) & known) for row in near]
    pairs = [(a > b) + 0.5 * (a == b) for a in score_must for b in score_near]
    assert sum(pairs) / len(pairs) > 0.85, "chance that a prompt which must load scores above a near-miss"


def test_every_near_miss_has_a_reason_that_the_skill_names() -> None:
    _, body = split()
    refuses = body.split("## When not to use")[1].split("\n## ")[0]
    for row in prompts()[1]:
        assert _REASONS[row["why"]] in refuses, row
