"""Positions: counted by hand or by slow loops."""

from __future__ import annotations

import math

import pytest
import torch

from posenc.errors import ShapeError, SpecError
from posenc.formulas import grid_positions
from posenc.nn.interfaces import Positions
from posenc.nn.numerals import digits, random_start
from posenc.nn.positions import grid, instants, packed, padded, randomised, sequence
from posenc.nn.rotary import RotaryEmbedding
from posenc.nn.shards import shard, shard_indices, unsharded


def test_sequences_go_on_behind_a_cache():
    at = sequence(3, torch.tensor([5, 11]), length=torch.tensor([16, 32]))
    assert at.ids.tolist() == [[[5, 6, 7]], [[11, 12, 13]]]
    assert at.length.tolist() == [16, 32]
    assert sequence(4, 2, length=9).length.tolist() == [9]
    assert sequence(3, axes=3).ids.shape == (3, 1, 1, 3)
    assert sequence(0).ids.shape == (1, 1, 0)


def test_padding_counts_only_tokens():
    mask = torch.tensor([[0, 0, 0, 1, 1], [1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
    expected = []
    for row in mask.tolist():
        seen, ids = 0, []
        for real in row:
            ids.append(seen if real else 0)
            seen += real
        expected.append(ids)
    assert padded(mask).ids[:, 0].tolist() == expected
    assert padded(mask.bool(), tokens=2).ids[:, 0].tolist() == [row[-2:] for row in expected]
    assert padded(mask, tokens=0).ids.shape == (3, 1, 0)


def test_packed_documents_count_from_zero():
    at = packed([0, 3, 3, 7], declare=True)
    assert at.ids.flatten().tolist() == [0, 1, 2, 0, 1, 2, 3]
    assert at.document.tolist() == [[0, 0, 0, 2, 2, 2, 2]]
    assert at.length.tolist() == [[3, 3, 3, 4, 4, 4, 4]]


def test_packed_and_padded_turn_as_alone():
    module, x = RotaryEmbedding(10), torch.randn(1, 3, 5, 10)
    alone = module.rotate(x, module.prepare(sequence(5)))
    mask = torch.tensor([[0] * 4 + [1] * 5])
    behind = module.rotate(torch.cat((torch.randn(1, 3, 4, 10), x), 2), module.prepare(padded(mask)))
    assert torch.equal(behind[:, :, 4:], alone)
    together = module.rotate(torch.cat((torch.randn(1, 3, 2, 10), x), 2), module.prepare(packed([0, 2, 7])))
    assert torch.equal(together[:, :, 2:], alone)


@pytest.mark.parametrize("shape", [(5,), (3, 5), (2, 3, 5)])
@pytest.mark.parametrize("coordinates", ["index", "unit"])
@pytest.mark.parametrize("columns_first", [False, True])
def test_grids_are_row_major(shape, coordinates, columns_first):
    at = grid(shape, prefix=2, coordinates=coordinates, columns_first=columns_first)
    ids = at.ids.reshape(len(shape), -1)
    assert (ids[:, :2] == 0).all()
    expected = torch.from_numpy(grid_positions(shape, coordinates=coordinates, columns_first=columns_first)).T
    assert torch.equal(ids[:, 2:].double(), expected)
    assert ids.is_floating_point() == (coordinates == "unit")


def test_prefix_tokens_are_not_turned():
    from posenc.spec import Split

    module = RotaryEmbedding(12, axes=Split((3, 3)))
    x = torch.randn(1, 2, 2 + 15, 12)
    got = module.rotate(x, module.prepare(grid((3, 5), prefix=2)))
    assert torch.equal(got[:, :, :2], x[:, :, :2])
    assert not torch.equal(got[:, :, 3:], x[:, :, 3:])


def test_unit_coordinates_are_centres_of_cells():
    ids = grid((14, 14), coordinates="unit").ids
    assert float(ids.max()) == pytest.approx(0.9285714, abs=1e-7)  # FORMULAS: DINOv3, 14 patches
    assert float(ids.min()) == -float(ids.max())


def test_times_keep_their_phase():
    nanoseconds = torch.tensor([1_700_000_000_000_000_123, 1_700_000_003_600_000_456])
    ids = instants(nanoseconds, step=1e9, origin=1_700_000_000_000_000_000).ids.flatten()
    assert ids.tolist() == [123e-9, 3.600000456]
    far = instants(nanoseconds, step=3600e9).ids.flatten().tolist()
    assert far[1] - far[0] == pytest.approx(1e-3, abs=1e-9)
    assert instants(torch.tensor([7, 9])).ids.dtype == torch.int64
    assert instants(torch.tensor([[0.5, 1.0], [2.0, 3.0]])).ids.shape == (2, 1, 2)
    module = RotaryEmbedding(2)
    seconds = torch.tensor([1_700_000_000, 1_700_000_007])
    for times in (seconds, seconds.double()):
        ready = module.prepare(instants(times))
        phase = torch.atan2(ready.sin, ready.cos).flatten().double()
        turn = float(phase[1] - phase[0]) % (2 * math.pi)
        assert turn == pytest.approx(7 % (2 * math.pi), abs=5e-7)
    with pytest.raises(ShapeError, match=r"told apart; got 1.7e.09 in torch.float32.*128 s"):
        instants(seconds.float())


def test_randomised_positions_are_a_sorted_draw():
    one = randomised(50, 200, batch=2, generator=torch.Generator().manual_seed(3)).ids
    again = randomised(50, 200, batch=2, generator=torch.Generator().manual_seed(3)).ids
    assert torch.equal(one, again)
    assert one.shape == (2, 1, 50)
    assert (one.diff() > 0).all()
    assert one.min() >= 0
    assert one.max() < 200
    assert not torch.equal(one[0], one[1])
    assert randomised(9, 9).ids.flatten().tolist() == list(range(9))


@pytest.mark.parametrize(("count", "below"), [(3, 11), (3, 2**21)])
def test_every_position_is_drawn_equally_often(count, below):
    generator = torch.Generator().manual_seed(0)
    ids = torch.cat([randomised(count, below, batch=200, generator=generator).ids for _ in range(5)]).flatten()
    share = torch.histc(ids.float(), bins=11, min=0, max=below) / len(ids)
    assert (share - 1 / 11).abs().max() < 0.03  # 3000 draws: five standard deviations


def test_digits_count_their_place():
    text = ["12+345=7", "+++9==88"]
    flags = torch.tensor([[c.isdigit() for c in line] for line in text])
    for from_right in (False, True):
        expected = []
        for line in text:
            ids = []
            for i in range(len(line)):
                step = 1 if from_right else -1
                j = i
                while 0 <= j < len(line) and line[j].isdigit():
                    j += step
                ids.append(abs(i - j) if line[i].isdigit() else 0)
            expected.append(ids)
        assert digits(flags, count_from="right" if from_right else "left").ids[:, 0].tolist() == expected
    moved = digits(flags, start=torch.tensor([10, 20])).ids[:, 0]
    assert moved[0].tolist() == [10, 11, 0, 10, 11, 12, 0, 10]
    assert moved[1].tolist() == [0, 0, 0, 20, 0, 0, 20, 21]


def test_equal_significance_meets():
    """In 653 + 49 = 702 the units 3, 9 and 2 share a position, and so do the tens."""
    line = "653+49=702"
    ids = digits(torch.tensor([c.isdigit() for c in line]), count_from="right").ids.flatten().tolist()
    for place, where in ((1, (2, 5, 9)), (2, (1, 4, 8)), (3, (0, 7))):
        assert [i for i, n in enumerate(ids) if n == place] == list(where)


def test_random_starts():
    starts = random_start(100, batch=500, generator=torch.Generator().manual_seed(0))
    assert starts.min() >= 1
    assert starts.max() <= 100
    assert len(starts.unique()) > 90


# ------------------------------------------------------------------------------------------------------ shards


@pytest.mark.parametrize("how", ["contiguous", "zigzag"])
@pytest.mark.parametrize("ends", [None, [0, 12, 12, 30]])
def test_shards_together_are_the_whole(how, ends):
    at = sequence(30) if ends is None else packed(ends, declare=True)
    tokens, world = 30, 3
    order = unsharded(tokens, world, how, cu_seqlens=ends)
    parts = [shard(at, rank, world, how, cu_seqlens=ends) for rank in range(world)]
    assert torch.equal(torch.cat([p.ids for p in parts], -1)[..., order], at.ids)
    assert {p.ids.shape[-1] for p in parts} == {10}
    if ends is not None:
        assert torch.equal(torch.cat([p.document for p in parts], -1)[..., order], at.document)
        assert torch.equal(torch.cat([p.length for p in parts], -1)[..., order], at.length)
        for part in parts:  # each device has its share of each document
            assert torch.bincount(part.document[0]).tolist() == [4, 0, 6]


def test_zigzag_shares_the_causal_mask():
    tokens, world = 48, 4
    work = {r: sum(i + 1 for i in shard_indices(tokens, r, world, "zigzag").tolist()) for r in range(world)}
    assert len(set(work.values())) == 1
    assert len({sum(shard_indices(tokens, r, world).tolist()) for r in range(world)}) == world


def test_a_sharded_length_stays_the_rows():
    assert shard(sequence(8, length=99), 1, 2).length.tolist() == [99]
    assert shard(Positions(torch.arange(8)), 1, 2).ids.tolist() == [4, 5, 6, 7]


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda: sequence(-1), ShapeError, "0 to 2.28 tokens; got -1"),
        (lambda: sequence(2**40), ShapeError, "0 to 2.28 tokens"),
        (lambda: sequence(3, torch.tensor([0.5])), ShapeError, "an offset is an integer"),
        (lambda: padded(torch.ones(4, dtype=torch.int64)), ShapeError, r"an attention mask is \(batch, tokens\)"),
        (lambda: padded(torch.ones(2, 4)), ShapeError, "integers or booleans"),
        (lambda: padded(torch.ones(2, 4).long(), tokens=5), ShapeError, "at most the 4"),
        (lambda: packed([0]), ShapeError, "cu_seqlens is"),
        (lambda: packed([1, 5]), ShapeError, "starts at 0"),
        (lambda: packed([0, 5, 3]), ShapeError, "never falls"),
        (lambda: packed([0, 2**50]), ShapeError, "0 to 2.28 tokens"),
        (lambda: grid((1, 2, 3, 4)), ShapeError, "one to three axes"),
        (lambda: grid((0, 2)), ShapeError, "at least one cell"),
        (lambda: grid((2**20, 2**20)), ShapeError, "0 to 2.28 cells"),
        (lambda: grid((2, 2), coordinates="pixels"), SpecError, "index or unit"),
        (lambda: instants(torch.tensor([float("inf")])), ShapeError, "times are finite"),
        (lambda: instants(torch.tensor([1]), step=0), ShapeError, "a step is above 0"),
        (lambda: randomised(5, 4), ShapeError, "at least 5"),
        (lambda: digits(torch.tensor([1, 0])), ShapeError, "booleans"),
        (lambda: digits(torch.tensor([True]), count_from="up"), SpecError, "left or right"),
        (lambda: random_start(0), ShapeError, "drawn from 1 on"),
        (lambda: shard_indices(9, 0, 2), ShapeError, "divide into 2 chunks; got 9. Pad it to 10"),
        (lambda: shard_indices(8, 2, 2), ShapeError, "a rank is 0 to 1"),
        (lambda: shard_indices(8, 0, 2, "spiral"), SpecError, "contiguous or zigzag"),
        (lambda: shard_indices(8, 0, 2, cu_seqlens=[0, 4]), ShapeError, "runs from 0 to the 8 tokens"),
    ],
)
def test_bad_input_names_the_rule(act, error, words):
    with pytest.raises(error, match=words):
        act()
