"""Positions at several scales at once (E5): token in sentence and sentence in document; step, hour and day."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from posenc.errors import ShapeError
from posenc.nn.inputs import SinusoidalEncoding
from posenc.nn.interfaces import Positions
from posenc.nn.vectors import PositionVectors, registered
from posenc.spec import Hierarchical, Value


@registered
class HierarchicalEncoding(PositionVectors):
    """A sinusoid for each scale, side by side in channels of its own.

    With ``sizes`` positions are one running index, whole or real, that is taken apart like a clock: ``t mod s_0``, then
    ``floor(t / s_0) mod s_1``, … and the coarsest level has no limit. Without ``sizes`` they are coordinates
    ``(levels, tokens)`` or ``(levels, batch, tokens)``, finest first; :func:`sentence_positions` makes them for text.

    Args:
        value: a :class:`posenc.spec.Hierarchical`, its notation, or its levels.
        options: of :class:`posenc.nn.vectors.PositionVectors`.

    >>> pe = HierarchicalEncoding("hierarchical((sinusoidal(4), sinusoidal(2)), sizes=(24,))")
    >>> pe.vectors(torch.tensor([25])).shape
    torch.Size([1, 1, 6])
    """

    kind: ClassVar[type[Value]] = Hierarchical
    value: Hierarchical

    def __init__(self, value: Any = None, **options: Any) -> None:
        super().__init__(value, **options)
        self.levels = nn.ModuleList(SinusoidalEncoding(level) for level in self.value.levels)

    @classmethod
    def axes_of(cls, value: Any) -> int:
        """One running index with sizes, else a coordinate for each level."""
        return 1 if value.sizes else len(value.levels)

    def rows(self, ids: Tensor, dtype: torch.dtype) -> Tensor:
        """``(batch | 1, tokens, dim)`` of ids ``(1 | levels, batch | 1, tokens)``."""
        levels = list(ids) if not self.value.sizes else levels_of(ids[0], self.value.sizes)
        return torch.cat([level.rows(at[None], dtype) for level, at in zip(self.levels, levels, strict=True)], -1)  # type: ignore[operator]


def levels_of(index: Tensor, sizes: tuple[int, ...]) -> list[Tensor]:
    """A running index taken apart, finest level first; negative indices count back from the next coarser step.

    >>> [level.tolist() for level in levels_of(torch.tensor([25, 24 * 7 + 1]), (24, 7))]
    [[1, 1], [1, 0], [0, 1]]
    """
    rest, levels = index, []
    for size in sizes:
        levels.append(torch.remainder(rest, size))
        rest = torch.div(rest, size, rounding_mode="floor")
    return [*levels, rest]


def sentence_positions(starts: Tensor, document: Tensor | None = None) -> Positions:
    """Token in sentence and sentence in document, from where sentences start.

    Args:
        starts: ``(batch, tokens)`` booleans, true at the first token of each sentence; the first token of a row and of
            a document starts one in any case.
        document: ``(batch, tokens)`` which document of a packed row a token belongs to; sentences are counted anew.

    Returns:
        Positions whose ids are ``(2, batch, tokens)``.

    Raises:
        ShapeError: the shapes differ, or starts are no booleans.

    >>> sentence_positions(torch.tensor([[True, False, False, True, False]])).ids.tolist()
    [[[0, 1, 2, 0, 1]], [[0, 0, 0, 1, 1]]]
    """
    if starts.ndim != 2 or starts.dtype != torch.bool or (document is not None and document.shape != starts.shape):
        seen = f"{tuple(starts.shape)} {starts.dtype}" + ("" if document is None else f", {tuple(document.shape)}")
        raise ShapeError("starts are (batch, tokens) booleans, and document has their shape", seen)
    index = torch.arange(starts.shape[1], device=starts.device).expand_as(starts)
    fresh = index == 0
    if document is not None:
        fresh = fresh | torch.cat((fresh[:, :1], document[:, 1:] != document[:, :-1]), 1)
    starts = starts | fresh
    token = index - torch.where(starts, index, 0).cummax(1).values
    sentence = starts.long().cumsum(1)
    sentence = sentence - torch.where(fresh, sentence, 0).cummax(1).values
    return Positions(torch.stack((token, sentence)), document=document)
