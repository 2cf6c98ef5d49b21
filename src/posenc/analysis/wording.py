"""Formulas in words: every encoding and scaling as one line with its own numbers in it.

Symbols: ``p`` position, ``i`` pair, ``θ_i`` radians per position, ``λ_i = 2π/θ_i`` positions per turn, ``h`` head.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from posenc.analysis.wording_inputs import input_formulas
from posenc.analysis.wording_scores import score_formulas
from posenc.formulas import scalings
from posenc.formulas.spectrum import Frequencies
from posenc.spec import Rotary, Sinusoidal


def number(value: float | int | None) -> str:
    """A number as short as it is exact to ten digits.

    >>> number(500000.0), number(0.1), number(None)
    ('500000', '0.1', 'unknown')
    """
    if value is None:
        return "unknown"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15):
        return str(int(value))
    return f"{value:.10g}"


def spans(runs: tuple[tuple[int, int], ...]) -> str:
    """Runs of indices as text.

    >>> spans(((0, 4), (6, 6), (8, 9)))
    '0-4, 6, 8-9'
    """
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


LONG_TUPLE = re.compile(r"\((-?[\d.e+-]+)((?:, -?[\d.e+-]+){5,}), (-?[\d.e+-]+)\)")


def abridged(notation: str) -> str:
    """Notation with long tuples of numbers cut to their ends; for reading, not for parsing.

    >>> abridged("factors((1, 2, 3, 4, 5, 6, 7, 8))")
    'factors((1, … 8 numbers …, 8))'
    """
    return LONG_TUPLE.sub(lambda m: f"({m[1]}, … {m[2].count(',') + 2} numbers …, {m[3]})", notation)


def schedule_formula(schedule: Any, pairs: int, dim: int) -> str:
    """``θ_i`` of a schedule for ``i = 0 … pairs - 1``; ``dim`` is the width of its exponent."""
    span = f"i = 0 … {pairs - 1}"
    match schedule.kind:
        case "geometric":
            first = "" if schedule.first == 1 else f"{number(schedule.first)} · "
            exponent = f"2i/{dim}" if schedule.shift == 0 else f"i/({number(dim / 2)} - {number(schedule.shift)})"
            text = f"θ_i = {first}{number(schedule.base)}^(-{exponent}), {span}"
            if schedule.keep < 1:
                text += f"; 0 from i = {int(schedule.keep * 2 * pairs // 2)} on (the fastest {schedule.keep:g} turn)"
            return text
        case "arithmetic":
            return f"θ_i falls linearly from {number(schedule.first)} to {number(schedule.last)}, {span}"
        case "random":
            return f"θ_i = |{number(schedule.sigma)} · N(0, 1)| drawn from seed {schedule.seed}, {span}"
        case "periods":
            return f"θ = 2π k / P, {_periods(schedule)}"
    return f"θ_i given one by one, {span}"


def _periods(value: Any, limit: int = 12) -> str:
    shown = [f"P = {number(p)} with k = 1 … {k}" for p, k in zip(value.periods[:limit], value.harmonics, strict=False)]
    rest = len(value.periods) - len(shown)
    return "; ".join(shown) + (f"; and {rest} more periods" if rest > 0 else "")


def encoding_formula(e: Any) -> str:
    """One line for any encoding."""
    described = _ENCODINGS.get(e.kind)
    if described is None:  # the first line of its own description, without the paper
        return (type(e).__doc__ or e.kind).strip().splitlines()[0].rstrip(".")
    return described(e)


def _sinusoidal(e: Sinusoidal) -> str:
    width = e.dim - e.dim % 2 if e.odd == "zero" else e.dim
    at = f"(p + {e.offset})" if e.offset else "p"
    trained = "; trained from there" if e.learned else ""
    return f"sin({at} θ_i), cos({at} θ_i) added to the input; {_with_axes(e, width)}{trained}"


def _rotary(e: Rotary) -> str:
    text = f"pair i of q and k turned by p θ_i; {_with_axes(e, e.rotary_dim)}"
    if e.xpos_scale_base is not None:
        text += f"; q times ζ_i^(p/{number(e.xpos_scale_base)}), k divided by it, ζ_i = (2i + 0.4 d)/(1.4 d)"
    return text + ("; trained from there" if e.learned else "")


def _with_axes(e: Any, width: int) -> str:
    if e.axes is None:
        return schedule_formula(e.schedule, e.pairs, width)
    if e.axes.kind == "mixed":
        return (
            f"two axes at a random angle per head; {schedule_formula(e.schedule, e.pairs // 2, e.pairs)} in each half"
        )
    if e.axes.kind == "split" and e.axes.own_schedule:
        return "; ".join(f"axis {a}: {schedule_formula(e.schedule, n, 2 * n)}" for a, n in enumerate(e.axes.pairs))
    how = "in turn" if e.axes.kind == "interleave" else "in sections"
    return f"{schedule_formula(e.schedule, e.pairs, width)}; axes own {', '.join(map(str, e.axes.pairs))} pairs {how}"


def _learned(e: Any) -> str:
    grid = " x ".join(map(str, e.shape))
    at = f"p + {e.offset}" if e.offset else "p"
    prefix = f" after {e.prefix} rows without a position" if e.prefix else ""
    return f"row {at} of a trained table added to the input; {grid} positions of width {e.dim}{prefix}; none beyond"


def _alibi(e: Any) -> str:
    distance = "|i - j|" if e.symmetric else "(i - j)"
    return f"-m_h {distance} added to the score of query i and key j; {e.num_heads} heads"


def _t5(e: Any) -> str:
    per_sign = e.num_buckets // (2 if e.bidirectional else 1)
    sides = "for each sign" if e.bidirectional else "for keys before the query"
    return (
        f"a trained number for each of {e.num_heads} heads and {e.num_buckets} buckets of j - i added to the score; "
        f"{sides} {per_sign} buckets, {per_sign // 2} of them single distances, the rest logarithmic "
        f"up to {e.max_distance}"
    )


def _query_scale(e: Any) -> str:
    at = f"(p + {e.offset})" if e.offset else "p"
    return f"q times 1 + {number(e.beta)} ln(1 + floor({at} / {e.original}))"


def _seasonal(e: Any) -> str:
    trend = f"; and t / {number(e.trend)}" if e.trend is not None else ""
    return f"sin, cos (2π k t / P) added to the input; {_periods(e)}{trend}"


_ENCODINGS: dict[str, Callable[[Any], str]] = {
    **input_formulas(number, encoding_formula),
    **score_formulas(number, encoding_formula),
    "sinusoidal": _sinusoidal,
    "learned": _learned,
    "rotary": _rotary,
    "alibi": _alibi,
    "t5_bias": _t5,
    "query_scale": _query_scale,
    "seasonal": _seasonal,
    "unmodelled": lambda e: f"{e.name}: named, not computed" + (f" ({e.note})" if e.note else ""),
}


def scaling_formula(scaling: Any, before: Frequencies) -> str:
    """One line for a scaling that is applied to the frequencies ``before``."""
    executed = scaling.kind == "as_executed"
    rule = scaling.rule if executed else scaling.kind
    settings = SimpleNamespace(**scaling.fields()) if executed else scaling
    return f"{rule}: {_SCALINGS[rule](settings, before)}" + (" (as executed)" if executed else "")


def _ntk(s: Any, f: Frequencies) -> str:
    base, dim = scalings.based(f, "ntk")
    raised = scalings.ntk(f, s).base
    return f"base {number(base)} · {number(s.factor)}^({dim}/{dim - 2}) = {number(raised)}"


def _dynamic(s: Any, f: Frequencies) -> str:
    _, dim = scalings.based(f, "dynamic")
    grow = f"({number(s.factor)} L/{s.original} - {number(s.factor - 1)})"
    return f"base · {grow}^({dim}/{dim - 2}) for rows of L positions, L at least {s.original}"


def _by_parts(s: Any, f: Frequencies) -> str:
    (b1, b0), (g1, g0) = s.beta, s.gamma
    return (
        f"θ / {number(s.factor)} below {number(b0)} turns in {s.original} positions, NTK from {number(b1)}, "
        f"fading from {number(g0)} to θ kept at {number(g1)} turns"
    )


def _yarn(s: Any, f: Frequencies) -> str:
    base, dim = scalings.based(f, "yarn")
    low, high = (scalings.turning_pair(t, s.original, dim, base) for t in (s.beta_fast, s.beta_slow))
    ends = "rounded outwards" if s.truncate else "not rounded"
    return (
        f"θ kept where a pair makes {number(s.beta_fast)} turns or more in {s.original} positions, "
        f"θ / {number(s.factor)} at {number(s.beta_slow)} or fewer, linear in i between pairs {low:.4g} and "
        f"{high:.4g} ({ends})"
    )


def _llama3(s: Any, f: Frequencies) -> str:
    short, long = s.original / s.high_freq_factor, s.original / s.low_freq_factor
    return (
        f"θ kept where λ < {number(short)} = {s.original}/{number(s.high_freq_factor)}, θ / {number(s.factor)} "
        f"where λ > {number(long)} = {s.original}/{number(s.low_freq_factor)}, blended between"
    )


def _longrope(s: Any, f: Frequencies) -> str:
    def least_most(values: tuple[float, ...]) -> str:
        return f"{number(min(values))} … {number(max(values))}"

    return (
        f"θ_i / short_i ({least_most(s.short_factor)}) up to {s.original} positions, "
        f"θ_i / long_i ({least_most(s.long_factor)}) beyond"
    )


_SCALINGS: dict[str, Callable[[Any, Frequencies], str]] = {
    "linear": lambda s, f: f"θ / {number(s.factor)}",
    "ntk": _ntk,
    "dynamic": _dynamic,
    "by_parts": _by_parts,
    "yarn": _yarn,
    "llama3": _llama3,
    "longrope": _longrope,
    "resonance": lambda s, f: "every λ rounded to a whole number of positions",
    "factors": lambda s, f: f"θ_i / {number(min(s.values))} … {number(max(s.values))}, one factor for each pair",
}
