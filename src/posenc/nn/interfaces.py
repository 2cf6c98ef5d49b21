"""The four places where positions enter a model, as interfaces; everything in ``posenc.nn`` is one of them.

Facts are declared on the value (``enters``, ``relative``, ``needs_length``); a module carries its frozen value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class Positions(NamedTuple):
    """Where tokens are; a pytree, so it crosses compile, export and checkpointing. A plain tensor of ids does as well.

    Args:
        ids: ``(batch | 1, heads | 1, tokens)`` integer or real; ``(axes, batch | 1, heads | 1, tokens)`` exactly when the
            encoding has several axes.
        length: ``(batch | 1,)`` declared length of each row, constant for a cache's life; needed by length rules only.
            A packed row may declare one for each token, ``(batch | 1, tokens)``: that of its document.
        document: ``(batch | 1, tokens)`` which document of a packed row a token belongs to.
    """

    ids: Tensor
    length: Tensor | None = None
    document: Tensor | None = None


class InputEncoding(nn.Module):
    """Enters once, with the embeddings: ``forward(x, at) -> x``."""

    value: Any

    def forward(self, x: Tensor, at: Positions | Tensor | None = None) -> Tensor:
        """``x`` ``(batch, tokens, dim)``; ``at`` None is 0, 1, 2…"""
        raise TypeError(f"{type(self).__name__} does not define forward")


class QueryKeyEncoding(nn.Module):
    """Enters at queries and keys; ``prepare`` runs once per model forward and is shared by layers with equal values."""

    value: Any

    def prepare(self, at: Positions | Tensor) -> Any:
        """What the layers share: cosines and sines, channels, scales."""
        raise TypeError(f"{type(self).__name__} does not define prepare")

    def forward(
        self, q: Tensor, k: Tensor, ready: Any, out: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """``q`` ``(batch, heads, tokens, head_dim)``, ``k`` alike with its own heads; may return wider heads."""
        raise TypeError(f"{type(self).__name__} does not define forward")


class ScoreEncoding(nn.Module):
    """Enters in the score; for what does not factor into channels."""

    value: Any

    def forward(self, scores: Tensor, q: Tensor, k: Tensor, q_at: Positions, k_at: Positions) -> Tensor:
        """``scores`` ``(batch, heads, queries, keys)`` scaled, masked with ``-inf`` where a key is hidden."""
        raise TypeError(f"{type(self).__name__} does not define forward")

    def score_mod(self) -> Any:
        """The same for ``flex_attention``: ``(score, batch, head, q_index, k_index) -> score``."""
        raise TypeError(f"{type(self).__name__} has no score_mod")


class ContentEncoding(nn.Module):
    """Positions made from the content: ``forward(x, at, carry) -> (at, carry)``; the carry is an argument, never state."""

    value: Any

    def forward(self, x: Tensor, at: Positions, carry: Tensor | None = None) -> tuple[Positions, Tensor]:
        raise TypeError(f"{type(self).__name__} does not define forward")


def as_positions(at: Positions | Tensor, axes: int = 1) -> Positions:
    """Bring ids into their full shape: ``(tokens,)`` and ``(batch, tokens)`` gain what is missing.

    Args:
        at: positions, or ids alone; with several axes ids lead with them.
        axes: how many the encoding has.
    """
    at = at if isinstance(at, Positions) else Positions(at)
    ids, lead = at.ids, int(axes > 1)
    if ids.ndim == lead + 1:
        ids = ids.unsqueeze(lead).unsqueeze(lead)
    elif ids.ndim == lead + 2:
        ids = ids.unsqueeze(lead + 1)
    from posenc.errors import ShapeError

    if ids.ndim != lead + 3 or (lead and ids.shape[0] != axes):
        want = "(tokens,), (batch, tokens) or (batch, heads, tokens)" + (f" after {axes} axes" if lead else "")
        raise ShapeError(f"ids are {want}", tuple(at.ids.shape))
    if ids.dtype in (torch.bool, torch.complex64, torch.complex128):
        raise ShapeError("ids are integers or real numbers", ids.dtype)
    return at._replace(ids=ids)
