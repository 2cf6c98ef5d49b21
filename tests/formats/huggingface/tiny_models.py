"""Tiny random models of every rotary type, from transformers' own classes, and what their code does with positions.

Nothing here comes from posenc: it is the oracle of ``test_against_transformers.py``.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModel, PreTrainedModel

transformers.logging.set_verbosity_error()
torch.set_num_threads(1)

TOKENS = 7
LAYERS = 7
SIZES = (
    (r"^vocab_size(_per_layer_input)?$", 97),
    (r"(^|_)(num_local_experts|num_experts|n_routed_experts|moe_num_experts)$", 4),
    (r"(num_experts_per_tok|moe_topk|moe_k|top_k_experts)$", 2),
    (r"^(n_group|topk_group|num_expert_group)$", 1),
    (r"intermediate_size|ffn_hidden|n_inner|mlp_dim", 48),
    (r"^(num_hidden_layers|n_layer|n_layers|num_layers)$", LAYERS),
    (r"^(hidden_size|n_embd|d_model)$", 96),
    (r"^(num_attention_heads|n_head|n_heads)$", 4),
    (r"^(num_key_value_heads|num_kv_heads)$", 2),
    (r"^(max_position_embeddings|n_positions|max_seq_len)$", 512),
    (r"^original_max_position_embeddings$", 103),
    (r"^pad_token_id$", 0),
)
LATENT = {"num_key_value_heads": 4, "qk_nope_head_dim": 20, "qk_rope_head_dim": 12, "v_head_dim": 10}
INDEXED = {**LATENT, "index_n_heads": 2, "index_head_dim": 26, "index_topk": 5}
MROPE_12 = {"rope_parameters": {"rope_type": "default", "rope_theta": 7e5, "mrope_section": [3, 4, 5]}}
HYBRID = {"layer_types": ["linear_attention", "full_attention"] * 3 + ["full_attention"]}
EXTRA: dict[str, dict[str, Any]] = {
    "axk1": LATENT,
    "bamba": {"mamba_n_heads": 8, "mamba_d_head": 24, "attn_layer_indices": [1, 4]},
    "csm": {"num_codebooks": 3},
    "codegen": {"rotary_dim": 10},
    "deepseek_v2": {**LATENT, "num_experts_per_tok": 2, "first_k_dense_replace": 7},
    "deepseek_v3": LATENT,
    "deepseek_v32": INDEXED,
    "dbrx": {
        "attn_config": {"rope_theta": 5e5, "kv_n_heads": 2, "clip_qkv": 8.0},
        "ffn_config": {"ffn_hidden_size": 48, "moe_top_k": 1},
    },
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "first_k_dense_replace": 7},
    "esm": {"vocab_size": 97, "position_embedding_type": "rotary", "mask_token_id": 5},
    "exaone4": {"sliding_window": 3},
    "exaone_moe": {"sliding_window": 3},
    "gemma3n_text": {"num_kv_shared_layers": 0, "num_hidden_layers": 10},
    "gemma4_text": {"global_head_dim": 64, "head_dim": 22, "num_kv_shared_layers": 0},
    "gemma4_unified_text": {"global_head_dim": 64, "head_dim": 22},
    "glm4_moe_lite": LATENT,
    "glm4v_text": {"rope_parameters": {**MROPE_12["rope_parameters"]}},
    "glm4v_moe_text": {
        "head_dim": 24,
        "rope_parameters": {**MROPE_12["rope_parameters"], "mrope_section": [1, 2, 3], "partial_rotary_factor": 0.5},
    },
    "glm_image_text": MROPE_12,
    "glm_moe_dsa": INDEXED,
    "glm_ocr_text": MROPE_12,
    "gptj": {"rotary_dim": 10},
    "cosmos3_edge_text": {
        "head_dim": 24,
        "rope_parameters": {**MROPE_12["rope_parameters"], "mrope_section": [4, 4, 4]},
    },
    "granite_swa": {"layer_rope_theta": [0, 1e4, 3e4, 1e4, 0, 3e4, 1e4]},
    "granitemoe_swa": {"layer_rope_theta": [0, 1e4, 3e4, 1e4, 0, 3e4, 1e4]},
    "granitemoehybrid": {"mamba_n_heads": 8, "position_embedding_type": "rope", **HYBRID},
    "helium": {"head_dim": 24},
    "hunyuan_v1_dense": {"head_dim": 24},
    "hunyuan_v1_moe": {"head_dim": 24},
    "jamba": {"num_hidden_layers": 7, "attn_layer_period": 3, "attn_layer_offset": 1},
    "lfm2": {"full_attn_idxs": [1, 3, 6]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 3 + ["full_attention"], "num_dense_layers": 7},
    "llama4_text": {"no_rope_layer_interval": 3, "attention_chunk_size": 5, "head_dim": 22},
    "longcat_flash": {**LATENT, "head_dim": 12},
    "minicpm3": LATENT,
    "minimax": {"head_dim": 24},
    "ministral": {"head_dim": 24},
    "mistral4": LATENT,
    "mixtral": {"head_dim": 24},
    "paddleocr_vl_text": {"head_dim": 24, **MROPE_12},
    "qwen2_vl_text": MROPE_12,
    "qwen2_5_vl_text": MROPE_12,
    "qwen2_5_omni_text": MROPE_12,
    "qwen3_vl_text": {"head_dim": 24, "rope_parameters": {**MROPE_12["rope_parameters"], "mrope_section": [4, 4, 4]}},
    "qwen3_vl_moe_text": {"rope_parameters": {**MROPE_12["rope_parameters"], "mrope_section": [4, 4, 4]}},
    "qwen3_omni_moe_text": {"rope_parameters": {**MROPE_12["rope_parameters"], "mrope_section": [4, 4, 4]}},
    "recurrent_gemma": {"lru_width": 96},
    "smollm3": {"no_rope_layer_interval": 3},
    "youtu": LATENT,
}
"""What the plain sizes leave inconsistent, and settings that make a type show its particularities."""


def config(model_type: str, **more: Any) -> Any:
    """A config of this type with tiny sizes and whatever else is given."""
    defaults = AutoConfig.for_model(model_type).to_dict()
    sizes = {}
    for key, value in defaults.items():
        if isinstance(value, bool) or not isinstance(value, int | type(None)):
            continue
        for pattern, size in SIZES:
            if re.search(pattern, key) and (value is not None or key in ("num_key_value_heads", "pad_token_id")):
                sizes[key] = size
    return AutoConfig.for_model(model_type, **{**sizes, **EXTRA.get(model_type, {}), **more})


def code(configuration: Any) -> Any:
    """The module that holds the type's model code."""
    name = type(configuration).__module__.replace(".configuration_", ".modeling_")
    return importlib.import_module(name)


