"""Hypotheses about scalings: left out, twice, another factor, exchanged ends, another rule, another set."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from posenc.checker.boxes import Array
from posenc.checker.matching.explanation import Explanation, deviation, distance
from posenc.checker.matching.ramps import form_words, plateau, ramp_of, roundest
from posenc.checker.matching.spectrum import Chain, Wanted, minimum
from posenc.checker.matching.yarn_forms import yarn_forms
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
    yield _fixed(
        theta,
        wanted,
        (),
        "unscaled",
        "the scaling is not applied: these are the unscaled frequencies",
        floor,
        ("scaling-parameters", "config-parsing"),
    )
    yield _fixed(
        theta,
        wanted,
        wanted.chain * 2,
        "twice",
        "the scaling is applied twice",
        floor,
        ("scaling-parameters", "double-application"),
    )
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


def _variants(
    theta: Array, wanted: Wanted, i: int, kind: str, settings: dict[str, Any], floor: float
) -> Iterator[Explanation]:
    """Known wrong ways to compute one rule."""

    def also(key: str, cause: str, changed: dict[str, Any], **more: Any) -> Explanation:
        return _fixed(theta, wanted, _with(wanted, i, kind, {**settings, **changed}), key, cause, floor, **more)

    if kind == "yarn":
        truncate = bool(settings["truncate"])
        yield also(
            "truncate",
            f"the ends of the ramp are {'not ' if truncate else ''}rounded to whole pairs",
            {"truncate": not truncate},
            recovered=(Recovered(name="yarn.truncate", value=str(not truncate), expected=str(truncate)),),
        )
        yield also(
            "exchanged",
            "beta_fast and beta_slow are exchanged",
            {"beta_fast": settings["beta_slow"], "beta_slow": settings["beta_fast"]},
        )
        yield from yarn_forms(theta, wanted, i, settings, floor)
    if kind == "llama3":
        yield also(
            "exchanged",
            "low_freq_factor and high_freq_factor are exchanged",
            {"low_freq_factor": settings["high_freq_factor"], "high_freq_factor": settings["low_freq_factor"]},
        )
    if kind == "longrope":
        threshold = int(settings["original"])
        long = wanted.length is not None and wanted.length > threshold
        has, wants = ("short_factor", "long_factor") if long else ("long_factor", "short_factor")
        yield also(
            "set",
            f"the {has[:-7]} factors are used where the {wants[:-7]} ones are wanted",
            {wants: settings[has]},
            recovered=(Recovered(name="longrope set", value=has[:-7], expected=wants[:-7]),),
        )
        inverse = {n: tuple(1 / v for v in settings[n]) for n in ("short_factor", "long_factor")}
        yield also("inverse", "frequencies are multiplied by the factors, not divided", inverse)
    if kind in ("ntk", "dynamic") and wanted.dim > 2:
        times = float(settings["factor"]) ** (wanted.dim / (wanted.dim - 2))
        plain = _predict(wanted, (*wanted.chain[:i], *wanted.chain[i + 1 :]))
        predicted = np.full(wanted.pairs, math.inf) if plain is None else plain.fused / times
        yield Explanation(
            key="divided",
            kinds=("scaling-parameters",),
            cause=f"the factor of the base, s^(d/(d-2)) = {times:.6g}, divides every frequency: "
            "the first one is to stay as it is",
            residual=float(deviation(theta, predicted, floor).max()),
            recovered=(Recovered(name="every frequency divided by", value=times, expected=1.0),),
            theta=predicted,
            gain=1.0,
        )
    if kind == "dynamic":
        factor = float(settings["factor"])
        grown = factor * factor - factor + 1
        for key, cause, value in (
            ("constant", "the length cancels: the stretch is constant, factor^2 - factor + 1", grown),
            ("static", f"a static NTK by {factor:g}, whatever the length", factor),
        ):
            yield _fixed(
                theta,
                wanted,
                _with(wanted, i, "ntk", {"factor": value}),
                key,
                cause,
                floor,
                recovered=(Recovered(name="ntk.factor", value=value),),
            )


def _other_rules(
    theta: Array, wanted: Wanted, i: int, kind: str, settings: dict[str, Any], floor: float
) -> Iterator[Explanation]:
    """Another rule with the same numbers, or with a fitted factor."""
    factor, original = float(settings.get("factor") or 0.0), settings.get("original")
    if factor <= 0:
        return
    rules: dict[str, dict[str, Any]] = {"linear": {"factor": factor}, "ntk": {"factor": factor}}
    if original:
        rules["yarn"] = {
            "factor": factor,
            "original": original,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": True,
            "attention_factor": None,
            "mscale": None,
            "mscale_all_dim": None,
            "softmax_mscale": None,
        }
        rules["llama3"] = {"factor": factor, "original": original, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    for name, with_ in rules.items():
        if name != kind:
            yield _fixed(
                theta,
                wanted,
                _with(wanted, i, name, with_),
                f"rule {name}",
                f"{name} is computed in place of {kind}",
                floor,
                recovered=(Recovered(name="rule", value=name, expected=kind),),
            )
    if kind in ("linear",):
        return
    value, _ = minimum(lambda v: _gap(theta, wanted, _with(wanted, i, "ntk", {"factor": v}), floor), 1.0001, 1e4)
    yield _fixed(
        theta,
        wanted,
        _with(wanted, i, "ntk", {"factor": value}),
        "rule ntk",
        f"NTK by {value:.6g} is computed in place of {kind}",
        floor,
        recovered=(Recovered(name="ntk.factor", value=value),),
    ).replace(fitted=1, prior=2)


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
        recovered=(
            Recovered(name="factor", value=factor, expected=1.0),
            Recovered(name="first pair scaled", value=first),
            Recovered(name="last pair of the ramp", value=last),
        ),
        theta=predicted,
    )
