"""Baselines (E13): one-hot, random vectors, a constant, one clock. They show what being different alone gives."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from posenc.formulas.baselines import random_table
from posenc.nn.learned import checked_rows
from posenc.nn.time import widest
from posenc.nn.vectors import PositionVectors, registered
from posenc.spec import Clock, Constant, OneHot, RandomVectors, Value


@registered
class OneHotEncoding(PositionVectors):
    """Position ``p`` is the unit vector along channel ``p``; an error past channel ``dim - 1``.

    Args:
        value: a :class:`posenc.spec.OneHot`, its notation, or its width.
        options: of :class:`posenc.nn.vectors.PositionVectors`.

    >>> OneHotEncoding(3).vectors(torch.tensor([2, 0])).tolist()
    [[[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]]
    """

    kind: ClassVar[type[Value]] = OneHot
    value: OneHot

    def rows(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        """``(batch | 1, tokens, dim)`` of ids ``(1, batch | 1, tokens)``."""
        index, missing = checked_rows(ids, (self.dim,), None)
        found = (index.unsqueeze(-1) == torch.arange(self.dim, device=index.device)).to(dtype)
        return found if missing is None else found.masked_fill(missing.unsqueeze(-1), torch.nan)


@registered
class RandomVectorsEncoding(PositionVectors):
    """Rows drawn once from the value's seed and fixed: not trained, not saved, the same in every process.

    Args:
        value: a :class:`posenc.spec.RandomVectors`, its notation, or its width.
        options: of :class:`posenc.nn.vectors.PositionVectors`.

    >>> RandomVectorsEncoding(3, length=5, seed=1).vectors(torch.arange(5)).shape
    torch.Size([1, 5, 3])
    """

    kind: ClassVar[type[Value]] = RandomVectors
    value: RandomVectors

    def derive(self) -> dict[str, Any]:
        """All rows."""
        return {"table": random_table(self.value)}

    def rows(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        """``(batch | 1, tokens, dim)`` of ids ``(1, batch | 1, tokens)``."""
        index, missing = checked_rows(ids, (self.value.length,), None)
        found = functional.embedding(index, self.numbers(ids.device)["table"]).to(dtype)
        return found if missing is None else found.masked_fill(missing.unsqueeze(-1), torch.nan)


@registered
class ConstantEncoding(PositionVectors):
    """The same vector at every position.

    Args:
        value: a :class:`posenc.spec.Constant`, its notation, or its width.
        options: of :class:`posenc.nn.vectors.PositionVectors`.

    >>> ConstantEncoding(2, level=0.5).vectors(torch.arange(2)).tolist()
    [[[0.5, 0.5], [0.5, 0.5]]]
    """

    kind: ClassVar[type[Value]] = Constant
    value: Constant

    def rows(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        """``(batch | 1, tokens, dim)`` of ids ``(1, batch | 1, tokens)``."""
        at = ids[0].unsqueeze(-1)
        return torch.full_like(at, self.value.level, dtype=dtype).expand(*at.shape[:-1], self.dim)


@registered
class ClockEncoding(PositionVectors):
    """One clock repeated over the channels: ``sin, cos (2 pi p / period)``; positions a period apart are the same.

    Args:
        value: a :class:`posenc.spec.Clock`, its notation, or its width.
        options: of :class:`posenc.nn.vectors.PositionVectors`.

    >>> ClockEncoding(2, period=2.5).vectors(torch.tensor([0, 5])).tolist()
    [[[0.0, 1.0], [0.0, 1.0]]]
    """

    kind: ClassVar[type[Value]] = Clock
    value: Clock

    def rows(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        """``(batch | 1, tokens, dim)`` of ids ``(1, batch | 1, tokens)``."""
        angle = 2 * math.pi * (torch.fmod(widest(ids[0]), self.value.period) / self.value.period)
        pair = torch.stack((angle.sin(), angle.cos()), -1).to(dtype)
        return pair.repeat(1, 1, self.dim // 2)
