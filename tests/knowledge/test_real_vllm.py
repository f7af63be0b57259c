"""Metric names, flags and defaults in knowledge against an installed vLLM, when there is one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from knowledge.catalogue import catalogue, exists
from knowledge.versions import holds
from tools.config.data import Default, engine_data
from tools.config.flags import flag_exists

# Prefixes that stand in the source as strings of their own, not as families.
NOT_FAMILIES = {"vllm:spec_decode", "vllm:diffusion"}


def _real() -> dict[str, Any]:
    python = os.environ.get("INFERDX_VLLM_PYTHON") or (sys.executable if find_spec("vllm") else "")
    if not python:
        pytest.skip("no vLLM: set INFERDX_VLLM_PYTHON to the interpreter of one")
    script = Path(__file__).with_name("real_vllm.py")
    done = subprocess.run([python, str(script)], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"vLLM cannot be asked: {done.stderr.strip().splitlines()[-1:]}")
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def _bare(name: str) -> str:
    return name.removesuffix("_total")


def _metric_mismatches(real: dict[str, Any]) -> list[str]:
    version = real["version"]
    seen = {_bare(name) for name in real["metrics"]} - NOT_FAMILIES
    known = {_bare(m.name) for m in catalogue().values() if m.engine == "vllm" and exists(m, version)}
    return [f"metric {name}: in vLLM {version}, not in the catalogue" for name in sorted(seen - known)] + [
        f"metric {name}: in the catalogue, not in vLLM {version}" for name in sorted(known - seen)
    ]


def _flag_mismatches(real: dict[str, Any]) -> list[str]:
    version, engine = real["version"], engine_data("vllm")
    unknown = [
        f for f in real["flags"] if f != "help" and not f.startswith("no-") and not flag_exists(f, "vllm", version)
    ]
    gone = [f for f in {*engine.history, *engine.flags} if flag_exists(f, "vllm", version) and f not in real["flags"]]
    return [f"flag --{f}: in vLLM {version}, unknown here" for f in sorted(unknown)] + [
        f"flag --{f}: said to be in vLLM {version}, is not" for f in sorted(gone)
    ]


def _plain(item: Default) -> bool:
    return not (
        item.expr or item.device or item.gpu_gib or item.gpu or item.gpu_not or item.tp or item.given or item.per
    )


def _same(left: Any, right: Any) -> bool:
    one, two = str(left).lower().removeprefix("o"), str(right).lower().removeprefix("o")
    try:
        return float(one) == float(two)
    except ValueError:
        return one == two


def _default_mismatches(real: dict[str, Any]) -> tuple[int, list[str]]:
    bad: list[str] = []
    count = 0
    for name, flag in engine_data("vllm").flags.items():
        value = real["flags"].get(name)
        chosen = next((d for d in flag.defaults if holds(d.versions, real["version"]) is not False), None)
        if value is None or chosen is None or not _plain(chosen):
            continue
        count += 1
        if not _same(chosen.value, value):
            bad.append(f"default of --{name}: {chosen.value!r} here, {value!r} in vLLM {real['version']}")
    return count, bad


@pytest.mark.real
def test_knowledge_agrees_with_the_installed_vllm() -> None:
    real = _real()
    count, defaults = _default_mismatches(real)
    mismatches = [*_metric_mismatches(real), *_flag_mismatches(real), *defaults]
    for line in mismatches:
        print(line)
    assert len(real["metrics"]) > 50
    assert len(real["flags"]) > 100
    assert count >= 10
    assert not mismatches