def build(configuration: Any) -> PreTrainedModel:
    """A random model, by the auto class or by the class in the type's module that takes this config."""
    try:
        model = AutoModel.from_config(configuration, attn_implementation="eager")
    except ValueError:
        module = code(configuration)
        made = [
            c
            for c in vars(module).values()
            if isinstance(c, type)
            and issubclass(c, PreTrainedModel)
            and c.__name__.endswith("Model")
            and c.config_class is type(configuration)
            and not c.__name__.endswith("PreTrainedModel")
        ]
        model = made[0]._from_config(configuration, attn_implementation="eager")
    return model.eval()


@cache
def model(model_type: str) -> PreTrainedModel:
    torch.manual_seed(20261130)
    return build(config(model_type))


def rotary_modules(built: torch.nn.Module) -> list[Any]:
    """Submodules that hold inverse frequencies and belong to the model's own config (not to an inner vision tower)."""
    found = [m for m in built.modules() if any(n.endswith("inv_freq") for n, _ in m.named_buffers(recurse=False))]
    return [m for m in found if type(m.config) is type(built.config)]


def rotary_class(configuration: Any) -> type[Any]:
    """The class of the type's text rotary, for types whose whole model cannot be built from a text config alone."""
    made = [
        c
        for n, c in vars(code(configuration)).items()
        if isinstance(c, type) and n.endswith("RotaryEmbedding") and not re.search("Vision|Audio|Prot", n)
    ]
    return made[0]


