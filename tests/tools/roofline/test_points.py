"""The eight example points and the self-checks on points that cannot be true."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tools.roofline.points import evaluate, evaluate_all, main_points, measured_ms

EXAMPLES = Path(__file__).parents[3].parent / "shared" / "facts" / "roofline-points.json"
needs_examples = pytest.mark.skipif(not EXAMPLES.is_file(), reason="the example points are not beside the project")


def point(**change: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "id": "p",
        "kind": "tpot",
        "model": "llama-3.1-70b",
        "precision": "fp8",
        "kv_bytes": 1,
        "gpu": "h200_sxm",
        "n_gpus": 4,
        "tp": 4,
        "engine": "trtllm",
        "client_concurrency": 16,
        "batch": 15.5,
        "isl": 1024,
        "osl": 1024,
        "length_range": "uniform 0.8-1.0 of nominal",
        "measured_ms": 8.93,
        "measured_ttft_ms": 282.0,
    }
    return {k: v for k, v in (base | change).items() if v is not ...}


@needs_examples
def test_no_floor_above_a_measurement_and_ratios_as_published() -> None:
    data = json.loads(EXAMPLES.read_text())
    results = main_points(EXAMPLES)
    assert [r["id"] for r in results] == [p["id"] for p in data["points"]]
    for row, result in zip(data["points"], results, strict=True):
        seen = row["measured_ms"]
        assert result["hard_ms"] == pytest.approx(row["floor_hard_ms"], rel=0.005)
        assert result["expected_ms"] / seen == pytest.approx(row["ratio_expected"], rel=0.01)
        assert result["limiter"] == row["floor_limiter"]
        assert result["hard_ms"] <= result["expected_ms"] <= result["practical_ms"]
        if row.get("flag") == "expected_violation":
            assert any("below the hard floor" in text for text in result["warnings"])
        else:
            assert result["hard_ms"] <= seen
            assert result["warnings"] == []


@needs_examples
def test_one_evaluation_takes_less_than_five_milliseconds_warm() -> None:
    data = json.loads(EXAMPLES.read_text())
    evaluate_all(data)
    start = time.process_time()
    for _ in range(3):
        evaluate_all(data)
    assert (time.process_time() - start) / (3 * len(data["points"])) < 0.005


def test_numbers_do_not_depend_on_the_measurement() -> None:
    one, two = evaluate(point(), {}), evaluate(point(measured_ms=80.0), {})
    for key in ("hard_ms", "expected_ms", "practical_ms", "typical_ms"):
        assert one[key] == two[key]
    assert one["warnings"] == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"measured_ms": 1.0}, "below the hard floor"),
        ({"measured_ms": -1.0}, "cannot be a duration"),
        ({"n_gpus": 1, "tp": 1, "precision": "bf16", "gpu": "h100_sxm"}, "weights need"),
        ({"batch": 5000.0, "client_concurrency": 5000, "measured_ms": 90.0}, "there is room for"),
        ({"tp": 48, "n_gpus": 48, "model": "deepseek-v3", "batch": 40, "measured_ms": 30.0}, "attention data parallelism"),
        ({"tp": 3, "n_gpus": 3, "measured_ms": 30.0}, "cannot split 64 query heads"),
        ({"n_gpus": 6}, "6 GPUs, but tp x pp x dp is 4"),
        ({"batch": 20.0}, "more than the 16 clients"),
        ({"measured_ttft_ms": 3.0}, "under the prompt's own floor"),
        ({"output_tps": 9000.0}, "sequences decoding"),
        ({"median_itl_ms": 0.0}, "timed stream chunks"),
        ({"median_tpot_ms": 1.0}, "differ by"),
        ({"model": "qwen3-32b-70b-mix"}, "model"),
        ({"gpu": "mi300x", "engine": "TensorRT-LLM 1.0"}, "does not run on AMD"),
        ({"model": "deepseek-v3", "precision": "fp8", "tp": 8, "n_gpus": 8, "ep": 4, "moe_tp": 4, "measured_ms": 12.0}, "experts spread over 16"),
    ],
)  # fmt: skip
def test_implausible_points_are_flagged_with_the_reason(change: dict[str, Any], words: str) -> None:
    result = evaluate(point(**change), {})
    assert any(words in text for text in result["warnings"]), result["warnings"]


def test_a_name_that_disagrees_with_its_config_is_flagged() -> None:
    config = {
        "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "intermediate_size": 14336, "vocab_size": 128256,
    }  # fmt: skip
    row = point(model="llama-70b", n_gpus=1, tp=1, measured_ms=20.0)
    result = evaluate(row, {"llama-70b": config})
    assert any("names 70 B parameters, its config has 8.0 B" in text for text in result["warnings"])
    fine = evaluate(point(model="meta-llama/Llama-3.1-70B"), {})
    assert fine["warnings"] == []


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"measured_ms": 3.5}, 3.5),
        ({"measured": 2.0, "unit": "s", "kind": "e2e"}, 2000.0),
        ({"measured": 50.0, "unit": "tok/s", "kind": "tpot"}, 20.0),
        ({"measured": 733.34, "unit": "out_tok/s", "kind": "e2e", "batch": 32, "osl": 2048}, 89366.4),
        ({"measured": 442, "unit": "out_tok/s", "kind": "thr", "osl": 128}, 289.593),
        ({"measured": 1000, "unit": "tok/s", "kind": "prefill", "isl": 512, "batch": 1}, 512.0),
        ({"measured": 4.0, "unit": "req/s", "kind": "thr"}, 250.0),
        ({"measured": 4.0, "unit": "furlongs", "kind": "thr"}, None),
        ({}, None),
    ],
)
def test_measurements_in_any_unit(row: dict[str, Any], expected: float | None) -> None:
    assert measured_ms(row) == (pytest.approx(expected, rel=1e-4) if expected is not None else None)


@pytest.mark.parametrize("kind", ["tpot", "e2e", "prefill", "thr"])
def test_every_kind_has_four_ordered_numbers(kind: str) -> None:
    result = evaluate(point(kind=kind, measured_ms=1e6, measured_ttft_ms=...), {})
    assert 0 < result["hard_ms"] <= result["expected_ms"] <= result["practical_ms"]
    assert result["typical_ms"] >= result["expected_ms"]
    assert result["limiter"] in ("memory", "compute")


def test_what_cannot_be_computed_says_why() -> None:
    for change, field in (
        ({"model": "nothing-here"}, "model"),
        ({"gpu": "abacus"}, "gpu"),
        ({"kind": "vibes"}, "kind"),
        ({"precision": "fp3.14"}, "weights"),
    ):
        result = evaluate(point(**change), {})
        assert result["hard_ms"] is None
        assert result["warnings"][0].startswith(field)


def test_attention_data_parallelism_in_either_way_of_counting() -> None:
    common = {
        "model": "deepseek-v3",
        "n_gpus": 8,
        "batch": 64.0,
        "client_concurrency": 64,
        "measured_ms": 40.0,
        "ep": 8,
    }
    ours = evaluate(point(**common, tp=1, dp=8), {})
    theirs = evaluate(point(**common, tp=8, dp=8), {})
    assert ours == theirs
    assert ours["warnings"] == []


def test_files_of_any_content(tmp_path: Path) -> None:
    good = tmp_path / "p.json"
    good.write_text(json.dumps({"points": [point(), 7, {}]}))
    rows = main_points(good)
    assert rows[0]["hard_ms"] > 0
    assert rows[1]["warnings"] == ["point: not an object"]
    assert rows[2]["hard_ms"] is None
    assert "no list of points" in evaluate_all({"points": 3})[0]["warnings"][0]
    bad = tmp_path / "bad.json"
    bad.write_bytes(b"\xff\xfe{")
    with pytest.raises(ValueError, match="not JSON"):
        main_points(bad)
