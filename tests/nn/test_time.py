"""Seasons, the calendar, trained clocks and Fourier features, against datetime, whole-number arithmetic and loops."""

from __future__ import annotations

import datetime
import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from posenc.errors import ShapeError, SpecError
from posenc.formulas import (
    calendar_features,
    fourier_features,
    fourier_matrix,
    learnable_fourier,
    seasonal_features,
    time2vec,
)
from posenc.nn import build
from posenc.nn.fourier import FourierFeatures, LearnableFourierFeatures
from posenc.nn.inputs import SinusoidalEncoding
from posenc.nn.time import CalendarEncoding, SeasonalEncoding, Time2VecEncoding
from posenc.spec import Calendar, Fourier, LearnableFourier, Seasonal, Time2Vec

EPOCH = 1_764_543_210
DAY, WEEK, YEAR = 86400.0, 604800.0, 365.2425 * 86400


def phase(t, period, k):
    """The phase in exact arithmetic, then one sine."""
    turns = Fraction(t) * k / Fraction(period)
    angle = 2 * math.pi * float(turns - math.floor(turns))
    return [math.sin(angle), math.cos(angle)]


@pytest.mark.parametrize(
    "times",
    [
        [0, 5, 86399, -7, EPOCH, EPOCH + 1],
        [EPOCH + 0.25, 1.5, -3.75, float(EPOCH)],
    ],
)
def test_seasonal_phases_are_right_at_epoch_seconds(times):
    value = Seasonal((DAY, WEEK, YEAR), harmonics=(3, 1, 2), trend=1e9)
    at = torch.tensor(times, dtype=torch.float64 if isinstance(times[0], float) else torch.int64)
    found = SeasonalEncoding(value).vectors(at, torch.float64)[0].numpy()
    wanted = [
        [
            v
            for period, count in zip(value.periods, value.harmonics, strict=True)
            for k in range(1, count + 1)
            for v in phase(t, period, k)
        ]
        + [t / 1e9]
        for t in times
    ]
    assert np.abs(found - wanted).max() < 1e-13
    assert np.abs(found - seasonal_features(value, np.array(times))).max() < 1e-13
    assert np.abs(SeasonalEncoding(value).vectors(at).numpy() - wanted).max() < 2e-7


def test_nanoseconds_keep_their_phase():
    stamps = [EPOCH * 10**9 + 123_456_789, EPOCH * 10**9 + 123_456_790]
    found = SeasonalEncoding((1000.0, 86400e9)).vectors(torch.tensor(stamps), torch.float64)[0].numpy()
    wanted = [phase(t, 1000, 1) + phase(t, 86400 * 10**9, 1) for t in stamps]
    assert np.abs(found - wanted).max() < 1e-13


def test_numbers_of_one_week():
    found = SeasonalEncoding((7.0,)).vectors(torch.tensor([3, 10]), torch.float64)[0]
    assert np.abs(found.numpy() - [0.433883739118, -0.900968867902]).max() < 1e-12  # the same a period later


def test_seasons_alone_repeat_and_a_trend_tells_them_apart():
    at = torch.tensor([5, 5 + 24 * 7])
    alone = SeasonalEncoding((24.0, 168.0)).vectors(at)[0]
    beside = SeasonalEncoding((24.0, 168.0), trend=1000.0).vectors(at)[0]
    assert torch.equal(alone[0], alone[1])
    assert (beside[0] - beside[1]).abs().max() == pytest.approx(0.168, abs=1e-6)


def test_float32_stamps_too_coarse_for_a_period_are_refused():
    stamps = torch.tensor([float(EPOCH), 0.0])
    with pytest.raises(ShapeError, match=r"neighbours are 210 apart"):
        SeasonalEncoding((3600.0,)).vectors(stamps)
    with pytest.raises(ShapeError, match="int64 or float64"):
        SeasonalEncoding((DAY,), harmonics=(24,)).vectors(stamps)
    SeasonalEncoding((YEAR,)).vectors(stamps)
    with pytest.raises(ShapeError, match="neighbours"):
        CalendarEncoding(("minute",)).vectors(stamps)
    with pytest.raises(ShapeError, match="float32 or float64"):
        SeasonalEncoding((YEAR,)).vectors(stamps.to(torch.bfloat16))


