"""Layouts: found by trying, or told; positions along the batch or the heads are a finding where the layout was told."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from posenc.checker.calling.stated import stated_layout
from posenc.checker.checking import check
from posenc.errors import SubjectError
from posenc.rendering.findings import answer

LINE = "rotary(26)"


def rope(axis):
    """A rotation that counts positions along one dimension of whatever it is given."""

    def turn(x):
        rates = 1e4 ** (-np.arange(0, 26, 2) / 26)
        shape = [1] * x.ndim
        shape[axis] = x.shape[axis]
        angle = np.arange(x.shape[axis]).reshape(shape)[..., :1] * rates
        a, b = np.split(x, 2, axis=-1)
        c, s = np.cos(angle), np.sin(angle)
        return np.concatenate([a * c - b * s, b * c + a * s], axis=-1)

    return turn


@pytest.mark.parametrize("layout", ["bhtd", "bthd", "tbhd", "thd", "htd", "btd", "tbd", "td"])
def test_a_right_rotation_is_acquitted_in_every_layout_that_is_told(layout):
    report = check(rope(layout.index("t")), LINE, layout=layout, library="numpy", probes=False)
    assert report.could_not_run is None
    assert report.findings == ()


@pytest.mark.parametrize(
    ("told", "axis"),
    [(told, axis) for told in ("bhtd", "bthd", "tbhd", "btd", "tbd") for axis in sorted(set(told) - {"t", "d"})],
)
def test_positions_along_another_dimension_are_a_defect_where_the_layout_is_told(told, axis):
    report = check(rope(told.index(axis)), LINE, layout=told, library="numpy", probes=False)
    assert report.could_not_run is None
    (found,) = report.at_least("defect")
    assert found.kinds == ("axis-order",)
    assert {r.name: (r.value, r.expected) for r in found.recovered}["layout"][1] == told


class SequenceFirst(nn.Module):
    """As in GPT-NeoX and Megatron: tokens, batch, heads, channels in this order; partial, with an offset."""

    def __init__(self, head_dim=40, rotary_pct=0.25, last=False):
        super().__init__()
        self.turned, self.last = int(head_dim * rotary_pct), last
        rates = 1e4 ** (-torch.arange(0, self.turned, 2).double() / self.turned)
        self.register_buffer("rates", rates, persistent=False)

    def forward(self, query_layer, key_layer, offset=0):
        angle = torch.arange(offset, offset + query_layer.shape[0])[:, None, None, None] * self.rates
        cos, sin = angle.cos().float(), angle.sin().float()

        def turn(x):
            kept, x = (x[..., : -self.turned], x[..., -self.turned :]) if self.last else (x[..., self.turned :], x)
            a, b = x[..., : self.turned].chunk(2, -1)
            pieces = [a * cos - b * sin, b * cos + a * sin]
            return torch.cat([kept, *pieces] if self.last else [*pieces, kept], -1).to(x.dtype)

        return turn(query_layer), turn(key_layer)


def test_modules_with_the_sequence_first():
    report = check(SequenceFirst, "rotary(40, rotary_dim=10)")
    assert report.acquitted
    assert "layout (t, b, h, d)" in " ".join(report.assumed)
    assert "positions would run along b" in " ".join(report.assumed)
    (found,) = check(SequenceFirst(last=True), "rotary(40, rotary_dim=10)").at_least("defect")
    assert found.kinds[0] == "partial-rotary"


class AlongTheBatch(nn.Module):
    """The tutorial's module for the sequence first, fed with the batch first."""

    def __init__(self, d_model=26):
        super().__init__()
        angle = torch.arange(101).double()[:, None, None] * 1e4 ** (-torch.arange(0, d_model, 2).double() / d_model)
        table = torch.stack([angle.sin(), angle.cos()], -1).flatten(2).float()
        self.register_buffer("pe", table, persistent=False)

    def forward(self, x):
        return x + self.pe[: x.size(0)]


