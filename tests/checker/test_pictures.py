"""Blocks that make patches of pictures and add a table of positions."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from posenc.checker.checking import check

SIDE, PATCH, DIM = 5, 3, 46
GRID = f"learned({DIM}, shape=({SIDE}, {SIDE}), prefix=1)"


class Patches(nn.Module):
    """As in vision transformers: patches by a convolution, a token of its own before them, a table for all."""

    def __init__(self, side=SIDE, kept=None):
        super().__init__()
        torch.manual_seed(7)
        self.patches = nn.Conv2d(2, DIM, kernel_size=PATCH, stride=PATCH)
        self.own = nn.Parameter(torch.randn(1, 1, DIM))
        self.table = nn.Parameter(torch.randn(1, side**2 + 1, DIM))
        self.kept = kept

    def forward(self, pixel_values, interpolate_pos_encoding=False):
        seen = self.patches(pixel_values).flatten(2).transpose(1, 2)
        seen = torch.cat([self.own.expand(len(seen), -1, -1), seen], dim=1)
        return seen + (self.table if self.kept is None else self.table[:, : self.kept])


class Unfolded(nn.Module):
    """Patches by reshaping and a linear layer, as in many tutorials; nothing stands before them."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(8)
        self.patch_size, self.linear = PATCH, nn.Linear(3 * PATCH**2, DIM)
        self.norm, self.table = nn.LayerNorm(DIM), nn.Embedding(SIDE**2, DIM)

    def forward(self, img):
        n, c, h, w = img.shape
        cells = img.reshape(n, c, h // PATCH, PATCH, w // PATCH, PATCH).permute(0, 2, 4, 3, 5, 1)
        rows = self.norm(self.linear(cells.reshape(n, -1, c * PATCH**2)))
        return rows + self.table(torch.arange(rows.shape[1]))


@pytest.mark.parametrize(
    ("subject", "line"),
    [
        (Patches(), GRID),
        (Patches(), f"learned({DIM}, shape=({SIDE**2 + 1},))"),
        (Unfolded(), f"learned({DIM}, shape=({SIDE}, {SIDE}))"),
    ],
)
def test_right_blocks_are_acquitted(subject, line):
    report = check(subject, line)
    assert (report.could_not_run, [f.title for f in report.at_least("defect")]) == (None, [])
    assert "for an empty picture" in " ".join(report.assumed)


def test_a_table_for_another_number_of_patches():
    (found,) = check(Patches(SIDE + 2), GRID, probes=False).at_least("defect")
    assert {r.name: r.value for r in found.recovered} == {"rows of the table": (SIDE + 2) ** 2 + 1}


def test_patches_that_share_a_row():
    (found,) = check(Patches(kept=1), GRID, probes=False).at_least("defect")
    assert found.first_wrong.position == 1


def test_what_makes_no_patches_is_told():
    assert check(nn.Conv2d(3, DIM, 3), GRID, probes=False).could_not_run
