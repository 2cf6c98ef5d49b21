"""Transformer-XL's relative attention: a sinusoid of the distance through a projection, and two trained biases."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from posenc.errors import ShapeError, SpecError
from posenc.nn.building import builds
from posenc.nn.interfaces import Positions
from posenc.nn.relative import by_distance, check_width, needed
from posenc.nn.scores import AddedScore, ScoreMod, distances, ids_of, picked, value_of, whole, wide
from posenc.nn.waves import by_pair, derived_sinusoid, key_channels, query_channels, waves_at
from posenc.spec import TransformerXL, Value


class TransformerXLScores(AddedScore):
    """``(u . k_j + (q_i + v) . W_R R_(i-j)) / sqrt(head_dim)`` beside the score (Dai et al. 2019, section 3.3).

    ``(q + v) W_R`` weights the sinusoid's channels, so that without a limit the whole term is one product of queries'
    and keys' cosines and sines: no relative shift, no vector for any distance, any positions.

    Args:
        value: a :class:`posenc.spec.TransformerXL`, its notation, or the width of a head; its fields by name.
        scale: the softmax scale; ``1 / sqrt(head_dim)`` unless given.
        device, dtype: of what is trained.

    >>> xl = TransformerXLScores(4, num_heads=3)
    >>> q = torch.ones(1, 3, 5, 4)
    >>> xl.bias(q, q, torch.arange(5), torch.arange(5)).shape, xl.projection.weight.shape
    (torch.Size([1, 3, 5, 5]), torch.Size([12, 12]))
    """

    kind: ClassVar[type[Value]] = TransformerXL
    value: TransformerXL

    def __init__(
        self,
        value: Any = None,
        *,
        scale: float | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
        **fields: Any,
    ) -> None:
        super().__init__()
        self.value = value_of(TransformerXL, value, fields)
        heads, width = self.value.num_heads, self.value.head_dim
        self.scale = 1 / math.sqrt(width) if scale is None else scale
        self.derive_now()
        self.u = nn.Parameter(torch.empty(heads, width, device=device, dtype=dtype))
        self.v = nn.Parameter(torch.empty(heads, width, device=device, dtype=dtype))
        self.projection = nn.Linear(self.value.sinusoid.dim, heads * width, bias=False, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Everything normal with standard deviation 0.02."""
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.02)

    def derive(self) -> dict[str, Any]:
        return derived_sinusoid(self.value.sinusoid, self.value.limit)

    def bias(self, q: Tensor, k: Tensor, q_at: Positions | Tensor, k_at: Positions | Tensor) -> Tensor:
        """Both terms with positions, and ``u . k``."""
        self._check(q, k)
        dtype = wide(q.dtype)
        content = self.scale * (self.u.to(dtype).unsqueeze(-2) @ k.to(dtype).transpose(-1, -2))  # (b, heads, 1, keys)
        if self.value.limit is not None:
            return content + picked(self.by_row(q), self.index(distances(q_at, k_at)))
        numbers = self.numbers(q.device)
        weights = (self.scale * (q.to(dtype) + self.v.to(dtype).unsqueeze(-2))) @ self._weight(dtype)
        queries = query_channels(*waves_at(ids_of(q_at), numbers, dtype), *by_pair(weights, numbers))
        return content + queries @ key_channels(*waves_at(ids_of(k_at), numbers, dtype)).transpose(-1, -2)

    def by_row(self, q: Tensor) -> Tensor:
        """``scale (q + v) . W_R R`` for every row of the table, ``(batch, heads, queries, rows)``."""
        dtype = wide(q.dtype)
        rows = self.numbers(q.device)["rows"].to(dtype) @ self._weight(dtype).transpose(-1, -2)
        return (self.scale * (q.to(dtype) + self.v.to(dtype).unsqueeze(-2))) @ rows.transpose(-1, -2)

    def index(self, distance: Tensor) -> Tensor:
        """``clip(i - j, -limit, limit) + limit``."""
        limit = self.value.limit or 0
        return whole(distance, "a limit").clamp(-limit, limit) + limit

    def score_mod(
        self,
        q_at: Positions | Tensor | None = None,
        k_at: Positions | Tensor | None = None,
        *,
        q: Tensor | None = None,
        k: Tensor | None = None,
    ) -> ScoreMod:
        """For ``flex_attention``; an encoding with a limit only.

        Args:
            q_at, k_at: positions of queries and keys; their indices unless given.
            q, k: what attention gets, keys repeated to the heads of the queries.
        """
        if self.value.limit is None:
            raise SpecError("score_mod looks vectors up by distance and needs a limit", str(self.value))
        q, k = needed(q), needed(k)
        self._check(q, k)
        dtype = wide(q.dtype)
        content = self.scale * (self.u.to(dtype).unsqueeze(-2) @ k.to(dtype).transpose(-1, -2))[..., 0, :]
        position = by_distance(self.by_row(q), self.index, q_at, k_at)

        def modify(score: Tensor, batch: Tensor, head: Tensor, q_index: Tensor, k_index: Tensor) -> Tensor:
            found = position(score, batch, head, q_index, k_index)
            return (found + content[batch, head, k_index]).to(score.dtype)

        return modify

    def _weight(self, dtype: torch.dtype) -> Tensor:
        """``W_R`` as ``(heads, head_dim, width of R)``."""
        return self.projection.weight.to(dtype).view(self.value.num_heads, self.value.head_dim, -1)

    def _check(self, q: Tensor, k: Tensor) -> None:
        for x in (q, k):
            check_width(x, self.value.head_dim)
            if x.shape[1] != self.value.num_heads:
                raise ShapeError(f"q and k have {self.value.num_heads} heads", tuple(x.shape))


builds("transformer_xl")(TransformerXLScores.from_value)
