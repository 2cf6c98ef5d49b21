"""Formulas in words for encodings at the input without pairs of their own: corrections, scales, time, baselines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def input_formulas(number: Callable[[Any], str], formula: Callable[[Any], str]) -> dict[str, Callable[[Any], str]]:
    """A line for each kind, from the caller's way of writing numbers and of describing a nested encoding."""

    def adjusted(e: Any) -> str:
        covered = " x ".join(map(str, e.shape))
        if e.form == "table":
            what = "plus a trained correction C for each entry, 0 at first"
        else:
            what = "times 1 + a plus b, trained for each channel, 0 at first"
        return f"{formula(e.sinusoid)}; {what}; {covered} positions, none beyond"

    def hierarchical(e: Any) -> str:
        at = f"one index taken apart by {', '.join(map(str, e.sizes))}" if e.sizes else "a coordinate for each level"
        levels = "; ".join(f"level {i}: {formula(level)}" for i, level in enumerate(e.levels))
        return f"{len(e.levels)} levels side by side, {at}; {levels}"

    def calendar(e: Any) -> str:
        form = "sin, cos (2π v / n)" if e.form == "cyclic" else "v / (n - 1) - 1/2"
        trend = f"; and t / {number(e.trend)}" if e.trend is not None else ""
        return f"{form} of {', '.join(e.features)} of epoch times, {e.per_second} to a second{trend}"

    def time2vec(e: Any) -> str:
        t = f"t = (stamp - {number(e.origin)}) / {number(e.unit)}"
        return f"w_0 t + φ_0 and sin(w_i t + φ_i), i = 1 … {e.dim - 1}, all trained; {t}"

    def fourier(e: Any) -> str:
        rows = f"B {e.dim // 2} x {e.axes} of {number(e.sigma)} · N(0, 1) drawn from seed {e.seed}"
        return f"cos 2π B v, sin 2π B v; {rows}"

    def learnable_fourier(e: Any) -> str:
        r = f"r = [cos W x, sin W x] / √{e.features}"
        return f"GeLU(r W_1 + b_1) W_2 + b_2 with {r}, {e.hidden} hidden channels, all trained"

    def random_vectors(e: Any) -> str:
        return f"row p of {e.length} rows of {number(e.scale)} · N(0, 1) drawn from seed {e.seed}; fixed, none beyond"

    return {
        "adjusted": adjusted,
        "hierarchical": hierarchical,
        "calendar": calendar,
        "time2vec": time2vec,
        "fourier": fourier,
        "learnable_fourier": learnable_fourier,
        "one_hot": lambda e: f"1 in channel p, 0 elsewhere; {e.dim} positions, none beyond",
        "random_vectors": random_vectors,
        "constant": lambda e: f"{number(e.level)} in every channel at every position",
        "clock": lambda e: f"sin, cos (2π p / {number(e.period)}) repeated over {e.dim // 2} pairs",
    }
