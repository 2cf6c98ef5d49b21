"""Biases as channels: the same scores as a matrix of biases, in every dtype, and no such matrix."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch.nn import functional

from posenc.errors import ShapeError, SpecError
from posenc.nn import Positions, build
from posenc.nn.channels import AlibiChannels, SumChannels, parts

TEXTS = ("alibi(12)", "alibi(5, max_bias=4)", "sandwich(6, dim=10)", "sinusoidal_bias(6, sinusoid=sinusoidal(7))")


def both(text, **options):
    """The same encoding as channels and as a matrix."""
    channels, matrix = build(text, channels=True, **options), build(text)
    for parameter in matrix.parameters():
        parameter.data.normal_(0, 0.5)
    if hasattr(channels, "bias"):
        channels.bias.load_state_dict(matrix.state_dict())
    return channels, matrix


class TestSameScores:
    @pytest.mark.parametrize("text", TEXTS)
    @pytest.mark.parametrize("scale", [None, 1.0])
    def test_the_product_is_score_plus_bias(self, text, scale):
        channels, matrix = both(text, scale=scale)
        heads, factor = matrix.num_heads, scale or 1 / math.sqrt(10)
        q, k = (torch.randn(2, heads, 7, 10, dtype=torch.float64) for _ in range(2))
        at = torch.stack((torch.arange(7), torch.arange(7) * 2 + 3))
        x, y = channels.double()(q, k, channels.prepare(at))
        want = q @ k.mT * factor + matrix.double().at(at, at, torch.float64)
        assert torch.allclose(x @ y.mT * factor, want, atol=1e-11)

    def test_keys_may_have_fewer_heads(self):
        channels, matrix = both("alibi(6)")
        q, k = torch.randn(1, 6, 5, 4), torch.randn(1, 2, 5, 4)
        x, y = channels(q, k, channels.prepare(torch.arange(5)))
        assert y.shape == (1, 2, 5, 12)
        got = x @ y.repeat_interleave(3, 1).mT / 2
        want = q @ k.repeat_interleave(3, 1).mT / 2 + matrix.at(torch.arange(5), torch.arange(5))
        assert torch.allclose(got, want, atol=1e-5)

    def test_gradients_of_weights_and_of_positions(self):
        channels, _ = both("sinusoidal_bias(3, sinusoid=sinusoidal(4))")
        channels.double()
        q, k = (torch.randn(1, 3, 5, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
        weight = channels.bias.weight.detach().clone().requires_grad_()

        def scores(q, k, w):
            state = {"bias.weight": w}
            return torch.func.functional_call(channels, state, (q, k, channels.prepare(torch.arange(5))))

        assert torch.autograd.gradcheck(scores, (q, k, weight))
        sums = SumChannels(scale=0.5)
        ids = torch.randn(1, 3, 5, dtype=torch.float64, requires_grad=True)

        def product(q, k, ids):
            x, y = sums(q, k, sums.prepare(Positions(ids)))
            return x @ y.mT

        # a number of bfloat16's bits and the rest: piecewise constant and the identity, together the identity
        got = torch.autograd.grad(product(q, k, ids).sin().sum(), ids)[0]
        plain = (q @ k.mT + (ids.unsqueeze(-1) - ids.unsqueeze(-2)) * 2).sin().sum()
        assert torch.allclose(got, torch.autograd.grad(plain, ids)[0], atol=1e-9)

    def test_sums_are_shared_by_a_group_of_queries(self):
        sums = SumChannels()
        q, k, ids = torch.randn(2, 6, 5, 4), torch.randn(2, 3, 5, 4), torch.randn(2, 3, 5)
        x, y = sums(q, k, sums.prepare(Positions(ids)))
        bias = (ids.unsqueeze(-1) - ids.unsqueeze(-2)).repeat_interleave(2, 1)
        want = q @ k.repeat_interleave(2, 1).mT / 2 + bias
        assert torch.allclose(x @ y.repeat_interleave(2, 1).mT / 2, want, atol=1e-5)


def attention(q, k, v, **options):
    return functional.scaled_dot_product_attention(q, k, v, **options)


class TestPrecision:
    @pytest.mark.parametrize(
        "text", ["alibi(12)", "sandwich(6, dim=32)", "sinusoidal_bias(6, sinusoid=sinusoidal(16))"]
    )
    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    @pytest.mark.parametrize("start", [0, 15000])
    def test_no_worse_than_a_mask_of_the_same_dtype(self, text, dtype, start):
        channels, matrix = both(text)
        heads, width, n = matrix.num_heads, 20, 400
        q, k, v = (torch.randn(1, heads, n, width).to(dtype) for _ in range(3))
        at, hidden = torch.arange(start, start + n), torch.ones(n, n).triu(1).bool()
        with torch.no_grad():
            bias = matrix.at(at, at, torch.float64)
            exact = attention(q.double(), k.double(), v.double(), attn_mask=bias.masked_fill(hidden, -torch.inf))
            masked = attention(q, k, v, attn_mask=bias.to(dtype).masked_fill(hidden, -torch.inf))
            x, y = channels(q, k, channels.prepare(at))
            wide = functional.pad(v, (0, x.shape[-1] - width))
            got = attention(x, y, wide, is_causal=True, scale=1 / math.sqrt(width))[..., :width]
        ours, theirs = ((t.double() - exact).abs().mean().item() for t in (got, masked))
        assert ours <= 1.15 * theirs
        once = (exact.to(dtype).double() - exact).abs().max()
        assert (got.double() - exact).abs().max() <= 3 * once

    def test_alibi_in_float32_far_from_the_start(self):
        channels, matrix = both("alibi(12)")
        q, k, v = (torch.randn(1, 12, 300, 20) for _ in range(3))
        at, hidden = torch.arange(100_000, 100_300), torch.ones(300, 300).triu(1).bool()
        exact = attention(
            q.double(),
            k.double(),
            v.double(),
            attn_mask=matrix.at(at, at, torch.float64).masked_fill(hidden, -torch.inf),
        )
        x, y = channels(q, k, channels.prepare(at))
        got = attention(x, y, functional.pad(v, (0, x.shape[-1] - 20)), is_causal=True, scale=20**-0.5)[..., :20]
        assert (got.double() - exact).abs().max() < 2e-5  # an unsplit product is off by 1e-3

    def test_parts_of_positions_are_exact(self):
        at = torch.cat((torch.arange(2**17 - 500, 2**17), torch.arange(3000))).double()
        assert torch.equal(parts(at, torch.bfloat16, 2).double().sum(-1), at)
        assert not torch.equal(at.bfloat16().double(), at)
        fine = torch.rand(999, dtype=torch.float64)
        assert (parts(fine, torch.bfloat16, 3).double().sum(-1) - fine).abs().max() < 2**-24

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
    def test_bias_of_alibi_alone(self, dtype):
        channels, matrix = both("alibi(12)")
        q = torch.zeros(1, 12, 200, 20, dtype=dtype)
        at = torch.arange(16000, 16200)
        x, y = (t.float() for t in channels(q, q, channels.prepare(at)))
        want = matrix.at(at, at, torch.float64)
        error = x @ y.mT * 20**-0.5 - want
        seen = (error - error[..., :1]).abs()  # what is the same for all keys of a query is nothing to the softmax
        assert seen.max() < (3e-4 if dtype == torch.float32 else 4e-3)
        assert error.abs().max() < (3e-4 if dtype == torch.float32 else 0.06)


def test_attention_runs_fused_without_a_matrix_of_biases():
    """The peak of memory that 2048 tokens take over 8 heads, counted by the allocator's events."""
    channels, _ = both("alibi(8)")
    q = torch.randn(1, 8, 2048, 16)
    x, y = channels(q, q, channels.prepare(torch.arange(2048)))
    v = functional.pad(q, (0, x.shape[-1] - 16))
    with torch.profiler.profile(profile_memory=True) as seen:
        attention(x, y, v, is_causal=True, scale=0.25)
    largest = max(e.cpu_memory_usage for e in seen.key_averages())
    assert largest < 8 * 2048 * 2048 * 4 / 8
    names = {e.key for e in seen.key_averages()}
    assert any("flash" in name for name in names), names


