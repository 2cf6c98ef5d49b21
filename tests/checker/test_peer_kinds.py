"""Faults that were first met in peers, each as a small subject of its own, and right ones that look alike."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from posenc.checker.calling.constructing import chance
from posenc.checker.checking import check
from posenc.formulas.tables import sinusoidal_table
from posenc.spec import parse


def turned(x, positions, base=10000.0, gain=1.0):
    """Pairs (2i, 2i + 1) of ``(…, tokens, d)``, by complex numbers."""
    d = x.shape[-1]
    angle = np.multiply.outer(np.asarray(positions, dtype=np.float64), base ** (-np.arange(0, d, 2) / d))
    z = np.ascontiguousarray(x, dtype=np.float64).view(np.complex128) * np.exp(1j * angle) * gain
    return np.ascontiguousarray(z).view(np.float64)


def kinds(report, verdict="defect"):
    assert report.could_not_run is None, report.could_not_run
    return [f.kinds for f in report.findings if f.verdict == verdict]


class OpenEnded:
    """Like a Keras layer: everything goes through an open ``__call__`` to ``call``."""

    def __call__(self, *args, **kwargs):
        return self.call(*args, **kwargs)

    def call(self, inputs, start_index=0, positions=None):
        at = np.arange(inputs.shape[-2]) + start_index if positions is None else positions
        return turned(inputs, at)


def test_the_parameters_behind_an_open_call_are_read():
    report = check(OpenEnded(), "rotary(22, interleaved=True)")
    assert report.acquitted
    assert report.findings == ()
    assert any("positions" in text for text in report.assumed)


def test_a_class_whose_table_starts_at_random_is_no_fault():
    report = check(torch.nn.Embedding, "learned(14, shape=(61,))")
    assert report.acquitted
    assert report.findings == ()
    assert {m.name: m.value for m in report.measured}["rows"] == 61


def test_a_seeded_construction_leaves_the_user_s_random_numbers_alone():
    draws = (lambda: float(torch.rand(())), lambda: float(np.random.random()), random.random)
    for seed, draw in zip((torch.manual_seed, np.random.seed, random.seed), draws, strict=True):
        seed(5)
        expected = [draw(), draw()]
        seed(5)
        first = draw()
        with chance():
            inside = draw()
        with chance():
            assert draw() == inside
        assert [first, draw()] == expected


class RandomBuffer(torch.nn.Module):
    """A random table that no state_dict holds."""

    def __init__(self, rows, dim):
        super().__init__()
        self.register_buffer("table", torch.randn(rows, dim), persistent=False)

    def forward(self, positions):
        return self.table[positions]


def test_a_random_table_that_is_not_saved_is_found():
    report = check(RandomBuffer, "learned(14, shape=(61,))")
    assert ("buffer-state-dict",) in kinds(report)
    assert any("loading its own state_dict" in f.title for f in report.findings)


def made(keyed):
    """A class with one cache for all its objects."""
    cache = {}

    class Rotary:
        def __init__(self, dim, base=10000.0):
            self.dim, self.base = dim, base

        def __call__(self, x, positions):
            return turned(x, positions, cache.setdefault((self.dim, self.base if keyed else None), self.base))

    return Rotary


def test_a_cache_shared_by_objects_needs_the_base_in_its_key():
    report = check(made(keyed=False), "rotary(22, base=7000, interleaved=True)")
    assert ("state-leak", "config-parsing") in kinds(report)
    assert any("two objects made with different bases" in f.title for f in report.findings)
    assert check(made(keyed=True), "rotary(22, base=7000, interleaved=True)").findings == ()


class Newest:
    """The object that was asked last decides for the next one."""

    base = None

    def __init__(self, dim, base=10000.0):
        self.dim, self.own = dim, base

    def __call__(self, x, positions):
        now, Newest.base = Newest.base or self.own, self.own
        return turned(x, positions, now)


def test_an_object_that_another_one_changes_is_found():
    report = check(Newest, "rotary(22, base=7000, interleaved=True)")
    (found,) = [f for f in report.findings if f.verdict == "defect"]
    assert found.kinds == ("state-leak", "config-parsing")
    assert "once another" in found.title


class Decoder:
    """Turns queries and keys, and the last queries with all keys."""

    def __init__(self, late=True):
        self.late = late

    def rotate_queries_or_keys(self, x):
        return turned(x, np.arange(x.shape[-2]))

    def rotate_queries_with_cached_keys(self, q, k):
        first = k.shape[-2] - q.shape[-2] if self.late else 0
        return turned(q, np.arange(q.shape[-2]) + first), self.rotate_queries_or_keys(k)


def test_queries_with_cached_keys_stand_at_the_end():
    assert check(Decoder(), "rotary(22, interleaved=True)").findings == ()
    report = check(Decoder(late=False), "rotary(22, interleaved=True)")
    (found,) = [f for f in report.findings if f.verdict == "defect"]
    assert found.kinds == ("offset-cache",)
    assert "cached keys" in found.title
    # the same score by hand, for the query and key that are named
    q, k = np.random.default_rng(31).normal(size=(2, 1, 41, 22))
    j = int(found.evidence[0].where.split("key ")[1].split(",")[0])
    right = turned(q[0, 40:], [40])[0] @ turned(k[0, j : j + 1], [j])[0]
    wrong = turned(q[0, 40:], [0])[0] @ turned(k[0, j : j + 1], [j])[0]
    assert found.evidence[0].expected == pytest.approx(right, rel=1e-4)
    assert found.evidence[0].seen == pytest.approx(wrong, rel=1e-4)


class Padded:
    """A table that is told where rows begin."""

    def __init__(self, how):
        self.how = how

    def __call__(self, x, seq_start_pos=None):
        at = np.arange(x.shape[-2], dtype=np.float64)
        if seq_start_pos is not None and self.how != "ignores":
            at = np.maximum(at - np.asarray(seq_start_pos)[:, None], 0)
            if self.how == "fails" and at.ndim == 2:
                raise RuntimeError("one dimension too many")
        rows = sinusoidal_table(parse("sinusoidal(34)")[0], at.ravel()).reshape(*at.shape, 34)
        return np.broadcast_to(rows, (*x.shape[:-2], *rows.shape[-2:]))


@pytest.mark.parametrize(("how", "title"), [("counts", None), ("ignores", "behind padding"), ("fails", "fails")])
def test_rows_behind_padding_start_at_the_first_row(how, title):
    report = check(Padded(how), "sinusoidal(34)")
    assert report.could_not_run is None, report.could_not_run
    found = [f.title for f in report.findings if f.kinds == ("mask-padding",) and f.verdict == "defect"]
    if title is None:
        assert found == []
        assert report.acquitted
    else:
        assert title in found[0]


def axial(lead, parts, base=10000.0):
    """Sines and cosines by turns of every axis, each over its own width: for ``(…, sizes, channels)``."""

    def table(x):
        sizes = x.shape[lead:-1]
        at = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), -1).astype(float)
        columns = []
        for axis, pairs in parts:
            for i in range(pairs):
                angle = at[..., axis] * base ** (-i / pairs)
                columns += [np.sin(angle), np.cos(angle)]
        return np.broadcast_to(np.stack(columns, -1), (*x.shape[:lead], *sizes, len(columns)))

    return table


@pytest.mark.parametrize(
    ("line", "parts", "verdicts"),
    [
        ("sinusoidal(22, axes=split((6, 5)))", [(0, 6), (1, 5)], []),
        ("sinusoidal(20, axes=split((5, 5)))", [(1, 5), (0, 5)], ["convention"]),
        ("sinusoidal(34, axes=split((6, 5, 6)))", [(0, 6), (1, 5), (2, 6)], []),
        ("sinusoidal(30, axes=split((5, 5, 5)))", [(2, 5), (0, 5), (1, 5)], ["convention"]),
        ("sinusoidal(30, axes=split((5, 5, 5)))", [(0, 5), (1, 5), (1, 5)], ["defect"]),
        ("sinusoidal(20, axes=split((5, 5)))", [(0, 5), (0, 5)], ["defect"]),
    ],
)
def test_an_array_on_a_grid_is_asked_with_different_sizes(line, parts, verdicts):
    def tabulate(x):
        return axial(1, parts)(x)

    report = check(tabulate, line, probes=False)
    assert report.could_not_run is None, report.could_not_run
    assert [f.verdict for f in report.findings] == verdicts
    if verdicts == ["defect"]:
        assert "an axis is dropped" in report.findings[0].title
    first = check(lambda x: np.moveaxis(axial(1, parts)(np.moveaxis(x, 1, -1)), -1, 1), line, probes=False)
    assert [f.verdict for f in first.findings] == verdicts  # channels first


def test_channels_of_a_grid_in_another_order_are_a_convention():
    def tabulate(grid_size):
        table = axial(0, [(0, 5), (1, 5)])(np.zeros((*grid_size, 20))).reshape(-1, 20)
        return np.concatenate([table[:, ::2], table[:, 1::2]], axis=1)  # all sines, then all cosines

    report = check(tabulate, "sinusoidal(20, axes=split((5, 5)))")
    assert [f.verdict for f in report.findings] == ["convention"]
    wrong = check(lambda grid_size: tabulate(grid_size) ** 3, "sinusoidal(20, axes=split((5, 5)))")
    assert [f.verdict for f in wrong.findings] == ["defect"]


def test_angles_with_a_scale_are_read_and_a_centre_that_moves_is_a_convention():
    scale = (np.arange(0, 22, 2) + 0.4 * 22) / (1.4 * 22)

    def waves(positions):
        at = np.asarray(positions, dtype=np.float64)
        centre = (at.max() + 1) // 2
        angle = np.outer(at, 10000.0 ** (-np.arange(0, 22, 2) / 22))
        return np.repeat(angle, 2, axis=1), np.repeat(scale ** ((at[:, None] - centre) / 512), 2, axis=1)

    report = check(waves, "rotary(22, interleaved=True, xpos_scale_base=512.0)")
    assert report.acquitted
    assert ("offset-cache",) in kinds(report, "convention")
    fixed = check(lambda positions: (waves(positions)[0], np.repeat(scale ** (
        np.asarray(positions, dtype=np.float64)[:, None] / 512), 2, axis=1)),
        "rotary(22, interleaved=True, xpos_scale_base=512.0)")  # fmt: skip
    assert fixed.findings == ()


def test_an_ntk_factor_that_divides_the_frequencies_is_named():
    def wrong(x, positions):
        return turned(x, np.asarray(positions) / 4.0 ** (26 / 24))

    report = check(wrong, "rotary(26, interleaved=True) >> ntk(4)", probes=False)
    (found,) = report.findings
    assert found.verdict == "defect"
    assert {r.name: r.value for r in found.recovered}["every frequency divided by"] == pytest.approx(4 ** (26 / 24))
    assert "first one" in found.cause


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_right_subject_asked_in_half_precision_is_acquitted(dtype):
    class Right(torch.nn.Module):
        def forward(self, x, positions):
            angle = positions.double()[:, None] * 10000.0 ** (-torch.arange(0, 26, 2).double() / 26)
            z = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
            return torch.view_as_real(z * torch.polar(torch.ones_like(angle), angle)).flatten(-2).to(x.dtype)

    report = check(Right(), "rotary(26, interleaved=True)", dtype=dtype)
    assert kinds(report) == []
    assert report.acquitted
