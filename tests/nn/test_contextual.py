"""Positions made from the content: against formulas, with a carry, with documents, by gradient."""

from __future__ import annotations

import math

import pytest
import torch

from oracles import relative as oracle
from posenc import formulas
from posenc.errors import ShapeError, SpecError
from posenc.nn import Attention, Positions, build
from posenc.nn.contextual import ContextualPositions, ForgettingPositions, restarted
from posenc.nn.selective import SelectivePositions


def causal(scores):
    return scores.masked_fill(
        torch.ones(scores.shape[-2:]).triu(1 + scores.shape[-1] - scores.shape[-2]) > 0, -torch.inf
    )


class TestCope:
    def test_equals_a_loop_and_the_formula(self):
        cope = ContextualPositions(4, positions=3).double()
        cope.vectors.data.normal_()
        scores, q = causal(torch.randn(2, 3, 7, 7).double() + 1), torch.randn(2, 3, 7, 4).double()
        got = cope(scores, q, None, None, None).detach()
        for b in range(2):
            want = formulas.cope_scores(cope.value, scores[b].numpy(), q[b].numpy(), cope.vectors.detach().numpy())
            assert torch.allclose(got[b], torch.from_numpy(want), atol=1e-12)
            loop = oracle.cope(scores[b, 1].tolist(), q[b, 1].numpy(), cope.vectors.detach().numpy(), 3)
            assert got[b, 1].tolist() == [pytest.approx(line, abs=1e-11) for line in loop]

    def test_it_counts_only_what_the_gates_let_through(self):
        cope = ContextualPositions(4, positions=9)
        scores = causal(torch.tensor([40.0, -40.0, 40.0, -40.0, 40.0]).expand(1, 1, 5, 5).clone())
        assert cope.positions(scores)[0, 0, 4].tolist() == [3, 2, 2, 1, 1]

    def test_gradients(self):
        cope = ContextualPositions(4, positions=3).double()
        hidden = torch.ones(5, 5).triu(1) > 0
        scores, q = (torch.randn(1, 2, 5, n, dtype=torch.float64, requires_grad=True) for n in (5, 4))

        def weights(scores, q, vectors):
            state = {"vectors": vectors}
            masked = scores.masked_fill(hidden, -torch.inf)
            return torch.func.functional_call(cope, state, (masked, q, None, None, None)).softmax(-1)

        assert torch.autograd.gradcheck(weights, (scores, q, torch.randn(4, 3).double().requires_grad_()))

    def test_there_is_no_score_mod(self):
        with pytest.raises(TypeError, match="no score_mod"):
            ContextualPositions(4).score_mod()


class TestForgetting:
    @pytest.mark.parametrize("form", ["log_sigmoid", "softplus"])
    def test_equals_the_formula(self, form):
        module = build(f"forgetting(6, num_heads=3, form={form!r})").double()
        x = torch.randn(2, 7, 6).double()
        at, carry = module(x, Positions(torch.arange(7)))
        gates = module.gates(x).transpose(1, 2).detach().numpy()
        want = torch.from_numpy(formulas.forgetting_positions(module.value, gates))
        assert torch.allclose(at.ids.detach(), want, atol=1e-13)
        assert torch.equal(carry, at.ids[..., -1:])

    def test_attention_forgets_by_the_product_of_gates(self):
        attend = Attention(6, 2, "forgetting(6, num_heads=2)").double()
        x = torch.randn(1, 7, 6).double()
        forget = attend.content[0]
        with torch.no_grad():
            q, k, v = (layer(x)[0].unflatten(-1, (2, 3)).transpose(0, 1) for layer in (attend.q, attend.k, attend.v))
            gates = forget.gates(x)[0].T
            heads = []
            for h in range(2):

                def score(i, j, h=h):
                    return oracle.dot(q[h, i], k[h, j]) / math.sqrt(3) + oracle.forgotten(gates[h].tolist(), i, j)

                heads.append(oracle.attend(score, lambda i, j, h=h: v[h, j].tolist(), 7, 7, 3))
            want = attend.out(torch.tensor(heads).double().transpose(0, 1).flatten(-2))
            assert torch.allclose(attend(x)[0][0], want, atol=1e-11)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
    def test_long_rows_keep_their_digits(self, dtype):
        attend = Attention(8, 2, "forgetting(8, num_heads=2)").to(dtype)
        torch.nn.init.constant_(attend.content[0].gates.bias, -3.0)  # about 3 forgotten with every token
        x = torch.randn(1, 3000, 8).to(dtype)
        with torch.no_grad():
            tail = attend(x)[0][:, -20:].double()
            want = attend.double()(x.double())[0][:, -20:]
        assert (tail - want).abs().max() < (2e-2 if dtype == torch.bfloat16 else 1e-5)

    def test_a_document_starts_again(self):
        module = ForgettingPositions(6, num_heads=3).double()
        x = torch.randn(1, 7, 6).double()
        document = torch.tensor([[0, 0, 0, 1, 1, 1, 1]])
        got = module(x, Positions(torch.arange(7), None, document))[0].ids
        alone = module(x[:, 3:], Positions(torch.arange(4)))[0].ids
        assert torch.allclose(got[..., 3:], alone, atol=1e-14)
        assert torch.allclose(got[..., :3], module(x[:, :3], Positions(torch.arange(3)))[0].ids, atol=1e-14)


