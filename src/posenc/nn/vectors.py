"""The frame of every encoding that enters at the input: a value, its position vectors, and a combination."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor

from posenc.errors import ShapeError, SpecError
from posenc.nn.building import BUILDERS
from posenc.nn.combine import Combine, combination, working_dtype
from posenc.nn.derived import Derived, may_look
from posenc.nn.interfaces import InputEncoding, Positions, as_positions
from posenc.nn.turns import check_ids
from posenc.spec import Value, parse


class PositionVectors(Derived, InputEncoding):
    """An encoding at the input: :meth:`vectors` gives a vector for each position, :meth:`forward` joins the content.

    Args:
        value: the encoding's value, a line of notation, or its first field.
        combine: ``add``, ``concat``, ``weighted`` or ``gated`` (:mod:`posenc.nn.combine`).
        content_dim: width of the content, if it is not the encoding's own.
        content_scale: factor on the content; ``"sqrt"`` is the root of its width.
        dropout: probability of dropping an entry of the result while training.
        device, dtype: of what is trained.
        fields: the value's fields by name.

    Raises:
        SpecError: the value cannot exist, or is not one of this module's.
    """

    kind: ClassVar[type[Value]]
    """Class of the value."""
    dim: int
    """Width of a position vector."""
    prefix: int
    """Leading tokens that take no position."""
    axes: int
    """Coordinates of a position; with several, ids lead with them."""

    def __init__(
        self,
        value: Any = None,
        *,
        combine: Combine = "add",
        content_dim: int | None = None,
        content_scale: float | Literal["sqrt"] = 1.0,
        dropout: float = 0.0,
        device: Any = None,
        dtype: torch.dtype | None = None,
        **fields: Any,
    ) -> None:
        super().__init__()
        self.value = self._value(value, fields)
        # plain numbers: compilers cannot read a pydantic value everywhere
        self.dim = int(self.value.dim)
        self.prefix = int(getattr(self.value, "prefix", 0))
        self.axes = self.axes_of(self.value)
        self.derive_now()
        self.combination = combination(
            combine,
            self.value.dim if content_dim is None else content_dim,
            self.value.dim,
            content_scale=content_scale,
            dropout=dropout,
            device=device,
            dtype=dtype,
        )

    @classmethod
    def _value(cls, value: Any, fields: dict[str, Any]) -> Any:
        if isinstance(value, str):
            found = parse(value)
            value = found[0] if len(found) == 1 else found
        if not isinstance(value, Value | tuple) or (isinstance(value, tuple) and not _encodings(value)):
            return cls.kind(**fields) if value is None else cls.kind(value, **fields)
        if not isinstance(value, cls.kind):
            raise SpecError(f"{cls.__name__} computes a {cls.kind.__name__}", str(value), "posenc.nn.build finds it.")
        if fields:
            raise SpecError(f"{cls.__name__} takes a value or its fields", sorted(fields), "Use value.replace().")
        return value

    def derive(self) -> dict[str, Any]:
        """Nothing, unless a subclass has numbers of its own."""
        return {}

    @classmethod
    def from_value(cls, value: Any, **options: Any) -> Self:
        """The module of a value; what :func:`posenc.nn.build` calls."""
        return cls(value, **options)

    @classmethod
    def axes_of(cls, value: Any) -> int:
        """Coordinates of a position under a value; with several, ids lead with them."""
        return 1

    def vectors(self, at: Positions | Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Position vectors ``(batch | 1, prefix + tokens, dim)``.

        Args:
            at: ids ``(tokens,)``, ``(batch, tokens)``, led by axes where there are several; prefix tokens have none.
            dtype: of the result; computed in float64 and rounded once.
        """
        ids = as_positions(at, self.axes).ids
        check_ids(ids, may_look)
        ids = ids if self.axes > 1 else ids.unsqueeze(0)
        if ids.shape[2] != 1:
            raise ShapeError("positions at the input are the same for all heads", tuple(ids.shape))
        rows = self.rows(ids[:, :, 0], dtype)
        return rows if not self.prefix else torch.cat((self.prefix_rows(rows), rows), -2)

    def rows(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        """``(batch | 1, tokens, dim)`` of ids ``(axes, batch | 1, tokens)``."""
        raise TypeError(f"{type(self).__name__} does not define rows")

    def prefix_rows(self, like: Tensor) -> Tensor:
        """``(batch | 1, prefix, dim)``: zeros, unless they are trained."""
        return like.new_zeros((like.shape[0], self.prefix, self.dim))

    def first_vectors(self, tokens: int, device: torch.device, dtype: torch.dtype) -> Tensor:
        """Vectors of positions 0, 1, 2…, for a call without positions."""
        if self.axes > 1:
            raise ShapeError(
                f"an encoding over {self.axes} axes needs positions",
                None,
                "Give ids of shape (axes, tokens); posenc.nn.positions.grid makes them.",
            )
        return self.vectors(torch.arange(tokens, device=device), dtype)

    def forward(self, x: Tensor, at: Positions | Tensor | None = None) -> Tensor:
        """``x`` ``(batch, prefix + tokens, content_dim)`` with its positions joined; same shape and dtype.

        Args:
            x: the content; ``(tokens, content_dim)`` is one row.
            at: positions of all tokens, or of all but the prefix tokens, whose ids count for nothing; None is 0, 1, 2…

        Raises:
            ShapeError: the shapes do not fit.
        """
        if x.ndim not in (2, 3) or not x.is_floating_point():
            raise ShapeError("content is (batch, tokens, dim) real numbers", f"{tuple(x.shape)} {x.dtype}")
        if x.ndim == 2:
            return self.forward(x.unsqueeze(0), at).squeeze(0)
        tokens, work = x.shape[1] - self.prefix, working_dtype(x.dtype)
        if tokens < 0:
            raise ShapeError(f"content starts with {self.prefix} tokens without a position", tuple(x.shape))
        if at is None:
            p = self.first_vectors(tokens, x.device, work)
        else:
            at = as_positions(at, self.axes)
            if self.prefix and at.ids.shape[-1] == x.shape[1]:  # the prefix has ids, too: they stand for nothing
                at = at._replace(ids=at.ids[..., self.prefix :])
            p = self.vectors(at, work)
        if p.shape[1] != x.shape[1] or (p.shape[0] != 1 and p.shape[0] != x.shape[0]):
            raise ShapeError(
                "positions are as many as the tokens" + (f" after {self.prefix}" if self.prefix else ""),
                f"content {tuple(x.shape)}, position vectors {tuple(p.shape)}",
            )
        return self.combination(x, p)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """The value in notation."""
        return str(self.value)


def _encodings(values: tuple[Any, ...]) -> bool:
    """Whether a tuple came from notation with several encodings, and is not a first field such as periods or levels."""
    return not values or (isinstance(values[0], Value) and len({type(v) for v in values}) > 1)


def registered(cls: type[PositionVectors]) -> type[PositionVectors]:
    """Register a module as the builder of its value's kind."""
    BUILDERS[cls.kind.model_fields["kind"].default] = cls.from_value
    return cls
