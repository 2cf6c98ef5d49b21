"""The rotary of SmolLM2-135M as real engines compute it, each case with how far float32 angles may be off.

An engine's angle is ``position * theta`` in float32. Each rounding on the way to it is off by at most ``2^-24`` of the
angle, so after ``n`` of them a pair stands at most ``n * 2^-24 * position * theta`` radians from where it should: the
float32 angle error at that position. ``n`` follows from how the engine gets its ``theta``:

* ``mx.fast.rope`` (ml-explore/mlx ``mlx/fast.cpp``): ``exp(-i ln(base) / pairs)``, so roundings of the exponent count
  ``|ln theta|`` times; with ``freqs`` given, their reciprocals.
* llama.cpp (ggml-org/llama.cpp ``ggml/src/ggml-cpu/ops.cpp``): the position is multiplied by ``base^(-2 / n_dims)``
  once for each pair before, so roundings add up with the pair's number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from engines import ggml
from posenc.formulas import frequencies, pairs_of, rotate
from posenc.spec import Factors, Linear, Llama3, Rotary, Yarn

HEADS, TOKENS, WIDTH = 9, 3, 64
POSITIONS = (0, 1, 3, 127, 1021, 4093, 8189)
"""First of three positions in a row; 8191 is the last that SmolLM2 was trained on."""
U = 2.0**-24
LAST_ROUNDINGS = 6
"""Cosine and sine, two products and a sum: roundings of the result itself, not of its angle."""

SMOLLM2 = Rotary(WIDTH, base=1e5)
ADJACENT = SMOLLM2.replace(interleaved=True)
FACTORS = tuple(1 + 0.11 * i for i in range(WIDTH // 2))


class Case(NamedTuple):
    """What an engine is asked for, and the value that says the same."""

    engine: str
    name: str
    value: Rotary
    turn: Callable[[np.ndarray, int], np.ndarray]
    roundings: Callable[[np.ndarray], np.ndarray]


def mlx(**options: Any) -> Callable[[np.ndarray, int], np.ndarray]:
    """Calls of ``mx.fast.rope`` for ``x`` ``(heads, tokens, head_dim)`` from a position on."""

    def turn(x: np.ndarray, first: int) -> np.ndarray:
        import mlx.core as mx

        given = {"traditional": False, "base": 1e5, "scale": 1.0, "dims": WIDTH, **options}
        if "freqs" in given:
            given |= {"freqs": mx.array(given["freqs"].astype(np.float32)), "base": None}
        dims = given.pop("dims")
        with mx.stream(mx.cpu):
            return np.array(mx.fast.rope(mx.array(x[None]), dims, offset=first, **given))[0]

    return turn


def llama_cpp(**options: Any) -> Callable[[np.ndarray, int], np.ndarray]:
    """Calls of ``ggml_rope_ext``."""

    def turn(x: np.ndarray, first: int) -> np.ndarray:
        at = np.arange(first, first + x.shape[1], dtype=np.int32)
        given = {"n_dims": WIDTH, "freq_base": 1e5, **options}
        return ggml.rope(x.swapaxes(0, 1), at, **given).swapaxes(0, 1)

    return turn


def by_exponent(more: int = 0) -> Callable[[np.ndarray], np.ndarray]:
    """Roundings of ``exp(-i * (ln(base) / pairs))``: three of the exponent, two of exp, one of the angle."""
    return lambda theta: 3 * np.abs(np.log(theta)) + 3 + more


def by_products(more: int = 0) -> Callable[[np.ndarray], np.ndarray]:
    """Roundings of ``position * s * s * …``: the product's own and that of ``s``, for each pair before."""
    return lambda theta: 2 * np.arange(len(theta)) + 1 + more


def few(theta: np.ndarray) -> np.ndarray:
    """Roundings of a given wavelength, its reciprocal and the angle."""
    return np.full(len(theta), 3.0)


