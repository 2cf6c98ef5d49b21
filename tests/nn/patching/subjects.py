"""Tiny random models whose logits depend strongly on positions, and ways of running them. Nothing here is posenc's."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import transformers
from torch import Tensor, nn

transformers.logging.set_verbosity_error()

TOKENS = 11
SIZES = {
    "vocab_size": 97,
    "hidden_size": 64,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.2,
    "pad_token_id": 0,
    "attn_implementation": "eager",
}
LATENT = {
    **{"num_key_value_heads": 4, "q_lora_rank": 24, "kv_lora_rank": 20, "qk_nope_head_dim": 10, "qk_rope_head_dim": 6},
    **{"v_head_dim": 14, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1},
    **{"first_k_dense_replace": 1, "moe_intermediate_size": 24},
}
LONG = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0 + 0.02 * i for i in range(8)],
    "long_factor": [1.5 + 0.7 * i for i in range(8)],
}
MROPE = {"rope_theta": 1e4, "rope_type": "default", "mrope_section": [2, 3, 3]}
VISION = {
    "depth": 1,
    "hidden_size": 32,
    "embed_dim": 32,
    "num_heads": 2,
    "out_hidden_size": 64,
    "intermediate_size": 32,
}
TEXT = {k: v for k, v in SIZES.items() if k != "attn_implementation"}

ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "llama3": (
        "Llama",
        {
            "rope_parameters": {
                **{"rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0},
                **{"high_freq_factor": 4.0, "original_max_position_embeddings": 32},
            }
        },
    ),
    "mistral": ("Mistral", {"head_dim": 16, "sliding_window": 7}),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", {"head_dim": 22}),
    "gemma": ("Gemma", {"head_dim": 16}),
    "gemma3": (
        "Gemma3",
        {
            "head_dim": 16,
            "query_pre_attn_scalar": 4,
            "sliding_window": 7,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
            "rope_parameters": {
                "sliding_attention": {"rope_type": "default", "rope_theta": 3e3},
                "full_attention": {"rope_type": "linear", "rope_theta": 2e4, "factor": 2.0},
            },
        },
    ),
    "phi": ("Phi", {"partial_rotary_factor": 0.5}),
    "phi3 short": ("Phi3", {"rope_parameters": LONG, "original_max_position_embeddings": 13}),
    "phi3 long": ("Phi3", {"rope_parameters": LONG, "original_max_position_embeddings": 5}),
    "gpt_neox": ("GPTNeoX", {"rotary_pct": 0.5}),
    "gptj": ("GPTJ", {"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 128, "rotary_dim": 10}),
    "codegen": ("CodeGen", {"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 128, "rotary_dim": 10}),
    "deepseek_v2": ("DeepseekV2", {**LATENT, "topk_method": "greedy"}),
    "deepseek_v3": (
        "DeepseekV3",
        {
            **LATENT,
            "rope_parameters": {
                **{"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 0.7},
                **{"original_max_position_embeddings": 64},
            },
        },
    ),
    "glm4": ("Glm4", {"head_dim": 16, "partial_rotary_factor": 0.5}),
    "olmo2": ("Olmo2", {}),
    "cohere": ("Cohere", {"logit_scale": 1.0}),
    "gpt_oss": ("GptOss", {"head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 7}),
    "smollm3": ("SmolLM3", {"no_rope_layer_interval": 3}),
    "llama4": ("Llama4", {"head_dim": 16, "num_local_experts": 2, "intermediate_size_mlp": 48}),
}
"""By a short name: the prefix of transformers' classes, and what is not as in SIZES."""


def config(name: str, **more: Any) -> Any:
    prefix, extra = ARCHITECTURES[name]
    suffix = "TextConfig" if prefix in ("Gemma3", "Llama4") else "Config"
    return getattr(transformers, prefix + suffix)(**{**SIZES, **extra, **more})


