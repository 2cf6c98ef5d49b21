"""What every encoding declares, and what is named but not computed."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from posenc.errors import SpecError
from posenc.spec.axes import Mixed
from posenc.spec.schedules import Explicit, Geometric, Periods
from posenc.spec.value import Value

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
    if needed is not None and (
        axes is not None and not isinstance(axes, Mixed) and getattr(axes, "own_schedule", False)
    ):
        raise SpecError("axes with their own schedule need one that has a formula", str(schedule))
    if needed is not None and needed != (pairs // 2 if isinstance(axes, Mixed) else pairs):
        raise SpecError(f"the schedule must give {pairs} pairs", f"{needed} frequencies")
    if isinstance(schedule, Geometric) and 0 < pairs - schedule.shift < 1 and pairs > 1:
        raise SpecError("shift must leave a positive denominator", schedule.shift)
    if isinstance(schedule, Geometric) and schedule.shift >= pairs > 1:
        raise SpecError("shift must be smaller than half the width", f"shift={schedule.shift:g}, {pairs} pairs")
