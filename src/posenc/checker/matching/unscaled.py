"""Hypotheses about the schedule: base, exponent, denominator, a common factor, rounding, the order of the pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from posenc.checker.boxes import Array
from posenc.checker.matching.explanation import Explanation, deviation, distance
from posenc.checker.matching.geometric import fit_geometric, readings
from posenc.checker.matching.spectrum import Wanted, minimum
from posenc.records.finding import Recovered

KINDS_OF_READING = {
    "doubled": ("exponent",),
    "halved": ("exponent",),
    "half-1": ("exponent",),
    "floored": ("exponent",),
    "denominator": ("partial-rotary", "exponent"),
    "ntk": ("scaling-parameters", "config-parsing"),
    "base-times": ("scaling-parameters", "config-parsing"),
    "default": ("config-parsing", "exponent"),
    "log10": ("exponent",),
    "log2": ("exponent",),
}


def schedule_hypotheses(theta: Array, wanted: Wanted, widths: dict[str, float], floor: float) -> Iterator[Explanation]:
    """Everything about base, exponent and first frequency."""
    yield from _other_base(theta, wanted, widths, floor)
    yield from _common_factor(theta, wanted, floor)
    yield from _first_and_base(theta, wanted, floor)
    yield from _index_shifted(theta, wanted)
    yield from _order(theta, wanted)
    yield from _rounded(theta, wanted)


def _other_base(theta: Array, wanted: Wanted, widths: dict[str, float], floor: float) -> Iterator[Explanation]:
    geometric = wanted.geometric
    if geometric is None or wanted.pairs < 2:
        return
    fit = fit_geometric(theta)
    guess = fit.base(wanted.dim) if fit else math.inf
    low, high = (max(guess / 30, 1e-6), guess * 30) if math.isfinite(guess) and guess > 0 else (1.01, 1e15)
    base, _ = minimum(lambda b: distance(theta, _safe(wanted, floor, base=b), floor), low, high)
    predicted = _safe(wanted, floor, base=base)
    step = 2 * math.log(base) / wanted.dim if base > 0 else 0.0
    left = distance(theta, predicted, floor)
    said = readings(step, geometric.base, wanted.dim, widths, tolerance=float(np.clip(10 * left, 1e-5, 2e-3)))
    power = math.log(base) / math.log(geometric.base) if base > 0 else 0.0
    for name, value in (("log10", 1 / math.log(10)), ("log2", 1 / math.log(2))):
        if not said and abs(power / value - 1) < max(10 * left, 1e-5):
            said = [(name, f"{name} is taken in place of ln: the base is {base:.6g}, not {geometric.base:g}")]
    kinds = tuple(dict.fromkeys(kind for key, _ in said for kind in KINDS_OF_READING[key])) or (
        "exponent",
        "config-parsing",
    )
    ratio = base / geometric.base
    cause = said[0][1] if said else f"the base is {base:.6g} ({ratio:.4g} times the wanted {geometric.base:g})"
    recovered = [Recovered(name="base", value=base, expected=geometric.base)]
    keys = [key for key, _ in said]
    exponent = 2 * math.log(geometric.base) / wanted.dim
    if {"doubled", "halved"} & set(keys):
        recovered.append(Recovered(name="exponent", value=step / exponent, expected=1.0))
    if "ntk" in keys:
        factor = (base / geometric.base) ** ((wanted.dim - 2) / wanted.dim)
        recovered.append(Recovered(name="ntk.factor", value=factor))
    if "denominator" in keys:
        width = 2 * math.log(geometric.base) / step
        recovered.append(Recovered(name="exponent width", value=width, expected=wanted.dim))
    if "half-1" in keys:
        recovered.append(Recovered(name="shift", value=1.0, expected=geometric.shift))
    others = [words for _, words in said[1:]]
    if said and said[0][0] not in ("default", "doubled", "halved", "log10", "log2"):
        others.append(f"the base is {base:.6g} with the wanted exponent")
    yield Explanation(
        key=said[0][0] if said else "base",
        kinds=kinds,
        cause=cause,
        residual=_worst(theta, predicted, floor),
        fitted=1,
        recovered=tuple(recovered),
        theta=predicted,
        readings=tuple(others),
        convention=bool(said) and said[0][0] == "half-1",
        prior=0 if said else 2,
    )


def _common_factor(theta: Array, wanted: Wanted, floor: float) -> Iterator[Explanation]:
    plain = wanted.theta()
    live = (np.abs(theta) > floor) & (np.abs(plain) > floor)
    if not live.any():
        if not (np.abs(theta) > floor).any():
            yield Explanation("none", ("integration", "scaling-parameters"), "nothing turns", 0.0, theta=theta)
        return
    ratio = float(np.median(theta[live] / plain[live]))
    if abs(abs(ratio) - 1) < 1e-7:
        return
    kinds, cause, prior = _factor_words(ratio, wanted)
    predicted = ratio * plain
    recovered = [Recovered(name="factor on every frequency", value=ratio, expected=1.0)]
    if len(wanted.chain) == 1 and wanted.chain[0][0] == "linear" and ratio > 0:
        factor = float(wanted.chain[0][1]["factor"])
        recovered.append(Recovered(name="linear.factor", value=factor / ratio, expected=factor))
    yield Explanation(
        key="factor",
        kinds=kinds,
        cause=cause,
        residual=_worst(theta, predicted, floor),
        fitted=1,
        recovered=tuple(recovered),
        theta=predicted,
        prior=prior,
    )


def _factor_words(ratio: float, wanted: Wanted) -> tuple[tuple[str, ...], str, int]:
    """What a common factor on all frequencies stands for."""
    size = abs(ratio)
    known: list[tuple[float, tuple[str, ...], str]] = [
        (2.0, ("double-application",), "the rotation is applied twice: every angle is doubled"),
        (1 / (2 * math.pi), ("time-unit",), "angles are counted in turns and taken for radians"),
        (2 * math.pi, ("time-unit",), "positions are multiplied by 2 pi"),
        (math.pi, ("time-unit",), "positions are multiplied by pi"),
        (math.pi / 180, ("time-unit",), "angles are counted in degrees and taken for radians"),
        (180 / math.pi, ("time-unit",), "radians are converted to degrees before the sine"),
        (1e-3, ("time-unit",), "positions are not scaled by 1000"),
        (1e3, ("time-unit",), "positions are scaled by 1000"),
        (3600.0, ("time-unit",), "seconds are taken for hours"),
        (1 / 3600.0, ("time-unit",), "hours are taken for seconds"),
        (60.0, ("time-unit",), "minutes are taken for hours, or seconds for minutes"),
        (1 / 60.0, ("time-unit",), "hours are taken for minutes, or minutes for seconds"),
    ]
    if wanted.geometric is not None and wanted.pairs > 1:
        theta = wanted.start().fused
        step = float(theta[1] / theta[0]) if theta[0] else 1.0
        known.append((step, ("exponent",), "the index of the pairs starts at 1 in place of 0"))
    for kind, settings in wanted.chain:
        factor = float(settings.get("factor") or 1.0)
        if kind == "linear" and factor != 1:
            known += [
                (factor, ("scaling-parameters", "config-parsing"), f"the linear factor {factor:g} is not applied"),
                (1 / factor, ("scaling-parameters",), f"the linear factor {factor:g} is applied twice"),
                (
                    factor * factor,
                    ("scaling-parameters",),
                    f"frequencies are multiplied by the factor {factor:g}, not divided",
                ),
            ]
    for value, kinds, words in known:
        if abs(size - value) <= 2e-3 * value:
            return kinds, words, 0
    if any(kind == "linear" for kind, _ in wanted.chain):
        factor = next(float(s["factor"]) for k, s in wanted.chain if k == "linear")
        return ("scaling-parameters",), f"the linear factor is {factor / size:.6g} in place of {factor:g}", 1
    if size < 1:
        return (
            ("scaling-parameters", "time-unit"),
            f"every frequency is divided by {1 / size:.6g}: a linear scaling nobody asked for",
            1,
        )
    return ("time-unit", "scaling-parameters"), f"every frequency is multiplied by {size:.6g}", 1


def _first_and_base(theta: Array, wanted: Wanted, floor: float) -> Iterator[Explanation]:
    geometric = wanted.geometric
    fit = fit_geometric(theta)
    if geometric is None or fit is None or wanted.pairs < 4 or wanted.chain or geometric.keep < 1:
        return
    predicted = fit.first * np.exp(-fit.step * np.arange(wanted.pairs)) * np.sign(np.median(theta) or 1.0)
    yield Explanation(
        key="first and base",
        kinds=("exponent", "time-unit"),
        cause=f"a geometric schedule from {fit.first:.6g} radians with base {fit.base(wanted.dim):.6g}",
        residual=_worst(theta, predicted, floor),
        fitted=2,
        recovered=(
            Recovered(name="first", value=fit.first, expected=geometric.first),
            Recovered(name="base", value=fit.base(wanted.dim), expected=geometric.base),
        ),
        theta=predicted,
        prior=3,
    )


def _index_shifted(theta: Array, wanted: Wanted) -> Iterator[Explanation]:
    """Pairs whose frequency is that of the next one or the one before."""
    if wanted.chain and wanted.geometric is not None and wanted.pairs > 2:
        plain = wanted.theta()
        for by, words in ((1, "next"), (-1, "previous")):
            predicted = np.roll(plain, -by)
            inner = slice(0, -1) if by > 0 else slice(1, None)
            gap = float(deviation(theta[inner], predicted[inner]).max())
            yield Explanation(
                "index", ("exponent",), f"each pair has the frequency of the {words} one", gap, theta=predicted
            )


def _order(theta: Array, wanted: Wanted) -> Iterator[Explanation]:
    plain = wanted.theta()
    if wanted.pairs > 1:
        yield Explanation(
            "reversed",
            ("exponent", "layout"),
            "the frequencies stand in reversed order",
            _worst(theta, plain[::-1], 0.0),
            theta=plain[::-1],
        )


def _rounded(theta: Array, wanted: Wanted) -> Iterator[Explanation]:
    plain = wanted.theta()
    for dtype in ("bfloat16", "float16"):
        predicted = rounded(plain, dtype)
        yield Explanation(
            key=f"rounded {dtype}",
            kinds=("precision", "buffer-state-dict"),
            cause=f"the frequencies were rounded to {dtype}",
            residual=_worst(theta, predicted, 0.0),
            recovered=(Recovered(name="dtype of the frequencies", value=dtype, expected="float32"),),
            theta=predicted,
        )


def rounded(values: Array, dtype: str) -> Array:
    """Values after a round trip through another type.

    >>> rounded(np.array([0.1, 1.0]), "bfloat16").tolist()
    [0.10009765625, 1.0]
    """
    import ml_dtypes

    to = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16, "float32": np.float32}[dtype]
    return np.asarray(np.asarray(values, dtype=np.float32).astype(to), dtype=np.float64)


def _worst(theta: Array, predicted: Array, floor: float) -> float:
    if theta.shape != predicted.shape:
        return math.inf
    return float(deviation(theta, predicted, floor).max())


def _safe(wanted: Wanted, floor: float, **changes: object) -> Array:
    """The predicted frequencies; numbers that cannot be computed with are far from everything."""
    del floor
    try:
        with np.errstate(all="ignore"):
            theta = wanted.theta(**changes)
        return theta if np.isfinite(theta).all() else np.full(wanted.pairs, 1e30)
    except (ArithmeticError, ValueError):
        return np.full(wanted.pairs, 1e30)