def model(name: str, seed: int = 5, **more: Any) -> Any:
    torch.manual_seed(seed)
    return getattr(transformers, f"{ARCHITECTURES[name][0]}ForCausalLM")(config(name, **more)).eval()


def multimodal(name: str) -> Any:
    """Qwen2-VL or Qwen3-VL whole, with a vision tower that stays unused."""
    torch.manual_seed(5)
    prefix = {"qwen2_vl": "Qwen2VL", "qwen3_vl": "Qwen3VL"}[name]
    text = {**TEXT, "head_dim": 16, "rope_parameters": {**MROPE, "mrope_section": [3, 3, 2]} if "3" in name else MROPE}
    configuration = getattr(transformers, f"{prefix}Config")(
        text_config=text, vision_config=VISION, attn_implementation="eager", image_token_id=95, video_token_id=96
    )
    configuration.initializer_range = 0.2
    return getattr(transformers, f"{prefix}ForConditionalGeneration")(configuration).eval()


def tokens(rows: int = 1, count: int = TOKENS) -> Tensor:
    """Token ids that are no padding, different in every row."""
    return (torch.arange(rows * count).reshape(rows, count) * 37 + 11) % 89 + 1


def prefill(subject: Any) -> Tensor:
    return subject(input_ids=tokens(2), use_cache=False).logits


def token_by_token(subject: Any, given: int = 3, count: int = TOKENS, rows: int = 2) -> Tensor:
    ids, cache, found = tokens(rows, count), None, []
    for start, stop in [(0, given), *((i, i + 1) for i in range(given, count))]:
        answer = subject(
            input_ids=ids[:, start:stop],
            position_ids=torch.arange(start, stop).expand(rows, -1),
            cache=cache,
            use_cache=True,
        )
        cache = answer.past_key_values
        found.append(answer.logits)
    return torch.cat(found, 1)


def left_padded(subject: Any) -> Tensor:
    """A row of 11 tokens beside one of 7 with four padding tokens before it; logits of the real tokens."""
    ids, mask = tokens(2), torch.ones(2, TOKENS, dtype=torch.long)
    ids[1, :4], mask[1, :4] = 0, 0
    at = (mask.cumsum(-1) - 1).clamp(min=0)
    return subject(input_ids=ids, attention_mask=mask, position_ids=at, use_cache=False).logits[mask.bool()]


RUNS: dict[str, Callable[[Any], Tensor]] = {
    "prefill": prefill,
    "token by token": token_by_token,
    "left-padded": left_padded,
}


def originals(subject: nn.Module) -> list[nn.Module]:
    """transformers' own text rotary submodules."""
    return [m for m in subject.modules() if type(m).__name__.endswith("RotaryEmbedding") and _text(m)]


def _text(module: nn.Module) -> bool:
    return "transformers.models" in type(module).__module__ and "Vision" not in type(module).__name__


@contextmanager
def without_rotation(subject: nn.Module) -> Iterator[None]:
    """transformers' own rotary as if every token stood at position 0."""

    def still(module: nn.Module, _: Any, answer: Any) -> Any:
        if isinstance(answer, Tensor):
            return torch.ones_like(answer)
        by_table = "embed_positions" in dict(module.named_buffers())  # these return (sin, cos)
        first, second = answer
        one, zero = torch.ones_like(first), torch.zeros_like(second)
        return (zero, one) if by_table else (one, zero)

    hooks = [m.register_forward_hook(still) for m in originals(subject)]
    yield
    for hook in hooks:
        hook.remove()


@contextmanager
def poisoned(subject: nn.Module, monkeypatch: Any) -> Iterator[None]:
    """Every rotary class of the type's module raises when it runs."""
    code = importlib.import_module(type(subject).__module__)
    with monkeypatch.context() as patching:
        for name, owner in vars(code).items():
            if isinstance(owner, type) and name.endswith("RotaryEmbedding"):
                patching.setattr(owner, "forward", _raise)
        yield


def _raise(*_: Any, **__: Any) -> Any:
    raise AssertionError("transformers' own rotary ran")
