"""The terms of a first layer against transformers' own queries and keys, on tiny models of random weights."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

from oracles import first_scores
from posenc.analysis import additive, bands
from posenc.analysis.decomposition import decompose
from posenc.analysis.expansion import score_orders
from posenc.errors import PosencError, ShapeError, SubjectError
from posenc.formats.weights import AdditiveLayer, Projections, RotaryLayer, first_layer
from posenc.formulas.spectrum import Frequencies
from posenc.records.decomposition import AttentionDecomposition
from posenc.spec import Rotary

IDS = [5, 17, 3, 41, 5, 29, 11]
TINY = {"vocab_size": 43, "num_hidden_layers": 1, "initializer_range": 0.3}
BERT_SIZES = {"hidden_size": 30, "num_attention_heads": 5, "intermediate_size": 13, "max_position_embeddings": 23}
LLAMA_SIZES = {
    "hidden_size": 42, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 14, "intermediate_size": 11,
    "max_position_embeddings": 64, "rope_theta": 700.0, "rms_norm_eps": 1e-3,
}  # fmt: skip
ADDITIVE = {
    "bert": (transformers.BertConfig, BERT_SIZES | {"layer_norm_eps": 1e-3}),
    "roberta": (transformers.RobertaConfig, BERT_SIZES | {"layer_norm_eps": 1e-3, "pad_token_id": 1}),
    "distilbert": (
        transformers.DistilBertConfig,
        {"dim": 30, "n_heads": 5, "n_layers": 1, "hidden_dim": 13, "max_position_embeddings": 23},
    ),
    "gpt2": (transformers.GPT2Config, {"n_embd": 30, "n_head": 5, "n_layer": 1, "n_positions": 23}),
}
ROTARY = {
    "llama": (transformers.LlamaConfig, LLAMA_SIZES | {"attention_bias": True}),
    "qwen2": (transformers.Qwen2Config, LLAMA_SIZES),
    "qwen3": (transformers.Qwen3Config, LLAMA_SIZES),
}


def saved(config_class, sizes, folder):
    """A random model whose every parameter, biases and norms too, differs from its default; saved and in float64."""
    torch.manual_seed(7)
    config = config_class(**(TINY | sizes))
    model = transformers.AutoModel.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    return model.double()


def oracle(model, name):
    if name in ROTARY:
        model = first_scores.in_float64(model, LLAMA_SIZES["rope_theta"])
    return first_scores.scores(model, input_ids=torch.tensor([IDS]))


@pytest.mark.parametrize("name", ADDITIVE)
def test_four_terms_and_sixteen_parts_add_up_to_the_models_scores(name, tmp_path):
    want = oracle(saved(*ADDITIVE[name], tmp_path), name)
    layer = first_layer(tmp_path, IDS).layer
    query, key = additive.projected_parts(layer)
    scale = 6**-0.5
    got = sum(scale * query[q] @ key[k].swapaxes(1, 2) for q in query for k in key)
    four = {}
    for q in query:
        for k in key:
            name_of = additive.term_of(q, k)
            four[name_of] = four.get(name_of, 0) + scale * query[q] @ key[k].swapaxes(1, 2)
    assert sorted(four) == sorted(additive.TERMS)
    assert np.abs(got - want).max() < 1e-12
    assert np.abs(sum(four.values()) - want).max() < 1e-12
    assert np.abs(want).max() > 0.5
    assert all(np.abs(term).max() > 1e-2 for term in four.values())
    record = decompose(tmp_path, IDS)
    assert record.mechanism == "additive"
    assert record.sum_error < 1e-12
    assert record.cancel_error < 1e-14
    assert record.causal == (name == "gpt2")
    assert record.token_ids == tuple(IDS)


@pytest.mark.parametrize("name", ROTARY)
@pytest.mark.parametrize("edges", [None, (7.0, 30.0, 31.0)])
def test_bands_add_up_to_the_models_scores(name, edges, tmp_path):
    want = oracle(saved(*ROTARY[name], tmp_path), name)
    record = decompose(tmp_path, IDS, edges=edges)
    layer = first_layer(tmp_path, IDS).layer
    split = bands.turned(layer)
    for head, scores in enumerate(want):
        assert np.abs(split.bands(head, record.terms).sum(0) - scores).max() < 1e-12
    assert np.abs(bands.whole_scores(layer) - want).max() < 1e-12
    assert sorted(i for term in record.terms for i in term.pairs) == list(range(7))
    assert record.sum_error < 1e-12
    assert record.causal
    assert [head.key_head for head in record.heads] == [0, 0, 0, 1, 1, 1]


def shares_by_loops(term, scores, causal):
    """Share and explained part from sums over allowed keys, one number at a time."""
    top = bottom = left = 0.0
    for m, row in enumerate(scores):
        keys = range(m + 1) if causal else range(len(row))
        mean_s, mean_t = sum(row[n] for n in keys) / len(keys), sum(term[m][n] for n in keys) / len(keys)
        for n in keys:
            s, t = row[n] - mean_s, term[m][n] - mean_t
            top, bottom, left = top + s * t, bottom + s * s, left + (s - t) ** 2
    return top / bottom, 1 - left / bottom


def pair_by_loops(query, key, theta, a, b, scale):
    """One pair's part of the scores by the angle of the difference (Su et al. 2021, equation 16)."""
    tokens = len(query)
    made = np.zeros((tokens, tokens))
    for m in range(tokens):
        for n in range(tokens):
            same = query[m, a] * key[n, a] + query[m, b] * key[n, b]
            cross = query[m, b] * key[n, a] - query[m, a] * key[n, b]
            made[m, n] = scale * (same * np.cos((m - n) * theta) - cross * np.sin((m - n) * theta))
    return made


