"""The proleptic Gregorian calendar in integer tensors, so that it compiles, exports and runs on any device."""

from __future__ import annotations

import torch
from torch import Tensor

CYCLE = 146097
"""Days of 400 years, after which the calendar repeats."""


def _div(a: Tensor, b: int) -> Tensor:
    return torch.div(a, b, rounding_mode="floor")


def is_leap(year: Tensor) -> Tensor:
    """Divisible by 4, but by 100 only if also by 400."""
    return ((year % 4 == 0) & (year % 100 != 0)) | (year % 400 == 0)


def date_of(days: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Year, month (from 0), day of the month (from 0) and day of the year (from 0) of days since 1970-01-01.

    Years are counted from March, so that the leap day ends them and months have 153 days in every five.

    >>> [int(part) for part in date_of(torch.tensor(11016))]  # 2000-02-29
    [2000, 1, 28, 59]
    """
    shifted = days + 719468  # since 0000-03-01
    cycle = _div(shifted, CYCLE)
    of_cycle = shifted - cycle * CYCLE
    years = _div(of_cycle - _div(of_cycle, 1460) + _div(of_cycle, 36524) - _div(of_cycle, CYCLE - 1), 365)
    from_march = of_cycle - (365 * years + _div(years, 4) - _div(years, 100))
    months = _div(5 * from_march + 2, 153)
    day = from_march - _div(153 * months + 2, 5)
    after = (months >= 10).long()  # January and February belong to the next year
    year, month = cycle * 400 + years + after, (months + 2) % 12
    before_march = from_march - 306
    day_of_year = torch.where(after == 1, before_march, from_march + 59 + is_leap(year).long())
    return year, month, day, day_of_year


def days_in_month(year: Tensor, month: Tensor) -> Tensor:
    """28 to 31; ``month`` from 0."""
    long = ((month + _div(month, 7)) % 2 == 0).long()  # January, March, May, July, August, October, December
    return torch.where(month == 1, 28 + is_leap(year).long(), 30 + long)
