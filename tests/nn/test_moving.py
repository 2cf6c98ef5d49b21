"""Cached keys moved by one rotation, and what ten thousand moves do."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from posenc.errors import ShapeError, SpecError
from posenc.formulas import frequencies, rotate
from posenc.nn import Positions, build
from posenc.nn.moving import MovableKeys, move_keys
from posenc.nn.rotary import RotaryEmbedding
from posenc.spec import Dynamic, Factors, Interleave, LongRope, Mixed, Rotary, Yarn

BATCH, KV, TOKENS = 2, 3, 7
LONG = LongRope(4.0, original=16, short_factor=(1.0, 1.5, 2.0, 2.5, 3.0), long_factor=(2.0, 3.0, 9.0, 11.0, 13.0))
VALUES = {
    "half": Rotary(10),
    "adjacent, trailing": Rotary(14, rotary_dim=10, where="last", interleaved=True),
    "gain": Rotary(10) >> Factors((1.0, 2.0, 3.0, 4.0, 5.0), attention_factor=1.5),
    "yarn": Rotary(10) >> Yarn(4.0, original=64),
    "xpos": Rotary(10, xpos_scale_base=64.0),
    "learned": Rotary(10, learned=True),
}


def turned(module, x, positions):
    """The slow truth of keys at positions."""
    return torch.from_numpy(rotate(x.numpy(), positions.numpy(), module.value, role="key"))


@pytest.mark.parametrize("name", VALUES)
def test_moved_keys_are_keys_turned_there(name):
    module = build(VALUES[name])
    x = torch.randn(BATCH, KV, TOKENS, module.value.head_dim, dtype=torch.float64)
    at, by = torch.randint(100, (BATCH, 1, TOKENS)), torch.randint(-50, 50, (BATCH, TOKENS))
    moved = move_keys(turned(module, x, at), module, by)
    assert (moved - turned(module, x, at + by[:, None])).abs().max() < 1e-12
    assert (move_keys(turned(module, x, at), module, -9) - turned(module, x, at - 9)).abs().max() < 1e-12
    there = move_keys(turned(module, x, at), module, before=at, after=at + by[:, None])
    assert (there - moved).abs().max() < 1e-12


def test_on_several_axes():
    module = RotaryEmbedding(18, axes=Interleave((3, 3, 3)))
    x = torch.randn(1, KV, TOKENS, 18)
    at, by = torch.randint(50, (3, TOKENS)), torch.randint(-5, 5, (3, TOKENS))
    here = module.rotate(x, module.prepare(at))
    assert (move_keys(here, module, by) - module.rotate(x, module.prepare(at + by))).abs().max() < 2e-6
    mixed = RotaryEmbedding(8, axes=Mixed(KV))
    x = torch.randn(1, KV, TOKENS, 8)
    here = mixed.rotate(x, mixed.prepare(at[:2]))
    assert (move_keys(here, mixed, 4) - mixed.rotate(x, mixed.prepare(at[:2] + 4))).abs().max() < 2e-6


@pytest.mark.parametrize("scaling", [LONG, Dynamic(4.0, original=16)], ids=["longrope", "dynamic"])
def test_across_a_change_of_frequencies(scaling):
    """A cache that outgrows the original context: keys go from the short set's angles to the long set's."""
    module = build(Rotary(10) >> scaling)
    x, at = torch.randn(1, KV, TOKENS, 10), torch.arange(TOKENS)
    here, there = (Positions(p, torch.tensor([n])) for p, n in ((at, 16), (at + 30, 60)))
    moved = move_keys(module.rotate(x, module.prepare(here)), module, before=here, after=there)
    exact = rotate(x.double().numpy(), there.ids.numpy(), module.value, frequencies=frequencies(module.value, 60))
    assert np.abs(moved.double().numpy() - exact).max() < 2e-6
    blind = move_keys(
        module.rotate(x, module.prepare(here)), module, Positions(torch.full((TOKENS,), 30), torch.tensor([16]))
    )
    assert (blind - moved).abs().max() > 0.1


def test_in_place():
    module, k = RotaryEmbedding(10), torch.randn(1, KV, TOKENS, 10)
    fresh = move_keys(k, module, 5)
    assert move_keys(k, module, 5, out=k) is k
    assert torch.equal(k, fresh)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_ten_thousand_moves(dtype):
    """One after the other they drift, and stretch; added up and applied once they are one rounding away."""
    module = RotaryEmbedding(62, 5e5)
    x = torch.randn(1, KV, TOKENS, 62, dtype=torch.float64)
    start = torch.arange(TOKENS) + 20_000
    first = turned(module, x, start).to(dtype)
    naive, kept = first.clone(), MovableKeys.of(first)
    for step in range(10_000):
        by = -1 if step % 2 else -2
        move_keys(naive, module, by, out=naive)
        kept = kept.moved(by)
    exact = rotate(first.double().numpy(), np.full(TOKENS, -15_000), module.value)
    once = (kept.turned(module).double() - torch.from_numpy(exact)).abs().max() / np.abs(exact).max()
    drift = (naive.double() - torch.from_numpy(exact)).abs().max() / np.abs(exact).max()
    if dtype == torch.float32:
        assert once < 2e-7
        assert 1e-5 < drift < 1e-3
    else:
        assert once < 2.0**-8
        assert drift > 0.1
    assert kept.shift.flatten().tolist() == [-15_000] * TOKENS
    assert torch.equal(kept.keys, first)


def test_a_streaming_cache():
    """Four anchor tokens stay, the oldest of the others leave, and those behind them close up."""
    module, x = RotaryEmbedding(10), torch.randn(1, KV, 12, 10)
    cache = MovableKeys.of(module.rotate(x[:, :, :8], module.prepare(torch.arange(8))))
    cache = cache.kept(torch.tensor([0, 1, 2, 3, 6, 7])).moved(torch.tensor([0, 0, 0, 0, -2, -2]))
    cache = cache.followed(module.rotate(x[:, :, 8:], module.prepare(torch.arange(6, 10))))
    kept = x[:, :, [0, 1, 2, 3, 6, 7, 8, 9, 10, 11]]
    assert (cache.turned(module) - module.rotate(kept, module.prepare(torch.arange(10)))).abs().max() < 1e-6


def test_unmoved_keys_come_back_bit_for_bit():
    module, k = RotaryEmbedding(10, scaling=Yarn(4.0, original=64)), torch.randn(1, KV, TOKENS, 10).bfloat16()
    assert torch.equal(MovableKeys.of(k).moved(7).moved(-7).turned(module), k)


def test_a_length_rule_needs_its_length():
    module, k = RotaryEmbedding(10, scaling=LONG), torch.randn(1, KV, TOKENS, 10)
    with pytest.raises(ShapeError, match="longrope depends on the length"):
        MovableKeys.of(k).turned(module)
    far = MovableKeys.of(k).moved(3).turned(module, torch.tensor([17]))
    assert (far - MovableKeys.of(k).moved(3).turned(module, torch.tensor([16]))).abs().max() > 0.01


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda m, k: move_keys(k, m), SpecError, "by a shift, or from positions"),
        (lambda m, k: move_keys(k, m, 1, before=torch.arange(7), after=torch.arange(7)), SpecError, "by a shift"),
        (lambda m, k: move_keys(k, m, before=torch.arange(7)), SpecError, "by a shift"),
        (lambda m, k: move_keys(k, m, torch.arange(6)), ShapeError, "the 6 tokens"),
        (lambda m, k: move_keys(k[0], m, 1), ShapeError, "batch, heads, tokens, 10"),
        (lambda m, k: MovableKeys.of(k[0]), ShapeError, "keys are"),
        (lambda m, k: MovableKeys.of(k).moved(torch.arange(6)), ShapeError, "integers for 7 tokens"),
        (lambda m, k: MovableKeys.of(k).moved(torch.ones(7)), ShapeError, "shifts are integers"),
    ],
)
def test_bad_input_names_the_rule(act, error, words):
    with pytest.raises(error, match=words):
        act(RotaryEmbedding(10), torch.randn(1, KV, TOKENS, 10))