class TestErrorsAndState:
    def test_what_is_no_product(self):
        with pytest.raises(SpecError, match="no product of channels"):
            AlibiChannels(3, symmetric=True)
        with pytest.raises(SpecError, match="no product of channels"):
            build("sinusoidal_bias(3, limit=5)", channels=True)
        with pytest.raises(SpecError, match="positive number"):
            AlibiChannels(3, scale=0.0)

    def test_wrong_shapes(self):
        channels = AlibiChannels(3)
        q = torch.zeros(2, 3, 5, 4)
        with pytest.raises(ShapeError, match="3 heads that there are slopes for"):
            channels(torch.zeros(2, 4, 5, 4), q, channels.prepare(torch.arange(5)))
        with pytest.raises(ShapeError, match="q and k are"):
            channels(q, q, channels.prepare(torch.arange(6)))
        with pytest.raises(ShapeError, match="in place"):
            channels(q, q, channels.prepare(torch.arange(5)), out=(q, q))
        with pytest.raises(ShapeError, match="heads of the keys"):
            SumChannels()(q, q, torch.zeros(2, 2, 5))

    def test_nothing_is_saved_and_casts_change_nothing(self):
        channels = AlibiChannels(12)
        assert not channels.state_dict()
        q = torch.randn(1, 12, 5, 4)
        want = channels(q, q, channels.prepare(torch.arange(5)))[0]
        for changed in (copy.deepcopy(channels), channels.bfloat16(), channels.half(), channels.to("cpu")):
            assert torch.equal(changed(q, q, changed.prepare(torch.arange(5)))[0], want)
