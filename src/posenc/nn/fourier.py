"""Fourier features of real coordinates (E9): fixed random ones, and trained ones through a small network."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from posenc.formulas.fourier import fourier_matrix
from posenc.nn.derived import unrounded
from posenc.nn.time import widest
from posenc.nn.vectors import PositionVectors, registered
from posenc.spec import Fourier, LearnableFourier, Value


@registered
class FourierFeatures(PositionVectors):
    """``cos 2 pi B v, sin 2 pi B v`` with a fixed random ``B`` (Tancik et al. 2020, equation 5); nothing is saved.

    ``B`` follows from the value's seed, so every process has the same.

    Args:
        value: a :class:`posenc.spec.Fourier`, its notation, or its width.
        options: of :class:`posenc.nn.vectors.PositionVectors`.

    >>> FourierFeatures(6, sigma=0.5, axes=2).vectors(torch.zeros(2, 3)).tolist()[0][0]
    [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    """

    kind: ClassVar[type[Value]] = Fourier
    value: Fourier

    def derive(self) -> dict[str, Any]:
        """``B``, ``(axes, dim / 2)`` turns per unit."""
        return {"matrix": fourier_matrix(self.value).T.copy()}

    @classmethod
    def axes_of(cls, value: Any) -> int:
        """Coordinates of a position."""
        return int(value.axes)

    def rows(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        """``(batch | 1, tokens, dim)`` of ids ``(axes, batch | 1, tokens)``."""
        turns = widest(ids).movedim(0, -1) @ self.numbers(ids.device)["matrix"]
        angle = 2 * math.pi * (turns - turns.detach().round())
        return torch.cat((angle.cos(), angle.sin()), -1).to(dtype)


@registered
class LearnableFourierFeatures(PositionVectors):
    """``GeLU(r W_1 + b_1) W_2 + b_2`` with ``r = [cos W x, sin W x] / sqrt(features)``, all trained (Li et al. 2021).

    Args:
        value: a :class:`posenc.spec.LearnableFourier`, its notation, or its width.
        options: of :class:`posenc.nn.vectors.PositionVectors`.

    >>> pe = LearnableFourierFeatures(8, axes=2, hidden=5)
    >>> pe.vectors(torch.rand(2, 7, 3)).shape
    torch.Size([7, 3, 8])
    """

    kind: ClassVar[type[Value]] = LearnableFourier
    value: LearnableFourier

    def __init__(self, value: Any = None, **options: Any) -> None:
        super().__init__(value, **options)
        places = {name: options[name] for name in ("device", "dtype") if name in options}
        v = self.value
        self.matrix = nn.Parameter(torch.empty(v.features // 2, v.axes // v.groups, **places))
        self.first = nn.Linear(v.features, v.hidden, **places)
        self.second = nn.Linear(v.hidden, v.dim // v.groups, **places)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """``W`` as ``N(0, gamma^-2)``, radians per unit; the network as linear layers start."""
        nn.init.normal_(self.matrix, std=1 / self.value.gamma)
        self.first.reset_parameters()
        self.second.reset_parameters()

    @classmethod
    def axes_of(cls, value: Any) -> int:
        """Coordinates of a position."""
        return int(value.axes)

    def rows(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        """``(batch | 1, tokens, dim)`` of ids ``(axes, batch | 1, tokens)``."""
        x = widest(ids).movedim(0, -1)
        x = x.reshape(*x.shape[:-1], self.value.groups, -1)
        angle = x @ self.matrix.to(x.dtype).mT
        r = torch.cat((angle.cos(), angle.sin()), -1) / math.sqrt(self.value.features)
        with unrounded(r.device):
            inner = functional.gelu(self.first(r.to(self.first.weight.dtype)))
            return self.second(inner).flatten(-2).to(dtype)  # type: ignore[no-any-return]
