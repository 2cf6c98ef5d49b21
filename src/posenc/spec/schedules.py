"""Schedules: how the unscaled frequencies of a number of pairs are laid out."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from posenc.errors import SpecError
from posenc.spec.value import NonNegative, Positive, Value, Width


def one_each(fields: dict[str, Any]) -> tuple[int, ...]:
    """One harmonic for every period."""
    return (1,) * len(fields["periods"])


class Geometric(Value):
    """``theta_i = first * base^(-i / (dim/2 - shift))`` for the first ``keep`` of the pairs, 0 for the rest.

    Args:
        base: ratio of the first frequency to the one a full ``dim/2`` pairs later; above 1.
        keep: fraction of the pairs, from the fast end, that turn at all. Below 1 this is p-RoPE ("proportional").
        shift: 0 is the denominator ``d`` of the paper, 1 is ``half - 1`` (tensor2tensor, fairseq, Whisper); others
            occur in diffusion time steps (``downscale_freq_shift``).
        first: radians per position of the fastest pair.
    """

    kind: Literal["geometric"] = "geometric"
    base: Annotated[float, Field(gt=1)] = 10000.0
    keep: Annotated[float, Field(ge=0, le=1)] = 1.0
    shift: NonNegative = 0.0
    first: Positive = 1.0

    @property
    def cites(self) -> tuple[str, ...]:  # type: ignore[override]
        """Pairs that do not turn are p-RoPE's."""
        return ("barbero2024",) if self.keep < 1 else ()


class Arithmetic(Value):
    """``theta`` falls linearly from ``first`` to ``last`` over the pairs."""

    kind: Literal["arithmetic"] = "arithmetic"
    first: Positive = 1.0
    last: Positive = 1e-4


class Random(Value):
    """``theta = |sigma * N(0, 1)|``, drawn by NumPy's PCG64 from ``seed`` (Tancik et al. 2020, in radians)."""

    kind: Literal["random"] = "random"
    sigma: Positive
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    cites: ClassVar[tuple[str, ...]] = ("tancik2020",)


class Explicit(Value):
    """The frequencies themselves, radians per position; a pair at 0 does not turn."""

    kind: Literal["explicit"] = "explicit"
    theta: Annotated[tuple[NonNegative, ...], Field(min_length=1, max_length=2**20)]


class Periods(Value):
    """Frequencies from periods: pair group ``j`` turns ``k`` times per ``periods[j]`` for ``k = 1..harmonics[j]``.

    ``theta = 2 pi k / P``; one pair for each harmonic.
    """

    kind: Literal["periods"] = "periods"
    periods: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=2**16)]
    harmonics: tuple[Width, ...] = Field(default_factory=one_each)

    @model_validator(mode="after")
    def _one_harmonic_count_each(self) -> Periods:
        if len(self.harmonics) != len(self.periods):
            raise SpecError(
                "harmonics gives one count for each period",
                f"{len(self.harmonics)} counts for {len(self.periods)} periods",
            )
        return self


Schedule = Annotated[Geometric | Arithmetic | Random | Explicit | Periods, Field(discriminator="kind")]