LLAMA3 = SMOLLM2 >> Llama3(8.0, original=8192)
MLX = "mx.fast.rope"
LLAMA_CPP = "llama.cpp"
WAVELENGTHS = 1 / frequencies(LLAMA3).theta[0]
YARN = Yarn(4.0, original=8192)
STEEP = Yarn(7.0, original=2048, beta_fast=24.0, beta_slow=2.0)
AS_YARN = {"freq_scale": 1 / 4, "ext_factor": 1.0, "n_ctx_orig": 8192}
AS_STEEP = {"freq_scale": 1 / 7, "ext_factor": 1.0, "n_ctx_orig": 2048, "beta_fast": 24.0, "beta_slow": 2.0}
CASES = (
    Case(MLX, "traditional=False", SMOLLM2, mlx(), by_exponent()),
    Case(MLX, "traditional=True", ADJACENT, mlx(traditional=True), by_exponent()),
    Case(MLX, "dims=48", SMOLLM2.replace(rotary_dim=48), mlx(dims=48), by_exponent()),
    Case(MLX, "base=5e5", Rotary(WIDTH, base=5e5), mlx(base=5e5), by_exponent()),
    Case(MLX, "scale=1/4", SMOLLM2 >> Linear(4.0), mlx(scale=1 / 4), by_exponent(1)),
    Case(MLX, "freqs of Llama 3", LLAMA3, mlx(freqs=WAVELENGTHS), few),
    Case(
        MLX,
        "freqs, traditional=True",
        LLAMA3.replace(interleaved=True),
        mlx(freqs=WAVELENGTHS, traditional=True),
        few,
    ),
    Case(LLAMA_CPP, "NEOX", SMOLLM2, llama_cpp(), by_products()),
    Case(LLAMA_CPP, "NORMAL", ADJACENT, llama_cpp(mode=ggml.NORMAL), by_products()),
    Case(LLAMA_CPP, "n_dims=48", SMOLLM2.replace(rotary_dim=48), llama_cpp(n_dims=48), by_products(1)),
    Case(LLAMA_CPP, "freq_scale=1/4", SMOLLM2 >> Linear(4.0), llama_cpp(freq_scale=1 / 4), by_products(1)),
    Case(LLAMA_CPP, "freq_factors", SMOLLM2 >> Factors(FACTORS), llama_cpp(freq_factors=FACTORS), by_products(2)),
    Case(LLAMA_CPP, "YaRN", SMOLLM2 >> YARN, llama_cpp(**AS_YARN), by_products(4)),
    Case(LLAMA_CPP, "YaRN, betas, NORMAL", ADJACENT >> STEEP, llama_cpp(mode=ggml.NORMAL, **AS_STEEP), by_products(5)),
)


def query(heads: int = HEADS) -> np.ndarray:
    """float32 ``(heads, tokens, head_dim)``, the same each time."""
    return np.random.default_rng(7).standard_normal((heads, TOKENS, WIDTH)).astype(np.float32)


def allowed(case: Case, position: int) -> float:
    """The float32 angle error at a position, radians: the largest over pairs, and the roundings of the result."""
    theta = np.abs(frequencies(case.value).theta[0])
    return float((case.roundings(theta) * theta).max() * (position + TOKENS - 1) * U + LAST_ROUNDINGS * U)


def off(got: np.ndarray, x: np.ndarray, value: Rotary, first: int) -> float:
    """How far pairs are from where the float64 formula turns them, in parts of their length: radians, if small."""
    at = np.arange(first, first + x.shape[1])
    a, b = pairs_of(value).T
    exact = rotate(x, at, value)
    difference = got.astype(np.float64) - exact
    length = np.hypot(exact[..., a], exact[..., b])
    rest = np.delete(difference, np.concatenate((a, b)), axis=-1)
    if rest.any():
        raise AssertionError("channels that are not rotated have changed")
    return float((np.hypot(difference[..., a], difference[..., b]) / length).max())
