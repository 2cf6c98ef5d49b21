"""Biases that are sinusoids of the distance: a trained weighting for each head, and Sandwich."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from posenc.errors import ShapeError, SpecError
from posenc.formulas.relative import sandwich_ratios, sandwich_theta
from posenc.nn.building import builds
from posenc.nn.derived import unrounded
from posenc.nn.interfaces import Positions
from posenc.nn.scores import PositionBias, ScoreMod, ids_of, lookup, whole
from posenc.nn.waves import by_pair, derived_sinusoid, derived_waves, key_channels, query_channels, waves_at
from posenc.spec import Sandwich, SinusoidalBias, Value

MOST_DISTANCES = 2**22


class WaveBias(PositionBias):
    """A bias ``sum of a_hp sin((i - j) t_p) + b_hp cos((i - j) t_p)``: channels of queries times channels of keys."""

    limit: int | None = None

    def amplitudes(self, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
        """``a`` and ``b``, each ``(heads, 1, pairs)``."""
        raise TypeError(f"{type(self).__name__} does not define amplitudes")

    def clipped(self, distance: Tensor, dtype: torch.dtype) -> Tensor:
        """The bias ``(heads, ...)`` by distance, for an encoding with a limit."""
        raise TypeError(f"{type(self).__name__} does not define clipped")

    def sides(self, q_at: Positions | Tensor, k_at: Positions | Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Channels of queries ``(batch | 1, heads, queries, 2 pairs)``, of keys ``(batch | 1, 1, keys, 2 pairs)``."""
        query, key = ids_of(q_at), ids_of(k_at)
        numbers = self.numbers(query.device)
        on_sine, on_cosine = self.amplitudes(dtype, query.device)
        queries = query_channels(*waves_at(query, numbers, dtype), on_sine, on_cosine)
        return queries, key_channels(*waves_at(key, numbers, dtype))

    def at(self, q_at: Positions | Tensor, k_at: Positions | Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """The bias of positions alone, ``(batch | 1, heads, queries, keys)``."""
        if self.limit is not None:
            distance = whole(ids_of(q_at).unsqueeze(-1) - ids_of(k_at).unsqueeze(-2), "a limit")
            with unrounded(distance.device):
                return self.clipped(distance[:, 0], dtype).transpose(0, 1)
        queries, keys = self.sides(q_at, k_at, dtype)
        with unrounded(queries.device):
            return queries @ keys.transpose(-1, -2)

    def score_mod(
        self,
        q_at: Positions | Tensor | None = None,
        k_at: Positions | Tensor | None = None,
        *,
        q: Tensor | None = None,
        k: Tensor | None = None,
    ) -> ScoreMod:
        """For ``flex_attention``: the bias is looked up by distance.

        Args:
            q_at, k_at: whole positions of queries and keys; needed unless there is a limit.
            q, k: not looked at.

        Raises:
            ShapeError: no positions, or distances over too wide a range.
        """
        if self.limit is not None:
            low, high = -self.limit, self.limit
        elif q_at is None or k_at is None:
            raise ShapeError("a sinusoid of the distance needs the positions", None, "Pass q_at and k_at.")
        else:
            query_ids, key_ids = whole(ids_of(q_at), "score_mod"), whole(ids_of(k_at), "score_mod")
            low, high = int(query_ids.min() - key_ids.max()), int(query_ids.max() - key_ids.min())
        if high - low > MOST_DISTANCES:
            raise ShapeError(f"score_mod looks up at most {MOST_DISTANCES} distances", high - low)
        weight = next(self.parameters(), None)
        device = torch.device("cpu") if weight is None else weight.device
        device = ids_of(q_at).device if q_at is not None else device
        span = torch.arange(low, high + 1, device=device)
        table = self.at(span, torch.zeros(1, dtype=torch.long, device=device), torch.float32)[0, :, :, 0].contiguous()
        query, key = lookup(q_at), lookup(k_at)

        def modify(score: Tensor, batch: Tensor, head: Tensor, q_index: Tensor, k_index: Tensor) -> Tensor:
            step = (query(batch, head, q_index) - key(batch, head, k_index)).clamp(low, high)
            return (score + table[head, step - low]).to(score.dtype)

        return modify


class SinusoidalRelativeBias(WaveBias):
    """``w_h . PE(i - j)`` with trained ``w``, signed, clipped at a limit if there is one.

    ``PE`` is the sinusoid of Vaswani et al. 2017, section 3.5.

    Args:
        value: a :class:`posenc.spec.SinusoidalBias`, its notation, or the number of heads; its fields by name.
        options: of :class:`posenc.nn.scores.PositionBias`.

    >>> bias = SinusoidalRelativeBias("sinusoidal_bias(2, sinusoid=sinusoidal(6))")
    >>> a, b = bias.at(torch.tensor([5]), torch.tensor([3, 7]))[0, 0, 0].tolist()
    >>> a != b
    True
    """

    kind: ClassVar[type[Value]] = SinusoidalBias
    value: SinusoidalBias

    def train_these(self, places: dict[str, Any]) -> None:
        """``w`` ``(heads, dim)``."""
        self.weight = nn.Parameter(torch.empty(self.num_heads, self.value.sinusoid.dim, **places))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Normal with standard deviation 0.02."""
        nn.init.normal_(self.weight, std=0.02)

    @property
    def limit(self) -> int | None:  # type: ignore[override]
        """Distances beyond it count as the limit."""
        return self.value.limit

    def derive(self) -> dict[str, Any]:
        return derived_sinusoid(self.value.sinusoid, self.value.limit)

    def amplitudes(self, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
        on_sine, on_cosine = by_pair(self.weight.to(dtype), self.numbers(device))
        return on_sine.unsqueeze(1), on_cosine.unsqueeze(1)

    def clipped(self, distance: Tensor, dtype: torch.dtype) -> Tensor:
        limit = self.limit or 0
        rows = self.numbers(distance.device)["rows"].to(dtype)
        return (self.weight.to(dtype) @ rows.T)[:, distance.clamp(-limit, limit) + limit]


class SandwichBias(WaveBias):
    """``H / (compression h) sum_i cos((i - j) base^(-2i/dim))`` for head ``h = 1..H`` (Chi et al. 2022).

    Nothing is trained.

    Args:
        value: a :class:`posenc.spec.Sandwich`, its notation, or the number of heads; its fields may be given by name.
        options: of :class:`posenc.nn.scores.PositionBias`.

    >>> SandwichBias(8).at(torch.tensor([4]), torch.tensor([4]))[0, :2].flatten().tolist()
    [64.0, 32.0]
    """

    kind: ClassVar[type[Value]] = Sandwich
    value: Sandwich

    def derive(self) -> dict[str, Any]:
        """Frequencies and, for each head, the factor of every cosine."""
        return {**derived_waves(sandwich_theta(self.value)), "factor": 1 / sandwich_ratios(self.value)}

    def amplitudes(self, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
        factor = self.numbers(device)["factor"][self.heads[0] : self.heads[1]].to(dtype).view(-1, 1, 1)
        factor = factor.expand(-1, 1, self.value.dim // 2)
        return torch.zeros_like(factor), factor


@builds("sinusoidal_bias")
def build_sinusoidal_bias(value: SinusoidalBias, *, channels: bool = False, **options: Any) -> nn.Module:
    """As a bias, or with ``channels=True`` as channels of queries and keys."""
    return _either(SinusoidalRelativeBias, value, channels, options)


@builds("sandwich")
def build_sandwich(value: Sandwich, *, channels: bool = False, **options: Any) -> nn.Module:
    """As a bias, or with ``channels=True`` as channels of queries and keys."""
    return _either(SandwichBias, value, channels, options)


def _either(cls: type[WaveBias], value: Any, channels: bool, options: dict[str, Any]) -> nn.Module:
    if not channels:
        return cls(value, **options)
    from posenc.nn.channels import WaveChannels

    scale = options.pop("scale", None)
    bias = cls(value, **options)
    if bias.limit is not None:
        raise SpecError("a bias with a limit is no product of channels", str(value), "Leave channels out.")
    return WaveChannels(bias, scale=scale)
