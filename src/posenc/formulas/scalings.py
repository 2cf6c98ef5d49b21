"""Every scaling as a function from Frequencies to Frequencies, and length rules as data.

A scaling reads ``theta``, and where its paper says so ``base`` and ``dim``. Scalings whose numbers depend on the
length of a row are not functions of hidden state but data (:class:`Select`, :class:`Power`), decided by a *declared*
length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from posenc.errors import SpecError
from posenc.formulas.spectrum import Array, Frequencies, unscaled
from posenc.shapes import Float
from posenc.spec import Rotary, Sinusoidal


def mscale(factor: float, m: float = 1.0) -> float:
    """``0.1 m ln(factor) + 1``, 1 up to factor 1 (Peng et al. 2023, equation 22; DeepSeek's ``mscale``)."""
    return 1.0 if factor <= 1 else 0.1 * m * math.log(factor) + 1.0


def linear(f: Frequencies, s: Any) -> Frequencies:
    """``theta / factor`` (Chen et al. 2023)."""
    return f.replace(theta=f.theta / s.factor)


def ntk(f: Frequencies, s: Any) -> Frequencies:
    """``base * factor^(d / (d - 2))``, written as a factor on theta so that it also follows another scaling."""
    base, dim = based(f, "ntk")
    factor = np.float64(s.factor)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # Frequencies refuses what is not finite
        scaled = float(base * factor ** (dim / (dim - 2)))
        return f.replace(theta=f.theta * factor ** ntk_exponents(dim, f.pairs), base=scaled)


def ntk_exponents(dim: int, pairs: int) -> Float[np.ndarray, " pairs"]:
    """``-2i / (d - 2)``: the power of the factor that each pair is multiplied by."""
    return np.asarray(-2 * np.arange(pairs) / (dim - 2))


def by_parts(f: Frequencies, s: Any) -> Frequencies:
    """Linear where slow, NTK between, unscaled where fast (jquesnelle/yarn, the first NTK-by-parts)."""
    mixed = blend(linear(f, s).theta, ntk(f, s).theta, ramp(f, s.original, *s.beta))
    return f.replace(theta=blend(mixed, f.theta, ramp(f, s.original, *s.gamma)))


def yarn(f: Frequencies, s: Any) -> Frequencies:
    """Linear where slow, unscaled where fast, and a gain on cos and sin (Peng et al. 2023, section 3)."""
    based(f, "yarn")
    theta = blend(f.theta / s.factor, f.theta, ramp(f, s.original, s.beta_fast, s.beta_slow, truncate=s.truncate))
    if s.attention_factor is not None:
        gain = s.attention_factor
    elif s.mscale and s.mscale_all_dim:  # a 0 counts as absent in every implementation that reads these keys
        gain = mscale(s.factor, s.mscale) / mscale(s.factor, s.mscale_all_dim)
    else:
        gain = mscale(s.factor)
    logit = mscale(s.factor, s.softmax_mscale) ** 2 if s.softmax_mscale else 1.0
    return f.replace(theta=theta, gain=f.gain * gain, logit_scale=f.logit_scale * logit)


def blend(slow: Array, fast: Array, ramp: Array) -> Array:
    """``slow`` where the ramp is 1, ``fast`` where it is 0."""
    return np.asarray(slow * ramp + fast * (1 - ramp))


def turning_pair(turns: float, original: float, dim: int, base: float) -> float:
    """The (fractional) index of the pair that turns ``turns`` times in ``original`` positions."""
    return dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))


def ramp(
    f: Frequencies, original: float, fast: float, slow: float, *, truncate: bool = True
) -> Float[np.ndarray, " pairs"]:
    """``(pairs,)``: 0 for pairs of more than ``fast`` turns in ``original``, 1 below ``slow``, linear between."""
    base, dim = based(f, "yarn")
    low, high = (turning_pair(turns, original, dim, base) for turns in (fast, slow))
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    if low == high:
        high += 0.001
    return np.asarray(np.clip((np.arange(f.pairs) - low) / (high - low), 0.0, 1.0))


def longrope(f: Frequencies, s: Any) -> Select:
    """``theta / short_factor`` up to ``original``, ``theta / long_factor`` beyond (Ding et al. 2024)."""
    gain = s.attention_factor
    if gain is None:
        gain = 1.0 if s.factor <= 1 else math.sqrt(1 + math.log(s.factor) / math.log(s.original))
    with np.errstate(over="ignore"):
        short, long = (
            f.replace(theta=f.theta / np.array(v), gain=f.gain * gain) for v in (s.short_factor, s.long_factor)
        )
    return Select(threshold=s.original, short=short, long=long)


def dynamic(f: Frequencies, s: Any) -> Power:
    """NTK by ``factor * L / original - (factor - 1)``, L the declared length and at least original."""
    based(f, "dynamic")
    return Power(frequencies=f, factor=s.factor, original=s.original)


