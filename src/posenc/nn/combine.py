"""How position vectors join the content (E11): registered modules, chosen by one argument.

Arithmetic in half precision is done in float32 with one rounding at the end; outputs keep the content's dtype.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from posenc.errors import ShapeError, SpecError
from posenc.nn.rotary_functions import spread_like

Combine = Literal["add", "concat", "weighted", "gated"]


class Combination(nn.Module):
    """Joins content ``x`` ``(batch, tokens, dim)`` and position vectors ``p`` ``(batch | 1, tokens, position_dim)``.

    Args:
        dim: width of the content and of the result.
        position_dim: width of the position vectors; where the combination needs ``dim``, a trained projection without
            bias brings them there.
        content_scale: factor on the content; ``"sqrt"`` is ``sqrt(dim)`` (Vaswani et al. 2017, section 3.4).
        dropout: probability of dropping an entry of the result while training.

    Raises:
        SpecError: a content scale or a dropout that cannot be.
    """

    projected = True

    def __init__(
        self,
        dim: int,
        position_dim: int | None = None,
        *,
        content_scale: float | Literal["sqrt"] = 1.0,
        dropout: float = 0.0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dim, self.position_dim = dim, dim if position_dim is None else position_dim
        if isinstance(content_scale, str) and content_scale != "sqrt":
            raise SpecError('content_scale is a number or "sqrt"', content_scale)
        self.content_scale = math.sqrt(dim) if content_scale == "sqrt" else float(content_scale)
        if not 0 <= dropout < 1:
            raise SpecError("dropout is at least 0 and below 1", dropout)
        self.dropout = nn.Dropout(dropout) if dropout else None
        needs = self.projected and self.position_dim != dim
        self.projection = nn.Linear(self.position_dim, dim, bias=False, device=device, dtype=dtype) if needs else None

    def forward(self, x: Tensor, p: Tensor) -> Tensor:
        """The result, ``(batch, tokens, dim)`` in the dtype of ``x``."""
        if x.shape[-1] != self.dim or p.shape[-1] != self.position_dim:
            raise ShapeError(
                f"content is (batch, tokens, {self.dim}) and positions (batch, tokens, {self.position_dim})",
                f"{tuple(x.shape)} and {tuple(p.shape)}",
                "Give content_dim= the width of the content, or combine='concat'.",
            )
        if self.projection is not None:
            p = self.projection(p.to(self.projection.weight.dtype))
        work = working_dtype(x.dtype)
        content, p = x.to(work), spread_like(x, p)
        if self.content_scale != 1:
            content = content * self.content_scale
        result = self.joined(content, p.to(work)).to(x.dtype)
        return result if self.dropout is None else self.dropout(result)

    def joined(self, x: Tensor, p: Tensor) -> Tensor:
        """Scaled content and positions of one dtype, joined."""
        raise TypeError(f"{type(self).__name__} does not define joined")

    def extra_repr(self) -> str:
        """What is joined, and how the content is scaled."""
        scale = f", content_scale={self.content_scale:g}" if self.content_scale != 1 else ""
        return f"{self.dim}, position_dim={self.position_dim}{scale}"


class Add(Combination):
    """``x + p``: one rounding.

    Content ``(batch, tokens, dim)``, position vectors ``(batch | 1, tokens, position_dim)``; source: Vaswani et al.
    2017, section 3.4.

    >>> Add(4, content_scale="sqrt")(torch.ones(1, 1, 4), torch.tensor([[[0.0, 1.0, 0.5, -1.0]]])).tolist()
    [[[2.0, 3.0, 2.5, 1.0]]]
    """

    def joined(self, x: Tensor, p: Tensor) -> Tensor:
        """``x + p``."""
        return x + p


class Concatenate(Combination):
    """``W [x, p] + b``, trained; contains adding as ``W = [I, I]``, ``b = 0``.

    Content ``(batch, tokens, dim)``, position vectors ``(batch | 1, tokens, position_dim)`` of any width.

    >>> joined = Concatenate(3, position_dim=5)
    >>> joined(torch.ones(2, 7, 3), torch.ones(1, 7, 5)).shape, joined.joint.weight.shape
    (torch.Size([2, 7, 3]), torch.Size([3, 8]))
    """

    projected = False

    def __init__(self, dim: int, position_dim: int | None = None, *, bias: bool = True, **options: Any) -> None:
        super().__init__(dim, position_dim, **options)
        self.joint = nn.Linear(dim + self.position_dim, dim, bias=bias, **_where(options))

    def joined(self, x: Tensor, p: Tensor) -> Tensor:
        """``W [x, p] + b``, in the dtype of ``W``."""
        return self.joint(_side_by_side(x, p).to(self.joint.weight.dtype))  # type: ignore[no-any-return]


class Weighted(Combination):
    """``x + w p`` with one trained number ``w`` that starts at ``start``.

    Content ``(batch, tokens, dim)``, position vectors ``(batch | 1, tokens, position_dim)``.

    >>> Weighted(2, start=0.5)(torch.ones(1, 1, 2), torch.tensor([[[0.0, 1.0]]])).tolist()
    [[[1.0, 1.5]]]
    """

    def __init__(self, dim: int, position_dim: int | None = None, *, start: float = 1.0, **options: Any) -> None:
        super().__init__(dim, position_dim, **options)
        self.start = start
        self.weight = nn.Parameter(torch.empty(1, **_where(options)))  # not a scalar: fully_shard shards no scalars
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The weight at its start."""
        nn.init.constant_(self.weight, self.start)

    def joined(self, x: Tensor, p: Tensor) -> Tensor:
        """``x + w p``."""
        return x + self.weight.to(x.dtype) * p


