"""Trained tables at the input (E2), and fixed sinusoids with a trained correction (E3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from posenc.errors import ShapeError, SpecError
from posenc.formulas.learned import resample_table
from posenc.nn.derived import may_look
from posenc.nn.vectors import PositionVectors, registered
from posenc.spec import Adjusted, Learned, Value

REMEDY = "A learned table does not extrapolate: shorten the input or resample the table."


@registered
class LearnedTable(PositionVectors):
    """A trained table of position vectors joined with the input; an error past its last row (Gehring et al. 2017).

    Eager calls on the CPU refuse a position without a row. Compiled code, other devices and transforms cannot look at
    positions; there such a position's vector is NaN, never another position's row.

    Args:
        value: a :class:`posenc.spec.Learned`, its notation, or a width; its fields may be given by name.
        trained: number of positions that training ever reached; rows beyond exist but hold their random start, and
            asking for one is an error of its own.
        start: standard deviation of the random start.
        options: of :class:`posenc.nn.vectors.PositionVectors`.

    Raises:
        SpecError: the value cannot exist, or more positions were trained than there are.

    >>> pe = LearnedTable(4, shape=(7,), trained=5)
    >>> pe(torch.zeros(1, 6, 4))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    posenc.errors.ShapeError: only the first 5 positions were ever trained; got 6 tokens. The rows beyond exist, ...
    """

    kind: ClassVar[type[Value]] = Learned
    value: Learned

    def __init__(self, value: Any = None, *, trained: int | None = None, start: float = 0.02, **options: Any) -> None:
        super().__init__(value, **options)
        self.trained, self.start = trained, start
        if trained is not None and not 0 < trained <= self.positions:
            raise SpecError(f"between 1 and {self.positions} positions were trained", trained)
        self.weight = nn.Parameter(torch.empty(self.value.rows, self.dim, **_places(options)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal with standard deviation ``start``."""
        nn.init.normal_(self.weight, std=self.start)

    @property
    def positions(self) -> int:
        """How many positions have a row."""
        return math.prod(self.value.shape)

    @classmethod
    def axes_of(cls, value: Any) -> int:
        """Coordinates of a position."""
        return len(value.shape)

    def rows(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        """``(batch | 1, tokens, dim)`` of ids ``(axes, batch | 1, tokens)``."""
        index, missing = checked_rows(ids, self.value.shape, self.trained)
        found = functional.embedding(index + self.value.prefix + self.value.offset, self.weight).to(dtype)
        return found if missing is None else found.masked_fill(missing.unsqueeze(-1), torch.nan)

    def prefix_rows(self, like: Tensor) -> Tensor:
        """``(batch | 1, prefix, dim)``: the first rows of the table."""
        return self.weight[: self.prefix].to(like.dtype).expand(like.shape[0], -1, -1)

    def first_vectors(self, tokens: int, device: torch.device, dtype: torch.dtype) -> Tensor:
        """Positions 0, 1, 2…; of a grid, all its cells row by row.

        Raises:
            ShapeError: fewer rows than tokens, or trained ones, or part of a grid.
        """
        check_tokens(tokens, self.value.shape, self.trained)
        first = self.value.prefix + self.value.offset
        rows = self.weight[first : first + tokens].to(dtype)[None]
        return rows if not self.prefix else torch.cat((self.prefix_rows(rows), rows), -2)

    def resample(self, shape: int | Sequence[int], method: str = "cubic") -> LearnedTable:
        """A new module for another length or grid; cell centres stay in place, prefix and offset rows are kept.

        Args:
            shape: positions by axis, as many axes as now.
            method: ``cubic`` or ``linear`` (:func:`posenc.formulas.resample_table`); computed in float64.

        >>> LearnedTable(4, shape=(3, 5), prefix=1).resample((6, 7)).value.rows
        43
        """
        new = (shape,) if isinstance(shape, int) else tuple(shape)
        kept = self.prefix + self.value.offset
        table = self.weight.detach().to("cpu", torch.float64).numpy()
        made = LearnedTable(self.value.replace(shape=new), start=self.start, device="meta")
        made.combination = self.combination
        resampled = torch.from_numpy(resample_table(table, self.value.shape, new, kept, method))
        made.weight = nn.Parameter(resampled.to(self.weight.device, self.weight.dtype))
        return made.train(self.training)


@registered
class AdjustedSinusoid(PositionVectors):
    """A fixed sinusoid plus a trained correction that starts at nothing (E3).

    The sinusoid is no parameter, is not counted and not saved. Form ``table``: ``PE + C``, ``prod(shape) * dim``
    numbers; form ``scale_shift``: ``(1 + a) PE + b``, ``2 dim`` numbers. Past ``shape`` both refuse as
    :class:`LearnedTable` does.

    Args:
        value: a :class:`posenc.spec.Adjusted`, its notation, or a :class:`posenc.spec.Sinusoidal` with ``shape=``.
        trained: number of positions that training ever reached.
        options: of :class:`posenc.nn.vectors.PositionVectors`.

    Raises:
        SpecError: the value cannot exist, or more positions were trained than there are.

    >>> from posenc.spec import Sinusoidal
    >>> pe = AdjustedSinusoid(Sinusoidal(4), shape=(7,))
    >>> {name: tuple(p.shape) for name, p in pe.state_dict().items()}
    {'correction': (7, 4)}
    """

    kind: ClassVar[type[Value]] = Adjusted
    value: Adjusted

    def __init__(self, value: Any = None, *, trained: int | None = None, **options: Any) -> None:
        from posenc.nn.inputs import SinusoidalEncoding

        super().__init__(value, **options)
        if trained is not None and not 0 < trained <= math.prod(self.value.shape):
            raise SpecError(f"between 1 and {math.prod(self.value.shape)} positions were trained", trained)
        self.trained = trained
        self.sinusoid = SinusoidalEncoding(self.value.sinusoid)
        places = _places(options)
        if self.value.form == "table":
            self.correction = nn.Parameter(torch.empty(math.prod(self.value.shape), self.dim, **places))
        else:
            self.scale = nn.Parameter(torch.empty(self.dim, **places))
            self.shift = nn.Parameter(torch.empty(self.dim, **places))
        self.reset_parameters()

    @classmethod
    def _value(cls, value: Any, fields: dict[str, Any]) -> Any:
        if getattr(value, "kind", None) == "sinusoidal":
            return Adjusted(value, **fields)
        return super()._value(value, fields)

    def reset_parameters(self) -> None:
        """No correction."""
        for parameter in self.parameters(recurse=False):
            nn.init.zeros_(parameter)

    @classmethod
    def axes_of(cls, value: Any) -> int:
        """Coordinates of a position."""
        return len(value.shape)

    def rows(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        """``(batch | 1, tokens, dim)`` of ids ``(axes, batch | 1, tokens)``."""
        index, missing = checked_rows(ids, self.value.shape, self.trained)
        fixed = self.sinusoid.rows(ids, dtype)
        if self.value.form == "table":
            found = fixed + functional.embedding(index, self.correction).to(dtype)
        else:
            found = fixed * (1 + self.scale.to(dtype)) + self.shift.to(dtype)
        return found if missing is None else found.masked_fill(missing.unsqueeze(-1), torch.nan)

    def first_vectors(self, tokens: int, device: torch.device, dtype: torch.dtype) -> Tensor:
        """Positions 0, 1, 2…; of a grid, all its cells row by row."""
        check_tokens(tokens, self.value.shape, self.trained)
        if self.axes == 1:
            return super().first_vectors(tokens, device, dtype)
        index, cells = torch.arange(tokens, device=device), []
        for size in reversed(self.value.shape):
            cells.append(index % size)
            index = index // size
        return self.vectors(torch.stack(cells[::-1]), dtype)


def check_tokens(tokens: int, shape: Sequence[int], trained: int | None) -> None:
    """Refuse more tokens than a table has rows, or trained rows; a grid is filled exactly."""
    most = math.prod(shape)
    if len(shape) > 1 and tokens != most:
        grid = " x ".join(map(str, shape))
        raise ShapeError(f"without positions a table of {grid} cells takes {most} tokens", f"{tokens} tokens", REMEDY)
    if tokens > most:
        raise ShapeError(f"a learned table has rows for positions 0 to {most - 1}", f"{tokens} tokens", REMEDY)
    if trained is not None and tokens > trained:
        raise ShapeError(
            f"only the first {trained} positions were ever trained",
            f"{tokens} tokens",
            "The rows beyond exist, but hold their random start.",
        )


def checked_rows(ids: Tensor, shape: Sequence[int], trained: int | None) -> tuple[Tensor, Tensor | None]:
    """Row numbers of ids ``(axes, batch | 1, tokens)``, last axis fastest, and which have none where none may look.

    Raises:
        ShapeError: ids are no integers; or, where values can be looked at, a position has no row or no trained one.
    """
    if ids.is_floating_point():
        raise ShapeError("positions of a learned table are integers", ids.dtype)
    index, missing = torch.zeros_like(ids[0], dtype=torch.int64), torch.zeros_like(ids[0], dtype=torch.bool)
    for axis, size in enumerate(shape):
        at = ids[axis].long()
        outside = (at < 0) | (at >= size)
        if may_look(ids) and bool(outside.any()):
            rule = f"a learned table has rows for positions 0 to {size - 1}"
            raise ShapeError(rule + (f" on axis {axis}" if len(shape) > 1 else ""), int(at[outside][0]), REMEDY)
        missing = missing | outside
        index = index * size + at
    if trained is not None:
        late = index >= trained
        if may_look(ids) and bool(late.any()):
            raise ShapeError(
                f"only the first {trained} positions were ever trained",
                int(index[late][0]),
                "The row exists, but holds its random start.",
            )
        missing = missing | late
    return (index, None) if may_look(ids) else (index.masked_fill(missing, 0), missing)


def _places(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("device", "dtype") if name in options}
