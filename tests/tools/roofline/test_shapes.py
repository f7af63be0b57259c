"""Published parameter counts, cache sizes and precisions, one number per architecture class."""

from __future__ import annotations

import pytest

from tools.roofline.kv import KvFormat, bytes_per_token, fixed_bytes, kv_format, naive_bytes_per_token
from tools.roofline.model import model_from_config, model_from_name, with_weights
from tools.roofline.precision import canonical, fmt, kv_bytes
from tools.roofline.shape import ModelShape, Refusal


def named(name: str) -> ModelShape:
    shape = model_from_name(name)
    assert isinstance(shape, ModelShape), shape.line()
    return shape


def test_exact_parameter_counts() -> None:
    assert named("Llama-3.1-8B").params() == 8_030_261_248
    assert named("meta-llama/Llama-3.1-70B-Instruct").params() == 70_553_706_496


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("qwen3-30b-a3b", 30.53),
        ("deepseek-v3", 671.03),
        ("gpt-oss-120b", 116.8),
        ("gemma-3-27b", 27.01),
        ("qwen3-next-80b-a3b", 79.67),
        ("nemotron-h-56b", 56.32),
        ("nemotron-3-nano", 31.58),
        ("qwen3.5-397b-a17b", 396.3),
        ("glm-5", 743.2),
        ("kimi-k2.5", 1026.0),
        ("minimax-m2.5", 228.7),
        ("llama-4-scout", 107.77),
        ("llama-4-maverick", 400.7),
        ("mixtral-8x7b", 46.70),
        ("gemma-2-9b", 9.24),
        ("nemotron-super-49b", 49.87),
        ("deepseek-v4-flash", 284.0),
        ("mimo-v2-flash", 309.0),
        ("phi-4", 14.66),
        ("falcon-7b", 6.92),
        ("gpt-j-6b", 6.05),
        ("deepseek-v2-lite", 15.7),
        ("nemotron-3-super", 120.6),
    ],
)
def test_total_parameters_to_a_tenth_of_a_percent(name: str, billions: float) -> None:
    tolerance = 0.001 if billions not in (284.0, 309.0, 15.7, 120.6) else 0.003
    assert named(name).params() / 1e9 == pytest.approx(billions, rel=tolerance)


@pytest.mark.parametrize(("name", "billions"), [("qwen3-30b-a3b", 3.04), ("deepseek-v3", 36.6), ("gpt-oss-120b", 5.13)])
def test_parameters_read_for_one_token(name: str, billions: float) -> None:
    assert named(name).active_params() / 1e9 == pytest.approx(billions, rel=0.002)


@pytest.mark.parametrize(
    ("name", "per_token", "fixed_mb"),
    [
        ("llama-3.1-8b", 131_072, 0.0),
        ("mixtral-8x7b", 131_072, 0.0),
        ("llama-2-7b", 524_288, 0.0),
        ("llama-3.1-70b", 327_680, 0.0),
        ("llama-2-70b", 327_680, 0.0),
        ("qwen2.5-72b", 327_680, 0.0),
        ("llama-3.1-405b", 516_096, 0.0),
        ("qwen3-8b", 147_456, 0.0),
        ("qwen3-32b", 262_144, 0.0),
        ("qwen3-30b-a3b", 98_304, 0.0),
        ("qwen3-235b-a22b", 192_512, 0.0),
        ("minimax-m2.5", 253_952, 0.0),
        ("deepseek-v3", 70_272, 0.0),
        ("kimi-k2", 70_272, 0.0),
        ("deepseek-v3.2", 70_272 + 8_052, 0.0),
        ("gemma-3-27b", 81_920, 436.2),
        ("gemma-3n-e4b", 8_192, 16.78),
        ("gpt-oss-120b", 36_864, 4.7),
        ("gpt-oss-20b", 24_576, 3.1),
        ("qwen3-next-80b-a3b", 24_576, 77.3),
        ("qwen3.5-397b-a17b", 30_720, 192.06),
        ("nemotron-h-56b", 40_960, 459.6),
        ("nemotron-3-nano", 6_144, 49.1),
    ],
)
def test_cache_bytes_per_token_and_what_does_not_grow(name: str, per_token: int, fixed_mb: float) -> None:
    model, form = named(name), KvFormat(bytes=2.0)
    assert bytes_per_token(model, form) == per_token
    assert fixed_bytes(model, form) / 1e6 == pytest.approx(fixed_mb, abs=0.06)