def test_a_table_along_the_batch():
    (found,) = check(AlongTheBatch, "sinusoidal(26)", layout="btd").at_least("defect")
    assert found.title == "positions run along the batch, not along the tokens"
    report = check(AlongTheBatch, "sinusoidal(26)")
    assert not report.at_least("defect")
    assert "called with (b, t, d), positions would run along b" in " ".join(report.assumed)


class Documented(AlongTheBatch):
    """x: (batch, seq, d_model)"""


class DocumentedOtherwise(AlongTheBatch):
    """x: Tensor, shape ``[seq_len, batch_size, embedding_dim]``"""


def test_the_layout_that_the_documentation_states_is_asked_first():
    (found,) = check(Documented, "sinusoidal(26)", probes=False).at_least("defect")
    assert found.title == "positions run along the batch, not along the tokens"
    assert "its documentation" in found.cause
    report = check(DocumentedOtherwise, "sinusoidal(26)", probes=False)
    assert report.findings == ()
    assert "its documentation states the layout" in " ".join(report.assumed)
    assert check(Documented, None, probes=False).could_not_run is None


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("xq: (bsz, seqlen, n_heads, head_dim), as complex numbers", "bthd"),
        ("query and key: [sq, b, np, hn]", "tbhd"),
        ("x (B, T, C) and cos (T, C)", "btd"),
        ("x (B, T, C), cast to (T, B, C)", None),  # two of them say nothing
        ("x (batch, tokens, heads * dim)", None),
        ("see (this, that, other)", None),
        ("cos: (seq, dim), x: (tokens, heads, dim)", None),
        (None, None),
    ],
)
def test_layouts_in_documentation(text, layout):
    def function(x):
        return x

    function.__doc__ = text
    assert stated_layout(function) == layout


def test_a_rotation_along_the_heads_of_a_documented_layout():
    def astray(x):
        """x: (batch, seq, heads, head_dim)"""
        return rope(2)(x)

    def right(x):
        """x: (batch, seq, heads, head_dim)"""
        return rope(1)(x)

    assert check(right, LINE, library="numpy", probes=False).findings == ()
    (found,) = check(astray, LINE, library="numpy", probes=False).at_least("defect")
    assert found.kinds == ("axis-order",)


def test_keys_of_a_decode_step_that_ignore_the_offset():
    def both(q, k, start_pos=0, keys=1):
        def turn(x, start):
            angle = np.arange(start, start + x.shape[-2])[:, None] * 1e4 ** (-np.arange(0, 26, 2) / 26)
            a, b = np.split(x, 2, axis=-1)
            return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1)

        return turn(q, start_pos), turn(k, start_pos * keys)

    assert not check(lambda q, k, start_pos=0: both(q, k, start_pos), LINE, library="numpy").at_least("defect")
    (found,) = check(lambda q, k, start_pos=0: both(q, k, start_pos, 0), LINE, library="numpy").at_least("defect")
    assert found.kinds == ("offset-cache",)
    assert found.title.endswith("keys")


def apply_alone(q, k, cos, sin):
    def half(x):
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate([-b, a], axis=-1)

    return q * cos + half(q) * sin, k * cos + half(k) * sin


def test_what_is_handed_the_wanted_cosines_is_acquitted_of_nothing_else(tmp_path):
    report = check(apply_alone, LINE, library="numpy", probes=False)
    assert report.findings == ()
    assert answer(report).plain.startswith("no defect in what apply_alone does with the wanted cosines and sines")
    file = tmp_path / "apply.py"
    file.write_text(
        "import numpy as np\n\n"
        "def rotate_half(x):\n"
        "    a, b = np.split(x, 2, axis=-1)\n"
        "    return np.concatenate([-b, a], axis=-1)\n\n"
        "def apply(q, k, cos, sin):\n"
        "    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin\n"
    )
    report = check(str(file), LINE, probes=False)
    assert report.could_not_run is None
    assert report.findings == ()
    assert "what makes them was not examined" in report.part
    file.write_text(file.read_text().replace("[-b, a]", "[b, -a]"))
    assert check(str(file), LINE, probes=False).at_least("defect")


