"""The reader of model configs, readings of estimates, the explanation and the picture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from knowledge.loader import ROOT, read_yaml
from tools.contract import Context, ReadResult
from tools.part import Part
from tools.roofline.build import request_from
from tools.roofline.checks import Measured, compare
from tools.roofline.explain import explain
from tools.roofline.facts import comparison_readings, estimate_readings
from tools.roofline.floors import Estimate, estimate
from tools.roofline.plot import plot, points_of
from tools.roofline.read import read
from tools.roofline.request import Request
from tools.roofline.shape import Refusal
from tools.roofline.sniff import sniff

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}
QUANT = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8",
                                                            "exclude_modules": ["lm_head"]}}  # fmt: skip


def part(name: str, content: object) -> Part:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return Part(name=name, data=data)


def values(result: ReadResult) -> dict[str, object]:
    return {reading.fact: reading.value for reading in result.readings}


def vocabulary() -> set[str]:
    return {record["name"] for record in read_yaml(ROOT / "facts" / "roofline.yaml")}


def estimated(**more: object) -> Estimate:
    request = request_from({"model": "gpt-oss-120b", "gpu": "2x H100 SXM", "tp": 2, "concurrency": 16} | more)
    assert isinstance(request, Request)
    return estimate(request, whole=True)


def test_sniff_by_content_before_name() -> None:
    text = json.dumps(CONFIG)
    assert sniff("anything.txt", text) > 0.9
    assert sniff("hf_quant_config.json", json.dumps(QUANT)) > 0.8
    assert sniff("config.json", '{"model": "x", "tp": 4}') == 0.0
    assert sniff("config.json", '{"hidden_size": 12}') == 0.6
    assert sniff("log.txt", "INFO model_type: llama") == 0.0
    assert sniff("result.json", '{"ttft": 3, "tpot": [1, 2]}') == 0.0


def test_a_config_becomes_facts_of_the_vocabulary() -> None:
    result = read([part("models/config.json", CONFIG)], Context())
    got = values(result)
    assert got["model.params_b"] == pytest.approx(8.0303, abs=1e-4)
    assert got["model.kv_bytes_per_token"] == 131_072
    assert got["model.weights_dtype"] == "bf16"
    assert got["model.is_moe"] is False
    assert "model.experts" not in got
    assert set(got) <= vocabulary()
    assert result.problems == []
    assert result.readings[0].source.ref == "models/config.json"


def test_a_quantisation_file_beside_it_is_used_and_alone_it_is_a_problem() -> None:
    both = read([part("m/hf_quant_config.json", QUANT), part("m/config.json", CONFIG)], Context())
    got = values(both)
    assert got["model.weights_dtype"] == "fp8"
    assert got["model.kv_dtype_hint"] == "fp8"
    assert got["model.kv_bytes_per_token"] == 65_536
    alone = read([part("m/hf_quant_config.json", QUANT)], Context())
    assert alone.readings == []
    assert "without its config.json" in alone.problems[0].line()


def test_bad_files_become_one_problem_each_and_good_ones_survive() -> None:
    broken = {k: v for k, v in CONFIG.items() if k != "vocab_size"}
    result = read(
        [
            part("a/config.json", b"{not json"),
            part("b/config.json", [1]),
            part("c/config.json", broken),
            part("d/config.json", CONFIG),
        ],
        Context(options={}),
    )
    assert len(result.problems) == 3
    refused = [r for r in result.readings if r.fact == "model.refused_field"]
    assert [r.value for r in refused] == ["vocab_size"]
    assert "vocab_size" in result.problems[2].line()
    assert any(r.fact == "model.params_b" for r in result.readings)


@pytest.mark.parametrize(
    "junk", [b"", b"\x00\xff" * 50, b"[" * 100_000, b'{"hidden_size": 1e400}', b'{"num_hidden_layers": {}}']
)
def test_any_bytes_are_read_without_raising(junk: bytes) -> None:
    result = read([part("config.json", junk)], Context())
    assert len(result.problems) == 1


def test_estimates_and_comparisons_are_readings_of_the_vocabulary() -> None:
    result = estimated()
    readings = estimate_readings(result, inputs=("E1",), labels={"engine": "0"})
    got = {reading.fact: reading.value for reading in readings}
    assert set(got) <= vocabulary()
    assert got["roofline.fits"] is True
    assert got["roofline.tpot.hard_floor_ms"] <= got["roofline.tpot.expected_floor_ms"]
    shares = sum(v for k, v in got.items() if k.startswith("roofline.share."))
    assert shares == pytest.approx(1.0, abs=1e-3)
    assert 50 < got["roofline.expected_experts"] < 52
    assert readings[0].source.inputs == ("E1",)
    assert "gpt-oss-120b" in readings[0].method
    seen = Measured(tpot_ms=7.8, ttft_ms=90.0, output_tps=2050.0)
    judged = {r.fact: r.value for r in comparison_readings(seen, compare(result, seen), result)}
    assert set(judged) <= vocabulary()
    assert judged["roofline.measurement_broken"] is False
    assert judged["roofline.ttft.excess_ms"] > 80
    nothing = comparison_readings(Measured(), compare(result, Measured()), result)
    assert {r.fact for r in nothing} == {"roofline.at_limit", "roofline.measurement_broken"}


def test_explain_prints_every_term() -> None:
    text = "\n".join(explain(estimated(max_model_len=131072)))
    for word in ("parameters", "GB/s published", "tp 2", "bytes a token", "experts touched by 16", "expert weights",
                 "time per output token: hard", "typical step, terms", "GB for the cache", "vLLM would print", "binds:"):  # fmt: skip
        assert word in text
    dense = "\n".join(explain(estimated(model="gemma-3-27b", kv="auto")))
    assert "ignoring windows" in dense
    assert "do not grow" in dense


def test_the_picture_is_written_by_suffix(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = estimated()
    for name in ("roof.png", "roof.svg"):
        assert plot(result, tmp_path / name, tpot_ms=8.0) == tmp_path / name
        assert (tmp_path / name).stat().st_size > 2000
    assert (
        "decode step, measured" in (tmp_path / "roof.svg").read_text() or (tmp_path / "roof.svg").stat().st_size > 2000
    )
    refused = plot(result, tmp_path / "roof.gif")
    assert isinstance(refused, Refusal)
    assert isinstance(plot(result, tmp_path / "no" / "dir.png"), Refusal)


def test_points_of_the_picture_lie_under_the_roof() -> None:
    result = estimated()
    gpu = result.request.gpu
    points = points_of(result, tpot_ms=8.0, ttft_ms=100.0)
    for intensity, rate in points.values():
        assert rate * 1e12 <= min(gpu.peak("fp8"), intensity * gpu.bw) * 1.0001
    assert points["decode step, measured"][1] < points["decode step"][1]
    assert points["prompt"][0] > points["decode step"][0]
