"""Scalings: what is done to the frequencies of a trained model to reach longer contexts.

Each scaling is a rule of its own; a rotary carries a chain of them. ``original`` is always the context length that the
scaling was computed from. A strict value cannot hold wrong mathematics; :class:`AsExecuted` holds what an engine would
run all the same, with what is wrong about it.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from posenc.errors import SpecError
from posenc.spec.value import Length, NonNegative, Positive, Value

Factor = Annotated[float, Field(ge=1)]
FactorList = Annotated[tuple[Positive, ...], Field(min_length=1, max_length=2**20)]


class Linear(Value):
    """Position interpolation: ``theta / factor`` (Chen et al. 2023)."""

    kind: Literal["linear"] = "linear"
    factor: Factor
    cites: ClassVar[tuple[str, ...]] = ("chen2023",)
    needs_base: ClassVar[bool] = False


class NTK(Value):
    """NTK-aware: ``base * factor^(d / (d - 2))``; the slowest pair is slowed by ``factor`` exactly, the fastest not."""

    kind: Literal["ntk"] = "ntk"
    factor: Factor
    cites: ClassVar[tuple[str, ...]] = ("bloc97ntk",)
    needs_base: ClassVar[bool] = True


class Dynamic(Value):
    """Dynamic NTK: NTK with ``factor * L / original - (factor - 1)`` where ``L`` is the length, at least original."""

    kind: Literal["dynamic"] = "dynamic"
    factor: Factor
    original: Length
    cites: ClassVar[tuple[str, ...]] = ("emozilla_dynamic",)
    needs_base: ClassVar[bool] = True
    needs_length: ClassVar[bool] = True


class ByParts(Value):
    """NTK-by-parts, first version: linear for slow pairs, NTK in the middle, unscaled for fast pairs.

    Args:
        factor: how many times longer the context becomes.
        original: length the pairs' turns are counted over.
        beta: turns between which NTK fades into linear.
        gamma: turns between which unscaled fades into the mix of those two.
    """

    kind: Literal["by_parts"] = "by_parts"
    factor: Factor
    original: Length
    beta: tuple[Positive, Positive] = (1.25, 0.75)
    gamma: tuple[Positive, Positive] = (16.0, 2.0)
    cites: ClassVar[tuple[str, ...]] = ("peng2023",)
    needs_base: ClassVar[bool] = True

    @model_validator(mode="after")
    def _fast_before_slow(self) -> ByParts:
        for name, (fast, slow) in (("beta", self.beta), ("gamma", self.gamma)):
            if fast <= slow:
                raise SpecError(f"{name} runs from more turns to fewer", (fast, slow))
        return self


class Yarn(Value):
    """YaRN: unscaled where a pair turns ``beta_fast`` times in ``original``, linear below ``beta_slow`` turns.

    The ramp between them is linear in the pair's index, as implementations have it (the paper's is linear in turns).

    Args:
        factor: how many times longer the context becomes.
        original: length the pairs' turns are counted over.
        beta_fast, beta_slow: turns at which scaling starts and is complete.
        truncate: round the ends of the ramp outwards to whole pairs.
        attention_factor: replaces the gain on cos and sin; otherwise ``0.1 ln(factor) + 1``, or the quotient of that
            with ``mscale`` and with ``mscale_all_dim`` when both are given and not 0.
        softmax_mscale: the architecture multiplies its softmax scale by ``(0.1 * softmax_mscale * ln(factor) + 1)^2``
            (DeepSeek); None where it does not.
    """

    kind: Literal["yarn"] = "yarn"
    factor: Factor
    original: Length
    beta_fast: Positive = 32.0
    beta_slow: Positive = 1.0
    truncate: bool = True
    attention_factor: Positive | None = None
    mscale: NonNegative | None = None
    mscale_all_dim: NonNegative | None = None
    softmax_mscale: NonNegative | None = None
    cites: ClassVar[tuple[str, ...]] = ("peng2023",)
    needs_base: ClassVar[bool] = True

    @model_validator(mode="after")
    def _fast_before_slow(self) -> Yarn:
        if self.beta_fast < self.beta_slow:  # equal ones make a step within one or two pairs (Kimi K2: 1 and 1)
            raise SpecError(
                "beta_fast must not be below beta_slow",
                f"beta_fast={self.beta_fast:g}, beta_slow={self.beta_slow:g}",
                "Exchanged betas stretch the fast pairs and leave the slow ones.",
            )
        return self


class LongRope(Value):
    """LongRoPE: each pair divided by a searched factor, one set up to ``original`` and another beyond it.

    Args:
        factor: served over original length; gives the gain ``sqrt(1 + ln(factor) / ln(original))``.
        original: the length up to which the short set holds.
        short_factor, long_factor: one number for each pair.
        attention_factor: replaces the gain.
    """

    kind: Literal["longrope"] = "longrope"
    factor: Factor
    original: Annotated[int, Field(gt=1, le=2**48)]
    short_factor: FactorList
    long_factor: FactorList
    attention_factor: Positive | None = None
    cites: ClassVar[tuple[str, ...]] = ("ding2024",)
    needs_base: ClassVar[bool] = False
    needs_length: ClassVar[bool] = True

    @model_validator(mode="after")
    def _equal_lengths(self) -> LongRope:
        if len(self.short_factor) != len(self.long_factor):
            raise SpecError(
                "short_factor and long_factor have one number for each pair",
                f"{len(self.short_factor)} and {len(self.long_factor)}",
            )
        return self


class Llama3(Value):
    """Llama 3.1: pairs longer than ``original / low_freq_factor`` divided by ``factor``, shorter than
    ``original / high_freq_factor`` kept, blended linearly in turns between."""

    kind: Literal["llama3"] = "llama3"
    factor: Factor
    original: Length
    low_freq_factor: Positive = 1.0
    high_freq_factor: Positive = 4.0
    cites: ClassVar[tuple[str, ...]] = ("llama3",)
    needs_base: ClassVar[bool] = False

    @model_validator(mode="after")
    def _low_below_high(self) -> Llama3:
        if self.low_freq_factor > self.high_freq_factor:
            raise SpecError(
                "low_freq_factor must not exceed high_freq_factor",
                f"low_freq_factor={self.low_freq_factor:g}, high_freq_factor={self.high_freq_factor:g}",
            )
        return self


class Resonance(Value):
    """Resonance RoPE: wavelengths rounded to whole positions (half to even), so every pair repeats exactly."""

    kind: Literal["resonance"] = "resonance"
    cites: ClassVar[tuple[str, ...]] = ("wang2024resonance",)
    needs_base: ClassVar[bool] = False


class Factors(Value):
    """Any static rescaling: ``theta_i / values[i]`` with an explicit gain."""

    kind: Literal["factors"] = "factors"
    values: FactorList
    attention_factor: Positive = 1.0
    needs_base: ClassVar[bool] = False


Setting = int | float | bool | None | tuple[float, ...]


class AsExecuted(Value):
    """What an engine runs although its mathematics is wrong: a rule's name, its settings, and what is wrong.

    Args:
        rule: the kind of the scaling whose formula is executed.
        settings: its fields by name, only bound to be numbers that can be computed with.
        faults: the rules that are broken, as sentences.
    """

    kind: Literal["as_executed"] = "as_executed"
    rule: Literal["linear", "ntk", "dynamic", "by_parts", "yarn", "longrope", "llama3"]
    settings: tuple[tuple[str, Setting], ...]
    faults: Annotated[tuple[str, ...], Field(min_length=1)]

    @property
    def needs_base(self) -> bool:
        return bool(SCALINGS[self.rule].needs_base)

    @property
    def needs_length(self) -> bool:
        return bool(getattr(SCALINGS[self.rule], "needs_length", False))

    @property
    def cites(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(SCALINGS[self.rule].cites)

    def fields(self) -> dict[str, Any]:
        """All fields of the rule: its defaults, overwritten by the settings."""
        defaults = {n: f.get_default() for n, f in SCALINGS[self.rule].model_fields.items() if not f.is_required()}
        return {**defaults, **dict(self.settings)}


SCALINGS: dict[str, type[Any]] = {
    cls.model_fields["kind"].default: cls
    for cls in (Linear, NTK, Dynamic, ByParts, Yarn, LongRope, Llama3, Resonance, Factors)
}
Scaling = Annotated[
    Linear | NTK | Dynamic | ByParts | Yarn | LongRope | Llama3 | Resonance | Factors | AsExecuted,
    Field(discriminator="kind"),
]


def executable(kind: str, **settings: Any) -> Any:
    """Return the strict scaling, or what an engine executes in its place when only the mathematics is wrong.

    Raises:
        SpecError: the settings cannot even be computed with (missing, negative, not numbers).

    >>> executable("linear", factor=2.0)
    Linear(kind='linear', factor=2.0)
    >>> executable("linear", factor=0.5).faults
    ('Linear.factor should be greater than or equal to 1; got 0.5',)
    """
    try:
        return SCALINGS[kind](**settings)
    except SpecError as error:
        flat = [v for s in settings.values() for v in (s if isinstance(s, tuple) else (s,))]
        numbers = [v for v in flat if isinstance(v, int | float) and not isinstance(v, bool)]
        missing = [n for n, f in SCALINGS[kind].model_fields.items() if f.is_required() and settings.get(n) is None]
        if missing or not numbers or any(not 0 < v < float("inf") for v in numbers):
            raise
        try:
            return AsExecuted(rule=kind, settings=tuple(sorted(settings.items())), faults=(str(error),))
        except SpecError:
            raise error from None