def test_irregular_stamps_row_by_row():
    encoding = SeasonalEncoding((24.0,), harmonics=(2,), combine="concat", content_dim=5).double()
    x, times = torch.randn(2, 3, 5).double(), torch.tensor([[0.0, 0.3, 17.25], [5.5, 5.5, 101.0]]).double()
    together = encoding(x, times)
    for b in range(2):
        for n in range(3):
            alone = encoding(x[b : b + 1, n : n + 1], times[b : b + 1, n : n + 1])
            assert (alone[0, 0] - together[b, n]).abs().max() < 1e-14


# ------------------------------------------------------------------------------------------------------ calendar

DATES = [
    "1970-01-01T00:00:00", "2000-02-29T23:59:59", "2000-03-01T00:00:00", "1900-02-28T12:00:01", "1900-03-01T00:00:00",
    "2024-12-31T23:00:00", "2023-12-31T07:31:00", "2025-11-30T22:53:30", "1969-12-31T23:59:59", "0001-01-01T00:00:00",
    "9999-12-31T23:59:59", "2100-02-28T00:00:00", "2100-03-01T00:00:00", "1600-02-29T01:02:03", "1999-01-31T05:06:07",
]  # fmt: skip
ZERO = datetime.datetime(1970, 1, 1)


def seconds_of(date):
    delta = date - ZERO
    return delta.days * 86400 + delta.seconds


def values_of(date):
    """Value and count of each feature by the standard library."""
    following = datetime.date(date.year + (date.month == 12), date.month % 12 + 1, 1) if date.year < 9999 else None
    length = 31 if following is None else (following - datetime.date(date.year, date.month, 1)).days
    leap = (date.year % 4 == 0) and (date.year % 100 != 0 or date.year % 400 == 0)
    return {
        "second": (date.second, 60), "minute": (date.minute, 60), "hour": (date.hour, 24),
        "weekday": (date.weekday(), 7), "day": (date.day - 1, length),
        "day_of_year": (date.timetuple().tm_yday - 1, 366 if leap else 365), "month": (date.month - 1, 12),
    }  # fmt: skip


NAMES = ("second", "minute", "hour", "weekday", "day", "day_of_year", "month")
MOST = dict(zip(NAMES, (60, 60, 24, 7, 31, 366, 12), strict=True))


def some_dates():
    rng = np.random.default_rng(3)
    days = rng.integers(1, 3_652_059, 200)
    return [datetime.datetime.fromisoformat(d) for d in DATES] + [
        datetime.datetime.fromordinal(int(d)) + datetime.timedelta(seconds=int(s))
        for d, s in zip(days, rng.integers(0, 86400, 200), strict=True)
    ]


@pytest.mark.parametrize("form", ["cyclic", "scaled"])
@pytest.mark.parametrize("per_second", [1, 1000])
def test_calendar_against_datetime(form, per_second):
    dates = some_dates()
    times = np.array([seconds_of(d) * per_second for d in dates])
    wanted = []
    for date in dates:
        row = []
        for name in NAMES:
            value, count = values_of(date)[name]
            angle = 2 * math.pi * value / count
            row += [value / (MOST[name] - 1) - 0.5] if form == "scaled" else [math.sin(angle), math.cos(angle)]
        wanted.append(row)
    value = Calendar(NAMES, form=form, per_second=per_second)
    assert np.abs(calendar_features(value, times) - wanted).max() < 1e-14
    for at in (torch.from_numpy(times), torch.from_numpy(times.astype(float) + 0.75 * per_second)):
        found = CalendarEncoding(value).vectors(at, torch.float64)[0].numpy()
        assert np.abs(found - wanted).max() < 1e-14