def frequencies(rotary: torch.nn.Module) -> dict[str | None, tuple[torch.Tensor, float]]:
    """Inverse frequencies and the factor on cos and sin, by layer type (None: for all layers)."""
    found: dict[str | None, tuple[torch.Tensor, float]] = {}
    for name, value in rotary.named_buffers(recurse=False):
        if name.endswith("inv_freq") and "original" not in name:
            prefix = name.removesuffix("inv_freq")
            factor = getattr(rotary, f"{prefix}attention_scaling", getattr(rotary, "attention_scaling", 1.0))
            found[prefix.removesuffix("_") or None] = (value.detach(), float(factor))
    return found


@dataclass
class Call:
    """One application of rotary: which layer, and query and key before and after, ``(heads, tokens, channels)``."""

    layer: int
    before: tuple[torch.Tensor, torch.Tensor]
    after: tuple[torch.Tensor, torch.Tensor]


def watched_forward(built: PreTrainedModel, monkeypatch: Any) -> tuple[list[Call], list[torch.Tensor]]:
    """Run 7 tokens and record every rotary application and every query that reaches the attention function."""
    module, calls, queries, pending = code(built.config), [], [], []
    at = {"layer": -1}

    def enter(index: int) -> Any:
        return lambda *_: at.update(layer=index)

    for name, sub in built.named_modules():
        found = re.search(r"(?:^|\.)(?:layers|layer|h|blocks)\.(\d+)$", name)
        if found:
            sub.register_forward_pre_hook(enter(int(found.group(1))))

    def tokens_second_last(x: torch.Tensor) -> torch.Tensor:
        axis = next(i for i, n in enumerate(x.shape[:-1]) if n == TOKENS)
        x = x.detach().double()[0] if x.ndim == 4 else x.detach().double()
        return x.movedim(axis - 1, -2) if x.ndim == 3 else x

    def record(before: tuple[Any, Any], after: tuple[Any, Any]) -> None:
        shaped = [tokens_second_last(x) for x in (*before, *after)]
        calls.append(Call(at["layer"], (shaped[0], shaped[1]), (shaped[2], shaped[3])))

    def watch(function: Any) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            before = [a.clone() for a in args[:2]]
            result = function(*args, **kwargs)
            if isinstance(result, torch.Tensor):  # one tensor at a time, key first (GPT-J)
                pending.append((before[0], result))
                if len(pending) == 2:
                    (key, turned_key), (query, turned_query) = pending
                    record((query, key), (turned_query, turned_key))
                    pending.clear()
            else:
                record((before[0], before[1]), (result[0], result[1]))
            return result

        return wrapper

    for name, function in list(vars(module).items()):
        if name.startswith(("apply_rotary", "apply_multimodal_rotary")) and callable(function):
            monkeypatch.setattr(module, name, watch(function))
    for owner in vars(module).values():  # RoFormer applies it in a static method
        if isinstance(owner, type) and "apply_rotary_position_embeddings" in vars(owner):
            inner = owner.apply_rotary_position_embeddings

            def reordered(sinusoid: Any, query: Any, key: Any, value: Any = None, inner: Any = inner) -> Any:
                result = inner(sinusoid, query, key, value)
                record((query, key), (result[0], result[1]))
                return result

            monkeypatch.setattr(owner, "apply_rotary_position_embeddings", staticmethod(reordered))
    if hasattr(module, "eager_attention_forward"):
        plain = module.eager_attention_forward

        def attention(owner: Any, query: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            queries.append(query.detach().double()[0])
            return plain(owner, query, *args, **kwargs)

        monkeypatch.setattr(module, "eager_attention_forward", attention)
    with torch.no_grad():
        built(input_ids=torch.arange(11, 11 + TOKENS)[None], use_cache=False)
    return calls, queries
