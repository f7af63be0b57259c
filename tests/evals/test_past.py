"""The journal and the nearest past incidents."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent import past
from agent.diagnosis import Cause, Diagnosis, Provenance, RuleResult
from tools.contract import Source
from tools.view import Evidence


def diagnosis(*families: str, rules: tuple[str, ...] = (), facts: tuple[str, ...] = ()) -> Diagnosis:
    evidence = [
        Evidence(id=f"E{i}", fact=f, value=True, source=Source(kind="file", ref="a")) for i, f in enumerate(facts, 1)
    ]
    causes = [
        Cause(family=f, layer="memory", title=f, confidence=0.7, band="likely", evidence=[], rules=[]) for f in families
    ]
    fired = [RuleResult(id=r, family="", state="fired", evidence=[e.id for e in evidence]) for r in rules]
    return Diagnosis(
        outcome="incident", headline="", causes=causes, chain=[], layers=[], actions=[], probes=[], evidence=evidence,
        rules=fired, provenance=Provenance(inferdx="", knowledge=""),
    )  # fmt: skip


def test_nearest_puts_the_same_cause_first_and_leaves_strangers_out() -> None:
    seen = diagnosis("kv_cache_exhausted", rules=("MEM-1",), facts=("kv.full",))
    entries = [
        past.entry_of(seen, "a", "same"),
        past.entry_of(diagnosis("kv_cache_exhausted", rules=("MEM-9",), facts=("other",)), "b", "same family"),
        past.entry_of(diagnosis("gpu_fault", rules=("HW-1",), facts=("xid",)), "c", "stranger"),
    ]
    found = past.nearest(seen, entries)
    assert [p.id for p in found] == ["a", "b"]
    assert found[0].similarity == 1.0
    assert past.nearest(seen, entries) == found
    assert past.nearest(diagnosis("retry_storm"), entries) == []
    assert past.nearest(seen, []) == []


def test_a_persons_family_outranks_ours() -> None:
    entry = past.entry_of(diagnosis("overload"), "a", "line", families=["retry_storm"])
    assert entry.families == ["retry_storm"]
    assert "family:overload" not in entry.features


def test_a_broken_line_costs_one_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    past.append(past.Entry(id="a", line="first"), path)
    with path.open("ab") as sink:
        sink.write(b'{"id": 3}\n\xff\xfe\n')
    past.append(past.Entry(id="a", line="later"), path)
    entries, problems = past.read([path])
    assert [e.line for e in entries] == ["later"]
    assert len(problems) == 2
    assert all("skipped" in p for p in problems)


def test_recall_reads_this_users_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERDX_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    now = diagnosis("kv_cache_exhausted", rules=("MEM-1",))
    assert past.recall(now).past == []
    past.append(past.entry_of(now, "a", "line"))
    assert [p.line for p in past.recall(now).past] == ["line"]
