"""Learned tables: rows, errors past the last, resampling against torch."""

import numpy as np
import pytest

from posenc.errors import ShapeError, SpecError
from posenc.formulas import learned_rows, resample_table
from posenc.spec import Learned


def test_rows_of_text_and_grid():
    assert learned_rows(Learned(8, shape=(7,), offset=2), [0, 3, 6]).tolist() == [2, 5, 8]
    grid = Learned(8, shape=(3, 5), prefix=1)
    assert learned_rows(grid, [[0, 0], [0, 4], [2, 1]]).tolist() == [1, 5, 12]
    assert grid.rows == 16
    assert learned_rows(Learned(8, shape=(2, 3, 5)), [[[1, 2, 4]]]).tolist() == [[29]]


@pytest.mark.parametrize("position", [7, -1, 2**40])
def test_no_row_past_the_last(position):
    with pytest.raises(ShapeError, match="positions 0 to 6") as error:
        learned_rows(Learned(8, shape=(7,), offset=2), [0, position])
    assert str(position) in str(error.value)
    assert "does not extrapolate" in str(error.value)


def test_each_axis_has_its_own_last_row():
    with pytest.raises(ShapeError, match="positions 0 to 2; got 3"):
        learned_rows(Learned(8, shape=(3, 5)), [[3, 0]])
    with pytest.raises(ShapeError, match="positions 0 to 4; got 5"):
        learned_rows(Learned(8, shape=(3, 5)), [[2, 5]])


def test_rows_that_exist_but_were_never_trained():
    encoding = Learned(8, shape=(11,), prefix=1)
    assert learned_rows(encoding, [6], trained=7).tolist() == [7]
    with pytest.raises(ShapeError, match="never trained"):
        learned_rows(encoding, [7], trained=7)


def test_positions_are_integers_of_the_axes():
    with pytest.raises(ShapeError, match="integers"):
        learned_rows(Learned(8, shape=(7,)), [0.5])
    with pytest.raises(ShapeError, match="2 axes"):
        learned_rows(Learned(8, shape=(3, 5)), [1, 2, 1])


@pytest.mark.parametrize(("old", "new"), [(5, 11), (11, 5), (5, 3), (1, 4), (4, 1), (2, 7)])
def test_one_axis_against_torch(old, new):
    import torch

    table = np.random.default_rng(3).standard_normal((2 + old, 3))
    x = torch.from_numpy(table[2:].T[None])
    truth = torch.nn.functional.interpolate(x, size=new, mode="linear", align_corners=False)[0].T.numpy()
    result = resample_table(table, (old,), (new,), prefix=2, method="linear")
    np.testing.assert_allclose(result[2:], truth, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(result[:2], table[:2])


@pytest.mark.parametrize(("old", "new"), [((3, 5), (7, 11)), ((7, 11), (3, 5)), ((3, 5), (3, 8)), ((2, 3), (5, 2))])
@pytest.mark.parametrize(("method", "mode"), [("linear", "bilinear"), ("cubic", "bicubic")])
def test_two_axes_against_torch(old, new, method, mode):
    import torch

    table = np.random.default_rng(4).standard_normal((1 + old[0] * old[1], 3))
    x = torch.from_numpy(table[1:].reshape(*old, 3)).permute(2, 0, 1)[None]
    truth = torch.nn.functional.interpolate(x, size=new, mode=mode, align_corners=False)
    truth = truth[0].permute(1, 2, 0).reshape(-1, 3).numpy()
    result = resample_table(table, old, new, prefix=1, method=method)
    np.testing.assert_allclose(result[1:], truth, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(result[0], table[0])


@pytest.mark.parametrize("method", ["linear", "cubic"])
def test_the_same_size_is_the_identity(method):
    table = np.random.default_rng(5).standard_normal((1 + 15, 3))
    np.testing.assert_array_equal(resample_table(table, (3, 5), (3, 5), prefix=1, method=method), table)


@pytest.mark.parametrize("method", ["linear", "cubic"])
def test_a_constant_table_stays_constant(method):
    np.testing.assert_allclose(resample_table(np.full((7, 2), 3.5), (7,), (17,), method=method), 3.5, rtol=4e-15)


def test_bad_resampling():
    table = np.zeros((6, 2))
    with pytest.raises(ShapeError, match="has 7 rows"):
        resample_table(table, (7,), (9,))
    with pytest.raises(ShapeError, match="as many axes"):
        resample_table(table, (6,), (2, 3))
    with pytest.raises(ShapeError, match="at least one cell"):
        resample_table(table, (6,), (0,))
    with pytest.raises(ShapeError, match="at most 2\\^28"):
        resample_table(table, (6,), (2**30,))
    with pytest.raises(SpecError, match="linear or cubic"):
        resample_table(table, (6,), (7,), method="nearest")
