"""Biases of the distance: ALiBi, T5's buckets, KERPLE."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from posenc.formulas.biases import alibi_slopes, t5_buckets
from posenc.formulas.relative import SMALLEST
from posenc.nn.building import builds
from posenc.nn.scores import PositionBias, whole
from posenc.spec import Alibi, Kerple, T5Bias, Value


class AlibiBias(PositionBias):
    """``-slope_h (i - j)`` added to the score, ``-slope_h |i - j|`` if symmetric (Press et al. 2021, section 3).

    Nothing is trained. :class:`posenc.nn.channels.AlibiChannels` is the same without a matrix of biases.

    Args:
        value: a :class:`posenc.spec.Alibi`, its notation, or the number of heads; its fields may be given by name.
        options: of :class:`posenc.nn.scores.PositionBias`.

    >>> AlibiBias(3).at(torch.tensor([2]), torch.arange(3))[0, 0].tolist()
    [[-0.125, -0.0625, 0.0]]
    """

    kind: ClassVar[type[Value]] = Alibi
    value: Alibi

    def derive(self) -> dict[str, Any]:
        """The slopes."""
        return {"slopes": alibi_slopes(self.value.num_heads, self.value.max_bias)}

    def entries(self, head: Tensor, query: Tensor, key: Tensor, dtype: torch.dtype) -> Tensor:
        """``slope (j - i)``."""
        step = key - query
        step = -step.abs() if self.value.symmetric else step
        return self.numbers(query.device)["slopes"].to(dtype)[head + self.heads[0]] * step.to(dtype)


class T5RelativeBias(PositionBias):
    """A trained number for each head and bucket of ``j - i`` (Raffel et al. 2019, section 2.1).

    T5 shares one module among its layers, and does not divide its scores by ``sqrt(d)``: give attention
    ``scale=1.0``.

    Args:
        value: a :class:`posenc.spec.T5Bias`, its notation, or the number of heads; its fields may be given by name.
        options: of :class:`posenc.nn.scores.PositionBias`.

    >>> bias = T5RelativeBias(2, num_buckets=8, max_distance=16)
    >>> bias.at(torch.arange(3), torch.arange(5)).shape
    torch.Size([1, 2, 3, 5])
    """

    kind: ClassVar[type[Value]] = T5Bias
    value: T5Bias

    def train_these(self, places: dict[str, Any]) -> None:
        """The table ``(num_buckets, heads)``, as T5 stores it."""
        self.weight = nn.Parameter(torch.empty(self.value.num_buckets, self.num_heads, **places))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal with standard deviation 0.02."""
        nn.init.normal_(self.weight, std=0.02)

    def derive(self) -> dict[str, Any]:
        """The distances at which buckets of one sign begin, found by the formula's exact arithmetic."""
        return {"edges": t5_edges(self.value)}

    def entries(self, head: Tensor, query: Tensor, key: Tensor, dtype: torch.dtype) -> Tensor:
        """``table[bucket(j - i), head]``."""
        step = whole(key - query, "a bucket")
        edges = self.numbers(query.device)["edges"]
        distance = step.abs() if self.value.bidirectional else (-step).clamp(min=0)
        bucket = (
            (distance.unsqueeze(-1) >= edges).sum(-1)
            if step.ndim == 0
            else torch.bucketize(distance, edges, right=True)
        )
        if self.value.bidirectional:
            bucket = bucket + (step > 0).long() * (self.value.num_buckets // 2)
        return self.weight[bucket, head].to(dtype)


def t5_edges(value: T5Bias) -> Any:
    """int64 ``(buckets of one sign - 1,)``: the smallest distance of each bucket but the first.

    >>> t5_edges(T5Bias(1, num_buckets=8, max_distance=16)).tolist()
    [1, 2, 6]
    """
    count = value.num_buckets // 2 if value.bidirectional else value.num_buckets
    bucket = np.arange(1, count)
    low, high = np.zeros(count - 1, dtype=np.int64), np.full(count - 1, value.max_distance, dtype=np.int64)
    while (high - low > 1).any():  # the bucket of low is below, that of high is not
        middle = (low + high) // 2
        found = t5_buckets(-middle, value.num_buckets, value.max_distance, bidirectional=value.bidirectional)
        low, high = np.where(found < bucket, middle, low), np.where(found < bucket, high, middle)
    return high


class KerpleBias(PositionBias):
    """``-r1 ln(1 + r2 |i - j|)`` or ``-r1 |i - j|^r2`` with trained ``r1``, ``r2`` for each head (Chi et al. 2022).

    Both are read as 0.01 at least, and ``r2`` of a power as 2 at most.

    Args:
        value: a :class:`posenc.spec.Kerple`, its notation, or the number of heads; its fields may be given by name.
        options: of :class:`posenc.nn.scores.PositionBias`.

    >>> kerple = KerpleBias(1)
    >>> _ = torch.nn.init.ones_(kerple.r1), torch.nn.init.ones_(kerple.r2)
    >>> [round(v, 4) for v in kerple.at(torch.tensor([2]), torch.arange(3)).flatten().tolist()]
    [-1.0986, -0.6931, -0.0]
    """

    kind: ClassVar[type[Value]] = Kerple
    value: Kerple

    def train_these(self, places: dict[str, Any]) -> None:
        """``r1`` and ``r2``."""
        self.r1 = nn.Parameter(torch.empty(self.num_heads, **places))
        self.r2 = nn.Parameter(torch.empty(self.num_heads, **places))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform in (0, 2) and (0, 1), as the authors start."""
        nn.init.uniform_(self.r1, 0.0, 2.0)
        nn.init.uniform_(self.r2, 0.0, 1.0)

    def entries(self, head: Tensor, query: Tensor, key: Tensor, dtype: torch.dtype) -> Tensor:
        """The kernel of the distance."""
        d = (query - key).abs().to(dtype)
        r1, r2 = self.r1.to(dtype).clamp(min=SMALLEST)[head], self.r2.to(dtype).clamp(min=SMALLEST)[head]
        return -r1 * (r2 * d).log1p() if self.value.form == "log" else -r1 * d.pow(r2.clamp(max=2.0))


@builds("alibi")
def build_alibi(value: Alibi, *, channels: bool = False, **options: Any) -> nn.Module:
    """ALiBi as a bias, or with ``channels=True`` as channels of queries and keys."""
    if channels:
        from posenc.nn.channels import AlibiChannels

        return AlibiChannels(value, **options)
    return AlibiBias(value, **options)


builds("t5_bias")(T5RelativeBias.from_value)
builds("kerple")(KerpleBias.from_value)