class TestSelective:
    def test_equals_the_formula(self):
        module = SelectivePositions(6, head_dim=4, num_heads=3, rank=5, window=3, base=100.0).double()
        x = torch.randn(2, 7, 6).double()
        at, _ = module(x, Positions(torch.arange(7)))
        p = {n: t.detach().numpy() for n, t in module.named_parameters()}
        weights = {"down": p["down.weight"], "up": p["up.weight"], "kernel": p["kernel"]}
        angles = at.ids.movedim(0, -1) * module.applied.numbers(x.device)["theta"]
        for b in range(2):
            want = torch.from_numpy(formulas.selective_phases(module.value, x[b].numpy(), **weights))
            assert torch.allclose(angles[b].detach(), want, atol=1e-12)

    def test_scores_depend_on_what_lies_between(self):
        module = SelectivePositions(6, head_dim=4, num_heads=3).double()
        x = torch.randn(1, 9, 6).double()
        q = torch.randn(1, 3, 1, 4).double().expand(1, 3, 9, 4)

        def scores(x):
            at, _ = module(x, Positions(torch.arange(x.shape[1])))
            turned, other = module.applied(q[:, :, : x.shape[1]], q[:, :, : x.shape[1]], module.applied.prepare(at))
            return turned @ other.mT

        whole = scores(x)
        changed = x.clone()
        changed[:, 0] += 1.0  # the convolution sees it up to token 3
        assert torch.allclose(scores(changed)[..., 8, 3:], whole[..., 8, 3:], atol=1e-12)
        assert (scores(changed)[..., 8, 0] - whole[..., 8, 0]).abs().min() > 1e-4

    def test_gradients(self):
        module = SelectivePositions(4, head_dim=2, num_heads=2, rank=3, window=2).double()
        names = [n for n, _ in module.named_parameters()]
        document = torch.tensor([[0, 0, 1, 1, 1]])

        def angles(x, *values):
            state = dict(zip(names, values, strict=True))
            at, _ = torch.func.functional_call(module, state, (x, Positions(torch.arange(5), None, document)))
            return at.ids

        values = [p.detach().clone().requires_grad_() for p in module.parameters()]
        assert torch.autograd.gradcheck(angles, (torch.randn(1, 5, 4).double().requires_grad_(), *values))


@pytest.mark.parametrize("text", ["forgetting(6, num_heads=3)", "selective_rotary(6, head_dim=4, num_heads=3)"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_carry_goes_on_where_tokens_stopped(text, packed):
    module = build(text).double()
    x = torch.randn(2, 11, 6).double()
    document = torch.tensor([0] * 4 + [1] * 3 + [2] * 4).expand(2, -1) if packed else None
    whole = module(x, Positions(torch.arange(11), None, document))[0].ids
    carry, found = None, []
    for start, end in ((0, 1), (1, 5), (5, 8), (8, 11)):
        part = None if document is None else document[:, start:end]
        at, carry = module(x[:, start:end], Positions(torch.arange(start, end), None, part), carry)
        found.append(at.ids)
    got = torch.cat(found, -1)
    runs = [(0, 4), (4, 7), (7, 11)] if packed else [(0, 11)]
    for start, end in runs:  # only differences within a document count
        a, b = (t[..., start:end] - t[..., start : start + 1] for t in (got, whole))
        assert torch.allclose(a, b, atol=1e-12)


def test_sums_restart():
    steps = torch.arange(1.0, 7).view(1, 1, 6)
    got = restarted(steps, torch.tensor([[5, 5, 7, 7, 5, 5]]), None)
    assert got.flatten().tolist() == [1, 3, 3, 7, 5, 11]
    assert restarted(steps, None, torch.tensor([[[10.0]]])).flatten().tolist() == [11, 13, 16, 20, 25, 31]


@pytest.mark.parametrize(
    "text", ["cope(3)", "forgetting(6, num_heads=2)", "selective_rotary(6, head_dim=3, num_heads=2)"]
)
def test_content_needs_causal_attention(text):
    with pytest.raises(SpecError, match=r"causal|even"):
        Attention(6, 2, text, causal=False)


def test_wrong_widths():
    with pytest.raises(ShapeError, match=r"tokens are \(batch, tokens, 6\)"):
        ForgettingPositions(6, num_heads=3)(torch.zeros(1, 5, 7), Positions(torch.arange(5)))
    module = SelectivePositions(6, head_dim=4, num_heads=3)
    ready = module.applied.prepare(module(torch.zeros(1, 5, 6), Positions(torch.arange(5)))[0])
    q = torch.zeros(1, 2, 5, 4)
    with pytest.raises(ShapeError, match="3 heads"):
        module.applied(q, q, ready)
