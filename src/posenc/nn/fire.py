"""FIRE: a small network of the distance, as a function of pieces so that no score holds the network's hidden units."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from posenc.nn.building import builds
from posenc.nn.scores import PositionBias
from posenc.spec import Fire, Value


class FireBias(PositionBias):
    """A trained network of ``psi(i - j) / (psi(max(L, i)) + eps)``, ``psi(x) = ln(|c x| + 1)`` (Li et al. 2023).

    A network of one input and rectified units is linear between the inputs at which its units switch. Each score looks
    up the slope and height of its piece: exact, with exact gradients, and without hidden units for every score.

    Args:
        value: a :class:`posenc.spec.Fire`, its notation, or the number of heads; its fields may be given by name.
        options: of :class:`posenc.nn.scores.PositionBias`.

    >>> fire = FireBias(2)
    >>> round(fire.read(torch.tensor(100), torch.tensor(90), torch.float64).item(), 6)
    0.175255
    """

    kind: ClassVar[type[Value]] = Fire
    value: Fire

    def train_these(self, places: dict[str, Any]) -> None:
        """The network, ``c``, and the factor on the threshold."""
        self.inner = nn.Linear(1, self.value.hidden, **places)
        self.outer = nn.Linear(self.value.hidden, self.num_heads, **places)
        self.c = nn.Parameter(torch.empty(1, **places))  # not scalars: fully_shard shards none
        self.multiplier = nn.Parameter(torch.empty(1, **places))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The layers as PyTorch starts them, ``c`` as the value says, the factor at 1."""
        self.inner.reset_parameters()
        self.outer.reset_parameters()
        nn.init.constant_(self.c, self.value.c)
        nn.init.ones_(self.multiplier)

    def read(self, query: Tensor, key: Tensor, dtype: torch.dtype) -> Tensor:
        """What the network reads, for positions that broadcast."""
        c, limit = self.c[0].to(dtype), (self.value.threshold * self.multiplier[0].to(dtype)).abs()
        longest = torch.maximum(query.to(dtype), limit)
        psi = (c * (query - key).to(dtype)).abs().log1p()
        return psi / ((c * longest).abs().log1p() + self.value.eps)

    def entries(self, head: Tensor, query: Tensor, key: Tensor, dtype: torch.dtype) -> Tensor:
        """``slope[head, piece] x + height[head, piece]``."""
        x = self.read(query, key, dtype)
        w1, b1 = self.inner.weight[:, 0].to(dtype), self.inner.bias.to(dtype)
        w2, b2 = self.outer.weight.to(dtype), self.outer.bias.to(dtype)
        with torch.no_grad():
            switch = torch.where(w1 == 0, torch.inf, -b1 / w1).nan_to_num(torch.inf, torch.inf, -torch.inf)
            edges = switch.sort().values
            inside = pieces(edges)
            active = (inside.unsqueeze(-1) * w1 + b1 > 0).to(dtype)  # (pieces, hidden): the units that let through
            x_at = x.detach()
            piece = (x_at.unsqueeze(-1) > edges).sum(-1) if x.ndim == 0 else torch.bucketize(x_at, edges)
        slope = (active * w1) @ w2.T  # (pieces, heads)
        height = (active * b1) @ w2.T + b2
        return slope[piece, head] * x + height[piece, head]


def pieces(edges: Tensor) -> Tensor:
    """One number inside each piece that sorted edges cut, ``(edges + 1,)``; edges at infinity cut nothing."""
    finite = edges.clamp(-1e30, 1e30)
    middle = (finite[1:] + finite[:-1]) / 2
    return torch.cat((finite[:1] - finite[:1].abs() - 1, middle, finite[-1:] + finite[-1:].abs() + 1))


builds("fire")(FireBias.from_value)
