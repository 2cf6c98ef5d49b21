"""Files as people write them: one piece makes cosines and sines, another applies them."""

from __future__ import annotations

import textwrap

import pytest

from posenc.checker.checking import check

PRECOMPUTED = """
    import torch

    def precompute(dim, end, theta=10000.0):
        freqs = theta ** (-torch.arange(0, dim, 2)[: dim // 2].float() / dim)
        angles = torch.outer(torch.arange(end).float(), freqs)
        return torch.polar(torch.ones_like(angles), angles)

    def broadcast(waves, x):
        return waves.view(1, x.shape[1], 1, x.shape[-1])

    def apply(xq, xk, freqs_cis):
        q, k = (torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)) for x in (xq, xk))
        waves = broadcast(freqs_cis, q)
        return tuple(torch.view_as_real(x * waves).flatten(3).type_as(xq) for x in (q, k))
"""

CACHED = """
    import torch
    from torch import nn

    class Cached(nn.Module):
        def __init__(self, dim, max_position_embeddings=211, base=10000):
            super().__init__()
            self.register_buffer("inv_freq", 1.0 / base ** (torch.arange(0, dim, 2).float() / dim))
            self.grow(max_position_embeddings)

        def grow(self, n):
            self.rows = n
            angles = torch.outer(torch.arange(n).float(), self.inv_freq)
            angles = torch.cat((angles, angles), -1)
            self.register_buffer("cos", angles.cos(), persistent=False)
            self.register_buffer("sin", angles.sin(), persistent=False)

        def forward(self, x, seq_len=None):
            if seq_len > self.rows:
                self.grow(seq_len)
            return self.cos[:seq_len].to(x.dtype), self.sin[:seq_len].to(x.dtype)

    def rotate_half(x):
        a, b = x.chunk(2, -1)
        return torch.cat((-b, a), -1)

    def turn(q, k, cos, sin, position_ids):
        cos, sin = (v[position_ids].unsqueeze(1) for v in (cos, sin))
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
"""

ANGLES = """
    import torch

    def angles(dim, seq_len, base=10000.0):
        freqs = base ** (-torch.arange(0, dim, 2).float() / dim)
        return torch.outer(torch.arange(seq_len).float(), freqs).repeat(1, 2)

    def turn(x, freqs):
        a, b = x.chunk(2, -1)
        return x * freqs.cos() + torch.cat((-b, a), -1) * freqs.sin()
"""

WITH_HELPER = """
    import torch

    def rotate_half(x):
        a, b = x.chunk(2, -1)
        return torch.cat((-b, a), -1)

    class Turns(torch.nn.Module):
        def __init__(self, dim, base=10000):
            super().__init__()
            self.register_buffer("inv_freq", 1.0 / base ** (torch.arange(0, dim, 2).float() / dim))

        def forward(self, x, positions):
            angles = torch.outer(positions.float(), self.inv_freq).repeat(1, 2)
            return x * angles.cos() + rotate_half(x) * angles.sin()
"""


@pytest.fixture
def written(tmp_path):
    def write(text, *changes):
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "positions.py"
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


def defects(report):
    return [f for f in report.findings if f.verdict == "defect"]


def test_complex_waves_and_their_application_are_one_subject(written):
    report = check(written(PRECOMPUTED), "rotary(22, interleaved=True)")
    assert report.acquitted, report.could_not_run or report.findings
    assert "examined apply with what precompute makes" in report.assumed


def test_a_fault_of_the_maker_is_named(written):
    twice = "theta ** (-torch.arange(0, dim, 2)", "theta ** (-2 * torch.arange(0, dim, 2)"
    report = check(written(PRECOMPUTED, twice), "rotary(22, interleaved=True)")
    (found,) = defects(report)
    assert "exponent" in found.kinds


def test_each_right_alone_and_wrong_together(written):
    """The maker lays angles out (a, b, a, b); the rotation pairs neighbours."""
    wrong = (
        ("a, b = x.chunk(2, -1)", "a, b = x[..., ::2], x[..., 1::2]"),
        (
            "torch.cat((-b, a), -1)",
            "torch.stack((-b, a), -1).flatten(-2)",
        ),
    )
    right = check(written(CACHED), "rotary(22)")
    assert right.acquitted, right.could_not_run or right.findings
    (found,) = defects(check(written(CACHED, *wrong), "rotary(22)"))
    assert found.kinds == ("layout",)
    assert "(a, b, a, b)" in (found.cause or "")


@pytest.mark.parametrize("name", ["", ":turn"])
def test_angles_are_handed_over(written, name):
    """From the piece that makes them, and those of the wanted encoding to the function alone."""
    report = check(written(ANGLES) + name, "rotary(22)")
    assert report.acquitted, report.could_not_run or report.findings
    twice = check(
        written(ANGLES, ("freqs.cos()", "(2 * freqs).cos()"), ("freqs.sin()", "(2 * freqs).sin()")) + name, "rotary(22)"
    )
    assert defects(twice)


def test_angles_are_handed_over_as_callers_make_them(written):
    """Not wrapped: an application that rounds them to bfloat16 loses whole turns far out."""
    rounded = ("freqs.cos()", "freqs.bfloat16().float().cos()"), ("freqs.sin()", "freqs.bfloat16().float().sin()")
    (found,) = defects(check(written(ANGLES, *rounded) + ":turn", "rotary(22)", probes=False))
    largest = next(e for e in found.evidence if e.name == "largest angle error")
    assert largest.seen > 1


def test_identified_together(written):
    report = check(written(CACHED, ("base=10000", "base=500000")))
    assert report.identified[0].notation == "rotary(64, base=500000)"


def test_a_helper_is_not_the_subject(written):
    report = check(written(WITH_HELPER), "rotary(22)")
    assert report.acquitted
    assert any(text.startswith("examined Turns alone") for text in report.assumed)


def test_nothing_that_can_be_called_is_said(written):
    report = check(
        written("def rotate_half(x):\n    return x\n\ndef other(thing, wheel):\n    return thing"), "rotary(22)"
    )
    assert "two that belong together" in report.could_not_run
    assert "rotate_half" in report.could_not_run


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_argument_of_which_only_the_shape_is_read_is_no_position(written, axis):
    """As nanoGPT's descendants write it: forward(x) looks at one size of x alone."""
    shape = """
        import torch

        class Rotary(torch.nn.Module):
            def __init__(self, dim, base=10000):
                super().__init__()
                self.register_buffer("inv_freq", 1.0 / base ** (torch.arange(0, dim, 2).float() / dim))

            def forward(self, x):
                angles = torch.outer(torch.arange(x.shape[1]).type_as(self.inv_freq), self.inv_freq)
                return angles.cos()[None, :, None, :], angles.sin()[None, :, None, :]
    """
    shape = shape.replace("shape[1]", f"shape[{axis}]")
    report = check(written(shape), "rotary(22)")
    assert report.acquitted, report.could_not_run or report.findings
    wrong = check(written(shape, ("/ dim))", "/ (dim // 2)))")), "rotary(22)")
    assert {"exponent"} <= {kind for f in defects(wrong) for kind in f.kinds}
