"""Broken makers of positions, sampling points, row orders."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from mutants.register import mutant


@mutant("padding-roberta-offset", "positions:padding_idx", "mask-padding", recovered={"first position": "0"})
def zero_based(input_ids, padding_idx):
    real = input_ids != padding_idx
    return np.where(real, np.cumsum(real, axis=1) - 1, padding_idx)


@mutant("padding-counted", "positions:mask", "mask-padding")
def column_numbers(attention_mask):
    return np.tile(np.arange(attention_mask.shape[1]), (len(attention_mask), 1))


@mutant("packing-mask-ids", "positions:packed", "packing", recovered={"documents with positions": "the first"})
def only_ones(attention_mask):
    return np.maximum((attention_mask == 1).cumsum(1) - 1, 0)


@mutant("packing-not-reset", "positions:packed", "packing", recovered={"positions": "not reset"})
def runs_on(attention_mask):
    return np.maximum((attention_mask > 0).cumsum(1) - 1, 0)


@mutant("mrope-start-multiplied", "positions:frames", "multimodal-positions")
def constant_row(start, interval, frames):
    return np.full(frames, start * interval)


@mutant(
    "mrope-fractional-interval", "positions:seconds", "position-rounding", recovered={"seconds per grid": "truncated"}
)
def truncated_first(grids, second_per_grid, tokens_per_second):
    return np.arange(grids) * int(second_per_grid) * tokens_per_second


@mutant("video-temporal-patch", "positions:temporal", "multimodal-positions")
def without_patch(frames, compression, patch):
    return (frames - 1) // compression + 1


@mutant("shard-cp-packed", "positions:rank", "sharding", recovered={"offset of later sequences": "0"})
def first_sequence_rows(cu_seqlens, ranks, rank):
    out = []
    for a, b in pairwise(cu_seqlens):
        n = (b - a) // (2 * ranks)
        out += [*range(rank * n, rank * n + n), *range((2 * ranks - 1 - rank) * n, (2 * ranks - rank) * n)]
    return out


@mutant("offset-after-eviction", "positions:evicted", "offset-cache")
def rows_in_cache(seen, kept):
    return kept


@mutant("offset-query-zero", "positions:decode", "offset-cache", recovered={"offset": "0"})
def before_the_join(cached, new):
    return list(range(new))


@mutant("grid-align-corners", "resample:corners", "grid-resampling", recovered={"sampling": "half-pixel"})
def pixel_centres(source, target):
    return [(i + 0.5) * source / target - 0.5 for i in range(target)]


@mutant("grid-size-floor", "resample:side", "grid-resampling", recovered={"side": "floored"})
def floored(stored, patches):
    return math.floor(stored * (patches / stored))


@mutant("axis-grid-sample", "resample:grid", "axis-order")
def exchanged(table, target):
    return np.asarray(table).T.flatten()


@mutant("grid-shortcut-returns-tokens", "add:table", "grid-resampling", recovered={"added": "the tokens"})
def doubled(x, table):
    return x + x


@mutant("layout-gguf-gqa-permute", "rows:key", "layout", recovered={"heads of the permutation": "query heads"})
def with_query_heads(rows, heads, kv_heads):
    return np.arange(rows).reshape(heads, 2, -1).swapaxes(1, 2).ravel()


@mutant("dyn-ntk-constant-base", "base:dynamic", "scaling-parameters")
def length_cancels(base, dim, original, factor, length):
    return base * (factor**2 - factor + 1) ** (dim / (dim - 2))


@mutant("softmax-correction-missing", "scale:softmax", "attention-factor", recovered={"correction": "1"})
def plain_scale(head_dim, factor, mscale_all_dim):
    return head_dim**-0.5


@mutant("relindex-conformer-shift", "alibi(6, symmetric=True)", "relative-index")
def shifted_without_a_mask(n_q, n_k):
    """Pad by a column, reshape, cut: entries above the diagonal come from the next query's row."""
    slope = np.array([2.0 ** (-2 * (h + 1)) for h in range(4)] + [2.0**-1, 2.0**-3])
    scores = -slope[:, None, None] * np.arange(n_k)[::-1] * np.ones((n_q, 1))
    padded = np.concatenate([np.zeros((6, n_q, 1)), scores], axis=2)
    return padded.reshape(6, n_k + 1, n_q)[:, 1:].reshape(6, n_q, n_k)
