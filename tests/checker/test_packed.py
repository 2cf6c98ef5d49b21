"""Queries, keys and values in one array, and heads side by side in one dimension."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from posenc.checker.calling.discovering import discover
from posenc.checker.calling.hints import hints_of
from posenc.checker.calling.packed import APART, PACKINGS, Packing
from posenc.checker.checking import check
from posenc.checker.expecting import expected
from posenc.checker.gathering import Gathered
from posenc.checker.probes.registry import Probed
from posenc.checker.probes.splits import splits
from posenc.checker.subjects.loading import load

D, HEADS = 26, 8
LINE = f"rotary({D})"
RATES = 1e4 ** (-np.arange(0, D, 2) / D)


def turn(x, axis, start=0):
    """Pairs (i, i + 13), positions counted along one dimension."""
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    angle = np.arange(start, start + x.shape[axis]).reshape(shape) * RATES
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], axis=-1)


def packed(dims, slots=(0, 1), apart=False):
    """A function of an array in one packing, written on dimensions of its own."""
    letters = dims.replace("(", "").replace(")", "").split()
    shared = dims.partition("(")[2].replace(")", "").split()

    def apply(qkv):
        sizes = {"s": 3, "h": HEADS, "d": D}
        whole = qkv.reshape(*qkv.shape[: len(letters) - len(shared)], *[sizes[c] for c in shared])
        parts = list(np.moveaxis(whole, letters.index("s"), 0))
        axis = [c for c in letters if c != "s"].index("t")
        parts = [turn(part, axis) if slot in slots else part for slot, part in enumerate(parts)]
        if apart:
            return tuple(parts)
        return np.moveaxis(np.stack(parts), 0, letters.index("s")).reshape(qkv.shape)

    return apply


@pytest.mark.parametrize("dims", PACKINGS)
@pytest.mark.parametrize("apart", [False, True])
def test_every_packing_is_found(dims, apart):
    report = check(packed(dims, apart=apart), LINE, library="numpy", probes=False)
    assert report.could_not_run is None
    assert report.findings == ()
    assert {"keys against queries", "values beside queries and keys"} <= set(report.probes)


@pytest.mark.parametrize(
    ("slots", "title"),
    [
        ((0, 1, 2), "values are turned like queries and keys"),
        ((0, 2), "values are turned like queries and keys"),
        ((0,), "keys are turned otherwise than queries"),
    ],
)
@pytest.mark.parametrize("dims", ["b t s h d", "t b h (s d)"])
def test_the_wrong_thirds(dims, slots, title):
    report = check(packed(dims, slots), LINE, library="numpy", probes=False)
    assert title in [f.title for f in report.at_least("defect")]


class Packed(nn.Module):
    """In place, as some kernels do, from an offset on."""

    def __init__(self, dim, base=10000.0, ignores=False):
        super().__init__()
        self.ignores = ignores
        self.register_buffer("rates", base ** (-torch.arange(0, dim, 2).double() / dim), persistent=False)

    def forward(self, qkv, seqlen_offset=0):
        start = 0 if self.ignores else seqlen_offset
        angle = torch.arange(start, start + qkv.shape[1])[:, None, None] * self.rates
        c, s = angle.cos().to(qkv.dtype), angle.sin().to(qkv.dtype)
        for x in (qkv[:, :, 0], qkv[:, :, 1]):
            a, b = (each.clone() for each in x.chunk(2, -1))
            x.copy_(torch.cat([a * c - b * s, b * c + a * s], -1))


def test_in_place_and_from_an_offset():
    report = check(Packed(D), LINE, probes=False)
    assert [f.title for f in report.findings] == ["the subject changes its input in place (qkv)"]
    encoding = expected(LINE).encodings[0]
    hints = hints_of(encoding)
    for ignores in (False, True):
        notes, subject = Gathered(), Packed(D, ignores=ignores)
        probed = Probed(load(subject), subject, discover(subject, hints)[0], encoding, hints, None)
        assert splits(notes, probed) is None
        assert [f.kinds[0] for f in notes.findings] == ["offset-cache"] * ignores


@pytest.mark.parametrize("dims", [*PACKINGS, *APART])
def test_packing_there_and_back(dims):
    x = np.random.default_rng(5).normal(size=(5 if "b" in dims else 1, 7, 11))
    packing = Packing(dims, 13)
    back = packing.unpack(packing.pack(x), *x.shape)
    assert back.shape == (*x.shape[:2], 3 if "s" in dims else 1, 13, 11)
    assert (back == x[:, :, None, None]).all()


def flat(x, positions, n_heads):
    """Each head of an array (batch, tokens, heads side by side) turned by itself."""
    apart = x.reshape(*x.shape[:2], n_heads, -1)
    half = apart.shape[-1] // 2
    angle = np.asarray(positions).reshape(-1, 1, 1) * 1e4 ** (-np.arange(half) / half)
    a, b = apart[..., :half], apart[..., half:]
    turned = [a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)]
    return np.concatenate(turned, -1).reshape(x.shape)


def test_heads_side_by_side():
    report = check(flat, LINE, library="numpy", probes=False)
    assert report.findings == ()
    assert "8 heads side by side as (b, t, (h, d))" in " ".join(report.assumed)
    other = check(lambda x, positions, n_heads: flat(x, 2 * np.asarray(positions), n_heads), LINE, probes=False)
    assert other.at_least("defect")
