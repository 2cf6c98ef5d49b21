"""Combinations against their float64 formulas, and what they promise about dtypes, dropout and widths."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from posenc.errors import ShapeError, SpecError
from posenc.formulas import combined, sinusoidal_table
from posenc.nn import build
from posenc.nn.combine import combination
from posenc.nn.inputs import SinusoidalEncoding
from posenc.nn.time import SeasonalEncoding
from posenc.spec import Sinusoidal

HOWS = ["add", "concat", "weighted", "gated"]


def parts(module):
    found = {n.split(".")[-1]: p.detach().double().numpy() for n, p in module.combination.named_parameters()}
    if "weight" in found and found["weight"].size == 1:
        found["weight"] = found["weight"].item()
    return found


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("content_scale", [1.0, "sqrt", 0.25])
def test_against_the_formula(how, content_scale):
    module = SinusoidalEncoding(6, combine=how, content_scale=content_scale).double()
    with torch.no_grad():
        for p in module.parameters():
            p.normal_()
    x = torch.randn(2, 5, 6, dtype=torch.float64)
    scale = math.sqrt(6) if content_scale == "sqrt" else content_scale
    wanted = combined(
        x.numpy(), sinusoidal_table(Sinusoidal(6), np.arange(5)), how, content_scale=scale, **parts(module)
    )
    assert np.abs(module(x).detach().numpy() - wanted).max() < 1e-14


def test_against_loops():
    x, p, w, b = np.random.default_rng(0).standard_normal((4, 5))[:, :3], None, None, None
    rng = np.random.default_rng(1)
    p, w, b = rng.standard_normal((4, 2)), rng.standard_normal((3, 5)), rng.standard_normal(3)
    found = combined(x, p, "concat", weight=w, bias=b)
    for n in range(4):
        for c in range(3):
            both = [*x[n], *p[n]]
            assert found[n, c] == pytest.approx(sum(w[c, j] * both[j] for j in range(5)) + b[c], abs=1e-14)
    p, w = rng.standard_normal((4, 3)), rng.standard_normal((3, 6))
    found = combined(x, p, "gated", weight=w, bias=b)
    for n in range(4):
        for c in range(3):
            g = 1 / (1 + math.exp(-(sum(w[c, j] * [*x[n], *p[n]][j] for j in range(6)) + b[c])))
            assert found[n, c] == pytest.approx(g * x[n, c] + (1 - g) * p[n, c], abs=1e-14)


@pytest.mark.parametrize("how", HOWS)
def test_gradients(how):
    module = SinusoidalEncoding(4, combine=how, content_scale="sqrt").double()
    names = [n for n, _ in module.named_parameters()]
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)

    def run(x, *parameters):
        return torch.func.functional_call(module, dict(zip(names, parameters, strict=True)), (x,))

    assert torch.autograd.gradcheck(run, (x, *[torch.randn_like(p).requires_grad_() for p in module.parameters()]))


def test_concatenating_contains_adding():
    module, added = SinusoidalEncoding(6, combine="concat"), SinusoidalEncoding(6)
    with torch.no_grad():
        module.combination.joint.weight.copy_(torch.cat((torch.eye(6), torch.eye(6)), 1))
        module.combination.joint.bias.zero_()
    x = torch.randn(2, 5, 6)
    assert (module(x) - added(x)).abs().max() < 1e-6


def test_weighted_starts_as_adding_and_can_be_saved():
    module, x = SinusoidalEncoding(6, combine="weighted"), torch.randn(2, 5, 6)
    assert torch.equal(module(x), SinusoidalEncoding(6)(x))
    assert list(module.state_dict()) == ["combination.weight"]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_the_result_has_the_dtype_of_the_content(how, dtype):
    module = SinusoidalEncoding(6, combine=how).to(dtype)
    x = torch.randn(2, 5, 6).to(dtype)
    found = module(x)
    assert found.dtype == dtype
    wanted = combined(x.double().numpy(), sinusoidal_table(Sinusoidal(6), np.arange(5)), how, **parts(module))
    assert np.abs(found.detach().double().numpy() - wanted).max() < {torch.bfloat16: 4e-2, torch.float16: 5e-3}.get(
        dtype, 1e-13
    )


@pytest.mark.parametrize("how", HOWS)
def test_under_autocast(how):
    module, x = SinusoidalEncoding(6, combine=how), torch.randn(2, 5, 6)
    with torch.autocast("cpu", torch.bfloat16):
        found = module(x)
    assert found.dtype == torch.float32
    assert (found - module(x)).abs().max() < 3e-2


@pytest.mark.parametrize("how", HOWS)
def test_another_width(how):
    module = SeasonalEncoding((24.0, 168.0), combine=how, content_dim=7)
    x = torch.randn(2, 5, 7)
    assert module(x).shape == x.shape
    projected = [n for n, _ in module.named_parameters() if "projection" in n]
    assert projected == ([] if how == "concat" else ["combination.projection.weight"])
    if how == "concat":
        assert module.combination.joint.weight.shape == (7, 7 + 4)
    module(x).sum().backward()
    assert all(p.grad is not None for p in module.parameters())


def test_dropout_only_while_training():
    module, x = SinusoidalEncoding(6, dropout=0.5), torch.randn(4, 500, 6)
    dropped = (module(x) == 0).float().mean().item()
    assert dropped == pytest.approx(0.5, abs=0.03)
    plain = SinusoidalEncoding(6)(x)
    assert torch.equal(module.eval()(x), plain)
    kept = module.train()(x)
    assert torch.allclose(kept[kept != 0], 2 * plain[kept != 0])


def test_bad_arguments():
    with pytest.raises(SpecError, match="combine is one of add, concat, weighted, gated; got multiply"):
        build("sinusoidal(6)", combine="multiply")
    with pytest.raises(SpecError, match="dropout"):
        build("sinusoidal(6)", dropout=1.0)
    with pytest.raises(SpecError, match="content_scale"):
        build("sinusoidal(6)", content_scale="root")
    with pytest.raises(ShapeError, match=r"positions \(batch, tokens, 4\)"):
        build("seasonal((24, 168))")(torch.zeros(1, 2, 6))
    with pytest.raises(SpecError, match="a combination is one of"):
        combined([1.0], [1.0], "multiply")
    assert combination("add", 6).position_dim == 6
