"""Tiny configs of transformers' types: the real code in small sizes, weights large enough for positions to matter."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

from posenc.errors import SubjectError, shown

SIZES = (
    (r"^vocab_size|_byte_group_vocab$", 97),
    (r"(^|_)(num_local_experts|num_experts|n_routed_experts|moe_num_experts|num_routed_experts)$", 4),
    (r"(num_experts_per_tok|moe_topk|moe_k|top_k_experts)$", 2),
    (r"^(n_group|topk_group|num_expert_group)$", 1),
    (r"intermediate_size|ffn_hidden|ffn_dim|n_inner|mlp_dim|d_ff$", 48),
    (r"^(num_hidden_layers|n_layer|n_layers|num_layers|encoder_layers|decoder_layers|num_decoder_layers)$", 4),
    (r"^(hidden_size|n_embd|d_model|embed_dim|emb_dim|(encoder|text|audio|out)_hidden_size)$", 96),
    (r"^(num_attention_heads|n_head|n_heads|num_heads|encoder_attention_heads|decoder_attention_heads)$", 4),
    (r"^(num_key_value_heads|num_kv_heads)$", 2),
    (r"^d_kv$", 24),
    (r"^(max_position_embeddings|n_positions|max_seq_len)$", 512),
    (r"^original_max_position_embeddings$", 128),
    (r"^(pad|bos|eos|decoder_start|blank)_token_id$", 0),
)
"""Sizes by names of settings. Heads of 24 channels: no power of two."""
FIRST_ID = 6
"""Ids of tokens are drawn from here on; those before may be those of padding, of a start or an end."""
LATENT = {"head_dim": 12, "num_key_value_heads": 4, "qk_nope_head_dim": 20, "qk_rope_head_dim": 12, "v_head_dim": 10}
"""Queries and keys made from a narrow vector (MLA): widths that fit each other."""
SECTIONS = {"rope_parameters": {"rope_type": "default", "rope_theta": 7e5, "mrope_section": [4, 4, 4]}}
PLAIN = {"rope_type": "default", "rope_theta": 1e4}
EXTRA: dict[str, dict[str, Any]] = {
    **dict.fromkeys(
        (
            "glm4v_text",
            "glm_image_text",
            "glm_ocr_text",
            "ernie4_5_vl_moe_text",
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
    "autoformer": {"prediction_length": 5},
    "informer": {"prediction_length": 5},
    "time_series_transformer": {"prediction_length": 5},
    "chameleon": {"vocabulary_map": {"<image>": 7}},
    "emu3": {"vocabulary_map": {"<image>": 7}},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "bamba": {"mamba_n_heads": 8, "mamba_d_head": 24, "attn_layer_indices": [1, 3]},
    "codegen": {"rotary_dim": 10},
    "gptj": {"rotary_dim": 10},
    "dbrx": {"attn_config": {"rope_theta": 5e5, "kv_n_heads": 2, "clip_qkv": 8}},
    "cohere_compass_text": {"rope_parameters": dict.fromkeys(("full_attention", "sliding_attention"), PLAIN)},
    "deepseek_ocr2_text": {"mlp_layer_types": ["dense"] * 4},
    "diffusion_gemma_text": {"num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 48},
    "deepseek_v2": {**LATENT, "first_k_dense_replace": 4},
    "deepseek_v3": {**LATENT, "first_k_dense_replace": 4},
    "fun_asr_nano": {"adaptor_config": {"hidden_size": 96, "intermediate_size": 24, "num_hidden_layers": 2}},
    "minicpm3": LATENT,
    "molmo2_adapter": {"vision_feature_layer": [3, 1]},
    "dots3_note_vision_encoder": {"adapter_in_dim": 96, "per_layer_config": {}},
    "dots1": {"n_shared_experts": 1, "first_k_dense_replace": 4},
    "esm": {"vocab_size": 97, "position_embedding_type": "rotary", "mask_token_id": 5},
    "gemma3n_text": {"num_kv_shared_layers": 0, "num_hidden_layers": 5, "intermediate_size": 48},
    "falcon_h1": {"mamba_d_ssm": 192, "mamba_n_heads": 8, "mamba_d_head": 24, "mamba_d_state": 16},
    "csm": {"codec_config": {"model_type": "mimi"}},
    "glm5_next_text": {"qk_rope_head_dim": 0, "head_dim": 0, "qk_nope_head_dim": 20},
    "hy_v4_vl_text": {"rope_parameters": {**PLAIN, "mrope_section": [2, 2, 2]}},
    "kyutai_speech_to_text": {"audio_pad_token_id": 0, "audio_bos_token_id": 0},
    "zamba": {"num_hidden_layers": 12, "attention_hidden_size": 192, "attention_head_dim": 48, "mamba_dt_rank": 6},
    "zaya": {"num_experts_per_tok": 1},
    "glm4v_moe_text": {"rope_parameters": {**PLAIN, "partial_rotary_factor": 0.5, "mrope_section": [2, 2, 2]}},
    "granitemoehybrid": {"mamba_n_heads": 8, "mamba_d_head": 24},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "longcat_flash": LATENT,
    "mamba2": {"num_heads": 8, "head_dim": 24},
    "mistral4": {**LATENT, "head_dim": 32},
    "recurrent_gemma": {"lru_width": 96},
}
"""What plain sizes leave inconsistent."""
LAYERS = r"layers?$|^vocab_size|_token_id$"
"""Settings that make a model small and that few others depend on."""
BY_LAYER = ("layer_types", "mlp_layer_types", "per_layer_config")
"""Settings of single layers, which another number of layers makes wrong."""
LAYER_COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
NO_HEAD_DIM = ("head_dim", "attention_head_dim", "kv_channels")


def tiny_configs(model_type: str) -> Iterator[Any]:
    """Configs of a type, the smallest first: all sizes tiny, inner configs plain, fewer sizes, the defaults.

    Yields:
        A config, or the :class:`SubjectError` that says why these sizes are refused.

    Raises:
        SubjectError: transformers is not installed or does not know the type.
    """
    transformers = library()
    if model_type not in transformers.CONFIG_MAPPING:
        raise SubjectError("transformers knows the model type", model_type)
    try:
        defaults = transformers.CONFIG_MAPPING[model_type]().to_dict()
    except Exception as error:  # some combine models and have no defaults
        yield _refused(model_type, error)
        return
    extra = EXTRA.get(model_type, {})
    seen = []
    for sizes in (
        {**_sizes(defaults), **extra},
        {**_sizes(defaults, lists=True), **extra},
        {**_alike(_sizes(defaults)), **extra},
        {**_alike(_sizes(defaults, whole=False)), **extra},
        {**_sizes(defaults, whole=False, names=LAYERS), **extra},
        extra,
    ):
        if sizes in seen:
            continue
        seen.append(sizes)
        try:
            yield transformers.CONFIG_MAPPING[model_type](**copy.deepcopy(sizes))
        except Exception as error:
            yield _refused(model_type, error)


def tiny_config(model_type: str) -> Any:
    """The smallest config of a type that it accepts.

    Raises:
        SubjectError: transformers is not installed, does not know the type, or refuses all sizes.
    """
    found = list(tiny_configs(model_type))
    config = next((c for c in found if not isinstance(c, SubjectError)), None)
    if config is None:
        raise found[0]
    return config


def _alike(sizes: dict[str, Any]) -> dict[str, Any]:
    """The same with as many heads of keys as of queries, which some types demand."""
    same = {k: _alike(v) if isinstance(v, dict) else v for k, v in sizes.items()}
    return (
        {**same, "num_key_value_heads": same["num_attention_heads"]}
        if {"num_key_value_heads", "num_attention_heads"} <= same.keys()
        else same
    )


def _refused(model_type: str, error: Exception) -> SubjectError:
    return SubjectError(
        f"a tiny {model_type} can be configured", f"{type(error).__name__}: {shown(str(error).strip(), 160)}"
    )


def _sizes(defaults: dict[str, Any], whole: bool = True, names: str = "", lists: bool = False) -> dict[str, Any]:
    """Tiny values for the settings that have one, in the configs inside too.

    Args:
        defaults: a config as a dict.
        whole: keep the other settings of the configs inside; otherwise these take the defaults of their own types.
        names: only settings that match this pattern.
        lists: thin out lists with an entry for each layer.
    """
    sizes: dict[str, Any] = {}
    for key, value in defaults.items():
        if isinstance(value, dict) and "model_type" in value:
            inner = {k: v for k, v in value.items() if not k.startswith("_") and k not in BY_LAYER}
            kept = inner if whole else {"model_type": value["model_type"]}
            sizes[key] = {**kept, **_sizes(value, whole, names, lists), **EXTRA.get(str(value["model_type"]), {})}
        if isinstance(value, dict) and "mrope_section" in value and not names:
            sizes[key] = {**value, "mrope_section": [4, 4, 4]}  # the 12 pairs of a head of 24
        if isinstance(value, bool) or not isinstance(value, int | type(None)):
            continue
        for pattern, size in SIZES:
            taken = value is not None or key == "num_key_value_heads"
            if key.endswith("token_id") and value is not None and value < FIRST_ID:
                taken = False  # some types have their padding written into their code
            if taken and re.search(pattern, key) and re.search(names, key):
                sizes[key] = size
    if lists:
        sizes |= _by_layer(defaults, {**sizes, **EXTRA.get(str(defaults.get("model_type")), {})})
    if LATENT.keys() <= defaults.keys() and not names:
        sizes |= LATENT
    elif not names:
        sizes |= {k: 24 for k in NO_HEAD_DIM if isinstance(defaults.get(k), int) or (k == "head_dim" and k in defaults)}
    if "initializer_range" in defaults:
        sizes["initializer_range"] = 0.2
    return sizes


def _by_layer(defaults: dict[str, Any], sizes: dict[str, Any]) -> dict[str, Any]:
    """Lists with an entry for each layer, thinned out evenly for fewer layers."""
    count = next((key for key in LAYER_COUNTS if key in sizes), None)
    if count is None:
        return {}
    before, after = defaults[count], sizes[count]
    chosen = [round(i * (before - 1) / max(after - 1, 1)) for i in range(after)]
    lists = {k: v for k, v in defaults.items() if isinstance(v, list) and len(v) == before and k not in BY_LAYER}
    return {k: [v[i] for i in chosen] for k, v in lists.items()}


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
