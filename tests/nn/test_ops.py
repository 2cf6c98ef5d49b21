"""The fast path of rotations: the plain path's bits, its gates, its gradients, and what goes past it."""

from __future__ import annotations

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from torch import nn
from torch._subclasses import FakeTensorMode

from posenc.errors import ShapeError
from posenc.nn import _ops
from posenc.nn.rotary import RotaryEmbedding
from posenc.nn.rotary_functions import Layout, turn
from posenc.spec import Yarn

fast_only = pytest.mark.skipif(_ops.LIBRARY is None, reason=_ops.REASON or "-")
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
LAYOUTS = [Layout(0, 64, False), Layout(0, 64, True), Layout(0, 5, False), Layout(3, 5, True), Layout(4, 24, False)]


def case(layout, dtype=torch.float32, batch=2, heads=(5, 3), tokens=7, rows=1):
    width = layout.first + 2 * layout.pairs + (2 if layout.first else 0)
    q, k = (torch.randn(batch, h, tokens, width).to(dtype) for h in heads)
    angle = torch.rand(rows, 1, tokens, layout.pairs) * 9
    return q, k, (angle.cos(), angle.sin()), _ops.mode_of(layout, width)


def equal(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@fast_only
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_the_same_bits_as_the_plain_path(layout, dtype, rows):
    q, k, ready, mode = case(layout, dtype, rows=rows)
    plain = turn(q, *ready, layout), turn(k, *ready, layout)
    assert equal(_ops.two(q, k, ready, mode), plain)
    assert torch.equal(_ops.one(k, *ready, mode), plain[1])
    back = turn(q, ready[0], -ready[1], layout)
    assert torch.equal(_ops.one(q, *ready, mode | _ops.BACKWARDS), back)
    room = torch.empty_like(q), torch.empty_like(k)
    assert _ops.two(q, k, ready, mode, room) == room
    assert equal(room, plain)
    assert _ops.two(q, k, ready, mode, (q, k)) == (q, k)
    assert equal((q, k), plain)


@fast_only
def test_any_strides_of_rows_heads_and_tokens():
    layout = Layout(0, 16, False)
    fused = torch.randn(2, 7, 3 * 4 * 32)  # one projection for queries, keys and values
    q, k, _ = (part.unflatten(-1, (4, 32)).transpose(1, 2) for part in fused.chunk(3, -1))
    ready = case(layout)[2]
    mode = _ops.mode_of(layout, 32)
    plain = turn(q, *ready, layout), turn(k, *ready, layout)
    fresh = _ops.two(q, k, ready, mode)
    assert equal(fresh, plain)
    assert fresh[0].transpose(1, 2).is_contiguous()  # the order of the input
    for x in (q[:, :, ::2].contiguous().expand(2, 4, 4, 32), q.flip(0), q[:, 1:3], q[:1].expand(2, -1, -1, -1)):
        tables = [t[:, :, : x.shape[2]] for t in ready]
        assert torch.equal(_ops.one(x, *tables, mode), turn(x, *tables, layout))
    assert _ops.two(q, k, ready, mode, (q, k)) == (q, k)
    assert equal((q, k), plain)


@fast_only
def test_what_the_kernel_does_not_do_is_left_to_the_plain_path():
    layout = Layout(0, 5, False)
    q, k, ready, mode = case(layout)
    wide = torch.randn(2, 5, 7, 20)[..., ::2]
    for x, tables, out in (
        (q.double(), ready, None),
        (q, [t.double() for t in ready], None),
        (q, [t[:, :, :5] for t in ready], None),
        (q, [t[..., :4] for t in ready], None),
        (q, [t[0] for t in ready], None),
        (q[0], ready, None),
        (q[..., :9], ready, None),
        (wide, ready, None),
        (q, [ready[0], torch.randn(5, 7).t().expand(1, 1, -1, -1)], None),
        (q, ready, torch.empty(2, 5, 7, 20)[..., ::2]),
        (q, ready, torch.empty(1, 5, 7, 10).expand(2, -1, -1, -1)),
        (q, ready, q.new_empty(2, 5, 7, 10, dtype=torch.float16)),
        (q[:, :, :-1], [t[:, :, :-1] for t in ready], q[:, :, 1:]),
        (nn.Parameter(q), ready, None),
        (q.to("meta"), ready, None),
        (q.to_sparse(), ready, None),
        (q.to_mkldnn(), ready, None),
    ):
        before = None if x.device.type == "meta" or x.layout != torch.strided else x.detach().clone()
        assert _ops.one(x, *tables, mode, out) is None
        if before is not None:
            assert torch.equal(x, before)
    assert _ops.two(q, k.half(), ready, mode) is None
    assert _ops.two(q, k[:, :, :3], ready, mode) is None
    assert _ops.two(q, k, (*ready, *ready), mode) is None


def test_errors_are_the_plain_paths():
    rotary = RotaryEmbedding(10)
    q, k, ready, _ = case(Layout(0, 5, False))
    for wrong in ((q[..., :8], k), (q, k[:, :, :4]), (q[0], k)):
        with pytest.raises(ShapeError):
            rotary(*wrong, ready)
    with pytest.raises(ShapeError, match="out="):
        rotary(q.requires_grad_(), k, ready, out=(torch.empty_like(q), torch.empty_like(k)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("layout", [Layout(0, 5, False), Layout(3, 5, True)], ids=str)
def test_gradients_are_the_plain_paths(layout, dtype):
    q, k, ready, mode = case(layout, dtype)
    rotary = RotaryEmbedding(q.shape[-1], rotary_dim=10, interleaved=layout.interleaved)
    rotary.layout, rotary.mode = layout, mode
    weights = torch.randn_like(q), torch.randn_like(k)
    results = []
    for fast in (False, True):
        a, b = q.clone().requires_grad_(), k.clone().requires_grad_()
        turned = rotary(a, b, ready) if fast else (turn(a, *ready, layout), turn(b, *ready, layout))
        results.append(torch.autograd.grad(turned, (a, b), weights))
        only = (rotary(a, b, ready)[1] if fast else turn(b, *ready, layout)).sum()  # a gradient spread by expand
        results[-1] += torch.autograd.grad(only, (a, b), allow_unused=True)
    assert results[0][2] is results[1][2] is None
    assert equal([g for g in results[0] if g is not None], [g for g in results[1] if g is not None])


def test_second_derivatives():
    rotary = RotaryEmbedding(10)
    q, k, ready, _ = case(Layout(0, 5, False))
    found = []
    for run in (lambda x: rotary(x, k, ready)[0], lambda x: turn(x, *ready, rotary.layout)):
        x = q.clone().requires_grad_()
        (first,) = torch.autograd.grad((run(x) ** 3).sum(), x, create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), x)[0])
    assert (found[0] - found[1]).abs().max() <= 1e-5 * found[1].abs().max()
    assert found[1].abs().max() > 1


def test_forward_mode_and_function_transforms_keep_their_derivatives():
    rotary = RotaryEmbedding(10)
    q, k, ready, _ = case(Layout(0, 5, False))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(q, k[:, :1].expand_as(q).contiguous())
        tangent = forward_ad.unpack_dual(rotary.rotate(dual, ready)).tangent
    expected = rotary.rotate(k[:, :1].expand_as(q).contiguous(), ready)
    assert torch.equal(tangent, expected)
    many = torch.stack((q, q * 2))
    assert torch.equal(torch.func.vmap(lambda x: rotary(x, k, ready)[0])(many)[1], rotary(q * 2, k, ready)[0])
    per_sample = torch.func.vmap(torch.func.grad(lambda x: (rotary(x, k, ready)[0] ** 3).sum()))(many)
    assert (per_sample[1] - per_sample[0] * 4).abs().max() < 1e-3
    assert per_sample.abs().max() > 1


def test_trained_tables_have_gradients():
    q, k, (cos, sin), mode = case(Layout(0, 5, False))
    rotary = RotaryEmbedding(10)
    rotary(q, k, (cos.requires_grad_(), sin.requires_grad_()))[0].sum().backward()
    assert cos.grad.abs().max() > 0
    assert _ops.two(q, k, (cos, sin), mode) is None


def test_writing_counts_as_a_change():
    rotary = RotaryEmbedding(10)
    q, k, ready, _ = case(Layout(0, 5, False))
    weight = torch.ones(10, requires_grad=True)
    product = (q * weight).sum()
    rotary(q, k, ready, out=(q, k))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()
    with torch.inference_mode():
        mine, other = torch.randn(1, 2, 7, 10), torch.randn(1, 2, 7, 10)
        assert rotary(mine, other, ready, out=(mine, other))[0] is mine


@fast_only
def test_tracers_and_fake_tensors():
    rotary = RotaryEmbedding(10)
    q, k, ready, mode = case(Layout(0, 5, False))
    k = k.transpose(1, 2).contiguous().transpose(1, 2)
    strides = [t.stride() for t in torch.ops.posenc.rotate(q, k, *ready, mode)]
    with FakeTensorMode() as fake:
        a, b, c, s = (fake.from_tensor(t) for t in (q, k, *ready))
        assert rotary(a, b, (c, s))[0].shape == q.shape
        assert [t.stride() for t in torch.ops.posenc.rotate(a, b, c, s, mode)] == strides
        assert torch.ops.posenc.cos_sin(torch.arange(3)[None, None], torch.arange(4), 1.0)[1].shape == (1, 1, 3, 4)
    for name, arguments in (
        ("rotate", (q, k, *ready, mode)),
        ("rotate_one", (q, *ready, mode)),
        ("rotate_into", (q, k, *ready, torch.empty_like(q), torch.empty_like(k), mode)),
        ("rotate_one_into", (q, *ready, torch.empty_like(q), mode)),
        ("cos_sin", (torch.arange(3)[None, None], torch.arange(4), 1.5)),
    ):
        torch.library.opcheck(getattr(torch.ops.posenc, name).default, arguments)


def test_compiled_code_holds_no_operator_of_ours():
    rotary = RotaryEmbedding(10)
    q, k, ready, _ = case(Layout(0, 5, False))

    class Model(nn.Module):
        def forward(self, q, k, cos, sin):
            return rotary(q, k, (cos, sin))

    program = torch.export.export(Model(), (q, k, *ready))
    assert "posenc" not in str(program.graph)
    assert equal(program.module()(q, k, *ready), rotary(q, k, ready))


@fast_only
def test_cosines_of_positions_are_the_plain_paths(monkeypatch):
    ids = torch.randint(0, 10**9, (3, 11))
    for rotary in (RotaryEmbedding(26, base=5e5), RotaryEmbedding(26, scaling=Yarn(4.0, original=64))):
        fast = rotary.prepare(ids)
        monkeypatch.setattr(_ops, "cos_sin", lambda *_: None)
        plain = rotary.prepare(ids)
        monkeypatch.undo()
        assert fast.cos.shape == plain.cos.shape == (3, 1, 11, 13)
        for a, b in zip(fast, plain, strict=True):
            assert (a - b).abs().max() <= 6e-8 * 2
            assert (a != b).float().mean() < 1e-3


@fast_only
def test_it_is_the_path_that_runs(monkeypatch):
    seen = []
    monkeypatch.setattr(_ops, "_rotate", lambda *a: seen.append(a) or torch.ops.posenc.rotate.default(*a))
    rotary = RotaryEmbedding(10)
    q, k, ready, _ = case(Layout(0, 5, False))
    rotary(q, k, ready)
    rotary(q.requires_grad_(), k, ready)
    assert len(seen) == 2


@fast_only
def test_threads_change_nothing():
    layout = Layout(0, 16, False)
    q, k, ready, mode = case(layout, heads=(9, 5), tokens=1031)
    one = _ops.two(q, k, ready, mode)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert equal(_ops.two(q, k, ready, mode), one)
        assert equal(_ops.cos_sin(torch.arange(5000)[None, None], torch.arange(64) << 50, 1.0), _single())
    finally:
        torch.set_num_threads(threads)


def _single():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _ops.cos_sin(torch.arange(5000)[None, None], torch.arange(64) << 50, 1.0)
    finally:
        torch.set_num_threads(threads)
