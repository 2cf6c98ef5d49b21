"""Everything that enters in the score, against the formulas, against transformers, by gradient, by part."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

from oracles import relative as oracle
from posenc import formulas
from posenc.errors import ShapeError, SpecError
from posenc.nn import Positions, build
from posenc.nn.biases import AlibiBias, T5RelativeBias, t5_edges
from posenc.nn.disentangled import DisentangledScores
from posenc.nn.fire import FireBias
from posenc.nn.shards import shard, unsharded
from posenc.spec import parse

QUERIES, KEYS = torch.arange(6, 11), torch.arange(11)
DISTANCE = (QUERIES[:, None] - KEYS).numpy()
BIASES = (
    "alibi(3)",
    "alibi(5, symmetric=True, max_bias=4)",
    "t5_bias(3, num_buckets=8, max_distance=9)",
    "t5_bias(3, num_buckets=6, max_distance=9, bidirectional=False)",
    "kerple(3)",
    "kerple(3, form='power')",
    "fire(3, hidden=7, threshold=4)",
    "sandwich(3, dim=10)",
    "sinusoidal_bias(3, sinusoid=sinusoidal(7))",
    "sinusoidal_bias(3, sinusoid=sinusoidal(8, order='cos|sin'), limit=4)",
)
VECTORS = (
    "shaw(4, limit=3)",
    "shaw(4, limit=3, keys=False)",
    "relative_sinusoid(sinusoidal(4), values=True)",
    "relative_sinusoid(sinusoidal(4), values=True, limit=3)",
    "transformer_xl(4, num_heads=3, sinusoid=sinusoidal(10, order='sin|cos'))",
    "transformer_xl(4, num_heads=3, limit=5)",
    "disentangled(4, num_heads=3, span=4, dim=7)",
    "disentangled(4, num_heads=3, span=4, as_printed=True)",
    "disentangled(4, num_heads=3, span=6, max_distance=9, norm=True)",
)


def trained(text, spread=0.5, dtype=torch.float64, **options):
    """A module with asymmetric parameters of ordinary size."""
    module = build(text, **options).to(dtype)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, dtype=dtype) * spread)
    return module


def truth(module, distance=DISTANCE):
    """The bias by the float64 formulas."""
    e, p = module.value, {n: t.detach().double().numpy() for n, t in module.named_parameters()}
    match e.kind:
        case "alibi":
            return formulas.alibi_at(e, -distance)
        case "t5_bias":
            return formulas.t5_at(e, p["weight"], -distance)
        case "kerple":
            return formulas.kerple_at(e, p["r1"], p["r2"], distance)
        case "sandwich":
            return formulas.sandwich_at(e, distance)
        case "sinusoidal_bias":
            return formulas.sinusoidal_bias_at(e, p["weight"], distance)
    layers = {"w1": p["inner.weight"][:, 0], "b1": p["inner.bias"], "w2": p["outer.weight"], "b2": p["outer.bias"]}
    own = {"c": p["c"].item(), "multiplier": p["multiplier"].item()}
    return formulas.fire_at(e, QUERIES.numpy()[:, None], KEYS.numpy(), **layers, **own)


class TestBiases:
    @pytest.mark.parametrize("text", BIASES)
    @pytest.mark.parametrize(("dtype", "error"), [(torch.float64, 1e-12), (torch.float32, 2e-5)])
    def test_equals_its_formula(self, text, dtype, error):
        module = trained(text, dtype=dtype)
        got = module.at(QUERIES, KEYS, dtype)[0].detach().double().numpy()
        assert got == pytest.approx(truth(module), abs=error)

    @pytest.mark.parametrize("text", BIASES)
    def test_forward_adds_it_and_keeps_the_dtype(self, text):
        module = trained(text, dtype=torch.float32)
        heads = module.num_heads
        scores, q, k = (
            torch.randn(2, heads, 5, 11).bfloat16(),
            torch.randn(2, heads, 5, 4),
            torch.randn(2, heads, 11, 4),
        )
        scores[:, :, :, -1] = -torch.inf
        got = module(scores, q.bfloat16(), k.bfloat16(), QUERIES, KEYS)
        want = (scores.float() + module.at(QUERIES, KEYS)).bfloat16()
        assert got.dtype == torch.bfloat16
        assert torch.equal(got, want)

    @pytest.mark.parametrize("text", BIASES)
    def test_gradients(self, text):
        module = trained(text)
        if not list(module.parameters()):
            pytest.skip("nothing is trained")
        names = [n for n, _ in module.named_parameters()]

        def bias(*values):
            return torch.func.functional_call(module, dict(zip(names, values, strict=True)), (zero, q, q, at, at))

        at, q = torch.tensor([0, 1, 3, 7]), torch.randn(1, 3, 4, 2, dtype=torch.float64)
        zero = torch.zeros(1, 3, 4, 4, dtype=torch.float64)
        values = [p.detach().clone().abs().add(0.1).requires_grad_() for p in module.parameters()]
        assert torch.autograd.gradcheck(bias, values)

    @pytest.mark.parametrize("text", BIASES)
    def test_rows_have_their_own_positions(self, text):
        module = trained(text)
        at = torch.stack((torch.arange(7), torch.arange(7) * 3 + 2))
        got = module.at(at, at, torch.float64)
        assert got.shape[0] == 2
        for row in range(2):
            assert torch.allclose(got[row], module.at(at[row], at[row], torch.float64)[0], atol=1e-13)

    @pytest.mark.parametrize("text", BIASES)
    def test_parts_of_heads_and_of_the_sequence_make_the_whole(self, text):
        torch.manual_seed(5)
        whole = trained(text)
        heads, state = whole.value.num_heads, whole.state_dict()
        at = Positions(torch.arange(12)[None, None])
        rows = []
        for rank in range(3):
            here = shard(at, rank, 3, "contiguous")
            parts = []
            for first in range(heads):
                part = build(text, heads=(first, first + 1)).double()
                mine = {}
                for name, tensor in state.items():
                    by_head = name in ("weight", "r1", "r2", "outer.weight", "outer.bias")
                    axis = 1 if whole.value.kind == "t5_bias" else 0
                    mine[name] = tensor.narrow(axis, first, 1) if by_head else tensor
                part.load_state_dict(mine)
                parts.append(part.at(here, at, torch.float64))
            rows.append(torch.cat(parts, 1))
        order = unsharded(12, 3, "contiguous")
        assert torch.allclose(torch.cat(rows, 2)[:, :, order], whole.at(at, at, torch.float64), atol=1e-13)

    def test_zigzag_parts_of_alibi_and_t5(self):
        at = Positions(torch.arange(12)[None, None])
        for module in (AlibiBias(3), trained("t5_bias(3)", dtype=torch.float32)):
            rows = [module.at(shard(at, rank, 2, "zigzag"), at) for rank in range(2)]
            assert torch.equal(torch.cat(rows, 2)[:, :, unsharded(12, 2, "zigzag")], module.at(at, at))

    def test_a_packed_row_is_its_documents(self):
        bias = trained("kerple(3)")
        ids = torch.tensor([0, 1, 2, 0, 1, 2, 3])
        got = bias.at(ids, ids, torch.float64)
        assert torch.equal(got[..., 3:, 3:], bias.at(torch.arange(4), torch.arange(4), torch.float64))

    def test_large_and_real_positions(self):
        far = torch.tensor([10**9, 10**9 + 3])
        assert AlibiBias(3).at(far, far)[0, 0].tolist() == [[0.0, 0.1875], [-0.1875, 0.0]]
        got = trained("sinusoidal_bias(1, sinusoid=sinusoidal(6))").at(far, far, torch.float64)
        near = torch.tensor([0, 3])
        torch.manual_seed(0)
        same = build("sinusoidal_bias(1, sinusoid=sinusoidal(6))")
        assert got[0, 0, 0, 0] == got[0, 0, 1, 1]
        assert torch.allclose(same.at(far, far), same.at(near, near), atol=1e-7)
        assert AlibiBias(3).at(torch.tensor([2.5]), torch.tensor([1.0]))[0, 0].item() == pytest.approx(-0.09375)
        with pytest.raises(ShapeError, match="whole positions"):
            T5RelativeBias(3).at(torch.tensor([2.5]), torch.tensor([1.0]))

    def test_edges_of_buckets_for_a_very_large_distance(self):
        value = parse("t5_bias(1, num_buckets=64, max_distance=1099511627776)")[0]
        edges = t5_edges(value)
        found = formulas.t5_buckets(-np.concatenate([edges - 1, edges]), 64, value.max_distance)
        assert found.tolist() == [*range(31), *range(1, 32)]


class TestFire:
    def test_pieces_equal_the_plain_network(self):
        fire = trained("fire(3, hidden=9)", spread=2.0)
        with torch.no_grad():
            fire.inner.weight[:3] = torch.tensor([[0.0], [-1.0], [1.0]])  # never, always, from 0 on
            fire.inner.bias[:3] = torch.tensor([1.0, 5.0, 0.0])
        q, k = torch.arange(40)[:, None], torch.arange(40)
        x = fire.read(q, k, torch.float64)
        want = fire.outer(fire.inner(x.unsqueeze(-1)).relu()).movedim(-1, 0)
        got = fire.at(torch.arange(40), torch.arange(40), torch.float64)[0]
        assert torch.allclose(got, want, atol=1e-12)
        ours = torch.autograd.grad(got.cos().sum(), list(fire.parameters()))
        plain = torch.autograd.grad(want.cos().sum(), list(fire.parameters()))
        assert all(torch.allclose(a, b, atol=1e-9) for a, b in zip(ours, plain, strict=True))


class TestVectors:
    @pytest.mark.parametrize("text", VECTORS)
    def test_equals_a_loop(self, text):
        module = trained(text)
        q, k = torch.randn(1, 3, 5, 4, dtype=torch.float64), torch.randn(1, 3, 11, 4, dtype=torch.float64)
        got = (q @ k.mT * 0.5 * module.logit_scale + module.bias(q, k, QUERIES, KEYS))[0].detach().numpy()
        e, p = module.value, {n: t.detach().numpy() for n, t in module.named_parameters()}
        query, key = q[0].numpy(), k[0].numpy()
        if e.kind == "transformer_xl":
            kept = {"u": p["u"], "v": p["v"], "weight": p["projection.weight"]}
            want = formulas.transformer_xl_scores(e, query, key, DISTANCE, **kept)
        elif e.kind == "disentangled":
            table = module.normalised(module.table).detach().numpy()
            bias = p["query.bias"].reshape(3, 4)
            kept = {"table": table, "key": p["key.weight"], "query": p["query.weight"]}
            want = formulas.disentangled_scores(e, query, key, DISTANCE, **kept)
            want = want + np.einsum("hjd,hd->hj", key, bias)[:, None] / math.sqrt(3 * 4)
        else:
            rows = {}
            for d in range(-11, 12):
                if e.kind == "shaw":
                    rows[d] = p["key_vectors"][formulas.shaw_rows(e, d)] if e.keys else np.zeros(4)
                else:
                    rows[d] = oracle.row(d if e.limit is None else oracle.clip(d, e.limit), 4)
            want = [
                [
                    [oracle.dot(query[h, i], key[h, j] + np.array(rows[i + 6 - j])) / 2 for j in range(11)]
                    for i in range(5)
                ]
                for h in range(3)
            ]
        assert got == pytest.approx(np.array(want), abs=1e-11)

    @pytest.mark.parametrize("text", [t for t in VECTORS if "values=True" in t or "shaw" in t])
    def test_values_equal_a_loop(self, text):
        module = trained(text)
        weights = torch.rand(2, 3, 5, 11, dtype=torch.float64)
        got = module.values(weights, QUERIES, KEYS).detach()
        e = module.value
        for h in range(3):
            for i in range(5):
                want = torch.zeros(4, dtype=torch.float64)
                for j in range(11):
                    d = i + 6 - j
                    if e.kind == "shaw":
                        r = module.value_vectors[int(formulas.shaw_rows(e, d))].detach()
                    else:
                        r = torch.tensor(oracle.row(d if e.limit is None else oracle.clip(d, e.limit), 4)).double()
                    want += weights[1, h, i, j] * r
                assert torch.allclose(got[1, h, i], want, atol=1e-12)

    @pytest.mark.parametrize("text", VECTORS)
    def test_gradients(self, text):
        module = trained(text)
        names = [n for n, p in module.named_parameters()]
        at = torch.tensor([0, 1, 3, 7])
        mask = torch.ones(4, 4).tril() > 0

        def run(q, k, *values):
            with torch.nn.utils.parametrize.cached():
                state = dict(zip(names, values, strict=True))
            return torch.func.functional_call(
                Whole(module, at, mask), {f"inner.{n}": v for n, v in state.items()}, (q, k)
            )

        inputs = [torch.randn(1, 3, 4, 4, dtype=torch.float64, requires_grad=True) for _ in range(2)]
        values = [p.detach().clone().requires_grad_() for p in module.parameters()]
        assert torch.autograd.gradcheck(run, (*inputs, *values))

    def test_real_positions_without_a_limit(self):
        module = build("relative_sinusoid(sinusoidal(4))")
        q = torch.randn(1, 1, 1, 4, dtype=torch.float64)
        got = module.bias(q, q, torch.tensor([2.75]), torch.tensor([0.5])).item()
        assert got == pytest.approx(oracle.dot(q[0, 0, 0], oracle.row(2.25, 4)) / 2)
        with pytest.raises(ShapeError, match="whole positions"):
            build("shaw(4)").bias(q, q, torch.tensor([2.75]), torch.tensor([0.5]))

    def test_wrong_widths_and_heads(self):
        q = torch.randn(1, 3, 5, 4)
        with pytest.raises(ShapeError, match=r"q and k are \(batch, heads, tokens, 6\)"):
            build("shaw(6)").bias(q, q, KEYS[:5], KEYS[:5])
        with pytest.raises(ShapeError, match="2 heads"):
            build("transformer_xl(4, num_heads=2)").bias(q, q, KEYS[:5], KEYS[:5])
        with pytest.raises(ShapeError, match="scores are"):
            build("alibi(5)")(torch.zeros(1, 3, 5, 5), q, q, KEYS[:5], KEYS[:5])


class Whole(torch.nn.Module):
    """Scores and values of an encoding as one function."""

    def __init__(self, inner, at, mask):
        super().__init__()
        self.inner, self.at, self.mask = inner, at, mask

    def forward(self, q, k):
        scores = self.inner(q @ k.mT, q, k, self.at, self.at).masked_fill(~self.mask, -torch.inf)
        weights = scores.softmax(-1)
        more = self.inner.values(weights, self.at, self.at) if self.inner.in_values else 0.0
        return weights @ k + more


class TestScoreMod:
    @pytest.mark.parametrize("text", [*BIASES, *VECTORS])
    @pytest.mark.parametrize("placed", [False, True])
    def test_flex_attention_equals_the_dense_form(self, text, placed):
        module = trained(text, dtype=torch.float32)
        if module.in_values or ("limit" not in text and text.startswith(("relative", "transformer"))):
            with pytest.raises(SpecError, match=r"values|limit"):
                module.score_mod(q=torch.zeros(1, 3, 5, 4), k=torch.zeros(1, 3, 5, 4))
            return
        heads = getattr(module, "num_heads", 3)
        q, k, v = (torch.randn(2, heads, 7, 4) for _ in range(3))
        at = torch.stack((torch.arange(7), torch.arange(7) * 2 + 3)) if placed else torch.arange(7)
        if not placed and text.startswith(("sandwich", "sinusoidal")) and "limit" not in text:
            with pytest.raises(ShapeError, match="needs the positions"):
                module.score_mod()
            return
        scale = module.logit_scale / 2
        where = (at, at) if placed else ()
        with torch.no_grad():
            mod = module.score_mod(*where, q=q, k=k)
            got = flex(q, k, v, mod, scale)
            want = module(q @ k.mT * scale, q, k, at, at).softmax(-1) @ v
        assert torch.allclose(got, want, atol=2e-5)


def flex(q, k, v, mod, scale):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it is slow when not compiled
        return flex_attention(q, k, v, score_mod=mod, scale=scale)


class TestTransformers:
    def test_t5(self):
        from transformers import T5Config
        from transformers.models.t5.modeling_t5 import T5Attention

        for decoder in (False, True):
            config = T5Config(num_heads=3, d_model=12, d_kv=4, is_decoder=decoder, relative_attention_num_buckets=16)
            theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
            ours = build(f"t5_bias(3, num_buckets=16, bidirectional={not decoder})")
            ours.weight.data.copy_(theirs.relative_attention_bias.weight)
            want = theirs.compute_bias(300, 300)
            assert torch.equal(ours.at(torch.arange(300), torch.arange(300)), want)

    @pytest.mark.parametrize("heads", [8, 12])
    def test_bloom(self, heads):
        from transformers.models.bloom.modeling_bloom import build_alibi_tensor

        theirs = build_alibi_tensor(torch.ones(1, 9, dtype=torch.long), heads, torch.float32)  # slope * key position
        ours = AlibiBias(heads).at(torch.arange(9), torch.arange(9))[0]
        shifted = ours - ours[:, :, :1]
        assert torch.allclose(shifted, theirs.expand(-1, 9, -1), atol=1e-5)

    @pytest.mark.parametrize("heads", [4, 12])
    def test_mpt(self, heads):
        from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

        theirs = build_mpt_alibi_tensor(heads, 9)  # of the last query
        ours = AlibiBias(heads).at(torch.tensor([8]), torch.arange(9))[0]
        assert torch.allclose(ours, theirs, atol=1e-6)

    @pytest.mark.parametrize("terms", [["c2p", "p2c"], ["c2p"], ["p2c"]])
    @pytest.mark.parametrize("shared", [False, True])
    def test_deberta_v2(self, terms, shared):
        from transformers import DebertaV2Config
        from transformers.models.deberta_v2.modeling_deberta_v2 import DisentangledSelfAttention

        config = DebertaV2Config(
            hidden_size=12,
            num_attention_heads=3,
            relative_attention=True,
            pos_att_type=terms,
            share_att_key=shared,
            position_buckets=6,
            max_relative_positions=20,
            attention_probs_dropout_prob=0.0,
            hidden_dropout_prob=0.0,
        )
        theirs = DisentangledSelfAttention(config).eval()
        for parameter in theirs.parameters():
            parameter.data.normal_(0, 0.7)
        options = {"projections": (theirs.query_proj, theirs.key_proj)} if shared else {}
        text = f"disentangled(4, num_heads=3, span=6, max_distance=20, content_to_position={'c2p' in terms},"
        ours = build(f"{text} position_to_content={'p2c' in terms})", **options)
        ours.table.data.normal_(0, 0.7)
        if not shared and "c2p" in terms:
            ours.key.weight.data.copy_(theirs.pos_key_proj.weight)
            theirs.pos_key_proj.bias.data.zero_()
        if not shared and "p2c" in terms:
            ours.query.load_state_dict(theirs.pos_query_proj.state_dict())
        x, mask = torch.randn(2, 31, 12), torch.ones(2, 1, 31, 31, dtype=torch.bool)
        with torch.no_grad():
            want, weights = theirs(x, mask, output_attentions=True, rel_embeddings=ours.table)
            q, k, v = (
                p(x).unflatten(-1, (3, 4)).transpose(1, 2)
                for p in (theirs.query_proj, theirs.key_proj, theirs.value_proj)
            )
            at = torch.arange(31)
            got = ours(q @ k.mT * 0.5 * ours.logit_scale, q, k, at, at).softmax(-1)
        assert torch.allclose(got.reshape(weights.shape), weights, atol=1e-5)
        assert torch.allclose((got @ v).transpose(1, 2).flatten(-2), want, atol=1e-4)

    def test_deberta(self):
        from transformers import DebertaConfig
        from transformers.models.deberta.modeling_deberta import DisentangledSelfAttention

        config = DebertaConfig(
            hidden_size=12,
            num_attention_heads=3,
            relative_attention=True,
            pos_att_type=["c2p", "p2c"],
            max_relative_positions=8,
            attention_probs_dropout_prob=0.0,
            hidden_dropout_prob=0.0,
        )
        theirs = DisentangledSelfAttention(config).eval()
        for parameter in theirs.parameters():
            parameter.data.normal_(0, 0.7)
        ours = build("disentangled(4, num_heads=3, span=8)")
        ours.table.data.normal_(0, 0.7)
        ours.key.weight.data.copy_(theirs.pos_proj.weight)
        ours.query.load_state_dict(theirs.pos_q_proj.state_dict())
        x, mask = torch.randn(2, 13, 12), torch.ones(2, 1, 13, 13, dtype=torch.bool)
        with torch.no_grad():
            step = (torch.arange(13)[:, None] - torch.arange(13))[None]
            _, weights = theirs(x, mask, output_attentions=True, relative_pos=step, rel_embeddings=ours.table)
            rows = theirs.in_proj.weight.view(3, 3, 4, 12)  # heads, then queries, keys and values
            q, k = (torch.einsum("btd,hcd->bhtc", x, rows[:, n]) for n in range(2))
            q = q + theirs.q_bias.view(3, 1, 4)
            at = torch.arange(13)
            got = ours(q @ k.mT * 0.5 * ours.logit_scale, q, k, at, at).softmax(-1)
        assert torch.allclose(got.reshape(weights.shape), weights, atol=1e-5)

    def test_xlnet_as_a_transformer_xl(self):
        from transformers import XLNetConfig, XLNetModel

        config = XLNetConfig(d_model=12, n_head=3, n_layer=1, d_inner=8, vocab_size=11, dropout=0.0)
        model = XLNetModel(config).eval()
        attention = model.layer[0].rel_attn
        for parameter in attention.parameters():
            parameter.data.normal_(0, 0.5)
        ours = build("transformer_xl(4, num_heads=3)")
        ours.u.data.copy_(attention.r_w_bias)
        ours.v.data.copy_(attention.r_r_bias)
        ours.projection.weight.data.copy_(attention.r.reshape(12, 12).T)
        r = model.relative_positional_encoding(7, 7, bsz=2)
        q, k, v = (torch.randn(7, 2, 3, 4) for _ in range(3))
        with torch.no_grad():
            k_head_r = torch.einsum("ibh,hnd->ibnd", r, attention.r)
            want = attention.rel_attn_core(q, k, v, k_head_r)
            own_q, own_k, own_v = (t.permute(1, 2, 0, 3) for t in (q, k, v))
            at = torch.arange(7)
            got = ours(own_q @ own_k.mT / 2, own_q, own_k, at, at).softmax(-1) @ own_v
        assert torch.allclose(got.permute(2, 0, 1, 3), want, atol=1e-5)


@pytest.mark.parametrize("text", [*BIASES, *VECTORS])
def test_nothing_derived_is_saved_or_cast(text):
    module = trained(text, dtype=torch.float32)
    assert set(module.state_dict()) == {n for n, _ in module.named_parameters()}
    assert not list(module.buffers())
    numbers = module.numbers(torch.device("cpu"))
    assert all(t.dtype in (torch.float64, torch.int64) for t in module.bfloat16().numbers(torch.device("cpu")).values())
    again = copy.deepcopy(module).numbers(torch.device("cpu"))
    assert all(torch.equal(numbers[name], again[name]) for name in numbers)
    assert repr(module).count(module.value.kind) == 1


def test_values_by_notation_by_field_and_by_mistake():
    assert AlibiBias(3).value == AlibiBias("alibi(3)").value == AlibiBias(num_heads=3).value
    with pytest.raises(SpecError, match="computes a Alibi"):
        AlibiBias("kerple(3)")
    with pytest.raises(SpecError, match="or as its fields"):
        FireBias(parse("fire(3)")[0], hidden=3)
    with pytest.raises(SpecError, match="part of the 3"):
        AlibiBias(3, heads=(2, 4))
    with pytest.raises(SpecError, match="at least one term"):
        DisentangledScores(4, num_heads=2, content_to_position=False, position_to_content=False)
