"""Claims in a person's words: denied, asked and supposed ones leave no fact; spans are verbatim; patterns stay fast."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge import load
from knowledge.loader import ROOT, read_yaml
from tools.report.concepts import MAX_LINES, claims, compiled, match

OWN = {row["id"] for path in sorted((ROOT / "signatures").glob("report_*.yaml")) for row in read_yaml(path)}


def claimed(text: str) -> set[str]:
    return {r.fact for r in match("report.md", list(enumerate(text.splitlines(), 1)))}


def test_every_report_pattern_compiles_and_names_a_known_fact() -> None:
    good = {signature.id for signature, _ in claims() if compiled(signature.pattern, signature.case) is not None}
    assert len(OWN) > 300
    assert good >= OWN
    assert {signature.fact for signature, _ in claims()} <= set(load().facts)


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("The engine died with CUDA out of memory.", "concept.gpu_oom"),
        ("Requests are preempted all the time.", "concept.preemption"),
        ("We run in eager mode.", "concept.eager_mode"),
        ("GPU 3 shows thermal throttling.", "concept.thermal_throttle"),
        ("请求被抢占。", "concept.preemption"),
        ("高峰期显存不足。", "concept.gpu_oom"),
    ],
)
def test_a_claim_is_a_fact(said: str, fact: str) -> None:
    assert fact in claimed(said)


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("There is no CUDA out of memory.", "concept.gpu_oom"),
        ("We saw no preemptions at all.", "concept.preemption"),
        ("Requests are not preempted.", "concept.preemption"),
        ("We do not run in eager mode.", "concept.eager_mode"),
        ("There was never any thermal throttling.", "concept.thermal_throttle"),
        ("Could it be preemption?", "concept.preemption"),
        ("Is it running in eager mode?", "concept.eager_mode"),
        ("没有抢占。", "concept.preemption"),
        ("请求没有被抢占。", "concept.preemption"),
    ],
)
def test_what_is_denied_or_asked_is_no_fact(said: str, fact: str) -> None:
    assert fact not in claimed(said)


def test_a_denial_reaches_only_its_own_clause() -> None:
    assert "concept.preemption" in claimed("There is no error in the log, but requests are preempted every minute.")
    assert "concept.preemption" in claimed("No throttling. Requests are preempted every minute.")
    assert "concept.thermal_throttle" not in claimed("No thermal throttling. Requests are preempted every minute.")


def test_a_denied_mention_does_not_hide_a_later_claim() -> None:
    lines = "On Monday there were no preemptions.\nOn Tuesday requests are preempted constantly."
    found = {r.fact: r for r in match("r.md", list(enumerate(lines.splitlines(), 1)))}
    assert found["concept.preemption"].source.line == 2


def test_a_fact_is_claimed_once_at_its_first_mention() -> None:
    text = [(4, "Requests are preempted."), (9, "Requests are preempted again.")]
    found = [r for r in match("r.md", text) if r.fact == "concept.preemption"]
    assert [r.source.line for r in found] == [4]


WORDS = st.sampled_from(
    [
        "requests are preempted",
        "no",
        "not",
        "CUDA out of memory",
        "but",
        "eager mode",
        "?",
        ".",
        "。",
        ",",
        "if",
        "抢占",
    ]
)


@given(st.lists(st.one_of(WORDS, st.text(max_size=12)), max_size=25))
@settings(max_examples=60, deadline=None)
def test_a_span_stands_verbatim_in_its_line(words: list[str]) -> None:
    lines = list(enumerate(" ".join(words).split("\n"), 1))
    by_number = dict(lines)
    found = match("r.md", lines)
    for reading in found:
        assert reading.source.span
        assert reading.source.span in by_number[reading.source.line]
    assert len({r.fact for r in found}) == len(found)


def test_lines_beyond_the_limit_are_not_read() -> None:
    lines = [(n, "ok") for n in range(1, MAX_LINES + 1)]
    assert match("r.md", [*lines, (MAX_LINES + 1, "Requests are preempted.")]) == []


def _slow(text: str, limit: float) -> list[str]:
    """Patterns that take longer than ``limit`` CPU seconds on a text, each the better of two tries."""
    out = []
    for signature, _ in claims():
        pattern = compiled(signature.pattern, signature.case)
        assert pattern is not None
        taken = _seconds(pattern, text)
        if taken > limit and (again := min(taken, _seconds(pattern, text))) > limit:
            out.append(f"{signature.id}: {again * 1000:.0f} ms")
    return out


def _seconds(pattern: re.Pattern[str], text: str) -> float:
    begin = time.process_time()
    pattern.search(text)
    return time.process_time() - begin


# One long word, blanks, words that start a pattern, and openings that many patterns wait after.
ADVERSARIAL = {
    "a": "a" * 20_000,
    "blanks": " " * 20_000,
    "digits": "9" * 20_000,
    "swap": "swap " * 4_000,
    "one": "one user single ",
    "with draft": "with speculative draft ",
    "dashes": "--",
    "显存": "显存",
    "numbers": "12.5 ms 7 % ",
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_no_pattern_is_slow_on_twenty_kilobytes(name: str) -> None:
    unit = ADVERSARIAL[name]
    assert _slow((unit * (20_000 // len(unit) + 1))[:20_000], 0.05) == []
