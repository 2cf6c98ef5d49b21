"""The rotation itself, and thin functions with the signatures people know.

Arithmetic in bfloat16 and float16 is float32 with one rounding at the end; other types keep theirs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from posenc.errors import ShapeError


class Layout(NamedTuple):
    """Which channels a rotation turns: ``2 * pairs`` of them from ``first`` on.

    Args:
        first: the first channel that is turned.
        pairs: how many pairs.
        interleaved: pairs ``(2i, 2i + 1)``; otherwise ``(i, i + pairs)``, both counted from ``first``.
    """

    first: int
    pairs: int
    interleaved: bool


def turn(x: Tensor, cos: Tensor, sin: Tensor, layout: Layout, out: Tensor | None = None) -> Tensor:
    """``(a cos - b sin, b cos + a sin)`` for each pair ``(a, b)``, other channels unchanged (Su et al. 2021, eq. 34).

    Args:
        x: ``(..., head_dim)``.
        cos, sin: ``(..., pairs)``, broadcast against ``x``.
        layout: the channels.
        out: where to write instead of fresh memory; ``x`` itself turns in place.

    Returns:
        The shape and dtype of ``x``.

    Raises:
        ShapeError: the head is too narrow, cos and sin do not fit, or ``out`` does not.
    """
    check_turn(x, cos, sin, layout)
    cos, sin = spread_like(x, cos), spread_like(x, sin)
    first, pairs, interleaved = layout
    last = first + 2 * pairs
    wide = torch.promote_types(x.dtype, torch.float32)
    part = x[..., first:last].to(wide)
    if interleaved:
        a, b = part[..., 0::2], part[..., 1::2]
    else:
        a, b = part[..., :pairs], part[..., pairs:]
    left = (a * cos - b * sin).to(x.dtype)
    right = (b * cos + a * sin).to(x.dtype)
    if out is None:
        turned = torch.stack((left, right), -1).flatten(-2) if interleaved else torch.cat((left, right), -1)
        if turned.shape == x.shape:
            return turned
        return torch.cat((x[..., :first], turned, x[..., last:]), -1)
    check_out(x, out)
    if out is not x:
        out[..., :first].copy_(x[..., :first])
        out[..., last:].copy_(x[..., last:])
    slots = (slice(first, last, 2), slice(first + 1, last, 2))
    if not interleaved:
        slots = (slice(first, first + pairs), slice(first + pairs, last))
    out[..., slots[0]].copy_(left)
    out[..., slots[1]].copy_(right)
    return out


def spread_like(x: Tensor, t: Tensor) -> Tensor:
    """``t`` as a tensor that every device of ``x`` holds, where ``x`` is one spread over devices (DTensor)."""
    if type(x) is Tensor or type(x).__name__ != "DTensor" or type(t) is type(x):
        return t
    from torch.distributed.tensor import DTensor, Replicate

    spread: Any = x
    return DTensor.from_local(t, spread.device_mesh, [Replicate()] * spread.device_mesh.ndim, run_check=False)


def check_turn(x: Tensor, cos: Tensor, sin: Tensor, layout: Layout) -> None:
    """Static checks of shapes and dtypes; values are not looked at."""
    if not x.is_floating_point():
        raise ShapeError("x holds real numbers", x.dtype)
    if x.shape[-1] < layout.first + 2 * layout.pairs:
        need = layout.first + 2 * layout.pairs
        raise ShapeError(f"a head has at least {need} channels, where {layout.pairs} pairs end", tuple(x.shape))
    if cos.shape != sin.shape or cos.shape[-1] != layout.pairs:
        raise ShapeError(
            f"cos and sin are (..., {layout.pairs}), one column a pair", (tuple(cos.shape), tuple(sin.shape))
        )


def check_out(x: Tensor, out: Tensor) -> None:
    """Refuse an ``out`` of another shape or dtype, or where a gradient is wanted."""
    if out.shape != x.shape or out.dtype != x.dtype or out.device != x.device:
        raise ShapeError(
            f"out is {tuple(x.shape)} in {x.dtype} on {x.device}, as x", f"{tuple(out.shape)} in {out.dtype}"
        )
    if torch.is_grad_enabled() and (x.requires_grad or out.requires_grad):
        raise ShapeError(
            "out= is written in place, which a gradient does not allow", remedy="Leave out= away, or use no_grad."
        )


def rotary_embedding(
    x: Tensor, cos: Tensor, sin: Tensor, position_ids: Tensor | None = None, *, interleaved: bool = False
) -> Tensor:
    """Rotate the first ``2 * columns`` channels of each head; call-compatible with PyTorch's proposed function.

    Source: pytorch/pytorch pull request 187286 (``torch.nn.functional.rotary_embedding``). Differences: half precision
    is computed in float32 and rounded once, and fewer columns than ``head_dim / 2`` rotate a part of the head.

    Args:
        x: ``(batch, heads, tokens, head_dim)``.
        cos, sin: a table ``(rows, columns)`` with ``position_ids``; otherwise anything that broadcasts against
            ``(batch, heads, tokens, columns)``.
        position_ids: ``(batch, tokens)`` or ``(tokens,)`` integers: rows of the table.
        interleaved: pairs ``(2i, 2i + 1)``; otherwise ``(i, i + columns)``.

    Returns:
        The shape and dtype of ``x``.

    Raises:
        ShapeError: shapes do not fit; a position is no row of the table.

    >>> at = torch.arange(3.0)[:, None]
    >>> [round(v, 4) for v in rotary_embedding(torch.ones(1, 1, 3, 2), at.cos(), at.sin())[0, 0, 1].tolist()]
    [-0.3012, 1.3818]
    """
    if x.ndim != 4:
        raise ShapeError("x is (batch, heads, tokens, head_dim)", tuple(x.shape))
    if position_ids is not None:
        cos, sin = table_rows(cos, position_ids), table_rows(sin, position_ids)
    layout = Layout(0, cos.shape[-1], interleaved)
    check_turn(x, cos, sin, layout)
    check_broadcast(x, cos)
    return turn(x, cos, sin, layout)


def table_rows(table: Tensor, position_ids: Tensor) -> Tensor:
    """Rows of a table as ``(batch | 1, 1, tokens, columns)``."""
    if table.ndim != 2:
        raise ShapeError("with position_ids, cos and sin are tables (rows, columns)", tuple(table.shape))
    if position_ids.is_floating_point() or position_ids.dtype == torch.bool or position_ids.ndim not in (1, 2):
        shape = f"{tuple(position_ids.shape)} in {position_ids.dtype}"
        raise ShapeError("position_ids are integers, (batch, tokens) or (tokens,)", shape)
    from posenc.nn.derived import may_look

    if may_look(position_ids) and position_ids.numel():
        low, high = int(position_ids.min()), int(position_ids.max())
        if low < 0 or high >= table.shape[0]:
            raise ShapeError(
                f"positions are rows of the table, 0 to {table.shape[0] - 1}",
                low if low < 0 else high,
                "Make a longer table, or compute cos and sin from the positions (RotaryEmbedding.prepare).",
            )
    found = table[position_ids.long()]
    return found.unsqueeze(1) if found.ndim == 3 else found


def check_broadcast(x: Tensor, cos: Tensor) -> None:
    """Refuse cos and sin that do not broadcast against x, or that would make it larger."""
    lead = cos.shape[:-1]
    if len(lead) > x.ndim - 1 or any(
        n != 1 and n != m for n, m in zip(reversed(lead), reversed(x.shape[:-1]), strict=False)
    ):
        raise ShapeError(
            f"cos and sin broadcast against {tuple(x.shape[:-1])}, x without its channels",
            tuple(cos.shape),
            "They are (tokens, pairs) or (batch, heads, tokens, pairs), with 1 where shared.",
        )


def apply_rotary_pos_emb(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1
) -> tuple[Tensor, Tensor]:
    """``x cos + rotated(x) sin`` with as many columns as channels; call-compatible with transformers' function.

    Source: transformers ``models/llama/modeling_llama.py``; pairs ``(i, i + columns / 2)``. Differences: half precision
    is computed in float32 and rounded once, and fewer columns than channels rotate the first part of the head.

    Args:
        q, k: ``(batch, heads, tokens, head_dim)``, or ``(batch, tokens, heads, head_dim)`` with ``unsqueeze_dim=2``.
        cos, sin: ``(batch | 1, tokens, columns)``, each pair's number in both of its columns.
        unsqueeze_dim: where the dimension of the heads goes.

    Raises:
        ShapeError: shapes do not fit.

    >>> q = torch.ones(1, 1, 2, 4)
    >>> angle = torch.arange(2.0)[None, :, None].expand(1, 2, 4)
    >>> [round(v, 4) for v in apply_rotary_pos_emb(q, q, angle.cos(), angle.sin())[0][0, 0, 1].tolist()]
    [-0.3012, -0.3012, 1.3818, 1.3818]
    """
    if cos.shape != sin.shape or cos.shape[-1] % 2:
        raise ShapeError("cos and sin have an even number of columns", (tuple(cos.shape), tuple(sin.shape)))
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    return _turn_full(q, cos, sin), _turn_full(k, cos, sin)


def _turn_full(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    columns = cos.shape[-1]
    if not x.is_floating_point() or x.shape[-1] < columns:
        raise ShapeError(f"a head has at least the {columns} channels that cos has columns", tuple(x.shape))
    check_broadcast(x, cos)
    part = x[..., :columns].to(torch.promote_types(x.dtype, torch.float32))
    a, b = part.chunk(2, -1)
    turned = (part * cos + torch.cat((-b, a), -1) * sin).to(x.dtype)
    return turned if columns == x.shape[-1] else torch.cat((turned, x[..., columns:]), -1)


def both_columns(cos: Tensor, *, interleaved: bool = False) -> Tensor:
    """One column a pair to one column a channel: what :func:`apply_rotary_pos_emb` and its relatives read.

    ``(..., pairs)`` to ``(..., 2 * pairs)``, each number behind the others or beside itself.

    >>> pair = torch.tensor([1.0, 2.0])
    >>> both_columns(pair).tolist(), both_columns(pair, interleaved=True).tolist()
    ([1.0, 2.0, 1.0, 2.0], [1.0, 1.0, 2.0, 2.0])
    """
    return torch.stack((cos, cos), -1).flatten(-2) if interleaved else torch.cat((cos, cos), -1)
