"""Sinusoidal tables: scalar and vectorised agree, and both are what their sources say."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from oracles import sinusoids
from posenc.errors import ShapeError, SpecError
from posenc.formulas import grid_positions, sinusoidal_entry, sinusoidal_table
from posenc.spec import Arithmetic, Explicit, Geometric, Interleave, Mixed, Periods, Random, Sinusoidal, Split

ORDERS = ("interleaved", "interleaved_cos_first", "sin|cos", "cos|sin")
SCHEDULES = {
    "geometric": lambda n: Geometric(base=777.0, first=1.25),
    "shifted": lambda n: Geometric(shift=min(1.0, (n - 1) / 2)),
    "kept": lambda n: Geometric(keep=0.6),
    "arithmetic": lambda n: Arithmetic(first=0.9, last=0.01),
    "random": lambda n: Random(sigma=0.7, seed=5),
    "explicit": lambda n: Explicit(theta=tuple(0.9 / (1 + 3 * i) for i in range(n))),
    "periods": lambda n: Periods(periods=tuple(7.0 + 5 * i for i in range(n))),
}
# Numbers as FORMULAS states them, computed independently of this package.
PUBLISHED = {
    "vaswani": (
        Sinusoidal(8),
        3,
        "0.1411200080598672 -0.9899924966004454 0.2955202066613396 0.955336489125606 "
        "0.02999550020249566 0.9995500337489875 0.002999995500002025 0.999995500003375",
    ),
    "tensor2tensor": (
        Sinusoidal(8, shift=1.0, order="sin|cos"),
        3,
        "0.1411200080598672 0.13879810108005047 0.0064632590701896 0.0002999999955 "
        "-0.9899924966 0.9903206991356750 0.99997911292296 0.999999955",
    ),
    "ddpm": (
        Sinusoidal(8, shift=1.0, order="sin|cos"),
        10,
        "-0.544021110889 0.447670834719 0.021542680272 0.000999999833 -0.839071529076 0.894198425263 0.999767929535 "
        "0.9999995",
    ),
    "stable diffusion": (
        Sinusoidal(8, order="cos|sin"),
        10,
        "-0.839071529076 0.540302305868 0.995004165278 0.999950000417 -0.544021110889 0.841470984808 "
        "0.099833416647 0.009999833334",
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_rows(name):
    encoding, position, text = PUBLISHED[name]
    digits = text.split()
    row = sinusoidal_table(encoding, [position])[0]
    for channel, written in enumerate(digits):
        places = len(written.split(".")[1])
        assert row[channel] == pytest.approx(float(written), abs=0.51 * 10 ** -min(places, 15)), channel
        assert sinusoidal_entry(encoding, position, channel) == pytest.approx(row[channel], abs=1e-15)


@pytest.mark.parametrize("position", [0, 1, 3, 10**4 + 1, 10**7])
@pytest.mark.parametrize("dim", [2, 7, 10])
def test_the_papers_loop(position, dim):
    with mp.workdps(40):
        truth = [float(v) for v in sinusoids.vaswani(position, dim)]
    np.testing.assert_allclose(sinusoidal_table(Sinusoidal(dim), [position])[0], truth, rtol=0, atol=1e-15)


@pytest.mark.parametrize("position", [0, 2, 5003, 10**7 - 1])
@pytest.mark.parametrize("dim", [5, 8, 14])
def test_tensor2tensors_loop(position, dim):
    with mp.workdps(40):
        truth = [float(v) for v in sinusoids.tensor2tensor(position, dim)]
    encoding = Sinusoidal(dim, shift=1.0, order="sin|cos", odd="zero")
    np.testing.assert_allclose(sinusoidal_table(encoding, [position])[0], truth, rtol=0, atol=1e-15)


@pytest.mark.parametrize(("flip", "shift"), [(False, 1), (True, 0), (True, 1), (False, 0)])
def test_diffusion_time_steps(flip, shift):
    with mp.workdps(40):
        truth = [float(v) for v in sinusoids.diffusion(mpf(371) / 2, 22, flip=flip, shift=shift)]
    encoding = Sinusoidal(22, shift=float(shift), order="cos|sin" if flip else "sin|cos")
    np.testing.assert_allclose(sinusoidal_table(encoding, [185.5])[0], truth, rtol=0, atol=1e-15)


def test_mae_starts_with_the_columns_part():
    encoding = Sinusoidal(20, order="sin|cos", axes=Split((5, 5)), prefix=1)
    cells = grid_positions((3, 2), columns_first=True)
    table = sinusoidal_table(encoding, cells)
    assert table.shape == (7, 20)
    assert not table[0].any()
    with mp.workdps(40):
        for i, (row, column) in enumerate(product(range(3), range(2))):
            truth = [float(v) for v in sinusoids.mae(row, column, 20)]
            np.testing.assert_allclose(table[1 + i], truth, rtol=0, atol=1e-15)


def test_maes_published_row():
    encoding = Sinusoidal(16, order="sin|cos", axes=Split((4, 4)))
    row = sinusoidal_table(encoding, [[2, 1]])[0]
    starts = [0.909297426826, 0.198669330795, 0.019998666693, 0.001999998667, -0.416146836547]
    np.testing.assert_allclose(row[:5], starts, rtol=0, atol=1e-12)
    np.testing.assert_allclose(row[8:10], [0.841470984808, 0.099833416647], rtol=0, atol=1e-12)


WIDTHS = [(2, "lone_sine"), (10, "lone_sine"), (11, "lone_sine"), (11, "zero"), (3, "zero")]
LAYOUTS = [  # an odd dim in halves has no lone sine
    (order, dim, odd)
    for order, (dim, odd) in product(ORDERS, WIDTHS)
    if "|" not in order or dim % 2 == 0 or odd == "zero"
]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("order", "dim", "odd"), LAYOUTS)
def test_scalar_and_vectorised_agree(schedule, order, dim, odd):
    pairs = dim // 2 if odd == "zero" else (dim + 1) // 2
    encoding = Sinusoidal(dim, schedule=SCHEDULES[schedule](pairs), order=order, odd=odd, offset=2, padding_row=5)
    positions = [0, 1, 3, 17.25, -4.5, 1000]
    table = sinusoidal_table(encoding, positions)
    entries = [[sinusoidal_entry(encoding, p, c) for c in range(dim)] for p in positions]
    np.testing.assert_allclose(table, entries, rtol=0, atol=1e-12)
    assert not table[2].any()  # 3 + offset is the padding row
    assert table[1].any()


AXES = {
    "own": Split((3, 2, 5)),
    "one schedule": Split((3, 2, 5), own_schedule=False),
    "interleaved": Interleave((4, 3, 3)),
}


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("order", ORDERS)
def test_scalar_and_vectorised_agree_over_axes(axes, order):
    encoding = Sinusoidal(20, base=50.0, order=order, axes=AXES[axes], offset=1)
    positions = [(0, 1, 2), (7, -3, 0.5), (11, 13, 17)]
    entries = [[sinusoidal_entry(encoding, p, c) for c in range(20)] for p in positions]
    np.testing.assert_allclose(sinusoidal_table(encoding, positions), entries, rtol=0, atol=1e-13)


def test_orders_hold_the_same_numbers():
    interleaved = sinusoidal_table(Sinusoidal(10), [3, 4])
    np.testing.assert_array_equal(
        sinusoidal_table(Sinusoidal(10, order="interleaved_cos_first"), [3, 4]),
        interleaved[:, [1, 0, 3, 2, 5, 4, 7, 6, 9, 8]],
    )
    np.testing.assert_array_equal(
        sinusoidal_table(Sinusoidal(10, order="sin|cos"), [3, 4]), interleaved[:, [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]]
    )
    np.testing.assert_array_equal(
        sinusoidal_table(Sinusoidal(10, order="cos|sin"), [3, 4]), interleaved[:, [1, 3, 5, 7, 9, 0, 2, 4, 6, 8]]
    )


def test_fairseq_rows():
    """padding_idx = 1: the first token reads row 2, padding reads row 1, which is zero."""
    encoding = Sinusoidal(9, shift=1.0, order="sin|cos", odd="zero", offset=2, padding_row=1)
    table = sinusoidal_table(encoding, [-1, 0, 1])
    assert not table[0].any()
    assert table[1, 0] == pytest.approx(math.sin(2), abs=1e-15)
    assert not table[:, 8].any()


@settings(max_examples=50, deadline=None)
@given(
    half=st.integers(1, 40),
    base=st.floats(1.5, 1e6),
    position=st.one_of(st.integers(-(10**7), 10**7), st.floats(-1e7, 1e7)),
    order=st.sampled_from(ORDERS),
)
def test_norm_of_a_row(half, base, position, order):
    """Claim 4: every row of an even width has norm sqrt(d / 2)."""
    row = sinusoidal_table(Sinusoidal(2 * half, base=base, order=order), [position])[0]
    assert float(row @ row) == pytest.approx(half, rel=1e-14)


def test_longest_wavelength_of_the_paper():
    from posenc.formulas import frequencies

    wavelengths = frequencies(Sinusoidal(512)).wavelengths
    assert wavelengths[0] == pytest.approx(2 * math.pi, rel=1e-15)
    assert wavelengths[-1] == pytest.approx(60611.5, abs=0.05)
    assert frequencies(Sinusoidal(512, shift=1.0)).wavelengths[-1] == pytest.approx(2e4 * math.pi, rel=1e-12)


def test_grid_of_centres():
    centres = grid_positions((14, 2), coordinates="unit")
    assert centres[0].tolist() == pytest.approx([-0.9285714, -0.5], abs=1e-7)
    assert centres[-1].tolist() == pytest.approx([0.9285714, 0.5], abs=1e-7)
    assert grid_positions((2, 3)).tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]


def test_bad_tables():
    with pytest.raises(ShapeError, match=r"are \(n,\)"):
        sinusoidal_table(Sinusoidal(4), [[1, 2]])
    with pytest.raises(ShapeError, match="at most 2\\^28"):
        sinusoidal_table(Sinusoidal(2**20), np.zeros(300))
    with pytest.raises(ShapeError, match="channels run from 0 to 3"):
        sinusoidal_entry(Sinusoidal(4), 1, 4)
    with pytest.raises(ShapeError, match="2 coordinates"):
        sinusoidal_entry(Sinusoidal(4, axes=Split((1, 1))), (1, 2, 3), 0)
    with pytest.raises(ShapeError, match="at least one cell"):
        grid_positions((3, 0))
    with pytest.raises(ShapeError, match="at most 2\\^28"):
        grid_positions((2**20, 2**20))
    with pytest.raises(SpecError, match="index or unit"):
        grid_positions((3, 4), coordinates="centre")
    with pytest.raises(SpecError, match="no heads"):
        Sinusoidal(8, axes=Mixed(3))
    with pytest.raises(SpecError, match="one coordinate"):
        Sinusoidal(8, axes=Split((2, 2)), padding_row=0)
