"""Vectors of the distance with queries and in the values: Shaw's trained ones, and the sinusoid."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from posenc.errors import ShapeError, SpecError
from posenc.nn.building import builds
from posenc.nn.interfaces import Positions
from posenc.nn.scores import AddedScore, ScoreMod, distances, ids_of, lookup, picked, value_of, whole, wide
from posenc.nn.waves import by_pair, derived_sinusoid, key_channels, query_channels, waves_at, weighted_rows
from posenc.spec import RelativeSinusoid, Shaw, Value


class RelativeVectors(AddedScore):
    """Base of vectors by clipped distance: a product of queries with every vector, then a look-up for each key.

    The vectors are few, so nothing is ever as large as queries x keys x channels.

    Args:
        scale: the softmax scale, which also multiplies ``q . r``; ``1 / sqrt(head_dim)`` unless given.
    """

    def __init__(self, value: Any, fields: dict[str, Any], scale: float | None) -> None:
        super().__init__()
        self.value = value_of(self.kind, value, fields)
        self.scale = 1 / math.sqrt(self.value.head_dim) if scale is None else scale
        self.in_keys, self.in_values = self.value.keys, self.value.values
        self.limit = self.value.limit
        self.derive_now()

    def key_rows(self, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Vectors for the queries, ``(rows, head_dim)``."""
        raise TypeError(f"{type(self).__name__} does not define key_rows")

    def value_rows(self, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Vectors for the values, ``(rows, head_dim)``."""
        raise TypeError(f"{type(self).__name__} does not define value_rows")

    def index(self, distance: Tensor) -> Tensor:
        """The row of each distance ``i - j``."""
        raise TypeError(f"{type(self).__name__} does not define index")

    def by_row(self, q: Tensor) -> Tensor:
        """``scale q . r`` for every row, ``(batch, heads, queries, rows)``."""
        check_width(q, self.value.head_dim)
        dtype = wide(q.dtype)
        return self.scale * (q.to(dtype) @ self.key_rows(dtype, q.device).T)

    def bias(self, q: Tensor, k: Tensor, q_at: Positions | Tensor, k_at: Positions | Tensor) -> Tensor:
        """``scale q_i . r_(i-j)``."""
        if not self.in_keys:
            return q.new_zeros((1, q.shape[1], q.shape[2], k.shape[2]), dtype=wide(q.dtype))
        return picked(self.by_row(q), self.index(distances(q_at, k_at)))

    def values(self, weights: Tensor, q_at: Positions | Tensor, k_at: Positions | Tensor) -> Tensor:
        """``sum_j weights_ij r_(i-j)`` to add to the result of attention, where :attr:`in_values` says so.

        Args:
            weights: of attention, ``(batch, heads, queries, keys)``.

        Returns:
            ``(batch, heads, queries, head_dim)``.
        """
        rows = self.value_rows(weights.dtype, weights.device)
        index = self.index(distances(q_at, k_at)).expand(weights.shape)
        share = weights.new_zeros((*weights.shape[:-1], len(rows))).scatter_add(-1, index, weights)
        return share @ rows

    def score_mod(
        self,
        q_at: Positions | Tensor | None = None,
        k_at: Positions | Tensor | None = None,
        *,
        q: Tensor | None = None,
        k: Tensor | None = None,
    ) -> ScoreMod:
        """For ``flex_attention``: ``(score, batch, head, q_index, k_index) -> score``.

        Args:
            q_at, k_at: positions of queries and keys; their indices unless given.
            q: the queries that attention gets. k: not looked at.

        Raises:
            SpecError: the encoding also enters in the values, which ``flex_attention`` has no hook for.
        """
        if self.in_values:
            raise SpecError("score_mod adds to scores; this encoding also enters in the values", str(self.value))
        return by_distance(self.by_row(needed(q)), self.index, q_at, k_at)


def needed(x: Tensor | None) -> Tensor:
    """Queries or keys that a score_mod cannot do without."""
    if x is None:
        raise ShapeError("this encoding meets the content: score_mod takes the queries and keys", None, "Pass q=, k=.")
    return x


def by_distance(table: Tensor, index: Callable[[Tensor], Tensor], q_at: Any, k_at: Any) -> ScoreMod:
    """Look up ``table[batch, head, query, index(i - j)]`` for each score."""
    query, key = lookup(q_at), lookup(k_at)

    def modify(score: Tensor, batch: Tensor, head: Tensor, q_index: Tensor, k_index: Tensor) -> Tensor:
        row = index(query(batch, head, q_index) - key(batch, head, k_index))
        return (score + table[batch, head, q_index, row]).to(score.dtype)

    return modify


def check_width(q: Tensor, head_dim: int) -> None:
    """Refuse queries of another width."""
    if q.ndim != 4 or q.shape[-1] != head_dim:
        raise ShapeError(f"q and k are (batch, heads, tokens, {head_dim})", tuple(q.shape))


class ShawVectors(RelativeVectors):
    """Trained vectors of ``clip(j - i, -limit, limit)`` with queries and in the values (Shaw et al. 2018).

    Args:
        value: a :class:`posenc.spec.Shaw`, its notation, or the width of a head; its fields may be given by name.
        scale: the softmax scale; ``1 / sqrt(head_dim)`` unless given.
        device, dtype: of the vectors.

    >>> shaw = ShawVectors(4, limit=2)
    >>> q = torch.ones(1, 3, 5, 4)
    >>> shaw.bias(q, q, torch.arange(5), torch.arange(5)).shape
    torch.Size([1, 3, 5, 5])
    """

    kind: ClassVar[type[Value]] = Shaw
    value: Shaw
    key_vectors: nn.Parameter
    value_vectors: nn.Parameter

    def __init__(
        self,
        value: Any = None,
        *,
        scale: float | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(value, fields, scale)
        for name, used in (("key_vectors", self.value.keys), ("value_vectors", self.value.values)):
            shape = (2 * self.value.limit + 1, self.value.head_dim)
            vectors = nn.Parameter(torch.empty(shape, device=device, dtype=dtype)) if used else None
            self.register_parameter(name, vectors)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot's uniform."""
        for vectors in self.parameters():
            nn.init.xavier_uniform_(vectors)

    def key_rows(self, dtype: torch.dtype, device: torch.device) -> Tensor:
        return self.key_vectors.to(dtype)

    def value_rows(self, dtype: torch.dtype, device: torch.device) -> Tensor:
        return self.value_vectors.to(dtype)

    def index(self, distance: Tensor) -> Tensor:
        """``clip(j - i, -limit, limit) + limit``."""
        limit: int = self.value.limit
        return (-whole(distance, "a vector for each distance")).clamp(-limit, limit) + limit


class RelativeSinusoidVectors(RelativeVectors):
    """The sinusoid ``r_(i-j)`` with queries, or in the values; nothing is trained.

    The sinusoid of Vaswani et al. 2017 in the place of Shaw et al. 2018's vectors.

    Without a limit it is computed from products of queries' and keys' cosines and sines, for real positions too; with
    one, the few vectors there are come from a table.

    Args:
        value: a :class:`posenc.spec.RelativeSinusoid`, its notation, or the sinusoid; its fields may be given by name.
        scale: the softmax scale; ``1 / sqrt(head_dim)`` unless given.

    >>> r = RelativeSinusoidVectors("relative_sinusoid(sinusoidal(4))")
    >>> q = torch.tensor([1.0, 0, 0, 0]).expand(1, 1, 1, 4)
    >>> [round(v, 4) for v in r.bias(q, q, torch.tensor([5]), torch.tensor([3, 7])).flatten().tolist()]
    [0.4546, -0.4546]
    """

    kind: ClassVar[type[Value]] = RelativeSinusoid
    value: RelativeSinusoid

    def __init__(self, value: Any = None, *, scale: float | None = None, **fields: Any) -> None:
        super().__init__(value, fields, scale)

    def derive(self) -> dict[str, Any]:
        return derived_sinusoid(self.value.sinusoid, self.value.limit)

    def key_rows(self, dtype: torch.dtype, device: torch.device) -> Tensor:
        return self.numbers(device)["rows"].to(dtype)

    value_rows = key_rows

    def index(self, distance: Tensor) -> Tensor:
        """``clip(i - j, -limit, limit) + limit``."""
        limit = self.limit or 0
        return whole(distance, "a limit").clamp(-limit, limit) + limit

    def bias(self, q: Tensor, k: Tensor, q_at: Positions | Tensor, k_at: Positions | Tensor) -> Tensor:
        """``scale q_i . r_(i-j)``."""
        if self.limit is not None or not self.in_keys:
            return super().bias(q, k, q_at, k_at)
        check_width(q, self.value.head_dim)
        numbers, dtype = self.numbers(q.device), wide(q.dtype)
        weights = by_pair(self.scale * q.to(dtype), numbers)
        queries = query_channels(*waves_at(ids_of(q_at), numbers, dtype), *weights)
        return queries @ key_channels(*waves_at(ids_of(k_at), numbers, dtype)).transpose(-1, -2)

    def values(self, weights: Tensor, q_at: Positions | Tensor, k_at: Positions | Tensor) -> Tensor:
        """``sum_j weights_ij r_(i-j)``."""
        if self.limit is not None:
            return super().values(weights, q_at, k_at)
        numbers, dtype = self.numbers(weights.device), weights.dtype
        keys = key_channels(*waves_at(ids_of(k_at), numbers, dtype))
        return weighted_rows(weights, waves_at(ids_of(q_at), numbers, dtype), keys, numbers)

    def score_mod(
        self,
        q_at: Positions | Tensor | None = None,
        k_at: Positions | Tensor | None = None,
        *,
        q: Tensor | None = None,
        k: Tensor | None = None,
    ) -> ScoreMod:
        """For ``flex_attention``; an encoding with a limit only: without one there is no table to look up in."""
        if self.limit is None:
            raise SpecError("score_mod looks vectors up by distance and needs a limit", str(self.value))
        return super().score_mod(q_at, k_at, q=q, k=k)


builds("shaw")(ShawVectors.from_value)
builds("relative_sinusoid")(RelativeSinusoidVectors.from_value)
