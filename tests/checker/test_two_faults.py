"""One fault does not hide another, and does not breed false ones."""

from __future__ import annotations

import pytest

from posenc.checker.checking import check

torch = pytest.importorskip("torch")


class Rounded(torch.nn.Module):
    """Angles in bfloat16 before the cosine, laid out for halves; ``neighbours`` turns pairs (2i, 2i + 1) with them."""

    def __init__(self, dim, base=10000.0, neighbours=False, dtype=torch.bfloat16):
        super().__init__()
        angles = torch.outer(torch.arange(523.0), base ** (-torch.arange(0, dim, 2) / dim)).repeat(1, 2).to(dtype)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.neighbours = neighbours

    def forward(self, x, positions):
        cos, sin = self.cos[positions], self.sin[positions]
        if self.neighbours:
            turned = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
        else:
            turned = torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), -1)
        return x * cos + turned * sin


def defects(subject, call="x, positions"):
    report = check(subject, "rotary(22)", call=call, library="torch", probes=False)
    assert report.could_not_run is None
    return [f for f in report.findings if f.verdict == "defect"]


def test_rounded_angles_are_one_fault():
    """Their cosines and sines make gains uneven: neither a growth nor a factor."""
    (found,) = defects(Rounded(22))
    assert "precision" in found.kinds
    assert [r.value for r in found.recovered] == ["bfloat16"]
    assert found.first_wrong.position > 0
    angle = found.evidence[0]
    assert abs(angle.seen - angle.expected) > 2.0**-12


def test_a_layout_does_not_hide_the_rounding():
    layout, rounding = sorted(defects(Rounded(22, neighbours=True)), key=lambda f: f.kinds)
    assert layout.kinds == ("layout",)
    assert "precision" in rounding.kinds
    assert [r.value for r in rounding.recovered] == ["bfloat16"]


def test_a_layout_alone_is_one_fault():
    (found,) = defects(Rounded(22, neighbours=True, dtype=torch.float32))
    assert found.kinds == ("layout",)


def test_a_small_growth_is_still_seen():
    """Of e-fold over 4,000 positions, with exact cosines."""

    class Growing(Rounded):
        def forward(self, x, positions):
            return super().forward(x, positions) * torch.exp(positions / 4000)[:, None]

    (found,) = defects(Growing(22, dtype=torch.float32))
    assert found.title == "gains grow with position otherwise than wanted"
    assert found.evidence[0].seen == pytest.approx(1 / 4000, rel=1e-2)


@pytest.mark.parametrize(
    ("key_shift", "key_gain", "kind", "recovered"),
    [(1, 1.0, "offset-cache", 1.0), (-3, 1.0, "offset-cache", -3.0), (0, 1.25, "attention-factor", 1.25)],
)
def test_keys_elsewhere_than_queries(key_shift, key_gain, kind, recovered):
    """Queries are right; keys take the right frequencies at other positions, or a factor of their own."""
    turn = Rounded(22, dtype=torch.float64)

    def both(q, k, positions):
        return turn(q, positions + 5), key_gain * turn(k, positions + 5 + key_shift)

    found = [f for f in defects(both, "q, k, positions") if f.kinds == (kind,)]
    assert [r.value for f in found for r in f.recovered] == [pytest.approx(recovered, rel=1e-5)]


def test_keys_that_are_not_turned():
    turn = Rounded(22, dtype=torch.float64)
    (found,) = defects(lambda q, k, positions: (turn(q, positions), k), "q, k, positions")
    assert found.cause == "keys are not turned"
