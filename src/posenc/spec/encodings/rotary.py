"""Encodings that enter at queries and keys: rotations, and the scale of queries."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from posenc.errors import SpecError
from posenc.spec.axes import Axes, Mixed, Split
from posenc.spec.encodings.base import EncodingBase, Enters, Index, check_pairs
from posenc.spec.scalings import Scaling
from posenc.spec.schedules import Geometric, Schedule
from posenc.spec.value import Length, Positive, Width


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

    @property
    def cites(self) -> tuple[str, ...]:  # type: ignore[override]
        """xPos adds its growth."""
        return ("su2021",) if self.xpos_scale_base is None else ("su2021", "sun2022")

    def __rshift__(self, scaling: Any) -> Rotary:
        return self.replace(scaling=(*self.scaling, scaling))


class QueryScale(EncodingBase):
    """Queries multiplied by ``1 + beta * ln(1 + floor((p + offset) / original))`` (Llama 4, Ministral 3)."""

    kind: Literal["query_scale"] = "query_scale"
    beta: Positive
    original: Length
    offset: Index = 0
    cites: ClassVar[tuple[str, ...]] = ("llama4",)
    enters: ClassVar[Enters] = "query_key"
    relative: ClassVar[bool] = False
