"""Biases: T5's rule step by step, by the rows a trained table is read at; ALiBi's slopes for odd numbers of heads."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from posenc.checker.checking import check
from posenc.checker.identifying import identify


def rule(relative, num_buckets=32, max_distance=128, bidirectional=True, slip=""):
    """T5's buckets in torch, as the field writes them, with one slip."""
    out = torch.zeros_like(relative)
    if slip == "sign":
        relative = -relative
    if bidirectional:
        if slip != "not halved":
            num_buckets //= 2
        half = num_buckets // 2 if slip == "not halved" else num_buckets
        out = out + (relative >= 0 if slip == "zero after" else relative > 0).long() * half
        relative = relative.abs()
    else:
        relative = -torch.minimum(relative, torch.zeros_like(relative))
    exact = num_buckets // 2
    log = {"log2": torch.log2, "log10": torch.log10}.get(slip, torch.log)
    # as in float32: near whole numbers the two agree after a nudge that is far below the next distance
    steps = log(relative.clamp(min=1).double() / exact) / math.log(max_distance / exact) * (num_buckets - exact)
    steps = torch.where((steps - steps.round()).abs() < 1e-9, steps.round(), steps)
    large = exact + (steps.round() if slip == "rounded" else steps).long()
    if slip != "no limit":
        large = large.clamp(max=num_buckets - 1)
    small = relative <= exact if slip == "one more exact" else relative < exact
    out = out + torch.where(small, relative, large)
    return out + {"one too many": 1, "one too few": -1}.get(slip, 0)


class Bias(nn.Module):
    """A trained table of buckets, looked up for every query and key."""

    def __init__(self, n_heads, num_buckets=32, max_distance=128, bidirectional=True, slip=""):
        super().__init__()
        self.options = {"num_buckets": num_buckets, "max_distance": max_distance, "bidirectional": bidirectional}
        self.slip = slip
        self.table = nn.Embedding(num_buckets, n_heads)

    def forward(self, query_length, key_length):
        relative = torch.arange(key_length)[None] - torch.arange(query_length)[:, None]
        return self.table(rule(relative, slip=self.slip, **self.options)).permute(2, 0, 1)[None]


LINES = [
    ("t5_bias(3)", {}),
    ("t5_bias(3, num_buckets=24, max_distance=96)", {"num_buckets": 24, "max_distance": 96}),
    ("t5_bias(3, bidirectional=False)", {"bidirectional": False}),
]


@pytest.mark.parametrize(("line", "options"), LINES)
def test_right_tables_are_acquitted_and_identified(line, options):
    subject = Bias(3, **options)
    assert check(subject, line).acquitted
    assert check(Bias, line).acquitted
    assert identify(subject).identified[0].notation == line


@pytest.mark.parametrize(
    ("slip", "cause"),
    [
        ("sign", "sign of the distance is exchanged"),
        ("not halved", "not halved"),
        ("zero after", "distance 0 counts as after"),
        ("log2", "base 2"),
        ("log10", "base 10"),
        ("rounded", "rounded in place of cut off"),
        ("no limit", "last bucket is not the limit"),
        ("one too many", "one more than wanted"),
        ("one too few", "one less than wanted"),
    ],
)
def test_each_slip_is_named_even_where_it_reads_beyond_the_table(slip, cause):
    (found,) = check(Bias(3, slip=slip), "t5_bias(3)").at_least("defect")
    assert found.kinds == ("bias-function",)
    assert cause in str(found.cause)


@pytest.mark.parametrize("slip", ["sign", "not halved", "one too many"])
def test_bucket_functions_too(slip):
    def bucket(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
        return rule(relative_position, num_buckets, max_distance, bidirectional, slip)

    assert check(bucket, "t5_bias(3)").at_least("defect")[0].cause


def test_a_bucket_function_is_identified_with_its_numbers():
    def bucket(relative_position):
        return rule(relative_position, 24, 96, False)

    found = {r.name: r.value for r in identify(bucket).recovered}
    assert (found["num_buckets"], found["max_distance"], found["bidirectional"]) == (24, 96, "False")


def test_a_bias_without_a_table_is_identified_by_where_it_changes():
    values = np.random.default_rng(5).normal(size=(32, 3))

    def bias(query_length, key_length):
        relative = np.arange(key_length)[None] - np.arange(query_length)[:, None]
        return np.moveaxis(values[rule(torch.from_numpy(relative)).numpy()], -1, 0)

    assert identify(bias).identified[0].notation == "t5_bias(3)"


def power(n):
    return [2.0 ** (-8 * (h + 1) / n) for h in range(n)]


@pytest.mark.parametrize(
    ("slopes", "cause"),
    [
        (power(8) + power(16)[1::2][:4], "second, fourth"),
        (power(8) + power(16)[:4], "consecutive slopes"),
        ([2.0 ** -(h + 1) for h in range(12)], "goes on over all 12"),
        (power(16)[:12], "cut off"),
    ],
)
def test_slopes_of_twelve_heads(slopes, cause):
    def get_slopes(num_heads):
        return np.array(slopes)

    (found,) = check(get_slopes, "alibi(12)").at_least("defect")
    assert cause in str(found.cause)


def test_the_papers_slopes_are_a_convention_and_a_defect_for_weights_trained_with_others():
    def get_slopes(num_heads):
        return np.array(power(num_heads))

    assert [f.verdict for f in check(get_slopes, "alibi(12)").findings] == ["convention"]
    config = {"model_type": "bloom", "n_layer": 2, "n_head": 12, "hidden_size": 48, "seq_length": 128}
    (found,) = check(get_slopes, config).findings
    assert found.verdict == "defect"
    assert "was trained with the wanted one" in str(found.cause)


def test_of_slopes_and_the_bias_made_of_them_the_bias_is_identified(tmp_path):
    file = tmp_path / "alibi.py"
    file.write_text(
        "import numpy as np\n\n"
        "def slopes(n):\n    return np.array([2.0 ** (-8 * (h + 1) / n) for h in range(n)])\n\n"
        "def bias(num_heads, seq_len):\n"
        "    return -slopes(num_heads)[:, None, None] * np.abs(np.subtract.outer(*2 * [np.arange(seq_len)]))\n"
    )
    report = identify(str(file))
    assert "examined bias alone" in " ".join(report.assumed)
    assert report.identified[0].notation == "alibi(8, symmetric=True)"
