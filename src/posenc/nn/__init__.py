"""Every encoding as a PyTorch module, right in every dtype and under every way of running a model.

Names are loaded on first use: importing the room costs little more than importing torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from posenc.nn.building import build
from posenc.nn.interfaces import (
    ContentEncoding,
    InputEncoding,
    Positions,
    QueryKeyEncoding,
    ScoreEncoding,
    as_positions,
)

if TYPE_CHECKING:
    from posenc.nn.attention import Attention, Cache
    from posenc.nn.baselines import ClockEncoding, ConstantEncoding, OneHotEncoding, RandomVectorsEncoding
    from posenc.nn.biases import AlibiBias, KerpleBias, T5RelativeBias
    from posenc.nn.channels import AlibiChannels, WaveChannels
    from posenc.nn.combine import Add, Concatenate, Gated, Weighted, combination
    from posenc.nn.contextual import ContextualPositions, ForgettingPositions
    from posenc.nn.converting import convert_channels, convert_projection
    from posenc.nn.disentangled import DisentangledScores
    from posenc.nn.fire import FireBias
    from posenc.nn.fourier import FourierFeatures, LearnableFourierFeatures
    from posenc.nn.hierarchical import HierarchicalEncoding, sentence_positions
    from posenc.nn.images import (
        PatchGrid,
        mae_sinusoid,
        pad_to_patches,
        patch_grid,
        row_major_sinusoid,
        simple_vit_sinusoid,
        vit_table,
    )
    from posenc.nn.inputs import AdaptiveSinusoid, SinusoidalEncoding
    from posenc.nn.layers import LayerEncodings, from_model
    from posenc.nn.learned import AdjustedSinusoid, LearnedTable
    from posenc.nn.mixed_media import Multimodal, multimodal
    from posenc.nn.moving import MovableKeys, move_keys
    from posenc.nn.numerals import digits, random_start
    from posenc.nn.patching import declare_lengths, patch, patched, unpatch
    from posenc.nn.positions import grid, instants, packed, padded, randomised, sequence
    from posenc.nn.relative import RelativeSinusoidVectors, ShawVectors
    from posenc.nn.rotary import RotaryEmbedding
    from posenc.nn.rotary_functions import apply_rotary_pos_emb, both_columns, rotary_embedding
    from posenc.nn.scaled_queries import QueryScaling
    from posenc.nn.selective import SelectivePositions
    from posenc.nn.shards import shard, shard_indices, unsharded
    from posenc.nn.sinusoidal_biases import SandwichBias, SinusoidalRelativeBias
    from posenc.nn.time import CalendarEncoding, SeasonalEncoding, Time2VecEncoding
    from posenc.nn.transformer_xl import TransformerXLScores

_NAMES = {
    "attention": ("Attention", "Cache"),
    "baselines": ("ClockEncoding", "ConstantEncoding", "OneHotEncoding", "RandomVectorsEncoding"),
    "biases": ("AlibiBias", "KerpleBias", "T5RelativeBias"),
    "channels": ("AlibiChannels", "WaveChannels"),
    "combine": ("Add", "Concatenate", "Gated", "Weighted", "combination"),
    "contextual": ("ContextualPositions", "ForgettingPositions"),
    "converting": ("convert_channels", "convert_projection"),
    "disentangled": ("DisentangledScores",),
    "fire": ("FireBias",),
    "fourier": ("FourierFeatures", "LearnableFourierFeatures"),
    "hierarchical": ("HierarchicalEncoding", "sentence_positions"),
    "images": (
        "PatchGrid",
        "mae_sinusoid",
        "pad_to_patches",
        "patch_grid",
        "row_major_sinusoid",
        "simple_vit_sinusoid",
        "vit_table",
    ),
    "inputs": ("AdaptiveSinusoid", "SinusoidalEncoding"),
    "layers": ("LayerEncodings", "from_model"),
    "learned": ("AdjustedSinusoid", "LearnedTable"),
    "mixed_media": ("Multimodal", "multimodal"),
    "moving": ("MovableKeys", "move_keys"),
    "numerals": ("digits", "random_start"),
    "patching": ("declare_lengths", "patch", "patched", "unpatch"),
    "positions": ("grid", "instants", "packed", "padded", "randomised", "sequence"),
    "relative": ("RelativeSinusoidVectors", "ShawVectors"),
    "rotary": ("RotaryEmbedding",),
    "rotary_functions": ("apply_rotary_pos_emb", "both_columns", "rotary_embedding"),
    "scaled_queries": ("QueryScaling",),
    "selective": ("SelectivePositions",),
    "shards": ("shard", "shard_indices", "unsharded"),
    "sinusoidal_biases": ("SandwichBias", "SinusoidalRelativeBias"),
    "time": ("CalendarEncoding", "SeasonalEncoding", "Time2VecEncoding"),
    "transformer_xl": ("TransformerXLScores",),
}
"""Which module has which names; those loaded above aside."""
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "AdaptiveSinusoid",
    "Add",
    "AdjustedSinusoid",
    "AlibiBias",
    "AlibiChannels",
    "Attention",
    "Cache",
    "CalendarEncoding",
    "ClockEncoding",
    "Concatenate",
    "ConstantEncoding",
    "ContentEncoding",
    "ContextualPositions",
    "DisentangledScores",
    "FireBias",
    "ForgettingPositions",
    "FourierFeatures",
    "Gated",
    "HierarchicalEncoding",
    "InputEncoding",
    "KerpleBias",
    "LayerEncodings",
    "LearnableFourierFeatures",
    "LearnedTable",
    "MovableKeys",
    "Multimodal",
    "OneHotEncoding",
    "PatchGrid",
    "Positions",
    "QueryKeyEncoding",
    "QueryScaling",
    "RandomVectorsEncoding",
    "RelativeSinusoidVectors",
    "RotaryEmbedding",
    "SandwichBias",
    "ScoreEncoding",
    "SeasonalEncoding",
    "SelectivePositions",
    "ShawVectors",
    "SinusoidalEncoding",
    "SinusoidalRelativeBias",
    "T5RelativeBias",
    "Time2VecEncoding",
    "TransformerXLScores",
    "WaveChannels",
    "Weighted",
    "apply_rotary_pos_emb",
    "as_positions",
    "both_columns",
    "build",
    "combination",
    "convert_channels",
    "convert_projection",
    "declare_lengths",
    "digits",
    "from_model",
    "grid",
    "instants",
    "mae_sinusoid",
    "move_keys",
    "multimodal",
    "packed",
    "pad_to_patches",
    "padded",
    "patch",
    "patch_grid",
    "patched",
    "random_start",
    "randomised",
    "rotary_embedding",
    "row_major_sinusoid",
    "sentence_positions",
    "sequence",
    "shard",
    "shard_indices",
    "simple_vit_sinusoid",
    "unpatch",
    "unsharded",
    "vit_table",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'posenc.nn' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"posenc.nn.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
