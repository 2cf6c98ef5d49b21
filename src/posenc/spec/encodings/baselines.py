"""Baselines: what "a different vector for each position" alone does and does not give."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from posenc.errors import SpecError
from posenc.spec.encodings.base import EncodingBase, Enters
from posenc.spec.value import Length, Positive, Width


class OneHot(EncodingBase):
    """Position ``p`` is the unit vector along channel ``p``; ``dim`` positions, none beyond.

    All are different, and no two are nearer than any others: the kernel is exactly Toeplitz and says nothing.
    """

    kind: Literal["one_hot"] = "one_hot"
    dim: Width
    cites: ClassVar[tuple[str, ...]] = ()
    enters: ClassVar[Enters] = "input"
    relative: ClassVar[bool] = False


class RandomVectors(EncodingBase):
    """Position ``p`` is row ``p`` of ``scale * N(0, 1)``, drawn once by NumPy's PCG64; fixed, none beyond ``length``.

    Args:
        dim: width of a row.
        length: rows.
        seed: of the draw; a longer table of the same width and seed starts with the same rows.
        scale: standard deviation of an entry; ``sqrt(1/2)`` gives rows as long as a sinusoid's on average.
    """

    kind: Literal["random_vectors"] = "random_vectors"
    dim: Width
    length: Length
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    scale: Positive = 0.5**0.5
    cites: ClassVar[tuple[str, ...]] = ()
    enters: ClassVar[Enters] = "input"
    relative: ClassVar[bool] = False

    @model_validator(mode="after")
    def _fits(self) -> RandomVectors:
        if self.dim * self.length > 2**28:
            raise SpecError("a table of random vectors has at most 2^28 numbers", f"{self.length} x {self.dim}")
        return self


class Constant(EncodingBase):
    """The same vector at every position, ``level`` in every channel: equal vectors for all tokens break nothing."""

    kind: Literal["constant"] = "constant"
    dim: Width
    level: float = 1.0
    cites: ClassVar[tuple[str, ...]] = ()
    enters: ClassVar[Enters] = "input"
    relative: ClassVar[bool] = False


class Clock(EncodingBase):
    """One clock: every pair of channels is ``sin, cos (2 pi p / period)``; positions a period apart are the same.

    Args:
        dim: width of a row, even; the one pair is repeated to fill it.
        period: positions per turn; need not be whole.
    """

    kind: Literal["clock"] = "clock"
    dim: Width
    period: Positive
    cites: ClassVar[tuple[str, ...]] = ()
    enters: ClassVar[Enters] = "input"
    relative: ClassVar[bool] = False

    @model_validator(mode="after")
    def _even(self) -> Clock:
        if self.dim % 2:
            raise SpecError("a clock is a pair of channels: dim is even", self.dim)
        return self
