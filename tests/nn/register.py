"""The register of encodings: for every kind examples, its float64 formula, its module, and the test with its oracle.

A kind without an entry fails ``test_register.py``. ``docs/generate.py`` makes the table of the documentation from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from nn import register_calls as by
from nn.register_calls import KEYS, QUERIES, Case, Parameters
from posenc import formulas


class Entry(NamedTuple):
    """One kind.

    Args:
        lines: several values in notation.
        module: what ``posenc.nn`` calls the module.
        called: the module's numbers for a case, in the case's dtype.
        formula: the same from the value, its trained numbers and the case, by :mod:`posenc.formulas`, float64.
        oracle: test file and function in which an oracle that shares no line judges it.
        positions: ``(n,)`` or ``(n, axes)`` for a value.
    """

    lines: tuple[str, ...]
    module: str
    called: Callable[[Any, Case], Tensor]
    formula: Callable[[Any, Parameters, Case], np.ndarray]
    oracle: str
    positions: Callable[[Any], np.ndarray]


def case_of(entry: Entry, value: Any, dtype: torch.dtype = torch.float32) -> Case:
    """The case of a value."""
    generator = torch.Generator().manual_seed(3)
    heads, head_dim, dim = (getattr(value, n, d) for n, d in (("num_heads", 2), ("head_dim", 4), ("dim", 6)))
    shapes = ((1, heads, QUERIES, head_dim), (1, heads, KEYS, head_dim), (1, KEYS, dim))
    q, k, x = (torch.randn(s, generator=generator).to(dtype) for s in shapes)
    return Case(entry.positions(value), q, k, x, dtype)


def trained(module: nn.Module) -> Parameters:
    """Trained numbers in float64."""
    return {name: p.detach().double().numpy() for name, p in module.named_parameters()}


def stirred(module: nn.Module) -> nn.Module:
    """The module with trained numbers that are neither zero nor alike."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, p in module.named_parameters():
            p.copy_(torch.randn(p.shape, generator=generator))
            if name in ("r1", "r2"):  # KERPLE's are positive
                p.abs_().add_(0.1)
            if name == "query.bias":  # DeBERTa's; the paper's projection has none
                p.zero_()
    return module


