"""The encodings: one discriminated union, one mechanism each.

An encoding declares facts, and the rooms dispatch on facts: where it enters (``input``, ``query_key``, ``score``),
whether its scores depend on positions only through differences (``relative``), on the content, on the declared length.
"""

from __future__ import annotations

from math import prod
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from posenc.errors import SpecError
from posenc.spec.axes import Axes, Mixed, Split
from posenc.spec.scalings import Scaling
from posenc.spec.schedules import Explicit, Geometric, Periods, Schedule, one_each
from posenc.spec.value import Length, Positive, Value, Width

Enters = Literal["input", "query_key", "score", "unknown"]
Index = Annotated[int, Field(ge=0, le=2**48)]


class EncodingBase(Value):
    """What every encoding declares."""

    enters: ClassVar[Enters]
    relative: ClassVar[bool]
    content_dependent: ClassVar[bool] = False

    @property
    def needs_length(self) -> bool:
        """Whether its numbers depend on the declared length of a row."""
        return False

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with its mathematics although engines run it."""
        return ()


class Sinusoidal(EncodingBase):
    """A fixed table of sines and cosines added to (or joined with) the input (Vaswani et al. 2017).

    Args:
        dim: width of a row.
        schedule: frequencies of the pairs; its fields may be written flat (``base=``, ``shift=``).
        order: channel order. ``interleaved`` is sin, cos, sin, cos…; ``interleaved_cos_first`` the other way;
            ``sin|cos`` all sines then all cosines; ``cos|sin`` the other way.
        odd: what an odd width ends with: ``lone_sine`` (the paper's formula: half a pair) or ``zero`` (tensor2tensor).
        axes: several coordinates, each with its own part of the channels (MAE: columns first).
        offset: row that position 0 reads (fairseq starts at ``padding_idx + 1``).
        padding_row: a row that is all zeros, if any.
        prefix: leading tokens (class tokens) whose row is zero and that take no position.
    """

    kind: Literal["sinusoidal"] = "sinusoidal"
    dim: Width
    schedule: Schedule = Geometric()
    order: Literal["interleaved", "interleaved_cos_first", "sin|cos", "cos|sin"] = "interleaved"
    odd: Literal["lone_sine", "zero"] = "lone_sine"
    axes: Axes | None = None
    offset: Index = 0
    padding_row: Index | None = None
    prefix: Index = 0
    flat: ClassVar[str | None] = "schedule"
    cites: ClassVar[tuple[str, ...]] = ("vaswani2017",)
    enters: ClassVar[Enters] = "input"
    relative: ClassVar[bool] = False

    @property
    def pairs(self) -> int:
        """Number of frequencies; a lone sine counts as a pair."""
        return self.dim // 2 if self.odd == "zero" else (self.dim + 1) // 2

    @model_validator(mode="after")
    def _channels_add_up(self) -> Sinusoidal:
        if self.axes is not None and self.dim % 2:
            raise SpecError("a sinusoid over several axes needs an even dim", self.dim)
        if self.dim % 2 and self.odd == "lone_sine" and self.order not in ("interleaved", "interleaved_cos_first"):
            raise SpecError("an odd dim in halves ends with a zero column", f"order={self.order!r}", "Give odd='zero'.")
        check_pairs(self.schedule, self.axes, self.pairs)
        return self


class Learned(EncodingBase):
    """A trained table of positions added to the input; an error past its last row.

    Args:
        dim: width of a row.
        shape: rows by axis: ``(512,)`` for text, ``(14, 14)`` for a grid of patches. Class tokens and unused rows are
            not counted here.
        offset: rows before the one that position 0 reads (OPT and RoBERTa: 2).
        prefix: rows for leading tokens (class tokens) that take no position.
    """

    kind: Literal["learned"] = "learned"
    dim: Width
    shape: Annotated[tuple[Length, ...], Field(min_length=1, max_length=3)]
    offset: Index = 0
    prefix: Index = 0
    cites: ClassVar[tuple[str, ...]] = ("gehring2017",)
    enters: ClassVar[Enters] = "input"
    relative: ClassVar[bool] = False

    @property
    def rows(self) -> int:
        """Number of rows of the stored table."""
        return prod(self.shape) + self.offset + self.prefix


class Rotary(EncodingBase):
    """Rotary: each pair of query and key channels is turned by ``position * theta`` (Su et al. 2021).

    Args:
        head_dim: channels of a head.
        rotary_dim: channels that are rotated; all of them unless given.
        where: whether the rotated channels come ``first`` or ``last`` in the head (DeepSeek: last).
        interleaved: pairs ``(2i, 2i + 1)`` if true, ``(i, i + rotary_dim / 2)`` if false.
        schedule: frequencies before scaling; its fields may be written flat (``base=``, ``keep=``).
        axes: several coordinates.
        scaling: chain of scalings, applied in order; ``rotary >> scaling`` appends one.
        learned: the frequencies are trained, and the schedule is only their start.
        xpos_scale_base: xPos: queries grow and keys shrink with position at this scale (Sun et al. 2022).
    """

    kind: Literal["rotary"] = "rotary"
    head_dim: Width
    rotary_dim: Width = Field(default_factory=lambda fields: fields["head_dim"])
    where: Literal["first", "last"] = "first"
    interleaved: bool = False
    schedule: Schedule = Geometric()
    axes: Axes | None = None
    scaling: Annotated[tuple[Scaling, ...], Field(max_length=64)] = ()
    learned: bool = False
    xpos_scale_base: Positive | None = None
    flat: ClassVar[str | None] = "schedule"
    cites: ClassVar[tuple[str, ...]] = ("su2021",)
    enters: ClassVar[Enters] = "query_key"
    relative: ClassVar[bool] = True

    @model_validator(mode="after")
    def _channels_add_up(self) -> Rotary:
        if self.rotary_dim % 2:
            raise SpecError("rotary_dim must be even", self.rotary_dim, "Channels are rotated in pairs.")
        if self.rotary_dim > self.head_dim:
            raise SpecError(
                "rotary_dim must not exceed head_dim", f"rotary_dim={self.rotary_dim}, head_dim={self.head_dim}"
            )
        check_pairs(self.schedule, self.axes, self.pairs)
        for scaling in self.scaling:
            self._check_scaling(scaling)
        return self

    def _check_scaling(self, scaling: Any) -> None:
        fields = scaling.fields() if scaling.kind == "as_executed" else dict(scaling)
        for name in ("values", "short_factor", "long_factor"):
            if name in fields and len(fields[name]) != self.pairs:
                raise SpecError(
                    f"{name} has one number for each of the {self.pairs} pairs", f"{len(fields[name])} numbers"
                )
        if not scaling.needs_base:
            return
        schedule = self.schedule
        if not (isinstance(schedule, Geometric) and schedule.shift == 0 and schedule.first == 1):
            raise SpecError(
                f"{scaling.kind} is defined for a geometric schedule with first=1 and shift=0", str(schedule)
            )
        if isinstance(self.axes, Mixed) or (isinstance(self.axes, Split) and self.axes.own_schedule):
            raise SpecError(f"{scaling.kind} is defined for one schedule over all pairs", str(self.axes))
        if self.rotary_dim <= 2:
            raise SpecError(f"{scaling.kind} needs more than one pair", f"rotary_dim={self.rotary_dim}")

    @property
    def pairs(self) -> int:
        return self.rotary_dim // 2

    @property
    def needs_length(self) -> bool:
        return any(getattr(s, "needs_length", False) for s in self.scaling)

    @property
    def faults(self) -> tuple[str, ...]:
        return tuple(f for s in self.scaling if s.kind == "as_executed" for f in s.faults)

    def __rshift__(self, scaling: Any) -> Rotary:
        return self.replace(scaling=(*self.scaling, scaling))


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


class QueryScale(EncodingBase):
    """Queries multiplied by ``1 + beta * ln(1 + floor((p + offset) / original))`` (Llama 4, Ministral 3)."""

    kind: Literal["query_scale"] = "query_scale"
    beta: Positive
    original: Length
    offset: Index = 0
    cites: ClassVar[tuple[str, ...]] = ("llama4",)
    enters: ClassVar[Enters] = "query_key"
    relative: ClassVar[bool] = False


class Seasonal(EncodingBase):
    """``sin, cos (2 pi k t / P)`` for ``k = 1..harmonics`` of every period, added to the input.

    Args:
        periods: in units of the time stamps.
        harmonics: one count for each period; 1 each unless given.
        trend: one more channel that carries ``t / trend``; without it the encoding repeats after the least common
            multiple of the periods.
    """

    kind: Literal["seasonal"] = "seasonal"
    periods: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=2**16)]
    harmonics: tuple[Width, ...] = Field(default_factory=one_each)
    trend: Positive | None = None
    cites: ClassVar[tuple[str, ...]] = ("harvey1990",)
    enters: ClassVar[Enters] = "input"
    relative: ClassVar[bool] = False

    @model_validator(mode="after")
    def _one_harmonic_count_each(self) -> Seasonal:
        Periods(periods=self.periods, harmonics=self.harmonics)
        return self

    @property
    def dim(self) -> int:
        """Width of a row: two channels for each harmonic, one for the trend."""
        return 2 * sum(self.harmonics) + (self.trend is not None)


class Unmodelled(EncodingBase):
    """A mechanism that is named but not computed; nothing stands in for it.

    Args:
        name: what it is called.
        note: what is known about it.
    """

    kind: Literal["unmodelled"] = "unmodelled"
    name: Annotated[str, Field(min_length=1, max_length=200)]
    note: Annotated[str, Field(max_length=2000)] = ""
    enters: ClassVar[Enters] = "unknown"
    relative: ClassVar[bool] = False


Encoding = Annotated[
    Sinusoidal | Learned | Rotary | Alibi | T5Bias | QueryScale | Seasonal | Unmodelled, Field(discriminator="kind")
]
ENCODINGS: dict[str, type[Any]] = {
    cls.model_fields["kind"].default: cls
    for cls in (Sinusoidal, Learned, Rotary, Alibi, T5Bias, QueryScale, Seasonal, Unmodelled)
}


def check_pairs(schedule: Any, axes: Any, pairs: int) -> None:
    """Refuse a schedule or sections that do not fill exactly ``pairs`` pairs."""
    if isinstance(axes, Mixed):
        if pairs % 2:
            raise SpecError("mixed axes split the pairs into two equal halves", f"{pairs} pairs")
    elif axes is not None and sum(axes.pairs) != pairs:
        raise SpecError(f"the sections must add up to {pairs} pairs", f"{axes.pairs} = {sum(axes.pairs)}")
    needed = None
    if isinstance(schedule, Explicit):
        needed = len(schedule.theta)
    elif isinstance(schedule, Periods):
        needed = sum(schedule.harmonics)
    if needed is not None and (axes is not None and not isinstance(axes, Mixed) and getattr(axes, "own_schedule", False)):
        raise SpecError("axes with their own schedule need one that has a formula", str(schedule))
    if needed is not None and needed != (pairs // 2 if isinstance(axes, Mixed) else pairs):
        raise SpecError(f"the schedule must give {pairs} pairs", f"{needed} frequencies")
    if isinstance(schedule, Geometric) and 0 < pairs - schedule.shift < 1 and pairs > 1:
        raise SpecError("shift must leave a positive denominator", schedule.shift)
    if isinstance(schedule, Geometric) and schedule.shift >= pairs > 1:
        raise SpecError("shift must be smaller than half the width", f"shift={schedule.shift:g}, {pairs} pairs")
