"""Encodings that enter at the input as rows of a table: fixed, trained, seasonal."""

from __future__ import annotations

from math import prod
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from posenc.errors import SpecError
from posenc.spec.axes import Axes, Mixed
from posenc.spec.encodings.base import EncodingBase, Enters, Index, check_pairs
from posenc.spec.schedules import Geometric, Periods, Schedule, one_each
from posenc.spec.value import Length, Positive, Width


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
        learned: the frequencies are trained and stay positive, and the schedule is only their start.
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
    learned: bool = False
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
        if isinstance(self.axes, Mixed):
            raise SpecError("mixed axes have a direction for each head, and a table at the input has no heads")
        if self.axes is not None and self.padding_row is not None:
            raise SpecError("a padding row is one of a table with one coordinate", f"padding_row={self.padding_row}")
        if self.dim % 2 and self.odd == "lone_sine" and self.order not in ("interleaved", "interleaved_cos_first"):
            raise SpecError("an odd dim in halves ends with a zero column", f"order={self.order!r}", "Give odd='zero'.")
        check_pairs(self.schedule, self.axes, self.pairs)
        if self.learned and (getattr(self.schedule, "keep", 1.0) < 1 or 0.0 in getattr(self.schedule, "theta", ())):
            raise SpecError("trained frequencies start positive", str(self.schedule), "Leave still pairs out.")
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