def test_calendar_clock_and_trend():
    value = Calendar(("hour", "weekday"), form="scaled", utc_offset=-5 * 3600, trend=1e9)
    sunday = seconds_of(datetime.datetime(2025, 11, 30, 2, 30))  # 21:30 on Saturday, five hours west
    found = CalendarEncoding(value).vectors(torch.tensor([sunday]), torch.float64)[0, 0].tolist()
    assert found == pytest.approx([21 / 23 - 0.5, 5 / 6 - 0.5, sunday / 1e9], abs=1e-14)
    assert calendar_features(value, [sunday])[0].tolist() == pytest.approx(found, abs=1e-14)


# ----------------------------------------------------------------------------------------------- trained clocks


def test_time2vec_against_its_formula_and_the_published_example():
    encoding = Time2VecEncoding(2).double()
    with torch.no_grad():
        encoding.weight.copy_(torch.tensor([0.5, 1.0]))
        encoding.phase.copy_(torch.tensor([0.1, 0.2], dtype=torch.float64))
    found = encoding.vectors(torch.tensor([2]), torch.float64)[0, 0].tolist()
    assert found == pytest.approx([1.1, 0.8084964038195901], abs=1e-14)
    encoding = Time2VecEncoding(5, unit=DAY, origin=float(EPOCH))
    at = torch.tensor([EPOCH + 43200, EPOCH - 86400])
    parts = [p.detach().double().numpy() for p in (encoding.weight, encoding.phase)]
    assert np.abs(encoding.vectors(at)[0].detach().numpy() - time2vec([0.5, -1.0], *parts)).max() < 1e-6
    nanoseconds = Time2VecEncoding(5, unit=DAY * 1e9, origin=float(EPOCH * 10**9))
    nanoseconds.load_state_dict(encoding.state_dict())
    assert (nanoseconds.vectors(at * 10**9 + 1) - encoding.vectors(at)).abs().max() < 1e-6
    single = Time2VecEncoding(5, origin=float(EPOCH * 10**9))
    near = single.vectors(EPOCH * 10**9 + torch.tensor([0, 1, 2]), torch.float64)[0]
    assert (
        np.abs(near.detach().numpy() - time2vec([0, 1, 2], *(p.detach().numpy() for p in single.parameters()))).max()
        < 1e-6
    )


def test_time2vec_gradients():
    encoding = Time2VecEncoding(3).double()
    x, at = torch.randn(2, 4, 3).double(), torch.rand(2, 4, dtype=torch.float64, requires_grad=True)

    def run(weight, phase, at):
        return torch.func.functional_call(encoding, {"weight": weight, "phase": phase}, (x, at))

    assert torch.autograd.gradcheck(run, (*[p.detach().clone().requires_grad_() for p in encoding.parameters()], at))


# --------------------------------------------------------------------------------------------- Fourier features


def test_fourier_features_against_a_loop():
    value = Fourier(10, sigma=1.5, seed=7, axes=3)
    matrix, at = fourier_matrix(value), np.random.default_rng(0).standard_normal((4, 3))
    wanted = np.zeros((4, 10))
    for n in range(4):
        for j in range(5):
            angle = 2 * math.pi * sum(matrix[j, a] * at[n, a] for a in range(3))
            wanted[n, j], wanted[n, 5 + j] = math.cos(angle), math.sin(angle)
    assert np.abs(fourier_features(value, at) - wanted).max() < 1e-13
    encoding = FourierFeatures(value)
    found = encoding.vectors(torch.from_numpy(at.T.copy()), torch.float64)[0].numpy()
    assert np.abs(found - wanted).max() < 1e-13
    assert not encoding.state_dict()


def test_fourier_kernel_is_the_gaussian_in_the_mean():
    """E cos(2 pi B dv) = exp(-2 pi^2 sigma^2 |dv|^2); the sample mean of 2^15 rows is within five deviations."""
    rows = 2**15
    features = FourierFeatures(2 * rows, seed=11, axes=2).vectors(torch.tensor([[0.0, 0.2], [0.0, 0.3]]), torch.float64)
    mean = float(features[0, 0] @ features[0, 1]) / rows
    assert mean == pytest.approx(math.exp(-2 * math.pi**2 * 0.13), abs=5 * 0.71 / math.sqrt(rows))