def test_sparse_latent_cache_at_eight_bit_with_its_index() -> None:
    model = named("glm-5")
    assert bytes_per_token(model, KvFormat(bytes=1.0)) == 78 * 576 + 10_296
    assert bytes_per_token(named("deepseek-v3"), KvFormat(bytes=1.0)) == 35_136


def test_fixed_latent_row_layouts_of_engines() -> None:
    model = named("deepseek-v3")
    assert bytes_per_token(model, kv_format("fp8_ds_mla", mla=True)) == 40_016
    assert bytes_per_token(model, kv_format("nvfp4", mla=True)) == 352 * 61


def test_recurrent_state_in_sixteen_bit() -> None:
    assert fixed_bytes(named("qwen3-next"), KvFormat(bytes=2.0, state=2.0)) / 1e6 == pytest.approx(39.5, abs=0.05)


def test_what_a_calculator_that_ignores_windows_would_say() -> None:
    assert naive_bytes_per_token(named("gemma-3-27b"), KvFormat(bytes=2.0)) == 507_904
    assert naive_bytes_per_token(named("gemma-3n-e4b"), KvFormat(bytes=2.0)) == 71_680


def test_tied_head_is_counted_once_but_read_every_step() -> None:
    model = named("gemma-3-27b")
    assert model.tied
    assert model.active_params() > model.params() - model.vocab * model.hidden


def test_precision_in_a_name_is_applied_by_what_such_checkpoints_keep_wide() -> None:
    oss = named("openai/gpt-oss-120b")
    assert {(g.fmt.attn.bytes, g.fmt.expert.bytes) for g in oss.layers} == {(2.0, 0.53125)}
    assert named("Llama-3.3-70B-Instruct-FP8-dynamic").weights == "fp8"
    kimi = with_weights(named("kimi-k2.5"), "int4")
    assert {g.fmt.attn.bytes for g in kimi.layers} == {2.0}
    narrow = with_weights(named("deepseek-v3"), "nvfp4", low=True)
    assert {g.fmt.attn.bytes for g in narrow.layers} == {0.5625}
    usual = with_weights(named("deepseek-v3"), "nvfp4")
    assert {g.fmt.attn.bytes for g in usual.layers} == {2.0}