def test_a_file_of_which_only_the_cosines_could_be_examined_is_not_acquitted_as_a_whole(tmp_path):
    file = tmp_path / "pieces.py"
    file.write_text(
        "import numpy as np\n\n"
        "def waves(positions):\n"
        "    angle = np.outer(positions, 1e4 ** (-np.arange(0, 26, 2) / 26))\n"
        "    return np.cos(angle), np.sin(angle)\n\n"
        "def turn(one, two, three, four, five, six, seven):\n"
        "    return one\n"
    )
    report = check(str(file), LINE)
    assert report.part is not None
    assert "what turns queries and keys with it was not examined" in report.part
    assert answer(report).plain.startswith("no defect in what waves makes")
    assert answer(check(f"{file}:waves", LINE)).plain.startswith("acquitted")


def test_letters_of_layouts_have_different_sizes():
    from posenc.checker.calling.layouts import FOUR, THREE, as_layout, from_layout

    x = np.random.default_rng(3).normal(size=(5, 7, 11))
    for layout in {*FOUR, *THREE, "hbtd", "thbd", "htbd"}:
        part = x[:1] if layout == "td" else x
        made = as_layout(layout, part)
        assert made.shape[layout.index("t")] == 7
        assert np.array_equal(from_layout(layout, made, part.shape), part)


@pytest.mark.parametrize("layout", ["xyz", "bhdt", "bbtd", "bhd", "b" * 5000])
def test_what_is_no_layout_is_refused(layout):
    with pytest.raises(SubjectError, match="a layout has the letters"):
        check(rope(-2), LINE, layout=layout, library="numpy")


def square(embed_dim, grid_size, exchanged=False):
    """As in MAE: one number for both sides of the grid."""
    side = np.arange(grid_size, dtype=np.float64)
    rows, columns = np.meshgrid(side, side, indexing="ij")
    if exchanged:
        rows, columns = columns, rows
    rates = 1e4 ** (-np.arange(embed_dim // 4) / (embed_dim // 4))
    halves = [np.concatenate([f(np.outer(axis, rates)) for f in (np.sin, np.cos)], 1) for axis in (rows, columns)]
    return np.concatenate(halves, axis=1)


def test_a_grid_that_is_only_made_square():
    line = "sinusoidal(28, order='sin|cos', axes=split((7, 7)))"
    report = check(lambda embed_dim, grid_size: square(embed_dim, grid_size), line, library="numpy")
    assert report.acquitted
    assert report.findings == ()
    assert "a square grid" in " ".join(report.assumed)
    (found,) = check(lambda embed_dim, grid_size: square(embed_dim, grid_size, True), line, library="numpy").findings
    assert (found.verdict, found.kinds[0]) == ("convention", "axis-order")


def test_of_several_pieces_the_one_whose_documentation_errs_is_examined(tmp_path):
    file = tmp_path / "pieces.py"
    file.write_text(
        "import numpy as np\n\n"
        "class Waves:\n"
        "    def __call__(self, positions):\n"
        "        angle = np.outer(positions, 1e4 ** (-np.arange(0, 26, 2) / 26))\n"
        "        return np.cos(angle), np.sin(angle)\n\n"
        "class Turns:\n"
        '    """query and key: [sq, b, np, hn]"""\n\n'
        "    def __call__(self, query, key):\n"
        "        c, s = Waves()(np.arange(query.shape[-2]))\n"
        "        def turn(x):\n"
        "            a, b = np.split(x, 2, axis=-1)\n"
        "            return np.concatenate([a * c - b * s, b * c + a * s], axis=-1)\n"
        "        return turn(query), turn(key)\n"
    )
    report = check(str(file), LINE, probes=False)
    assert "examined Turns" in " ".join(report.assumed)
    assert report.part is None
    assert report.at_least("defect")[0].kinds == ("axis-order",)
