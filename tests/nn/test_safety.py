"""Scores, channels, content and attention under everything that is done to modules.

Encodings at the input and rotary have tests of their own; what those lack is here.
"""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

from nn.register import REGISTER, case_of, stirred
from nn.subjects_of_safety import ALIKE, SUBJECTS, Attending, inputs, made
from posenc.nn import build
from posenc.nn.scores import PositionBias
from posenc.spec import parse

every = pytest.mark.parametrize("name", SUBJECTS)
each_kind = pytest.mark.parametrize(
    "name", [name for name in SUBJECTS if name not in ALIKE and "attention" not in name]
)
CASTS = {"half": nn.Module.half, "bfloat16": nn.Module.bfloat16, "double": nn.Module.double, "cpu": nn.Module.cpu}


def result(module, **kwargs):
    return module(*inputs(**kwargs)).detach()


@every
@pytest.mark.parametrize("cast", CASTS)
def test_a_cast_changes_what_is_trained_and_nothing_else(name, cast):
    module = CASTS[cast](made(name)).float()
    fresh = SUBJECTS[name]()
    fresh.load_state_dict(module.state_dict(), strict=True)
    assert torch.equal(result(module), result(fresh))
    moved = made(name).to(torch.bfloat16).to("cpu", torch.float32)
    assert torch.equal(result(moved), result(CASTS["bfloat16"](made(name)).float()))


@every
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_type_is_kept_and_loses_no_more_than_its_rounding(name, dtype):
    module = made(name).to(dtype)
    found = result(module, dtype=dtype)
    wanted = result(module.double(), dtype=torch.float64) if dtype == torch.float64 else result(module.float())
    assert found.dtype == dtype
    assert found.isfinite().all()
    room = 1e-12 if dtype == torch.float64 else 16 * torch.finfo(dtype).eps
    assert (found.double() - wanted.double()).abs().max() <= room * (1 + wanted.abs().max())


@every
def test_copies_and_pickles(name):
    module = made(name)
    before = result(module)
    assert torch.equal(result(copy.deepcopy(module)), before)
    stored = pickle.dumps(module)
    assert torch.equal(result(pickle.loads(stored)), before)
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    assert torch.equal(result(torch.load(file, weights_only=False)), before)
    for part in module.modules():
        if hasattr(part, "derive_now"):
            assert not part.__getstate__()["_known"], "derived numbers are not stored"


@every
def test_state_is_what_is_trained_both_ways(name):
    module, other = made(name), made(name, seed=12)
    assert list(module.buffers()) == []
    assert set(module.state_dict()) == {n for n, _ in module.named_parameters()}
    other.load_state_dict(module.state_dict(), strict=True)
    assert torch.equal(result(other), result(module))
    again = SUBJECTS[name]().load_state_dict(other.state_dict(), strict=True)
    assert not again.missing_keys
    assert not again.unexpected_keys


@every
def test_meta_device_both_ways(name):
    module = made(name)
    before, state = result(module), module.state_dict()
    for assign in (False, True):
        with torch.device("meta"):
            empty = SUBJECTS[name]()
        if not assign:
            empty.to_empty(device="cpu")
        empty.load_state_dict(state, strict=True, assign=assign)
        assert torch.equal(result(empty), before)
    there = made(name).to("meta")
    x, ids = (t.to("meta") for t in inputs())
    assert there(x, ids).shape == before.shape


@every
def test_what_is_emptied_starts_again(name):
    with torch.device("meta"):
        empty = SUBJECTS[name]()
    empty.to_empty(device="cpu")
    with torch.no_grad():
        for p in empty.parameters():
            p.fill_(torch.nan)
    for part in empty.modules():
        if list(part.parameters(recurse=False)):
            part.reset_parameters()
    assert all(p.isfinite().all() for p in empty.parameters())


@every
def test_modes_of_the_process(name):
    before = result(made(name))
    torch.set_default_dtype(torch.bfloat16)
    try:
        assert torch.equal(result(made(name).float()), result(made(name).bfloat16().float()))
    finally:
        torch.set_default_dtype(torch.float32)
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        assert torch.equal(result(made(name)), before)
    finally:
        torch.set_float32_matmul_precision(precision)
    with torch.inference_mode():
        module = made(name)
        assert torch.allclose(module(*inputs()), before, atol=1e-5)  # fused attention may choose another kernel
    x, ids = inputs()
    trained = made(name)
    with torch.inference_mode():
        trained(x, ids)
    trained(x.requires_grad_(), ids).sum().backward()
    assert x.grad.isfinite().all()


@every
def test_autocast_rounds_what_it_rounds_elsewhere_but_no_position(name):
    module = made(name)
    before = result(module)
    with torch.autocast("cpu", torch.bfloat16):
        found = result(module)
    exact = isinstance(getattr(module, "encoding", None), PositionBias) or name.endswith("as channels")
    room = 1e-6 if exact else 16 * torch.finfo(torch.bfloat16).eps
    assert (found.float() - before).abs().max() <= room * (1 + before.abs().max())


