"""The C rotation against a loop over pairs in exact arithmetic, at every level of vector instructions there is."""

from __future__ import annotations

import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from posenc.errors import ShapeError
from posenc.native import arrays as arrays_module
from posenc.native import find, state
from posenc.native.arrays import Pairs, add_angles, cos_sin, rotate
from posenc.native.loading import LEVELS

DTYPES = [np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
LAYOUTS = {
    "halves": (Pairs(0, 37, 1, 37), 74),
    "halves, vectors only": (Pairs(0, 32, 1, 32), 64),
    "adjacent": (Pairs(0, 37, 2, 1), 74),
    "adjacent, vectors only": (Pairs(0, 64, 2, 1), 128),
    "partial": (Pairs(0, 5, 1, 5), 17),
    "trailing adjacent": (Pairs(7, 5, 2, 1), 17),
    "proportional": (Pairs(0, 3, 1, 8), 16),
    "every third": (Pairs(1, 4, 3, 1), 13),
    "none": (Pairs(2, 0, 1, 1), 5),
}


def levels():
    """None is the plain path."""
    handle = find().handle
    if handle is None:
        return [None]
    best = handle.posenc_level()
    found = [None, *(name for n, name in enumerate(LEVELS) if not handle.posenc_use_level(n))]
    handle.posenc_use_level(best)
    return found


@pytest.fixture(params=levels(), ids=str)
def level(request, monkeypatch):
    """Run with these instructions and put the best back."""
    handle = find().handle
    if request.param is None:
        monkeypatch.setattr(arrays_module, "find", lambda: state(Path("none.so"), "0"))
        yield None
        return
    best = handle.posenc_level()
    assert handle.posenc_use_level(LEVELS.index(request.param)) == 0
    yield request.param
    handle.posenc_use_level(best)


def slow(x, cos, sin, pairs, inverse=False):
    """One pair at a time; each product and sum rounded to float32, the result once to the dtype."""
    result = x.copy()
    one = np.float32
    for index in np.ndindex(*x.shape[:3]):
        at = tuple(0 if n == 1 else i for i, n in zip(index, cos.shape[:3], strict=True))
        for i in range(pairs.number):
            left = pairs.first + i * pairs.step
            a, b, c, s = (one(v) for v in (x[index][left], x[index][left + pairs.partner], cos[at][i], sin[at][i]))
            s = one(-s) if inverse else s
            result[index][left] = one(one(a * c) - one(b * s))
            result[index][left + pairs.partner] = one(one(b * c) + one(a * s))
    return result


def case(name, dtype, batch=2, heads=(3, 1), tokens=5):
    pairs, width = LAYOUTS[name]
    rng = np.random.default_rng(len(name))
    sides = tuple(rng.normal(size=(batch, h, tokens, width)).astype(np.float32).astype(dtype) for h in heads)
    angle = rng.uniform(0, 9, (1, 1, tokens, pairs.number))
    return sides, np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32), pairs


def same(a, b):
    return np.array_equal(a.astype(np.float32), b.astype(np.float32))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_is_the_loop_to_the_last_bit(name, dtype, level):
    sides, cos, sin, pairs = case(name, dtype)
    for got, x in zip(rotate(sides, cos, sin, pairs), sides, strict=True):
        assert same(got, slow(x, cos, sin, pairs))
    back = rotate(sides, cos, sin, pairs, inverse=True)
    assert same(back[0], slow(sides[0], cos, sin, pairs, inverse=True))


def awkward_floats(number):
    """Every kind of float32 that rounding can stumble over: ties, their neighbours, subnormals, the largest, random."""
    rng = np.random.default_rng(number)
    bits = rng.integers(0, 1 << 32, number, dtype=np.uint32)
    bits[::3] = bits[::3] & np.uint32(0xFFFF0000) | np.uint32(0x8000)
    bits[1::9] = bits[1::9] & np.uint32(0xFFFF0000) | np.uint32(0x7FFF)
    bits[2::9] = bits[2::9] & np.uint32(0x80FFFFFF)
    bits[5::31] = np.uint32(0x7F7FFFFF)
    return bits.view(np.float32)


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
@pytest.mark.parametrize("name", ["halves", "halves, vectors only", "adjacent", "adjacent, vectors only"])
def test_one_rounding_of_whatever_float32_comes_out(name, dtype, level):
    """Queries (1, 0) turned by (cos, sin) are (cos, sin), rounded; NaN stays NaN and touches no neighbour."""
    pairs, width = LAYOUTS[name]
    tokens = 131
    size = tokens * pairs.number
    cos, sin = (awkward_floats(size + n)[:size].reshape(1, 1, tokens, pairs.number) for n in (0, 5))
    cos[~np.isfinite(cos)], sin[~np.isfinite(sin)] = 0.5, 0.25
    cos[0, 0, 7, 3] = sin[0, 0, 11, 2] = np.nan
    x = np.zeros((1, 1, tokens, width), dtype)
    left = pairs.first + np.arange(pairs.number) * pairs.step
    x[..., left] = 1
    with np.errstate(over="ignore", invalid="ignore"):
        got = rotate((x,), cos, sin, pairs)[0]
        expected = cos.astype(dtype).astype(np.float32), (0 * cos + sin).astype(dtype).astype(np.float32)
    np.testing.assert_array_equal(got[..., left].astype(np.float32), expected[0] - 0 * sin)
    np.testing.assert_array_equal(got[..., left + pairs.partner].astype(np.float32), expected[1])
    assert np.isnan(got.astype(np.float32)).sum() == 4


