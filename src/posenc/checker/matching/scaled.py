"""Hypotheses about scalings: left out, twice, another factor, exchanged ends, another rule, another set."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from posenc.checker.boxes import Array
from posenc.checker.matching.explanation import Explanation, deviation, distance
from posenc.checker.matching.spectrum import Chain, Wanted, minimum, run
from posenc.formulas.scalings import based, blend, ramp, turning_pair
from posenc.records.finding import Recovered

NUMBERS = {
    "linear": ("factor",),
    "ntk": ("factor",),
    "dynamic": ("factor", "original"),
    "by_parts": ("factor", "original"),
    "yarn": ("factor", "original", "beta_fast", "beta_slow"),
    "llama3": ("factor", "original", "low_freq_factor", "high_freq_factor"),
    "longrope": (),
    "resonance": (),
    "factors": (),
}


def scaling_hypotheses(theta: Array, wanted: Wanted, floor: float) -> Iterator[Explanation]:
    """Every change of the wanted chain of scalings, or a scaling where none is wanted."""
    if not wanted.chain:
        yield from _unwanted(theta, wanted, floor)
        return
    yield _fixed(theta, wanted, (), "unscaled", "the scaling is not applied: these are the unscaled frequencies", floor,
                 ("scaling-parameters", "config-parsing"))  # fmt: skip
    yield _fixed(theta, wanted, wanted.chain * 2, "twice", "the scaling is applied twice", floor,
                 ("scaling-parameters", "double-application"))  # fmt: skip
    if len(wanted.chain) > 1:
        yield _fixed(theta, wanted, wanted.chain[::-1], "order", "the scalings are applied in reversed order", floor)
        for i, (kind, _) in enumerate(wanted.chain):
            less = wanted.chain[:i] + wanted.chain[i + 1 :]
            yield _fixed(theta, wanted, less, f"without {kind}", f"{kind} is not applied", floor)
    for i, (kind, settings) in enumerate(wanted.chain):
        for name in NUMBERS.get(kind, ()):
            yield from _number(theta, wanted, i, kind, settings, name, floor)
        yield from _variants(theta, wanted, i, kind, settings, floor)
        yield from _other_rules(theta, wanted, i, kind, settings, floor)


def _predict(wanted: Wanted, chain: Chain) -> Any:
    try:
        with np.errstate(all="ignore"):
            f = wanted.frequencies(chain=chain)
        return f if np.isfinite(f.fused).all() else None
    except (ArithmeticError, ValueError, TypeError, KeyError):
        return None


def _fixed(
    theta: Array,
    wanted: Wanted,
    chain: Chain,
    key: str,
    cause: str,
    floor: float,
    kinds: tuple[str, ...] = ("scaling-parameters",),
    recovered: tuple[Recovered, ...] = (),
) -> Explanation:
    f = _predict(wanted, chain)
    if f is None:
        return Explanation(key, kinds, cause, math.inf)
    predicted = f.fused
    return Explanation(
        key, kinds, cause, float(deviation(theta, predicted, floor).max()), 0, recovered, predicted, float(f.gain)
    )


def _with(wanted: Wanted, i: int, kind: str, settings: dict[str, Any]) -> Chain:
    return (*wanted.chain[:i], (kind, settings), *wanted.chain[i + 1 :])


def _number(
    theta: Array, wanted: Wanted, i: int, kind: str, settings: dict[str, Any], name: str, floor: float
) -> Iterator[Explanation]:
    """One number of a scaling fitted, everything else as wanted."""
    now = float(settings[name])

    def predicted(value: float) -> Array:
        f = _predict(wanted, _with(wanted, i, kind, {**settings, name: value}))
        return np.full(wanted.pairs, 1e30) if f is None else f.fused

    value, _ = minimum(lambda v: distance(theta, predicted(v), floor), now / 1e4, now * 1e4, grid=320)
    low, high = plateau(lambda v: distance(theta, predicted(v), floor), value)
    value = roundest(low, high, value)
    at = predicted(value)
    f = _predict(wanted, _with(wanted, i, kind, {**settings, name: value}))
    yield Explanation(
        key=f"{kind}.{name}",
        kinds=("scaling-parameters", "config-parsing"),
        cause=f"{kind}.{name} is {value:.6g} in place of {now:g}"
        + (f" (anything from {low:.6g} to {high:.6g} gives these frequencies)" if high > 1.002 * low else ""),
        residual=float(deviation(theta, at, floor).max()),
        fitted=1,
        recovered=(Recovered(name=f"{kind}.{name}", value=value, expected=now, error=(high - low) / (2 * value)),),
        theta=at,
        gain=None if f is None else float(f.gain),
        prior=1,
    )


def plateau(left: Callable[[float], float], at: float) -> tuple[float, float]:
    """The range around ``at`` in which a function stays as small as there: rounded ends hide a number.

    >>> tuple(round(v, 4) for v in plateau(lambda v: float(not 2 <= v <= 4), 3.0))
    (2.0, 4.0)
    """
    bound = left(at) * (1 + 1e-6) + 1e-12
    ends = []
    for sign in (-1.0, 1.0):
        inside, outside = 0.0, 1e-4
        while left(at * math.exp(sign * outside)) <= bound and outside < 8:
            inside, outside = outside, outside * 2
        for _ in range(30):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if left(at * math.exp(sign * middle)) <= bound else (inside, middle)
        ends.append(at * math.exp(sign * inside))
    return ends[0], ends[1]


def roundest(low: float, high: float, otherwise: float) -> float:
    """The number in a range that somebody would write: a power of two, else the fewest digits.

    >>> roundest(100000, 140000, 120073.0), roundest(17.1, 20.5, 17.45), roundest(2.5, 2.5, 2.5)
    (131072.0, 20.0, 2.5)
    """
    if high <= low * (1 + 1e-9):
        near = float(f"{otherwise:.6g}")
        return near if abs(near - otherwise) <= 1e-7 * otherwise else otherwise
    powers = [2.0**k for k in range(-4, 40) if low <= 2.0**k <= high]
    if powers:
        return max(powers)
    for digits in range(1, 9):
        step = 10.0 ** (math.floor(math.log10(high)) - digits + 1)
        whole = math.floor(high / step) * step
        if low <= whole:
            return float(f"{whole:.{digits}g}")
    return otherwise


def _variants(
    theta: Array, wanted: Wanted, i: int, kind: str, settings: dict[str, Any], floor: float
) -> Iterator[Explanation]:
    """Known wrong ways to compute one rule."""

    def also(key: str, cause: str, changed: dict[str, Any], **more: Any) -> Explanation:
        return _fixed(theta, wanted, _with(wanted, i, kind, {**settings, **changed}), key, cause, floor, **more)

    if kind == "yarn":
        truncate = bool(settings["truncate"])
        yield also("truncate", f"the ends of the ramp are {'not ' if truncate else ''}rounded to whole pairs",
                   {"truncate": not truncate}, recovered=(Recovered(name="yarn.truncate", value=str(not truncate),
                                                                    expected=str(truncate)),))  # fmt: skip
        yield also("exchanged", "beta_fast and beta_slow are exchanged",
                   {"beta_fast": settings["beta_slow"], "beta_slow": settings["beta_fast"]})  # fmt: skip
        yield from _yarn_forms(theta, wanted, i, settings, floor)
    if kind == "llama3":
        yield also("exchanged", "low_freq_factor and high_freq_factor are exchanged",
                   {"low_freq_factor": settings["high_freq_factor"], "high_freq_factor": settings["low_freq_factor"]})  # fmt: skip
    if kind == "longrope":
        threshold = int(settings["original"])
        long = wanted.length is not None and wanted.length > threshold
        has, wants = ("short_factor", "long_factor") if long else ("long_factor", "short_factor")
        yield also("set", f"the {has[:-7]} factors are used where the {wants[:-7]} ones are wanted", {wants: settings[has]},
                   recovered=(Recovered(name="longrope set", value=has[:-7], expected=wants[:-7]),))  # fmt: skip
        inverse = {n: tuple(1 / v for v in settings[n]) for n in ("short_factor", "long_factor")}
        yield also("inverse", "frequencies are multiplied by the factors, not divided", inverse)
    if kind == "dynamic":
        factor = float(settings["factor"])
        grown = factor * factor - factor + 1
        for key, cause, value in (
            ("constant", "the length cancels: the stretch is constant, factor^2 - factor + 1", grown),
            ("static", f"a static NTK by {factor:g}, whatever the length", factor),
        ):
            yield _fixed(theta, wanted, _with(wanted, i, "ntk", {"factor": value}), key, cause, floor,
                         recovered=(Recovered(name="ntk.factor", value=value),))  # fmt: skip


def _yarn_forms(theta: Array, wanted: Wanted, i: int, s: dict[str, Any], floor: float) -> Iterator[Explanation]:
    """YaRN's ramp upside down, its upper end clamped to the pairs, its factor inside the power."""
    try:
        f = run(wanted.start(), wanted.chain[:i], wanted.length)
        base, dim = based(f, "yarn")
    except (ArithmeticError, ValueError):
        return
    fast, slow, original, factor = (float(s[n]) for n in ("beta_fast", "beta_slow", "original", "factor"))
    kept, divided = f.fused, f.fused / factor
    up = ramp(f, original, fast, slow, truncate=bool(s["truncate"]))
    low, high = (turning_pair(turns, original, dim, base) for turns in (fast, slow))

    def said(key: str, cause: str, predicted: Array, *recovered: Recovered) -> Explanation:
        residual = float(deviation(theta, predicted, floor).max())
        return Explanation(key, ("scaling-parameters",), cause, residual, 0, recovered, predicted)

    yield said("ramp", "the ramp is upside down: fast pairs are scaled and slow ones kept", blend(kept, divided, up))
    for truncate in (True, False):
        a, b = (math.floor(low), math.ceil(high)) if truncate else (low, high)
        clamped = min(b, f.pairs - 1)
        if clamped < min(b, dim - 1):
            shape = np.clip((np.arange(f.pairs) - max(a, 0)) / max(clamped - max(a, 0), 1e-3), 0, 1)
            words = "the upper end of the ramp is clamped to the last pair (half the width less one)"
            rounded = "" if truncate == bool(s["truncate"]) else ", and its ends are rounded otherwise than asked"
            yield said("clamp", words + rounded, blend(divided, kept, shape),
                       Recovered(name="ramp end", value=float(clamped), expected=float(min(b, dim - 1))))  # fmt: skip
    try:
        geometric = wanted.geometric
        inside = wanted.start(base=geometric.base * factor).fused if geometric is not None else divided
        yield said("inside", "the factor stands inside the power: (factor * base)^(-2i/d) in place of base^(-2i/d) / factor",
                   blend(inside, kept, up))  # fmt: skip
    except (ArithmeticError, ValueError):
        pass
    yield said("linear", f"every pair is divided by {factor:g}: the ramp is missing", divided)