def test_unknown_names_are_refused_with_the_nearest() -> None:
    refused = model_from_name("llama-9-900b")
    assert isinstance(refused, Refusal)
    assert refused.field == "model"
    assert "llama" in refused.why


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"hidden_size": None}, "hidden_size"),
        ({"vocab_size": None}, "vocab_size"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"num_hidden_layers": "many"}, "num_hidden_layers"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers"),
        ({"intermediate_size": None}, "intermediate_size"),
        ({"num_attention_heads": None}, "num_attention_heads"),
        ({"num_key_value_heads": 7}, "num_key_value_heads"),
        ({"head_dim": None, "hidden_size": 4097}, "head_dim"),
        ({"num_experts": 8}, "num_experts_per_tok"),
        ({"num_experts": 8, "num_experts_per_tok": 9, "moe_intermediate_size": 64}, "num_experts_per_tok"),
        ({"num_experts": 8, "num_experts_per_tok": 2, "model_type": "qwen3_moe"}, "moe_intermediate_size"),
        ({"moe_intermediate_size": 64, "num_experts_per_tok": 2}, "num_experts"),
        ({"layer_types": ["full_attention", "wavelet"] + ["full_attention"] * 34}, "layer_types"),
        ({"layer_types": ["full_attention"]}, "layer_types"),
        ({"sliding_window": 1024, "model_type": "new_thing"}, "layer_types"),
        ({"mamba_d_state": 16}, "mamba_d_state"),
        ({"quantization_config": {"quant_method": "fancy"}}, "quantization_config"),
        ({"kv_lora_rank": 512}, "qk_nope_head_dim"),
        ({"compress_ratios": [4, 128]}, "compress_ratios"),
        ({"hybrid_override_pattern": "MQ"}, "hybrid_override_pattern"),
        ({"block_configs": [{"ffn": {}}]}, "block_configs"),
        ({"linear_attn_config": {"num_heads": 4}}, "linear_attn_config"),
        ({"sparse_attention_config": {"use_sparse_attention": True}}, "sparse_attention_config"),
    ],
)
def test_a_missing_or_impossible_field_is_named(change: dict[str, object], field: str) -> None:
    config: dict[str, object] = {
        "model_type": "qwen3",
        "hidden_size": 4096,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 12288,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
    }
    assert isinstance(model_from_config(config), ModelShape)
    refused = model_from_config({k: v for k, v in (config | change).items() if v is not None})
    assert isinstance(refused, Refusal)
    assert refused.field == field
    assert refused.why


@pytest.mark.parametrize(
    "junk", [{}, {"text_config": {}}, {"quantization": {"quant_algo": "FP8"}}, {"hidden_size": float("nan")}]
)
def test_junk_is_refused_not_raised(junk: dict[str, object]) -> None:
    assert isinstance(model_from_config(junk), Refusal)
    assert isinstance(model_from_config([]), Refusal)  # type: ignore[arg-type]


def test_defaults_taken_are_said() -> None:
    shape = model_from_config(
        {
            "model_type": "gemma3",
            "text_config": {
                "model_type": "gemma3_text",
                "hidden_size": 2560,
                "intermediate_size": 10240,
                "num_hidden_layers": 34,
                "sliding_window": 1024,
            },
        }
    )
    assert isinstance(shape, ModelShape)
    assert any("num_attention_heads is not in the file" in note for note in shape.caveats)
    assert shape.tied


def test_a_precision_in_the_name_that_the_file_does_not_have_is_said() -> None:
    shape = model_from_config(
        {
            "model_type": "llama",
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "intermediate_size": 128,
            "vocab_size": 1000,
        },
        name="org/Thing-FP8",
    )
    assert isinstance(shape, ModelShape)
    assert any("the name says fp8" in note for note in shape.caveats)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("bfloat16", "bf16"), ("torch.float16", "bf16"), ("FP8_E4M3", "fp8"), ("NVFP4", "nvfp4"), ("w8a8", "int8"),
        ("AWQ", "int4"), ("gptq_marlin", "int4"), ("Q4_K_M", "q4_k_m"), ("Q4_K - Medium", "q4_k_m"), ("int4-awq g128", "int4"),
        ("fp8 block 128", "fp8"), ("INT8 weight only", "w8a16"), ("mxfp4 experts", "mxfp4"), ("gguf:q8_0", "q8_0"),
        ("fp3", None), ("banana", None), ("", None),
    ],
)  # fmt: skip
def test_precision_words(word: str, name: str | None) -> None:
    assert canonical(word) == name


def test_bytes_include_scales() -> None:
    for word, bits in (("nvfp4", 4.5), ("mxfp4", 4.25), ("int4", 4.125), ("q4_0", 4.5), ("q8_0", 8.5), ("fp8", 8.0)):
        found = fmt(word, low=True)
        assert found is not None
        assert found.bytes * 8 == bits
    assert kv_bytes("fp8_e5m2") == 1.0
    assert kv_bytes("auto") is None
