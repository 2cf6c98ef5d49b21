"""Where tokens are: plain, behind a cache, padded, packed, on a grid, in time, or drawn at random.

Each function returns :class:`posenc.nn.interfaces.Positions`; a plain tensor of ids is as good. Mixed media are in
:mod:`posenc.nn.mixed_media`, parts of a sequence on several devices in :mod:`posenc.nn.shards`, digits in
:mod:`posenc.nn.numerals`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from posenc.errors import ShapeError, SpecError
from posenc.nn.derived import may_look
from posenc.nn.interfaces import Positions

MOST_TOKENS = 2**28
DIRECT_DRAW = 2**20


def sequence(
    tokens: int, offset: int | Tensor = 0, *, length: int | Tensor | None = None, axes: int = 1, device: Any = None
) -> Positions:
    """``offset, offset + 1, …``: a prompt, or new tokens behind a cache.

    Args:
        tokens: how many.
        offset: positions before them; ``(batch,)`` where the rows of a cache differ.
        length: declared length of each row, constant for the cache's life.
        axes: on how many axes the same number stands (text under M-RoPE: 3).
        device: of the ids.

    Returns:
        ids ``(1 | batch, 1, tokens)``, led by the axes if there are several.

    Raises:
        ShapeError: a negative number of tokens, or an offset that is no integer.

    >>> sequence(3, offset=5).ids.flatten().tolist()
    [5, 6, 7]
    """
    check_count(tokens, "tokens")
    if isinstance(offset, Tensor):
        if offset.ndim > 1 or offset.is_floating_point() or offset.dtype == torch.bool:
            raise ShapeError("an offset is an integer, or (batch,) of them", f"{tuple(offset.shape)} in {offset.dtype}")
        device = offset.device if device is None else device
        offset = offset.to(device).reshape(-1, 1)
    ids = torch.atleast_2d(torch.arange(tokens, device=device) + offset).unsqueeze(1)  # type: ignore[no-untyped-call]
    return Positions(over_axes(ids, axes), declared(length, ids.device))


def over_axes(ids: Tensor, axes: int) -> Tensor:
    """The same position on every axis: ``ids`` ``(…)`` to ``(axes, …)``; with one axis ids stay as they are."""
    return ids if axes == 1 else ids.expand(axes, *ids.shape)


def declared(length: int | Tensor | None, device: Any) -> Tensor | None:
    """A declared length as ``(1 | batch,)`` or None."""
    if length is None:
        return None
    return torch.as_tensor(length, device=device).reshape(-1)


def padded(
    attention_mask: Tensor, *, tokens: int | None = None, length: int | Tensor | None = None, axes: int = 1
) -> Positions:
    """Rows with padding, mostly on the left: each row's own tokens count from 0.

    Args:
        attention_mask: ``(batch, all)``: 1 for tokens, 0 for padding; with a cache it covers the cached tokens too.
        tokens: only the last ones, those that are new.
        length: declared length of each row, without padding.
        axes: on how many axes the same number stands.

    Returns:
        ids ``(batch, 1, tokens)``; padding stands at 0, where nothing attends to it.

    Raises:
        ShapeError: no mask of that shape.

    >>> padded(torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])).ids[:, 0].tolist()
    [[0, 0, 0, 1], [0, 1, 2, 3]]
    """
    if attention_mask.ndim != 2 or attention_mask.is_floating_point():
        shape = f"{tuple(attention_mask.shape)} in {attention_mask.dtype}"
        raise ShapeError("an attention mask is (batch, tokens) integers or booleans", shape)
    if tokens is not None and not 0 <= tokens <= attention_mask.shape[1]:
        raise ShapeError(f"tokens are at most the {attention_mask.shape[1]} that the mask covers", tokens)
    real = attention_mask != 0
    ids = (real.long().cumsum(1) - 1).masked_fill(~real, 0)
    ids = ids[:, ids.shape[1] - (ids.shape[1] if tokens is None else tokens) :]
    return Positions(over_axes(ids.unsqueeze(1), axes), declared(length, ids.device))


def packed(
    cu_seqlens: Tensor | Sequence[int], *, declare: bool = False, axes: int = 1, device: Any = None
) -> Positions:
    """One row that holds several documents one after the other; each counts from 0.

    Args:
        cu_seqlens: ``(documents + 1,)`` where documents begin, and where the last one ends: ``[0, 5, 12]``.
        declare: declare each document's length for its own tokens, ``(1, tokens)``, so that rules that depend on the
            length treat a document as if it were alone.
        axes: on how many axes the same number stands.
        device: of the ids.

    Returns:
        ids ``(1, 1, tokens)`` and document ``(1, tokens)``.

    Raises:
        ShapeError: the ends do not start at 0 or fall.

    >>> packed([0, 2, 5]).ids.flatten().tolist()
    [0, 1, 0, 1, 2]
    """
    ends = torch.as_tensor(cu_seqlens, device=device)
    if ends.ndim != 1 or len(ends) < 2 or ends.is_floating_point() or ends.dtype == torch.bool:
        raise ShapeError("cu_seqlens is (documents + 1,) integers", f"{tuple(ends.shape)} in {ends.dtype}")
    ends = ends.long()
    if may_look(ends) and (int(ends[0]) != 0 or bool((ends.diff() < 0).any())):
        raise ShapeError("cu_seqlens starts at 0 and never falls", ends.tolist())
    check_count(int(ends[-1]), "tokens")
    sizes = ends.diff()
    document = torch.arange(len(sizes), device=ends.device).repeat_interleave(sizes)
    ids = torch.arange(len(document), device=ends.device) - ends[:-1][document]
    length = sizes[document][None] if declare else None
    return Positions(over_axes(ids[None, None], axes), length, document[None])


def grid(
    shape: Sequence[int],
    *,
    prefix: int = 0,
    coordinates: Literal["index", "unit"] = "index",
    columns_first: bool = False,
    device: Any = None,
) -> Positions:
    """The cells of a grid in row-major order: a line, an image, a video; prefix tokens come first.

    Args:
        shape: cells along each axis, for an image ``(rows, columns)``, for a video ``(frames, rows, columns)``.
        prefix: class and register tokens without a position: they stand at 0, which turns nothing.
        coordinates: ``index``: 0, 1, 2…, integers; ``unit``: centres of the cells over [-1, 1], float64 (DINOv3).
        columns_first: the last axis leads (x before y).
        device: of the ids.

    Returns:
        ids ``(axes, 1, 1, prefix + cells)``, or ``(1, 1, prefix + cells)`` for one axis.

    Raises:
        ShapeError: no or more than three axes, an axis without cells, too many cells.
        SpecError: other coordinates.

    >>> grid((2, 2), prefix=1).ids.squeeze().tolist()
    [[0, 0, 0, 1, 1], [0, 0, 1, 0, 1]]
    """
    if not 1 <= len(shape) <= 3 or any(n < 1 for n in shape):
        raise ShapeError("a grid has one to three axes with at least one cell each", tuple(shape))
    if coordinates not in ("index", "unit"):
        raise SpecError("coordinates are index or unit", coordinates)
    check_count(prefix, "prefix tokens")
    check_count(prefix + math.prod(shape), "cells")
    lines = [torch.arange(n, device=device) for n in shape]
    if coordinates == "unit":
        lines = [(2 * line + 1).double() / n - 1 for line, n in zip(lines, shape, strict=True)]
    cells = torch.stack(torch.meshgrid(*lines, indexing="ij")).flatten(1)
    cells = torch.nn.functional.pad(cells.flip(0) if columns_first else cells, (prefix, 0))
    return Positions(cells[:, None, None] if len(shape) > 1 else cells[None])


def instants(times: Tensor, *, step: float = 1.0, origin: float = 0) -> Positions:
    """Real coordinates and time stamps: ``(t - origin) / step`` in float64; whole numbers stay integers at ``step=1``.

    Args:
        times: ``(tokens,)`` or ``(batch, tokens)``: integers (epoch seconds, nanoseconds) or float64.
        step: how much time one position is, in the unit of the times (3600 for hours of epoch seconds).
        origin: the time of position 0. Scores do not depend on it; nanoseconds keep more digits with one nearby.

    Raises:
        ShapeError: float32 times beyond 2^24, which have already lost their seconds; not finite; a step that is not
            above 0.

    >>> instants(torch.tensor([1_700_000_000, 1_700_001_800]), step=3600, origin=1_700_000_000).ids.flatten().tolist()
    [0.0, 0.5]
    """
    if times.ndim not in (1, 2) or times.dtype in (torch.bool, torch.complex64, torch.complex128):
        raise ShapeError("times are (tokens,) or (batch, tokens) numbers", f"{tuple(times.shape)} in {times.dtype}")
    if not 0 < step < math.inf or not math.isfinite(origin):
        raise ShapeError("a step is above 0 and finite, and so is the origin", (step, origin))
    if times.is_floating_point() and may_look(times) and times.numel():
        largest = float(times.abs().max())
        if not largest <= (2.0**53 if times.dtype == torch.float64 else 2.0**24):
            raise ShapeError(
                "times are finite, and whole units are told apart",
                f"{largest:g} in {times.dtype}",
                "Hand over integers or float64; float32 holds epoch seconds to 128 s.",
            )
    whole = not times.is_floating_point()
    steps = times.long() - int(origin) if whole and float(origin).is_integer() else times.double() - origin
    if steps.is_floating_point() or step != 1:
        steps = _divided(steps, step)
    ids = steps.unsqueeze(-2) if times.ndim == 2 else steps
    return Positions(ids if ids.ndim == 3 else ids[None, None])


def _divided(steps: Tensor, step: float) -> Tensor:
    """``steps / step`` in float64, right to its last digit for integers of any size: whole steps and rest apart."""
    if steps.is_floating_point() or not float(step).is_integer():
        return steps.double() / step
    whole = steps.div(int(step), rounding_mode="floor")
    return whole.double() + (steps - whole * int(step)).double() / step


def randomised(
    tokens: int, longest: int, *, batch: int | None = None, generator: torch.Generator | None = None, device: Any = None
) -> Positions:
    """Sorted positions drawn without replacement from ``0 … longest - 1``, for training (Ruoss et al. 2023, section 3).

    A model that has met distant positions between near tokens is not surprised by longer sequences. Draw afresh for
    each batch; at inference the same or :func:`sequence`.

    Args:
        tokens: how many are drawn.
        longest: below which.
        batch: rows that each have a draw of their own; by default all rows share one.
        generator: of random numbers.
        device: of the ids.

    Raises:
        ShapeError: fewer positions than tokens.

    >>> ids = randomised(4, 100, generator=torch.Generator().manual_seed(0)).ids
    >>> ids.shape, bool((ids.diff() > 0).all())
    (torch.Size([1, 1, 4]), True)
    """
    check_count(tokens, "tokens")
    if not tokens <= longest <= 2**48:
        raise ShapeError(f"positions are drawn from at least {tokens} and at most 2^48", longest)
    check_count((batch or 1) * tokens, "tokens of all rows")
    drawn = [_without_replacement(tokens, longest, generator).sort().values for _ in range(batch or 1)]
    return Positions(torch.stack(drawn).unsqueeze(1).to(device))


def _without_replacement(count: int, below: int, generator: torch.Generator | None) -> Tensor:
    """``count`` different numbers; for a wide range the first ``count`` different ones of a long draw."""
    where = None if generator is None else generator.device
    if below <= max(DIRECT_DRAW, 4 * count):
        return torch.randperm(below, generator=generator, device=where)[:count]
    draw = torch.randint(below, (2 * count + 64,), generator=generator, device=where)
    order = draw.argsort(stable=True)
    again = torch.zeros_like(draw, dtype=torch.bool)
    again[order[1:]] = draw[order[1:]] == draw[order[:-1]]
    first = draw[~again]
    return first[:count] if len(first) >= count else _without_replacement(count, below, generator)


def check_count(count: int, what: str) -> None:
    """Refuse numbers of things that are negative, or so large that memory would go."""
    if isinstance(count, bool) or not 0 <= count <= MOST_TOKENS:
        raise ShapeError(f"there are 0 to 2^28 {what}", count)
