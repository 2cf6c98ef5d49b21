"""From one layout of pairs to the other: activations, projection weights and their biases.

Adjacent pairs ``(2i, 2i + 1)`` and half pairs ``(i, i + rotary_dim / 2)`` are the same rotation of channels in another
order. Rows of the query and key projections may be reordered so that a model written for one layout runs in the other:
scores are unchanged, since queries and keys are reordered alike. Whole safetensors files are converted by
:mod:`posenc.formats.converting`.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from posenc.errors import ShapeError, SpecError
from posenc.formulas import adjacent_from_half, half_from_adjacent, projection_rows

Pairs = Literal["adjacent", "half"]


def convert_channels(
    x: Tensor, to: Pairs, *, rotary_dim: int | None = None, where: Literal["first", "last"] = "first"
) -> Tensor:
    """Reorder the channels of queries or keys for the other layout of pairs.

    ``half(convert_channels(x, "half")) == convert_channels(interleaved(x), "half")``.

    Args:
        x: ``(..., head_dim)`` in the other layout than ``to``.
        to: ``adjacent`` or ``half``.
        rotary_dim: channels that are rotated; all of them unless given.
        where: at which end of the head they are.

    Raises:
        ShapeError: ``rotary_dim`` is odd or wider than the head.

    >>> convert_channels(torch.arange(6), "half").tolist()
    [0, 2, 4, 1, 3, 5]
    """
    order = channel_order(to, x.shape[-1], rotary_dim, where)
    return x[..., order.to(x.device)]


def convert_projection(
    weight: Tensor,
    to: Pairs,
    *,
    heads: int,
    rotary_dim: int | None = None,
    where: Literal["first", "last"] = "first",
) -> Tensor:
    """Reorder the rows of a query or key projection, or its bias, for the other layout of pairs.

    With grouped queries call it with ``heads`` for the query projection and the fewer key/value heads for the key
    projection. Values and output projections stay as they are. A norm with a weight for each channel of a head, applied
    before the rotation, is reordered too: ``convert_channels(norm.weight, to)``.

    Args:
        weight: ``(heads * head_dim, in)`` as ``nn.Linear`` has it, or a bias ``(heads * head_dim,)``.
        to: ``adjacent`` or ``half``; the weight is in the other layout.
        heads: heads of this projection.
        rotary_dim: channels of a head that are rotated; all of them unless given.
        where: at which end of the head they are.

    Raises:
        ShapeError: the rows do not divide into heads.

    >>> convert_projection(torch.arange(8), "half", heads=2).tolist()
    [0, 2, 1, 3, 4, 6, 5, 7]
    """
    if weight.ndim not in (1, 2) or heads < 1 or not weight.shape[0] or weight.shape[0] % heads:
        raise ShapeError(f"a projection has rows for each of {heads} heads", tuple(weight.shape))
    order = channel_order(to, weight.shape[0] // heads, rotary_dim, where).numpy()
    return weight[torch.from_numpy(projection_rows(heads, order)).to(weight.device)]


def channel_order(to: Pairs, head_dim: int, rotary_dim: int | None, where: str) -> Tensor:
    """Channels to take, in order."""
    if to not in ("adjacent", "half"):
        raise SpecError("pairs are adjacent (2i, 2i + 1) or half (i, i + d/2)", to)
    order = half_from_adjacent if to == "half" else adjacent_from_half
    return torch.from_numpy(order(head_dim, rotary_dim, where))
