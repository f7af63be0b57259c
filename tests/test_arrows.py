"""Imports run one way: evals → agent → tools → knowledge. Heavy imports stay inside functions."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RANK = {"knowledge": 0, "tools": 1, "agent": 2, "evals": 3}
HEAVY = {
    "langgraph",
    "langchain_core",
    "langsmith",
    "openai",
    "pandas",
    "numpy",
    "mcp",
    "slack_sdk",
    "slack_bolt",
    "matplotlib",
}


def modules() -> list[Path]:
    return [p for name in RANK for p in sorted((ROOT / name).rglob("*.py")) if "/cases/" not in p.as_posix()]


def imports(path: Path) -> list[tuple[str, bool]]:
    """``(top-level package, at module level)`` of every import in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guarded = {
        id(node)
        for top in ast.walk(tree)
        if isinstance(top, ast.If) and "TYPE_CHECKING" in ast.dump(top.test)
        for node in ast.walk(top)
    }
    found = []
    for node in ast.walk(tree):
        level = any(node is child for child in tree.body)
        if isinstance(node, ast.Import):
            found += [(alias.name.split(".")[0], level) for alias in node.names if id(node) not in guarded]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level and id(node) not in guarded:
            found.append((node.module.split(".")[0], level))
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_imports_run_one_way(path: Path) -> None:
    mine = RANK[path.relative_to(ROOT).parts[0]]
    # the command table names evals.cli by string and loads it on demand; that is the one place agent reaches up
    for name, level in imports(path):
        assert RANK.get(name, -1) <= mine, f"{path.name} imports {name} against the arrows"
        assert not (level and name in HEAVY), f"{path.name} imports {name} at module level"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv=['inferdx','--help']\n"
        "from agent.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        f"print([m for m in {sorted(HEAVY | {'rich', 'msgspec', 'yaml', 'pydantic', 'httpx'})!r} if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert out.stdout.strip().splitlines()[-1] == "[]"


def test_diagnosing_needs_neither_langgraph_nor_openai() -> None:
    world = ROOT / "evals" / "cases" / "lab-016" / "world"
    code = (
        "import sys\nfrom agent.main import main\n"
        f"main(['diagnose', {str(world)!r}, '--json'])\n"
        f"print([m for m in {sorted(HEAVY)!r} if m in sys.modules], file=sys.stderr)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert out.stderr.strip().splitlines()[-1] == "[]"


def test_a_shadowing_package_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "__init__.py").write_text("")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.path.insert(1, {str(ROOT)!r}); from agent.main import main; sys.exit(main(['--help']))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert out.returncode == 3
    assert "'tools'" in out.stderr and len(out.stderr.strip().splitlines()) == 1


def test_modules_stay_readable() -> None:
    long = {p.relative_to(ROOT).as_posix(): n for p in modules() if (n := len(p.read_text().splitlines())) > 450}
    assert not long, f"modules over the size that one person reads at a sitting: {long}"
