"""Sinusoids, trained tables and corrections at the input, against the papers' loops, float64 formulas, transformers."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import torch
from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.whisper.modeling_whisper import sinusoids

from posenc.errors import ShapeError, SpecError
from posenc.formulas import adjusted_table, hierarchical_table, levels_of, sinusoidal_entry, sinusoidal_table
from posenc.nn import Positions, build
from posenc.nn.hierarchical import HierarchicalEncoding, sentence_positions
from posenc.nn.inputs import AdaptiveSinusoid, SinusoidalEncoding
from posenc.nn.learned import AdjustedSinusoid, LearnedTable
from posenc.spec import Adjusted, Geometric, Hierarchical, Interleave, Learned, Sinusoidal, Split

VALUES = [
    Sinusoidal(14),
    Sinusoidal(7, base=100.0),
    Sinusoidal(7, order="interleaved_cos_first"),
    Sinusoidal(10, order="sin|cos", shift=1.0),
    Sinusoidal(11, order="cos|sin", odd="zero", shift=0.5),
    Sinusoidal(13, order="sin|cos", odd="zero", shift=1.0, offset=2, padding_row=5),
    Sinusoidal(10, prefix=3),
]


def rows(value, positions, dtype=torch.float64):
    return SinusoidalEncoding(value).vectors(torch.as_tensor(positions), dtype)[0].double().numpy()


@pytest.mark.parametrize("value", VALUES, ids=str)
@pytest.mark.parametrize("positions", [[0, 1, 3, 17, 5], [0.25, 1.5, 3.0, -2.75, 1000.125]])
def test_every_entry_is_the_scalar_definition(value, positions):
    at = torch.tensor(positions, dtype=torch.float64 if isinstance(positions[0], float) else torch.int64)
    found = rows(value, at)
    wanted = [[sinusoidal_entry(value, p, c) for c in range(value.dim)] for p in positions]
    assert np.abs(found[value.prefix :] - wanted).max() < 1e-13
    assert (found[: value.prefix] == 0).all()
    assert found.shape == (value.prefix + 5, value.dim)


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_grown_table_is_what_is_computed(value):
    encoding = SinusoidalEncoding(value)
    wanted = sinusoidal_table(value, np.arange(301))
    for n in (3, 65, 200, 67, 301):  # grows twice, never comes out short
        found = encoding(torch.zeros(2, value.prefix + n, value.dim))
        assert np.abs(found[1].numpy() - wanted[: value.prefix + n]).max() < 1e-7
    ids = torch.tensor([[290, 4, 7], [5, 5, 600]])
    again = encoding.vectors(ids)[1, value.prefix :].double().numpy()
    assert np.abs(again - sinusoidal_table(value, [5, 5, 600])[value.prefix :]).max() < 1e-7


def test_numbers_of_the_paper():
    found = rows(Sinusoidal(8), [3])[0]
    wanted = [
        0.1411200080598672, -0.9899924966004454, 0.2955202066613396, 0.955336489125606,
        0.02999550020249566, 0.9995500337489875, 0.002999995500002025, 0.999995500003375,
    ]  # fmt: skip
    assert np.abs(found - wanted).max() < 1e-15


def test_numbers_of_tensor2tensor():
    found = rows(Sinusoidal(8, order="sin|cos", shift=1.0), [3])[0]
    wanted = [
        0.1411200080598672, 0.13879810108005047, 0.0064632590701896, 0.0002999999955,
        -0.9899924966, 0.9903206991356750, 0.99997911292296, 0.999999955,
    ]  # fmt: skip
    assert np.abs(found - wanted).max() < 1e-10


@pytest.mark.parametrize(
    ("order", "shift", "wanted"),
    [
        ("sin|cos", 1.0, [-0.544021110889, 0.447670834719, 0.021542680272, 0.000999999833, -0.839071529076,
                          0.894198425263, 0.999767929535, 0.9999995]),
        ("cos|sin", 0.0, [-0.839071529076, 0.540302305868, 0.995004165278, 0.999950000417, -0.544021110889,
                          0.841470984808, 0.099833416647, 0.009999833334]),
    ],
)  # fmt: skip
def test_diffusion_time_steps(order, shift, wanted):
    """DDPM, and Stable Diffusion with its halves swapped; time steps are real positions."""
    encoding = SinusoidalEncoding(8, order=order, schedule=Geometric(shift=shift))
    found = encoding.vectors(torch.tensor([10.0, 2.5]))
    assert np.abs(found[0, 0].numpy() - wanted).max() < 1e-7
    assert found.shape == (1, 2, 8)


@pytest.mark.parametrize("position", [10**6 + 3, 10**9 - 7, 10**9])
def test_large_integer_positions(position):
    with mpmath.workdps(40):
        wanted = [
            [mpmath.sin, mpmath.cos][c % 2](position * mpmath.mpf(10000) ** (-mpmath.mpf(c // 2 * 2) / 14))
            for c in range(14)
        ]
    assert np.abs(rows(Sinusoidal(14), [position]) - np.array(wanted, dtype=float)).max() < 1e-8
    assert np.abs(rows(Sinusoidal(14), [position], torch.float32) - np.array(wanted, dtype=float)).max() < 1e-7


def test_whisper():
    found = SinusoidalEncoding(22, order="sin|cos", shift=1.0).vectors(torch.arange(1500))[0]
    assert (found - sinusoids(1500, 22)).abs().max() < 1.5e-4  # transformers' angles are float32
    assert (found[:16] - sinusoids(16, 22)).abs().max() < 2e-6


@pytest.mark.parametrize("dim", [14, 15])
def test_m2m100_and_fairseq(dim):
    theirs = M2M100SinusoidalPositionalEmbedding(23, dim, padding_idx=1)
    value = Sinusoidal(dim, order="sin|cos", shift=1.0, odd="zero", offset=2, padding_row=1)
    tokens = torch.tensor([[7, 5, 9, 1, 1], [8, 8, 3, 4, 6]])
    real = (tokens != 1).long()
    found = SinusoidalEncoding(value)(torch.zeros(2, 5, dim), real.cumsum(1) * real - 1)
    assert (found - theirs(tokens)).abs().max() < 1e-6
    assert (found[0, 3:] == 0).all()
    assert found[0, 2].abs().sum() > 1
    assert np.abs(theirs.weights.numpy() - sinusoidal_table(value, np.arange(-2, 23))).max() < 1e-5


def test_several_axes():
    value = Sinusoidal(20, order="sin|cos", base=50.0, axes=Split((3, 5, 2)))
    at = np.array([[1, 2, 3], [0, 7, 1], [11, 0, 5], [2, 2, 2]])
    found = SinusoidalEncoding(value)(torch.zeros(2, 4, 20), torch.from_numpy(at.T.copy()))[1]
    wanted = [[sinusoidal_entry(value, p, c) for c in range(20)] for p in at.tolist()]
    assert np.abs(found.numpy() - wanted).max() < 1e-7
    mixed = Sinusoidal(10, axes=Interleave((3, 2)))
    found = SinusoidalEncoding(mixed).vectors(torch.tensor([[4], [9]]))[0, 0]
    assert np.abs(found.numpy() - [sinusoidal_entry(mixed, (4, 9), c) for c in range(10)]).max() < 1e-7


def test_half_precision_is_one_rounding():
    x = torch.randn(3, 19, 14)
    encoding = SinusoidalEncoding(14)
    for dtype in (torch.bfloat16, torch.float16):
        exact = x.to(dtype).double() + torch.from_numpy(sinusoidal_table(Sinusoidal(14), np.arange(19)))
        assert torch.equal(encoding(x.to(dtype)), (x.to(dtype) + encoding.vectors(torch.arange(19))).to(dtype))
        assert (encoding(x.to(dtype)).double() - exact).abs().max() <= exact.abs().max() * torch.finfo(dtype).eps


def test_nothing_is_saved_or_counted():
    encoding = SinusoidalEncoding(14)
    assert not encoding.state_dict()
    assert not list(encoding.parameters())
    assert not list(encoding.buffers())
    assert "base=500" in repr(SinusoidalEncoding(14, base=500.0))


# ---------------------------------------------------------------------------------------------- trained frequencies


def test_adaptive_starts_at_the_schedule_exactly_and_stays_positive():
    fixed, adaptive = SinusoidalEncoding(11, base=300.0), AdaptiveSinusoid(11, base=300.0)
    at = torch.tensor([0, 3, 101, 5000])
    assert torch.equal(fixed.vectors(at, torch.float32), adaptive.vectors(at, torch.float32))
    assert [p.shape for p in adaptive.parameters()] == [(6,)]
    optimiser = torch.optim.SGD(adaptive.parameters(), lr=0.05)
    for _ in range(5):
        optimiser.zero_grad()
        adaptive.vectors(torch.arange(7)).sum().backward()
        optimiser.step()
    theta = adaptive.theta(torch.device("cpu")).detach()
    assert (theta > 0).all()
    assert not torch.equal(theta, fixed.theta(torch.device("cpu")))
    assert type(build("sinusoidal(8, learned=True)")) is AdaptiveSinusoid


def test_adaptive_value_and_gradient_against_a_loop():
    encoding = AdaptiveSinusoid(7, base=20.0).double()
    with torch.no_grad():
        encoding.log_ratio.copy_(torch.tensor([0.3, -0.2, 0.1, 0.5], dtype=torch.float64))
    found = encoding.vectors(torch.tensor([2.5, 7.0], dtype=torch.float64), torch.float64)[0]
    for n, p in enumerate([2.5, 7.0]):
        for c in range(7):
            theta = 20.0 ** (-(c // 2 * 2) / 7) * math.exp([0.3, -0.2, 0.1, 0.5][c // 2])
            assert found[n, c].item() == pytest.approx([math.sin, math.cos][c % 2](p * theta), abs=1e-12)

    def run(log_ratio):
        return torch.func.functional_call(encoding, {"log_ratio": log_ratio}, (torch.zeros(1, 5, 7).double(),))

    assert torch.autograd.gradcheck(run, (encoding.log_ratio.detach().clone().requires_grad_(),))


def test_a_frequency_of_zero_cannot_be_trained():
    with pytest.raises(SpecError, match="start positive"):
        AdaptiveSinusoid(8, keep=0.5)


# -------------------------------------------------------------------------------------------------- learned tables


def test_learned_reads_the_rows_of_its_value():
    value = Learned(5, shape=(11,), offset=2, prefix=3)
    table = LearnedTable(value)
    x = torch.randn(2, 3 + 4, 5)
    ids = torch.tensor([[0, 10, 3, 3], [9, 1, 0, 7]])
    found = table(x, ids)
    for b in range(2):
        for n in range(7):
            row = n if n < 3 else 3 + 2 + ids[b, n - 3].item()
            assert torch.equal(found[b, n], x[b, n] + table.weight[row])
    assert torch.equal(table(x), table(x, torch.arange(4)))
    assert [tuple(p.shape) for p in table.parameters()] == [(16, 5)]
    with_ids_for_all = torch.cat((torch.zeros(2, 3, dtype=torch.int64), ids), 1)
    assert torch.equal(table(x, with_ids_for_all), found)


def test_learned_grid():
    table = LearnedTable(4, shape=(3, 5), prefix=1)
    x = torch.zeros(1, 16, 4)
    rows, columns = torch.meshgrid(torch.arange(3), torch.arange(5), indexing="ij")
    assert torch.equal(table(x), table(x, torch.stack((rows.flatten(), columns.flatten()))))
    assert torch.equal(table.vectors(torch.tensor([[2], [3]]))[0, 1], table.weight[1 + 2 * 5 + 3])
    with pytest.raises(ShapeError, match="3 x 5 cells takes 15"):
        table(torch.zeros(1, 15, 4))


TABLES = [
    lambda **options: LearnedTable(4, shape=(7,), **options),
    lambda **options: AdjustedSinusoid(Sinusoidal(4), shape=(7,), **options),
    lambda **options: AdjustedSinusoid(Sinusoidal(4), shape=(7,), form="scale_shift", **options),
]


@pytest.mark.parametrize("make", TABLES)
def test_past_the_last_row_and_past_the_trained_rows(make):
    table, x = make(), torch.zeros(1, 1, 4)
    with pytest.raises(ShapeError, match=r"rows for positions 0 to 6; got 7\. A learned table does not extrapolate"):
        table(x, torch.tensor([7]))
    with pytest.raises(ShapeError, match=r"rows for positions 0 to 6; got -1"):
        table(x, torch.tensor([-1]))
    with pytest.raises(ShapeError, match="0 to 6; got 8 tokens"):
        table(torch.zeros(1, 8, 4))
    with pytest.raises(ShapeError, match="integers"):
        table(x, torch.tensor([1.0]))
    table = make(trained=5)
    table(x, torch.tensor([4]))
    with pytest.raises(ShapeError, match="first 5 positions were ever trained; got 5"):
        table(x, torch.tensor([5]))
    with pytest.raises(ShapeError, match="first 5 positions were ever trained; got 6 tokens"):
        table(torch.zeros(1, 6, 4))
    with pytest.raises(SpecError, match="between 1 and 7"):
        make(trained=8)


def test_where_none_may_look_a_missing_row_is_nan():
    table = LearnedTable(4, shape=(7,), trained=6, prefix=1)
    ids = torch.tensor([[2, 7], [-1, 6]])
    found = torch.vmap(lambda at: table(torch.zeros(3, 4), at))(ids)
    assert found.isnan().all(-1).tolist() == [[False, False, True], [False, True, True]]


def test_learned_gradients():
    table = LearnedTable(3, shape=(4,), offset=1, prefix=1, combine="weighted").double()
    x = torch.randn(2, 1 + 2, 3, dtype=torch.float64, requires_grad=True)
    names = [n for n, _ in table.named_parameters()]

    def run(x, *parameters):
        return torch.func.functional_call(
            table, dict(zip(names, parameters, strict=True)), (x, torch.tensor([[3, 0], [1, 1]]))
        )

    assert torch.autograd.gradcheck(run, (x, *[p.detach().clone().requires_grad_() for p in table.parameters()]))


def test_resampling_a_table_keeps_prefix_and_offset_rows():
    table = LearnedTable(4, shape=(6,), offset=1, prefix=2)
    longer = table.resample(11, "linear")
    assert longer.value == Learned(4, shape=(11,), offset=1, prefix=2)
    assert torch.equal(longer.weight[:3], table.weight[:3])
    wanted = torch.nn.functional.interpolate(table.weight[3:].T[None], size=11, mode="linear")[0].T
    assert (longer.weight[3:] - wanted).abs().max() < 1e-6
    assert longer.weight.requires_grad
    assert longer(torch.zeros(1, 13, 4)).shape == (1, 13, 4)


# ---------------------------------------------------------------------------------------------------- corrections


@pytest.mark.parametrize("form", ["table", "scale_shift"])
def test_adjusted_against_its_formula(form):
    value = Adjusted(Sinusoidal(6, base=30.0, prefix=1), shape=(9,), form=form)
    encoding = AdjustedSinusoid(value)
    at = [3, 0, 8]
    assert (
        encoding.vectors(torch.tensor(at)) - SinusoidalEncoding(value.sinusoid).vectors(torch.tensor(at))
    ).norm() == 0
    with torch.no_grad():
        for p in encoding.parameters():
            p.normal_()
    parts = {name: p.detach().double().numpy() for name, p in encoding.named_parameters()}
    assert set(parts) == ({"correction"} if form == "table" else {"scale", "shift"})
    found = encoding.vectors(torch.tensor(at), torch.float64)[0].detach().numpy()
    assert np.abs(found - adjusted_table(value, at, **parts)).max() < 1e-14
    assert (found[0] == 0).all()
    count = 9 * 6 if form == "table" else 2 * 6
    assert sum(p.numel() for p in encoding.parameters()) == count  # the sinusoid is not counted
    assert sum(t.numel() for t in encoding.state_dict().values()) == count  # nor saved


def test_adjusted_gradients_and_grid():
    for form in ("table", "scale_shift"):
        value = Adjusted(Sinusoidal(8, axes=Split((2, 2))), shape=(2, 3), form=form)
        encoding = AdjustedSinusoid(value).double()
        x = torch.randn(2, 6, 8, dtype=torch.float64)
        names = [n for n, _ in encoding.named_parameters()]

        def run(*parameters, encoding=encoding, names=names, x=x):
            return torch.func.functional_call(encoding, dict(zip(names, parameters, strict=True)), (x,))

        assert torch.autograd.gradcheck(run, tuple(torch.randn_like(p).requires_grad_() for p in encoding.parameters()))
        cells = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]])
        assert torch.equal(encoding(x), encoding(x, cells))


# ---------------------------------------------------------------------------------------------------- several scales


def test_levels_side_by_side():
    value = Hierarchical((Sinusoidal(4, base=24.0), Sinusoidal(7), Sinusoidal(6, order="cos|sin")), sizes=(24, 7))
    index = [0, 23, 24, 24 * 7 - 1, 24 * 7 * 5 + 24 * 3 + 11]
    found = HierarchicalEncoding(value)(torch.zeros(2, 5, 17), torch.tensor(index))[0].double().numpy()
    wanted = []
    for t in index:
        at = (t % 24, t // 24 % 7, t // (24 * 7))
        wanted.append(
            [sinusoidal_entry(level, p, c) for level, p in zip(value.levels, at, strict=True) for c in range(level.dim)]
        )
    assert np.abs(found - wanted).max() < 1e-7
    assert np.abs(hierarchical_table(value, index) - wanted).max() < 1e-14
    assert levels_of(value, [-1]).tolist() == [[23, 6, -1]]
    half = HierarchicalEncoding(value).vectors(torch.tensor([24.5]), torch.float64)[0].numpy()
    assert np.abs(half - hierarchical_table(value, [24.5])).max() < 1e-14


def test_sentences_and_documents():
    starts = torch.tensor([[1, 0, 0, 1, 0, 1, 0, 0, 1], [0, 0, 1, 0, 0, 0, 1, 1, 0]]).bool()
    document = torch.tensor([[0, 0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1, 1, 1]])
    found = sentence_positions(starts, document).ids
    assert found[:, 0].tolist() == [[0, 1, 2, 0, 1, 0, 1, 2, 0], [0, 0, 0, 1, 1, 0, 0, 0, 1]]
    assert found[:, 1].tolist() == [[0, 1, 0, 1, 0, 1, 0, 0, 1], [0, 0, 1, 1, 0, 0, 1, 2, 2]]
    value = Hierarchical((Sinusoidal(4), Sinusoidal(6)))
    encoding, x = HierarchicalEncoding(value), torch.randn(2, 9, 10)
    together = encoding(x, sentence_positions(starts, document))
    alone = encoding(x[1:, 4:], sentence_positions(starts[1:, 4:]))
    assert torch.equal(together[1:, 4:], alone)
    wanted = hierarchical_table(value, found[:, 1].T.numpy())
    assert np.abs((together - x)[1].double().numpy() - wanted).max() < 1e-6


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("at", "rule"),
    [
        (torch.zeros(3, 5, dtype=torch.int64), "positions are as many as the tokens"),
        (torch.arange(4), "positions are as many as the tokens"),
        (torch.zeros(2, 3, 5, dtype=torch.int64), "the same for all heads"),
        (Positions(torch.zeros(1, 1, 1, 5)), "ids are"),
        (torch.zeros(5, dtype=torch.bool), "integers or real"),
        (torch.zeros(5, dtype=torch.bfloat16), "float32 or float64"),
        (torch.tensor([0.0, 1, 2, 3, math.nan]), "finite"),
    ],
)
def test_positions_that_do_not_fit(at, rule):
    with pytest.raises(ShapeError, match=rule):
        SinusoidalEncoding(6)(torch.zeros(2, 5, 6), at)


def test_content_that_does_not_fit():
    with pytest.raises(ShapeError, match=r"\(batch, tokens, 6\)"):
        SinusoidalEncoding(6)(torch.zeros(2, 5, 7))
    with pytest.raises(ShapeError, match="content is"):
        SinusoidalEncoding(6)(torch.zeros(2, 5, 6, dtype=torch.int64))
    with pytest.raises(ShapeError, match="starts with 3 tokens"):
        SinusoidalEncoding(6, prefix=3)(torch.zeros(2, 2, 6))
    with pytest.raises(ShapeError, match="2 axes needs positions"):
        SinusoidalEncoding(8, axes=Split((2, 2)))(torch.zeros(2, 2, 8))
    with pytest.raises(SpecError, match="computes a Sinusoidal"):
        SinusoidalEncoding("learned(4, shape=(3,))")
    with pytest.raises(SpecError, match="not a field"):
        SinusoidalEncoding(6, bass=3.0)
    with pytest.raises(SpecError, match="a value or its fields"):
        SinusoidalEncoding(Sinusoidal(6), base=3.0)


@pytest.mark.parametrize("position", [5, 10**6 + 3, 10**9])
def test_the_path_of_accelerators(position, monkeypatch):
    """Cosines in float32 from the nearest quarter turn lose nothing that a float32 result could show."""
    wanted = rows(Sinusoidal(14), [position])
    monkeypatch.setattr("posenc.nn.inputs.exact_on", lambda device, dtype: False)
    assert np.abs(rows(Sinusoidal(14), [position], torch.float32) - wanted).max() < 1e-7
    real = torch.tensor([position + 0.25], dtype=torch.float64)
    wanted = [sinusoidal_table(Sinusoidal(14), real.numpy())[0]]
    assert np.abs(rows(Sinusoidal(14), real, torch.float32) - wanted).max() < 1e-7