def test_shares_of_bands_and_pairs_by_loops(tmp_path):
    model = saved(*ROTARY["llama"], tmp_path)
    want = oracle(model, "llama")
    layer, record = first_layer(tmp_path, IDS).layer, decompose(tmp_path, IDS)
    query, key = bands.queries_and_keys(layer)
    theta = [700.0 ** -(2 * i / 14) for i in range(7)]
    assert [term.pairs for term in record.terms] == [(0, 1, 2), (3, 4), (5, 6)]
    assert record.terms[1].wavelengths == pytest.approx((2 * np.pi / theta[3], 2 * np.pi / theta[4]), rel=1e-13)
    for head in (0, 5):
        made = [pair_by_loops(query[head], key[head // 3], theta[i], i, i + 7, 14**-0.5) for i in range(7)]
        assert np.abs(sum(made) - want[head]).max() < 1e-12
        shares = [shares_by_loops(pair, want[head], causal=True)[0] for pair in made]
        assert record.heads[head].pair_shares == pytest.approx(shares, abs=1e-12)
        for term, seen in zip(record.terms, record.heads[head].terms, strict=True):
            share, explained = shares_by_loops(sum(made[i] for i in term.pairs), want[head], causal=True)
            assert (seen.share, seen.explained) == pytest.approx((share, explained), abs=1e-12)
        mean_q, mean_k = (np.repeat(x.mean(0)[None], 7, 0) for x in (query[head], key[head // 3]))
        average = sum(pair_by_loops(mean_q, mean_k, theta[i], i, i + 7, 14**-0.5) for i in range(7))
        assert record.heads[head].positional == pytest.approx(shares_by_loops(average, want[head], True)[1], abs=1e-12)
        assert sum(t.share for t in record.heads[head].terms) == pytest.approx(1, abs=1e-12)


def toy(**changes):
    """An additive layer of arrays: 5 heads of 3 channels, width 11, 7 tokens, 13 positions."""
    rng = np.random.default_rng(3)
    projections = Projections(
        query=rng.standard_normal((5, 3, 11)),
        key=rng.standard_normal((5, 3, 11)),
        query_bias=rng.standard_normal((5, 3)),
        key_bias=rng.standard_normal((5, 3)),
    )
    made = AdditiveLayer(
        words=rng.standard_normal((7, 11)),
        positions=rng.standard_normal((13, 11)),
        projections=projections,
        types=rng.standard_normal(11),
        norm_weight=rng.standard_normal(11),
        norm_bias=rng.standard_normal(11),
        eps=1e-2,
    )
    return replace(made, **changes)


@pytest.mark.parametrize("causal", [False, True])
def test_shares_of_the_four_terms_by_loops(causal):
    layer = toy()
    layer = replace(layer, projections=replace(layer.projections, causal=causal))
    record = decompose(layer)
    u = layer.words + layer.types + layer.positions[:7]
    s = np.sqrt(((u - u.mean(1, keepdims=True)) ** 2).mean(1) + 1e-2)
    for head in (0, 4):
        wq, wk = layer.projections.query[head], layer.projections.key[head]
        sides = {}
        for side, weight, bias in (("q", wq, layer.projections.query_bias), ("k", wk, layer.projections.key_bias)):
            place, word, kind = (
                np.array([weight @ (layer.norm_weight * (row - row.mean()) / s[n]) for n, row in enumerate(part)])
                for part in (layer.positions[:7], layer.words, layer.types)
            )
            rest = np.repeat((weight @ layer.norm_bias + bias[head])[None], 7, 0)
            sides |= {f"{side}p": place, f"{side}c": word + kind + rest, f"{side}0": kind + rest + place}
        terms = {
            name: sides[f"q{name[0]}"] @ sides[f"k{name.split('-')[1][0]}"].T / np.sqrt(3) for name in additive.TERMS
        }
        whole = sum(terms.values())
        for seen, name in zip(record.heads[head].terms, additive.TERMS, strict=True):
            assert (seen.share, seen.explained) == pytest.approx(shares_by_loops(terms[name], whole, causal), abs=1e-12)
        wordless = sides["q0"] @ sides["k0"].T / np.sqrt(3)
        assert record.heads[head].positional == pytest.approx(shares_by_loops(wordless, whole, causal)[1], abs=1e-12)


def test_what_cancels_in_the_softmax_and_what_does_not():
    record = decompose(toy())
    gone = [part.name for part in record.parts if part.cancels]
    assert gone == ["content-constant", "position-constant", "type-constant", "constant-constant"]
    for head in record.heads:
        for part, share in zip(record.parts, head.parts, strict=True):
            if part.cancels:
                assert abs(share.share) < 1e-14
                assert abs(share.explained) < 1e-14
            else:
                assert abs(share.share) > 1e-7, part.name
    assert record.cancel_error < 1e-14


def test_a_head_without_words_is_positional_and_one_without_positions_is_content():
    layer = toy()
    assert all(head.verdict == "positional" for head in decompose(replace(layer, words=np.zeros((7, 11)))).heads)
    flat = decompose(replace(layer, positions=np.zeros((13, 11))))
    assert all(abs(share.share) < 1e-14 for head in flat.heads for share in head.terms[1:])
    assert all(head.terms[0].share == pytest.approx(1) for head in flat.heads)


def test_one_token_has_no_shares():
    record = decompose(toy(words=np.ones((1, 11)) * np.arange(11.0), types=np.zeros(0)), ["lonely"])
    assert {head.verdict for head in record.heads} == {"constant"}
    assert all(head.terms == () and head.positional is None for head in record.heads)
    assert record.expansion.errors is None


def test_second_order_against_differences_of_the_exact_scores():
    """With positions times e: (f(e) - f(-e)) / 2e is order 1, (f(e) - 2 f(0) + f(-e)) / 2e^2 is order 2."""
    layer, step = toy(), 1e-3

    def at(e):
        return additive.whole_scores(replace(layer, positions=layer.positions * e))

    zero, one, two, mixed = score_orders(layer)
    assert np.abs(zero - at(0.0)).max() < 1e-12
    assert np.abs(one - (at(step) - at(-step)) / (2 * step)).max() < 1e-4
    assert np.abs(two - (at(step) - 2 * at(0.0) + at(-step)) / (2 * step**2)).max() < 1e-4
    assert np.abs(two).max() > 1
    small = replace(layer, positions=layer.positions * 1e-3)
    errors = decompose(small).expansion.errors
    assert errors[0] > 1e-4 > errors[1] > 1e-8
    assert errors[2] < 1e-6
    assert np.abs(mixed).max() > 0.1


def test_the_record_survives_json():
    record = decompose(toy(), "seven tokens it is then , ok")
    assert AttentionDecomposition.model_validate(json.loads(record.model_dump_json())) == record
    assert record.tokens[2] == "it"


def test_channels_that_are_not_rotated_are_a_term_of_their_own():
    rng = np.random.default_rng(11)
    projections = Projections(query=rng.standard_normal((4, 10, 9)), key=rng.standard_normal((2, 10, 9)), causal=True)
    layer = RotaryLayer(
        words=rng.standard_normal((5, 9)),
        norm_weight=rng.standard_normal(9),
        projections=projections,
        encoding=Rotary(10, rotary_dim=6, where="last", interleaved=True),
    )
    record = decompose(layer)
    assert [term.name for term in record.terms] == ["fast", "middle", "slow", "not rotated"]
    assert all(sum(t.share for t in head.terms) == pytest.approx(1) for head in record.heads)
    query, key = bands.queries_and_keys(layer)
    alone = query[3][:, :4] @ key[1][:, :4].T / np.sqrt(10)
    assert np.abs(bands.turned(layer).bands(3, record.terms[:3])[3] - alone).max() < 1e-14


def test_bands_by_edges_and_thirds():
    f = Frequencies(2 * np.pi / np.array([2.0, 700.0, 3.0, 90.0, 5.0, np.inf, 11.0, 30.0]))
    thirds = bands.bands_of(f)
    assert [term.pairs for term in thirds] == [(0, 2, 4), (3, 6, 7), (1, 5)]
    assert thirds[2].wavelengths == (pytest.approx(700.0), None)
    cut = bands.bands_of(f, (5.0 * (1 - 1e-12), 1000.0))
    assert [term.pairs for term in cut] == [(0, 2), (1, 3, 4, 6, 7), (5,)]
    assert cut[2].wavelengths is None
    at = float(f.wavelengths[3])  # a wavelength that is an edge belongs to the slower band
    assert [term.pairs for term in bands.bands_of(f, (at,))] == [(0, 2, 4, 6, 7), (1, 3, 5)]
    with pytest.raises(ShapeError, match="increasing"):
        bands.bands_of(f, (5.0, 5.0))
    with pytest.raises(ShapeError, match="positive"):
        bands.bands_of(f, (0.0, 5.0))


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda: decompose(toy(), layer=1), SubjectError),
        (lambda: decompose(object()), SubjectError),
        (lambda: decompose(toy(), ["one", "name"]), SubjectError),
        (lambda: decompose("/no/such/model", [1]), PosencError),
        (lambda: toy(words=np.full((7, 11), np.nan)), ShapeError),
        (lambda: toy(words=np.ones((14, 11))), ShapeError),
        (lambda: toy(eps=0.0), ShapeError),
        (lambda: toy(types=np.ones((6, 11))), ShapeError),
        (lambda: toy(norm_weight=np.ones(1)), ShapeError),
        (lambda: decompose(toy(), pairs="no"), ShapeError),
        (lambda: decompose(toy(), pairs=[(0, 0)]), ShapeError),
        (lambda: Projections(query=np.ones((3, 2, 5)), key=np.ones((2, 2, 5))), ShapeError),
    ],
)
def test_wrong_subjects_are_refused_with_one_line(change, error):
    with pytest.raises(error) as seen:
        change()
    assert "\n" not in str(seen.value)
