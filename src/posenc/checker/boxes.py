"""Black boxes: what a subject looks like once its calling convention is known. NumPy in, NumPy out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUNDING = {"float64": 2.0**-24, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Half the distance from 1 to the next number. bfloat16 has one bit more, since libraries truncate as often as round;
float64 results come from float32 inputs, which are what is asked with."""


@dataclass(frozen=True, eq=False)
class Turning:
    """Something that turns queries and keys by position.

    Args:
        head_dim: channels of a head.
        turn: ``(n, tokens, head_dim)`` vectors and ``(tokens,)`` positions to ``(n, tokens, head_dim)``.
        turn_key: the same for keys, where keys are treated by another call; None if they are not told apart.
        free: positions may be chosen freely; otherwise they are made by calling with as many tokens as needed.
        dtype: of the arithmetic.
        largest: the largest position that may be asked for; None if not known.
        calls: other ways to reach the same numbers, by name: ``offset`` (x, offset), ``step``, ``grid``…
    """

    head_dim: int
    turn: Callable[[Array, Array], Array]
    turn_key: Callable[[Array, Array], Array] | None = None
    free: bool = True
    dtype: str = "float32"
    largest: int | None = None
    calls: dict[str, Any] = field(default_factory=dict)

    @property
    def rounding(self) -> float:
        return ROUNDING.get(self.dtype, 2.0**-24)


@dataclass(frozen=True, eq=False)
class CosSin:
    """Something that gives cosines and sines (or complex numbers, or angles) for positions.

    Args:
        cos_sin: ``(tokens,)`` positions to two arrays ``(tokens, columns)``.
        form: ``cos, sin``, ``complex`` or ``angles``.
    """

    cos_sin: Callable[[Array], tuple[Array, Array]]
    form: str = "cos, sin"
    free: bool = True
    dtype: str = "float32"
    largest: int | None = None
    calls: dict[str, Any] = field(default_factory=dict)

    @property
    def rounding(self) -> float:
        return ROUNDING.get(self.dtype, 2.0**-24)


@dataclass(frozen=True, eq=False)
class Rows:
    """Something that gives one row for each position: a table, or a module that adds one to its input.

    Args:
        rows: ``(tokens,)`` positions to ``(tokens, width)``.
        adds: what the module does to its input, where it takes one: ``x (tokens, width), positions -> x``.
    """

    width: int
    rows: Callable[[Array], Array]
    free: bool = True
    dtype: str = "float32"
    largest: int | None = None
    adds: Callable[[Array, Array], Array] | None = None
    calls: dict[str, Any] = field(default_factory=dict)

    @property
    def rounding(self) -> float:
        return ROUNDING.get(self.dtype, 2.0**-24)


@dataclass(frozen=True, eq=False)
class Vector:
    """Numbers without positions: frequencies, or slopes.

    Args:
        values: ``(n,)``.
        holds: ``frequencies`` or ``slopes``.
    """

    values: Array
    holds: str = "frequencies"
    dtype: str = "float32"
    calls: dict[str, Any] = field(default_factory=dict)

    @property
    def rounding(self) -> float:
        return ROUNDING.get(self.dtype, 2.0**-24)


@dataclass(frozen=True, eq=False)
class Bias:
    """Something that is added to scores: ``(n_q, n_k)`` to ``(heads, n_q, n_k)``; queries are the last of the keys.

    ``rows_read`` gives the row of its table that each query and key read, where it looks them up in one.
    """

    bias: Callable[[int, int], Array]
    dtype: str = "float32"
    largest: int | None = None
    calls: dict[str, Any] = field(default_factory=dict)
    rows_read: Callable[[int, int], NDArray[np.int64]] | None = None

    @property
    def rounding(self) -> float:
        return ROUNDING.get(self.dtype, 2.0**-24)


@dataclass(frozen=True, eq=False)
class Buckets:
    """The bucket of each relative position ``key - query``: integers to integers."""

    buckets: Callable[[NDArray[np.int64]], NDArray[np.int64]]
    dtype: str = "float32"
    calls: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Attention:
    """Whole attention: ``q, k, v (heads, tokens, head_dim)`` and positions ``(tokens,)`` to the shape of ``q``.

    Further arguments by name, where the subject takes them: ``mask`` (tokens,) 1 for tokens and 0 for padding,
    ``document`` (tokens,).
    """

    head_dim: int
    heads: int
    attend: Callable[..., Array]
    takes: frozenset[str] = frozenset()
    causal: bool | None = None
    dtype: str = "float32"
    calls: dict[str, Any] = field(default_factory=dict)

    @property
    def rounding(self) -> float:
        return ROUNDING.get(self.dtype, 2.0**-24)


Box = Turning | CosSin | Rows | Vector | Bias | Buckets | Attention
