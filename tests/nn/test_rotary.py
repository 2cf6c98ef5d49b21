"""The rotary module against loops with complex numbers, mpmath and the float64 formulas."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from mpmath import mp
from torch import nn

from oracles.rotary import adjacent, halves, turned
from posenc.errors import ShapeError, SpecError
from posenc.formulas import frequencies, rotate
from posenc.nn import Positions, build
from posenc.nn.rotary import RotaryEmbedding
from posenc.nn.turns import cos_sin, phases, turns_of
from posenc.spec import (
    NTK,
    Arithmetic,
    ByParts,
    Dynamic,
    Explicit,
    Factors,
    Interleave,
    Linear,
    Llama3,
    LongRope,
    Mixed,
    QueryScale,
    Random,
    Resonance,
    Rotary,
    Split,
    Yarn,
    parse,
)

BATCH, HEADS, KV, TOKENS = 2, 6, 3, 11
LONG = LongRope(4.0, original=16, short_factor=(1.0, 1.5, 2.0, 2.5, 3.0), long_factor=(2.0, 3.0, 9.0, 11.0, 13.0))
PLAIN = {
    "half": Rotary(10),
    "adjacent": Rotary(10, interleaved=True),
    "partial": Rotary(14, rotary_dim=6, base=5e5),
    "trailing": Rotary(14, rotary_dim=6, where="last", interleaved=True),
    "proportional": Rotary(10, keep=0.5),
    "linear": Rotary(10) >> Linear(3.0),
    "ntk": Rotary(10) >> NTK(3.0),
    "by_parts": Rotary(10) >> ByParts(3.0, original=64),
    "yarn": Rotary(10) >> Yarn(3.0, original=64),
    "llama3": Rotary(10) >> Llama3(8.0, original=64),
    "resonance": Rotary(10) >> Resonance(),
    "factors": Rotary(10) >> Factors((1.0, 2.0, 3.0, 4.0, 5.0), attention_factor=1.5),
    "chain": Rotary(10) >> Linear(2.0) >> Yarn(3.0, original=64),
    "arithmetic": Rotary(10, schedule=Arithmetic()),
    "random": Rotary(10, schedule=Random(2.0, seed=3)),
    "explicit": Rotary(10, schedule=Explicit((7.0, 1.0, 0.5, 0.25, 0.0))),
}


def heads(width, dtype=torch.float64, tokens=TOKENS):
    return torch.randn(BATCH, HEADS, tokens, width, dtype=dtype), torch.randn(BATCH, KV, tokens, width, dtype=dtype)


def oracle(x, positions, value, f):
    """Every head on its own, one complex number a pair."""
    first = value.head_dim - value.rotary_dim if value.where == "last" else 0
    pairs = (adjacent if value.interleaved else halves)(value.rotary_dim, first)
    out = np.empty(x.shape)
    for index in np.ndindex(*x.shape[:-1]):
        out[index] = turned(x[index].tolist(), float(positions[index[2]]), f.theta[0], pairs, f.gain)
    return out


@pytest.mark.parametrize("name", PLAIN)
def test_turns_each_pair_as_the_loop_does(name):
    value = PLAIN[name]
    module, (q, k) = build(value), heads(value.head_dim)
    ids = torch.arange(TOKENS) * 7 + 3
    got = module(q, k, module.prepare(ids, dtype=torch.float64))
    for mine, x in zip(got, (q, k), strict=True):
        assert np.abs(mine.numpy() - oracle(x.numpy(), ids.numpy(), value, frequencies(value))).max() < 1e-13


@pytest.mark.parametrize(
    ("value", "scale"),
    [
        (Rotary(12, axes=Split((1, 2, 3), own_schedule=False)), 97),
        (Rotary(12, axes=Split((2, 4))), 97),
        (Rotary(18, axes=Interleave((3, 3, 3))), 97),
        (Rotary(12, axes=Mixed(HEADS)), 13),
        (Rotary(12, base=100.0, first=6.28, axes=Split((3, 3), coordinates="unit")), 1),
    ],
    ids=lambda v: getattr(getattr(v, "axes", None), "kind", None),
)
def test_several_axes_are_the_formula(value, scale):
    module, (q, _) = build(value), heads(value.head_dim)
    ids = torch.randint(scale, (module.axes, TOKENS)) if scale > 1 else torch.rand(module.axes, TOKENS).double() * 2 - 1
    got, _ = module(q, q, module.prepare(ids, dtype=torch.float64))
    assert np.abs(got.numpy() - rotate(q.numpy(), ids.numpy().T, value)).max() < 1e-13
    assert f"{module.axes} axes" in repr(module)


def test_rows_have_positions_of_their_own():
    module, (q, k) = RotaryEmbedding(10), heads(10)
    ids = torch.randint(1000, (BATCH, TOKENS))
    got, _ = module(q, k, module.prepare(ids, dtype=torch.float64))
    for row in range(BATCH):
        assert np.abs(got[row].numpy() - rotate(q[row].numpy(), ids[row].numpy(), module.value)).max() < 1e-13


def test_one_token_is_its_row_of_a_batch():
    module, (q, k) = RotaryEmbedding(10, scaling=Dynamic(4.0, original=8)), heads(10, torch.float32)
    ids, length = torch.randint(1000, (BATCH, TOKENS)), torch.tensor([7, 23])
    whole = module(q, k, module.prepare(Positions(ids, length)))
    for row in range(BATCH):
        alone = module(q[row, None], k[row, None], module.prepare(Positions(ids[row, None], length[row, None])))
        assert torch.equal(alone[0][0], whole[0][row])
        assert torch.equal(alone[1][0], whole[1][row])
    for t in range(TOKENS):
        step = module(q[:, :, t, None], k[:, :, t, None], module.prepare(Positions(ids[:, t, None], length)))
        assert torch.equal(step[0][:, :, 0], whole[0][:, :, t])


# ------------------------------------------------------------------------------------------------ length rules


@pytest.mark.parametrize("lengths", [(16, 17), (5, 500)])
@pytest.mark.parametrize("scaling", [LONG, Dynamic(4.0, original=16)], ids=["longrope", "dynamic"])
def test_each_row_has_the_frequencies_of_its_declared_length(scaling, lengths):
    value = Rotary(10) >> scaling
    module, (q, _) = build(value), heads(10)
    ids = torch.arange(TOKENS) + 31
    got, _ = module(q, q, module.prepare(Positions(ids, torch.tensor(lengths)), dtype=torch.float64))
    for row, length in enumerate(lengths):
        expected = oracle(q[row, None].numpy(), ids.numpy(), value, frequencies(value, length))[0]
        assert np.abs(got[row].numpy() - expected).max() < 1e-12
    assert (
        got[0] - module(q, q, module.prepare(Positions(ids, torch.tensor(lengths[1:])), dtype=torch.float64))[0][0]
    ).abs().max() > 0.1


def test_a_chain_goes_on_after_a_rule_for_lengths():
    value = Rotary(10) >> Dynamic(4.0, original=16) >> Linear(2.0)
    module, (q, _) = build(value), heads(10)
    length = torch.tensor([40, 17])
    got, _ = module(q, q, module.prepare(Positions(torch.arange(TOKENS), length), dtype=torch.float64))
    for row in range(BATCH):
        f = frequencies(value, int(length[row]))
        assert np.abs(got[row].numpy() - oracle(q[row, None].numpy(), np.arange(TOKENS), value, f)[0]).max() < 1e-12


def test_whose_length_counts():
    value = Rotary(10) >> LONG
    ids, lengths = torch.arange(TOKENS).expand(BATCH, -1), torch.tensor([9, 30])
    near, far = (build(value, length_from="fixed", length=n).prepare(ids).cos[0] for n in (16, 17))
    assert not torch.equal(near, far)
    by_row = build(value).prepare(Positions(ids, lengths)).cos
    assert torch.equal(by_row[0], near)
    assert torch.equal(by_row[1], far)
    by_batch = build(value, length_from="batch").prepare(Positions(ids, lengths)).cos
    assert torch.equal(by_batch[0], far)
    assert torch.equal(build(value, length_from="batch").prepare(ids).cos[0], near)  # the largest position is 10
    assert torch.equal(
        build(value, length_from="batch").prepare(ids + 6).cos,
        build(value, length_from="fixed", length=17).prepare(ids + 6).cos,
    )
    allocated = build(value, length_from="allocated")
    assert torch.equal(allocated.prepare(Positions(ids, torch.tensor(17))).cos[0], far)
    with pytest.raises(ShapeError, match="one number for all rows"):
        allocated.prepare(Positions(ids, lengths))


def test_a_document_of_a_packed_row_has_its_own_length():
    value = Rotary(10) >> LONG
    module = build(value)
    ids = torch.cat((torch.arange(9), torch.arange(20)))
    packed = module.prepare(Positions(ids, torch.tensor([[9] * 9 + [20] * 20])))
    for part, n in ((slice(0, 9), 9), (slice(9, 29), 20)):
        assert torch.equal(packed.sin[:, :, part], module.prepare(Positions(torch.arange(n), torch.tensor([n]))).sin)


def test_a_rule_for_lengths_asks_for_a_length():
    module = RotaryEmbedding(10, scaling=LONG)
    with pytest.raises(ShapeError, match=r"longrope depends on the length of a row.*Declare it"):
        module.prepare(torch.arange(3))
    with pytest.raises(ShapeError, match=r"length is .2,., one for each row"):
        module.prepare(Positions(torch.zeros(2, 3, dtype=torch.int64), torch.tensor([1, 2, 3])))
    with pytest.raises(ShapeError, match=r"length is .batch,. integers"):
        module.prepare(Positions(torch.arange(3), torch.tensor([1.0])))
    with pytest.raises(SpecError, match="length_from is one of"):
        RotaryEmbedding(10, length_from="rows")
    with pytest.raises(SpecError, match="needs length="):
        RotaryEmbedding(10, scaling=LONG, length_from="fixed")
    with pytest.raises(SpecError, match="belongs to length_from"):
        RotaryEmbedding(10, scaling=LONG, length=7)


# ---------------------------------------------------------------------------------------------------- accuracy


@pytest.mark.parametrize("exact", [True, False], ids=["float64", "quarters in float32"])
def test_angles_are_right_at_a_billion(exact):
    mp.dps = 40
    ids = torch.tensor([3, 8191, 10**7 + 1, 123_456_789, 999_999_937, 10**12 + 39])
    module = RotaryEmbedding(62, base=5e5)
    numbers = module.numbers(ids.device)
    cos, sin = cos_sin(*phases(ids[None, None, None], numbers["turns"][0], numbers["theta"][0]), exact=exact)
    for row, p in enumerate(ids.tolist()):
        bound = 1e-7 if p < 10**10 else 5e-7  # there, theta itself needs more digits than float64 has
        for i in range(31):
            angle = p * mp.mpf(500000) ** (-mp.mpf(2 * i) / 62)
            assert abs(float(cos[0, 0, row, i].float()) - mp.cos(angle)) < bound
            assert abs(float(sin[0, 0, row, i].float()) - mp.sin(angle)) < bound


def test_turns_wrap_exactly():
    turns = torch.from_numpy(turns_of(frequencies(Rotary(62)).theta))[0]
    m, n = torch.randint(10**9, (2, 50))
    assert torch.equal(m[:, None] * turns - n[:, None] * turns, (m - n)[:, None] * turns)


def test_epoch_seconds_and_milliseconds_keep_their_phase():
    mp.dps = 40
    times = torch.tensor([1_700_000_000.25, 1_700_003_600.75, 1_700_003_600_750.5], dtype=torch.float64)
    ready = RotaryEmbedding(10).prepare(times)
    for row, p in enumerate(times.tolist()):
        bound = 1e-7 if p < 1e10 else 5e-7
        for i in range(5):
            assert abs(float(ready.cos[0, 0, row, i]) - mp.cos(mp.mpf(p) * mp.mpf(10000) ** (-mp.mpf(i) / 5))) < bound


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("interleaved", [False, True])
def test_half_precision_is_one_rounding(dtype, interleaved):
    module = RotaryEmbedding(126, rotary_dim=94, interleaved=interleaved)
    q, _ = heads(126, dtype)
    ids = torch.arange(TOKENS) + 131_000
    got, _ = module(q, q, module.prepare(ids))
    assert got.dtype == dtype
    exact = torch.from_numpy(rotate(q.double().numpy(), ids.numpy(), module.value))
    once = (exact.to(dtype).double() - exact).abs()
    assert ((got.double() - exact).abs() <= once + 5e-7).all()
    unit = torch.finfo(dtype).eps / 2
    assert ((got.double() - exact).abs() <= unit * exact.abs() + 5e-7).all()


# -------------------------------------------------------------------------------------------------- properties


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-12), (torch.float32, 2e-5), (torch.bfloat16, 0.2)])
def test_scores_depend_on_the_distance_alone(dtype, bound):
    module = RotaryEmbedding(62)
    q, k = torch.randn(1, 1, 1, 62).to(dtype), torch.randn(1, 1, 1, 62).to(dtype)
    precise = torch.promote_types(dtype, torch.float32)

    def score(m, n):
        ready = [module.prepare(torch.tensor([p]), dtype=precise) for p in (m, n)]
        return (module.rotate(q, ready[0]).double() * module.rotate(k, ready[1], role="key").double()).sum()

    near = score(23, 5)
    assert max(abs(float(score(23 + s, 5 + s) - near)) for s in (1, 1000, 10**6, 10**9)) < bound
    assert abs(float(score(24, 5) - near)) > 2 * bound or dtype == torch.bfloat16


def test_norms_stay_and_rotations_compose():
    module = RotaryEmbedding(62, interleaved=True)
    x = torch.randn(1, 1, TOKENS, 62, dtype=torch.float64)
    m, n = torch.randint(10**6, (2, TOKENS))
    there = module.rotate(x, module.prepare(m, dtype=torch.float64))
    assert (there.norm(dim=-1) - x.norm(dim=-1)).abs().max() < 1e-12
    back = module.prepare(n, dtype=torch.float64)
    difference = module.rotate(x, module.prepare(m - n, dtype=torch.float64))
    assert (module.inverse(there, there, back)[0] - difference).abs().max() < 1e-12


def test_xpos_is_torchscales_and_scores_do_not_see_the_centre():
    value = Rotary(10, interleaved=True, xpos_scale_base=512.0)
    q, k = heads(10)
    ids = torch.arange(TOKENS) + 400
    scores = []
    for centre in (0, 400):
        module = build(value, xpos_centre=centre)
        a, b = module(q, k, module.prepare(ids, dtype=torch.float64))
        for mine, x, role in ((a, q, "query"), (b, k, "key")):
            assert np.abs(mine.numpy() - rotate(x.numpy(), ids.numpy(), value, role=role, centre=centre)).max() < 1e-12
        scores.append(a[:, :KV] @ b.mT)
    assert (scores[0] - scores[1]).abs().max() < 1e-12
    plain = RotaryEmbedding(10, interleaved=True)
    a, b = plain(q, k, plain.prepare(ids, dtype=torch.float64))
    zeta = (np.arange(0, 10, 2) + 4) / 14  # (2i + 0.4 d) / 1.4 d
    expected = 0.0
    for i, z in enumerate(zeta):  # the distance 3 weighs each pair by zeta^(3 / 512)
        pair = slice(2 * i, 2 * i + 2)
        expected += z ** (3 / 512) * float(a[1, 1, 7, pair] @ b[1, 1, 4, pair])
    assert abs(float(scores[0][1, 1, 7, 4]) - expected) < 1e-12


def test_xpos_is_right_with_a_cache():
    module = RotaryEmbedding(10, xpos_scale_base=64.0)
    q, k = heads(10, torch.float32)
    whole = module(q, k, module.prepare(torch.arange(TOKENS)))
    for t in range(TOKENS):
        step = module(q[:, :, t, None], k[:, :, t, None], module.prepare(torch.tensor([t])))
        assert torch.equal(step[0][:, :, 0], whole[0][:, :, t])
        assert torch.equal(step[1][:, :, 0], whole[1][:, :, t])


def test_xpos_beyond_float32_is_refused():
    module = RotaryEmbedding(10, xpos_scale_base=512.0)
    with pytest.raises(ShapeError, match="grows within what float32 holds"):
        module.prepare(torch.tensor([40_000]))
    assert torch.isfinite(
        RotaryEmbedding(10, xpos_scale_base=512.0, xpos_centre=40_000).prepare(torch.tensor([40_000])).cos
    ).all()


@pytest.mark.parametrize("value", [PLAIN["factors"], PLAIN["trailing"], Rotary(10, xpos_scale_base=64.0)], ids=str)
def test_the_inverse_undoes_gain_and_growth(value):
    module, (q, k) = build(value), heads(value.head_dim)
    ready = module.prepare(torch.arange(TOKENS) + 9, dtype=torch.float64)
    for back, x in zip(module.inverse(*module(q, k, ready), ready), (q, k), strict=True):
        assert (back - x).abs().max() < 1e-13


def test_in_place_is_the_same_and_touches_nothing_else():
    for name in ("adjacent", "partial", "trailing"):
        module = build(PLAIN[name])
        q, k = heads(module.value.head_dim, torch.bfloat16)
        ready = module.prepare(torch.arange(TOKENS) + 5)
        fresh, before = module(q, k, ready), q.clone()
        other = torch.empty_like(q), torch.empty_like(k)
        assert module(q, k, ready, out=other)[0] is other[0]
        assert torch.equal(other[0], fresh[0])
        assert torch.equal(q, before)
        assert module(q, k, ready, out=(q, k))[0] is q
        assert torch.equal(q, fresh[0])
        assert torch.equal(k, fresh[1])


# ---------------------------------------------------------------------------------------------------- learning


def test_gradients_of_queries_and_real_positions():
    module = RotaryEmbedding(6, rotary_dim=4, interleaved=True)
    q, k = torch.randn(1, 2, 3, 6, dtype=torch.float64), torch.randn(1, 1, 3, 6, dtype=torch.float64)
    ids = torch.tensor([0.3, 5.6, 2.2], dtype=torch.float64)

    def both(q, k, ids):
        return module(q, k, module.prepare(ids, dtype=torch.float64))

    assert torch.autograd.gradcheck(both, [t.requires_grad_() for t in (q, k, ids)])


@pytest.mark.parametrize("axes", [None, Mixed(2)], ids=["geometric", "mixed"])
def test_frequencies_can_be_trained(axes):
    module = RotaryEmbedding(8, axes=axes, learned=True).double()
    (parameter,) = module.parameters()
    assert parameter.shape == ((4,) if axes is None else (2, 2, 4))
    fixed = RotaryEmbedding(8, axes=axes)
    ids = torch.randint(20, (3,) if axes is None else (2, 3))
    with torch.no_grad():
        start = module.prepare(ids, dtype=torch.float64)
    assert (start.cos - fixed.prepare(ids, dtype=torch.float64).cos).abs().max() < (1e-13 if axes is None else 1e-5)
    q = torch.randn(1, 2, 3, 8, dtype=torch.float64)
    name = next(iter(module.state_dict()))

    def turned_by(p):
        ready = torch.func.functional_call(_Prepare(module), {f"module.{name}": p}, (ids,))
        return module(q, q, ready)[0]

    assert torch.autograd.gradcheck(turned_by, [(parameter.detach() + 0.1).requires_grad_()])
    assert np.allclose(module.frequencies().theta, fixed.frequencies().theta, atol=1e-6)
    with torch.no_grad():
        parameter -= 50.0
    if axes is None:
        assert (module.frequencies().theta > 0).all()
    module.reset_parameters()
    assert np.allclose(module.frequencies().theta, fixed.frequencies().theta, atol=1e-6)


class _Prepare(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, ids):
        return self.module.prepare(ids, dtype=torch.float64)


def test_trained_frequencies_find_a_period():
    """A pair that starts at 0.5 radians per position learns 0.6 from what it should return."""
    target = RotaryEmbedding(2, schedule=Explicit((0.6,)))
    module = RotaryEmbedding(2, schedule=Explicit((0.5,)), learned=True)
    x, ids = torch.ones(1, 1, 8, 2), torch.arange(8)
    step = torch.optim.Adam(module.parameters(), lr=0.02)
    for _ in range(120):
        step.zero_grad()
        loss = (module.rotate(x, module.prepare(ids)) - target.rotate(x, target.prepare(ids))).square().mean()
        loss.backward()
        step.step()
    assert abs(float(module.frequencies().theta[0, 0]) - 0.6) < 1e-3


# --------------------------------------------------------------------------------------------------- query scale


def test_queries_grow_by_the_formula():
    module = build(QueryScale(0.1, original=16, offset=1))
    q, k = heads(10)
    ids = torch.arange(TOKENS) * 9
    got, same = module(q, k, module.prepare(ids))
    expected = 1 + 0.1 * np.log1p((np.arange(TOKENS) * 9 + 1) // 16)
    assert np.abs(got.numpy() / q.numpy() - expected[:, None]).max() < 1e-6
    assert same is k
    low = q.bfloat16()
    assert module(low, k, module.prepare(ids))[0].dtype == torch.bfloat16
    assert module(low, k, module.prepare(ids), out=(low, k))[0] is low
    with pytest.raises(ShapeError, match="q is"):
        module(q, k, module.prepare(ids[:-1]))


# --------------------------------------------------------------------------------------------------------- words


def test_repr_states_the_convention():
    assert repr(RotaryEmbedding(128, 5e5)) == "RotaryEmbedding(rotary(128, base=500000), pairs (i, i + 64))"
    assert "pairs (6 + 2i, 6 + 2i + 1)" in repr(RotaryEmbedding(14, rotary_dim=8, where="last", interleaved=True))
    assert "length from batch" in repr(RotaryEmbedding(10, scaling=LONG, length_from="batch"))


def test_named_class_and_value_agree():
    module = RotaryEmbedding(64, 5e5, rotary_dim=32, scaling=(Linear(2.0), Yarn(4.0, original=512)), interleaved=True)
    assert module.value == parse(str(module.value))[0]
    assert RotaryEmbedding.from_value(module.value).value == module.value
    assert RotaryEmbedding(64, scaling=Yarn(40.0, original=4096, softmax_mscale=1.0)).logit_scale == pytest.approx(
        1.8738542071
    )


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda m, q, k, r: m(q[0], k, r), ShapeError, r"q and k are \(batch, heads, tokens, 10\); got \(6, 11, 10\)"),
        (lambda m, q, k, r: m(q[..., :8], k, r), ShapeError, r"tokens, 10\); got \(2, 6, 11, 8\)"),
        (lambda m, q, k, r: m(q[:, :, :5], k, r), ShapeError, "the 11 tokens that prepare was given.*got 5 tokens"),
        (lambda m, q, k, r: m(q, k[:1], m.prepare(torch.zeros(2, 11, dtype=torch.long))), ShapeError, "the 2 rows"),
        (lambda m, q, k, r: m(q.long(), k, r), ShapeError, "x holds real numbers"),
        (lambda m, q, k, r: m(q, k, r, out=(k, q)), ShapeError, r"out is \(2, 6, 11, 10\)"),
        (lambda m, q, k, r: m(q.requires_grad_(), k, r, out=(q, k)), ShapeError, "a gradient does not allow"),
        (lambda m, q, k, r: m.prepare(torch.arange(3).bfloat16()), ShapeError, "cannot tell 256 from 257"),
        (lambda m, q, k, r: m.prepare(torch.tensor([float("nan")])), ShapeError, "positions are finite"),
        (lambda m, q, k, r: m.prepare(torch.tensor([1e300], dtype=torch.float64)), ShapeError, "positions are finite"),
        (lambda m, q, k, r: m.prepare(torch.zeros(1, 1, 1, 1)), ShapeError, "ids are"),
        (lambda m, q, k, r: m.prepare(torch.tensor([True])), ShapeError, "ids are integers or real"),
        (lambda m, q, k, r: RotaryEmbedding(10, axes=Split((2, 3))).prepare(torch.arange(3)), ShapeError, "2 axes"),
        (lambda m, q, k, r: RotaryEmbedding(9), SpecError, "rotary_dim must be even"),
        (lambda m, q, k, r: RotaryEmbedding(10, 5e5, schedule=Arithmetic()), SpecError, "either a schedule"),
        (lambda m, q, k, r: RotaryEmbedding.from_value(3), SpecError, "made from a rotary"),
        (lambda m, q, k, r: RotaryEmbedding(12, axes=Split((3, 3)), xpos_scale_base=5.0), SpecError, "one axis"),
    ],
)
def test_bad_input_names_rule_and_shapes(act, error, words):
    module, (q, k) = RotaryEmbedding(10), heads(10)
    with pytest.raises(error, match=words):
        act(module, q, k, module.prepare(torch.arange(TOKENS)))


def test_heads_of_their_own_need_as_many_key_heads():
    module = RotaryEmbedding(8, axes=Mixed(HEADS))
    q, k = heads(8)
    with pytest.raises(ShapeError, match="the 6 heads that prepare was given"):
        module(q, k, module.prepare(torch.zeros(2, TOKENS, dtype=torch.long)))