def llama3(f: Frequencies, s: Any) -> Frequencies:
    """Divided by ``factor`` where longer than ``original / low``, kept where shorter than ``original / high``."""
    turns = s.original * np.abs(f.theta) / (2 * np.pi)
    with np.errstate(divide="ignore", invalid="ignore"):
        smooth = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor)
        between = (1 - smooth) * f.theta / s.factor + smooth * f.theta
    theta = np.where(turns < s.low_freq_factor, f.theta / s.factor, f.theta)
    medium = (turns >= s.low_freq_factor) & (turns <= s.high_freq_factor) & np.isfinite(smooth)
    return f.replace(theta=np.where(medium, between, theta))


def resonance(f: Frequencies, s: Any) -> Frequencies:
    """Wavelengths rounded to whole positions, half to even (Wang et al. 2024); a pair at 0 stays."""
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = 2 * np.pi / np.round(2 * np.pi / f.theta)
    return f.replace(theta=np.where(np.isfinite(whole) & (f.theta != 0), whole, f.theta))


def factors(f: Frequencies, s: Any) -> Frequencies:
    """``theta / values`` with an explicit gain."""
    with np.errstate(over="ignore"):
        return f.replace(theta=f.theta / np.array(s.values), gain=f.gain * s.attention_factor)


RULES: dict[str, Callable[[Frequencies, Any], Any]] = {
    "linear": linear,
    "ntk": ntk,
    "dynamic": dynamic,
    "by_parts": by_parts,
    "yarn": yarn,
    "longrope": longrope,
    "llama3": llama3,
    "resonance": resonance,
    "factors": factors,
}


@dataclass(frozen=True)
class Fixed:
    """Frequencies that do not depend on the length."""

    frequencies: Frequencies

    def at(self, length: int | None) -> Frequencies:
        return self.frequencies

    def then(self, step: Callable[[Frequencies], Any]) -> Any:
        result = step(self.frequencies)
        return Fixed(result) if isinstance(result, Frequencies) else result


@dataclass(frozen=True)
class Select:
    """One set of frequencies up to ``threshold`` positions, another beyond."""

    threshold: int
    short: Frequencies
    long: Frequencies

    def at(self, length: int | None) -> Frequencies:
        return self.long if length is not None and length > self.threshold else self.short

    def then(self, step: Callable[[Frequencies], Any]) -> Select:
        short, long = step(self.short), step(self.long)
        if not isinstance(short, Frequencies):
            raise SpecError("a chain holds at most one scaling that depends on the length")
        return Select(self.threshold, short, long)


@dataclass(frozen=True)
class Power:
    """``theta_i * r^(-2i / (d - 2))`` with ``r = factor * L / original - (factor - 1)``, L at least original."""

    frequencies: Frequencies
    factor: float
    original: int
    after: tuple[Callable[[Frequencies], Any], ...] = ()

    def at(self, length: int | None) -> Frequencies:
        longest = self.original if length is None else max(length, self.original)
        stretched = SimpleNamespace(factor=self.factor * longest / self.original - (self.factor - 1))
        result = ntk(self.frequencies, stretched)
        for step in self.after:
            result = step(result)
        return result

    def then(self, step: Callable[[Frequencies], Any]) -> Power:
        if not isinstance(step(self.frequencies), Frequencies):
            raise SpecError("a chain holds at most one scaling that depends on the length")
        return Power(self.frequencies, self.factor, self.original, (*self.after, step))


def length_rule(encoding: Rotary | Sinusoidal) -> Fixed | Select | Power:
    """The frequencies of an encoding as data that a declared length decides."""
    rule: Any = Fixed(unscaled(encoding))
    for scaling in getattr(encoding, "scaling", ()):
        executed = scaling.kind == "as_executed"
        settings = SimpleNamespace(**scaling.fields()) if executed else scaling
        formula = RULES[scaling.rule if executed else scaling.kind]
        rule = rule.then(lambda f, formula=formula, settings=settings: formula(f, settings))
    return rule  # type: ignore[no-any-return]


def frequencies(encoding: Rotary | Sinusoidal, length: int | None = None) -> Frequencies:
    """Frequencies of an encoding for rows of a declared length; None is a length within the original context.

    Raises:
        SpecError: the encoding has no frequencies.

    >>> from posenc.spec import Rotary
    >>> frequencies(Rotary(8)).theta.round(6).tolist()
    [[1.0, 0.1, 0.01, 0.001]]
    """
    if not isinstance(encoding, Rotary | Sinusoidal):
        kind = getattr(encoding, "kind", type(encoding).__name__)
        raise SpecError("frequencies belong to rotary and sinusoidal encodings", kind)
    if length is not None and length < 1:
        raise SpecError("a declared length is at least 1", length)
    return length_rule(encoding).at(length)


def based(f: Frequencies, name: str) -> tuple[float, int]:
    """The base and width that a scaling refers to.

    Raises:
        SpecError: the schedule has none.
    """
    if f.base is None or f.dim is None:
        raise SpecError(f"{name} is defined for a geometric schedule")
    return f.base, f.dim