def _other_rules(
    theta: Array, wanted: Wanted, i: int, kind: str, settings: dict[str, Any], floor: float
) -> Iterator[Explanation]:
    """Another rule with the same numbers, or with a fitted factor."""
    factor, original = float(settings.get("factor") or 0.0), settings.get("original")
    if factor <= 0:
        return
    rules: dict[str, dict[str, Any]] = {"linear": {"factor": factor}, "ntk": {"factor": factor}}
    if original:
        rules["yarn"] = {"factor": factor, "original": original, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": True,
                         "attention_factor": None, "mscale": None, "mscale_all_dim": None, "softmax_mscale": None}  # fmt: skip
        rules["llama3"] = {"factor": factor, "original": original, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    for name, with_ in rules.items():
        if name != kind:
            yield _fixed(theta, wanted, _with(wanted, i, name, with_), f"rule {name}",
                         f"{name} is computed in place of {kind}", floor,
                         recovered=(Recovered(name="rule", value=name, expected=kind),))  # fmt: skip
    if kind in ("linear",):
        return
    value, _ = minimum(lambda v: _gap(theta, wanted, _with(wanted, i, "ntk", {"factor": v}), floor), 1.0001, 1e4)
    yield _fixed(theta, wanted, _with(wanted, i, "ntk", {"factor": value}), "rule ntk",
                 f"NTK by {value:.6g} is computed in place of {kind}", floor,
                 recovered=(Recovered(name="ntk.factor", value=value),)).replace(fitted=1, prior=2)  # fmt: skip


def _gap(theta: Array, wanted: Wanted, chain: Chain, floor: float) -> float:
    f = _predict(wanted, chain)
    return 1e30 if f is None else distance(theta, f.fused, floor)


def _unwanted(theta: Array, wanted: Wanted, floor: float) -> Iterator[Explanation]:
    """No scaling is wanted and one is there: its numbers read from the ratio to the unscaled frequencies."""
    plain = wanted.theta()
    live = (np.abs(plain) > floor) & (np.abs(theta) > floor)
    if live.sum() < 4 or wanted.geometric is None:
        return
    found = ramp_of(theta, plain)
    if found is None:
        return
    factor, first, last, form, residual, predicted = found
    yield Explanation(
        key=f"unwanted {form}",
        kinds=("scaling-parameters", "config-parsing"),
        cause=f"a scaling by {factor:.6g} that nobody asked for, {form_words(form)} from pair {first} to {last}",
        residual=residual,
        fitted=3,
        recovered=(Recovered(name="factor", value=factor, expected=1.0),
                   Recovered(name="first pair scaled", value=first), Recovered(name="last pair of the ramp", value=last)),
        theta=predicted,
    )  # fmt: skip


def form_words(form: str) -> str:
    """A ramp in words."""
    return {
        "yarn": "with a ramp in the pair's index, as YaRN has it,",
        "llama3": "with a ramp in turns, as Llama 3 has it,",
    }[form]


def ramp_of(theta: Array, plain: Array) -> tuple[float, int, int, str, float, Array] | None:
    """Factor, first and last pair of the ramp, its form, the residual and the prediction, from the ratio to ``plain``.

    None where the ratio is no ramp from 1 down to ``1 / factor``.
    """
    ratio = theta / plain
    if not np.isfinite(ratio).all() or abs(ratio[0] - 1) > 1e-3 or ratio.min() < 1e-4 or ratio[-1] > 0.999:
        return None
    factor = float(1 / ratio[-1])
    if (np.diff(ratio) > 1e-6).any():
        return None
    share = (1 - ratio) / (1 - 1 / factor)  # 0 kept, 1 divided
    inside = (share > 1e-5) & (share < 1 - 1e-5)
    first = int(np.flatnonzero(share > 1e-5)[0])
    done = np.flatnonzero(share >= 1 - 1e-5)
    last = int(done[0]) if len(done) else len(ratio)
    best: tuple[float, str, Array] | None = None
    for form, axis in (("yarn", np.arange(len(plain), dtype=np.float64)), ("llama3", plain)):
        if inside.sum() >= 2:
            slope, start = np.polyfit(axis[inside], share[inside], 1)
            shape = np.clip(slope * axis + start, 0, 1)
        else:
            shape = share
        predicted = plain * (1 - shape) + plain / factor * shape
        residual = float(deviation(theta, predicted).max())
        if best is None or residual < best[0]:
            best = (residual, form, predicted)
    assert best is not None
    return factor, first, last, best[1], best[0], best[2]
