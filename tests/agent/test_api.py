"""The Python API: files, folders and text in, one typed object out; nothing printed, nothing raised for bad content."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest
from jsonschema import Draft202012Validator

import agent
from agent import Diagnosis, diagnose, diagnose_async
from agent.diagnosis import schema

TEXT = "vLLM 0.10.0 on one H100, 64 users: TTFT p99 is 30 s, 56 requests waiting, KV cache usage 31 %."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "report.md").write_text(TEXT)
    (tmp_path / "launch.txt").write_text(
        "vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 8 --enforce-eager\n"
    )
    return tmp_path


def test_a_folder_as_path_or_text_gives_the_same_answer(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    one, two = diagnose(folder), diagnose(str(folder))
    assert isinstance(one, Diagnosis)
    assert one.to_json(stable=True) == two.to_json(stable=True)
    assert capfd.readouterr() == ("", "")


def test_pasted_text(folder: Path) -> None:
    answer = diagnose(text=TEXT)
    assert answer.evidence and {e.source.ref for e in answer.evidence if e.source.kind == "words"} <= {"pasted.md"}


def test_the_answer_conforms_to_the_published_schema(folder: Path) -> None:
    Draft202012Validator(schema()).validate(json.loads(diagnose(folder).to_json()))


def test_slo_baseline_and_language_arrive(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    good = tmp_path_factory.mktemp("good")
    (good / "report.md").write_text("vLLM 0.10.0: TTFT p99 is 0.3 s.")
    answer = diagnose(folder, slo={"ttft_p99": 2.0}, baseline=good, lang="zh")
    assert answer.lang == "zh" and any("\u4e00" <= c <= "\u9fff" for c in answer.headline)


def test_bad_content_is_a_problem_and_bad_arguments_raise(tmp_path: Path) -> None:
    answer = diagnose(tmp_path / "none.log")
    assert answer.outcome == "undecidable" and answer.problems[0].what and answer.exit_code() == 2
    with pytest.raises(ValueError, match="cannot read time"):
        diagnose(prometheus="http://127.0.0.1:9", start="yesterday")
    with pytest.raises(ValueError, match="nothing to diagnose"):
        diagnose()


def test_async_runs_beside_others_and_gives_the_same(folder: Path) -> None:
    async def both() -> list[Diagnosis]:
        return list(await asyncio.gather(diagnose_async(folder), diagnose_async(folder, lang="en")))

    one, two = asyncio.run(both())
    assert one.to_json(stable=True) == two.to_json(stable=True) == diagnose(folder).to_json(stable=True)


def test_async_takes_what_sync_takes() -> None:
    assert inspect.iscoroutinefunction(diagnose_async)
    assert inspect.signature(diagnose_async).parameters == inspect.signature(diagnose).parameters
    assert get_type_hints(diagnose)["return"] is Diagnosis


def test_a_notebook_shows_the_report_and_log_text_cannot_link(folder: Path) -> None:
    (folder / "server.log").write_text("ERROR 01-01 10:00:00 [x](http://evil.example) <script>alert(1)</script>\n")
    shown = diagnose(folder)._repr_markdown_()
    assert shown.startswith("## ") and "<script>" not in shown and "](http" not in shown


def test_import_is_light() -> None:
    code = "import sys, agent; print([m for m in ('agent.api','msgspec','yaml','httpx','langgraph','openai') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(agent.__file__).parents[1]
    )
    assert done.stdout.strip() == "[]"


def test_names() -> None:
    assert set(agent.__all__) == {"Diagnosis", "diagnose", "diagnose_async"}
    with pytest.raises(AttributeError):
        _ = agent.nothing


def test_the_page_names_every_parameter_and_field_and_its_code_parses() -> None:
    import ast
    import re

    page = (Path(agent.__file__).parents[1] / "docs" / "python-api.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"`(\w+)`", page))
    assert set(inspect.signature(diagnose).parameters) <= shown
    assert set(Diagnosis.__struct_fields__) - {"narrative", "past", "lang"} <= shown
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 4 and all(ast.parse(block) for block in blocks)
