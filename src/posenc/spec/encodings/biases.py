"""Encodings that are added to the score."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from posenc.errors import SpecError
from posenc.spec.encodings.base import EncodingBase, Enters
from posenc.spec.encodings.tables import Sinusoidal
from posenc.spec.value import Length, Positive, Width


class Alibi(EncodingBase):
    """ALiBi: ``-slope_h * (i - j)`` added to the score (Press et al. 2021).

    Args:
        num_heads: slopes are ``2^(-max_bias h / n)`` for a power of two ``n``, completed from ``2n`` otherwise.
        max_bias: exponent range of the slopes.
        symmetric: ``-slope * |i - j|``, for bidirectional attention.
    """

    kind: Literal["alibi"] = "alibi"
    num_heads: Width
    max_bias: Positive = 8.0
    symmetric: bool = False
    cites: ClassVar[tuple[str, ...]] = ("press2021",)
    enters: ClassVar[Enters] = "score"
    relative: ClassVar[bool] = True


class T5Bias(EncodingBase):
    """T5: a trained number for each head and bucket of ``j - i`` added to the score (Raffel et al. 2019).

    Args:
        num_heads: heads.
        num_buckets: half of them exact, the others logarithmic; halved again for the sign if bidirectional.
        max_distance: distances from here on share the last bucket.
        bidirectional: keys after the query have buckets of their own.
    """

    kind: Literal["t5_bias"] = "t5_bias"
    num_heads: Width
    num_buckets: Annotated[int, Field(ge=4, le=2**20)] = 32
    max_distance: Length = 128
    bidirectional: bool = True
    cites: ClassVar[tuple[str, ...]] = ("raffel2019",)
    enters: ClassVar[Enters] = "score"
    relative: ClassVar[bool] = True

    @model_validator(mode="after")
    def _buckets_fit(self) -> T5Bias:
        per_sign = self.num_buckets // (2 if self.bidirectional else 1)
        if self.num_buckets % (4 if self.bidirectional else 2):
            raise SpecError("num_buckets divides into exact and logarithmic halves for each sign", self.num_buckets)
        if self.max_distance <= per_sign // 2:
            raise SpecError(
                f"max_distance must exceed the {per_sign // 2} distances that have a bucket each", self.max_distance
            )
        return self


class Kerple(EncodingBase):
    """KERPLE: a trained kernel of the distance ``D = |i - j|`` added to the score (Chi et al. 2022, section 4).

    ``log``: ``-r1 ln(1 + r2 D)``; ``power``: ``-r1 D^r2`` with ``r2`` at most 2. Both are trained for each head and
    kept at 0.01 or more; they start uniform in (0, 2) and (0, 1).

    Args:
        num_heads: heads.
        form: of the kernel.
    """

    kind: Literal["kerple"] = "kerple"
    num_heads: Width
    form: Literal["log", "power"] = "log"
    cites: ClassVar[tuple[str, ...]] = ("chi2022kerple",)
    enters: ClassVar[Enters] = "score"
    relative: ClassVar[bool] = True


class Fire(EncodingBase):
    """FIRE: a small trained network of the distance, measured against the query's own position (Li et al. 2023).

    Its input is ``psi(i - j) / (psi(max(L, i)) + eps)``, ``psi(x) = ln(|c x| + 1)``; it has one hidden layer of
    rectified units and one output for each head. Scores do not depend on the distance alone once a position exceeds
    ``L``. ``c`` and a factor on ``L`` are trained.

    Args:
        num_heads: heads.
        hidden: hidden units.
        c: where ``c`` starts.
        threshold: ``L`` at the start, in positions.
        eps: keeps the quotient finite.
    """

    kind: Literal["fire"] = "fire"
    num_heads: Width
    hidden: Annotated[int, Field(gt=0, le=4096)] = 32
    c: Positive = 0.1
    threshold: Positive = 512.0
    eps: Positive = 1e-6
    cites: ClassVar[tuple[str, ...]] = ("li2023fire",)
    enters: ClassVar[Enters] = "score"
    relative: ClassVar[bool] = False


class Sandwich(EncodingBase):
    """Sandwich: the similarity of two sinusoidal rows, divided by a ratio for each head (Chi et al. 2022).

    Head ``h = 1..H`` adds ``(H / (compression h)) sum_i cos((i - j) base^(-2i/dim))`` to the score.

    Args:
        num_heads: heads.
        dim: width of the rows; nothing else depends on it.
        base: of the geometric schedule.
        compression: ratio of the last head.
        first_pair: the authors' appendix counts pairs from 0, their equation from 1.
    """

    kind: Literal["sandwich"] = "sandwich"
    num_heads: Width
    dim: Width = 128
    base: Annotated[float, Field(gt=1)] = 10000.0
    compression: Positive = 8.0
    first_pair: Literal[0, 1] = 0
    cites: ClassVar[tuple[str, ...]] = ("chi2022sandwich",)
    enters: ClassVar[Enters] = "score"
    relative: ClassVar[bool] = True

    @model_validator(mode="after")
    def _even(self) -> Sandwich:
        if self.dim % 2:
            raise SpecError("the rows of a sandwich are whole pairs: dim is even", self.dim)
        return self


class SinusoidalBias(EncodingBase):
    """A trained weighting of the sinusoid of ``i - j`` for each head, ``w_h . PE(i - j)``, added to the score.

    ``i - j`` and ``j - i`` are told apart: sines change sign. Without a limit it is exact in as many extra channels of
    queries and keys as the sinusoid has.

    Args:
        num_heads: heads.
        sinusoid: ``PE``; a fixed one over one axis.
        limit: distances beyond it count as the limit, on either side.
    """

    kind: Literal["sinusoidal_bias"] = "sinusoidal_bias"
    num_heads: Width
    sinusoid: Sinusoidal = Sinusoidal(64)
    limit: Annotated[int, Field(gt=0, le=2**20)] | None = None
    cites: ClassVar[tuple[str, ...]] = ("vaswani2017",)
    enters: ClassVar[Enters] = "score"
    relative: ClassVar[bool] = True

    @model_validator(mode="after")
    def _plain(self) -> SinusoidalBias:
        check_plain(self.sinusoid)
        return self


def check_plain(sinusoid: Sinusoidal) -> None:
    """Refuse a sinusoid that is not a function of one distance.

    Raises:
        SpecError: it has axes, prefix or padding rows, an offset, or is trained.
    """
    if sinusoid.axes is not None or sinusoid.learned or sinusoid.padding_row is not None:
        raise SpecError("the sinusoid of a distance is fixed, over one axis, without a padding row", str(sinusoid))
    if sinusoid.prefix or sinusoid.offset:
        raise SpecError("the sinusoid of a distance has no prefix and no offset", str(sinusoid))
