"""Random encodings with at most one fault, under a random calling convention; plain loops, nothing of posenc.

``case(seed)`` returns the subject, what is wanted as a line of notation, the kinds that may be named and the parameter
with its value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import torch


@dataclass
class Made:
    """A subject and what must be said of it."""

    subject: Any
    expect: str
    kinds: tuple[str, ...] = ()
    parameter: tuple[str, float] | None = None
    fault: str = "none"
    convention: str = ""
    options: dict = field(default_factory=dict)


@dataclass
class Turn:
    """Numbers of a rotation."""

    d: int
    rotary: int
    interleaved: bool
    base: float
    scaling: tuple = ()
    theta: np.ndarray | None = None
    gain: float = 1.0
    sign: float = 1.0
    positions: Any = np.asarray
    denominator: int | None = None


def powers(base, n, width):
    return np.array([math.exp(-2 * i / width * math.log(base)) for i in range(n)])


def scaled(theta, scaling, base, width):
    gain = 1.0
    for name, s in scaling:
        if name == "linear":
            theta = theta / s["factor"]
        if name == "ntk":
            theta = theta * np.array([s["factor"] ** (-2 * i / (width - 2)) for i in range(len(theta))])
        if name == "llama3":
            out = []
            for t in theta:
                turns = s["original"] * t / (2 * math.pi)
                if turns < s["low"]:
                    out.append(t / s["factor"])
                elif turns > s["high"]:
                    out.append(t)
                else:
                    m = (turns - s["low"]) / (s["high"] - s["low"])
                    out.append((1 - m) * t / s["factor"] + m * t)
            theta = np.array(out)
        if name == "yarn":
            ends = [
                width * math.log(s["original"] / (b * 2 * math.pi)) / (2 * math.log(base))
                for b in (s["fast"], s["slow"])
            ]
            low, high = max(ends[0], 0), min(ends[1], width - 1)
            ramp = np.clip((np.arange(len(theta)) - low) / max(high - low, 1e-3), 0, 1)
            theta = theta * (1 - ramp) + theta / s["factor"] * ramp
            gain *= 0.1 * math.log(s["factor"]) + 1
    return theta, gain


def words(t: Turn) -> str:
    line = f"rotary({t.d}"
    if t.rotary != t.d:
        line += f", rotary_dim={t.rotary}"
    if t.interleaved:
        line += ", interleaved=True"
    line += f", base={t.base!r})"
    for name, s in t.scaling:
        if name in ("linear", "ntk"):
            line += f" >> {name}({s['factor']!r})"
        if name == "llama3":
            line += (
                f" >> llama3({s['factor']!r}, original={s['original']}, "
                f"low_freq_factor={s['low']!r}, high_freq_factor={s['high']!r})"
            )
        if name == "yarn":
            line += (
                f" >> yarn({s['factor']!r}, original={s['original']}, "
                f"beta_fast={s['fast']!r}, beta_slow={s['slow']!r}, truncate=False)"
            )
    return line


def random_turn(rng) -> Turn:
    d = int(rng.choice([16, 24, 32, 48, 64, 80, 128]))
    rotary = d if rng.random() < 0.6 else int(rng.integers(4, d // 2 + 1)) * 2
    base = float(np.round(10 ** rng.uniform(2.5, 6.5), 3))
    name = rng.choice(["none", "none", "linear", "ntk", "yarn", "llama3"])
    scaling = ()
    factor = float(np.round(rng.uniform(1.5, 20), 3))
    if name in ("linear", "ntk"):
        scaling = ((name, {"factor": factor}),)
    if name == "yarn" and rotary >= 16:
        scaling = (
            (
                "yarn",
                {
                    "factor": factor,
                    "original": int(rng.integers(700, 9000)),
                    "fast": float(np.round(rng.uniform(8, 40), 2)),
                    "slow": float(np.round(rng.uniform(0.5, 4), 2)),
                },
            ),
        )
    if name == "llama3" and rotary >= 16:
        scaling = (
            (
                "llama3",
                {
                    "factor": factor,
                    "original": int(rng.integers(700, 9000)),
                    "low": float(np.round(rng.uniform(0.5, 1.5), 2)),
                    "high": float(np.round(rng.uniform(3, 8), 2)),
                },
            ),
        )
    t = Turn(d, rotary, bool(rng.random() < 0.5), base, scaling)
    t.theta, t.gain = scaled(powers(base, rotary // 2, rotary), scaling, base, rotary)
    return t


FAULTS = (
    "base",
    "doubled exponent",
    "denominator",
    "factor",
    "unscaled",
    "scaled twice",
    "width",
    "pairing",
    "sign",
    "rotated twice",
    "gain",
    "bf16 positions",
    "clamped",
    "frequencies bf16",
    "reversed",
    "quarter turn",
    "linear nobody asked for",
)


def broken(rng, t: Turn, fault: str):
    """Change the numbers; the kinds that may be named and the parameter, or None if the fault does not apply."""
    n, w = t.rotary // 2, t.rotary
    if fault == "base":
        new = float(t.base * rng.choice([0.5, 0.97, 1.01, 1.5, 10.0]))
        t.theta = scaled(powers(new, n, w), t.scaling, new, w)[0]
        return (("exponent", "config-parsing", "scaling-parameters"), ("base", new)) if not t.scaling else None
    if fault == "doubled exponent" and not t.scaling and t.base < 2e5:
        t.theta = powers(t.base, n, w) ** 2
        return ("exponent",), ("base", t.base**2)
    if fault == "denominator" and w < t.d and not t.scaling:
        t.theta = powers(t.base, n, t.d)
        return ("partial-rotary", "exponent"), ("exponent width", t.d)
    if fault == "factor" and t.scaling and t.scaling[0][0] != "llama3":
        name, s = t.scaling[0]
        new = float(np.round(s["factor"] * rng.choice([0.6, 1.3, 2.0]), 4))
        if new < 1.2:
            return None
        t.theta = scaled(powers(t.base, n, w), ((name, {**s, "factor": new}),), t.base, w)[0]
        if np.abs(t.theta / scaled(powers(t.base, n, w), t.scaling, t.base, w)[0] - 1).max() < 1e-3:
            return None
        return ("scaling-parameters", "config-parsing"), (f"{name}.factor", new)
    if fault == "unscaled" and t.scaling:
        before = t.theta
        t.theta = powers(t.base, n, w)
        return (
            (("scaling-parameters", "config-parsing", "double-application"), None)
            if np.abs(before / t.theta - 1).max() > 1e-3
            else None
        )
    if fault == "scaled twice" and t.scaling and t.scaling[0][0] in ("linear", "llama3"):
        before = t.theta
        t.theta = scaled(t.theta, t.scaling, t.base, w)[0]
        return (
            (("scaling-parameters", "double-application"), None) if np.abs(before / t.theta - 1).max() > 1e-3 else None
        )
    if fault == "width" and t.d > 16 and not t.scaling:
        new = int(rng.choice([v for v in range(8, t.d + 1, 2) if v != w]))
        t.rotary, t.theta = new, powers(t.base, new // 2, new)
        return ("partial-rotary",), ("rotary_dim", new)
    if fault == "pairing" and n > 1:
        t.interleaved = not t.interleaved
        return ("layout",), None
    if fault == "sign":
        t.sign = -1.0
        return ("layout",), ("sign", -1)
    if fault == "rotated twice":
        t.theta, t.gain = 2 * t.theta, t.gain**2
        return ("double-application",), ("factor on every frequency", 2)
    if fault == "gain":
        t.gain *= float(rng.choice([0.8, 1.1387, 1.5]))
        return ("attention-factor",), ("attention factor", t.gain)
    if fault == "bf16 positions":
        t.positions = lambda p: np.asarray(p).astype(ml_dtypes.bfloat16).astype(float)
        return ("precision",), None
    if fault == "clamped":
        rows = int(rng.integers(300, 3000))
        t.positions = lambda p: np.minimum(p, rows - 1)
        return ("table-length",), ("rows of the table", rows)
    if fault == "frequencies bf16" and n > 3:
        t.theta = t.theta.astype(ml_dtypes.bfloat16).astype(float)
        return ("precision", "buffer-state-dict"), None
    if fault == "reversed" and n > 2:
        t.theta = t.theta[::-1].copy()
        return ("exponent", "layout"), None
    if fault == "quarter turn":
        t.sign = 0.0
        return ("layout",), None
    if fault == "linear nobody asked for" and not t.scaling:
        factor = float(np.round(rng.uniform(1.5, 12), 3))
        t.theta = t.theta / factor
        return ("scaling-parameters", "time-unit", "exponent"), ("factor on every frequency", 1 / factor)
    return None


def cos_sin(t: Turn, positions):
    angle = np.asarray(t.positions(np.asarray(positions, dtype=float)))[..., None] * t.theta
    if t.sign == 0.0:
        return t.gain * np.sin(angle), t.gain * np.cos(angle)
    return t.gain * np.cos(angle), t.sign * t.gain * np.sin(angle)


def rotate(t: Turn, x, positions):
    """``x (..., tokens, d)``."""
    c, s = cos_sin(t, positions)
    out = np.array(x, dtype=np.float64)
    w = t.rotary
    a, b = (
        (out[..., :w:2].copy(), out[..., 1:w:2].copy())
        if t.interleaved
        else (out[..., : w // 2].copy(), out[..., w // 2 : w].copy())
    )
    new = a * c - b * s, b * c + a * s
    if t.interleaved:
        out[..., :w:2], out[..., 1:w:2] = new
    else:
        out[..., : w // 2], out[..., w // 2 : w] = new
    return out.astype(np.float32)


CALLS = (
    "x, positions",
    "bthd",
    "q, k, positions",
    "torch",
    "offset",
    "implied",
    "cos, sin",
    "module",
    "complex",
    "class",
    "vector",
    "table arrays",
    "dump",
    "angles",
)


def subject_of(rng, t: Turn, call: str, fault: str):
    """The subject under a calling convention; None where the fault cannot be seen that way."""
    hidden = {
        "pairing": ("cos, sin", "module", "complex", "vector", "table arrays", "angles"),
        "quarter turn": ("cos, sin", "module"),  # some return (sin, cos): the order is taken from row 0 and said
    }.get(fault, ())
    if call in hidden:
        return None
    if call in ("vector",) and fault in ("sign", "gain", "bf16 positions", "clamped", "quarter turn", "rotated twice"):
        return None
    if (call in ("table arrays", "dump", "angles") and fault in ("clamped", "bf16 positions")) or (
        call == "angles" and fault in ("gain", "rotated twice", "quarter turn", "sign")
    ):
        return None
    if call == "angles" and t.gain != 1.0:
        return None
    if call == "x, positions":
        return lambda x, positions: rotate(t, x, positions)
    if call == "bthd":
        return lambda x, position_ids: np.swapaxes(rotate(t, np.swapaxes(x, 1, 2), position_ids), 1, 2)
    if call == "q, k, positions":
        return lambda q, k, pos: (rotate(t, q, pos), rotate(t, k, pos))
    if call == "torch":
        return lambda query, positions: torch.from_numpy(rotate(t, query.double().numpy(), positions.double().numpy()))
    if call == "offset":
        return lambda x, offset=0: rotate(t, x, np.arange(x.shape[-2]) + offset)
    if call == "implied":
        return lambda t_: rotate(t, t_, np.arange(t_.shape[-2]))
    if call == "cos, sin":
        double = rng.integers(3)

        def both(positions):
            c, s = cos_sin(t, positions)
            if double == 1:
                c, s = np.concatenate([c, c], -1), np.concatenate([s, s], -1)
            return c.astype(np.float32), s.astype(np.float32)

        return both
    if call == "module":

        class Module(torch.nn.Module):
            def forward(self, x, position_ids):
                c, s = cos_sin(t, position_ids.double().numpy())
                return torch.from_numpy(np.concatenate([c, c], -1)).float(), torch.from_numpy(
                    np.concatenate([s, s], -1)
                ).float()

        return Module()
    if call == "complex":

        def table(dim, end, theta=1.0):
            c, s = cos_sin(t, np.arange(end))
            return torch.from_numpy((c + 1j * s).astype(np.complex64))

        return table
    if call == "class":

        class Rotary:
            def __init__(self, head_dim):
                self.head_dim = head_dim

            def rotate(self, x, positions):
                return rotate(t, x, positions)

        return Rotary
    if call == "vector":
        return t.theta.astype(np.float32)
    if call == "table arrays":
        c, s = cos_sin(t, np.arange(int(rng.integers(300, 900))))
        return c.astype(np.float32), s.astype(np.float32)
    if call == "angles":
        return np.arange(400)[:, None] * t.theta
    if call == "dump":
        at = np.sort(rng.choice(260, size=97, replace=False))
        at[:2] = (0, 1)
        at = np.unique(at)
        q = rng.normal(size=(2, 3, len(at), t.d)).astype(np.float32)
        return {"q_before": q, "q_after": rotate(t, q, at), "positions": at}
    raise AssertionError(call)


def rotary_case(seed: int, fault: str | None) -> Made | None:
    rng = np.random.default_rng(seed)
    t = random_turn(rng)
    expect = words(t)
    wrong: Any = ((), None)
    if fault is not None:
        wrong = broken(rng, t, fault)
        if wrong is None:
            return None
    call = str(rng.choice(CALLS))
    subject = subject_of(rng, t, call, fault or "")
    if subject is None:
        return None
    return Made(subject, expect, wrong[0], wrong[1], fault or "none", call)


TABLE_FAULTS = ("base", "exponent", "half-1", "order", "offset", "amplitude", "bf16", "short", "unit")


def sinusoid_case(seed: int, fault: str | None) -> Made | None:
    rng = np.random.default_rng(seed)
    d = int(rng.choice([12, 22, 34, 64, 128]))
    base = float(np.round(10 ** rng.uniform(2.5, 5.5), 2))
    order = str(rng.choice(["interleaved", "interleaved_cos_first", "sin|cos", "cos|sin"]))
    expect = f"sinusoidal({d}, base={base!r}, order={order!r})"
    theta, seen_order, shift, size, low, rows = powers(base, d // 2, d), order, 0, 1.0, False, 1500
    kinds: tuple[str, ...] = ()
    parameter = None
    if fault == "base":
        new = float(base * rng.choice([0.5, 0.98, 1.02, 3.0]))
        theta, kinds, parameter = powers(new, d // 2, d), ("exponent", "config-parsing"), ("base", new)
    elif fault == "exponent":
        if base > 1e5:
            return None
        theta, kinds, parameter = theta**2, ("exponent",), ("base", base**2)
    elif fault == "half-1":
        theta, kinds, parameter = (
            np.array([base ** (-i / (d / 2 - 1)) for i in range(d // 2)]),
            ("exponent",),
            ("shift", 1),
        )
    elif fault == "order":
        seen_order = str(
            rng.choice([o for o in ("interleaved", "interleaved_cos_first", "sin|cos", "cos|sin") if o != order])
        )
        kinds = ("layout",)
    elif fault == "offset":
        shift = int(rng.integers(1, 6))
        kinds, parameter = ("mask-padding", "offset-cache"), ("offset", shift)
    elif fault == "amplitude":
        size = float(rng.choice([0.5, 2.0, math.sqrt(d)]))
        kinds, parameter = ("integration",), ("amplitude", size)
    elif fault == "bf16":
        low, kinds = True, ("precision",)
    elif fault == "short":
        rows = int(rng.integers(300, 1000))
        kinds, parameter = ("table-length",), ("rows of the table", rows)
    elif fault == "unit":
        factor = float(rng.choice([1e-3, 0.25, 1 / 60]))
        theta, kinds, parameter = (
            theta * factor,
            ("time-unit", "scaling-parameters", "exponent"),
            ("factor on every frequency", factor),
        )

    def table(p):
        p = np.asarray(p, dtype=float) + shift
        p = p.astype(ml_dtypes.bfloat16).astype(float) if low else p
        angle = p[:, None] * theta
        s, c = size * np.sin(angle), size * np.cos(angle)
        if seen_order.startswith("inter"):
            parts = (s, c) if seen_order == "interleaved" else (c, s)
            return np.stack(parts, -1).reshape(len(p), d).astype(np.float32)
        return np.concatenate((s, c) if seen_order == "sin|cos" else (c, s), -1).astype(np.float32)

    call = str(rng.choice(["positions", "length, dim", "added", "array"]))
    if fault == "short":

        class Short(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("pe", torch.from_numpy(table(np.arange(rows))))

            def forward(self, x):
                return self.pe[: x.shape[1]].expand(len(x), -1, -1)

        return Made(Short(), expect, kinds, parameter, fault, "added")
    subject: Any
    if call == "positions":
        subject = lambda positions: table(positions)  # noqa: E731
    elif call == "length, dim":
        subject = lambda seq_len, d_model: torch.from_numpy(table(np.arange(seq_len)))  # noqa: E731
    elif call == "added":
        subject = lambda x: x + table(np.arange(x.shape[1]))  # noqa: E731
    else:
        subject = table(np.arange(rows))
    return Made(subject, expect, kinds, parameter, fault or "none", call)


BIAS_FAULTS = ("first head", "max_bias", "sign", "factor")


def alibi_case(seed: int, fault: str | None) -> Made | None:
    rng = np.random.default_rng(seed)
    heads = int(rng.choice([3, 4, 6, 8, 12, 16, 40]))
    if fault == "max_bias" and heads & (heads - 1):
        heads = 8

    def slopes(n, top=8.0, first=1):
        if n & (n - 1) == 0:
            return [2.0 ** (-top * (h + first) / n) for h in range(n)]
        low = 1 << (n.bit_length() - 1)
        return slopes(low, top, first) + slopes(2 * low, top, first)[::2][: n - low]

    values, kinds, parameter = np.array(slopes(heads)), (), None
    if fault == "first head":
        if heads & (heads - 1):
            return None
        values, kinds, parameter = np.array(slopes(heads, first=0)), ("bias-function",), ("first head", 0)
    elif fault == "max_bias":
        top = float(rng.choice([4.0, 6.0, 10.0, 16.0]))
        values, kinds, parameter = np.array(slopes(heads, top)), ("bias-function",), ("max_bias", top)
    elif fault == "sign":
        values, kinds, parameter = -values, ("bias-function",), ("sign", -1)
    elif fault == "factor":
        c = float(rng.choice([0.5, 2.5]))
        if heads in (8,) and c == 0.5:
            c = 0.7
        values, kinds, parameter = c * values, ("bias-function",), ("factor on every slope", c)
    call = str(rng.choice(["bias", "slopes", "array", "batched"]))
    if call == "slopes" and fault == "sign":
        call = "bias"

    def bias(n_q, n_k):
        return values[:, None, None] * (np.arange(n_k) - (np.arange(n_q)[:, None] + n_k - n_q))

    subject: Any = {
        "bias": bias,
        "slopes": lambda num_heads: values,
        "array": bias(47, 47),
        "batched": lambda q_len, k_len: torch.from_numpy(bias(q_len, k_len))[None],
    }[call]
    return Made(subject, f"alibi({heads})", kinds, parameter, fault or "none", call)


def case(seed: int, right: bool = False) -> Made:
    """A random case; seeds that make none go on to the next draw."""
    rng = np.random.default_rng([seed, 77])
    while True:
        draw = int(rng.integers(2**31))
        family = rng.choice(["rotary", "rotary", "rotary", "sinusoid", "alibi"])
        make, faults = {
            "rotary": (rotary_case, FAULTS),
            "sinusoid": (sinusoid_case, TABLE_FAULTS),
            "alibi": (alibi_case, BIAS_FAULTS),
        }[family]
        made = make(draw, None if right else str(rng.choice(faults)))
        if made is not None:
            return made
