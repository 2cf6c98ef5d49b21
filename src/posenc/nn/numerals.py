"""Positions of digits in written numbers, so that digits of equal significance meet in arithmetic."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from posenc.errors import ShapeError, SpecError
from posenc.nn.interfaces import Positions


def digits(
    is_digit: Tensor, *, start: int | Tensor = 1, count_from: Literal["left", "right"] = "left", others: int = 0
) -> Positions:
    """Each digit's place inside its number; tokens that are no digits stand at ``others``.

    With the least significant digit written first and ``count_from="left"`` these are Abacus positions (McLeish et al.
    2024, section 3.1): 1 for the units, 0 off the digits. ``count_from="right"`` gives the same significance the same
    position in numbers written the usual way round, which is how position coupling joins operands and result (Cho et
    al. 2024, section 3). In training both move everything by a random start: :func:`random_start`.

    Args:
        is_digit: ``(tokens,)`` or ``(batch, tokens)`` booleans.
        start: position of the first digit counted; ``(batch,)`` for one a row.
        count_from: the end of a number from which places count.
        others: position of tokens that are no digits.

    Returns:
        ids ``(batch | 1, 1, tokens)``.

    Raises:
        ShapeError: no booleans of that shape.
        SpecError: places count from neither end.

    >>> sum_of = torch.tensor([c.isdigit() for c in "49+653=702"])
    >>> digits(sum_of, count_from="right").ids.flatten().tolist()
    [2, 1, 0, 3, 2, 1, 0, 3, 2, 1]
    >>> digits(sum_of).ids.flatten().tolist()
    [1, 2, 0, 1, 2, 3, 0, 1, 2, 3]
    """
    if is_digit.dtype != torch.bool or is_digit.ndim not in (1, 2):
        shape = f"{tuple(is_digit.shape)} in {is_digit.dtype}"
        raise ShapeError("is_digit is (tokens,) or (batch, tokens) booleans", shape)
    if count_from not in ("left", "right"):
        raise SpecError("places count from left or right", count_from)
    flags = is_digit.reshape(-1, is_digit.shape[-1])
    rows = flags.flip(-1) if count_from == "right" else flags
    index = torch.arange(rows.shape[-1], device=rows.device)
    before = torch.where(rows, -1, index).cummax(-1).values  # the last token that was no digit, -1 if there was none
    place = index - before - 1
    place = place.flip(-1) if count_from == "right" else place
    start = start.reshape(-1, 1) if isinstance(start, Tensor) else start
    return Positions(torch.where(flags, place + start, others).unsqueeze(1))


def random_start(
    farthest: int, *, batch: int = 1, generator: torch.Generator | None = None, device: Any = None
) -> Tensor:
    """``(batch,)`` starts drawn from ``1 … farthest``, for training with :func:`digits`.

    Abacus draws one of 100 for a batch; position coupling one for each row, such that the largest position fits.

    Raises:
        ShapeError: nothing to draw from.

    >>> random_start(100, batch=3, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([3])
    """
    if farthest < 1 or batch < 1:
        raise ShapeError("a start is drawn from 1 on, for at least one row", (farthest, batch))
    where = None if generator is None else generator.device
    return torch.randint(1, farthest + 1, (batch,), generator=generator, device=where).to(device)
