"""Which types are compared with transformers, and how a tiny model's config is read."""

from __future__ import annotations

from typing import Any

from posenc.formats.huggingface import model_types, read_config
from posenc.formats.huggingface.registry import home
from posenc.spec import ModelPositions, Rotary

HOMES = ("decoder", "rotary_choices", "rotary_partial", "rotary_latent", "rotary_encoders", "rotary_layers")
MINE = [t for t in model_types() if home(t) in HOMES]
REMOTE = {
    *("Baichuan", "baichuan", "chatglm", "deepseek", "internlm", "internlm2", "kimi_k2", "minicpm", "orion", "qwen"),
    *("RefinedWeb", "RefinedWebModel", "Yi"),
}
"""Types whose code came with the weights: transformers has no class to compare with."""
TYPES = sorted(set(MINE) - REMOTE)
TABLES = ("gptj", "codegen", "roformer")
"""Types that hold a table of sines instead of frequencies."""
NO_ROTARY = ("jamba",)
NO_SCALING = ("cosmos3_edge_text", "dbrx", "esm", "recurrent_gemma")
"""The base is read from a key of its own, or the class refuses every scaling."""
ROUND_OFF = 3e-6
"""float32: exponent, power, and for ramps a difference of numbers near 1."""


def read(config: Any) -> ModelPositions:
    return read_config(config.to_dict(), name="tiny", source="test").positions


def rotaries(positions: ModelPositions) -> dict[str, Rotary]:
    return {k.name: e for k in positions.kinds for e in k.encodings if isinstance(e, Rotary)}


WITH_FREQUENCIES = [t for t in TYPES if t not in (*TABLES, *NO_ROTARY)]
ROTARY_ONLY = (
    "chameleon",
    "csm",
    "csm_depth_decoder_model",
    "evolla",
    "t5gemma2_text",
    "t5gemma2_decoder",
    "idefics",
    "phi4_multimodal",
    "t5_gemma_module",
    "voxtral_realtime_text",
)
"""Their models want images, audio or large towers: only the rotary submodule is instantiated."""
