"""Attention with every encoding: token by token, rows, packs, padding, windows; modules from a model's positions."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest
import torch

from oracles import relative as oracle
from posenc.errors import ShapeError, SpecError
from posenc.nn import Attention, Positions, build, from_model
from posenc.nn.positions import packed, padded, sequence
from posenc.spec import LayerKind, ModelPositions, Rotary, T5Bias, parse

DIM, HEADS, KV, WIDTH, TOKENS = 36, 6, 3, 6, 13
ZOO = {
    "none": "none",
    "rotary": "rotary(6)",
    "alibi": "alibi(6)",
    "alibi matrix": "alibi(6)",
    "t5": "t5_bias(6, num_buckets=8, max_distance=16)",
    "kerple": "kerple(6)",
    "kerple power": "kerple(6, form='power')",
    "fire": "fire(6, threshold=4, hidden=5)",
    "sandwich": "sandwich(6, dim=8)",
    "sinusoidal bias": "sinusoidal_bias(6, sinusoid=sinusoidal(7))",
    "sinusoidal bias matrix": "sinusoidal_bias(6, sinusoid=sinusoidal(8), limit=3)",
    "shaw": "shaw(6, limit=3)",
    "relative sinusoid": "relative_sinusoid(sinusoidal(6), values=True)",
    "relative sinusoid limit": "relative_sinusoid(sinusoidal(6), values=True, limit=3)",
    "transformer xl": "transformer_xl(6, num_heads=6)",
    "transformer xl limit": "transformer_xl(6, num_heads=6, limit=4)",
    "deberta": "disentangled(6, num_heads=6, span=4)",
    "deberta v3": "disentangled(6, num_heads=6, span=6, max_distance=12, norm=True)",
    "cope": "cope(6, positions=5)",
    "forgetting": "forgetting(36, num_heads=3)",
    "cable": "forgetting(36, num_heads=3, form='softplus')",
    "selective": "selective_rotary(36, head_dim=6, num_heads=6, rank=4)",
    "hybrid": "rotary(6) + alibi(6) + forgetting(36, num_heads=3)",
    "several in the score": "kerple(6) + cope(6) + rotary(6)",
    "query scale": "query_scale(0.3, original=4) + rotary(6)",
}


def made(name, dtype=torch.float64, **options):
    module = Attention(
        DIM, HEADS, ZOO[name], kv_heads=HEADS if name == "selective" else KV, channels="matrix" not in name, **options
    )
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, 0.5)
    return module.to(dtype)


def close(a, b, error=1e-11):
    a, b = a.detach(), b.detach()
    assert (a - b).abs().max() <= error * max(1.0, float(b.abs().max()))


@pytest.fixture
def x():
    return torch.randn(2, TOKENS, DIM, dtype=torch.float64)


@pytest.fixture
def _no_grad():
    with torch.no_grad():
        yield


@pytest.mark.usefixtures("_no_grad")
@pytest.mark.parametrize("name", ZOO)
class TestProperties:
    def test_token_by_token_is_one_pass(self, name, x):
        module = made(name)
        whole, _ = module(x)
        for cuts in (range(TOKENS + 1), (0, 4, 5, TOKENS)):
            cache, found = None, []
            for start, end in zip(list(cuts)[:-1], list(cuts)[1:], strict=True):
                y, cache = module(x[:, start:end], cache=cache)
                found.append(y)
            close(torch.cat(found, 1), whole)

    def test_a_row_alone_is_the_row_in_its_batch(self, name, x):
        module = made(name)
        close(module(x[1:])[0][0], module(x)[0][1])

    def test_a_pack_is_its_documents_alone(self, name, x):
        module = made(name)
        at = packed([0, 5, TOKENS])
        whole, _ = module(x[:1], at)
        close(whole[:, :5], module(x[:1, :5])[0])
        close(whole[:, 5:], module(x[:1, 5:])[0])
        cache, found = None, []
        for start, end in ((0, 3), (3, 4), (4, 7), (7, TOKENS)):
            part = Positions(at.ids[..., start:end], None, at.document[:, start:end])
            y, cache = module(x[:1, start:end], part, cache)
            found.append(y)
        close(torch.cat(found, 1), whole)

    def test_a_padded_row_is_the_row_alone(self, name, x):
        module = made(name)
        mask = torch.ones(2, TOKENS, dtype=torch.long)
        mask[0, :4] = 0
        whole, _ = module(x, mask=mask)
        assert whole.isfinite().all()
        close(whole[:1, 4:], module(x[:1, 4:])[0])
        close(whole[1], module(x)[0][1])
        first, cache = module(x[:, :8], mask=mask[:, :8])
        rest, _ = module(x[:, 8:], cache=cache)
        close(torch.cat((first, rest), 1)[mask.bool()], whole[mask.bool()])
        close(module(x, padded(mask), mask=mask)[0], whole)

    def test_a_window_is_a_mask(self, name, x):
        module = made(name, window=4)
        whole, _ = module(x)
        open_one = made_like(module, window=None).double()
        open_one.load_state_dict(module.state_dict())
        close(open_one(x)[0][:, :4], whole[:, :4])
        assert (open_one(x)[0][:, 4:] - whole[:, 4:]).abs().max() > 1e-3
        far = x.clone()
        far[:, 0] += 5.0
        if name not in ("forgetting", "cable", "selective", "hybrid"):  # those read what the window hides, too
            close(module(far)[0][:, 4:], whole[:, 4:])
        cache, found = None, []
        for t in range(TOKENS):
            y, cache = module(x[:, t : t + 1], cache=cache)
            found.append(y)
        close(torch.cat(found, 1), whole)

    def test_casts_copies_and_empty_devices(self, name, x):
        module = made(name, torch.float32)
        x = x.float()
        whole, _ = module(x)
        for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
            assert torch.equal(other(x)[0], whole)
        with torch.device("meta"):
            empty, assigned = made_like(module), made_like(module)
        empty = empty.to_empty(device="cpu")
        empty.load_state_dict(module.state_dict(), strict=True)
        assigned.load_state_dict(module.state_dict(), assign=True)
        for other in (empty, assigned):
            assert torch.equal(other(x)[0], whole)
        half = copy.deepcopy(module).bfloat16()(x.bfloat16())[0]
        assert half.dtype == torch.bfloat16
        assert (half - whole).abs().mean() < 0.02 * whole.abs().mean()
        with torch.autocast("cpu", torch.bfloat16):
            y, _ = module(x)
        assert (y - whole).abs().mean() < 0.02 * whole.abs().mean()


def made_like(module, **changes):
    values = [m.value for part in (module.query_key, module.score, module.content) for m in part]
    options = {"kv_heads": module.kv_heads, "window": module.window, **changes}
    channels = any(hasattr(m, "widens") for m in module.query_key)
    return Attention(DIM, HEADS, values, channels=channels, **options)


@pytest.mark.parametrize("name", ZOO)
def test_gradients_flow_to_everything(name, x):
    module = made(name)
    module(x)[0].square().sum().backward()
    for path, parameter in module.named_parameters():
        silent = path.endswith("key.bias")
        assert silent or (parameter.grad is not None and parameter.grad.abs().sum() > 0), path


@pytest.mark.parametrize("name", ["alibi", "t5", "relative sinusoid", "transformer xl", "cope", "hybrid", "selective"])
def test_compiled_whole_with_two_graphs(name, x):
    module = made(name, torch.float32)
    x = x.float()
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        for tokens in (5, 7, 11, 13):
            part = x[:, :tokens].contiguous()
            close(compiled(part)[0], module(part)[0], 1e-5)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 2


@pytest.mark.parametrize("name", ["alibi", "fire", "transformer xl", "selective"])
def test_vmap_checkpoint_and_export(name, x):
    from torch.utils.checkpoint import checkpoint

    module = made(name)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="There is a performance drop")  # vmap over fused attention
        each = torch.vmap(lambda row: module(row[None])[0][0])(x)
        close(each, module(x)[0])
    again = checkpoint(lambda t: module(t)[0], x.requires_grad_(), use_reentrant=False)
    close(torch.autograd.grad(again.sum(), x)[0], torch.autograd.grad(module(x)[0].sum(), x)[0])
    exported = torch.export.export(
        module, (x.detach(),), dynamic_shapes={"x": {1: torch.export.Dim("tokens", min=2, max=64)}}
    )
    other = torch.randn(2, 7, DIM, dtype=torch.float64)
    close(exported.module()(other)[0], module(other)[0])


class TestPlain:
    def test_equals_a_loop(self, x):
        module = made("rotary", window=5)
        rope = module.query_key[0]
        with torch.no_grad():
            q, k, v = (p(x[:1]).unflatten(-1, (-1, WIDTH)).transpose(1, 2) for p in (module.q, module.k, module.v))
            q, k = rope(q, k, rope.prepare(torch.arange(TOKENS)))
            rows = []
            for i in range(TOKENS):
                heads = []
                for h in range(HEADS):
                    seen = range(max(0, i - 4), i + 1)
                    weights = oracle.softmax([oracle.dot(q[0, h, i], k[0, h // 2, j]) / WIDTH**0.5 for j in seen])
                    heads += [sum(w * v[0, h // 2, j] for w, j in zip(weights, seen, strict=True))]
                rows.append(torch.cat(heads))
            close(module(x[:1])[0][0], module.out(torch.stack(rows)))

    def test_both_directions(self, x):
        module = made("t5", causal=False)
        with torch.no_grad():
            whole = module(x)[0]
            q, k, v = (p(x).unflatten(-1, (-1, WIDTH)).transpose(1, 2) for p in (module.q, module.k, module.v))
            k, v = (t.repeat_interleave(2, 1) for t in (k, v))
            at = torch.arange(TOKENS)
            bias = module.score[0].at(at, at, torch.float64)
            want = (q @ k.mT / WIDTH**0.5 + bias).softmax(-1) @ v
            close(whole, module.out(want.transpose(1, 2).flatten(-2)))

    @pytest.mark.parametrize("name", ["none", "transformer xl", "shaw", "relative sinusoid", "deberta"])
    def test_a_scale_reaches_every_part(self, name, x):
        one, other = made(name), made(name, scale=0.1)
        other.load_state_dict(one.state_dict())
        with torch.no_grad():
            for path, parameter in one.named_parameters():
                if path.startswith(("q.", "score.0.u", "score.0.v", "score.0.query")) and "value_vectors" not in path:
                    parameter.mul_(0.1 * WIDTH**0.5)
            close(one(x)[0], other(x)[0])

    @pytest.mark.parametrize("name", ["alibi", "sinusoidal bias", "forgetting", "kerple"])
    def test_a_bias_keeps_its_size_under_any_scale(self, name, x):
        one, other = made(name), made(name, scale=0.1)
        other.load_state_dict(one.state_dict())
        with torch.no_grad():
            one.q.weight.mul_(0.1 * WIDTH**0.5)
            close(one(x)[0], other(x)[0])

    def test_yarn_with_a_factor_on_the_scale(self, x):
        text = "rotary(6) >> yarn(4, original=32, mscale=1, mscale_all_dim=1, softmax_mscale=1)"
        module = Attention(DIM, HEADS, text)
        assert module.scale == pytest.approx(WIDTH**-0.5 * module.query_key[0].logit_scale)
        assert module.query_key[0].logit_scale > 1.2

    def test_chunks_go_by_position(self, x):
        module = made("none", chunk=5)
        with torch.no_grad():
            whole = module(x)[0]
            for start in (0, 5, 10):
                close(
                    whole[:, start : start + 5],
                    module(x[:, start : start + 5], torch.arange(min(5, TOKENS - start)))[0],
                )

    def test_dropout_only_while_training(self, x):
        for name in ("alibi", "cope"):
            module = made(name, dropout=0.5)
            assert not torch.equal(module(x)[0], module(x)[0])
            module.eval()
            assert torch.equal(module(x)[0], module(x)[0])

    def test_prepared_once_for_several_layers(self, x):
        first, second = made("rotary"), made("rotary")
        at = sequence(TOKENS)
        ready = first.prepare(at)
        with torch.no_grad():
            close(second(x, at, ready=ready)[0], second(x, at)[0])
        with pytest.raises(ShapeError, match="one item for each of 1"):
            second(x, at, ready=())

    def test_m_rope_and_its_cache(self, x):
        module = Attention(DIM, HEADS, "rotary(6, axes=split((1, 1, 1)))").double()
        ids = torch.stack((torch.arange(TOKENS), torch.arange(TOKENS) // 3, torch.arange(TOKENS) % 3)).view(3, 1, 1, -1)
        with torch.no_grad():
            whole = module(x, Positions(ids))[0]
            first, cache = module(x[:, :6], Positions(ids[..., :6]))
            rest, _ = module(x[:, 6:], Positions(ids[..., 6:]), cache)
            close(torch.cat((first, rest), 1), whole)


@pytest.mark.parametrize("name", ["none", "kerple", "shaw", "transformer xl", "cope", "deberta"])
def test_groups_of_queries_share_a_key(name, x):
    grouped, full = made(name), Attention(DIM, HEADS, ZOO[name], channels=True).double()
    state = grouped.state_dict()
    for part in ("k.weight", "v.weight"):
        state[part] = state[part].view(KV, WIDTH, DIM).repeat_interleave(HEADS // KV, 0).reshape(-1, DIM)
    full.load_state_dict(state)
    close(grouped(x)[0], full(x)[0])


@pytest.mark.parametrize("other", ["shaw(6, limit=3)", "cope(6)", "transformer_xl(6, num_heads=6)"])
def test_channels_beside_what_is_in_the_score(other, x):
    one, two = (Attention(DIM, HEADS, f"alibi(6) + {other}", channels=c).double() for c in (True, False))
    assert (len(one.query_key), len(two.query_key)) == (1, 0)
    with torch.no_grad():
        for parameter in one.parameters():
            parameter.normal_(0, 0.5)
    state = one.state_dict()
    two.load_state_dict({n.replace("score.0.", "score.1."): t for n, t in state.items()})
    close(one(x)[0], two(x)[0])


class TestErrors:
    def test_what_cannot_be_made(self):
        with pytest.raises(SpecError, match="queries, keys, scores and content"):
            Attention(DIM, 6, "sinusoidal(36)")
        with pytest.raises(SpecError, match="queries, keys, scores and content"):
            Attention(DIM, 6, torch.nn.Linear(2, 2))
        with pytest.raises(SpecError, match="no module computes"):
            Attention(DIM, 6, ["unmodelled('self-extend')"])
        with pytest.raises(SpecError, match="divides dim"):
            Attention(DIM, 5)
        with pytest.raises(SpecError, match="multiple of kv_heads"):
            Attention(DIM, 6, kv_heads=4)
        with pytest.raises(SpecError, match="window is at least 1"):
            Attention(DIM, 6, window=0)

    def test_wrong_calls(self, x):
        module = made("none")
        with pytest.raises(ShapeError, match=r"tokens are \(batch, tokens, 36\)"):
            module(x[..., :5])
        with pytest.raises(ShapeError, match="each of the 13 tokens"):
            module(x, torch.arange(5))
        with pytest.raises(ShapeError, match="a mask is"):
            module(x, mask=torch.ones(2, 5, dtype=torch.long))
        _, cache = module(x)
        with pytest.raises(ShapeError, match="from the first call on"):
            module(x, Positions(torch.arange(13), None, torch.zeros(1, 13, dtype=torch.long)), cache)
        with pytest.raises(SpecError, match="a cache needs causal"):
            made("none", causal=False)(x, cache=cache)

    def test_its_text_says_what_it_does(self):
        text = repr(made("hybrid", window=7))
        assert "36, 6 heads of 6, 3 of keys and values, causal, window 7" in text
        assert "alibi(6), as channels" in text


class TestModels:
    def test_layers_of_a_kind_share_and_kinds_with_equal_encodings_too(self):
        rope = Rotary(8)
        kinds = (
            LayerKind(name="local", encodings=(rope,), window=4),
            LayerKind(name="all", encodings=(rope,)),
            LayerKind(name="nope"),
        )
        model = from_model(ModelPositions(kinds=kinds, layers=(0, 0, 1, 2, 0)))
        assert [k.name for k in model] == ["local", "local", "all", "nope", "local"]
        assert model[0] is model[4]
        assert model[0].encodings[0] is model[2].encodings[0]
        assert (model[0].window, model[2].window, len(model[3].encodings)) == (4, None, 0)
        ready = model.prepare(torch.arange(5))
        assert ready[0] is ready[1]
        assert ready[3] == ()
        assert "no position" in repr(model)

    def test_trained_encodings_are_shared_or_each_layers_own(self):
        value = ModelPositions.uniform(T5Bias(2), layers=3)
        assert sum(p.numel() for p in from_model(value).parameters()) == 64
        each = from_model(value, each_layer=True)
        assert sum(p.numel() for p in each.parameters()) == 192
        assert each[0] is not each[1]

    def test_attention_runs_with_them(self, x):
        value = ModelPositions(
            input=parse("sinusoidal(36)"),
            kinds=(
                LayerKind(name="a", encodings=parse("rotary(6)")),
                LayerKind(name="b", encodings=parse("kerple(6)")),
            ),
            layers=(0, 1, 0),
        )
        model = from_model(value)
        layers = [Attention(DIM, HEADS, model[n].encodings, window=model[n].window).double() for n in range(3)]
        h = model.input[0](x)
        for layer, ready in zip(layers, model.prepare(torch.arange(TOKENS)), strict=True):
            h = h + layer(h, torch.arange(TOKENS), ready=ready)[0]
        assert h.isfinite().all()

    def test_what_is_not_modelled_is_refused(self):
        with pytest.raises(SpecError, match="no module computes"):
            from_model(ModelPositions.uniform(*parse("unmodelled('dual chunk attention')"), layers=2))
        with pytest.raises(SpecError, match="number of layers"):
            from_model(ModelPositions(kinds=(LayerKind(name="a"), LayerKind(name="b"))))

    def test_build_gives_each_kind_its_module(self):
        for text in {t for line in ZOO.values() for t in line.split(" + ")} - {"none"}:
            assert build(text).value == parse(text)[0]