@pytest.mark.parametrize("name", ["halves", "trailing adjacent", "proportional"])
def test_in_place_and_into_other_memory(name, level):
    sides, cos, sin, pairs = case(name, DTYPES[2])
    expected = [slow(x, cos, sin, pairs) for x in sides]
    room = tuple(np.zeros(x.shape, x.dtype) for x in sides)
    assert all(a is b for a, b in zip(rotate(sides, cos, sin, pairs, out=room), room, strict=True))
    rotate(sides, cos, sin, pairs, out=sides)
    for turned, other, want in zip(sides, room, expected, strict=True):
        assert same(turned, want)
        assert same(other, want)


def test_views_of_fused_projections(level):
    pairs, width = LAYOUTS["halves"]
    rng = np.random.default_rng(1)
    fused = rng.normal(size=(2, 5, 7, width)).astype(np.float32)  # (batch, tokens, q and k and v heads, width)
    q, k = (fused[:, :, part].transpose(0, 2, 1, 3) for part in (slice(0, 4), slice(4, 6)))
    angle = rng.uniform(0, 9, (2, 1, 5, pairs.number))
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    expected = slow(q, cos, sin, pairs), slow(k, cos, sin, pairs)
    values = fused[:, :, 6].copy()
    rotate((q, k), cos, sin, pairs, out=(q, k))
    assert same(q, expected[0])
    assert same(k, expected[1])
    assert same(fused[:, :, 6], values)


def test_rows_of_a_table(level):
    sides, *_, pairs = case("adjacent", DTYPES[0])
    table = np.random.default_rng(2).normal(size=(2, 11, pairs.number)).astype(np.float32)
    for ids in (np.array([[3, 10, 0, 0, 7], [1, 2, 3, 4, 5]]), np.array([[9, 8, 7, 6, 5]])):
        got = rotate(sides, *table, pairs, ids=ids)
        cos, sin = table[:, ids][:, :, None]
        assert same(
            got[0],
            slow(
                sides[0],
                np.broadcast_to(cos, (2, 1, 5, pairs.number)),
                np.broadcast_to(sin, (2, 1, 5, pairs.number)),
                pairs,
            ),
        )
    for outside in (-1, 11):
        with pytest.raises(ShapeError, match="rows of the table"):
            rotate(sides, *table, pairs, ids=np.full((1, 5), outside))


def test_large_results_go_past_the_caches_and_are_right(level):
    pairs = Pairs(0, 32, 1, 32)
    rng = np.random.default_rng(3)
    x = rng.normal(size=(1, 9, 4099, 64)).astype(np.float32)
    angle = rng.uniform(0, 9, (1, 1, 4099, 32))
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    room = np.empty(x.size + 16, np.float32)
    start = -room.ctypes.data % 64 // 4
    out = room[start : start + x.size].reshape(x.shape)
    for layout in (pairs, Pairs(0, 32, 2, 1)):
        rotate((x,), cos, sin, layout, out=(out,))
        at = [slice(layout.first, layout.first + 31 * layout.step + 1, layout.step)]
        at.append(slice(at[0].start + layout.partner, at[0].stop + layout.partner, layout.step))
        a, b = x[..., at[0]], x[..., at[1]]
        assert same(out[..., at[0]], a * cos - b * sin)
        assert same(out[..., at[1]], b * cos + a * sin)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numbers_at_the_edges_of_a_dtype(dtype, level):
    """Infinities, no number, zeros, the smallest numbers: as NumPy rounds them."""
    words = np.array(
        [0, 0x8000, 1, 0x8001, 3, 0x3FF, 0x7F, 0x80, 0x7F80, 0xFF80, 0x7FC0, 0x7C00, 0xFC00, 0x7BFF, 0x7F7F, 0x3F80],
        np.uint16,
    )
    values = words.view(dtype) if dtype.itemsize == 2 else (words.astype(np.uint32) << 16).view(np.float32)
    left, right = np.repeat(values, len(values)), np.tile(values, len(values))
    for pairs in (Pairs(0, 256, 1, 256), Pairs(0, 256, 2, 1)):
        parts = (left, right) if pairs.step == 1 else ()
        flat = np.concatenate(parts) if parts else np.stack((left, right), -1).reshape(-1)
        x = flat.reshape(1, 1, 1, 512)
        cos, sin = (np.full((1, 1, 1, 256), v, np.float32) for v in (0.75, 0.6614378))
        with np.errstate(all="ignore"):
            got, want = rotate((x,), cos, sin, pairs)[0], slow(x, cos, sin, pairs)
        assert np.array_equal(got.astype(np.float32), want.astype(np.float32), equal_nan=True)


