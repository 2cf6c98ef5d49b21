"""Biases as extra channels of queries and keys: no matrix of biases, so that fused attention runs as without one.

``score + b_ij`` with ``b_ij = x_i . y_j`` is the score of ``[x / scale | q]`` and ``[y | k]``. Half precision cannot
hold a position (bfloat16 has 8 bits), so a number enters as a sum of several, each in a channel of its own. Values are
padded to the same width by :class:`posenc.nn.attention.Attention`: fused attention on the CPU wants equal widths.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from posenc.errors import ShapeError, SpecError
from posenc.formulas.biases import alibi_slopes
from posenc.nn.derived import Derived
from posenc.nn.interfaces import Positions, QueryKeyEncoding
from posenc.nn.rotary_functions import spread_like
from posenc.nn.scores import ids_of, value_of
from posenc.nn.sinusoidal_biases import WaveBias
from posenc.nn.waves import key_channels, query_channels, waves_at
from posenc.spec import Alibi

PARTS = {torch.bfloat16: 3, torch.float16: 3}
"""Numbers of a type that add up to 24 bits or more; one for wider types."""

BALANCE = 64.0
"""Power of two that moves magnitude from keys to queries or back, so that float16 does not overflow."""


def parts(x: Tensor, dtype: torch.dtype, count: int) -> Tensor:
    """``x`` ``(...)`` as numbers of a type that add up to it, ``(..., count)``.

    >>> parts(torch.tensor(1001.0), torch.bfloat16, 2).tolist()
    [1000.0, 1.0]
    """
    found = []
    for _ in range(count):
        part = x.to(dtype)
        found.append(part)
        x = x - part.to(x.dtype)
    return torch.stack(found, -1)


class Channels(QueryKeyEncoding):
    """Base of encodings that widen queries and keys; the widths grow, the number of tokens and heads does not.

    Args:
        scale: the softmax scale that attention multiplies the product with; ``1 / sqrt(head_dim)`` unless given.

    Raises:
        SpecError: a scale that is not positive and finite.
    """

    widens: ClassVar[bool] = True

    def __init__(self, *, scale: float | None = None) -> None:
        super().__init__()
        if scale is not None and not (math.isfinite(scale) and scale > 0):
            raise SpecError("a softmax scale is a positive number", scale)
        self.scale = scale

    def channels(self, q: Tensor, k: Tensor, ready: Any, scale: float) -> tuple[Tensor, Tensor]:
        """What to put before ``q`` and ``k``, ``(batch, heads, tokens, extra)``; the product is ``bias / scale``."""
        raise TypeError(f"{type(self).__name__} does not define channels")

    def forward(
        self, q: Tensor, k: Tensor, ready: Any, out: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Wider queries and keys.

        Args:
            q: ``(batch, heads, tokens, head_dim)``.
            k: the same with its own heads.
            ready: what :meth:`prepare` returned for these tokens.
            out: not for an encoding that widens.

        Raises:
            ShapeError: ``out`` is given, or the tokens are not those that were prepared.
        """
        if out is not None:
            raise ShapeError("an encoding that widens queries and keys does not work in place", "out")
        scale = self.scale or 1 / math.sqrt(q.shape[-1])
        x, y = self.channels(q, k, ready, scale)
        return torch.cat((x, q), -1), torch.cat((y, k), -1)


def beside(x: Tensor, like: Tensor) -> Tensor:
    """Extra channels ``(batch | 1, heads | 1, tokens, extra)`` for every row and head of ``like``."""
    if (
        like.ndim != 4
        or x.shape[2] != like.shape[2]
        or any(n not in (1, m) for n, m in zip(x.shape[:2], like.shape[:2], strict=True))
    ):
        raise ShapeError(f"q and k are (batch, heads, tokens, head_dim) for {tuple(x.shape[:3])}", tuple(like.shape))
    return spread_like(like, x.to(like.dtype).expand(*like.shape[:3], x.shape[-1]))


