"""Every encoding at the input under every way of running a model: casts, copies, meta device, compile, export, vmap."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from posenc.nn import Positions, build
from posenc.nn.vectors import PositionVectors
from posenc.spec import ENCODINGS, notation, parse
from posenc.spec.json import from_json, to_json

ZOO = {
    "sinusoidal(6)": 1,
    "sinusoidal(7, order='sin|cos', odd='zero', shift=1, offset=2, padding_row=4)": 1,
    "sinusoidal(8, axes=split((2, 2)))": 2,
    "sinusoidal(6, learned=True)": 1,
    "learned(6, shape=(29,), offset=1)": 1,
    "learned(6, shape=(29, 31))": 2,
    "adjusted(sinusoidal(6), shape=(29,))": 1,
    "adjusted(sinusoidal(6), shape=(29,), form='scale_shift')": 1,
    "hierarchical((sinusoidal(4), sinusoidal(2)), sizes=(5,))": 1,
    "hierarchical((sinusoidal(4), sinusoidal(2)))": 2,
    "seasonal((24, 7.5), harmonics=(2, 1), trend=100)": 1,
    "calendar()": 1,
    "time2vec(6)": 1,
    "fourier(6, sigma=0.1, axes=2)": 2,
    "learnable_fourier(6, axes=2)": 2,
    "one_hot(29)": 1,
    "random_vectors(6, length=29)": 1,
    "constant(6)": 1,
    "clock(6, period=2.5)": 1,
}
LINES = list(ZOO)


def made(line, **options):
    module = build(line, **options)
    assert isinstance(module, PositionVectors)
    with torch.no_grad():
        for p in module.parameters():
            p.normal_()
    return module


def content(line, tokens, batch=2):
    module = build(line)
    return torch.randn(batch, tokens, module.dim)


def ids(line, tokens, batch=2):
    at = torch.randint(0, 29, (batch, tokens))
    return at if ZOO[line] == 1 else torch.stack((at, at.flip(1)))


def test_every_encoding_at_the_input_is_here():
    kinds = {parse(line)[0].kind for line in LINES}
    assert kinds >= {"sinusoidal", "learned", "adjusted", "hierarchical", "seasonal", "calendar", "time2vec", "fourier",
                     "learnable_fourier", "one_hot", "random_vectors", "constant", "clock"}  # fmt: skip
    assert kinds <= set(ENCODINGS)


@pytest.mark.parametrize("line", LINES)
def test_the_value_survives_notation_json_and_repr(line):
    module = build(line)
    assert parse(notation(module.value)) == (module.value,)
    assert from_json(to_json(module.value)) == module.value
    assert notation(module.value) in repr(module)
    assert module.value.enters == "input"
    assert not module.value.relative
    assert module.value.needs_length is False


@pytest.mark.parametrize("line", LINES)
def test_batch_is_rows_and_one_pass_is_token_by_token(line):
    module, x, at = made(line), content(line, 7), ids(line, 7)
    together = module(x, at)
    for b in range(2):
        row = at[..., b : b + 1, :]
        assert torch.allclose(module(x[b : b + 1], row)[0], together[b], atol=1e-6)
        assert torch.equal(module(x[b], row), module(x[b : b + 1], row)[0])
        for n in range(7):
            assert torch.allclose(module(x[b : b + 1, n : n + 1], row[..., n : n + 1])[0, 0], together[b, n], atol=1e-6)
    assert torch.equal(module(x, Positions(at)), together)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("combine", ["add", "gated"])
def test_copies_and_saved_state(line, combine):
    module, x, at = made(line, combine=combine), content(line, 5), ids(line, 5)
    wanted = module(x, at)
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert torch.equal(other(x, at), wanted)
    buffer = io.BytesIO()
    torch.save(module.state_dict(), buffer)
    state = torch.load(io.BytesIO(buffer.getvalue()))
    assert sum(t.numel() for t in state.values()) == sum(p.numel() for p in module.parameters())
    assert not list(module.buffers())
    fresh = build(line, combine=combine)
    fresh.load_state_dict(state, strict=True)
    assert torch.equal(fresh(x, at), wanted)
    for assign in (False, True):
        with torch.device("meta"):
            empty = build(line, combine=combine)
        if assign:
            empty.load_state_dict(state, assign=True)
        else:
            empty.to_empty(device="cpu").load_state_dict(state)
        assert torch.equal(empty(x, at), wanted)
    on_meta = build(line, combine=combine, device="meta")
    assert on_meta.to("meta")(x.to("meta"), at.to("meta")).shape == wanted.shape


@pytest.mark.parametrize("line", LINES)
def test_casts_do_not_touch_derived_numbers(line):
    module, x, at = build(line), content(line, 5), ids(line, 5)
    fixed = not list(module.parameters())
    wanted = module(x, at)
    for cast in (module.half(), module.bfloat16(), module.to(torch.float64), module.float()):
        if fixed:
            assert torch.equal(cast(x, at), wanted)
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        assert module.to(dtype)(x.to(dtype), at).dtype == dtype
    try:
        torch.set_default_dtype(torch.float64)
        again = build(line)
        assert again(x, at).dtype == torch.float32
        if fixed:
            assert torch.equal(again(x, at), wanted)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("line", LINES)
def test_inference_mode_leaves_nothing_behind_that_training_cannot_use(line):
    with torch.inference_mode():
        module = build(line, combine="weighted")
        module(content(line, 5), ids(line, 5))
        build(line)(content(line, 5), ids(line, 5))
    trained = build(line, combine="weighted")
    with torch.inference_mode():
        trained(content(line, 11), ids(line, 11))
    trained(content(line, 7), ids(line, 7)).sum().backward()
    assert trained.combination.weight.grad.isfinite().all()


@pytest.mark.parametrize("line", LINES)
def test_compiled_with_dynamic_lengths_in_one_graph(line):
    torch._dynamo.reset()
    module = made(line)
    graphs = []

    def count(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(module, fullgraph=True, dynamic=True, backend=count)
    for tokens in (5, 7, 11, 13):
        x, at = content(line, tokens), ids(line, tokens)
        assert torch.allclose(compiled(x, at), module(x, at), atol=1e-6)
    assert len(graphs) <= 2


@pytest.mark.parametrize(
    "line",
    [
        "sinusoidal(6)",
        "learned(6, shape=(29,), offset=1)",
        "calendar()",
        "seasonal((24, 7.5), harmonics=(2, 1), trend=100)",
    ],
)
def test_compiled_by_inductor(line):
    torch._dynamo.reset()
    module, x, at = made(line), content(line, 5), ids(line, 5)
    compiled = torch.compile(module, fullgraph=True)
    assert torch.allclose(compiled(x, at), module(x, at), atol=1e-6)
    assert torch.allclose(compiled(x), module(x), atol=1e-6)


@pytest.mark.parametrize("line", LINES)
def test_exported(line):
    module, x, at = made(line), content(line, 7), ids(line, 7)
    tokens = torch.export.Dim("tokens", min=2, max=29)
    shapes = ({1: tokens}, {at.ndim - 1: tokens})
    exported = torch.export.export(module, (x, at), dynamic_shapes=shapes).module()
    longer = content(line, 11), ids(line, 11)
    for case in ((x, at), longer):
        assert torch.allclose(exported(*case), module(*case), atol=1e-6)


@pytest.mark.parametrize("line", LINES)
def test_vmap_functional_call_and_checkpointing(line):
    module, x, at = made(line), content(line, 5, batch=3), ids(line, 5, batch=3)
    wanted = module(x, at)
    lead = 0 if ZOO[line] == 1 else 1
    assert torch.allclose(torch.vmap(module, in_dims=(0, lead))(x, at), wanted, atol=1e-6)
    parameters = dict(module.named_parameters())
    assert torch.equal(torch.func.functional_call(module, parameters, (x, at)), wanted)
    grad = torch.func.grad(lambda p, x: torch.func.functional_call(module, p, (x, at)).square().sum())(parameters, x)
    x.requires_grad_()
    checkpoint(module, x, at, use_reentrant=False).square().sum().backward()
    assert torch.allclose(x.grad, 2 * wanted)
    for name, p in parameters.items():
        assert torch.allclose(grad[name], p.grad, atol=1e-5)
