"""What the papers say, in float64 NumPy: frequencies, tables, rotations, biases, similarities. No torch."""

from posenc.formulas.baselines import clock_table, constant_table, one_hot_table, random_vectors
from posenc.formulas.biases import (
    alibi_at,
    alibi_bias,
    alibi_slopes,
    query_scale,
    relative_positions,
    t5_at,
    t5_bias,
    t5_buckets,
)
from posenc.formulas.calendar import calendar_features
from posenc.formulas.combination import combined
from posenc.formulas.composed import adjusted_table, hierarchical_table, levels_of
from posenc.formulas.contextual import cope_positions, cope_scores, forgetting_positions, selective_phases
from posenc.formulas.cosine_tables import cosine_table
from posenc.formulas.fourier import fourier_features, fourier_matrix, learnable_fourier
from posenc.formulas.learned import learned_rows, resample_table
from posenc.formulas.ranges import aliases, first_below, minimum
from posenc.formulas.relative import (
    disentangled_rows,
    disentangled_scores,
    fire_at,
    fire_input,
    kerple_at,
    relative_sinusoid,
    sandwich_at,
    shaw_rows,
    sinusoidal_bias_at,
    transformer_xl_scores,
)
from posenc.formulas.rotation import (
    adjacent_from_half,
    half_from_adjacent,
    pairs_of,
    projection_rows,
    rotate,
    shift_matrix,
    xpos_centre,
)
from posenc.formulas.sameness import Difference, differences, same
from posenc.formulas.scalings import frequencies, length_rule
from posenc.formulas.score import scores
from posenc.formulas.similarities import (
    continuous_limit,
    similarity,
    similarity_at,
    similarity_blocks,
)
from posenc.formulas.spectrum import Frequencies
from posenc.formulas.tables import grid_positions, sinusoidal_entry, sinusoidal_table
from posenc.formulas.time import seasonal_features, time2vec

__all__ = [
    "Difference",
    "Frequencies",
    "adjacent_from_half",
    "adjusted_table",
    "aliases",
    "alibi_at",
    "alibi_bias",
    "alibi_slopes",
    "calendar_features",
    "clock_table",
    "combined",
    "constant_table",
    "continuous_limit",
    "cope_positions",
    "cope_scores",
    "cosine_table",
    "differences",
    "disentangled_rows",
    "disentangled_scores",
    "fire_at",
    "fire_input",
    "first_below",
    "forgetting_positions",
    "fourier_features",
    "fourier_matrix",
    "frequencies",
    "grid_positions",
    "half_from_adjacent",
    "hierarchical_table",
    "kerple_at",
    "learnable_fourier",
    "learned_rows",
    "length_rule",
    "levels_of",
    "minimum",
    "one_hot_table",
    "pairs_of",
    "projection_rows",
    "query_scale",
    "random_vectors",
    "relative_positions",
    "relative_sinusoid",
    "resample_table",
    "rotate",
    "same",
    "sandwich_at",
    "scores",
    "seasonal_features",
    "selective_phases",
    "shaw_rows",
    "shift_matrix",
    "similarity",
    "similarity_at",
    "similarity_blocks",
    "sinusoidal_bias_at",
    "sinusoidal_entry",
    "sinusoidal_table",
    "t5_at",
    "t5_bias",
    "t5_buckets",
    "time2vec",
    "transformer_xl_scores",
    "xpos_centre",
]
