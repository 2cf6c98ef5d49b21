"""Broken frequencies and cosines as data: scalings, factors, uninitialised buffers, layers."""

from __future__ import annotations

import math

import numpy as np

from mutants.register import data


def plain(d, base=10000.0):
    return np.array([base ** (-2 * i / d) for i in range(d // 2)])


def yarn(d, base, factor, low, high):
    ramp = np.clip((np.arange(d // 2) - low) / (high - low), 0, 1)
    return plain(d, base) * (1 - ramp) + plain(d, base) / factor * ramp


def llama3(d, base, factor, original, low=1.0, high=4.0):
    out = []
    for theta in plain(d, base):
        wave = 2 * math.pi / theta
        if wave < original / high:
            out.append(theta)
        elif wave > original / low:
            out.append(theta / factor)
        else:
            s = (original / wave - low) / (high - low)
            out.append((1 - s) * theta / factor + s * theta)
    return np.array(out)


LLAMA32 = "rotary(64, base=500000) >> llama3(32, original=8192)"
LLAMA31 = "rotary(128, base=500000) >> llama3(8, original=8192)"
OSS = "rotary(64, base=150000) >> yarn(32, original=4096, truncate=False)"

RAMP = np.clip((np.arange(32) - 8) / 10, 0, 1)
FAST, SLOW = plain(64, 15e4), plain(64, 15e4) / 32
OSS_CUT = "rotary(64, base=150000) >> yarn(32, original=4096)"

data("scaling-llama32-factor", llama3(64, 5e5, 8, 8192), LLAMA32, "scaling-parameters", recovered={"llama3.factor": 8})
data("scaling-llama3-discarded", plain(128, 5e5), LLAMA31, "scaling-parameters")
data("scaling-yarn-truncate", yarn(64, 15e4, 32, 8, 18), OSS, "scaling-parameters", recovered={"yarn.truncate": "True"})
data(
    "scaling-yarn-clamp",
    yarn(64, 1e4, 8, 22, 31),
    "rotary(64) >> yarn(8, original=131072)",
    "scaling-parameters",
    recovered={"ramp end": 31},
)
data("scaling-yarn-inside-power", FAST * (1 - RAMP) + plain(64, 32 * 15e4) * RAMP, OSS_CUT, "scaling-parameters")
data(
    "yarn-exchanged-betas",
    yarn(64, 15e4, 32, 17, 9),
    "rotary(64, base=150000) >> yarn(32, original=4096)",
    "scaling-parameters",
)
data("yarn-ramp-upside-down", SLOW * (1 - RAMP) + FAST * RAMP, OSS_CUT, "scaling-parameters")
data(
    "config-explicit-factor",
    yarn(128, 1e6, 1.25, 23, 40),
    "rotary(128, base=1000000) >> yarn(4, original=32768)",
    "config-parsing",
    recovered={"yarn.factor": 1.25},
)
data("config-v5-block-ignored", plain(128), LLAMA31, "config-parsing", recovered={"base": 10000})
data("theta-wrong-value", plain(128, 1e4), "rotary(128, base=1000000)", "config-parsing", recovered={"base": 10000})
data("linear-factor-twice", plain(26) / 16, "rotary(26) >> linear(4)", "scaling-parameters")
data(
    "linear-factor-multiplied",
    plain(26) * 4,
    "rotary(26) >> linear(4)",
    "scaling-parameters",
    recovered={"factor on every frequency": 16},
)
data(
    "buffer-esm-fp16-freqs",
    plain(64).astype(np.float16).astype(np.float32),
    "rotary(64)",
    "buffer-state-dict",
    "convention",
    {"dtype of the frequencies": "float16"},
)
data("meta-to-empty-v5", np.array([3.1e-41, 0.0, 4.6e18, 0.0, 1.2e-38, 7.0, 0.0, 3e5]), "rotary(16)", "meta-init")
data("meta-zeros", np.zeros(13), "rotary(26)", "meta-init")
data("frequencies-reversed", plain(26)[::-1].copy(), "rotary(26)", "exponent")
data("frequencies-as-wavelengths", 1 / plain(26), "rotary(26)", "time-unit", "naming")
data(
    "half-minus-one-rotary",
    np.array([10000.0 ** (-i / 12) for i in range(13)]),
    "rotary(26)",
    "exponent",
    "convention",
    {"shift": 1},
)


def cos_sin(theta, gain=1.0, rows=300):
    angle = np.outer(np.arange(rows), theta)
    return gain * np.cos(angle), gain * np.sin(angle)


YARN16 = "rotary(64) >> yarn(16, original=4096, mscale=1, mscale_all_dim=1)"
BOUNDS = (10, 23)
data(
    "factor-generic-yarn-ratio",
    cos_sin(yarn(64, 1e4, 16, *BOUNDS), 1.27725887222),
    YARN16,
    "attention-factor",
    recovered={"attention factor": 1.27725887222},
)
data(
    "factor-cossin-conflated",
    cos_sin(yarn(64, 1e4, 40, *BOUNDS), 1.26080377741),
    "rotary(64) >> yarn(40, original=4096, mscale=0.707, mscale_all_dim=0.707)",
    "attention-factor",
    recovered={"attention factor": 1.26080377741},
)
data(
    "factor-missing",
    cos_sin(yarn(64, 1e4, 16, *BOUNDS)),
    "rotary(64) >> yarn(16, original=4096)",
    "attention-factor",
    recovered={"attention factor": 1},
)
data(
    "scaling-yarn-switched-off",
    cos_sin(plain(64)),
    "rotary(64) >> yarn(40, original=4096)",
    "scaling-parameters",
    recovered={"attention factor": 1},
)
data(
    "perlayer-modernbert-legacy",
    {f"layers.{i}.inv_freq": plain(64, 16e4) for i in range(6)},
    "modernbert",
    "per-layer-base",
    recovered={"base": 160000},
)
