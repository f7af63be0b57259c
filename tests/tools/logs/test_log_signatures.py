"""Each signature reads the line it is made for, and the engine around them keeps its promises."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from knowledge.loader import load
from knowledge.schema import FactDef, Knowledge, Signature, Text
from tools.logs.prefix import parse
from tools.logs.signatures import Matcher, fold, negation

FILES = ("vllm", "sglang", "system", "proxy", "frontend", "tgi")
LINES: list[list[Any]] = yaml.safe_load((Path(__file__).parent / "lines.yaml").read_text(encoding="utf-8"))
KNOWN = load()
MATCHER = Matcher(KNOWN)


@pytest.mark.parametrize(("name", "value", "line"), LINES, ids=[f"{i}-{item[0]}" for i, item in enumerate(LINES)])
def test_signature_reads_its_line(name: str, value: Any, line: str) -> None:
    text = parse(line).text
    hits = {hit.signature.id: hit.value for hit in MATCHER.hits(text, MATCHER.candidates(fold(text)))}
    assert name in hits, sorted(hits)
    assert hits[name] == (pytest.approx(value) if isinstance(value, float) else value)


@pytest.mark.parametrize(
    ("line", "fires"),
    [
        ("Watchdog timeout (self.watchdog_timeout=300)", True),
        ("NCCL watchdog timeout of the process group is 600 s", False),
        ("process group watchdog timeout: rank 3", False),
    ],
)
def test_the_watchdog_of_a_process_group_is_not_that_of_the_scheduler(line: str, fires: bool) -> None:
    ids = {hit.signature.id for hit in MATCHER.hits(line, MATCHER.candidates(fold(line)))}
    assert ("sglang.watchdog" in ids) is fires


def test_every_log_signature_has_a_line() -> None:
    ours = {name for name in KNOWN.signatures if name.partition(".")[0] in FILES}
    assert ours - {item[0] for item in LINES} == set()


def test_signatures_are_well_formed() -> None:
    for signature in KNOWN.signatures.values():
        if signature.id.partition(".")[0] not in FILES:
            continue
        pattern = re.compile(signature.pattern)
        assert not signature.group or signature.group in pattern.groupindex, signature.id
        assert signature.need and all(need == need.lower() for need in signature.need), signature.id
        assert signature.fact in KNOWN.facts, signature.id
        assert signature.cites, signature.id
        assert not re.search(r"[^\\]\.\*|[^\\]\.\+(?!\?)", signature.pattern), f"{signature.id}: unbounded"


def _known(*signatures: Signature, kind: Any = "bool") -> Knowledge:
    facts = {s.fact: FactDef(name=s.fact, unit="", type=kind, means=Text(en="x"), combine="max") for s in signatures}
    return Knowledge(
        version="t", facts=facts, rules={}, families={}, causes={}, signatures={s.id: s for s in signatures}, pages={}
    )


def test_needle_is_found_inside_a_longer_word_and_across_digits() -> None:
    signature = Signature(id="a", fact="log.x", pattern=r"QuantEmulation", need=["quantemulation"])
    digits = Signature(id="b", fact="log.y", pattern=r"NCCL_P2P_DISABLE", need=["nccl_p2p_disable"])
    matcher = Matcher(_known(signature, digits))
    for text in ("UsingNvfp4QuantEmulationTriton", "NCCL_P2P_DISABLE set"):
        assert list(matcher.hits(text, matcher.candidates(fold(text)))), text
    assert matcher.candidates(fold("nothing of that kind here")) == ()


def test_a_broken_pattern_is_named_and_harmless() -> None:
    matcher = Matcher(_known(Signature(id="bad", fact="log.x", pattern="(", need=["word"])))
    assert list(matcher.hits("a word", matcher.candidates("a word"))) == []
    assert matcher.problems and matcher.problems[0].startswith("bad:")


def test_negation_flips_only_its_own_clause() -> None:
    text = "no errors at all, but the worker died"
    at = text.index("worker died")
    assert not negation(text, at, at + 11)
    text = "there were never any preemptions"
    at = text.index("preemptions")
    assert negation(text, at, at + 11)
    text = "日志里没有抢占"
    assert negation(text, text.index("抢占"), len(text))
    signature = Signature(
        id="p", fact="log.x", pattern="preempt\\w+", need=["preempt"], where=["report"], negatable=True
    )
    matcher = Matcher(_known(signature), where="report")
    first, second = matcher.scan("We saw preemptions. There was no preemption today.")
    assert (first.value, second.value, second.negated) == (True, False, True)


def test_level_keeps_weaker_lines_out() -> None:
    signature = Signature(id="e", fact="log.x", pattern="boom", need=["boom"], level="error")
    matcher = Matcher(_known(signature))
    assert list(matcher.hits("boom", (0,), level="info")) == []
    assert list(matcher.hits("boom", (0,), level="critical"))
    assert list(matcher.hits("boom", (0,), level=""))
