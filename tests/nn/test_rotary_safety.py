"""Rotary under everything that is done to modules: casts, copies, loads, compilers, exporters, transforms."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from posenc.nn import Positions
from posenc.nn.rotary import RotaryEmbedding
from posenc.nn.scaled_queries import QueryScaling
from posenc.spec import Dynamic, LongRope, Mixed, Split, Yarn

LONG = LongRope(4.0, original=16, short_factor=(1.0, 1.5, 2.0), long_factor=(2.0, 3.0, 9.0))
MAKERS = {
    "half": lambda: RotaryEmbedding(6),
    "adjacent, partial, trailing": lambda: RotaryEmbedding(6, rotary_dim=4, where="last", interleaved=True),
    "yarn": lambda: RotaryEmbedding(6, scaling=Yarn(4.0, original=64)),
    "longrope": lambda: RotaryEmbedding(6, scaling=LONG),
    "dynamic": lambda: RotaryEmbedding(6, scaling=Dynamic(4.0, original=16)),
    "axes": lambda: RotaryEmbedding(6, axes=Split((1, 2), own_schedule=False)),
    "xpos": lambda: RotaryEmbedding(6, xpos_scale_base=512.0),
    "learned": lambda: RotaryEmbedding(6, learned=True),
    "query scale": lambda: QueryScaling(0.1, original=4),
}
all_kinds = pytest.mark.parametrize("name", MAKERS)


class Layer(nn.Module):
    """A rotary as a model holds it."""

    def __init__(self, rotary):
        super().__init__()
        self.rotary = rotary

    def forward(self, q, k, ids, length):
        return self.rotary(q, k, self.rotary.prepare(Positions(ids, length)))


def inputs(module, tokens=7, dtype=torch.float32):
    generator = torch.Generator().manual_seed(tokens)
    q, k = (torch.randn(2, h, tokens, 6, generator=generator, dtype=torch.float32).to(dtype) for h in (3, 1))
    ids = torch.arange(tokens) + 1001
    if getattr(module, "axes", 1) > 1:
        ids = torch.stack((ids, ids * 3))
    return q, k, ids, torch.tensor([15, 33])


def result(module, **kwargs):
    return Layer(module)(*inputs(module, **kwargs))


def equal(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@all_kinds
@pytest.mark.parametrize("cast", [nn.Module.half, nn.Module.bfloat16, nn.Module.double, nn.Module.cpu])
def test_casts_change_no_angle(name, cast):
    module = MAKERS[name]()
    before = result(module)
    assert equal(result(cast(nn.Sequential(module))[0]), before)


@all_kinds
def test_copies_and_pickles(name):
    module = MAKERS[name]()
    if name == "learned":
        nn.init.normal_(module.log_ratio)
    before = result(module)
    assert equal(result(copy.deepcopy(module)), before)
    stored = pickle.dumps(module)
    assert equal(result(pickle.loads(stored)), before)
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    assert equal(result(torch.load(file, weights_only=False)), before)
    if hasattr(module, "derive_now"):
        assert pickle.loads(stored).__dict__.keys() == module.__dict__.keys()
        assert not module.__getstate__()["_known"]


@all_kinds
def test_no_state_but_what_is_trained(name):
    module = MAKERS[name]()
    assert list(module.buffers()) == []
    assert list(module.state_dict()) == (["log_ratio"] if name == "learned" else [])
    assert module.load_state_dict(MAKERS[name]().state_dict(), strict=True).missing_keys == []


@all_kinds
def test_meta_device_both_ways(name):
    before = result(MAKERS[name]())
    with torch.device("meta"):
        empty = nn.Sequential(MAKERS[name](), nn.Linear(3, 2))
    empty = empty.to_empty(device="cpu")
    if name == "learned":
        empty[0].reset_parameters()
    assert equal(result(empty[0]), before)
    with torch.device("meta"):
        assigned = nn.Sequential(MAKERS[name](), nn.Linear(3, 2))
    assigned.load_state_dict(nn.Sequential(MAKERS[name](), nn.Linear(3, 2)).state_dict(), assign=True, strict=True)
    assert equal(result(assigned[0]), before)
    there = MAKERS[name]().to("meta")
    q, k, ids, length = (t.to("meta") for t in inputs(there))
    assert Layer(there)(q, k, ids, length)[0].shape == q.shape


@all_kinds
def test_modes_of_the_process(name):
    before = result(MAKERS[name]())
    torch.set_default_dtype(torch.bfloat16)
    try:
        made = MAKERS[name]()
        assert equal(result(made), before)
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert equal(result(MAKERS[name]()), before)
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        assert equal(result(MAKERS[name]()), before)
    finally:
        torch.set_float32_matmul_precision(precision)
    with torch.inference_mode():
        made = MAKERS[name]()
        assert equal(result(made), before)
    q, k, ids, length = inputs(made)
    Layer(made)(q.requires_grad_(), k, ids, length)[0].sum().backward()


@all_kinds
def test_low_precision_keeps_its_type(name):
    q, k = result(MAKERS[name](), dtype=torch.bfloat16)
    assert q.dtype == k.dtype == torch.bfloat16


@all_kinds
def test_compiles_whole_for_any_length(name):
    module = MAKERS[name]()
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(Layer(module), fullgraph=True)
    for tokens in (5, 7, 11, 13):
        for mine, eager in zip(compiled(*inputs(module, tokens)), result(module, tokens=tokens), strict=True):
            assert (mine - eager).abs().max() < 1e-6
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 2


@all_kinds
@pytest.mark.parametrize("strict", [True, False])
def test_exports_for_any_length(name, strict):
    module = MAKERS[name]()
    tokens = torch.export.Dim("tokens", min=2, max=4096)
    shapes = ({2: tokens}, {2: tokens}, {0 if getattr(module, "axes", 1) == 1 else 1: tokens}, None)
    program = torch.export.export(Layer(module), inputs(module), dynamic_shapes=shapes, strict=strict).module()
    for mine, eager in zip(program(*inputs(module, 23)), result(module, tokens=23), strict=True):
        assert (mine - eager).abs().max() < 1e-6


def test_exports_to_onnx():
    from onnx.reference import ReferenceEvaluator

    module = Layer(RotaryEmbedding(6, rotary_dim=4, interleaved=True)).eval()
    tokens = torch.export.Dim("tokens", min=2, max=4096)
    shapes = ({2: tokens}, {2: tokens}, {0: tokens}, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own
        program = torch.onnx.export(module, inputs(module), dynamo=True, dynamic_shapes=shapes, verbose=False)
    graph = program.model_proto.graph
    given = inputs(module, 23)
    feed = {i.name: t.numpy() for i, t in zip(graph.input, given, strict=False)}
    found = ReferenceEvaluator(program.model_proto).run(None, feed)
    for mine, eager in zip(found, module(*given), strict=True):
        assert abs(mine - eager.numpy()).max() < 1e-6
    assert {n.op_type for n in graph.node} >= {"Cos", "Sin"}  # computed from positions, no table that could end


@all_kinds
def test_gradient_checkpointing(name):
    layer = Layer(MAKERS[name]())
    q, k, ids, length = inputs(layer.rotary)
    gradients = []
    for run in (layer, lambda *a: checkpoint(layer, *a, use_reentrant=False)):
        x = q.clone().requires_grad_()
        run(x, k, ids, length)[0].square().sum().mul(0.5).backward()
        gradients.append(x.grad)
    assert torch.equal(*gradients)
    assert gradients[0].abs().max() > 0


@all_kinds
def test_function_transforms(name):
    layer = Layer(MAKERS[name]())
    q, k, ids, length = inputs(layer.rotary)
    many = torch.stack((q, q * 2, q - 1))
    mapped = torch.func.vmap(lambda x: layer(x, k, ids, length)[0])(many)
    assert (mapped[2] - layer(q - 1, k, ids, length)[0]).abs().max() < 1e-6
    if getattr(layer.rotary, "axes", 1) == 1:
        rows = torch.stack((ids, ids + 5))
        by_row = torch.func.vmap(lambda x, i: layer(x[None], k[:1], i, length[:1])[0][0])(q, rows)
        assert (by_row[1] - layer(q[1:], k[1:], ids + 5, length[:1])[0][0]).abs().max() < 1e-6
    gradient = torch.func.grad(lambda x: layer(x, k, ids, length)[0].square().sum())(q)
    assert gradient.shape == q.shape
    values, along = torch.func.jvp(lambda x: layer(x, k, ids, length)[0], (q,), (q,))
    assert (values - along).abs().max() < 1e-6  # a rotation is linear
    state = dict(layer.named_parameters())
    assert equal(torch.func.functional_call(layer, state, (q, k, ids, length)), layer(q, k, ids, length))


def test_first_use_inside_a_transform_or_tracer_leaves_nothing_behind():
    module = RotaryEmbedding(6)
    module._known = {}
    with torch._subclasses.FakeTensorMode():
        module.prepare(torch.arange(3))
    assert module._known == {}
    torch.func.vmap(lambda ids: module.prepare(ids).cos)(torch.arange(6).reshape(2, 3))
    before = result(RotaryEmbedding(6))
    assert equal(result(module), before)


def test_mixed_axes_train_under_compile():
    module = RotaryEmbedding(8, axes=Mixed(3), learned=True)
    torch.compiler.reset()
    compiled = torch.compile(lambda q, ids: module.rotate(q, module.prepare(ids)), fullgraph=True)
    q, ids = torch.randn(2, 3, 5, 8), torch.rand(2, 5) * 9
    compiled(q, ids).square().sum().backward()
    compiled(q, ids).mul(torch.arange(8.0)).sum().backward()
    assert module.theta.grad.abs().max() > 0
