"""The frame of everything that enters in the score: a value, distances, dense biases, and ``score_mod``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from posenc.errors import ShapeError, SpecError
from posenc.nn.derived import Derived, may_look, unrounded
from posenc.nn.interfaces import Positions, ScoreEncoding, as_positions
from posenc.nn.rotary_functions import spread_like
from posenc.nn.turns import check_ids
from posenc.spec import Value, parse

ScoreMod = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


def value_of(kind: type[Value], value: Any, fields: dict[str, Any]) -> Any:
    """A value from itself, its notation, or its fields.

    Raises:
        SpecError: it is a value of another kind, or both a value and fields are given.
    """
    if isinstance(value, str):
        found = parse(value)
        value = found[0] if len(found) == 1 else found
    if not isinstance(value, Value) or "kind" not in type(value).model_fields or not hasattr(value, "enters"):
        return kind(**fields) if value is None else kind(value, **fields)
    if not isinstance(value, kind):
        if fields:  # a nested value in first place, such as the sinusoid of a relative one
            return kind(value, **fields)
        first = kind.first_field()
        if first is not None and kind.model_fields[first].annotation is type(value):
            return kind(value)
        raise SpecError(f"this module computes a {kind.__name__}", str(value), "posenc.nn.build finds the right one.")
    if fields:
        raise SpecError(f"a {kind.__name__} comes as a value or as its fields", sorted(fields), "Use value.replace().")
    return value


def ids_of(at: Positions | Tensor) -> Tensor:
    """Ids over one axis as ``(batch | 1, heads | 1, tokens)``, int64 or real.

    Raises:
        ShapeError: several axes, or a number format that cannot hold positions.
    """
    ids = as_positions(at).ids
    check_ids(ids, may_look)
    return ids if ids.is_floating_point() else ids.long()


def distances(q_at: Positions | Tensor, k_at: Positions | Tensor) -> Tensor:
    """``i - j``, query minus key, ``(batch | 1, heads | 1, queries, keys)``."""
    return ids_of(q_at).unsqueeze(-1) - ids_of(k_at).unsqueeze(-2)


def whole(distance: Tensor, what: str) -> Tensor:
    """Refuse real distances where each whole one has a row of its own."""
    if distance.is_floating_point():
        raise ShapeError(
            f"{what} takes whole positions", distance.dtype, "Round them, or use an encoding of real ones."
        )
    return distance


def picked(table: Tensor, rows: Tensor) -> Tensor:
    """``table[..., q, rows[q, k]]``: ``(batch, heads, queries, rows)`` by ``(batch | 1, heads | 1, queries, keys)``."""
    shape = torch.broadcast_shapes(table.shape[:-1], rows.shape[:-1])  # type: ignore[no-untyped-call]
    return table.expand(*shape, table.shape[-1]).gather(-1, rows.expand(*shape, rows.shape[-1]))


def wide(dtype: torch.dtype) -> torch.dtype:
    """The type that scores are computed in: float32 at least."""
    return torch.promote_types(dtype, torch.float32)


class AddedScore(Derived, ScoreEncoding):
    """A bias that depends on positions, queries and keys but not on scores; subclasses define :meth:`bias`."""

    kind: ClassVar[type[Value]]
    """Class of the value."""

    logit_scale: float = 1.0
    """Factor on the softmax scale that comes with the encoding; attention multiplies its scale."""

    in_values: bool = False
    """Whether it also adds to the result of attention, by ``values(weights, q_at, k_at)``."""

    def derive(self) -> dict[str, Any]:
        """Nothing, unless a subclass has numbers of its own."""
        return {}

    @classmethod
    def from_value(cls, value: Any, **options: Any) -> Any:
        """The module of a value; what :func:`posenc.nn.build` calls."""
        return cls(value, **options)

    def bias(self, q: Tensor, k: Tensor, q_at: Positions | Tensor, k_at: Positions | Tensor) -> Tensor:
        """What is added to the score, ``(batch | 1, heads, queries, keys)``, float32 at least.

        Args:
            q: ``(batch, heads, queries, head_dim)``.
            k: ``(batch, heads, keys, head_dim)``, repeated to the heads of ``q``.
            q_at, k_at: their positions.
        """
        raise TypeError(f"{type(self).__name__} does not define bias")

    def forward(
        self, scores: Tensor, q: Tensor, k: Tensor, q_at: Positions | Tensor, k_at: Positions | Tensor
    ) -> Tensor:
        """``scores`` ``(batch, heads, queries, keys)`` with the bias; same dtype.

        Raises:
            ShapeError: the heads, queries or keys do not fit.
        """
        bias = spread_like(scores, fitting(self.bias(q, k, q_at, k_at), scores))
        return (scores.to(wide(scores.dtype)) + bias).to(scores.dtype)

    def extra_repr(self) -> str:
        """The value in notation."""
        return str(self.value)


def fitting(bias: Tensor, scores: Tensor) -> Tensor:
    """Refuse a bias whose heads, queries or keys are not those of the scores."""
    if scores.ndim != 4 or bias.shape[1:] != scores.shape[1:] or bias.shape[0] not in (1, scores.shape[0]):
        raise ShapeError(
            "scores are (batch, heads, queries, keys) of the encoding's heads and of the positions",
            f"scores {tuple(scores.shape)}, bias {tuple(bias.shape)}",
        )
    return bias


class PositionBias(AddedScore):
    """A bias that positions decide alone: :meth:`entries` gives it for any head, query and key, dense or one at a time.

    Args:
        value: the encoding's value, a line of notation, or its first field.
        heads: ``(first, end)``: only these heads, for a part of them on each device.
        device, dtype: of what is trained.
        fields: the value's fields by name.

    Raises:
        SpecError: the value cannot exist or is of another kind, or the heads are no part of its heads.
    """

    def __init__(
        self,
        value: Any = None,
        *,
        heads: tuple[int, int] | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
        **fields: Any,
    ) -> None:
        super().__init__()
        self.value = value_of(self.kind, value, fields)
        first, end = (0, self.value.num_heads) if heads is None else heads
        if not 0 <= first < end <= self.value.num_heads:
            raise SpecError(f"heads are a part of the {self.value.num_heads}, (first, end)", heads)
        self.heads = (first, end)
        self.derive_now()
        self.train_these({"device": device, "dtype": dtype})

    def train_these(self, places: dict[str, Any]) -> None:
        """Make what is trained; nothing by default."""

    @property
    def num_heads(self) -> int:
        """How many heads this module serves."""
        return self.heads[1] - self.heads[0]

    def entries(self, head: Tensor, query: Tensor, key: Tensor, dtype: torch.dtype) -> Tensor:
        """The bias of heads (counted from this module's first), queries and keys at positions that broadcast."""
        raise TypeError(f"{type(self).__name__} does not define entries")

    def at(self, q_at: Positions | Tensor, k_at: Positions | Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """The bias of positions alone, ``(batch | 1, heads, queries, keys)``.

        Args:
            q_at, k_at: positions; any part of a sequence, so that each device computes its own part.
            dtype: of the result.
        """
        query, key = ids_of(q_at), ids_of(k_at)
        head = torch.arange(self.num_heads, device=query.device).view(-1, 1, 1)
        with unrounded(query.device):
            return self.entries(head, query.unsqueeze(-1), key.unsqueeze(-2), dtype)

    def bias(self, q: Tensor, k: Tensor, q_at: Positions | Tensor, k_at: Positions | Tensor) -> Tensor:
        """The bias of these positions in the type that scores are computed in."""
        return self.at(q_at, k_at, wide(q.dtype))

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
            q, k: not looked at.
        """
        query, key = lookup(q_at), lookup(k_at)

        def modify(score: Tensor, batch: Tensor, head: Tensor, q_index: Tensor, k_index: Tensor) -> Tensor:
            entry = self.entries(head, query(batch, head, q_index), key(batch, head, k_index), wide(score.dtype))
            return (score + entry).to(score.dtype)

        return modify


def lookup(at: Positions | Tensor | None) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Positions by batch, head and index, for one score at a time; the index itself without positions."""
    if at is None:
        return lambda batch, head, index: index
    ids = ids_of(at)
    rows, heads = (int(n > 1) for n in ids.shape[:2])
    return lambda batch, head, index: ids[batch * rows, head * heads, index]
