"""Tables as arrays: Toeplitz defect, distinctness, norm, rank, the linear shift."""

from __future__ import annotations

import numpy as np

from posenc.errors import ShapeError
from posenc.records import thinned
from posenc.records.analysis import Quantity, TableFacts
from posenc.shapes import Float

HEAT = 128
"""Rows and columns of the pictures."""
EXAMINED = 2048


def table_facts(table: np.ndarray) -> TableFacts:
    """Examine a table of positions ``(rows, width)``, a user's own included.

    K and the rank use at most the first 2048 rows; the notes say how many.

    Raises:
        ShapeError: not a finite real matrix of at least two rows.
    """
    table = as_table(table)
    head = table[:EXAMINED]
    kernel = head @ head.T
    n = len(head)
    scale = float(np.abs(kernel).max()) or 1.0
    defect = toeplitz_defect(kernel)
    rounding = float(4 * np.finfo(np.float64).eps * table.shape[1] * scale)
    means = diagonal_means(kernel)
    singular = np.linalg.svd(head, compute_uv=False)
    distance, pair = nearest_rows(kernel)
    norms = np.sqrt((table**2).sum(axis=1))
    return TableFacts(
        rows=len(table),
        width=table.shape[1],
        toeplitz_defect=Quantity(value=defect, error=rounding, note=f"N = {n}"),
        relative_defect=Quantity(value=defect / scale, error=rounding / scale, note=f"N = {n}, over the largest |K|"),
        distinct_rows=Quantity(value=len(np.unique(table, axis=0)), error=0.0, note=f"of {len(table)}"),
        nearest_rows=Quantity(value=distance, note=f"smallest distance between two of the first {n} rows"),
        nearest_pair=pair,
        norm=(float(norms.min()), float(norms.max())),
        rank=Quantity(value=numerical_rank(singular, head.shape), error=0.0, note=f"NumPy's tolerance, N = {n}"),
        energy_rank=Quantity(value=energy_rank(singular), error=0.0, note="singular values with 99 % of the energy"),
        entropy_rank=Quantity(value=entropy_rank(singular), note="exp of the entropy of the singular values"),
        shift_error=Quantity(value=shift_error(head), note="largest residual of the best linear map from m to m + 1"),
        kernel=thinned(np.arange(n), means / (means[0] or 1.0)),
        heat=_image(kernel[:HEAT, :HEAT]),
        table=_image(head),
    )


def as_table(table: np.ndarray) -> Float[np.ndarray, "rows width"]:
    """A table as float64, checked.

    Raises:
        ShapeError: not two-dimensional, not real, not finite, or fewer than two rows.
    """
    found = np.asarray(table)
    if found.ndim != 2 or found.shape[0] < 2 or found.shape[1] < 1:
        raise ShapeError("a table of positions is (rows, width) with at least two rows", found.shape)
    if found.dtype.kind not in "fiu" and found.dtype.name != "bfloat16":
        raise ShapeError("a table of positions holds real numbers", found.dtype)
    found = found.astype(np.float64)
    if not np.isfinite(found).all():
        raise ShapeError("a table of positions is finite", f"{int((~np.isfinite(found)).sum())} entries that are not")
    return found


def toeplitz_defect(kernel: Float[np.ndarray, "n n"]) -> float:
    """Largest ``max - min`` along a diagonal of a symmetric K; 0 exactly when K depends on m - n only."""
    return max(float(np.ptp(np.diagonal(kernel, offset))) for offset in range(len(kernel)))


def diagonal_means(kernel: Float[np.ndarray, "n n"]) -> Float[np.ndarray, " n"]:
    """Mean of K along each diagonal at distance 0..n-1."""
    return np.array([np.diagonal(kernel, offset).mean() for offset in range(len(kernel))])


def nearest_rows(kernel: Float[np.ndarray, "n n"]) -> tuple[float, tuple[int, int] | None]:
    """Smallest Euclidean distance between two rows, and the rows: ``|p - q|^2 = K_pp - 2 K_pq + K_qq``."""
    square = np.diag(kernel)[:, None] - 2 * kernel + np.diag(kernel)
    np.fill_diagonal(square, np.inf)
    i, j = np.unravel_index(int(square.argmin()), square.shape)
    return float(np.sqrt(max(square[i, j], 0.0))), (int(i), int(j))


def numerical_rank(singular: np.ndarray, shape: tuple[int, ...]) -> int:
    """Rank at NumPy's default tolerance ``max(shape) * eps * largest``."""
    return int((singular > singular.max() * max(shape) * np.finfo(np.float64).eps).sum())


def energy_rank(singular: np.ndarray, share: float = 0.99) -> int:
    """How many singular values hold ``share`` of the sum of squares."""
    energy = np.cumsum(singular**2)
    return 0 if energy[-1] == 0 else int(np.searchsorted(energy / energy[-1], share) + 1)


def entropy_rank(singular: np.ndarray) -> float:
    """``exp(-sum p ln p)`` with ``p = singular / sum`` (Roy and Vetterli 2007)."""
    total = singular.sum()
    if total == 0:
        return 0.0
    p = singular[singular > 0] / total
    return float(np.exp(-(p * np.log(p)).sum()))


def shift_error(table: Float[np.ndarray, "rows width"], step: int = 1) -> float | None:
    """Largest residual of the best linear map with ``row[m + step] = row[m] M``; None if the rows do not determine it.

    With rows as many as channels any table has such a map, so at least twice as many are asked for.
    """
    rows, width = table.shape
    if rows - step < 2 * width:
        return None
    source, target = table[:-step], table[step:]
    solution = np.linalg.lstsq(source, target, rcond=None)[0]
    return float(np.abs(source @ solution - target).max())


def shift_matrix(theta: Float[np.ndarray, " pairs"], step: float) -> Float[np.ndarray, "dim dim"]:
    """``M_k`` with ``PE(m + k) = M_k PE(m)`` for columns ``(sin, cos, sin, cos, ...)``: blocks [[c, s], [-s, c]].

    With cosines first the blocks are transposed.
    """
    matrix = np.zeros((2 * len(theta), 2 * len(theta)))
    for i, angle in enumerate(theta * step):
        c, s = np.cos(angle), np.sin(angle)
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, s], [-s, c]]
    return matrix


def _image(matrix: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """The first rows one by one (every n-th would show slow waves that are not there), columns spread, 4 digits."""
    columns = np.unique(np.linspace(0, matrix.shape[1] - 1, HEAT).astype(int))
    largest = float(np.abs(matrix).max())
    digits = 4 - int(np.floor(np.log10(largest))) if largest > 0 else 0
    return tuple(tuple(row) for row in np.round(matrix[:HEAT, columns], digits).tolist())