class Gated(Combination):
    """``g x + (1 - g) p`` with ``g = sigmoid(W [x, p] + b)`` for every channel, trained.

    Content ``(batch, tokens, dim)``, position vectors ``(batch | 1, tokens, position_dim)``.

    >>> gated = Gated(2)
    >>> _ = torch.nn.init.zeros_(gated.gate.weight), torch.nn.init.zeros_(gated.gate.bias)
    >>> gated(torch.ones(1, 1, 2), torch.tensor([[[0.0, 3.0]]])).tolist()
    [[[0.5, 2.0]]]
    """

    def __init__(self, dim: int, position_dim: int | None = None, *, bias: bool = True, **options: Any) -> None:
        super().__init__(dim, position_dim, **options)
        self.gate = nn.Linear(2 * dim, dim, bias=bias, **_where(options))

    def joined(self, x: Tensor, p: Tensor) -> Tensor:
        """``g x + (1 - g) p``."""
        gate = torch.sigmoid(self.gate(_side_by_side(x, p).to(self.gate.weight.dtype)).to(x.dtype))
        return gate * x + (1 - gate) * p


COMBINATIONS: dict[str, type[Combination]] = {
    "add": Add,
    "concat": Concatenate,
    "weighted": Weighted,
    "gated": Gated,
}


def combination(how: str, dim: int, position_dim: int | None = None, **options: Any) -> Combination:
    """The combination called ``how``.

    Raises:
        SpecError: no combination is called that.

    >>> combination("add", 8, content_scale="sqrt", dropout=0.1)
    Add(
      8, position_dim=8, content_scale=2.82843
      (dropout): Dropout(p=0.1, inplace=False)
    )
    """
    if how not in COMBINATIONS:
        raise SpecError(f"combine is one of {', '.join(COMBINATIONS)}", how)
    return COMBINATIONS[how](dim, position_dim, **options)


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """float64 for float64, float32 for everything narrower."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def _where(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("device", "dtype") if name in options}


def _side_by_side(x: Tensor, p: Tensor) -> Tensor:
    return torch.cat((x, p.expand(*x.shape[:-1], p.shape[-1])), -1)
