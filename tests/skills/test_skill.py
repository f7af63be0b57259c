"""The skill by the open Agent Skills format, by what marketplace scanners look for, and against the data it comes from."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.skill_docs import FOLDER, generate, stale, write
from agent.version import VERSION
from knowledge import load
from knowledge.schema import LAYERS

REPO = Path(__file__).resolve().parents[2]
SKILL = REPO / "skills" / "inferdx"
SCRIPTS = sorted(p for p in (SKILL / "scripts").glob("*.py") if not p.name.startswith("_"))


def split() -> tuple[dict[str, Any], str]:
    text = (SKILL / "SKILL.md").read_text(encoding="utf-8")
    assert text.startswith("---\n")
    head, body = text[4:].split("\n---\n", 1)
    return yaml.safe_load(head), body


def test_frontmatter_keeps_the_limits_of_the_format() -> None:
    head, _ = split()
    assert set(head) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert (
        head["name"] == SKILL.name and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", head["name"]) and len(head["name"]) <= 64
    )
    assert 0 < len(head["description"]) <= 1024 and "<" not in head["description"]
    assert len(head["compatibility"]) <= 500
    assert all(isinstance(k, str) and isinstance(v, str) for k, v in head["metadata"].items())
    assert head["metadata"]["version"] == VERSION


def test_body_is_short_and_says_what_it_must() -> None:
    _, body = split()
    assert len(body.splitlines()) < 500 and len(body) / 3.5 < 5000
    for title in ("When to use", "When not to use", "The loop", "What to answer", "Stop when", "Never", "Offline"):
        assert f"\n## {title}\n" in body
    loop = body.split("## The loop")[1].split("\n## ")[0]
    assert re.findall(r"^(\d)\. ", loop, re.MULTILINE) == list("123456")


def test_every_file_named_exists_and_every_reference_is_named() -> None:
    _, body = split()
    named = set(re.findall(r"\]\((references/[\w.-]+)\)", body)) | set(re.findall(r"scripts/[\w.-]+\.py", body))
    assert named and all((SKILL / name).is_file() for name in named)
    there = {f"references/{p.name}" for p in (SKILL / "references").iterdir()}
    assert there == {name for name in named if name.startswith("references/")}
    assert {f"{layer}.md" for layer in LAYERS} <= {Path(name).name for name in there}
    assert {p.name for p in SCRIPTS} == {Path(name).name for name in named if name.startswith("scripts/")}


def test_references_are_what_the_data_says() -> None:
    assert stale(REPO) == [], "run inferdx docs"


def test_stale_sees_an_edit_a_loss_and_a_left_over(tmp_path: Path) -> None:
    known = load()
    assert sorted(write(tmp_path, known)) == sorted(generate(known)) and stale(tmp_path, known) == []
    (tmp_path / FOLDER / "memory.md").write_text("edited")
    (tmp_path / FOLDER / "kernel.md").unlink()
    (tmp_path / FOLDER / "old.md").write_text("x")
    assert sorted(stale(tmp_path, known)) == [f"{FOLDER}/{n}.md" for n in ("kernel", "memory", "old")]


def test_every_cause_has_its_place_in_one_reference() -> None:
    known, texts = load(), generate()
    for cause in known.causes.values():
        assert f"\n## {cause.id}\n" in texts[f"{FOLDER}/{cause.layer}.md"]
        assert sum(f"\n## {cause.id}\n" in text for text in texts.values()) == 1
    assert max(len(text) for text in texts.values()) < 32_000, "a reference must fit a read of an agent"


def files() -> list[Path]:
    return sorted(p for p in SKILL.rglob("*") if p.is_file() and "__pycache__" not in p.parts)


def test_nothing_hidden_and_nothing_that_pipes_into_a_shell() -> None:
    for path in files():
        text = path.read_text(encoding="utf-8")
        odd = [
            c
            for c in text
            if unicodedata.category(c) in ("Cf", "Co", "Cn") or (unicodedata.category(c) == "Cc" and c not in "\n\t")
        ]
        assert not odd, f"{path.name}: {odd[:3]!r}"
        assert not re.search(r"(curl|wget)[^\n]*\|\s*(sudo\s+)?(ba|z|da)?sh\b", text), path.name
        assert not re.search(r"[A-Za-z0-9+/]{200,}={0,2}", text), f"{path.name}: a long opaque string"


def test_scripts_use_no_network_no_shell_and_no_evaluation() -> None:
    allowed = {"json", "sys", "shutil", "subprocess", "_cli"}
    for path in (SKILL / "scripts").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert {a.name for a in node.names} <= allowed
            if isinstance(node, ast.ImportFrom):
                assert node.module in allowed
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                assert name not in ("eval", "exec", "system", "popen", "compile", "__import__")
                assert not any(k.arg == "shell" for k in node.keywords)


def script(path: Path, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    import os

    env = {k: v for k, v in os.environ.items() if k in ("HOME", "INFERDX_CACHE", "XDG_CACHE_HOME")}
    env |= {"PYTHONPATH": str(REPO), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, str(path), *words],
        capture_output=True,
        text=True,
        env=env,
        input=given,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.name)
def test_scripts_explain_themselves(path: Path) -> None:
    done = script(path, "--help")
    assert done.returncode == 0 and "usage:" in done.stdout and "exit status" in done.stdout
    assert script(path).returncode == 3


def test_diagnose_script_gives_json_and_the_products_exit_status(tmp_path: Path) -> None:
    import json

    (tmp_path / "report.md").write_text(
        "vLLM 0.10.0 on one H100: TTFT p99 is 30 s, 56 requests waiting, KV cache usage 31 %."
    )
    done = script(SKILL / "scripts" / "diagnose.py", str(tmp_path))
    data = json.loads(done.stdout)
    assert done.returncode == {"healthy": 0, "theoretical_limit": 0, "incident": 1, "undecidable": 2}[data["outcome"]]
    cited = {i for cause in data["causes"] for i in cause["evidence"]}
    assert cited <= {item["id"] for item in data["evidence"]} and sum(data["rules"].values()) > 50
    missing = script(SKILL / "scripts" / "diagnose.py", str(tmp_path / "none"))
    assert missing.returncode == 3 and "no such file" in missing.stderr


def test_explain_script(tmp_path: Path) -> None:
    import json

    done = script(SKILL / "scripts" / "explain.py", "kv_cache_exhausted")
    assert done.returncode == 0 and json.loads(done.stdout)[0]["kind"] == "cause"
    assert script(SKILL / "scripts" / "explain.py", "no_such_thing").returncode == 3
