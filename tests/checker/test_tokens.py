"""Blocks that embed token ids: what is added for positions is examined, not the rows of tokens."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from posenc.checker.checking import check
from posenc.checker.identifying import identify

WORDS, ROWS, DIM = 101, 73, 46


def sinusoids(base=1e4):
    angle = torch.arange(ROWS, dtype=torch.float64)[:, None] * base ** (-torch.arange(0, DIM, 2).double() / DIM)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


class Learned(nn.Module):
    """As in BERT: tokens, segments and positions are summed and normalised."""

    def __init__(self):
        super().__init__()
        self.words, self.segments = nn.Embedding(WORDS, DIM, padding_idx=0), nn.Embedding(2, DIM)
        self.places = nn.Embedding(ROWS, DIM)
        self.norm = nn.LayerNorm(DIM)

    def forward(self, input_ids, token_type_ids=None, position_ids=None):
        if position_ids is None:
            position_ids = torch.arange(input_ids.shape[1])[None]
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        return self.norm(self.words(input_ids) + self.segments(token_type_ids) + self.places(position_ids))


class CountedFromTheMask(nn.Embedding):
    """As in OPT: positions are the tokens counted so far, two rows are reserved."""

    def __init__(self):
        super().__init__(ROWS + 2, DIM)

    def forward(self, attention_mask, past_key_values_length=0):
        at = torch.cumsum(attention_mask, dim=1) * attention_mask - 1
        return super().forward(at[:, past_key_values_length:] + 2)


class CountedFromTheTokens(nn.Module):
    """As in RoBERTa: positions count the tokens that are no padding, from the row after that of padding."""

    def __init__(self, padding_idx=1):
        super().__init__()
        self.padding_idx = padding_idx
        self.words = nn.Embedding(WORDS, DIM, padding_idx=padding_idx)
        self.places = nn.Embedding(ROWS + padding_idx + 1, DIM, padding_idx=padding_idx)

    def forward(self, input_ids, position_ids=None):
        if position_ids is None:
            mask = input_ids.ne(self.padding_idx).int()
            position_ids = torch.cumsum(mask, dim=1) * mask + self.padding_idx
        return self.words(input_ids) + self.places(position_ids.long())


class Fixed(nn.Module):
    """As in the first Transformer: scaled rows of tokens, sinusoids added, dropout."""

    def __init__(self, base=1e4):
        super().__init__()
        self.words = nn.Embedding(WORDS, DIM)
        self.register_buffer("table", sinusoids(base), persistent=False)
        self.dropout = nn.Dropout(0.1)

    def forward(self, tokens):
        return self.dropout(self.words(tokens) * DIM**0.5 + self.table[: tokens.shape[1]])


class OnAShape(nn.Module):
    def __init__(self, ignores=False):
        super().__init__()
        self.ignores = ignores
        self.register_buffer("table", sinusoids(), persistent=False)

    def forward(self, input_ids_shape, past_key_values_length=0):
        start = 0 if self.ignores else past_key_values_length
        return self.table[torch.arange(start, start + input_ids_shape[1])]


@pytest.mark.parametrize(
    ("subject", "line"),
    [
        (Learned, f"learned({DIM}, shape=({ROWS},))"),
        (CountedFromTheMask, f"learned({DIM}, shape=({ROWS},))"),
        (CountedFromTheTokens, f"learned({DIM}, shape=({ROWS},))"),
        (Fixed, f"sinusoidal({DIM})"),
        (OnAShape, f"sinusoidal({DIM})"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_right_blocks_are_acquitted(subject, line):
    report = check(subject().eval(), line)
    assert report.could_not_run is None
    assert [f.title for f in report.findings if f.verdict == "defect"] == []


def test_a_sinusoid_with_another_base_is_named_below_the_rows_of_tokens():
    (found,) = check(Fixed(base=1e3).eval(), f"sinusoidal({DIM})").at_least("defect")
    assert {r.name: r.value for r in found.recovered}["base"] == pytest.approx(1e3, rel=1e-3)


def test_an_offset_that_is_ignored_shows_where_no_vectors_are_given():
    (found,) = check(OnAShape(ignores=True), f"sinusoidal({DIM})").at_least("defect")
    assert found.kinds == ("offset-cache",)
    assert "prefill and decode" in check(OnAShape(), f"sinusoidal({DIM})").probes


def test_a_block_is_identified_by_what_it_adds():
    assert identify(Fixed().eval()).identified[0].notation == f"sinusoidal({DIM})"
    assert "rows of tokens" in " ".join(identify(Fixed().eval()).assumed)


def test_tokens_without_a_table_of_torch_cannot_be_told_from_positions():
    words = np.random.default_rng(3).normal(size=(WORDS, DIM))

    def block(tokens):
        return words[tokens] + np.asarray(sinusoids())[: tokens.shape[1]]

    report = check(block, f"sinusoidal({DIM})", library="numpy")
    assert "what tokens contribute can be told" in str(report.could_not_run)
    assert check(block, f"learned({DIM}, shape=({ROWS},))", library="numpy").acquitted


def test_vectors_under_the_name_of_tokens_are_still_vectors():
    class Patches(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.randn(1, ROWS, DIM, generator=torch.Generator().manual_seed(5)))

        def forward(self, tokens):
            return tokens + self.table[:, : tokens.shape[1]]

    report = check(Patches(), f"learned({DIM}, shape=({ROWS},))")
    assert report.acquitted
    assert "x" in " ".join(report.assumed)


def test_a_whole_model_is_no_embedding_block():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = Fixed()
            self.layer = nn.TransformerEncoderLayer(DIM, 2, 51, batch_first=True)

        def forward(self, input_ids):
            return self.layer(self.embed(input_ids))

    assert "without layers" in str(check(Model().eval(), f"sinusoidal({DIM})").could_not_run)


class OnlyPadding(nn.Module):
    """As in fairseq: ids are looked at for padding alone, from which positions are counted."""

    def __init__(self, padding_idx=1, base=1e4):
        super().__init__()
        self.padding_idx = padding_idx
        self.register_buffer("table", sinusoids(base), persistent=False)

    def forward(self, input):
        mask = input.ne(self.padding_idx).int()
        return self.table[(torch.cumsum(mask, dim=1) * mask).long() + self.padding_idx]


def test_ids_that_are_looked_at_for_padding_alone():
    line = f"sinusoidal({DIM}, offset=2)"
    assert check(OnlyPadding(), line).acquitted
    found = check(OnlyPadding(base=1e3), line).at_least("defect")[0]
    assert {r.name: r.value for r in found.recovered}["base"] == pytest.approx(1e3, rel=1e-3)


class OneLength(nn.Module):
    """As in vision transformers: a token of its own, and a table for exactly as many patches."""

    def __init__(self, before=1, rows=ROWS):
        super().__init__()
        drawn = torch.Generator().manual_seed(11)
        self.own = nn.Parameter(torch.randn(1, before, DIM, generator=drawn))
        self.table = nn.Parameter(torch.randn(1, rows, DIM, generator=drawn))

    def forward(self, x):
        return torch.cat([self.own.expand(len(x), -1, -1), x], dim=1) + self.table


@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_table_for_one_number_of_tokens(before):
    assert check(OneLength(before).eval(), f"learned({DIM}, shape=({ROWS},))").acquitted
    assert check(OneLength(before, ROWS + 5).eval(), f"learned({DIM}, shape=({ROWS},))").could_not_run
