"""The few tensors that a model's first attention layer needs, and the tokens of a sentence.

From a model folder or a safetensors file beside its ``config.json``, or from a GGUF file.
"""

from posenc.formats.weights.layers import AdditiveLayer, Projections, RotaryLayer
from posenc.formats.weights.loading import FirstLayer, first_layer
from posenc.formats.weights.tensors import GgufFile, SafetensorsFiles
from posenc.formats.weights.tokens import MOST_TOKENS, Tokens, tokenized

__all__ = [
    "MOST_TOKENS",
    "AdditiveLayer",
    "FirstLayer",
    "GgufFile",
    "Projections",
    "RotaryLayer",
    "SafetensorsFiles",
    "Tokens",
    "first_layer",
    "tokenized",
]
