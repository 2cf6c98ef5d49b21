"""Broken biases, buckets, attention."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from mutants.register import mutant


def relative(n_q, n_k):
    return np.arange(n_k) - (np.arange(n_q)[:, None] + n_k - n_q)


def slopes(n):
    if n & (n - 1) == 0:
        return np.array([2.0 ** (-8 * (h + 1) / n) for h in range(n)])
    low = 1 << (n.bit_length() - 1)
    return np.concatenate([slopes(low), slopes(2 * low)[::2][: n - low]])


@mutant("bias-alibi-off-by-one", "alibi(8)", "bias-function", recovered={"first head": 0})
def from_head_zero(n_q, n_k):
    return np.array([2.0 ** (-8 * h / 8) for h in range(8)])[:, None, None] * relative(n_q, n_k)


@mutant("bias-alibi-paper-vs-code", "alibi(40)", "bias-function", "convention", {"slopes": "paper"})
def one_sequence(num_heads):
    return np.array([2.0 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)])


@mutant("bias-alibi-sign", "alibi(6)", "bias-function", recovered={"sign": -1})
def bonus_for_distance(n_q, n_k):
    return -slopes(6)[:, None, None] * relative(n_q, n_k)


@mutant("bias-alibi-max-bias", "alibi(8)", "bias-function", recovered={"max_bias": 6})
def smaller_range(num_heads):
    return np.array([2.0 ** (-6 * (h + 1) / num_heads) for h in range(num_heads)])


@mutant("bias-alibi-power-of-two-cut", "alibi(12)", "bias-function", recovered={"heads of the slopes": 16})
def cut_from_sixteen(n_q, n_k):
    return slopes(16)[:12, None, None] * relative(n_q, n_k)


@mutant("bias-alibi-future-bonus", "alibi(6, symmetric=True)", "bias-function")
def signed_distance(n_q, n_k):
    return slopes(6)[:, None, None] * relative(n_q, n_k)


@mutant("bias-alibi-no-offset", "alibi(6, symmetric=True)", "offset-cache")
def counts_from_zero(n_q, n_k):
    return -slopes(6)[:, None, None] * np.abs(np.arange(n_k) - np.arange(n_q)[:, None])


@mutant("relative-zero-beyond-limit", "alibi(6, symmetric=True)", "relative-index", recovered={"limit": 16})
def dropped_beyond(n_q, n_k):
    distance = np.abs(relative(n_q, n_k))
    return -slopes(6)[:, None, None] * np.where(distance <= 16, distance, 0)


def bucket(rel, buckets=32, farthest=128, log=np.log):
    n = buckets // 2
    out = np.where(rel > 0, n, 0)
    r = np.abs(rel)
    exact = n // 2
    large = exact + (log(np.maximum(r, 1) / exact) / math.log(farthest / exact) * (n - exact)).astype(int)
    return out + np.where(r < exact, r, np.minimum(large, n - 1))


@mutant("bias-t5-direction", "t5_bias(8)", "bias-function", recovered={"sign": "query - key"})
def query_minus_key(relative_position):
    return bucket(-np.asarray(relative_position))


@mutant("bias-t5-bf16-log", "t5_bias(8)", "precision", recovered={"dtype of the logarithm": "bfloat16"})
def low_logarithm(relative_position):
    def low(v):
        return np.asarray(v).astype(ml_dtypes.bfloat16).astype(np.float64)

    rel = np.asarray(relative_position)
    r = np.maximum(np.abs(rel), 1)
    steps = low(low(np.log(low(low(r) / 8))) / math.log(16))
    large = np.minimum(8 + low(steps * 8).astype(int), 15)
    return np.where(rel > 0, 16, 0) + np.where(np.abs(rel) < 8, np.abs(rel), large)


@mutant("bias-t5-max-distance", "t5_bias(8)", "bias-function", recovered={"max_distance": 64})
def nearer_limit(relative_position):
    return bucket(np.asarray(relative_position), farthest=64)


def turned(x, positions, twice=False):
    d = x.shape[-1]
    angle = np.outer(positions, [10000.0 ** (-2 * i / d) for i in range(d // 2)]) * (2 if twice else 1)
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], axis=-1)


def attend(q, k, v, scale, bias=0.0, hidden=None):
    s = scale * q @ np.swapaxes(k, -1, -2) + bias
    n = s.shape[-1]
    s = np.where(np.tril(np.ones((n, n), bool)) if hidden is None else hidden, s, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


@mutant(
    "factor-softmax-missing",
    "rotary(16) >> yarn(40, original=4096, mscale=1, mscale_all_dim=1, softmax_mscale=1)",
    "attention-factor",
)
def scale_without_correction(q, k, v, positions):
    from posenc.formulas import rotate
    from posenc.spec import parse

    e = parse("rotary(16) >> yarn(40, original=4096, mscale=1, mscale_all_dim=1)")[0]
    return attend(rotate(q, positions, e), rotate(k, positions, e), v, 1 / 4)


@mutant("scores-not-divided", "rotary(16)", "attention-factor", recovered={"softmax scale": 1})
def no_scale(q, k, v, positions):
    return attend(turned(q, positions), turned(k, positions), v, 1.0)


@mutant("attention-keys-twice", "rotary(16)", "double-application")
def keys_turned_twice(q, k, v, positions):
    return attend(turned(q, positions), turned(k, positions, twice=True), v, 1 / 4)


@mutant("attention-left-padding", "rotary(16)", "mask-padding")
def mask_ignored(q, k, v, positions, attention_mask=None):
    return attend(turned(q, positions), turned(k, positions), v, 1 / 4)


@mutant("attention-packing", "rotary(16)", "packing")
def documents_see_each_other(q, k, v, positions, document=None):
    return attend(turned(q, positions), turned(k, positions), v, 1 / 4)


@mutant("attention-alibi-scaled", "alibi(4)", "bias-function", recovered={"factor on the bias": 0.125})
def bias_divided_too(q, k, v, positions):
    at = np.asarray(positions)
    rel = at[None] - at[:, None]
    scale = 64**-0.5
    return attend(q, k, v, scale, slopes(4)[:, None, None] * rel * scale)
