"""Real time at the input (E9): seasons, the calendar, trained clocks; phases right for epoch seconds.

Time stamps are integers or float64. float32 is 128 s apart at today's epoch seconds: such stamps are refused where
their spacing would blur the shortest period.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from posenc.errors import ShapeError
from posenc.formulas.calendar import MOST_VALUES
from posenc.nn.civil import date_of, days_in_month, is_leap
from posenc.nn.derived import may_look
from posenc.nn.vectors import PositionVectors, registered
from posenc.spec import Calendar, Seasonal, Time2Vec, Value

STEPS = {"second": 1, "minute": 60, "hour": 3600, "weekday": 86400, "day": 86400, "day_of_year": 86400, "month": 86400}
"""Seconds that a calendar feature must tell apart."""
BLUR = 100
"""Time stamps must be this many times finer than what they tell apart."""


@registered
class SeasonalEncoding(PositionVectors):
    """``sin, cos (2 pi k t / P)`` for the harmonics of every period, and ``t / trend`` (Harvey 1990).

    Time is reduced modulo each period before anything is multiplied, in int64 for whole periods: the phase at 1.7e9
    seconds, or 1.7e18 nanoseconds, is as good as at 0. Stamps need not be regular.

    Args:
        value: a :class:`posenc.spec.Seasonal`, its notation, or its periods; ``combine="concat"`` or ``content_dim=``
            bring its width to the content's.
        options: of :class:`posenc.nn.vectors.PositionVectors`.

    >>> pe = SeasonalEncoding((24.0, 168.0), harmonics=(2, 1), combine="concat", content_dim=5)
    >>> pe(torch.zeros(1, 3, 5), torch.tensor([0.0, 1.5, 7.25])).shape, pe.dim
    (torch.Size([1, 3, 5]), 6)
    """

    kind: ClassVar[type[Value]] = Seasonal
    value: Seasonal

    def rows(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        """``(batch | 1, tokens, dim)`` of time stamps ``(1, batch | 1, tokens)``."""
        t = ids[0]
        harmonics = zip(self.value.periods, self.value.harmonics, strict=True)
        check_spacing(t, min(period / k for period, k in harmonics))
        columns = []
        for period, count in zip(self.value.periods, self.value.harmonics, strict=True):
            whole = not t.is_floating_point() and period.is_integer() and period < 2**62
            part = widest(torch.remainder(t.long(), int(period)) if whole else torch.remainder(widest(t), period))
            times = torch.arange(1, count + 1, device=t.device, dtype=part.dtype)
            angle = 2 * math.pi * (torch.fmod(part.unsqueeze(-1) * times, period) / period)
            columns.append(torch.stack((angle.sin(), angle.cos()), -1).flatten(-2))
        if self.value.trend is not None:
            columns.append((widest(t) / self.value.trend).unsqueeze(-1))
        return torch.cat(columns, -1).to(dtype)


@registered
class CalendarEncoding(PositionVectors):
    """Hour, weekday, day, month… of epoch times, as points on a circle or as numbers; leap years right.

    Args:
        value: a :class:`posenc.spec.Calendar`, its notation, or its features.
        options: of :class:`posenc.nn.vectors.PositionVectors`.

    >>> pe = CalendarEncoding(("month", "day"), form="scaled", per_second=1000)
    >>> pe.vectors(torch.tensor([951782400000]), torch.float64).round(decimals=3).tolist()  # 2000-02-29
    [[[-0.409, 0.433]]]
    """

    kind: ClassVar[type[Value]] = Calendar
    value: Calendar

    def rows(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        """``(batch | 1, tokens, dim)`` of time stamps ``(1, batch | 1, tokens)``."""
        t = ids[0]
        check_spacing(t, min(STEPS[name] for name in self.value.features) * self.value.per_second)
        at = widest(t) if t.is_floating_point() else t.long()
        seconds = torch.div(at, self.value.per_second, rounding_mode="floor").long() + self.value.utc_offset
        columns = []
        for name in self.value.features:
            value, count = calendar_value(name, seconds)
            if self.value.form == "scaled":
                columns.append(widest(value) / (MOST_VALUES[name] - 1) - 0.5)
            else:
                angle = 2 * math.pi * (widest(value) / count)
                columns += [angle.sin(), angle.cos()]
        if self.value.trend is not None:
            columns.append(widest(t) / self.value.trend)
        return torch.stack(columns, -1).to(dtype)


@registered
class Time2VecEncoding(PositionVectors):
    """``w_0 t + phi_0`` and ``sin(w_i t + phi_i)``, all trained (Kazemi et al. 2019, equation 1).

    ``t = (stamp - origin) / unit`` is taken in integers or float64, and so are the angles; choose ``unit`` so that
    ``t`` is of the order of 1, or the gradient of the frequencies, which grows with ``t``, drowns the others.
    ``weight`` starts as ``N(0, 1)``, ``phase`` uniform over a turn.

    Args:
        value: a :class:`posenc.spec.Time2Vec`, its notation, or its width.
        options: of :class:`posenc.nn.vectors.PositionVectors`.

    >>> pe = Time2VecEncoding(3, unit=86400.0, origin=1.7e9)
    >>> pe.vectors(torch.tensor([1_700_043_200])).shape
    torch.Size([1, 1, 3])
    """

    kind: ClassVar[type[Value]] = Time2Vec
    value: Time2Vec

    def __init__(self, value: Any = None, **options: Any) -> None:
        super().__init__(value, **options)
        places = {name: options[name] for name in ("device", "dtype") if name in options}
        self.weight = nn.Parameter(torch.empty(self.dim, **places))
        self.phase = nn.Parameter(torch.empty(self.dim, **places))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Frequencies ``N(0, 1)``, phases uniform over a turn."""
        nn.init.normal_(self.weight)
        nn.init.uniform_(self.phase, 0.0, 2 * math.pi)

    def rows(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        """``(batch | 1, tokens, dim)`` of time stamps ``(1, batch | 1, tokens)``."""
        t, origin = ids[0], self.value.origin
        if not t.is_floating_point() and origin.is_integer() and abs(origin) < 2**62:
            t = widest(t.long() - int(origin))  # exact for nanoseconds, too
        else:
            t = widest(t) - origin
        angle = (t / self.value.unit).unsqueeze(-1) * self.weight.to(t.dtype) + self.phase.to(t.dtype)
        return torch.cat((angle[..., :1], angle[..., 1:].sin()), -1).to(dtype)


def calendar_value(name: str, seconds: Tensor) -> tuple[Tensor, Tensor | int]:
    """A feature's value from 0, and how many values it has in that month or year, from int64 epoch seconds."""
    days = torch.div(seconds, 86400, rounding_mode="floor")
    rest = seconds - days * 86400
    if name in ("second", "minute", "hour"):
        unit = STEPS[name]
        return torch.div(rest, unit, rounding_mode="floor") % MOST_VALUES[name], MOST_VALUES[name]
    if name == "weekday":
        return (days + 3) % 7, 7  # 1970-01-01 was a Thursday
    year, month, day, day_of_year = date_of(days)
    if name == "month":
        return month, 12
    return (day, days_in_month(year, month)) if name == "day" else (day_of_year, 365 + is_leap(year).long())


def widest(t: Tensor) -> Tensor:
    """Numbers in float64; in float32 on devices that have nothing wider."""
    return t.to(torch.float32 if t.device.type == "mps" else torch.float64)


def check_spacing(t: Tensor, shortest: float) -> None:
    """Refuse float32 stamps so large that neighbours are too far apart to tell ``shortest`` apart.

    Raises:
        ShapeError: where values can be looked at, the spacing exceeds a hundredth of ``shortest``.
    """
    if t.dtype != torch.float32 or not may_look(t) or not t.numel():
        return
    largest = float(t.detach().abs().max())
    spacing = largest * torch.finfo(torch.float32).eps
    if not spacing * BLUR <= shortest:
        raise ShapeError(
            f"time stamps tell a hundredth of {shortest:g} apart",
            f"float32 near {largest:g}, where neighbours are {spacing:.3g} apart",
            "Give int64 or float64 stamps.",
        )
