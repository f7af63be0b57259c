"""``inferdx roofline`` and ``inferdx whatif`` at the command line."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest

from agent.cli_roofline import add_arguments, run, run_whatif
from tools.roofline.build import request_from
from tools.roofline.request import Request
from tools.roofline.shape import Refusal

BASE = ["--model", "Llama-3.1-70B-FP8", "--gpu", "2x H100 SXM", "--tp", "2", "--concurrency", "16"]


def parse(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"inferdx {argv[0]}")
    add_arguments(parser, argv[0])
    return parser.parse_args(argv[1:])


def test_table_and_measured(capsys: pytest.CaptureFixture[str]) -> None:
    status = run(
        parse(
            "roofline", *BASE, "--prompt", "4k", "--osl", "512", "--measured-tpot-ms", "25", "--measured-ttft-ms", "900"
        )
    )
    out = capsys.readouterr().out
    assert status == 0
    for word in (
        "hard floor",
        "time per output token",
        "binds:",
        "sequences of",
        "MBU",
        "above the prompt's own floor",
    ):
        assert word in out


def test_json_has_every_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(parse("roofline", *BASE, "--json", "--explain", "--measured-tpot-ms", "1")) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["tpot_ms"]["hard"] <= data["tpot_ms"]["expected"] <= data["tpot_ms"]["practical"]
    assert data["gpus"] == 2
    assert data["measured"]["broken"]
    assert any("typical step" in line for line in data["terms"])


def test_explain_plot_and_config_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    config = tmp_path / "my-model" / "config.json"
    config.parent.mkdir()
    config.write_text(json.dumps({
        "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 8,
        "num_key_value_heads": 8, "intermediate_size": 4096, "vocab_size": 32000,
    }))  # fmt: skip
    (config.parent / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "FP8"}}))
    picture = tmp_path / "roof.svg"
    argv = (
        "roofline",
        "--config",
        str(config),
        "--gpu",
        "L4",
        "--explain",
        "--plot",
        str(picture),
        "--gpu-memory-gb",
        "24",
    )
    assert run(parse(*argv)) == 0
    out = capsys.readouterr().out
    assert "model my-model" in out
    assert "weights fp8" in out
    assert picture.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (("roofline", "--gpu", "h100"), "model: not given"),
        (("roofline", "--model", "nope-1b", "--gpu", "h100"), "model:"),
        (("roofline", "--model", "qwen3-8b"), "gpu: not given"),
        (("roofline", "--model", "qwen3-8b", "--gpu", "h100", "--isl", "x"), "isl:"),
        (("roofline", "--config", "/does/not/exist.json", "--gpu", "h100"), "cannot be read"),
        (("roofline", *BASE, "--plot", "x.gif"), "suffix"),
        (("roofline", "--points", "/does/not/exist.json"), "cannot be read"),
        (("whatif", *BASE), "nothing to change"),
        (("whatif", *BASE, "--set", "tp"), "KEY=VALUE"),
        (("whatif", "some/world", "--set", "tp=4"), "no such file or folder"),
    ],
)
def test_unusable_input_is_one_line_and_status_two(
    argv: tuple[str, ...], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(parse(*argv)) == 3
    error = capsys.readouterr().err
    assert word in error
    assert error.count("\n") == 1


def test_points_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "points.json"
    row = {"id": "a", "kind": "tpot", "model": "qwen3-8b", "weights": "bf16", "gpu": "h100_sxm", "batch": 1, "isl": 100,
           "osl": 100, "engine": "vLLM", "measured_ms": 1.3}  # fmt: skip
    path.write_text(json.dumps({"points": [row]}))
    assert run(parse("roofline", "--points", str(path), "--json")) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["id"] == "a"
    assert "below the hard floor" in rows[0]["warnings"][0]
    assert run(parse("roofline", "--points", str(path))) == 0
    assert "expected" in capsys.readouterr().out
    path.write_text("{")
    assert run(parse("roofline", "--points", str(path))) == 3


def test_whatif_typed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(parse("whatif", *BASE, "--set", "tensor_parallel_size=4", "--set", "colour=blue")) == 0
    out = capsys.readouterr().out
    assert "tpot_floor_ms" in out
    assert "4 GPUs" in out
    assert "colour does not bear" in out
    assert run(parse("whatif", *BASE, "--set", "gpu=abacus", "--json")) == 3
    data = json.loads(capsys.readouterr().out)
    assert data["refused"][0].startswith("gpu:")
    assert {"name", "change", "low", "high", "direction"} <= set(data["deltas"][0])


def test_whatif_from_a_world_through_the_seam(capsys: pytest.CaptureFixture[str]) -> None:
    def provider(path: str) -> Request | Refusal:
        if path == "empty":
            return Refusal(field="gpu", why="not in the world")
        return request_from({"model": "qwen3-8b", "gpu": "L40S", "concurrency": 8})

    assert run_whatif(parse("whatif", "w", "--set", "kv_cache_dtype=fp8", "--json"), provider) == 0
    assert json.loads(capsys.readouterr().out)["settings"] == {"kv_cache_dtype": "fp8"}
    assert run(parse("whatif", "empty", "--set", "tp=2"), provider) == 3
    assert "gpu: not in the world" in capsys.readouterr().err


def test_registering_the_parser_imports_nothing_heavy() -> None:
    code = (
        "import sys, argparse; from agent.cli_roofline import add_arguments; "
        "p = argparse.ArgumentParser(); add_arguments(p, 'roofline'); "
        "print([m for m in ('rich', 'matplotlib', 'numpy', 'yaml', 'msgspec', 'tools.roofline.floors') if m in sys.modules])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout.strip() == "[]"