@pytest.mark.parametrize(("axes", "groups"), [(1, 1), (2, 1), (6, 2)])
def test_learnable_fourier_against_its_formula(axes, groups):
    value = LearnableFourier(10, axes=axes, groups=groups, features=6, hidden=7, gamma=2.0)
    encoding = LearnableFourierFeatures(value).double()
    at = torch.randn(axes, 5, dtype=torch.float64)
    found = encoding.vectors(at if axes > 1 else at[0], torch.float64)[0].detach().numpy()
    parts = [p.detach().numpy() for p in (encoding.matrix, encoding.first.weight, encoding.first.bias,
                                          encoding.second.weight, encoding.second.bias)]  # fmt: skip
    wanted = learnable_fourier(value, at.T.numpy() if axes > 1 else at[0].numpy(), *parts)
    assert np.abs(found - wanted).max() < 1e-14
    for n in range(5):  # the algorithm, number by number
        for g in range(groups):
            part = [at[g * (axes // groups) + a, n].item() for a in range(axes // groups)]
            angles = [sum(w * v for w, v in zip(row, part, strict=True)) for row in parts[0]]
            r = [f(a) / math.sqrt(6) for f in (math.cos, math.sin) for a in angles]
            inner = [
                sum(w * v for w, v in zip(row, r, strict=True)) + b for row, b in zip(parts[1], parts[2], strict=True)
            ]
            gelu = [v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in inner]
            outer = [
                sum(w * v for w, v in zip(row, gelu, strict=True)) + b
                for row, b in zip(parts[3], parts[4], strict=True)
            ]
            width = 10 // groups
            assert np.abs(found[n, g * width : (g + 1) * width] - outer).max() < 1e-13


def test_learnable_fourier_gradients():
    encoding = LearnableFourierFeatures(4, axes=2, features=2, hidden=3).double()
    names = [n for n, _ in encoding.named_parameters()]
    x, at = torch.randn(1, 3, 4).double(), torch.randn(2, 3, dtype=torch.float64, requires_grad=True)

    def run(at, *parameters):
        return torch.func.functional_call(encoding, dict(zip(names, parameters, strict=True)), (x, at))

    assert torch.autograd.gradcheck(run, (at, *[p.detach().clone().requires_grad_() for p in encoding.parameters()]))


def test_real_time_under_a_sinusoid_is_a_shift():
    """Scores depend on differences only, so epoch seconds may be counted from anywhere."""
    encoding, at = SinusoidalEncoding(14), torch.tensor([0.0, 1.25, 7.5], dtype=torch.float64)
    far, near = (encoding.vectors(t, torch.float64)[0] for t in (at + EPOCH, at))
    assert (far @ far.T - near @ near.T).abs().max() < 1e-6


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("calendar(features=('hour', 'hour'))", "given once"),
        ("calendar(features=('fortnight',))", "should be"),
        ("fourier(7)", "dim is even"),
        ("learnable_fourier(8, features=3)", "features is even"),
        ("learnable_fourier(8, axes=3, groups=2)", "groups divides"),
        ("hierarchical((sinusoidal(4),))", "at least 2"),
        ("hierarchical((sinusoidal(4), sinusoidal(4)), sizes=(3, 4))", "one count fewer"),
        ("adjusted(sinusoidal(4), shape=(3, 4))", "one count for each"),
        ("adjusted(sinusoidal(4, padding_row=0), shape=(3,))", "no padding row"),
    ],
)
def test_values_that_cannot_exist(line, rule):
    with pytest.raises(SpecError, match=rule):
        build(line)


def test_notation_builds():
    assert build("time2vec(7, unit=3600)").value == Time2Vec(7, unit=3600.0)
