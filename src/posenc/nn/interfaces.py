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
        ids: ``(batch | 1, heads | 1, tokens)`` integer or real; ``(axes, batch | 1, heads | 1, tokens)`` exactly when
            the encoding has several axes.
        length: ``(batch | 1,)`` declared length of each row, constant for a cache's life; needed by length rules only.
            A packed row may declare one for each token, ``(batch | 1, tokens)``: that of its document.
        document: ``(batch | 1, tokens)`` which document of a packed row a token belongs to.

    >>> Positions(torch.arange(3), length=torch.tensor([8])).ids.tolist()
    [0, 1, 2]
    """

    ids: Tensor
    length: Tensor | None = None
    document: Tensor | None = None


class InputEncoding(nn.Module):
    """Enters once, with the embeddings: ``forward(x, at) -> x``, ``x`` ``(batch, tokens, dim)``.

    >>> from posenc.nn import build
    >>> isinstance(build("sinusoidal(6)"), InputEncoding)
    True
    """

    value: Any

    def forward(self, x: Tensor, at: Positions | Tensor | None = None) -> Tensor:
        """``x`` ``(batch, tokens, dim)``; ``at`` None is 0, 1, 2…"""
        raise TypeError(f"{type(self).__name__} does not define forward")


class QueryKeyEncoding(nn.Module):
    """Enters at queries and keys; ``prepare`` runs once per model forward and is shared by layers with equal values.

    Queries are ``(batch, heads, tokens, head_dim)``, keys alike with heads of their own.

    >>> from posenc.nn import build
    >>> rope, q = build("rotary(4)"), torch.ones(1, 2, 3, 4)
    >>> [x.shape for x in rope(q, q[:, :1], rope.prepare(torch.arange(3)))]
    [torch.Size([1, 2, 3, 4]), torch.Size([1, 1, 3, 4])]
    """

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
    """Enters in the score; for what does not factor into channels.

    Scores are ``(batch, heads, queries, keys)``, already scaled and masked.

    >>> from posenc.nn import build
    >>> alibi, q, at = build("alibi(2)"), torch.ones(1, 2, 3, 4), Positions(torch.arange(3))
    >>> alibi(torch.zeros(1, 2, 3, 3), q, q, at, at)[0, 0, 2].tolist()
    [-0.125, -0.0625, 0.0]
    """

    value: Any

    def forward(self, scores: Tensor, q: Tensor, k: Tensor, q_at: Positions, k_at: Positions) -> Tensor:
        """``scores`` ``(batch, heads, queries, keys)`` scaled, masked with ``-inf`` where a key is hidden."""
        raise TypeError(f"{type(self).__name__} does not define forward")

    def score_mod(
        self,
        q_at: Positions | Tensor | None = None,
        k_at: Positions | Tensor | None = None,
        *,
        q: Tensor | None = None,
        k: Tensor | None = None,
    ) -> Any:
        """The same for ``flex_attention``: ``(score, batch, head, q_index, k_index) -> score``.

        Args:
            q_at, k_at: positions of queries and keys; their indices unless given.
            q, k: what attention gets, for an encoding that meets the content.
        """
        raise TypeError(f"{type(self).__name__} has no score_mod")


class ContentEncoding(nn.Module):
    """Positions made from the content: ``forward(x, at, carry) -> (at, carry)``; the carry is an argument, never state.

    Tokens ``x`` are ``(batch, tokens, dim)``, and so few of them at a time as one likes.

    >>> from posenc.nn import build
    >>> forget, x = build("forgetting(4, num_heads=2)"), torch.ones(1, 5, 4)
    >>> whole, _ = forget(x, Positions(torch.arange(5)))
    >>> first, carry = forget(x[:, :3], Positions(torch.arange(3)))
    >>> rest, carry = forget(x[:, 3:], Positions(torch.arange(3, 5)), carry)
    >>> torch.allclose(torch.cat((first.ids, rest.ids), -1), whole.ids)
    True
    """

    value: Any

    def forward(self, x: Tensor, at: Positions, carry: Tensor | None = None) -> tuple[Positions, Tensor]:
        raise TypeError(f"{type(self).__name__} does not define forward")


def as_positions(at: Positions | Tensor, axes: int = 1) -> Positions:
    """Bring ids into their full shape: ``(tokens,)`` and ``(batch, tokens)`` gain what is missing.

    Args:
        at: positions, or ids alone; with several axes ids lead with them.
        axes: how many the encoding has.

    Raises:
        ShapeError: ids of another shape, or that are no numbers.

    >>> as_positions(torch.arange(3)).ids.shape, as_positions(torch.zeros(2, 5, 3), axes=2).ids.shape
    (torch.Size([1, 1, 3]), torch.Size([2, 5, 1, 3]))
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
