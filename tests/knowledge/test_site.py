"""Limits, thresholds and silenced rules of a site."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.investigate import make_env, site_knowledge
from agent.sources import Sources
from knowledge import Knowledge, load
from knowledge.lint import lint_book
from knowledge.lint_base import read_book
from knowledge.loader import ROOT, KnowledgeError
from knowledge.site import apply, read_site
from tools.contract import Context

RULE = "MEM-kv-full-and-waiting"
FACT = "kv.usage.while_waiting.p50"
SHIPPED = read_book([ROOT])


def _write(folder: Path, text: str) -> Path:
    (folder / "site.yaml").write_text(text, encoding="utf-8")
    return folder


def _own_rule(folder: Path) -> None:
    path = folder / "rules" / "memory" / f"{RULE}.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(
        f"id: {RULE}\nfamily: kv_cache_exhausted\ntitle: {{en: a, zh: b}}\nmechanism: {{en: a, zh: b}}\n"
        "when: kv.usage.max >= 0.5\ncites: [ours]\n",
        encoding="utf-8",
    )


def _known(folder: Path, text: str) -> Knowledge:
    return apply(load(), read_site([_write(folder, text)]))


def test_limits_reach_the_investigation_and_the_callers_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERDX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    site = tmp_path / "home" / ".config" / "inferdx" / "knowledge"
    site.mkdir(parents=True)
    _write(site, "slo: {ttft_p99: 2s, itl_p99: 80ms}")
    _own_rule(site)
    known = site_knowledge()
    assert known.rules[RULE].when == "kv.usage.max >= 0.5"
    env = make_env(Sources(), known=known, context=Context(slo={"ttft_p99": 0.5}))
    assert env.context.slo == {"ttft_p99": 0.5, "itl_p99": 0.08}


def test_a_threshold_replaces_the_number_of_one_rule(tmp_path: Path) -> None:
    shipped = load()
    changed = _known(tmp_path, f"thresholds: {{{RULE}: {{{FACT}: 0.97}}}}")
    assert f"{FACT} >= 0.97" in str(changed.rules[RULE].when)
    assert f"{FACT} >= 0.97" not in str(shipped.rules[RULE].when)
    assert changed.version != shipped.version


def test_a_silenced_rule_does_not_apply(tmp_path: Path) -> None:
    from agent.screen import screen
    from tools.view import Ledger

    known = _known(tmp_path, f"silence: [{RULE}]")
    states = {result.id: result.state for result in screen(known, Ledger(known))}
    assert states[RULE] == "not_applicable"
    assert states["MEM-kv-preempting"] == "missing_input"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("slo: {ttft_p99: soon}", "soon"),
        ("thresholds: {NO-RULE: {kv.usage.max: 1}}", "NO-RULE"),
        (f"thresholds: {{{RULE}: {{kv.nothing: 1}}}}", "kv.nothing"),
        ("silence: [NO-RULE]", "NO-RULE"),
        ("limits: {}", "limits"),
    ],
)
def test_a_bad_site_file_is_named_by_the_loader_and_the_linter(tmp_path: Path, text: str, word: str) -> None:
    with pytest.raises(KnowledgeError, match=word):
        _known(tmp_path, text)
    lines = [finding.line() for finding in lint_book(read_book([tmp_path], over=SHIPPED))]
    assert any(word in line for line in lines)
