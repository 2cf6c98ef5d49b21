"""Calendar features of epoch times, leap years right."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posenc.errors import ShapeError
from posenc.formulas.phases import FARTHEST
from posenc.formulas.spectrum import Array
from posenc.formulas.tables import check_entries
from posenc.spec import Calendar

MOST_VALUES = {"second": 60, "minute": 60, "hour": 24, "weekday": 7, "day": 31, "day_of_year": 366, "month": 12}
"""Largest number of values of each feature; a scaled feature is divided by one less."""


def calendar_features(encoding: Calendar, times: Any) -> Array:
    """The features side by side in the encoding's order, ``t / trend`` last.

    Args:
        encoding: features, form, unit and clock.
        times: ``(n,)`` integers or finite real numbers, ``per_second`` to a second, counted from 1970-01-01 UTC.

    Returns:
        ``(n, dim)`` float64.

    Raises:
        ShapeError: times are not numbers, or further than 2^53 seconds away.

    >>> calendar_features(Calendar(("month", "day"), form="scaled"), [951782400]).round(3).tolist()  # 2000-02-29
    [[-0.409, 0.433]]
    """
    at = np.asarray(times)
    if at.ndim != 1 or at.dtype.kind not in "iuf" or not np.isfinite(at).all():
        raise ShapeError("times are (n,) finite numbers", at.shape if at.dtype.kind in "iuf" else at.dtype)
    check_entries(len(at), encoding.dim)
    seconds = np.floor_divide(at, encoding.per_second)
    if at.size and not (np.abs(seconds.astype(np.float64)) < FARTHEST).all():
        raise ShapeError("epoch times are within 2^53 seconds", float(np.abs(seconds.astype(np.float64)).max()))
    values = calendar_values(seconds.astype(np.int64) + encoding.utc_offset)
    columns = []
    for name in encoding.features:
        value, count = values[name]
        if encoding.form == "scaled":
            columns.append(value / (MOST_VALUES[name] - 1) - 0.5)
        else:
            angle = 2 * math.pi * (value / count)
            columns += [np.sin(angle), np.cos(angle)]
    if encoding.trend is not None:
        columns.append(at / encoding.trend)
    return np.stack(columns, axis=-1)


def calendar_values(seconds: NDArray[np.int64]) -> dict[str, tuple[Any, Any]]:
    """Each feature's value, counted from 0, and how many values it has in that month or year."""
    days, rest = np.divmod(seconds, 86400)
    date = days.astype("datetime64[D]")
    month, year = date.astype("datetime64[M]"), date.astype("datetime64[Y]")
    month_start, year_start = month.astype("datetime64[D]"), year.astype("datetime64[D]")
    return {
        "second": (rest % 60, 60),
        "minute": (rest // 60 % 60, 60),
        "hour": (rest // 3600, 24),
        "weekday": ((days + 3) % 7, 7),  # 1970-01-01 was a Thursday
        "day": ((date - month_start).astype(np.int64), ((month + 1).astype("datetime64[D]") - month_start).astype(int)),
        "day_of_year": (
            (date - year_start).astype(np.int64),
            ((year + 1).astype("datetime64[D]") - year_start).astype(int),
        ),
        "month": (month.astype(np.int64) % 12, 12),
    }
