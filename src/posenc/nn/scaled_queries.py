"""Queries that grow with their position, so that attention stays sharp over long contexts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from posenc.errors import ShapeError, SpecError
from posenc.nn.building import builds
from posenc.nn.derived import may_look
from posenc.nn.interfaces import Positions, QueryKeyEncoding, as_positions
from posenc.nn.rotary_functions import check_out
from posenc.nn.turns import check_ids
from posenc.spec import QueryScale


class QueryScaling(QueryKeyEncoding):
    """Queries times ``1 + beta * ln(1 + floor((p + offset) / original))``; keys as they are (Llama 4, Ministral 3).

    Args:
        beta: how much.
        original: positions until the first step.
        offset: added to the position.

    Raises:
        SpecError: the numbers make no such scale, see :class:`posenc.spec.QueryScale`.

    >>> scaled = QueryScaling(0.1, original=8192)
    >>> q = torch.ones(1, 1, 2, 3)
    >>> [round(v, 4) for v in scaled(q, q, scaled.prepare(torch.tensor([8191, 8192])))[0][0, 0, :, 0].tolist()]
    [1.0, 1.0693]
    """

    value: QueryScale

    def __init__(self, beta: float, *, original: int, offset: int = 0) -> None:
        super().__init__()
        self.value = QueryScale(float(beta), original=original, offset=offset)

    @classmethod
    def from_value(cls, value: QueryScale) -> QueryScaling:
        """The module of a value."""
        if not isinstance(value, QueryScale):
            raise SpecError("a QueryScaling is made from a query_scale", getattr(value, "kind", type(value).__name__))
        return cls(value.beta, original=value.original, offset=value.offset)

    def prepare(self, at: Positions | Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
        """The factor of each token, ``(batch | 1, heads | 1, tokens, 1)``.

        Args:
            at: positions, or ids alone.
            dtype: of the result; float64 for checks.

        Raises:
            ShapeError: the positions have the wrong shape or type.
        """
        ids = as_positions(at).ids
        check_ids(ids, may_look)
        if ids.is_floating_point():
            steps = ((ids + self.value.offset) / self.value.original).floor()
        else:
            steps = (ids.long() + self.value.offset).div(self.value.original, rounding_mode="floor")
        wide = torch.float32 if ids.device.type == "mps" else torch.float64
        return (1 + self.value.beta * steps.to(wide).log1p()).to(dtype).unsqueeze(-1)

    def forward(
        self, q: Tensor, k: Tensor, ready: Any, out: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """``q`` times its factor, ``k`` itself; ``out=(q, k)`` works in place.

        Args:
            q: ``(batch, heads, tokens, head_dim)``.
            k: the same with its own heads.
            ready: what :meth:`prepare` returned for these tokens.
            out: where to write. Not with gradients.

        Raises:
            ShapeError: ``q`` does not have the tokens that were prepared.
        """
        if (
            q.ndim != 4
            or ready.shape[-2] != q.shape[-2]
            or any(n not in (1, m) for n, m in zip(ready.shape[:2], q.shape[:2], strict=True))
        ):
            raise ShapeError(
                f"q is (batch, heads, tokens, head_dim) for positions {tuple(ready.shape[:-1])}", tuple(q.shape)
            )
        scaled = (q.to(torch.promote_types(q.dtype, torch.float32)) * ready).to(q.dtype)
        if out is None:
            return scaled, k
        check_out(q, out[0])
        check_out(k, out[1])
        out[0].copy_(scaled)
        return out[0], out[1] if out[1] is k else out[1].copy_(k)

    def extra_repr(self) -> str:
        return str(self.value)


@builds("query_scale")
def build_query_scale(value: QueryScale, **options: Any) -> QueryScaling:
    """The module of a query scale."""
    return QueryScaling.from_value(value, **options)
