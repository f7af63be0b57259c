"""Real config files: every one computed or refused with its field named; one hand-checked number per class."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.roofline.kv import KvFormat, bytes_per_sequence
from tools.roofline.model import model_from_config
from tools.roofline.request import Layout
from tools.roofline.shape import ModelShape, Refusal
from tools.roofline.work import weight_bytes_per_gpu

FOLDER = Path(__file__).parents[3].parent / "shared" / "samples" / "hf-config"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the shared sample files are not beside the project")

REFUSED = {
    "Qwen--Qwen2.5-3B-Instruct_partial_config.json": "hidden_size",
    "zai-org--GLM-4.5_keyfields.json": "vocab_size",
}
# Billions of parameters as published or counted by hand from the file.
PUBLISHED = {
    "MiniMaxAI--MiniMax-M2.7": 228.7,
    "Qwen--Qwen2.5-7B-Instruct": 7.615,
    "Qwen--Qwen3-0.6B": 0.596,
    "Qwen--Qwen3-1.7B_transformers5": 1.72,
    "Qwen--Qwen3-VL-8B-Instruct": 8.19,
    "Qwen--Qwen3.5-27B": 26.9,
    "Qwen--Qwen3.5-122B-A10B": 122.1,
    "deepseek-ai--DeepSeek-V3.2": 671.9,
    "deepseek-ai--DeepSeek-V4-Pro": 1573.0,
    "google--gemma-3-4b-it": 3.88,
    "google--gemma-4-26B-A4B": 25.2,
    "mistralai--Mistral-Nemo-Base-2407": 12.25,
    "mistralai--Mixtral-8x22B-v0.1": 140.6,
    "nvidia--Gemma-4-31B-IT-NVFP4": 30.7,
    "nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-FP8": 549.3,
    "stepfun-ai--Step-3.7-Flash": 195.8,
    "zai-org--GLM-4.7-FP8": 352.8,
}
# Gigabytes on one GPU where tensor classes differ in precision.
MIXED_GB = {
    "moonshotai--Kimi-K2.5": 594.0,
    "nvidia--Qwen3.6-35B-A3B-NVFP4": 21.6,
    "nvidia--Gemma-4-26B-A4B-NVFP4": 18.7,
    "openai--gpt-oss-120b": 65.2,
}


def shape_of(stem: str) -> ModelShape | Refusal:
    path = FOLDER / f"{stem}_config.json"
    quant = FOLDER / f"{stem}_hf_quant_config.json"
    return model_from_config(
        json.loads(path.read_text()), quant=json.loads(quant.read_text()) if quant.exists() else None, name=stem
    )


def configs() -> list[Path]:
    return [p for p in sorted(FOLDER.glob("*.json")) if "hf_quant" not in p.name] if FOLDER.is_dir() else []


@pytest.mark.parametrize("path", configs(), ids=lambda p: p.name)
def test_every_sample_is_computed_or_refused_by_field(path: Path) -> None:
    shape = model_from_config(json.loads(path.read_text()))
    if path.name in REFUSED:
        assert isinstance(shape, Refusal)
        assert shape.field == REFUSED[path.name]
        return
    assert isinstance(shape, ModelShape), shape.line()
    assert shape.params() > 1e8
    assert bytes_per_sequence(shape, 1000.0, KvFormat()) > 0
    assert weight_bytes_per_gpu(shape, Layout()) < 2.02 * (shape.params() + shape.vision)


@pytest.mark.parametrize(("stem", "billions"), sorted(PUBLISHED.items()))
def test_published_sizes(stem: str, billions: float) -> None:
    shape = shape_of(stem)
    assert isinstance(shape, ModelShape)
    assert shape.params() / 1e9 == pytest.approx(billions, rel=0.002)


@pytest.mark.parametrize(("stem", "gigabytes"), sorted(MIXED_GB.items()))
def test_bytes_where_precisions_mix(stem: str, gigabytes: float) -> None:
    shape = shape_of(stem)
    assert isinstance(shape, ModelShape)
    assert weight_bytes_per_gpu(shape, Layout()) / 1e9 == pytest.approx(gigabytes, rel=0.03)


def test_modelopt_file_alone_is_refused() -> None:
    path = FOLDER / "nvidia--Qwen3.6-27B-NVFP4_hf_quant_config.json"
    shape = model_from_config(json.loads(path.read_text()))
    assert isinstance(shape, Refusal)
    assert shape.field == "hidden_size"


def test_attention_of_an_nvfp4_checkpoint_stays_wide() -> None:
    shape = shape_of("nvidia--MiniMax-M2.5-NVFP4")
    assert isinstance(shape, ModelShape)
    assert {g.fmt.attn.bytes for g in shape.layers} == {2.0}
    assert {g.fmt.expert.bytes for g in shape.layers} == {0.5625}
    assert shape.kv_hint == "fp8"
