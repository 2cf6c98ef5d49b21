"""The thin functions against transformers' own and against loops."""

from __future__ import annotations

import pytest
import torch

from oracles.rotary import adjacent, halves, turned
from posenc.errors import ShapeError
from posenc.nn.rotary import RotaryEmbedding
from posenc.nn.rotary_functions import apply_rotary_pos_emb, both_columns, rotary_embedding

BATCH, HEADS, KV, TOKENS, WIDTH = 2, 6, 3, 7, 10


def table(rows, columns):
    theta = torch.tensor([1.3, 0.7, 0.21, 0.05, 0.011, 0.002])[:columns].double()
    angle = torch.arange(rows).double()[:, None] * theta
    return angle.cos(), angle.sin(), theta.tolist()


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("columns", [5, 3])
def test_proposed_function_reads_rows_by_position(interleaved, columns):
    cos, sin, theta = table(23, columns)
    x = torch.randn(BATCH, HEADS, TOKENS, WIDTH, dtype=torch.float64)
    ids = torch.randint(23, (BATCH, TOKENS))
    got = rotary_embedding(x, cos, sin, ids, interleaved=interleaved)
    pairs = (adjacent if interleaved else halves)(2 * columns)
    for b in range(BATCH):
        for t in range(TOKENS):
            expected = torch.tensor(turned(x[b, 4, t].tolist(), int(ids[b, t]), theta, pairs), dtype=torch.float64)
            assert (got[b, 4, t] - expected).abs().max() < 1e-14
    shared = rotary_embedding(x, cos, sin, ids[1], interleaved=interleaved)
    assert torch.equal(shared[1], got[1])
    assert not torch.equal(shared[0], got[0])


def test_proposed_function_takes_what_broadcasts():
    cos, sin, _ = table(TOKENS, 5)
    x = torch.randn(BATCH, HEADS, TOKENS, WIDTH, dtype=torch.float64)
    plain = rotary_embedding(x, cos, sin)
    assert torch.equal(plain, rotary_embedding(x, cos, sin, torch.arange(TOKENS)))
    assert torch.equal(
        plain, rotary_embedding(x, cos[None, None].expand(BATCH, 1, -1, -1), sin[None, None].expand(BATCH, 1, -1, -1))
    )
    low = rotary_embedding(x.bfloat16(), cos.float(), sin.float())
    assert low.dtype == torch.bfloat16
    assert ((low.double() - rotary_embedding(x.bfloat16().double(), cos, sin)).abs() <= 2.0**-9 * 8).all()


@pytest.mark.parametrize("dim", [1, 2])
def test_is_transformers_function(dim):
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as theirs

    shape = (BATCH, HEADS, TOKENS, WIDTH) if dim == 1 else (BATCH, TOKENS, HEADS, WIDTH)
    q, k = torch.randn(shape), torch.randn(shape)
    cos, sin = torch.randn(2, BATCH, TOKENS, WIDTH)  # both columns of a pair differ: nothing may be assumed of them
    for mine, other in zip(apply_rotary_pos_emb(q, k, cos, sin, dim), theirs(q, k, cos, sin, dim), strict=True):
        assert (mine - other).abs().max() < 1e-6
    part = apply_rotary_pos_emb(q, k, cos[..., :6], sin[..., :6], unsqueeze_dim=dim)[1]
    assert torch.equal(part[..., 6:], k[..., 6:])
    assert (part[..., :6] - theirs(k[..., :6], k[..., :6], cos[..., :6], sin[..., :6], dim)[0]).abs().max() < 1e-6


def test_half_precision_is_rounded_once():
    q = torch.randn(1, HEADS, TOKENS, WIDTH).bfloat16()
    cos, sin = (both_columns(t)[None].float() for t in table(TOKENS, 5)[:2])
    exact = apply_rotary_pos_emb(q.double(), q.double(), cos.double(), sin.double())[0]
    got = apply_rotary_pos_emb(q, q, cos, sin)[0]
    assert ((got.double() - exact).abs() <= (exact.bfloat16().double() - exact).abs() + 1e-6).all()


@pytest.mark.parametrize("interleaved", [False, True])
def test_module_and_functions_agree(interleaved):
    module = RotaryEmbedding(WIDTH, interleaved=interleaved)
    q, k = torch.randn(BATCH, HEADS, TOKENS, WIDTH), torch.randn(BATCH, KV, TOKENS, WIDTH)
    ready = module.prepare(torch.arange(TOKENS))
    got = module(q, k, ready)
    assert torch.equal(rotary_embedding(k, ready.cos, ready.sin, interleaved=interleaved), got[1])
    if not interleaved:
        full = apply_rotary_pos_emb(q, k, both_columns(ready.cos[:, 0]), both_columns(ready.sin[:, 0]))
        assert (full[0] - got[0]).abs().max() < 1e-6


X = torch.zeros(BATCH, HEADS, TOKENS, WIDTH)
ROWS = torch.zeros(23, 5)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: rotary_embedding(X[0], ROWS, ROWS), r"x is \(batch, heads, tokens, head_dim\); got \(6, 7, 10\)"),
        (lambda: rotary_embedding(X, ROWS, ROWS), "broadcast against .2, 6, 7., x without its channels; got .23, 5."),
        (lambda: rotary_embedding(X, ROWS, ROWS[:, :4]), "one column a pair"),
        (lambda: rotary_embedding(X[..., :8], ROWS[:7], ROWS[:7]), "a head has at least 10 channels"),
        (
            lambda: rotary_embedding(X, ROWS, ROWS, torch.tensor([0] * 6 + [23])),
            "rows of the table, 0 to 22; got 23.*longer",
        ),
        (lambda: rotary_embedding(X, ROWS, ROWS, torch.tensor([0] * 6 + [-1])), "rows of the table, 0 to 22; got -1"),
        (lambda: rotary_embedding(X, ROWS[None], ROWS[None], torch.arange(7)), "tables .rows, columns."),
        (lambda: rotary_embedding(X, ROWS, ROWS, torch.zeros(7)), "position_ids are integers"),
        (lambda: rotary_embedding(X.long(), ROWS[:7], ROWS[:7]), "x holds real numbers"),
        (lambda: apply_rotary_pos_emb(X, X, ROWS[None], ROWS[None]), "an even number of columns"),
        (lambda: apply_rotary_pos_emb(X, X, X[:, 0, :3], X[:, 0, :3]), "broadcast against"),
        (lambda: apply_rotary_pos_emb(X[..., :8], X, X[:, 0], X[:, 0]), "at least the 10 channels"),
    ],
)
def test_bad_input_names_rule_and_shapes(act, words):
    with pytest.raises(ShapeError, match=words):
        act()
