"""The kernels for NumPy arrays, each with a plain path: rotations, cosines of positions, tables by angle addition."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from posenc.errors import ShapeError
from posenc.native.loading import Rotation, find

RADIANS = 2 * np.pi / 2.0**64
DTYPES = {"float32": 0, "bfloat16": 1, "float16": 2}


class Pairs(NamedTuple):
    """Which channels are turned: pair ``i`` is ``first + i step`` and ``first + i step + partner``.

    ``step=1`` with ``partner=number`` are pairs ``(i, i + d/2)``, ``step=2`` with ``partner=1`` are ``(2i, 2i + 1)``.
    """

    first: int
    number: int
    step: int
    partner: int


def rotate(
    sides: tuple[NDArray[Any], ...],
    cos: NDArray[np.float32],
    sin: NDArray[np.float32],
    pairs: Pairs,
    *,
    ids: NDArray[np.int64] | None = None,
    out: tuple[NDArray[Any], ...] | None = None,
    inverse: bool = False,
) -> tuple[NDArray[Any], ...]:
    """Turn queries and keys, or one of them: ``(a cos - b sin, b cos + a sin)`` (Su et al. 2021, equation 34).

    Args:
        sides: one or two arrays ``(batch, heads, tokens, width)`` of one dtype, float32, float16 or bfloat16 (of
            ml_dtypes); any strides, as long as channels lie side by side.
        cos, sin: float32 ``(batch | 1, heads | 1, tokens, pairs)``, or a table ``(rows, pairs)`` with ``ids``.
        pairs: the channels.
        ids: ``(batch | 1, tokens)`` int64 rows of the table.
        out: where to write, as many arrays; the inputs themselves are turned in place.
        inverse: turn back.

    Returns:
        The results; half precision is computed in float32 and rounded once.

    Raises:
        ShapeError: shapes, dtypes or pairs do not fit, a position is no row, results overlap.

    >>> x = np.ones((1, 1, 2, 2), np.float32)
    >>> at = np.arange(2, dtype=np.float32)[None, None, :, None]
    >>> turned = rotate((x,), np.cos(at), np.sin(at), Pairs(0, 1, 1, 1))[0]
    >>> [round(float(v), 4) for v in turned[0, 0, 1]]
    [-0.3012, 1.3818]
    """
    _check(sides, cos, sin, pairs, ids)
    made = tuple(np.empty_like(x) for x in sides) if out is None else out
    if len(made) != len(sides) or any(
        m.shape != x.shape or m.dtype != x.dtype for m, x in zip(made, sides, strict=True)
    ):
        raise ShapeError("results have the shapes and dtypes of the inputs", [(m.shape, str(m.dtype)) for m in made])
    if any(not m.flags.writeable for m in made):
        raise ShapeError("results can be written", "a read-only array")
    library = find().handle
    if library is not None and all(_side_by_side(a) for a in (*sides, *made, cos, sin)) and cos.strides == sin.strides:
        status = library.posenc_rotate(ctypes.byref(_call(sides, made, cos, sin, pairs, ids, inverse)))
        if status:
            raise ShapeError(library.posenc_message(status).decode())
        return made
    if ids is not None:
        cos, sin = cos[ids][:, None], sin[ids][:, None]
    for x, result in zip(sides, made, strict=True):
        _plain(x, result, cos, -sin if inverse else sin, pairs)
    return made


def _check(sides: Any, cos: Any, sin: Any, pairs: Pairs, ids: Any) -> None:
    if len(sides) not in (1, 2) or any(x.ndim != 4 for x in sides):
        raise ShapeError("one or two arrays are (batch, heads, tokens, width)", [x.shape for x in sides])
    batch, _, tokens, width = sides[0].shape
    if str(sides[0].dtype) not in DTYPES or any(x.dtype != sides[0].dtype for x in sides):
        raise ShapeError("arrays are float32, bfloat16 or float16", [str(x.dtype) for x in sides])
    if any((x.shape[0], *x.shape[2:]) != (batch, tokens, width) for x in sides):
        raise ShapeError("queries and keys differ in their heads only", [x.shape for x in sides])
    first, count, step, partner = pairs
    last = first + (count - 1) * step + partner
    touched = {first + i * step for i in range(count)} | {first + i * step + partner for i in range(count)}
    if min(pairs) < 0 or step < 1 or partner < 1 or (count and last >= width) or len(touched) != 2 * count:
        raise ShapeError(f"pairs lie within {width} channels and share none", tuple(pairs))
    if cos.shape != sin.shape or cos.shape[-1:] != (count,) or cos.dtype != np.float32 or sin.dtype != np.float32:
        raise ShapeError(f"cos and sin are float32 (..., {count})", [(a.shape, str(a.dtype)) for a in (cos, sin)])
    if ids is None:
        lead = cos.shape[:-1]
        if (
            cos.ndim != 4
            or any(
                lead[:2] != (b, h) and (lead[0] not in (1, b) or lead[1] not in (1, h))
                for b, h in (x.shape[:2] for x in sides)
            )
            or lead[2] != tokens
        ):
            raise ShapeError(f"cos and sin are ({batch} | 1, heads | 1, {tokens}, {count})", cos.shape)
        return
    if cos.ndim != 2 or ids.dtype != np.int64 or ids.shape not in ((1, tokens), (batch, tokens)):
        raise ShapeError(
            f"a table (rows, {count}) goes with int64 ids ({batch} | 1, {tokens})",
            (cos.shape, ids.shape, str(ids.dtype)),
        )
    if ids.size and not (int(ids.min()) >= 0 and int(ids.max()) < len(cos)):
        raise ShapeError(f"positions are rows of the table, 0 to {len(cos) - 1}", (int(ids.min()), int(ids.max())))


def _side_by_side(a: Any) -> bool:
    return bool(a.shape[-1] <= 1 or a.strides[-1] == a.itemsize) and all(s % a.itemsize == 0 for s in a.strides)


def _call(sides: Any, made: Any, cos: Any, sin: Any, pairs: Pairs, ids: Any, inverse: bool) -> Rotation:
    """Everything for one call of the C side; strides in elements, 0 where shared."""
    call = Rotation(dtype=DTYPES[str(sides[0].dtype)], sides=len(sides), inverse=int(inverse), streaming=-1)
    call.batch, _, call.tokens, call.width = sides[0].shape
    call.first, call.pairs, call.step, call.partner = pairs
    for side, x, result in zip(call.side, sides, made, strict=False):
        side.x, side.out, side.heads = x.ctypes.data, result.ctypes.data, x.shape[1]
        side.x_stride[:] = [s // x.itemsize for s in x.strides[:3]]
        side.out_stride[:] = [s // result.itemsize for s in result.strides[:3]]
    call.cos, call.sin = cos.ctypes.data, sin.ctypes.data
    if ids is None:
        call.table_stride[:] = [s // 4 if n > 1 else 0 for n, s in zip(cos.shape[:3], cos.strides[:3], strict=True)]
    else:
        call.table_stride[:] = [0, 0, cos.strides[0] // 4]
        call.ids, call.rows = ids.ctypes.data, len(cos)
        call.id_stride[:] = [s // 8 if n > 1 else 0 for n, s in zip(ids.shape, ids.strides, strict=True)]
    return call


def _plain(x: Any, result: Any, cos: Any, sin: Any, pairs: Pairs) -> None:
    first, count, step, partner = pairs
    left = slice(first, first + (count - 1) * step + 1, step)
    right = slice(left.start + partner, left.stop + partner, step)
    if not count:
        left = right = slice(0, 0)
    a, b = x[..., left].astype(np.float32), x[..., right].astype(np.float32)
    turned = (a * cos - b * sin).astype(x.dtype), (b * cos + a * sin).astype(x.dtype)
    if result is not x:
        result[...] = x
    result[..., left], result[..., right] = turned


def cos_sin(
    ids: NDArray[np.int64], turns: NDArray[np.int64], gain: float = 1.0
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """float32 cosines and sines ``(n, pairs)`` of whole positions, times a gain; right at any position.

    Args:
        ids: ``(n,)`` positions.
        turns: ``(pairs,)`` in 2^-64 of a turn per position; the product wraps as an angle does.
        gain: factor on both.

    >>> cos, sin = cos_sin(np.array([1]), np.array([2**62]))
    >>> bool(abs(cos[0, 0]) < 1e-7), float(sin[0, 0])
    (True, 1.0)
    """
    if ids.ndim != 1 or turns.ndim != 1 or ids.dtype != np.int64 or turns.dtype != np.int64:
        raise ShapeError("ids and turns are int64 (n,) and (pairs,)", (ids.shape, turns.shape))
    library = find().handle
    if library is None:
        angle = (ids[:, None] * turns) * RADIANS
        return (np.cos(angle) * gain).astype(np.float32), (np.sin(angle) * gain).astype(np.float32)
    ids, turns = np.ascontiguousarray(ids), np.ascontiguousarray(turns)
    cos, sin = (np.empty((len(ids), len(turns)), np.float32) for _ in range(2))
    results = cos.ctypes.data, sin.ctypes.data
    library.posenc_cos_sin(ids.ctypes.data, len(ids), turns.ctypes.data, len(turns), gain, *results)
    return cos, sin


def add_angles(
    start: tuple[NDArray[np.float64], NDArray[np.float64]],
    step: tuple[NDArray[np.float64], NDArray[np.float64]],
    rows: int,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Tables by angle addition: row ``a * steps + j`` is ``cos(start_a + step_j)`` and the sine, rounded once.

    Args:
        start: float64 cosines and sines ``(starts, pairs)``, a gain included if there is one.
        step: the same ``(steps, pairs)``.
        rows: how many, at most ``starts * steps``.

    >>> quarter = np.array([[0.0]]), np.array([[1.0]])
    >>> [t.tolist() for t in add_angles(quarter, quarter, 1)]
    [[[-1.0]], [[0.0]]]
    """
    arrays = tuple(np.ascontiguousarray(a, np.float64) for a in (*start, *step))
    starts, steps, pairs = len(arrays[0]), len(arrays[2]), arrays[0].shape[-1]
    shapes = [a.shape for a in arrays]
    if shapes != [(starts, pairs)] * 2 + [(steps, pairs)] * 2 or not 0 <= rows <= starts * steps:
        raise ShapeError("starts and steps are (n, pairs), rows at most their product", (shapes, rows))
    cos, sin = (np.empty((rows, pairs), np.float32) for _ in range(2))
    library = find().handle
    if library is not None and steps:
        data = [a.ctypes.data for a in arrays]
        library.posenc_add_angles(*data, steps, pairs, rows, cos.ctypes.data, sin.ctypes.data)
        return cos, sin
    ca, sa, cj, sj = arrays
    for a in range(-(-rows // steps) if rows else 0):
        part = slice(a * steps, min(rows, (a + 1) * steps))
        n = part.stop - part.start
        cos[part] = ca[a] * cj[:n] - sa[a] * sj[:n]
        sin[part] = sa[a] * cj[:n] + ca[a] * sj[:n]
    return cos, sin
