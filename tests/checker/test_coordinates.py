"""Rotations over two axes: positions with coordinates, and modules built for the cells of one grid."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from posenc.checker.checking import check

LINE = "rotary(20, interleaved=True, axes=split((5, 5)))"
RATES = 1e4 ** (-np.arange(5) / 5)


def neighbours(x, angle):
    a, b = x[..., ::2], x[..., 1::2]
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([a * c - b * s, b * c + a * s], -1).reshape(x.shape)


def over(first, second, turned=False):
    """A function of coordinates, whose halves follow the two named ones."""

    def rope(x, coords):
        at = np.asarray(coords, dtype=np.float64)
        at = at if at.shape[-1] == 2 and not turned else np.moveaxis(at, 0, -1)
        return neighbours(x, np.concatenate([at[..., first, None] * RATES, at[..., second, None] * RATES], -1))

    return rope


@pytest.mark.parametrize("turned", [False, True])
def test_coordinates_are_moved_one_by_one(turned):
    right = check(over(0, 1, turned), LINE, library="numpy", probes=False)
    assert right.could_not_run is None
    assert right.findings == ()
    assert "axes one by one" in right.probes
    (other,) = check(over(1, 0, turned), LINE, library="numpy", probes=False).findings
    assert (other.verdict, other.kinds) == ("convention", ("axis-order",))
    (dropped,) = check(over(0, 0, turned), LINE, library="numpy", probes=False).at_least("defect")
    assert dropped.title == "nothing turns along axis 1: an axis is dropped"


def test_pairs_of_the_wrong_axis_among_right_ones():
    def rope(x, coords):
        at = np.asarray(coords, dtype=np.float64)
        follows = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
        return neighbours(x, at[..., follows] * np.tile(RATES, 2))

    (found,) = check(rope, LINE, library="numpy", probes=False).at_least("defect")
    assert found.title == "1 of 10 pairs are turned by another axis than wanted"
    assert found.first_wrong.pair == 4


def test_positions_with_one_number_are_not_said_to_have_been_moved():
    def rope(x, positions):
        at = np.asarray(positions, dtype=np.float64)
        if at.ndim != 1:
            raise ValueError("one number for each token")
        return neighbours(x, at[:, None] * np.tile(RATES, 2))

    report = check(rope, LINE, library="numpy", probes=False)
    assert report.findings == ()
    assert any(text.startswith("axes one by one") for text in report.not_probed)


class Cells(nn.Module):
    """For a square grid of one size; ``dim`` is that of one axis, half of a head."""

    def __init__(self, dim=10, pt_seq_len=6, theta=10000.0, rows=True, transposed=False):
        super().__init__()
        angle = torch.arange(pt_seq_len)[:, None] * theta ** (-torch.arange(0, dim, 2).double() / dim)
        angle = angle.repeat_interleave(2, -1)
        by_row, by_column = angle[:, None].expand(-1, len(angle), -1), angle[None].expand(len(angle), -1, -1)
        halves = (by_row if rows else by_column, by_column)
        both = torch.cat(halves[::-1] if transposed else halves, -1).flatten(0, 1)
        self.register_buffer("cos", both.cos().float(), persistent=False)
        self.register_buffer("sin", both.sin().float(), persistent=False)

    def forward(self, t):
        swapped = torch.stack([-t[..., 1::2], t[..., ::2]], -1).flatten(-2)
        return t * self.cos + swapped * self.sin


def test_a_module_for_the_cells_of_one_grid():
    report = check(Cells, LINE, probes=False)
    assert report.could_not_run is None
    assert report.findings == ()
    assert "constructed as Cells(dim=10" in " ".join(report.assumed)
    assert "a grid of 6 x 6" in " ".join(report.assumed)
    (found,) = check(Cells(rows=False), LINE, probes=False).at_least("defect")
    assert found.kinds == ("axis-order",)
    (other,) = check(Cells(transposed=True), LINE, probes=False).findings
    assert other.verdict == "convention"
