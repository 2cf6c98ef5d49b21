"""What a model's first attention layer reads, as float64 arrays: the values that :func:`first_layer` returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from posenc.errors import ShapeError
from posenc.formats.weights.tensors import LARGEST, Array
from posenc.spec import Rotary


def _unset() -> Array:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class Projections:
    """The query and key projections of one layer.

    Args:
        query: ``(heads, head_dim, width)``.
        key: ``(key_heads, head_dim, width)``; ``key_heads`` divides ``heads``, and query head ``h`` reads key head
            ``h // (heads / key_heads)``.
        query_bias, key_bias: ``(heads, head_dim)`` and ``(key_heads, head_dim)``; zeros unless given.
        query_norm, key_norm: ``(head_dim,)`` weights of an RMS normalisation of each head (Qwen3); None for none.
        norm_eps: its epsilon.
        multiplier: factor on the scores beside ``1 / sqrt(head_dim)``.
        causal: whether a token attends only to itself and earlier ones.
    """

    query: Array
    key: Array
    query_bias: Array = field(default_factory=_unset)
    key_bias: Array = field(default_factory=_unset)
    query_norm: Array | None = None
    key_norm: Array | None = None
    norm_eps: float = 1e-6
    multiplier: float = 1.0
    causal: bool = False

    def __post_init__(self) -> None:
        for name in ("query", "key"):
            _array(self, name, 3)
            if not np.size(getattr(self, f"{name}_bias")):
                object.__setattr__(self, f"{name}_bias", np.zeros(getattr(self, name).shape[:2]))
            _array(self, f"{name}_bias", 2)
            if getattr(self, f"{name}_norm") is not None:
                _array(self, f"{name}_norm", 1)
        ok = self.query.shape[1:] == self.key.shape[1:] and self.heads % self.key_heads == 0
        ok = ok and self.query_bias.shape == self.query.shape[:2] and self.key_bias.shape == self.key.shape[:2]
        ok = ok and all(n is None or n.shape == (self.head_dim,) for n in (self.query_norm, self.key_norm))
        if not ok:
            raise ShapeError(
                "query is (heads, head_dim, width), key (key_heads, head_dim, width), biases without the width",
                (self.query.shape, self.key.shape, self.query_bias.shape, self.key_bias.shape),
            )

    @property
    def heads(self) -> int:
        return int(self.query.shape[0])

    @property
    def key_heads(self) -> int:
        return int(self.key.shape[0])

    @property
    def head_dim(self) -> int:
        return int(self.query.shape[1])

    @property
    def width(self) -> int:
        return int(self.query.shape[2])

    @property
    def scale(self) -> float:
        """The factor on the scores."""
        return float(self.multiplier * self.head_dim**-0.5)

    def key_head(self, head: int) -> int:
        """The key head that a query head reads."""
        return head // (self.heads // self.key_heads)


@dataclass(frozen=True, eq=False)
class AdditiveLayer:
    """A first layer that reads ``LayerNorm(word + type + position)``.

    Args:
        words: ``(tokens, width)``, a row for each token of the sentence.
        positions: ``(rows, width)``, learned or sinusoidal; row ``n`` is position ``n``.
        projections: queries and keys.
        types: ``(width,)`` or ``(tokens, width)``: token-type (segment) part; zeros unless given.
        norm_weight, norm_bias: ``(width,)`` of the layer normalisation; ones and zeros unless given.
        eps: its epsilon.
    """

    words: Array
    positions: Array
    projections: Projections
    types: Array = field(default_factory=_unset)
    norm_weight: Array = field(default_factory=_unset)
    norm_bias: Array = field(default_factory=_unset)
    eps: float = 1e-12

    def __post_init__(self) -> None:
        width = self.projections.width
        for name, otherwise in (
            ("types", np.zeros(width)),
            ("norm_weight", np.ones(width)),
            ("norm_bias", np.zeros(width)),
        ):
            if not np.size(getattr(self, name)):
                object.__setattr__(self, name, otherwise)
        for name, dimensions in (("words", 2), ("positions", 2), ("norm_weight", 1), ("norm_bias", 1)):
            _array(self, name, dimensions, width)
        tokens = len(self.words)
        _array(self, "types", np.ndim(self.types), width)
        if self.types.shape not in ((width,), self.words.shape):
            raise ShapeError(f"types are (width,) or {self.words.shape}", self.types.shape)
        object.__setattr__(self, "types", np.broadcast_to(self.types, self.words.shape))
        _epsilon(self.eps)
        if not 1 <= tokens <= len(self.positions):
            raise ShapeError(
                f"a sentence has 1 to {len(self.positions)} tokens, the rows of the position table", tokens
            )


@dataclass(frozen=True, eq=False)
class RotaryLayer:
    """A first layer that reads ``RMSNorm(word)`` and turns queries and keys by position.

    Args:
        words: ``(tokens, width)``.
        norm_weight: ``(width,)``.
        projections: queries and keys; their channels paired as ``encoding`` says.
        encoding: the rotary encoding with its scalings.
        eps: epsilon of the normalisation.
    """

    words: Array
    norm_weight: Array
    projections: Projections
    encoding: Rotary
    eps: float = 1e-6

    def __post_init__(self) -> None:
        _array(self, "words", 2, self.projections.width)
        _array(self, "norm_weight", 1, self.projections.width)
        _epsilon(self.eps)
        if self.encoding.head_dim != self.projections.head_dim:
            raise ShapeError(
                f"the encoding is for heads of {self.projections.head_dim} channels", self.encoding.head_dim
            )


def _epsilon(value: float) -> None:
    if not 0 < value <= 1:
        raise ShapeError("the epsilon of a normalisation is positive and at most 1", value)


def _array(owner: Any, name: str, dimensions: int, width: int | None = None) -> None:
    value = np.asarray(getattr(owner, name))
    if (
        value.dtype.kind not in "iuf"
        or value.ndim != dimensions
        or not value.ndim
        or (width is not None and value.shape[-1] != width)
    ):
        wide = "" if width is None else f" ending in the width {width}"
        raise ShapeError(f"{name} is an array of {dimensions} dimensions{wide}", (value.dtype, value.shape))
    value = value.astype(np.float64)
    if not value.size or not (np.abs(value) <= LARGEST).all():
        raise ShapeError(f"{name} holds finite numbers up to {LARGEST:g}", value.shape)
    object.__setattr__(owner, name, value)