INPUTS, RELATIVE, CONTENT = "tests/nn/test_inputs.py", "tests/nn/test_relative.py", "tests/nn/test_contextual.py"
BY_LOOPS = "tests/formulas/test_relative.py"
REGISTER: dict[str, Entry] = {
    "sinusoidal": Entry(
        (
            "sinusoidal(6)",
            "sinusoidal(7, order='interleaved_cos_first', base=100)",
            "sinusoidal(7, order='sin|cos', odd='zero', shift=1, offset=2, padding_row=4)",
            "sinusoidal(8, axes=split((2, 2)), prefix=1)",
            "sinusoidal(6, learned=True)",
        ),
        "SinusoidalEncoding", by.vectors, by.sinusoid_of,
        f"{INPUTS}::test_every_entry_is_the_scalar_definition", by.few,
    ),
    "learned": Entry(
        ("learned(5, shape=(11,))", "learned(5, shape=(7, 8), prefix=1, offset=2)"),
        "LearnedTable", by.vectors, by.learned_of, f"{INPUTS}::test_learned_reads_the_rows_of_its_value", by.few,
    ),
    "adjusted": Entry(
        (
            "adjusted(sinusoidal(6), shape=(11,))",
            "adjusted(sinusoidal(6, prefix=1), shape=(11,), form='scale_shift')",
        ),
        "AdjustedSinusoid", by.vectors, by.adjusted_of, f"{INPUTS}::test_adjusted_against_its_formula", by.few,
    ),
    "hierarchical": Entry(
        (
            "hierarchical((sinusoidal(4), sinusoidal(2)), sizes=(3,))",
            "hierarchical((sinusoidal(4), sinusoidal(6, base=50), sinusoidal(2)))",
        ),
        "HierarchicalEncoding", by.vectors, lambda v, p, c: formulas.hierarchical_table(v, c.at),
        f"{INPUTS}::test_levels_side_by_side", by.few,
    ),
    "seasonal": Entry(
        ("seasonal((24, 7.5), harmonics=(2, 1), trend=1000)", "seasonal((86400.0, 31556952.0))"),
        "SeasonalEncoding", by.vectors, lambda v, p, c: formulas.seasonal_features(v, c.at),
        "tests/nn/test_time.py::test_seasonal_phases_are_right_at_epoch_seconds", by.few,
    ),
    "calendar": Entry(
        (
            "calendar()",
            "calendar(('second', 'day_of_year'), form='scaled', per_second=1000, utc_offset=-3600)",
            "calendar(('minute', 'day', 'month'), trend=1e9)",
        ),
        "CalendarEncoding", by.vectors, lambda v, p, c: formulas.calendar_features(v, c.at),
        "tests/nn/test_time.py::test_calendar_against_datetime", by.stamps,
    ),
    "time2vec": Entry(
        ("time2vec(5)", "time2vec(5, unit=86400, origin=951782400)"),
        "Time2VecEncoding", by.vectors,
        lambda v, p, c: formulas.time2vec((c.at - v.origin) / v.unit, p["weight"], p["phase"]),
        "tests/nn/test_time.py::test_time2vec_against_its_formula_and_the_published_example", by.few,
    ),
    "fourier": Entry(
        ("fourier(6, sigma=0.5)", "fourier(6, sigma=3, seed=11, axes=2)"),
        "FourierFeatures", by.vectors, lambda v, p, c: formulas.fourier_features(v, c.at),
        "tests/nn/test_time.py::test_fourier_features_against_a_loop", by.real,
    ),
    "learnable_fourier": Entry(
        ("learnable_fourier(5, hidden=3)", "learnable_fourier(6, axes=2, groups=2, features=4, hidden=7, gamma=2)"),
        "LearnableFourierFeatures", by.vectors, by.learnable_fourier_of,
        "tests/nn/test_time.py::test_learnable_fourier_against_its_formula", by.real,
    ),
    "one_hot": Entry(
        ("one_hot(7)", "one_hot(11)"),
        "OneHotEncoding", by.vectors, lambda v, p, c: formulas.one_hot_table(v, c.at),
        "tests/nn/test_baselines.py::test_one_hot", by.few,
    ),
    "random_vectors": Entry(
        ("random_vectors(5, length=11)", "random_vectors(5, length=7, seed=3, scale=0.1)"),
        "RandomVectorsEncoding", by.vectors, lambda v, p, c: formulas.random_vectors(v, c.at),
        "tests/nn/test_baselines.py::test_random_vectors", by.few,
    ),
    "constant": Entry(
        ("constant(5)", "constant(5, level=-0.3)"),
        "ConstantEncoding", by.vectors, lambda v, p, c: formulas.constant_table(v, c.at),
        "tests/nn/test_baselines.py::test_a_constant_breaks_nothing", by.few,
    ),
    "clock": Entry(
        ("clock(6, period=2.5)", "clock(2, period=12)"),
        "ClockEncoding", by.vectors, lambda v, p, c: formulas.clock_table(v, c.at),
        "tests/nn/test_baselines.py::test_one_clock", by.few,
    ),
    "rotary": Entry(
        (
            "rotary(6)",
            "rotary(10, rotary_dim=6, where='last', interleaved=True, base=500000)",
            "rotary(8, keep=0.5) >> linear(2)",
            "rotary(8) >> yarn(4, original=64)",
            "rotary(8) >> llama3(8, original=64)",
            "rotary(6) >> dynamic(2, original=5)",
            "rotary(6) >> longrope(4, original=5, short_factor=(1, 1.5, 2), long_factor=(2, 3, 9))",
            "rotary(8, axes=split((1, 3)))",
            "rotary(8, axes=interleave((2, 1, 1)))",
            "rotary(8, axes=mixed(2), learned=True)",
            "rotary(6, xpos_scale_base=512)",
            "rotary(6, learned=True)",
        ),
        "RotaryEmbedding", by.turned, by.rotary_of,
        "tests/nn/test_rotary.py::test_turns_each_pair_as_the_loop_does", by.spread,
    ),
    "query_scale": Entry(
        ("query_scale(0.1, original=8)", "query_scale(0.5, original=3, offset=1)"),
        "QueryScaling", lambda m, c: m(c.k, c.k, m.prepare(c.ids, dtype=c.dtype))[0][0],
        lambda v, p, c: c.k[0].double().numpy() * formulas.query_scale(v, c.at)[:, None],
        "tests/nn/test_rotary.py::test_queries_grow_by_the_formula", by.far,
    ),
    "alibi": Entry(
        ("alibi(3)", "alibi(5, max_bias=4, symmetric=True)"),
        "AlibiBias", by.biased, lambda v, p, c: formulas.alibi_at(v, -c.step), f"{RELATIVE}::test_bloom", by.far,
    ),
    "t5_bias": Entry(
        ("t5_bias(3)", "t5_bias(2, num_buckets=8, max_distance=20, bidirectional=False)"),
        "T5RelativeBias", by.biased, lambda v, p, c: formulas.t5_at(v, p["weight"], -c.step),
        f"{RELATIVE}::test_t5", by.far,
    ),
    "kerple": Entry(
        ("kerple(3)", "kerple(2, form='power')"),
        "KerpleBias", by.biased, lambda v, p, c: formulas.kerple_at(v, p["r1"], p["r2"], c.step),
        f"{BY_LOOPS}::test_kerple_numbers", by.far,
    ),
    "fire": Entry(
        ("fire(3)", "fire(2, hidden=5, c=1, threshold=64)"), "FireBias", by.biased, by.fire_of,
        f"{BY_LOOPS}::test_fire_against_a_loop", by.far,
    ),
    "sandwich": Entry(
        ("sandwich(3, dim=8)", "sandwich(2, dim=6, base=100, compression=4, first_pair=1)"),
        "SandwichBias", by.biased, lambda v, p, c: formulas.sandwich_at(v, c.step),
        f"{BY_LOOPS}::test_sandwich_is_the_product_of_two_rows", by.far,
    ),
    "sinusoidal_bias": Entry(
        ("sinusoidal_bias(3, sinusoid=sinusoidal(6))", "sinusoidal_bias(2, sinusoid=sinusoidal(7), limit=4)"),
        "SinusoidalRelativeBias", by.biased,
        lambda v, p, c: formulas.sinusoidal_bias_at(v, p["weight"], c.step),
        f"{BY_LOOPS}::test_sinusoidal_bias_is_signed_and_clipped", by.far,
    ),
    "shaw": Entry(
        ("shaw(4, limit=3)", "shaw(6, values=False)", "shaw(6, limit=2, keys=False)"),
        "ShawVectors", by.with_values, by.shaw_of, f"{RELATIVE}::test_equals_a_loop", by.far,
    ),
    "relative_sinusoid": Entry(
        (
            "relative_sinusoid(sinusoidal(6))",
            "relative_sinusoid(sinusoidal(6), values=True)",
            "relative_sinusoid(sinusoidal(5), limit=3, keys=False, values=True)",
        ),
        "RelativeSinusoidVectors", by.with_values, by.relative_sinusoid_of, f"{RELATIVE}::test_equals_a_loop", by.far,
    ),
    "transformer_xl": Entry(
        ("transformer_xl(4, num_heads=3)", "transformer_xl(6, num_heads=2, sinusoid=sinusoidal(8), limit=5)"),
        "TransformerXLScores", by.scored, by.transformer_xl_of,
        f"{BY_LOOPS}::test_transformer_xl_against_a_loop", by.far,
    ),
    "disentangled": Entry(
        (
            "disentangled(4, num_heads=3, span=8)",
            "disentangled(4, num_heads=2, span=8, max_distance=32, norm=True)",
            "disentangled(6, num_heads=2, dim=5, span=8, position_to_content=False)",
            "disentangled(4, num_heads=3, span=4, as_printed=True)",
        ),
        "DisentangledScores", by.scored, by.disentangled_of, f"{BY_LOOPS}::test_disentangled_against_a_loop", by.far,
    ),
    "cope": Entry(
        ("cope(4)", "cope(6, positions=3)"),
        "ContextualPositions", by.cope_called, by.cope_of,
        f"{CONTENT}::test_equals_a_loop_and_the_formula", by.far,
    ),
    "forgetting": Entry(
        ("forgetting(6, num_heads=3)", "forgetting(5, num_heads=2, form='softplus')"),
        "ForgettingPositions", by.placed, by.forgetting_of,
        f"{CONTENT}::test_attention_forgets_by_the_product_of_gates", by.far,
    ),
    "selective_rotary": Entry(
        (
            "selective_rotary(6, head_dim=4, num_heads=3)",
            "selective_rotary(10, head_dim=6, num_heads=2, rank=3, window=2)",
        ),
        "SelectivePositions", by.selective_called, by.selective_of,
        "tests/formulas/test_contextual.py::test_selective_phases_against_a_loop", by.far,
    ),
}  # fmt: skip
UNMODELLED = "unmodelled(name='Self-Extend')"