def test_refusals_come_before_any_write(level):
    sides, cos, sin, pairs = case("halves", DTYPES[0])
    x = sides[0]
    before = x.copy()
    shared = np.zeros(x.size + 8, np.float32)
    first, second = (shared[n : n + x.size].reshape(x.shape) for n in (0, 8))
    wrong = [
        {"sides": (x, x.astype(np.float16))},
        {"sides": (x.astype(np.float64),)},
        {"sides": (x[0],)},
        {"pairs": pairs._replace(first=1)},
        {"pairs": Pairs(0, 37, 1, 36)},
        {"pairs": pairs._replace(partner=0)},
        {"cos": cos[:, :, :4], "sin": sin[:, :, :4]},
        {"cos": cos.astype(np.float64)},
        {"out": (x,)},
        {"out": (x[:, :, ::-1], sides[1][..., :-1])},
    ]
    if level is not None:  # only C must know; NumPy's slices make copies first
        wrong += [{"sides": (first,), "out": (second,)}]
        wrong += [{"sides": (x,), "out": (np.lib.stride_tricks.as_strided(shared, x.shape, (0, 0, 0, 4)),)}]
    for change in wrong:
        arguments = {"sides": sides, "cos": cos, "sin": sin, "pairs": pairs, "out": None} | change
        given = arguments.pop("sides"), arguments.pop("cos"), arguments.pop("sin"), arguments.pop("pairs")
        with pytest.raises(ShapeError):
            rotate(*given, **arguments)
    assert np.array_equal(x, before)
    assert not shared.any()


def test_nothing_to_do_is_done(level):
    pairs = Pairs(0, 2, 1, 2)
    for shape in ((0, 3, 5, 4), (2, 0, 5, 4), (2, 3, 0, 4)):
        x = np.zeros(shape, np.float32)
        tables = np.zeros((1, 1, shape[2], 2), np.float32)
        assert rotate((x,), tables, tables, pairs)[0].shape == shape


def test_cosines_of_positions(level):
    from mpmath import mp

    ids = np.array([0, 1, 12345, -7, 10**9, 2**53], np.int64)
    turns = np.array([2**61, 3, -(2**63), 2**62 + 12345, 0, 5 * 10**17, 7, 2**44 + 1, 99, 2**50, 1], np.int64)
    got = cos_sin(ids, turns, 1.25)
    with mp.workdps(60):
        for n, p in np.ndindex(len(ids), len(turns)):
            angle = 2 * mp.pi * (int(ids[n]) * int(turns[p])) / mp.mpf(2) ** 64
            for values, want in zip(got, (mp.cos(angle), mp.sin(angle)), strict=True):
                assert abs(mp.mpf(float(values[n, p])) - want * 1.25) < 6e-8 * 1.26


def test_tables_by_angle_addition(level):
    rng = np.random.default_rng(4)
    start, step = rng.uniform(0, 9, (4, 13)), rng.uniform(0, 9, (5, 13))
    got = add_angles((np.cos(start), np.sin(start)), (np.cos(step), np.sin(step)), 18)
    for row in range(18):
        for i in range(13):
            angle = math.fsum((start[row // 5, i], step[row % 5, i]))
            assert abs(got[0][row, i] - math.cos(angle)) < 6.1e-8
            assert abs(got[1][row, i] - math.sin(angle)) < 6.1e-8
    with pytest.raises(ShapeError):
        add_angles((start, start), (step, step), 21)
