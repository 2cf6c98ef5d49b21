"""Broken rotations: pairing, partial width, precision, offsets, caches, factors."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import torch

from mutants.register import mutant


def angles(positions, d, base=10000.0):
    return np.outer(positions, [base ** (-2 * i / d) for i in range(d // 2)])


def half(x, angle, gain=1.0):
    a, b = np.split(x, 2, axis=-1)
    c, s = gain * np.cos(angle), gain * np.sin(angle)
    return np.concatenate([a * c - b * s, b * c + a * s], axis=-1)


@mutant("layout-titan-llama", "rotary(22)", "layout", "convention", {"interleaved": "True"})
def adjacent(x, positions):
    z = np.ascontiguousarray(x, dtype=np.float64).view(np.complex128)
    return (z * np.exp(1j * angles(positions, x.shape[-1]))).view(np.float64)


@mutant("layout-metal-concat", "rotary(22, interleaved=True)", "layout")
def split_writes(x, positions):
    angle = angles(positions, x.shape[-1])
    a, b = x[..., ::2], x[..., 1::2]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], axis=-1)


@mutant("layout-table-expansion", "rotary(22, interleaved=True)", "layout", recovered={"angles laid out for": "half"})
def tiled_for_halves(x, positions):
    angle = np.concatenate([angles(positions, x.shape[-1])] * 2, axis=-1)
    swapped = np.stack([-x[..., 1::2], x[..., ::2]], axis=-1).reshape(x.shape)
    return x * np.cos(angle) + swapped * np.sin(angle)


@mutant("partial-default-half", "rotary(64, rotary_dim=32)", "partial-rotary", recovered={"rotary_dim": 64})
def all_channels(x, positions):
    return half(x, angles(positions, 64))


@mutant("partial-wrong-denominator", "rotary(64, rotary_dim=24)", "partial-rotary", recovered={"exponent width": 64})
def denominator_of_the_head(x, positions):
    angle = np.outer(positions, [10000.0 ** (-2 * i / 64) for i in range(12)])
    return np.concatenate([half(x[..., :24], angle), x[..., 24:]], axis=-1)


@mutant("sign-of-rotation", "rotary(26)", "layout", recovered={"sign": -1})
def backwards(x, positions):
    return half(x, -angles(positions, 26))


@mutant("sin-cos-swapped", "rotary(26)", "layout", recovered={"sin and cos": "swapped"})
def swapped(x, positions):
    a, b = np.split(x, 2, axis=-1)
    c, s = np.sin(angles(positions, 26)), np.cos(angles(positions, 26))
    return np.concatenate([a * c - b * s, b * c + a * s], axis=-1)


@mutant("base-one-percent", "rotary(26)", "exponent", recovered={"base": 10100})
def base_off(x, positions):
    return half(x, angles(positions, 26, 10100.0))


@mutant(
    "double-rotation-yarn",
    "rotary(32) >> yarn(32, original=4096)",
    "double-application",
    recovered={"attention factor": 1.81326043404},
)
def rotated_twice(x, positions):
    from posenc.formulas import frequencies
    from posenc.spec import Rotary, Yarn

    f = frequencies(Rotary(32) >> Yarn(32, original=4096))
    return half(half(x, np.outer(positions, f.fused), f.gain), np.outer(positions, f.fused), f.gain)


@mutant("rotated-twice", "rotary(26)", "double-application", recovered={"factor on every frequency": 2})
def plainly_twice(x, positions):
    return half(half(x, angles(positions, 26)), angles(positions, 26))


@mutant("not-rotated", "rotary(26)", "integration")
def untouched(x, positions):
    return x.copy()


@mutant("keys-rotated-twice", "rotary(26)", "double-application", recovered={"key angle over query angle": 2})
def keys_twice(q, k, positions):
    angle = angles(positions, 26)
    return half(q, angle), half(half(k, angle), angle)


@mutant("precision-bf16-position", "rotary(26)", "precision", recovered={"dtype of the positions": "bfloat16"})
def low_positions(x, positions):
    return half(x, angles(positions.astype(ml_dtypes.bfloat16).astype(float), 26))


@mutant("precision-fp16-table", "rotary(32)", "precision", recovered={"dtype of the angles": "float16"})
def low_angles(x, positions):
    angle = angles(positions, 32).astype(np.float16).astype(float)
    return half(x, angle)


@mutant("precision-autocast-offset", "rotary(26)", "precision", recovered={"dtype of the angles": "bfloat16"})
class UnderAutocast(torch.nn.Module):
    def __init__(self, dim, base=10000.0):
        super().__init__()
        self.register_buffer("inv_freq", base ** (-torch.arange(0, dim, 2) / dim), persistent=False)

    def forward(self, x, position_ids):
        at = position_ids.float()[..., None]
        angle = (at @ self.inv_freq.float()[None]).double() if at.ndim == 2 else at @ self.inv_freq.float()[None]
        return torch.cat([angle, angle], -1).cos().float(), torch.cat([angle, angle], -1).sin().float()


@mutant("frequencies-bf16", "rotary(26)", "precision", recovered={"dtype of the frequencies": "bfloat16"})
def low_frequencies(x, positions):
    theta = (10000.0 ** (-np.arange(0, 26, 2) / 26)).astype(ml_dtypes.bfloat16).astype(float)
    return half(x, np.outer(positions, theta))


@mutant("offset-cache-key", "rotary(26)", "offset-cache")
class KeyedByLength:
    def __init__(self, dim, base=10000.0):
        self.dim, self.base, self.memo = dim, base, {}

    def __call__(self, x, offset=0):
        n = x.shape[-2]
        if n not in self.memo:
            self.memo[n] = angles(np.arange(n) + offset, self.dim, self.base)
        return half(x, self.memo[n])


@mutant("cache-ignores-positions", "rotary(26)", "offset-cache")
class KeyedByShape:
    def __init__(self, dim, base=10000.0):
        self.dim, self.base, self.memo = dim, base, {}

    def __call__(self, x, positions):
        n = len(positions)
        if n not in self.memo:
            self.memo[n] = angles(positions, self.dim, self.base)
        return half(x, self.memo[n])


@mutant("offset-ignored", "rotary(26)", "offset-cache", recovered={"position of the first single token": 0})
def ignores_offset(x, offset=0):
    return half(x, angles(np.arange(x.shape[-2]), 26))


@mutant("table-too-short", "llama-3.1-8b", "table-length", recovered={"rows of the table": 4096})
def clamped(x, positions):
    from posenc.formats.sources import read
    from posenc.formulas import frequencies

    theta = frequencies(read("llama-3.1-8b").encodings()[0]).fused
    return half(x, np.outer(np.minimum(positions, 4095), theta))


@mutant("table-wraps", "rotary(26)", "table-length", recovered={"rows of the table": 2048})
def wrapped(x, positions):
    return half(x, angles(np.asarray(positions) % 2048, 26))


@mutant("leak-dynamic-ntk", "rotary(26) >> dynamic(2, original=512)", "state-leak")
class Grows:
    def __init__(self, dim, base=10000.0):
        self.dim, self.base, self.longest = dim, base, 0

    def __call__(self, x, positions):
        self.longest = max(self.longest, int(np.max(positions)) + 1)
        stretch = 2 * max(self.longest, 512) / 512 - 1
        return half(x, angles(positions, self.dim, self.base * stretch ** (self.dim / (self.dim - 2))))


@mutant(
    "scaling-dyn-ntk-constant",
    "rotary(64) >> dynamic(2, original=512)",
    "scaling-parameters",
    recovered={"ntk.factor": 3},
)
def constant_stretch(x, positions):
    return half(x, angles(positions, 64, 10000.0 * 3 ** (64 / 62)))


@mutant("scaling-longrope-allocated", ("rotary(8) >> longrope(32, original=512, short_factor=(1.0, "
 "1.0, 1.0, 1.0), long_factor=(1.0, 4.0, 6.0, 9.0))"),
        "scaling-parameters", recovered={"longrope set": "long"})  # fmt: skip
def always_long(x, positions):
    theta = 10000.0 ** (-np.arange(0, 8, 2) / 8) / np.array([1.0, 4.0, 6.0, 9.0])
    return half(x, np.outer(positions, theta), math.sqrt(1 + math.log(32) / math.log(512)))


@mutant("scaling-longrope-chunked", ("rotary(8) >> longrope(32, original=512, short_factor=(1.0, "
 "1.0, 1.0, 1.0), long_factor=(1.0, 4.0, 6.0, 9.0))"),
        "scaling-parameters")  # fmt: skip
def by_token(x, positions):
    short = 10000.0 ** (-np.arange(0, 8, 2) / 8)
    theta = np.where(np.asarray(positions)[:, None] >= 512, short / np.array([1.0, 4.0, 6.0, 9.0]), short)
    return half(x, np.asarray(positions)[:, None] * theta, math.sqrt(1 + math.log(32) / math.log(512)))


@mutant("position-rounding", "rotary(26)", "position-rounding", "convention", {"positions": "floored"})
def whole_positions(x, positions):
    return half(x, angles(np.floor(positions), 26))


@mutant("xpos-not-shrinking", "rotary(32, xpos_scale_base=512.0)", "attention-factor")
def both_grow(q, k, positions):
    zeta = (np.arange(0, 32, 2) + 0.4 * 32) / (1.4 * 32)
    gain = zeta ** (np.asarray(positions)[:, None] / 512)
    return half(q, angles(positions, 32), gain), half(k, angles(positions, 32), gain)