@each_kind
def test_compiles_whole_in_two_graphs_at_most(name):
    torch._dynamo.reset()
    module, graphs = made(name), []

    def count(graph, _):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(module, fullgraph=True, backend=count)
    for tokens in (5, 7, 11, 13):
        case = inputs(tokens)
        assert torch.allclose(compiled(*case), module(*case), atol=1e-5)
    assert len(graphs) <= 2


@pytest.mark.parametrize("name", ["sandwich(3, dim=8) as channels", "kerple(3)"])
def test_compiled_by_inductor_with_gradients(name):
    torch._dynamo.reset()
    module = made(name)
    compiled = torch.compile(module, fullgraph=True, dynamic=True)
    gradients = []
    for run in (module, compiled):
        x, ids = inputs(11)
        found = run(x.requires_grad_(), ids)
        (found * torch.arange(found.shape[-1])).sum().backward()
        gradients.append(x.grad)
    assert torch.allclose(*gradients, atol=1e-4)


@each_kind
def test_exports_for_any_length(name):
    module, tokens = made(name), torch.export.Dim("tokens", min=2, max=4096)
    program = torch.export.export(module, inputs(), dynamic_shapes=({1: tokens}, {0: tokens})).module()
    assert torch.allclose(program(*inputs(23)), module(*inputs(23)), atol=1e-5)


@every
def test_gradient_checkpointing(name):
    module = made(name)
    gradients = []
    for run in (module, lambda *a: checkpoint(module, *a, use_reentrant=False)):
        module.zero_grad()
        x, ids = inputs()
        run(x.requires_grad_(), ids).square().sum().backward()
        gradients.append([x.grad, *(p.grad for p in module.parameters() if p.grad is not None)])
    assert len(gradients[0]) == len(gradients[1])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))
    assert gradients[0][0].abs().max() > 0


@every
def test_function_transforms(name):
    module = made(name)
    x, ids = inputs(batch=3)
    with sdpa_kernel(SDPBackend.MATH):  # PyTorch's fused attention has no rules for vmap and forward gradients
        wanted = module(x, ids)
        mapped = torch.func.vmap(lambda row: module(row[None], ids)[0])(x)
        assert torch.allclose(mapped, wanted, atol=1e-5)
        state = dict(module.named_parameters())
        assert torch.equal(torch.func.functional_call(module, state, (x, ids)), wanted)

        def loss(parameters, x):
            return torch.func.functional_call(module, parameters, (x, ids)).square().sum()

        of_state, of_x = torch.func.grad(loss, argnums=(0, 1))(state, x)
        y = x.clone().requires_grad_()
        loss(state, y).backward()
        assert torch.allclose(of_x, y.grad, atol=1e-4, rtol=1e-4)
        for n, p in state.items():
            assert torch.allclose(of_state[n], p.grad, atol=1e-4, rtol=1e-4), n
        module, x = module.double(), x.double()
        value, along = torch.func.jvp(lambda x: module(x, ids), (x,), (torch.ones_like(x),))
        assert torch.allclose(value.float(), wanted, atol=1e-4)
        small = (module(x + 1e-6, ids) - module(x - 1e-6, ids)) / 2e-6
        assert torch.allclose(along, small, atol=1e-5, rtol=1e-5)


@every
def test_batch_is_rows_and_a_prefix_knows_no_future(name):
    module = made(name)
    x, ids = inputs()
    whole = module(x, ids)
    for row in range(2):
        assert torch.allclose(module(x[row : row + 1], ids), whole[row : row + 1], atol=1e-5)
    part = module(x[:, :4], ids[:4])
    kept = whole[:, :4] if isinstance(module, Attending) else whole[:, :, :4, :4]
    assert torch.allclose(part, kept, atol=1e-5)


FIRST = [parse(entry.lines[0])[0] for entry in REGISTER.values()]
INPUTS = pytest.mark.parametrize("value", [v for v in FIRST if v.enters == "input"], ids=lambda v: v.kind)


@INPUTS
def test_autocast_and_matmul_precision_leave_position_vectors_alone(value):
    module = stirred(build(value))
    at = case_of(REGISTER[value.kind], value).ids
    x = torch.randn(2, at.shape[-1] + module.prefix, module.dim)
    vectors, joined = module.vectors(at), module(x, at)
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        assert torch.equal(module.vectors(at), vectors)
    finally:
        torch.set_float32_matmul_precision(precision)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(module.vectors(at), vectors)
        assert torch.equal(module(x, at), joined)
        assert module(x.bfloat16(), at).dtype == torch.bfloat16
