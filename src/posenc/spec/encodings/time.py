"""Encodings of real time and real coordinates: the calendar, trained clocks, Fourier features."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from posenc.errors import SpecError
from posenc.spec.encodings.base import EncodingBase, Enters
from posenc.spec.value import Length, Positive, Width

CalendarFeature = Literal["second", "minute", "hour", "weekday", "day", "day_of_year", "month"]


class Calendar(EncodingBase):
    """Calendar features of epoch times (seconds since 1970-01-01, proleptic Gregorian calendar, no leap seconds).

    Args:
        features: ``second`` and ``minute`` 0-59, ``hour`` 0-23, ``weekday`` 0-6 from Monday, ``day`` of the month,
            ``day_of_year`` and ``month`` from 0.
        form: ``cyclic``: ``sin, cos (2 pi v / n)``, two channels for each feature, ``n`` the number of its values in
            that very month or year. ``scaled``: ``v / (n - 1) - 1/2``, one channel, ``n`` its largest number of values.
        per_second: units of the time stamps per second, 1000 for milliseconds.
        utc_offset: seconds that the clock on the wall is ahead of UTC.
        trend: one more channel that carries ``t / trend``, in units of the time stamps.
    """

    kind: Literal["calendar"] = "calendar"
    features: Annotated[tuple[CalendarFeature, ...], Field(min_length=1, max_length=7)] = (
        "hour",
        "weekday",
        "day",
        "month",
    )
    form: Literal["cyclic", "scaled"] = "cyclic"
    per_second: Annotated[int, Field(ge=1, le=10**9)] = 1
    utc_offset: Annotated[int, Field(gt=-86400, lt=86400)] = 0
    trend: Positive | None = None
    cites: ClassVar[tuple[str, ...]] = ()
    enters: ClassVar[Enters] = "input"
    relative: ClassVar[bool] = False

    @property
    def dim(self) -> int:
        """Width of a row."""
        return len(self.features) * (2 if self.form == "cyclic" else 1) + (self.trend is not None)

    @model_validator(mode="after")
    def _each_once(self) -> Calendar:
        if len(set(self.features)) != len(self.features):
            raise SpecError("each calendar feature is given once", self.features)
        return self


class Time2Vec(EncodingBase):
    """``w_0 t + phi_0`` and ``sin(w_i t + phi_i)`` with everything trained (Kazemi et al. 2019, equation 1).

    Args:
        dim: width of a row: one linear channel and ``dim - 1`` clocks.
        unit: ``t`` is the time stamp less ``origin``, divided by this; choose it so that ``t`` is of the order of 1.
        origin: time stamp of ``t = 0``.
    """

    kind: Literal["time2vec"] = "time2vec"
    dim: Width
    unit: Positive = 1.0
    origin: float = 0.0
    cites: ClassVar[tuple[str, ...]] = ("kazemi2019",)
    enters: ClassVar[Enters] = "input"
    relative: ClassVar[bool] = False


class Fourier(EncodingBase):
    """Fixed random Fourier features ``cos 2 pi B v, sin 2 pi B v`` with ``B ~ N(0, sigma^2)`` (Tancik et al. 2020).

    Args:
        dim: width of a row, even: all cosines, then all sines.
        sigma: standard deviation of the entries of ``B``, turns per unit of the coordinate.
        seed: of NumPy's PCG64, which draws ``B`` row by row.
        axes: coordinates of a position.
    """

    kind: Literal["fourier"] = "fourier"
    dim: Width
    sigma: Positive = 1.0
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    axes: Annotated[int, Field(ge=1, le=16)] = 1
    cites: ClassVar[tuple[str, ...]] = ("tancik2020",)
    enters: ClassVar[Enters] = "input"
    relative: ClassVar[bool] = False

    @model_validator(mode="after")
    def _even(self) -> Fourier:
        if self.dim % 2:
            raise SpecError("Fourier features come in pairs: dim is even", self.dim)
        return self


class LearnableFourier(EncodingBase):
    """Trained Fourier features through a small network (Li et al. 2021, algorithm 1).

    ``r = [cos W x, sin W x] / sqrt(features)``, ``PE = GeLU(r W_1 + b_1) W_2 + b_2``; ``W`` starts as
    ``N(0, gamma^-2)``, radians per unit of the coordinate.

    Args:
        dim: width of a row.
        axes: coordinates of a position.
        groups: groups of ``axes / groups`` coordinates go through the same network, each to ``dim / groups`` channels.
        features: width of ``r``, even; ``dim`` rounded up to even unless given.
        hidden: width of the hidden layer.
        gamma: length over which positions count as close at the start.
    """

    kind: Literal["learnable_fourier"] = "learnable_fourier"
    dim: Width
    axes: Annotated[int, Field(ge=1, le=16)] = 1
    groups: Annotated[int, Field(ge=1, le=16)] = 1
    features: Width = Field(default_factory=lambda fields: fields["dim"] + fields["dim"] % 2)
    hidden: Length = 32
    gamma: Positive = 1.0
    cites: ClassVar[tuple[str, ...]] = ("li2021",)
    enters: ClassVar[Enters] = "input"
    relative: ClassVar[bool] = False

    @model_validator(mode="after")
    def _widths_divide(self) -> LearnableFourier:
        if self.features % 2:
            raise SpecError("Fourier features come in pairs: features is even", self.features)
        if self.axes % self.groups or self.dim % self.groups:
            raise SpecError("groups divides axes and dim", f"axes={self.axes}, dim={self.dim}, groups={self.groups}")
        return self
