"""Is this a Hugging Face ``config.json`` or ``hf_quant_config.json``?"""

from __future__ import annotations

import re

_KEYS = re.compile(
    r'"(?:model_type|architectures|hidden_size|num_hidden_layers|num_attention_heads|num_key_value_heads|'
    r'intermediate_size|vocab_size|max_position_embeddings|torch_dtype|text_config|rope_theta|rms_norm_eps)"\s*:'
)
_QUANT = re.compile(r'"(?:quant_algo|kv_cache_quant_algo|exclude_modules)"\s*:')
_NAME = re.compile(r"(?:^|[/_-])(?:hf_quant_)?config(?:uration)?\.json$|keyfields\.json$", re.I)


def sniff(name: str, head: str) -> float:
    """How sure this is a model's shape or quantisation file, as a share (0..1)."""
    if head.lstrip()[:1] != "{":
        return 0.0
    found = set(_KEYS.findall(head[:65536]))
    if '"quantization"' in head[:4000] and _QUANT.search(head) and len(found) < 3:
        return 0.9
    if len(found) >= 5:
        return 0.95
    if len(found) >= 3:
        return 0.8
    return 0.6 if found and _NAME.search(name) else 0.0
