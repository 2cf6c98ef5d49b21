"""From one layout of pairs to the other: activations and projections in memory."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from posenc.errors import ShapeError, SpecError
from posenc.nn.converting import convert_channels, convert_projection
from posenc.nn.rotary import RotaryEmbedding

SHAPES = [{}, {"rotary_dim": 6}, {"rotary_dim": 6, "where": "last"}]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_activations_both_ways(shape):
    x = torch.randn(2, 3, 5, 10)
    half, adjacent = RotaryEmbedding(10, **shape), RotaryEmbedding(10, interleaved=True, **shape)
    ready = half.prepare(torch.arange(5) + 7)
    there = convert_channels(x, "half", **shape)
    assert torch.equal(convert_channels(there, "adjacent", **shape), x)
    assert torch.equal(half.rotate(there, ready), convert_channels(adjacent.rotate(x, ready), "half", **shape))
    assert not torch.equal(there, x)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("to", "interleaved"), [("half", True), ("adjacent", False)])
def test_projections_with_grouped_queries_and_biases(shape, to, interleaved):
    x = torch.randn(2, 5, 17)
    query, key = nn.Linear(17, 6 * 10), nn.Linear(17, 3 * 10)
    norm = torch.rand(10) + 0.5  # a norm's weight on the channels of a head, before the rotation

    def scores(query, key, norm, interleaved):
        rotary = RotaryEmbedding(10, interleaved=interleaved, **shape)
        q, k = (p(x).unflatten(-1, (-1, 10)).transpose(1, 2) * norm for p in (query, key))
        q, k = rotary(q, k, rotary.prepare(torch.arange(5) * 9))
        return q @ k.repeat_interleave(2, 1).mT

    before = scores(query, key, norm, interleaved)
    for layer, heads in ((query, 6), (key, 3)):
        original = layer.weight.detach().clone()
        for parameter in (layer.weight, layer.bias):
            parameter.data = convert_projection(parameter.data, to, heads=heads, **shape)
        back = "adjacent" if to == "half" else "half"
        assert torch.equal(convert_projection(layer.weight.data, back, heads=heads, **shape), original)
    after = scores(query, key, convert_channels(norm, to, **shape), not interleaved)
    assert (after - before).abs().max() < 2e-5
    assert (scores(query, key, norm, interleaved) - before).abs().max() > 0.1


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda: convert_projection(torch.zeros(10, 3), "half", heads=3), ShapeError, "rows for each of 3 heads"),
        (lambda: convert_projection(torch.zeros(10, 3), "half", heads=0), ShapeError, "heads"),
        (lambda: convert_projection(torch.zeros(2, 10, 3), "half", heads=2), ShapeError, "got .2, 10, 3."),
        (lambda: convert_channels(torch.zeros(10), "neox"), SpecError, "adjacent .2i, 2i . 1. or half"),
        (lambda: convert_channels(torch.zeros(10), "half", rotary_dim=5), ShapeError, "rotary_dim is even"),
        (lambda: convert_channels(torch.zeros(10), "half", rotary_dim=12), ShapeError, "at most head_dim = 10"),
    ],
)
def test_bad_input_names_the_rule(act, error, words):
    with pytest.raises(error, match=words):
        act()
