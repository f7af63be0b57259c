"""Reports: everything is there, and nothing of a held-out world."""

from __future__ import annotations

import re
from pathlib import Path

from evals import report
from evals.page import page
from evals.run import Plan, run
from evals.summary import compare, flips, summarise
from tests.evals.conftest import Writer, make_label


def _finished(small_set: Writer, tmp_path: Path):  # type: ignore[no-untyped-def]
    labels = [
        make_label("case-0001"),
        make_label("case-0002", split="holdout"),
        make_label("case-0003", outcome="healthy"),
    ]
    cases, tree = small_set(labels, {"server.log": "secret words of a world\n"})
    return run(Plan(arms=["constant", "oracle"], jobs=1, cases=cases, labels=tree, folder=tmp_path / "r", quiet=True))


def test_markdown_and_page_hold_every_part(small_set: Writer, tmp_path: Path) -> None:
    done = _finished(small_set, tmp_path)
    summaries = [summarise(done, "constant"), summarise(done, "oracle")]
    comparisons = [compare(done, "constant", "oracle")]
    text = report.markdown(summaries[0], done) + report.arms_table(summaries, comparisons)
    html = page(summaries, comparisons, done)
    for part in ("By group", "By layer", "Reliability", "M12", "McNemar"):
        assert part in text, part
        assert part in html, part
    assert html.count("<svg") == 4
    assert "<script" not in html
    assert not re.search(r"(src|href)=", html)
    assert "case-0001" in text


def test_held_out_cases_appear_by_id_alone(small_set: Writer, tmp_path: Path) -> None:
    done = _finished(small_set, tmp_path)
    summary = summarise(done, "constant")
    text = report.markdown(summary, done) + page([summary], [], done)
    assert "secret" not in text
    rows = [line for line in text.splitlines() if "case-0002" in line and "|" in line]
    assert rows == []
    assert "Held out (ids only): case-0002" in text
    assert "secret" not in (done.folder / "rows.jsonl").read_text()


def test_stable_part_has_no_clock(small_set: Writer, tmp_path: Path) -> None:
    done = _finished(small_set, tmp_path)
    text = report.markdown(summarise(done, "constant"), done)
    for row in done.rows:
        row.seconds = row.cpu_s = 99.0
    assert report.markdown(summarise(done, "constant"), done) == text


def test_flips() -> None:
    was, now = {"a": True, "b": False, "c": True}, {"a": False, "b": True, "c": True, "d": False}
    assert flips(was, now) == {"now right": ["b"], "now wrong": ["a"]}
