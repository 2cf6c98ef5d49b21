"""Tasks: sampling points, row orders, bases and scales."""

from __future__ import annotations

import math

import numpy as np

from posenc.checker.examining.tasks import Task, Wrong


def _permuted(rows: int, heads: int, kv_heads: int, *, by: int | None = None) -> list[int]:
    count = kv_heads if by is None else by
    order = np.arange(rows).reshape(count, 2, rows // count // 2).swapaxes(1, 2)
    return [int(v) for v in order.reshape(-1)]


def _dynamic(base: float, dim: int, stretch: float) -> float:
    return base * math.exp(dim / (dim - 2) * math.log(stretch)) if stretch > 0 else math.nan


def _sampled_yx(table: np.ndarray) -> np.ndarray:
    rows, columns = table.shape
    out = np.zeros(table.size)
    for i in range(rows):
        for j in range(columns):
            y, x = j / max(columns - 1, 1) * (rows - 1), i / max(rows - 1, 1) * (columns - 1)
            y0, x0 = int(y), int(x)
            y1, x1 = min(y0 + 1, rows - 1), min(x0 + 1, columns - 1)
            top = table[y0, x0] * (1 - x + x0) + table[y0, x1] * (x - x0)
            low = table[y1, x0] * (1 - x + x0) + table[y1, x1] * (x - x0)
            out[i * columns + j] = top * (1 - y + y0) + low * (y - y0)
    return out


OTHER_TASKS: dict[str, Task] = {
    "resample:corners": Task(
        "source, target: sampling points with corners aligned",
        ("grid-resampling",),
        lambda s, t: [i * (s - 1) / (t - 1) for i in range(t)],
        ((4, 6), (7, 5)),
        (
            Wrong(
                "half-pixel centres where corners are aligned",
                lambda s, t: [(i + 0.5) * s / t - 0.5 for i in range(t)],
                recovered=("sampling", "half-pixel"),
            ),
        ),
    ),
    "resample:pixels": Task(
        "source, target: sampling points at half-pixel centres",
        ("grid-resampling",),
        lambda s, t: [(i + 0.5) * s / t - 0.5 for i in range(t)],
        ((4, 6), (7, 5)),
        (
            Wrong(
                "corners are aligned where half-pixel centres are wanted",
                lambda s, t: [i * (s - 1) / (t - 1) for i in range(t)],
                recovered=("sampling", "aligned corners"),
            ),
        ),
    ),
    "resample:side": Task(
        "stored side, patches: side of the resampled grid",
        ("grid-resampling",),
        lambda s, p: p,
        ((14, 61), (14, 60), (37, 39), (14, 28)),
        (
            Wrong(
                "the side is the floor of stored * (patches / stored) in floating point: one short for some sizes",
                lambda s, p: math.floor(s * (p / s)),
                recovered=("side", "floored"),
            ),
        ),
    ),
    "resample:grid": Task(
        "table (rows, columns), target (rows, columns) of the same size: flattened row by row",
        ("axis-order", "grid-resampling"),
        lambda table, target: np.asarray(table).reshape(-1),
        ((np.array([[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]]), (2, 3)),),
        (
            Wrong(
                "rows and columns are exchanged",
                lambda table, target: np.asarray(table).T.reshape(-1),
                recovered=("traversal", "columns first"),
            ),
            Wrong(
                "coordinates are handed over as (y, x) where (x, y) is wanted",
                lambda table, target: _sampled_yx(np.asarray(table)),
                recovered=("coordinates", "(y, x)"),
            ),
        ),
    ),
    "add:table": Task(
        "tokens, table: tokens with the table added",
        ("grid-resampling", "integration"),
        lambda x, p: np.asarray(x) + np.asarray(p),
        ((np.array([0.5, -1.0]), np.array([0.1, 0.2])),),
        (
            Wrong(
                "the tokens are added to themselves: a shortcut returned them in place of the table",
                lambda x, p: 2 * np.asarray(x),
                recovered=("added", "the tokens"),
            ),
            Wrong("the table is not added", lambda x, p: np.asarray(x), recovered=("added", "nothing")),
        ),
    ),
    "rows:key": Task(
        "rows, query heads, key heads: order of key rows from halves to neighbours",
        ("layout",),
        lambda rows, h, kv: _permuted(rows, h, kv),
        ((8, 4, 2), (24, 6, 2)),
        (
            Wrong(
                "key rows are permuted with the number of query heads",
                lambda rows, h, kv: _permuted(rows, h, kv, by=h),
                recovered=("heads of the permutation", "query heads"),
            ),
        ),
    ),
    "base:dynamic": Task(
        "base, dim, original, factor, length: base of dynamic NTK",
        ("scaling-parameters",),
        lambda b, d, o, s, n: _dynamic(b, d, s * max(n, o) / o - (s - 1)),
        ((1e4, 64, 2048, 2.0, 8192), (1e4, 64, 2048, 2.0, 1000)),
        (
            Wrong(
                "the length cancels: the stretch is constant",
                lambda b, d, o, s, n: _dynamic(b, d, s * s - s + 1),
                recovered=("stretch", "factor^2 - factor + 1"),
            ),
            Wrong(
                "the stretch is applied below the original length too",
                lambda b, d, o, s, n: _dynamic(b, d, s * n / o - (s - 1)),
                recovered=("threshold", "none"),
            ),
        ),
    ),
    "scale:softmax": Task(
        "head_dim, factor, mscale_all_dim: softmax scale of DeepSeek's YaRN",
        ("attention-factor",),
        lambda d, s, m: (0.1 * m * math.log(s) + 1) ** 2 / math.sqrt(d),
        ((192, 40.0, 1.0), (192, 40.0, 0.707)),
        (
            Wrong(
                "the correction of the softmax scale is missing",
                lambda d, s, m: 1 / math.sqrt(d),
                recovered=("correction", "1"),
            ),
            Wrong(
                "the correction is not squared",
                lambda d, s, m: (0.1 * m * math.log(s) + 1) / math.sqrt(d),
                recovered=("correction", "not squared"),
            ),
        ),
    ),
}