def linear_channels(slope: Tensor, at: Tensor, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Channels whose product is ``slope (p_j - p_i)``, eight of them.

    A large ``slope p_j`` meets its ``slope p_i`` at once, before the content's small products are added. In float32 the
    first number of a slope and of a position has bfloat16's bits, so that the products are exact and TensorFloat32
    loses nothing either.

    Args:
        slope: ``(heads, 1)``, float64.
        at: ``p`` ``(batch | 1, 1, tokens)``, float64.
    """
    slope, at, dtype = (slope * BALANCE).unsqueeze(-1), (at / BALANCE).unsqueeze(-1), q.dtype
    pairs: list[tuple[Tensor, Tensor]] = []
    if dtype in PARTS:
        places = parts(at[..., 0], dtype, 2)
        pairs = [(part.unsqueeze(0), places) for part in parts(slope[..., 0], dtype, 2).unsqueeze(-1).unbind(-2)]
        start = parts(
            -(slope * at)[..., 0] / BALANCE, dtype, PARTS[dtype]
        )  # constant for a query, and so is its rounding
        pairs.insert(1, (start, torch.full_like(start[:1, :1], BALANCE)))
    else:
        places = _exact(at)
        for part in _exact(slope).unsqueeze(-1).unbind(-2):
            start = -part.double() * at
            pairs += [(part.unsqueeze(0), places), (start, torch.ones_like(start[:1, :1]))]
    tokens = at.shape[-2]
    x, y = (_joined(side, tokens, like) for side, like in zip(_matched(pairs), (q, k), strict=True))
    missing = -x.shape[-1] % 8  # rows stay aligned
    return functional.pad(x, (0, missing)), functional.pad(y, (0, missing))


def _exact(z: Tensor) -> Tensor:
    """``z`` ``(..., 1)`` as a number of bfloat16's bits and the rest, ``(..., 2)``."""
    first = z.bfloat16().to(z.dtype)
    return torch.cat((first, z - first), -1)


def _matched(pairs: list[tuple[Tensor, Tensor]]) -> tuple[list[Tensor], list[Tensor]]:
    """Both sides with as many channels: one slope meets every part of a position."""
    widths = [max(x.shape[-1], y.shape[-1]) for x, y in pairs]
    sides = zip(*pairs, strict=True)
    first, second = ([t.expand(*t.shape[:-1], n) for t, n in zip(side, widths, strict=True)] for side in sides)
    return first, second


def _joined(channels: list[Tensor], tokens: int, like: Tensor) -> Tensor:
    """Channels of all sizes side by side, for every row, head and token of ``like``."""
    return torch.cat([beside(c.expand(-1, -1, tokens, -1), like) for c in channels], -1)


class AlibiChannels(Derived, Channels):
    """ALiBi as eight extra channels (Press et al. 2021; :class:`posenc.nn.biases.AlibiBias`).

    A position enters as two numbers, exact up to 2^17 in bfloat16, 2^24 in float32, and so does the slope; what is left
    is the rounding of the product's sum in float32, below that of a mask in bfloat16.

    Args:
        value: a :class:`posenc.spec.Alibi` that is not symmetric, its notation, or the number of heads.
        scale: the softmax scale; ``1 / sqrt(head_dim)`` unless given.
        fields: the value's fields by name.

    Raises:
        SpecError: a symmetric value: ``|i - j|`` is no product of channels.

    >>> alibi = AlibiChannels(3)
    >>> q = k = torch.zeros(1, 3, 3, 4)
    >>> x, y = alibi(q, k, alibi.prepare(torch.arange(3)))
    >>> (x @ y.mT / 2)[0, 0, 2].tolist()
    [-0.125, -0.0625, 0.0]
    """

    value: Alibi

    def __init__(self, value: Any = None, *, scale: float | None = None, **fields: Any) -> None:
        super().__init__(scale=scale)
        self.value = value_of(Alibi, value, fields)
        if self.value.symmetric:
            raise SpecError("a bias of |i - j| is no product of channels", str(self.value), "Use AlibiBias.")
        self.derive_now()

    def derive(self) -> dict[str, Any]:
        """The slopes."""
        return {"slopes": alibi_slopes(self.value.num_heads, self.value.max_bias)}

    def prepare(self, at: Positions | Tensor) -> Tensor:
        """Positions ``(batch | 1, 1, tokens)`` in float64."""
        ids = ids_of(at)
        if ids.shape[1] != 1:
            raise ShapeError("positions are the same for all heads", tuple(ids.shape))
        return ids.to(widest(ids.device))

    def channels(self, q: Tensor, k: Tensor, ready: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        """``[slope / scale | -slope p_i / scale]`` and ``[p_j | 1]``, each in as many parts as the type needs."""
        slopes = self.numbers(q.device)["slopes"]
        if q.shape[1] != len(slopes):
            raise ShapeError(f"q has the {len(slopes)} heads that there are slopes for", tuple(q.shape))
        return linear_channels((slopes / scale).unsqueeze(-1), ready, q, k)

    def extra_repr(self) -> str:
        return f"{self.value}, as channels"


class WaveReady(NamedTuple):
    """Cosines and sines of the tokens, shared by layers."""

    cos: Tensor
    sin: Tensor


class WaveChannels(Channels):
    """A bias that is a sinusoid of the distance as two channels for each of its pairs; six in half precision.

    Args:
        bias: a :class:`posenc.nn.sinusoidal_biases.WaveBias` without a limit.
        scale: the softmax scale; ``1 / sqrt(head_dim)`` unless given.

    >>> from posenc.nn import build
    >>> sandwich = build("sandwich(8, dim=4)", channels=True)
    >>> q = k = torch.zeros(1, 8, 3, 4)
    >>> x, y = sandwich(q, k, sandwich.prepare(torch.arange(3)))
    >>> x.shape, [round(v, 4) for v in (x @ y.mT / 2)[0, 0, 2].tolist()]
    (torch.Size([1, 8, 3, 8]), [0.5837, 1.5403, 2.0])
    """

    def __init__(self, bias: WaveBias, *, scale: float | None = None) -> None:
        super().__init__(scale=scale)
        self.bias = bias

    @property
    def value(self) -> Any:
        """The bias's value."""
        return self.bias.value

    def prepare(self, at: Positions | Tensor) -> WaveReady:
        """Cosines and sines ``(batch | 1, 1, tokens, pairs)``, float64 on the CPU."""
        ids = ids_of(at)
        return WaveReady(*waves_at(ids, self.bias.numbers(ids.device), widest(ids.device)))

    def channels(self, q: Tensor, k: Tensor, ready: WaveReady, scale: float) -> tuple[Tensor, Tensor]:
        """Products of cosines and sines; in half precision each is two numbers."""
        on_sine, on_cosine = self.bias.amplitudes(ready.cos.dtype, ready.cos.device)
        x, y = query_channels(*ready, on_sine / scale, on_cosine / scale), key_channels(*ready)
        if q.dtype not in PARTS:
            return beside(x, q), beside(y, k)
        (x1, x2), (y1, y2) = (parts(z, q.dtype, 2).unbind(-1) for z in (x, y))
        return beside(torch.cat((x1, x1, x2), -1), q), beside(torch.cat((y1, y2, y1), -1), k)

    def extra_repr(self) -> str:
        return "as channels"


class SumChannels(Channels):
    """Content positions as channels: adds ``p_i - p_j`` to the score (forgetting: cumulative log decay).

    The positions have as many heads as the keys; grouped queries share their key's.

    Args:
        scale: the softmax scale; ``1 / sqrt(head_dim)`` unless given.
    """

    value = None

    def prepare(self, at: Positions | Tensor) -> Tensor:
        """Real positions ``(batch | 1, heads, tokens)``."""
        ids = at.ids if isinstance(at, Positions) else at
        return ids.to(widest(ids.device))

    def channels(self, q: Tensor, k: Tensor, ready: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        """``[p_i / scale | 1]`` and ``[1 | -p_j / scale]`` for each number that a position enters as."""
        if ready.ndim != 3 or ready.shape[1] not in (1, k.shape[1]):
            rule = f"content positions are (batch, {k.shape[1]} heads of the keys, tokens)"
            raise ShapeError(rule, tuple(ready.shape))
        at = ready / scale
        count = PARTS.get(q.dtype)
        here = _exact(at.unsqueeze(-1)) if count is None else parts(at, q.dtype, count)
        there = _alternating(torch.ones_like(here), -here)
        if ready.shape[1] > 1:
            here = here.repeat_interleave(q.shape[1] // k.shape[1], 1)
        return beside(_alternating(here, torch.ones_like(here)), q), beside(there, k)


def _alternating(first: Tensor, second: Tensor) -> Tensor:
    """Channels of two tensors in turn, and zeros up to eight: large numbers meet what cancels them at once."""
    both = torch.stack((first, second), -1).flatten(-2)
    return functional.pad(both, (0, -both.shape[-1] % 8))


def widest(device: torch.device) -> torch.dtype:
    """float64 where the device has it."""
    return torch.float32 if device.type == "mps" else torch.float64


__all__ = ["AlibiChannels", "Channels", "SumChannels", "WaveChannels", "parts"]
