"""explain, rules, decision-table, lint-knowledge and docs from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent.cli import run
from knowledge import load
from knowledge.loader import read_yaml


def _run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = run(list(argv))
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["kv_cache_exhausted"], "Looks like"),
        (["cause", "kv cache exhausted"], "kv_cache_exhausted"),
        (["MEM-kv-preempting"], "Fires when: kv.usage.max ≥ 0.9 and preemptions.count > 0"),
        (["fact", "kv.usage.max"], "Cannot tell: "),
        (["loadtest"], "burst"),
        (["ten-rules"], "first token"),
        (["three-layers"], "py-spy"),
        (["tradeoffs"], "max_num_seqs"),
        (["tradeoffs", "max_num_batched_tokens"], "token_budget_too_small"),
        (["tradeoffs", "max_num_seqs", "--lang", "zh"], "权衡"),
        (["metric", "vllm:gpu_cache_usage_perc"], "Use instead: vllm:kv_cache_usage_perc"),
        (["metric", "vllm:cache_usage"], "No release has ever had this name"),
        (["metric", "num_preemptions_total"], "Cannot tell: "),
        (["flag", "max_num_partial_prefills"], "gone in 0.27.0"),
        (["flag", "max-num-seqs"], "Default "),
        (["flag", "VLLM_ATTENTION_BACKEND"], "vLLM releases"),
        (["flag", "sglang:mem-fraction-static"], "opposite"),
        (["vllm.kv_tokens"], "Pattern: "),
    ],
)
def test_things_are_explained_by_name(capsys: pytest.CaptureFixture[str], argv: list[str], word: str) -> None:
    status, out, err = _run(capsys, "explain", *argv)
    assert (status, err) == (0, "")
    assert word.lower() in out.lower()


def test_a_version_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = _run(capsys, "explain", "metric", "vllm:gpu_cache_usage_perc", "--engine-version", "0.20")
    assert "does not have it; there: vllm:kv_cache_usage_perc" in out
    _, out, _ = _run(capsys, "explain", "flag", "swap-space", "--engine-version", "0.20")
    assert "vllm 0.20: does not have it" in out


@pytest.mark.parametrize("kind", ["cause", "rule", "fact", "page"])
def test_all_records_of_a_kind_can_be_explained_in_both_languages(kind: str) -> None:
    from agent.explain import explain

    known = load()
    table = {"cause": known.causes, "rule": known.rules, "fact": known.facts, "page": known.pages}[kind]
    for name in table:
        for lang in ("en", "zh"):
            entries = explain(known, [kind, name], lang)
            assert [entry.id for entry in entries] == [name]
            assert entries[0].text.strip()


def test_a_misspelt_name_brings_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = _run(capsys, "explain", "kv_cache_exausted")
    assert (status, out) == (3, "")
    assert "did you mean kv_cache_exhausted" in err
    status, _, err = _run(capsys, "explain", "littles", "law")
    assert status == 3
    assert "--search 'littles law'" in err
    assert _run(capsys, "explain")[0] == 3


def test_search_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = _run(capsys, "explain", "--search", "waiting high kv low", "--json")
    hits = json.loads(out)
    assert status == 0
    assert "symptom-routing" in [hit["id"] for hit in hits]
    assert _run(capsys, "explain", "--search", "zzzxqy")[0] == 3
    status, out, _ = _run(capsys, "explain", "loadtest", "--json")
    assert json.loads(out)[0]["data"]["id"] == "loadtest"


def test_rules_are_listed_and_narrowed(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = _run(capsys, "rules")
    assert status == 0
    assert out.rstrip().endswith(f"{len(load().rules)} rules")
    status, out, _ = _run(capsys, "rules", "--family", "overload", "--json")
    assert {rule["family"] for rule in json.loads(out)} == {"overload"}
    assert _run(capsys, "rules", "--layer", "nowhere")[0] == 3


def test_the_decision_table_keeps_one_symptom(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = _run(capsys, "decision-table", "ttft")
    assert status == 0
    assert "sequence_limit (SCH-sequence-cap-binds)" in out
    assert "the server dies" not in out
    _, out, _ = _run(capsys, "decision-table", "--lang", "zh", "--json")
    assert {"symptom", "evidence", "cause", "another_cause_if", "do_first"} == set(json.loads(out)[0])


def test_a_new_rule_comes_with_fixtures_that_pass(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, _ = _run(
        capsys, "lint-knowledge", "--new-rule", "SCH-trial", "--family", "overload", "--into", str(tmp_path)
    )
    assert status == 0
    assert "SCH-trial.yaml" in out
    fixtures = read_yaml(tmp_path / "fixtures" / "SCH-trial.yaml")
    assert {item["expect"] for item in fixtures} == {"fired", "clear", "missing_input"}
    status, out, _ = _run(capsys, "lint-knowledge", "--knowledge", str(tmp_path))
    mine = [line for line in out.splitlines() if "SCH-trial" in line]
    assert status == 1
    assert any("no citation" in line for line in mine)
    assert any("the English text is empty" in line for line in mine)


def test_fixtures_are_refilled_and_hand_written_ones_stay(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _run(capsys, "lint-knowledge", "--new-rule", "SCH-trial", "--family", "overload", "--into", str(tmp_path))
    rule = tmp_path / "rules" / "scheduling" / "SCH-trial.yaml"
    rule.write_text(rule.read_text().replace("kv.usage.max >= 0.9", "queue.waiting.max > 7"), encoding="utf-8")
    fixtures = tmp_path / "fixtures" / "SCH-trial.yaml"
    lines = fixtures.read_text(encoding="utf-8")
    mine = '{"name": "seen on a Monday", "expect": "fired", "facts": {"queue.waiting.max": 80}}'
    fixtures.write_text(lines.replace("\n]", f",\n{mine}\n]"), encoding="utf-8")
    site = str(tmp_path)
    assert _run(capsys, "lint-knowledge", "--fixtures", "SCH-trial", "--knowledge", site)[0] == 1
    assert _run(capsys, "lint-knowledge", "--fill-fixtures", "SCH-trial", "--knowledge", site)[0] == 0
    names = [item["name"] for item in read_yaml(fixtures)]
    assert names[0] == "seen on a Monday"
    assert "clear by queue.waiting.max > 7" in names
    assert _run(capsys, "lint-knowledge", "--fixtures", "SCH-trial", "--knowledge", site)[0] == 0


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["--new-rule", "SCH-x"], "--family"),
        (["--new-rule", "SCH-x", "--family", "overlod"], "did you mean overload?"),
        (["--new-rule", "MEM-x", "--family", "overload"], "is called SCH-"),
        (["--new-rule", "SCH-queue-grows", "--family", "overload"], "exists (inferdx explain SCH-queue-grows)"),
        (["--fill-fixtures", "SCH-queue-grow"], "did you mean SCH-queue-grows?"),
        (["--knowledge", "no-such-folder"], "no such folder"),
    ],
)
def test_wrong_use_gives_one_line(capsys: pytest.CaptureFixture[str], argv: list[str], word: str) -> None:
    status, out, err = _run(capsys, "lint-knowledge", *argv)
    assert (status, out) == (3, "")
    assert word in err
    assert len(err.splitlines()) == 1


def test_docs_are_written_checked_and_found_stale(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = str(tmp_path / "docs")
    assert _run(capsys, "docs", "--check", "--out", folder)[0] == 1
    status, out, _ = _run(capsys, "docs", "--out", folder)
    assert status == 0
    assert "rules.md" in out
    assert _run(capsys, "docs", "--check", "--out", folder)[0] == 0
    (tmp_path / "docs" / "rules.md").write_text("edited", encoding="utf-8")
    status, out, _ = _run(capsys, "docs", "--check", "--out", folder)
    assert status == 1
    assert "rules.md: stale" in out
