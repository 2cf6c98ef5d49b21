"""Positions made from the content: CoPE's counts and forgetting."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from posenc.errors import ShapeError
from posenc.nn.building import builds
from posenc.nn.channels import SumChannels, widest
from posenc.nn.derived import unrounded
from posenc.nn.interfaces import ContentEncoding, Positions, ScoreEncoding
from posenc.nn.relative import check_width
from posenc.nn.scores import value_of, wide
from posenc.spec import Cope, Forgetting


class ContextualPositions(ScoreEncoding):
    """CoPE: ``q_i . e[p_ij]`` added to the score, ``p_ij`` the gates from key j to query i (Golovneva et al. 2024).

    Gates are sigmoids of the scores as they come, so hidden keys (``-inf``) count nothing: documents, padding and
    windows need no more. Keys are counted in the order in which they are stored. Causal attention only.

    Args:
        value: a :class:`posenc.spec.Cope`, its notation, or the width of a head; its fields may be given by name.
        device, dtype: of the vectors.

    >>> cope = ContextualPositions(4, positions=8)
    >>> scores = torch.zeros(1, 3, 5, 5).masked_fill(torch.ones(5, 5).triu(1).bool(), -torch.inf)
    >>> cope(scores, torch.ones(1, 3, 5, 4), None, None, None).shape
    torch.Size([1, 3, 5, 5])
    """

    causal_only: ClassVar[bool] = True
    value: Cope

    def __init__(
        self, value: Any = None, *, device: Any = None, dtype: torch.dtype | None = None, **fields: Any
    ) -> None:
        super().__init__()
        self.value = value_of(Cope, value, fields)
        shape = (self.value.head_dim, self.value.positions)
        self.vectors = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal with standard deviation 0.02."""
        nn.init.normal_(self.vectors, std=0.02)

    def positions(self, scores: Tensor) -> Tensor:
        """``p_ij = min(sum_(t=j..i) sigmoid(score_it), positions - 1)``, of the shape of scores."""
        gates = torch.sigmoid(scores)
        return gates.flip(-1).cumsum(-1).flip(-1).clamp(max=self.value.positions - 1)

    def forward(self, scores: Tensor, q: Tensor, k: Any, q_at: Any, k_at: Any) -> Tensor:
        """Scores ``(batch, heads, queries, keys)`` with the term; keys and positions are not looked at.

        Args:
            scores: scaled, ``-inf`` where a key is hidden.
            q: ``(batch, heads, queries, head_dim)``.
        """
        check_width(q, self.value.head_dim)
        dtype = wide(scores.dtype)
        at = self.positions(scores.to(dtype))
        low = at.floor()
        part, rows = at - low, low.long()
        by_position = q.to(dtype) @ self.vectors.to(dtype)  # (batch, heads, queries, positions)
        below = by_position.gather(-1, rows)
        above = by_position.gather(-1, (rows + 1).clamp(max=self.value.positions - 1))
        return (scores.to(dtype) + below * (1 - part) + above * part).to(scores.dtype)

    def extra_repr(self) -> str:
        """The value in notation."""
        return str(self.value)


class ForgettingPositions(ContentEncoding):
    """Data-dependent decay: positions ``b_t = sum of log f_s``, whose difference is added to the score.

    ``log f = log sigmoid(w x + b)`` (Lin et al. 2025) or ``-softplus(w x)`` (Veisi et al. 2025), one gate for each head
    of the keys. The bias ``b_i - b_j`` enters as channels (:attr:`applied`). A document starts again from 0.

    Args:
        value: a :class:`posenc.spec.Forgetting`, its notation, or the width of the tokens; its fields by name.
        scale: the softmax scale; ``1 / sqrt(head_dim)`` unless given.
        device, dtype: of the gates' layer.

    >>> forget = ForgettingPositions(4, num_heads=3)
    >>> at, carry = forget(torch.ones(2, 5, 4), Positions(torch.arange(5)))
    >>> at.ids.shape, carry.shape
    (torch.Size([2, 3, 5]), torch.Size([2, 3, 1]))
    """

    causal_only: ClassVar[bool] = True
    value: Forgetting

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
        self.value = value_of(Forgetting, value, fields)
        self.gates = nn.Linear(self.value.dim, self.value.num_heads, bias=self.value.bias, device=device, dtype=dtype)
        self.applied = SumChannels(scale=scale)

    def reset_parameters(self) -> None:
        """As PyTorch starts a linear layer."""
        self.gates.reset_parameters()

    def forward(self, x: Tensor, at: Positions, carry: Any = None) -> tuple[Positions, Any]:
        """Content positions ``(batch, heads, tokens)``, and the carry.

        Args:
            x: ``(batch, tokens, dim)``.
            at: positions, of which the document counts.
            carry: the last positions of the tokens before, ``(batch, heads, 1)``.
        """
        check_tokens(x, self.value.dim)
        gates = linear(self.gates, x).transpose(1, 2).to(widest(x.device))
        decay = functional.logsigmoid(gates) if self.value.form == "log_sigmoid" else -functional.softplus(gates)
        sums = restarted(decay, at.document, carry)
        return at._replace(ids=sums), sums[..., -1:]

    def extra_repr(self) -> str:
        """The value in notation."""
        return str(self.value)


def restarted(steps: Tensor, document: Tensor | None, carry: Tensor | None) -> Tensor:
    """Sums along the tokens that start again at each document.

    Args:
        steps: ``(batch, channels, tokens)``.
        document: ``(batch | 1, tokens)``.
        carry: ``(batch, channels, 1)`` of the tokens before. The first token goes on from there whatever its document:
            only differences within a document count.
    """
    sums = steps.cumsum(-1)
    if carry is not None:
        sums = sums + carry
    if document is None:
        return sums
    starts = torch.zeros_like(document, dtype=torch.bool)
    starts[:, 1:] = document[:, 1:] != document[:, :-1]
    index = torch.arange(document.shape[-1], device=document.device)
    last = torch.where(starts, index, 0).cummax(-1).values.unsqueeze(1)  # the latest start so far, 0 without one
    base = (sums - steps).gather(-1, last.expand(sums.shape))
    return torch.where(last > 0, sums - base, sums)


def linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """A layer in float32 at least, under autocast too: sums over long rows need the digits."""
    dtype = wide(x.dtype)
    bias: Tensor | None = layer.bias
    with unrounded(x.device):
        return functional.linear(x.to(dtype), layer.weight.to(dtype), None if bias is None else bias.to(dtype))


def check_tokens(x: Tensor, dim: int) -> None:
    """Refuse tokens of another width."""
    if x.ndim != 3 or x.shape[-1] != dim:
        raise ShapeError(f"tokens are (batch, tokens, {dim})", tuple(x.shape))


@builds("cope")
def build_cope(value: Cope, **options: Any) -> ContextualPositions:
    """The module of contextual counts."""
    return ContextualPositions(value, **options)


@builds("forgetting")
def build_forgetting(value: Forgetting, **options: Any) -> ForgettingPositions:
    """The module of data-dependent decay."""
    return ForgettingPositions(value, **options)
