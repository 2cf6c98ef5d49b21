"""Encodings made of sinusoids: one with a trained correction, and several scales of position side by side."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from posenc.errors import SpecError
from posenc.spec.encodings.base import EncodingBase, Enters
from posenc.spec.encodings.tables import Sinusoidal
from posenc.spec.value import Length


class Adjusted(EncodingBase):
    """A fixed sinusoid plus a trained correction that starts at nothing.

    Args:
        sinusoid: the fixed part; not trained, not counted, not saved.
        shape: positions by axis that the correction covers, ``(512,)`` or ``(14, 14)``; others are an error, as for a
            learned table.
        form: ``table``: one correction for each entry of the table, ``PE + C``. ``scale_shift``: one factor and one
            summand for each channel, ``(1 + a) PE + b``, at ``2 dim`` numbers for any length.
    """

    kind: Literal["adjusted"] = "adjusted"
    sinusoid: Sinusoidal
    shape: Annotated[tuple[Length, ...], Field(min_length=1, max_length=3)]
    form: Literal["table", "scale_shift"] = "table"
    cites: ClassVar[tuple[str, ...]] = ()
    enters: ClassVar[Enters] = "input"
    relative: ClassVar[bool] = False

    @property
    def dim(self) -> int:
        """Width of a row."""
        return self.sinusoid.dim

    @property
    def prefix(self) -> int:
        """Leading tokens whose row is zero and that take no position."""
        return self.sinusoid.prefix

    @model_validator(mode="after")
    def _one_fixed_sinusoid(self) -> Adjusted:
        axes = 1 if self.sinusoid.axes is None else len(self.sinusoid.axes.pairs)  # type: ignore[union-attr]
        if axes != len(self.shape):
            raise SpecError(f"shape has one count for each of the sinusoid's {axes} axes", self.shape)
        if self.sinusoid.learned or self.sinusoid.padding_row is not None:
            raise SpecError(
                "the sinusoid under a correction is fixed and has no padding row",
                str(self.sinusoid),
                "Leave learned and padding_row out; mask padded tokens instead.",
            )
        return self


class Hierarchical(EncodingBase):
    """Positions at several scales at once, each with its own channels (token in sentence, sentence in document).

    A row is the rows of the levels side by side. Level 0 is the finest. Positions are one coordinate for each level,
    or one running index that ``sizes`` takes apart like the hours, days and weeks of a clock.

    Args:
        levels: a sinusoid for each scale, finest first; each with its own width, base and order.
        sizes: how many steps of a level make one step of the next, ``(24, 7)`` for hour, weekday and week; one fewer
            than levels, or none if positions always come as coordinates.
    """

    kind: Literal["hierarchical"] = "hierarchical"
    levels: Annotated[tuple[Sinusoidal, ...], Field(min_length=2, max_length=16)]
    sizes: Annotated[tuple[Length, ...], Field(max_length=15)] = ()
    cites: ClassVar[tuple[str, ...]] = ()
    enters: ClassVar[Enters] = "input"
    relative: ClassVar[bool] = False

    @property
    def dim(self) -> int:
        """Width of a row: the widths of the levels together."""
        return sum(level.dim for level in self.levels)

    @model_validator(mode="after")
    def _levels_are_plain(self) -> Hierarchical:
        if self.sizes and len(self.sizes) != len(self.levels) - 1:
            raise SpecError("sizes has one count fewer than levels", f"{len(self.sizes)} for {len(self.levels)} levels")
        for level in self.levels:
            if level.axes is not None or level.prefix or level.learned or level.padding_row is not None:
                raise SpecError(
                    "a level is a fixed sinusoid over one coordinate, without prefix or padding row", str(level)
                )
        return self
