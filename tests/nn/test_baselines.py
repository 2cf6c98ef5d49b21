"""One-hot, random vectors, a constant and one clock: values, and what "different" alone does and does not give."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from posenc.errors import ShapeError, SpecError
from posenc.formulas import clock_table, constant_table, one_hot_table, random_vectors
from posenc.nn.baselines import ClockEncoding, ConstantEncoding, OneHotEncoding, RandomVectorsEncoding
from posenc.spec import Clock, Constant, OneHot, RandomVectors


def kernel(encoding, n):
    p = encoding.vectors(torch.arange(n), torch.float64)[0]
    return p @ p.T


def toeplitz_defect(k):
    return max(float(np.ptp(k.diagonal(d).numpy())) for d in range(len(k)))


def test_one_hot():
    encoding = OneHotEncoding(7)
    at = torch.tensor([[3, 0, 6], [6, 6, 1]])
    found = encoding(torch.zeros(2, 3, 7), at)
    for b in range(2):
        assert np.array_equal(found[b].numpy(), one_hot_table(OneHot(7), at[b].numpy()))
        assert found[b].argmax(-1).tolist() == at[b].tolist()
    assert torch.equal(kernel(encoding, 7), torch.eye(7).double())  # exactly Toeplitz, and says nothing of distance
    with pytest.raises(ShapeError, match="0 to 6; got 7"):
        encoding(torch.zeros(1, 1, 7), torch.tensor([7]))
    with pytest.raises(ShapeError, match="integers"):
        encoding(torch.zeros(1, 1, 7), torch.tensor([0.5]))


def test_random_vectors():
    value = RandomVectors(30, length=11, seed=5)
    encoding = RandomVectorsEncoding(value)
    at = torch.tensor([10, 3, 3])
    found = encoding(torch.zeros(2, 3, 30), at)[1]
    assert np.abs(found.numpy() - random_vectors(value, at.numpy())).max() < 1e-7
    draw = np.random.Generator(np.random.PCG64(5)).standard_normal((11, 30)) * math.sqrt(0.5)
    assert np.abs(found.numpy() - draw[[10, 3, 3]]).max() < 1e-7
    assert not encoding.state_dict()
    assert toeplitz_defect(kernel(encoding, 11)) > 1
    longer = RandomVectorsEncoding(value.replace(length=13))
    assert torch.equal(longer.vectors(at), encoding.vectors(at))
    with pytest.raises(ShapeError, match="0 to 10; got 11"):
        encoding.vectors(torch.tensor([11]))
    with pytest.raises(SpecError, match="2\\^28"):
        RandomVectors(2**15, length=2**14)


def test_a_constant_breaks_nothing():
    encoding = ConstantEncoding(5, level=-0.75)
    x = torch.randn(2, 3, 5)
    assert torch.equal(encoding(x), x - 0.75)
    assert np.array_equal(
        encoding.vectors(torch.arange(3))[0].numpy(), constant_table(Constant(5, level=-0.75), range(3))
    )
    order = torch.tensor([2, 0, 1])
    assert torch.equal(encoding(x[:, order]), encoding(x)[:, order])


@pytest.mark.parametrize("period", [2.5, 7.0, 2 * math.pi])
def test_one_clock(period):
    encoding = ClockEncoding(6, period=period)
    at = [0, 1, 5, 23, 10**6]
    found = encoding.vectors(torch.tensor(at), torch.float64)[0]
    assert np.abs(found.numpy() - clock_table(Clock(6, period=period), at)).max() < 1e-14
    for n, p in enumerate(at[:4]):
        for c in range(6):
            wave = math.cos if c % 2 else math.sin
            assert found[n, c].item() == pytest.approx(wave(2 * math.pi * p / period), abs=1e-13)
    assert toeplitz_defect(kernel(encoding, 29)) < 1e-12
    returns = {2.5: 5, 7.0: 7}.get(period)  # exactly where 2 pi / theta is rational
    for p in range(1, 30):
        same = torch.equal(encoding.vectors(torch.tensor([p])), encoding.vectors(torch.tensor([0])))
        assert same == (returns is not None and p % returns == 0)
    with pytest.raises(SpecError, match="dim is even"):
        ClockEncoding(5, period=2.0)
