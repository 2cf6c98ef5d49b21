"""Tiny random models of a transformers type: the real code, weights large enough for positions to matter."""

from __future__ import annotations

import re
import warnings
from typing import Any

from posenc.errors import SubjectError, shown

SIZES = (
    (r"^vocab_size", 97),
    (r"(^|_)(num_local_experts|num_experts|n_routed_experts|moe_num_experts|num_routed_experts)$", 4),
    (r"(num_experts_per_tok|moe_topk|moe_k|top_k_experts)$", 2),
    (r"^(n_group|topk_group|num_expert_group)$", 1),
    (r"intermediate_size|ffn_hidden|ffn_dim|n_inner|mlp_dim|d_ff$", 48),
    (r"^(num_hidden_layers|n_layer|n_layers|num_layers|encoder_layers|decoder_layers|num_decoder_layers)$", 4),
    (r"^(hidden_size|n_embd|d_model|embed_dim|encoder_hidden_size)$", 96),
    (r"^(num_attention_heads|n_head|n_heads|num_heads|encoder_attention_heads|decoder_attention_heads)$", 4),
    (r"^(num_key_value_heads|num_kv_heads)$", 2),
    (r"^d_kv$", 24),
    (r"^(max_position_embeddings|n_positions|max_seq_len)$", 512),
    (r"^original_max_position_embeddings$", 128),
    (r"^(pad_token_id|bos_token_id|eos_token_id|decoder_start_token_id)$", 0),
)
"""Sizes by names of settings. Heads of 24 channels: no power of two."""
LATENT = {"head_dim": 12, "num_key_value_heads": 4, "qk_nope_head_dim": 20, "qk_rope_head_dim": 12, "v_head_dim": 10}
SECTIONS = {"rope_parameters": {"rope_type": "default", "rope_theta": 7e5, "mrope_section": [4, 4, 4]}}
EXTRA: dict[str, dict[str, Any]] = {
    **dict.fromkeys(
        (
            "glm4v_text",
            "glm_image_text",
            "glm_ocr_text",
            "qwen2_vl_text",
            "qwen2_5_vl_text",
            "qwen2_5_omni_text",
            "qwen3_vl_text",
            "qwen3_vl_moe_text",
            "qwen3_omni_moe_text",
            "paddleocr_vl_text",
            "cosmos3_edge_text",
        ),
        SECTIONS,
    ),
    "bamba": {"mamba_n_heads": 8, "mamba_d_head": 24, "attn_layer_indices": [1, 3]},
    "codegen": {"rotary_dim": 10},
    "gptj": {"rotary_dim": 10},
    "deepseek_v2": {**LATENT, "first_k_dense_replace": 4},
    "deepseek_v3": {**LATENT, "first_k_dense_replace": 4},
    "minicpm3": LATENT,
    "dots1": {"n_shared_experts": 1, "first_k_dense_replace": 4},
    "esm": {"vocab_size": 97, "position_embedding_type": "rotary", "mask_token_id": 5},
    "gemma3n_text": {"num_kv_shared_layers": 0, "num_hidden_layers": 5},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "longcat_flash": LATENT,
    "recurrent_gemma": {"lru_width": 96},
}
"""What plain sizes leave inconsistent."""
NO_HEAD_DIM = ("head_dim", "attention_head_dim", "kv_channels")


def tiny_config(model_type: str) -> Any:
    """A config of a type with tiny sizes.

    Raises:
        SubjectError: transformers is not installed, does not know the type, or refuses the sizes.
    """
    transformers = library()
    if model_type not in transformers.CONFIG_MAPPING:
        raise SubjectError("transformers knows the model type", model_type)
    try:
        defaults = transformers.AutoConfig.for_model(model_type).to_dict()
        return transformers.AutoConfig.for_model(model_type, **{**_sizes(defaults), **EXTRA.get(model_type, {})})
    except SubjectError:
        raise
    except Exception as error:
        raise SubjectError(
            f"a tiny {model_type} can be configured", f"{type(error).__name__}: {shown(str(error), 120)}"
        ) from None


def _sizes(defaults: dict[str, Any]) -> dict[str, Any]:
    """Tiny values for the settings that have one, in the configs inside too."""
    sizes: dict[str, Any] = {}
    for key, value in defaults.items():
        if isinstance(value, dict) and key.endswith("config") and "model_type" in value:
            inner = {k: v for k, v in value.items() if not k.startswith("_") and k != "layer_types"}
            sizes[key] = {**inner, **_sizes(inner), **EXTRA.get(str(value["model_type"]), {})}
        if isinstance(value, dict) and "mrope_section" in value:
            sizes[key] = {**value, "mrope_section": [4, 4, 4]}  # the 12 pairs of a head of 24
        if isinstance(value, bool) or not isinstance(value, int | type(None)):
            continue
        for pattern, size in SIZES:
            if re.search(pattern, key) and (value is not None or key == "num_key_value_heads"):
                sizes[key] = size
    sizes |= {k: 24 for k in NO_HEAD_DIM if isinstance(defaults.get(k), int)}
    if "initializer_range" in defaults:
        sizes["initializer_range"] = 0.2
    return sizes


MOST_NUMBERS = 10**8
"""Parameters of a model that is built: 400 MB in float32."""


def random_model(config: Any) -> Any:
    """A model of a config with random weights, in evaluation mode, eager attention, float32.

    Raises:
        SubjectError: it cannot be built.
    """
    transformers = library()
    import torch

    torch.manual_seed(0)
    first: Exception | None = None
    for attention in ("eager", None):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kwargs = {} if attention is None else {"attn_implementation": attention}
                with torch.device("meta"):
                    hollow = transformers.AutoModel.from_config(config, **kwargs)
                numbers = sum(v.numel() for v in (*hollow.parameters(), *hollow.buffers()))
                if numbers > MOST_NUMBERS:
                    raise SubjectError(f"a model of at most {MOST_NUMBERS} parameters is built", numbers)
                return transformers.AutoModel.from_config(config, **kwargs).eval().float()
        except SubjectError:
            raise
        except Exception as error:
            first = first or error
    raise SubjectError(f"a tiny {config.model_type} can be built", f"{type(first).__name__}: {shown(str(first), 120)}")


def library() -> Any:
    """transformers, quiet.

    Raises:
        SubjectError: it is not installed.
    """
    try:
        import transformers
    except ImportError:
        raise SubjectError("models need transformers", remedy="Install it with: pip install 'posenc[models]'") from None
    quiet: Any = transformers.logging
    quiet.set_verbosity_error()
    return transformers
