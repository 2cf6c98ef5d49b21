"""Token ids under other names, in other shapes and beside vectors; the row of the table that position 0 reads."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from posenc.checker.checking import check

WORDS, ROWS, DIM = 101, 73, 46
LINE = f"learned({DIM}, shape=({ROWS},))"


class Base(nn.Module):
    """Rows of tokens and of positions; positions are those of the last dimension of the ids."""

    def __init__(self, rows=ROWS, first=0):
        super().__init__()
        torch.manual_seed(3)
        self.words, self.places, self.first = nn.Embedding(WORDS, DIM), nn.Embedding(rows, DIM), first

    def sum(self, ids, vectors=None, at=None, along=-1):
        at = torch.arange(ids.shape[along]) + self.first if at is None else at
        return (self.words(ids) if vectors is None else vectors) + self.places(at)


class Optional(Base):
    """As in CLIP: ids or vectors, and positions, all of them without need."""

    def forward(self, input_ids=None, position_ids=None, inputs_embeds=None):
        if input_ids is None and inputs_embeds is None:
            raise ValueError("ids or vectors are needed")
        return self.sum(input_ids, inputs_embeds, position_ids)


class NamedIds(Base):
    def forward(self, ids):
        return self.sum(ids)


class NamedIndices(Base):
    def forward(self, indices):
        return self.sum(indices)


class WithSegments(Base):
    """Segments must be given, and start at 0."""

    def forward(self, x, seg):
        return self.sum(x) + nn.functional.embedding(seg, self.words.weight[:2])


class Normalised(NamedIds):
    def forward(self, index):
        return nn.functional.layer_norm(self.sum(index), (DIM,))


class BatchSecond(Base):
    def forward(self, src):
        return self.words(src) + self.places(torch.arange(src.shape[0]))[:, None]


class BatchSecondByMistake(BatchSecond):
    """Gives vectors (batch, seq, dim)."""

    def forward(self, src):
        return super().forward(src)


def plain(inputs):
    words, places = (np.random.default_rng(s).normal(size=(n, DIM)) for s, n in ((1, WORDS), (2, ROWS)))
    return words[inputs] + places[range(len(inputs))]


@pytest.mark.parametrize("subject", [Optional(), NamedIds(), NamedIndices(), WithSegments(), Normalised(), plain])
def test_token_ids_are_told_from_positions(subject):
    report = check(subject, LINE, probes=False)
    assert report.acquitted
    assert "rows of width 46 for equal tokens" in " ".join(report.assumed)
    assert {m.name: m.value for m in report.measured}["rows"] == ROWS


@pytest.mark.parametrize("kind", [lambda at: at, lambda at: at + 2])
def test_positions_stay_positions(kind):
    table = np.random.default_rng(5).normal(size=(ROWS + 2, DIM))
    report = check(lambda ids: table[kind(ids)], LINE, library="numpy", probes=False)
    assert "ids: positions" in " ".join(report.assumed)


def test_ids_with_the_batch_second_are_a_convention_and_a_defect_where_documented_otherwise():
    (found,) = check(BatchSecond(), LINE, probes=False).findings
    assert (found.verdict, found.kinds) == ("convention", ("axis-order",))
    assert not check(BatchSecond(), LINE, layout="tbd", probes=False).findings
    (found,) = check(BatchSecondByMistake(), LINE, probes=False).findings
    assert (found.verdict, found.kinds) == ("defect", ("axis-order",))


@pytest.mark.parametrize(("first", "offset"), [(0, 2), (1, 2), (3, 2), (1, 0)])
def test_the_row_that_position_0_reads(first, offset):
    line = f"learned({DIM}, shape=({ROWS},), offset={offset})"
    assert check(NamedIds(ROWS + offset, offset), line, probes=False).acquitted
    (found,) = check(NamedIds(ROWS + offset, first), line, probes=False).at_least("defect")
    assert found.kinds == ("mask-padding",)
    assert {r.name: r.value for r in found.recovered} == {"rows before the first position": first}


def test_rows_that_are_reserved_beyond_the_wanted_ones():
    assert check(NamedIds(ROWS + 2, 2), LINE, probes=False).acquitted


@pytest.mark.parametrize("rank", [2, 3])
def test_a_shape_in_place_of_vectors(rank):
    def table(shape):
        if len(shape) != rank:
            raise ValueError(f"a shape of rank {rank}")
        n, d = shape[-2:] if rank == 3 else shape
        angle = np.arange(n)[:, None] * 1e4 ** (-np.arange(0, d, 2) / d)
        return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(n, d)

    assert check(table, f"sinusoidal({DIM})", library="numpy", probes=False).acquitted
